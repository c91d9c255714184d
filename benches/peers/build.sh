#!/bin/sh
# Installs the peers and builds the workers into $PEERS_BUILD, build/peers of this checkout unless set. Only what has
# changed is built. The first time takes some 10 minutes on 2 cores, as one of the Rust peers pulls in libp2p.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${PEERS_BUILD:-$root/build/peers}
mkdir -p "$build"
workers=$here/workers

packages="g++ python3-venv libgloo-dev libopenmpi-dev openmpi-bin libmpich-dev mpich"
# Package names are words.
if ! dpkg -s $packages >/dev/null 2>&1; then
  echo "installing $packages"
  { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends $packages; } \
    >"$build/apt.log" 2>&1 || { cat "$build/apt.log" >&2; exit 1; }
fi
if [ ! -x "$build/mlxenv/bin/python" ]; then
  python3 -m venv "$build/mlxenv"
  "$build/mlxenv/bin/pip" -q install "mlx[cpu]==0.32.4"
fi

# The peers' own libraries come as they are packaged; the workers, and what is compiled with them, may use this machine.
flags="-O3 -march=native -D_GNU_SOURCE -Wall -Wextra"

# compile OUTPUT SOURCE COMPILER...; a source may be a folder of them.
compile() {
  output=$1
  source=$2
  shift 2
  [ -n "$(find "$source" "$workers/worker.h" -newer "$output" 2>&1)" ] || return 0
  set -- "$@" $flags -o "$output"
  if [ -d "$source" ]; then "$@" "$source"/*.c $libraries; else "$@" "$source" $libraries; fi
}
libraries=-lm
# glibc before 2.34 keeps threads in a library of their own.
compile "$build/limits" "$here/limits" gcc -std=c11 -pthread
compile "$build/ompi_worker" "$workers/mpi.c" mpicc.openmpi -std=c11
compile "$build/mpich_worker" "$workers/mpi.c" mpicc.mpich -std=c11
libraries="-lgloo -lpthread"
compile "$build/gloo_worker" "$workers/gloo.cc" g++

# nuvec keeps its ring private: its own file is compiled with the worker, less its module documentation, which can't be
# included.
cd "$workers/rust"
manifest=$(cargo metadata --locked --format-version 1 --filter-platform "$(rustc -vV | sed -n "s/^host: //p")" | python3 -c '
import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "nuvec-distributed"))')
sed '/^\/\/!/d' "$(dirname "$manifest")/src/ring.rs" >"$build/nuvec_ring.rs.new"
cmp -s "$build/nuvec_ring.rs.new" "$build/nuvec_ring.rs" || cp "$build/nuvec_ring.rs.new" "$build/nuvec_ring.rs"
# nuvec asks for a newer Rust than it needs.
PEERS_BUILD=$build RUSTFLAGS="-C target-cpu=native" \
  cargo build -q --release --locked --ignore-rust-version --target-dir "$build/rust-target"

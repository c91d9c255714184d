#!/bin/sh
# Sees to the commands that a make target needs: `deps.sh build`, `test`, `mlx`, `go`, `lint`, `docs`, `abi`, `cinstall`, `bench`,
# `peers` or `collectives`. What is missing is installed with apt-get where there is one; elsewhere it is named.
set -eu

# Commands and the Debian packages that have them.
build="cc:gcc,libc6-dev cmake:cmake make:make"
test="$build c++:g++ gcc:gcc g++:g++ clang:clang pkg-config:pkg-config nm:binutils readelf:binutils strip:binutils valgrind:valgrind python3:python3"
go="$build gcc:gcc,libc6-dev pkg-config:pkg-config go:golang-go"
test="$test go:golang-go"
# Linux alone has network namespaces, for tests that need hosts, and strace. Elsewhere Open MPI is no must.
[ "$(uname -s)" != Linux ] || test="$test ip:iproute2 strace:strace ompi_info:openmpi-bin"
bench="$build python3:python3"
mlx=$bench
[ "$(uname -s)" != Linux ] || mlx="$mlx ip:iproute2 unshare:util-linux"
# The peers themselves are installed by benches/peers/build.sh: most are libraries.
peers="$bench gcc:gcc g++:g++ ip:iproute2 unshare:util-linux"
collectives="$bench mpicc.openmpi:libopenmpi-dev mpirun.openmpi:openmpi-bin ip:iproute2 unshare:util-linux"
docs="doxygen:doxygen"
abi="$build nm:binutils python3:python3 git:git"
# It reads what Linux's compilers write.
[ "$(uname -s)" != Linux ] || abi="$abi abidiff:abigail-tools"
cinstall="$build pkg-config:pkg-config nm:binutils readelf:binutils"
lint="gcc:gcc,libc6-dev clang:clang git:git $docs $abi"

target=${1:-test}
case $target in
  build) wanted=$build ;;
  test) wanted=$test ;;
  mlx) wanted=$mlx ;;
  go) wanted=$go ;;
  collectives) wanted=$collectives ;;
  lint) wanted=$lint ;;
  docs) wanted=$docs ;;
  abi) wanted=$abi ;;
  cinstall) wanted=$cinstall ;;
  bench) wanted=$bench ;;
  peers) wanted=$peers ;;
  *) echo "usage: deps.sh [build|test|mlx|go|lint|docs|abi|cinstall|bench|peers|collectives]" >&2; exit 1 ;;
esac

if ! command -v cargo >/dev/null; then
  echo "cargo is missing: install Rust 1.91 or later (rustup has it)" >&2
  exit 1
fi
if [ "$target" = lint ]; then
  for component in fmt clippy; do
    cargo $component --version >/dev/null 2>&1 && continue
    [ $component = clippy ] || component=rustfmt
    echo "adding the Rust component $component"
    rustup -q component add $component
  done
fi

missing=
packages=
for entry in $wanted; do
  command -v "${entry%%:*}" >/dev/null && continue
  missing="$missing ${entry%%:*}"
  packages="$packages $(echo "${entry#*:}" | tr , ' ')"
done
with_mlx=
case $target in test | mlx) with_mlx=1 ;; esac
if [ -n "$with_mlx" ] && command -v apt-get >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then
  missing="$missing venv"
  packages="$packages python3-venv"
fi
# cargo-c links the system's OpenSSL.
if [ "$target" = cinstall ] && command -v apt-get >/dev/null && ! pkg-config --exists openssl 2>/dev/null; then
  missing="$missing openssl"
  packages="$packages libssl-dev"
fi
# The example in Python; elsewhere its test is skipped without.
if [ "$target" = test ] && command -v apt-get >/dev/null && ! python3 -c 'import numpy' 2>/dev/null &&
  ! /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  missing="$missing numpy"
  packages="$packages python3-numpy"
fi

install_missing() {
  if [ "$(uname -s)" = Darwin ]; then
    echo "missing:$missing; run: xcode-select --install && brew install cmake pkg-config python3 go" >&2
    exit 1
  fi
  as_root=
  [ "$(id -u)" -eq 0 ] || as_root=sudo
  if ! command -v apt-get >/dev/null || { [ -n "$as_root" ] && ! command -v sudo >/dev/null; }; then
    echo "missing:$missing; install what has them (on Debian:$packages)" >&2
    exit 1
  fi
  echo "installing$packages"
  # Package names are words.
  if ! { $as_root apt-get -q update &&
    DEBIAN_FRONTEND=noninteractive $as_root apt-get -qy install --no-install-recommends $packages; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
}

# A Python of its own with stock MLX, for the tests of its programs and of mlx.launch; where it can't be had they are skipped.
install_mlx() {
  python=$(dirname "$0")/../build/mlxenv
  [ ! -x "$python/bin/mlx.launch" ] || return 0
  echo "installing mlx into build/mlxenv"
  if ! { rm -rf "$python" && python3 -m venv "$python" &&
    "$python/bin/pip" -q install --retries 1 --timeout 15 "mlx[cpu]==0.32.4"; } >"$log" 2>&1; then
    echo "mlx can't be installed, and the tests with it are skipped: $(tail -n 1 "$log")"
  fi
}

# Without optimisation: it runs cargo and copies files.
install_cargo_c() {
  root=$(cd "$(dirname "$0")/.." && pwd)/build/cargo-c
  if PATH="$root/bin:$PATH" cargo cinstall --version >/dev/null 2>&1; then return 0; fi
  echo "building cargo-c into build/cargo-c, some minutes"
  if ! cargo install --quiet --locked --debug --root "$root" cargo-c@0.10.24 >"$log" 2>&1; then
    echo "cargo-c can't be installed, and the test with it is skipped: $(tail -n 1 "$log")"
  fi
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
[ -z "$missing" ] || install_missing
[ -z "$with_mlx" ] || install_mlx
[ "$target" != cinstall ] || install_cargo_c

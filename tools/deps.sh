#!/bin/sh
# Sees to the commands that a make target needs: `deps.sh build`, `test`, `lint`, `bench`, `peers` or `collectives`. What is missing is
# installed with apt-get where there is one; elsewhere it is named.
set -eu

# Commands and the Debian packages that have them.
build="cc:gcc,libc6-dev cmake:cmake make:make"
test="$build c++:g++ gcc:gcc g++:g++ clang:clang pkg-config:pkg-config nm:binutils readelf:binutils strip:binutils valgrind:valgrind python3:python3"
# Linux alone has network namespaces, for tests that need hosts, and strace.
[ "$(uname -s)" != Linux ] || test="$test ip:iproute2 strace:strace"
bench="$build python3:python3"
# The peers themselves are installed by benches/peers/build.sh: most are libraries.
peers="$bench gcc:gcc g++:g++ ip:iproute2 unshare:util-linux"
collectives="$bench mpicc.openmpi:libopenmpi-dev mpirun.openmpi:openmpi-bin ip:iproute2 unshare:util-linux"
lint="gcc:gcc,libc6-dev clang:clang git:git"

case ${1:-test} in
  build) wanted=$build ;;
  test) wanted=$test ;;
  collectives) wanted=$collectives ;;
  lint) wanted=$lint ;;
  bench) wanted=$bench ;;
  peers) wanted=$peers ;;
  *) echo "usage: deps.sh [build|test|lint|bench|peers|collectives]" >&2; exit 1 ;;
esac

if ! command -v cargo >/dev/null; then
  echo "cargo is missing: install Rust 1.91 or later (rustup has it)" >&2
  exit 1
fi
if [ "${1:-test}" = lint ]; then
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
[ -n "$missing" ] || exit 0

if [ "$(uname -s)" = Darwin ]; then
  echo "missing:$missing; run: xcode-select --install && brew install cmake pkg-config python3" >&2
  exit 1
fi
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
if ! command -v apt-get >/dev/null || { [ -n "$as_root" ] && ! command -v sudo >/dev/null; }; then
  echo "missing:$missing; install what has them (on Debian:$packages)" >&2
  exit 1
fi
echo "installing$packages"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Package names are words.
if ! { $as_root apt-get -q update &&
  DEBIAN_FRONTEND=noninteractive $as_root apt-get -qy install --no-install-recommends $packages; } >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi

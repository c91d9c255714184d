#!/bin/sh
# Installs to a temporary prefix, and builds a consumer there by pkg-config and by CMake.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

make -s -C "$root" install PREFIX="$prefix" DESTDIR=
for file in lib/libring.so lib/libring.so.0 lib/libring.a include/ring.h include/module.modulemap; do
  test -e "$prefix/$file" || { echo "$file was not installed"; exit 1; }
done

# Away from the checkout, so that nothing of it is found by chance.
cp "$here/CMakeLists.txt" "$work"
cp "$root/c_tests/src/linked_statically.c" "$work/consumer.c"
cd "$work"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
cc consumer.c -o by_pkg_config $(pkg-config --cflags --libs libring) -Wl,-rpath,"$prefix/lib"
./by_pkg_config
cc consumer.c -o by_pkg_config_static $(pkg-config --cflags libring) "$prefix/lib/libring.a" \
  $(pkg-config --libs --static libring | sed 's/-lring//')
./by_pkg_config_static

cmake -S . -B by_cmake -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build by_cmake >/dev/null
./by_cmake/consumer_ring
./by_cmake/consumer_ring_static

# A package is staged elsewhere than where it will be.
make -s -C "$root" install PREFIX=/opt/ring DESTDIR="$work/stage"
grep -q '^prefix=/opt/ring$' "$work/stage/opt/ring/lib/pkgconfig/libring.pc"
echo "the installed library serves pkg-config and CMake, shared and static"

#!/bin/sh
# Installs libring, moves it, and builds and runs the smallest programs, C and C++, by pkg-config and by CMake, shared
# and static, outside of the checkout; then with the checkout as a part of their project. LIB_DIR as for install.sh.
set -eu
checkout=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc} cxx=${CXX:-c++}
if [ "$(uname -s)" = Darwin ]; then suffix=dylib; dl_libs=; else suffix=so; dl_libs=-ldl; fi

fail() {
  echo "$1"
  exit 1
}

# Runs a program as a ring of two.
port=$((10000 + $$ * 7 % 19990))
echo "[\"127.0.0.1:$port\", \"127.0.0.1:$((port + 1))\"]" >"$work/hosts.json"
runs() {
  RING_HOSTFILE="$work/hosts.json" RING_RANK=1 RING_CONNECT_TIMEOUT_MS=20000 "$1" >"$work/one" 2>&1 &
  other=$!
  got=$(RING_HOSTFILE="$work/hosts.json" RING_RANK=0 RING_CONNECT_TIMEOUT_MS=20000 "$1" 2>&1) || fail "$1: $got"
  wait $other || fail "$1, rank 1: $(cat "$work/one")"
  [ "$got" = "rank 0 of 2: 2 4 6 8" ] || fail "$1 printed \"$got\""
}

# The programs of a folder, as CMake builds them.
runs_all() {
  for program in shared static shared_cpp static_cpp; do runs "$1/$program"; done
}

# In another place than the one it was installed for, and from a library folder of two parts.
for libdir in lib lib/some-triplet; do
  stage="$work/stage"
  PREFIX=/opt/ring LIBDIR=$libdir DESTDIR="$stage" sh "$checkout/packaging/install.sh" >/dev/null
  prefix="$work/moved-to-${libdir##*/}"
  mv "$stage/opt/ring" "$prefix"
  lib="$prefix/$libdir"

  if [ "$(uname -s)" != Darwin ]; then
    [ "$(readlink "$lib/libring.so")" = libring.so.0 ] || fail "libring.so doesn't lead to libring.so.0"
    [ "$(readlink "$lib/libring.so.0")" = libring.so.0.1.0 ] || fail "libring.so.0 doesn't lead to libring.so.0.1.0"
    sh "$checkout/plugins/mpi/test/exports.sh" "$lib/libring_mpi.so" || fail "the plugin for MLX"
    readelf -d "$prefix/bin/ring-perf" | grep -q 'RUNPATH.*\[$ORIGIN/\.\.\]' || fail "ring-perf looks elsewhere for the library"
    readelf -d "$lib/libring.so" | grep -q 'SONAME.*\[libring.so.0\]' || fail "the library isn't called libring.so.0"
  fi

  "$prefix/bin/ring-perf" --ranks 2 -b 8 -e 8 -n 1 >"$work/perf" 2>&1 || fail "$(cat "$work/perf")"

  mkdir "$work/by pkg-config"
  cd "$work/by pkg-config"
  cp "$checkout/examples/c/all_reduce.c" "$checkout/examples/cpp/all_reduce.cpp" .
  export PKG_CONFIG_PATH="$lib/pkgconfig"
  [ "$(pkg-config --modversion libring)" = 0.1.0 ] || fail "pkg-config gives another version"
  $cc all_reduce.c -o shared $(pkg-config --cflags --libs libring)
  LD_LIBRARY_PATH="$lib" DYLD_LIBRARY_PATH="$lib" runs ./shared
  $cc all_reduce.c -o static $(pkg-config --cflags libring) $(pkg-config --variable=static_libs libring)
  runs ./static
  $cxx -std=c++17 all_reduce.cpp -o shared_cpp $(pkg-config --cflags --libs libring)
  LD_LIBRARY_PATH="$lib" DYLD_LIBRARY_PATH="$lib" runs ./shared_cpp
  $cxx -std=c++17 all_reduce.cpp -o static_cpp $(pkg-config --cflags libring) $(pkg-config --variable=static_libs libring)
  runs ./static_cpp

  mkdir "$work/by CMake"
  cd "$work/by CMake"
  cp "$checkout/examples/c/all_reduce.c" "$checkout/examples/cpp/all_reduce.cpp" "$checkout/packaging/test/CMakeLists.txt" .
  # CMake looks in lib below a prefix, and in no triplet but the compiler's.
  where="-DCMAKE_PREFIX_PATH=$prefix"
  [ $libdir = lib ] || where="-DRing_DIR=$lib/cmake/Ring"
  cmake -S . -B build "$where" >log 2>&1 || fail "$(cat log)"
  cmake --build build >log 2>&1 || fail "$(cat log)"
  runs_all build

  # The plugin finds the library without being told where it is.
  cat >plugin.c <<'EOF'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  if (argc == 2 && dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) return 0;
  fprintf(stderr, "%s\n", dlerror());
  return 1;
}
EOF
  $cc plugin.c -o plugin $dl_libs
  ./plugin "$lib/libring_mpi.$suffix" || fail "the plugin doesn't load"

  # Nothing of the archive's is left to the shared library.
  if [ "$(uname -s)" != Darwin ]; then
    for program in "$work/by pkg-config/static" "$work/by pkg-config/static_cpp" build/static build/static_cpp; do
      ! readelf -d "$program" | grep -q 'NEEDED.*libring' || fail "$program needs the shared library"
    done
  fi

  if command -v clang >/dev/null; then
    printf '#pragma clang module import CRing\nuint32_t version(void) { return ring_version(); }\n' >module.c
    clang -fmodules -fmodules-cache-path="$work/modules" "-I$prefix/include" -fsyntax-only module.c || fail "the module map"
  fi
  cd "$work"
  rm -rf "$work/by pkg-config" "$work/by CMake" "$stage"
done

# With the source tree as a part of the project. Cargo finds what `make` has built.
cp -r "$checkout/packaging/test/subdirectory" "$work/by source"
cd "$work/by source"
cp "$checkout/examples/c/all_reduce.c" "$checkout/examples/cpp/all_reduce.cpp" .
builds() {
  cmake --build "$1" >log 2>&1 || fail "$(cat log)"
}
for by_fetch in OFF ON; do
  cmake -S . -B build-$by_fetch "-DRING_SOURCE=$checkout" -DBY_FETCH=$by_fetch "-DRING_CARGO_DIR=$checkout/target" >log 2>&1 ||
    fail "$(cat log)"
  builds build-$by_fetch
  runs_all build-$by_fetch
done

# Cargo runs again when a source has changed or is new, and only then. This one does nothing but count.
mkdir tree
(cd "$checkout" && cp -r CMakeLists.txt Cargo.toml Cargo.lock build.rs cbindgen.toml include packaging src "$work/by source/tree")
printf '#!/bin/sh\necho once >>"%s/times"\n' "$work" >cargo
chmod +x cargo
cmake -S . -B build-counted "-DRING_SOURCE=$PWD/tree" "-DRING_CARGO_DIR=$checkout/target" "-DRING_CARGO=$PWD/cargo" >log 2>&1 ||
  fail "$(cat log)"
counted() {
  builds build-counted
  [ "$(wc -l <"$work/times")" -eq "$1" ] || fail "cargo has run $(wc -l <"$work/times") times, not $1"
}
counted 1
counted 1
touch tree/src/lib.rs
counted 2
echo >tree/src/another.rs
counted 3

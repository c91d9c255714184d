#!/bin/sh
# `cargo cinstall` puts in place what packaging/install.sh does: the same files but for the CMake package, the plugin and ring-perf, the same names, the
# same exports. It needs cargo-c; without it this is skipped, which RING_TESTS_REQUIRE_CINSTALL=1 makes a failure. LIB_DIR as for install.sh.
set -eu
checkout=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}

fail() {
  echo "$1"
  exit 1
}

if ! cargo cinstall --version >/dev/null 2>&1; then
  [ "${RING_TESTS_REQUIRE_CINSTALL:-0}" = 0 ] || fail "cargo-c is missing"
  echo "skipped: cargo-c is missing"
  exit 0
fi
[ "$(uname -s)" = Linux ] || { echo "skipped: readelf and nm are Linux's"; exit 0; }

PREFIX=$work/ours DESTDIR="$work/stage" sh "$checkout/packaging/install.sh" >/dev/null
(cd "$checkout" && cargo cinstall --locked --release --prefix "$work/theirs" --libdir lib --destdir "$work/stage") >"$work/log" 2>&1 ||
  fail "$(cat "$work/log")"
for whose in ours theirs; do
  mv "$work/stage$work/$whose" "$work/$whose"
done

files() { (cd "$work/$1" && find . ! -type d ! -path '*/cmake/*' ! -name 'libring_mpi.*' ! -name ring-perf | sort); }
files ours >"$work/files"
files theirs | diff "$work/files" - || fail "other files"
diff -r "$work/ours/include" "$work/theirs/include" || fail "other headers"

# All that a program or a packager sees of a library.
seen() {
  nm -D --defined-only "$1" | awk '{ print $2, $3 }' | sort
  readelf -d "$1" | sed -n 's/.*\(SONAME\|FLAGS_1\|NEEDED\))//p'
}
seen "$work/ours/lib/libring.so" >"$work/seen"
seen "$work/theirs/lib/libring.so" | diff "$work/seen" - || fail "another library"
for link in libring.so libring.so.0; do
  [ "$(basename "$(readlink -f "$work/theirs/lib/$link")")" = libring.so.0.1.0 ] || fail "$link leads elsewhere"
done

export PKG_CONFIG_PATH="$work/theirs/lib/pkgconfig"
[ "$(pkg-config --modversion libring)" = 0.1.0 ] || fail "pkg-config gives another version"
cd "$work"
echo '["127.0.0.1:1"]' >hosts.json
runs() {
  got=$(RING_HOSTFILE=hosts.json RING_RANK=0 "$1" 2>&1) || fail "$1: $got"
  [ "$got" = "rank 0 of 1: 0.5 1.5 2.5 3.5" ] || fail "$1 printed \"$got\""
}
$cc "$checkout/examples/c/all_reduce.c" -o shared $(pkg-config --cflags --libs libring)
readelf -d shared | grep -q 'NEEDED.*\[libring.so.0\]' || fail "the program doesn't ask for libring.so.0"
LD_LIBRARY_PATH="$work/theirs/lib" runs ./shared
$cc "$checkout/examples/c/all_reduce.c" -o static $(pkg-config --cflags libring) theirs/lib/libring.a \
  $(pkg-config --static --libs-only-l libring | sed 's/-lring//')
runs ./static

#!/bin/sh
# Installs what `make` has built: the library, the plugin that stock MLX loads, ring-perf, the headers, and what tells others how to
# link. From the environment: PREFIX (/usr/local), LIBDIR, INCLUDEDIR and BINDIR (lib, include, bin: below PREFIX), DESTDIR
# (a staging root, empty), LIB_DIR (target/release).
set -eu
cd "$(dirname "$0")/.."
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-lib}
includedir=${INCLUDEDIR:-include}
bindir=${BINDIR:-bin}
built=${LIB_DIR:-target/release}

case $prefix in /*) ;; *) echo "PREFIX is \"$prefix\", not an absolute path" >&2; exit 1 ;; esac
for below in "$libdir" "$includedir" "$bindir"; do
  case $below in
    /* | *..*) echo "LIBDIR, INCLUDEDIR and BINDIR are paths below PREFIX, such as lib/x86_64-linux-gnu" >&2; exit 1 ;;
  esac
done

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
major=${version%%.*}
minor=${version#*.}
minor=${minor%%.*}
# What rustc --print native-static-libs names, without what the C compiler adds by itself.
if [ "$(uname -s)" = Darwin ]; then
  suffix=dylib shared=libring.$version.dylib soname=libring.$major.dylib static_libs="-lm"
else
  suffix=so shared=libring.so.$version soname=libring.so.$major static_libs="-lpthread -ldl -lm"
fi
for file in "$built/libring.$suffix" "$built/libring.a" "$built/libring_mpi.$suffix" "$built/libring/ring-perf"; do
  [ -f "$file" ] || { echo "$file is missing: run make first" >&2; exit 1; }
done

# "lib/cmake/Ring" -> "../../.."
way_up() { echo "$1" | sed 's|//*|/|g; s|[^/][^/]*|..|g'; }

filled() {
  sed -e "s|@PREFIX_FROM_PC@|$(way_up "$libdir/pkgconfig")|" \
    -e "s|@PREFIX_FROM_CMAKE@|$(way_up "$libdir/cmake/Ring")|" \
    -e "s|@LIBDIR@|$libdir|g" -e "s|@INCLUDEDIR@|$includedir|g" -e "s|@STATIC_LIBS@|$static_libs|g" \
    -e "s|@STATIC_LIBS_LIST@|$(echo "$static_libs" | sed 's/ -/;-/g')|" \
    -e "s|@SHARED_FILE@|$shared|g" -e "s|@SONAME@|$soname|g" -e "s|@VERSION@|$version|g" \
    -e "s|@VERSION_MAJOR@|$major|g" -e "s|@VERSION_MINOR@|$minor|g" \
    -e "s|@POINTER_BYTES@|$(($(getconf LONG_BIT) / 8))|g" "$1"
}

lib=${DESTDIR:-}$prefix/$libdir
include=${DESTDIR:-}$prefix/$includedir
bin=${DESTDIR:-}$prefix/$bindir
mkdir -p "$lib/pkgconfig" "$lib/cmake/Ring" "$lib/libring" "$include" "$bin"
# A file of its own and a rename: a program that has the old library loaded keeps it whole.
put() {
  rm -f "$3.new"
  cp "$2" "$3.new"
  chmod "$1" "$3.new"
  mv -f "$3.new" "$3"
}
put 755 "$built/libring.$suffix" "$lib/$shared"
ln -sf "$shared" "$lib/$soname"
ln -sf "$soname" "$lib/libring.$suffix"
# It looks for the library beside itself.
put 755 "$built/libring_mpi.$suffix" "$lib/libring_mpi.$suffix"
# It looks one folder up; a loader goes by where the file is, and not by the link.
put 755 "$built/libring/ring-perf" "$lib/libring/ring-perf"
ln -sf "$(way_up "$bindir")/$libdir/libring/ring-perf" "$bin/ring-perf"
put 644 "$built/libring.a" "$lib/libring.a"
put 644 include/ring.h "$include/ring.h"
put 644 include/ring.hpp "$include/ring.hpp"
put 644 include/module.modulemap "$include/module.modulemap"
made=$(mktemp)
trap 'rm -f "$made"' EXIT
filled packaging/libring.pc.in >"$made"
put 644 "$made" "$lib/pkgconfig/libring.pc"
filled packaging/RingConfig.cmake.in >"$made"
put 644 "$made" "$lib/cmake/Ring/RingConfig.cmake"
filled packaging/RingConfigVersion.cmake.in >"$made"
put 644 "$made" "$lib/cmake/Ring/RingConfigVersion.cmake"
echo "libring $version is in ${DESTDIR:-}$prefix"

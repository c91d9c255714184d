#!/bin/sh
# install.sh DESTDIR PREFIX VERSION SOVERSION: puts the built library where programs find it.
set -eu
dest=$1$2 prefix=$2 version=$3 soversion=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
built=$root/target/release

mkdir -p "$dest/lib/pkgconfig" "$dest/lib/cmake/Ring" "$dest/include"
case $(uname -s) in
  Darwin)
    shared=libring.$version.dylib soname=libring.$soversion.dylib link=libring.dylib
    private="System;c;m"
    ;;
  *)
    shared=libring.so.$version soname=libring.so.$soversion link=libring.so
    private="gcc_s;util;rt;pthread;m;dl;c"
    ;;
esac
install -m 755 "$built/$link" "$dest/lib/$shared"
strip -S "$dest/lib/$shared" 2>/dev/null || true
ln -sf "$shared" "$dest/lib/$soname"
ln -sf "$soname" "$dest/lib/$link"
install -m 644 "$built/libring.a" "$dest/lib/"
install -m 644 "$root/include/ring.h" "$root/include/module.modulemap" "$dest/include/"

fill() { # fill TEMPLATE TARGET
  sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" -e "s|@SHARED@|$shared|g" -e "s|@SONAME@|$soname|g" \
    -e "s|@PRIVATE_LIBS@|$private|g" "$here/$1" >"$dest/$2"
}
fill libring.pc.in lib/pkgconfig/libring.pc
fill RingConfig.cmake.in lib/cmake/Ring/RingConfig.cmake
fill RingConfigVersion.cmake.in lib/cmake/Ring/RingConfigVersion.cmake
echo "installed libring $version to $dest"

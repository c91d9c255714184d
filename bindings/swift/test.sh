#!/bin/sh
# The package for Swift against an installed library, under packaging/staged.sh: the module maps by clang, and where Swift is its
# tests and the smallest program.
set -eu
cd "$(dirname "$0")/../.."
stage=${RING_STAGE:?run it by packaging/staged.sh}
built=$PWD/build/swift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Objective-C has @import; C and C++ reach the module by its header.
printf '#include <ring.h>\nuint32_t version(void) { return ring_version(); }\n' | tee "$work/included.c" >"$work/included.cc"
# The map that is installed, the package's, and the one beside the other, as Swift sees them.
for maps in include package both; do
  module=CLibring
  [ $maps != include ] || module=CRing
  printf '@import %s;\nuint32_t version(void) { return ring_version(); }\n' $module | tee "$work/imported.m" >"$work/imported.mm"
  printf '#pragma clang module import %s\nuint32_t version(void) { return ring_version(); }\n' $module >"$work/imported.c"
  set -- -fmodules -fmodules-cache-path="$work/cache" -fsyntax-only -Werror -Weverything \
    -Wno-missing-prototypes -Wno-poison-system-directories
  case $maps in
    include) set -- "$@" -fno-implicit-module-maps "-fmodule-map-file=$stage/include/module.modulemap" "-I$stage/include" ;;
    package)
      mkdir "$work/bare"
      cp include/ring.h "$work/bare"
      set -- "$@" -fno-implicit-module-maps -fmodule-map-file=bindings/swift/Sources/CLibring/module.modulemap "-I$work/bare"
      ;;
    both) set -- "$@" -fmodule-map-file=bindings/swift/Sources/CLibring/module.modulemap "-I$stage/include" ;;
  esac
  for file in "$work"/*.c "$work"/*.cc "$work"/*.m "$work"/*.mm; do
    case $file in *.mm | *.cc) extra="-Wno-c++98-compat-pedantic -fcxx-modules" ;; *) extra= ;; esac
    # shellcheck disable=SC2086
    clang "$@" $extra "$file" || { echo "modules: $maps, ${file##*/}"; exit 1; }
  done
done

if ! command -v swift >/dev/null; then
  echo "there is no Swift: its tests are skipped, and the module maps are right"
  exit 0
fi
(cd bindings/swift && swift test --scratch-path "$built/package")
(cd examples/swift/all_reduce && swift build --scratch-path "$built/example")
sh examples/swift/test.sh "$built/example/debug/all_reduce"

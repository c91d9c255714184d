#!/bin/sh
# Runs a command with the library that `make` has built in this checkout, installed below build/stage, where pkg-config and the
# loader find it. RING_STAGE is that folder.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
RING_STAGE="$checkout/build/stage"
PREFIX="$RING_STAGE" LIBDIR=lib INCLUDEDIR=include BINDIR=bin DESTDIR="" sh "$checkout/packaging/install.sh" >/dev/null
export RING_STAGE PKG_CONFIG_PATH="$RING_STAGE/lib/pkgconfig"
export LD_LIBRARY_PATH="$RING_STAGE/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export DYLD_LIBRARY_PATH="$RING_STAGE/lib${DYLD_LIBRARY_PATH:+:$DYLD_LIBRARY_PATH}"
exec "$@"

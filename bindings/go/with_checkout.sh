#!/bin/sh
# Runs a command, such as `go test ./...`, with the library that `make` has built in this checkout: installed below
# build/stage, where pkg-config finds it. Nothing is downloaded, and what go keeps stays below build.
set -eu
checkout=$(cd "$(dirname "$0")/../.." && pwd)
PREFIX="$checkout/build/stage" LIBDIR=lib INCLUDEDIR=include DESTDIR="" sh "$checkout/packaging/install.sh" >/dev/null
lib="$checkout/build/stage/lib"
export PKG_CONFIG_PATH="$lib/pkgconfig"
export LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export DYLD_LIBRARY_PATH="$lib${DYLD_LIBRARY_PATH:+:$DYLD_LIBRARY_PATH}"
export GOCACHE="$checkout/build/go/cache" GOPATH="$checkout/build/go/path"
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOWORK=off GO111MODULE=on CGO_ENABLED=1
# go doesn't see a header change that is outside of the module; a flag it does.
CGO_CFLAGS="-O2 -DRING_H_IS=$(cksum <"$lib/../include/ring.h" | tr ' ' _)"
export CGO_CFLAGS
exec "$@"

#!/bin/sh
# Runs a command, such as `go test ./...`, with the library that `make` has built in this checkout. Nothing is downloaded, and
# what go keeps stays below build.
set -eu
checkout=$(cd "$(dirname "$0")/../.." && pwd)
export GOCACHE="$checkout/build/go/cache" GOPATH="$checkout/build/go/path"
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOWORK=off GO111MODULE=on CGO_ENABLED=1
# go doesn't see a header change that is outside of the module; a flag it does.
CGO_CFLAGS="-O2 -DRING_H_IS=$(cksum <"$checkout/include/ring.h" | tr ' ' _)"
export CGO_CFLAGS
exec sh "$checkout/packaging/staged.sh" "$@"

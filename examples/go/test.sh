#!/bin/sh
# The Go example is what README shows, and works as a ring of three. Run by bindings/go/with_checkout.sh.
set -eu
cd "$(dirname "$0")"
. ../ring_of_three.sh

awk '/^```go$/ { inside = 1; next } /^```$/ && inside { exit } inside' ../../README.md | diff - all_reduce.go

[ -z "$(gofmt -l .)" ] || { gofmt -d .; exit 1; }
go vet .
go build -o "$work/all_reduce" .
ring_of_three "$work/all_reduce"
expect_sums "[4.5 7.5 10.5 13.5]"

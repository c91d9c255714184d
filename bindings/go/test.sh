#!/bin/sh
# The tests of the Go package, from with_checkout.sh: `test.sh check`, `test` or `race`.
set -eu
cd "$(dirname "$0")"
case ${1:-test} in
  check)
    unformatted=$(gofmt -l .)
    [ -z "$unformatted" ] || { echo "gofmt would change $unformatted"; exit 1; }
    go vet ./...
    ;;
  test) go test -count=1 ./... ;;
  race)
    # Where Go has a race detector: what goroutines do beside each other.
    case $(go env GOOS)/$(go env GOARCH) in
      linux/amd64 | linux/arm64 | darwin/*) ;;
      *) echo "Skipped: no race detector here"; exit 0 ;;
    esac
    go test -race -count=1 -run 'Close|Context|Custom|Texts|Log' ./...
    ;;
  *) echo "usage: test.sh [check|test|race]" >&2; exit 1 ;;
esac

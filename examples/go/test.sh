#!/bin/sh
# The Go example is what README shows, and works as a ring of three. Run by bindings/go/with_checkout.sh.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk '/^```go$/ { inside = 1; next } /^```$/ && inside { exit } inside' ../../README.md | diff - all_reduce.go

[ -z "$(gofmt -l .)" ] || { gofmt -d .; exit 1; }
go vet .
go build -o "$work/all_reduce" .
# Ports below the range of outgoing connections, elsewhere for each run.
port=$((10000 + $$ * 7 % 19990))
export RING_HOSTFILE="$work/hosts.json" RING_CONNECT_TIMEOUT_MS=20000
echo "[\"127.0.0.1:$port\", \"127.0.0.1:$((port + 1))\", \"127.0.0.1:$((port + 2))\"]" >"$RING_HOSTFILE"
ranks=
for rank in 0 1 2; do
  RING_RANK=$rank "$work/all_reduce" >"$work/$rank" 2>&1 &
  ranks="$ranks $!"
done
for pid in $ranks; do wait "$pid" || { cat "$work"/[0-2]; exit 1; }; done
for rank in 0 1 2; do
  got=$(cat "$work/$rank")
  wanted="rank $rank of 3: [4.5 7.5 10.5 13.5]"
  [ "$got" = "$wanted" ] || { echo "rank $rank printed \"$got\", not \"$wanted\""; exit 1; }
done

#!/bin/sh
# The smallest program in Swift as ranks of a ring that the environment describes. Argument: the program.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Ports below the range of outgoing connections, elsewhere for each run.
port=$((10000 + $$ * 7 % 19990))
export RING_HOSTFILE="$work/hosts.json" RING_CONNECT_TIMEOUT_MS=20000
echo "[\"127.0.0.1:$port\", \"127.0.0.1:$((port + 1))\", \"127.0.0.1:$((port + 2))\"]" >"$RING_HOSTFILE"
ranks=
for rank in 0 1 2; do
  RING_RANK=$rank "$program" >"$work/$rank" 2>&1 &
  ranks="$ranks $!"
done
for pid in $ranks; do wait "$pid" || { cat "$work"/[0-2]; exit 1; }; done
for rank in 0 1 2; do
  wanted="rank $rank of 3: [4.5, 7.5, 10.5, 13.5]"
  [ "$(cat "$work/$rank")" = "$wanted" ] || { echo "rank $rank printed \"$(cat "$work/$rank")\", not \"$wanted\""; exit 1; }
done

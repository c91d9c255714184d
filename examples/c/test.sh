#!/bin/sh
# The smallest program and ring-perf as ranks of a ring that the environment describes. Arguments: the two
# programs.
set -eu
all_reduce=$1
perf=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Ports below the range of outgoing connections, elsewhere for each run.
port=$((10000 + $$ * 7 % 19990))
export RING_HOSTFILE="$work/hosts.json"
echo "[[\"127.0.0.1:$port\"], [\"127.0.0.1:$((port + 1))\"], [\"127.0.0.1:$((port + 2))\"]]" >"$RING_HOSTFILE"
export RING_CONNECT_TIMEOUT_MS=20000

ring_of_three() {
  ranks=
  for rank in 0 1 2; do
    RING_RANK=$rank "$@" >"$work/$rank" 2>&1 &
    ranks="$ranks $!"
  done
  for pid in $ranks; do wait "$pid" || { cat "$work"/[0-2]; exit 1; }; done
}

ring_of_three "$all_reduce"
for rank in 0 1 2; do
  got=$(cat "$work/$rank")
  wanted="rank $rank of 3: 4.5 7.5 10.5 13.5"
  [ "$got" = "$wanted" ] || { echo "rank $rank printed \"$got\", not \"$wanted\""; exit 1; }
done
ring_of_three "$perf" -b 8 -e 64K -f 64 -n 2 --connections 2
grep -q "connections: 2" "$work/0" && grep -q "values : 0 OK" "$work/0" || { cat "$work/0"; exit 1; }
[ ! -s "$work/1" ] || { cat "$work/1"; exit 1; }

#!/bin/sh
# ring-perf --links between hosts, of which one link is slow: exactly that one is named, in the direction that is slow.
# The argument is the program. `test_slow_link.sh PROGRAM show` prints what is said of a ring with one slow link.
set -eu
perf=$1

common=$(dirname "$0")/../common
. "$common/test_namespaces.sh"

SIZE=4
# Little enough for a machine that runs other tests besides.
RATE=100mbit
SLOW_RATE=20mbit
BURST=64kb

# limit NET HOST INTERFACE RATE: what leaves there does so at this rate. Small bursts cost CPU, large ones hide the rate.
limit() { tc -n "$run-$1-$2" qdisc replace dev "$3" root tbf rate "$4" burst "$BURST" latency 50ms; }

# cables NET: a cable from the right port of each host to the left port of the next; 10.0.C.2 is cable C's right end.
cables() {
  for host in $(seq 0 $((SIZE - 1))); do make_host "$1" "$host"; done
  for host in $(seq 0 $((SIZE - 1))); do
    next=$(((host + 1) % SIZE))
    ip -n "$run-$1-$host" link add right type veth peer name left netns "$run-$1-$next"
    ip -n "$run-$1-$host" addr add "10.0.$host.1/24" dev right
    ip -n "$run-$1-$next" addr add "10.0.$host.2/24" dev left
    ip -n "$run-$1-$host" link set right up
    ip -n "$run-$1-$next" link set left up
    limit "$1" "$host" right "$RATE"
    limit "$1" "$next" left "$RATE"
  done
  echo '["10.0.3.2:5000","10.0.0.2:5000","10.0.1.2:5000","10.0.2.2:5000"]' >"$work/$1.hosts"
}

# switches NET: two of them, and a port to each for every host; two addresses a rank.
switches() {
  make_net "$1" "$SIZE"
  ip -n "$run-$1-hub" link add br1 type bridge mcast_snooping 0
  ip -n "$run-$1-hub" link set br1 up
  for host in $(seq 0 $((SIZE - 1))); do
    plug "$1" "$host" br1 eth1 "10.1.0.$((host + 1))/24"
    limit "$1" "$host" eth0 "$RATE"
    limit "$1" "$host" eth1 "$RATE"
  done
  seq -s , 1 "$SIZE" | sed 's/[0-9][0-9]*/["10.0.0.&:5000","10.1.0.&:5000"]/g; s/.*/[&]/' >"$work/$1.hosts"
}

# run_ring NET EXIT_STATUS [OPTION...]: a rank on each host, each with a host name; all end with this status.
run_ring() {
  net=$1 wanted=$2
  shift 2
  for host in $(seq 0 $((SIZE - 1))); do
    RING_RANK=$host RING_HOSTFILE=$work/$net.hosts ip netns exec "$run-$net-$host" \
      unshare --uts sh -c 'hostname "node-$RING_RANK" && exec "$@"' sh "$perf" --links "$@" >"$work/$net.$host" 2>&1 &
    echo $! >"$work/$net.$host.pid"
  done
  for host in $(seq 0 $((SIZE - 1))); do
    got=0
    wait "$(cat "$work/$net.$host.pid")" || got=$?
    [ "$got" -eq "$wanted" ] || fail "$net" "rank $host ended with exit status $got, not $wanted"
  done
}

# fail NET TEXT: ends the test, with what its ranks have said.
fail() {
  echo "$1: $2"
  for said in "$work/$1".[0-9]; do sed "s/^/    rank ${said##*.}: /" "$said"; done
  exit 1
}

# names NET LINE...: what rank 0 says is slow, and nothing else; lines are as far as their colons.
names() {
  net=$1
  shift
  sed -n 's/^# Slow: \(.*\):.*/\1/p' "$work/$net.0" >"$work/$net.said"
  for line in "$@"; do echo "$line"; done | cmp -s - "$work/$net.said" || fail "$net" "not named as slow: $*"
}

has() { grep -q -- "$2" "$work/$1.${3:-0}" || fail "$1" "no \"$2\""; }

if [ "${2:-}" = show ]; then
  RATE=1gbit BURST=256kb
  cables show
  limit show 2 right 200mbit
  run_ring show 1
  cat "$work/show.0"
  exit
fi

cables even
run_ring even 0
names even
has even "^# No edge is slow"
! grep -q "on one host" "$work/even.0" || fail even "said to be on one host"
[ "$(grep -c ' ok$' "$work/even.0")" -eq $SIZE ] || fail even "not $SIZE edges"
for host in 1 2 3; do [ ! -s "$work/even.$host" ] || fail even "rank $host says something"; done

# To the right, from host 2 to host 3.
limit even 2 right "$SLOW_RATE"
run_ring even 1
names even "from rank 2 to rank 3 (node-2 to node-3, link to 10.0.2.2:5000)"
has even "2 - 3 .*slow: right 0\.[12][0-9] x$"
has even "slowest edge: large collectives take up to [45]\.[0-9] times as long"

# To the left, on the edge that closes the ring; and the same as a document.
limit even 2 right "$RATE"
limit even 0 left "$SLOW_RATE"
run_ring even 1
names even "from rank 0 to rank 3 (node-0 to node-3, link to 10.0.3.2:5000)"
if command -v python3 >/dev/null; then
  run_ring even 1 --json
  python3 -c 'import json, sys
links = json.load(sys.stdin)["links"]
assert [link["slow"] for link in links] == [[], [], [], ["left"]], links' <"$work/even.0" || fail even "the document isn't right"
fi

# Large packets vanish, as where a switch doesn't take frames that its hosts send: the ring forms, and the link is named.
limit even 0 left "$RATE"
tc -n "$run-even-1" qdisc replace dev right root tbf rate "$RATE" burst 1000 latency 50ms
RING_TIMEOUT_MS=3000 run_ring even 1
for host in 0 1 2 3; do has even "testing the link between ranks 1 and 2: RING_STATUS_TIMEOUT: .*1.*2" "$host"; done
has even "^  0 - 1 .* ok$"
has even "^  1 - 2 .* not tested$"
limit even 1 right "$RATE"

# A long round trip, where this kernel can delay packets.
if tc -n "$run-even-1" qdisc replace dev right root netem delay 5ms 2>/dev/null; then
  run_ring even 1
  has even "^# Slow: least round trip between ranks 1 and 2 "
  has even "^# Every call waits"
fi

# What a host sends by its second port goes to both neighbours.
switches two
run_ring two 0
names two
[ "$(grep -c ' ok$' "$work/two.0")" -eq $((2 * SIZE)) ] || fail two "not two addresses of $SIZE edges"
limit two 1 eth1 "$SLOW_RATE"
run_ring two 1
names two "from rank 1 to rank 0 (node-1 to node-0, link to 10.1.0.2:5000)" \
  "from rank 1 to rank 2 (node-1 to node-2, link to 10.1.0.3:5000)"

#!/bin/sh
# The network drops silently while large calls run: every rank fails within the timeout and a second, blames what
# was cut, and has no wrong sum before that. Arguments: the program, the number of ranks.
. "$(dirname "$0")/loss.sh"
size=$2
timeout_ms=5000
# The timeout and a second from the last progress, for which what was under way at the cut has half a second.
within=6.5

busy_loss() {
  make_net "$1" "$size"
  start_all "$1" "$size" busy count=1048577 timeout_ms=$timeout_ms
  lose "$1" "$size" "$2" 'RING_STATUS_TIMEOUT|RING_STATUS_PEER_LOST' $within
}

# One starts when the one before has only its silence left, so that busy rings don't wait for each other's cores.
number=0
for what in $(cuts "$size"); do
  number=$((number + 1))
  beside "b$number" busy_loss "$what"
  for _ in $(seq 100); do [ -e "$work/b$number.cut" ] || sleep 0.1; done
done
all_beside

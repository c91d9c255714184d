#!/bin/sh
# The network drops silently while no call runs, or for less than a call's timeout: the control links find
# it out in about 20 s.
. "$(dirname "$0")/loss.sh"
within=30

idle_loss() {
  make_net "$1" "$2"
  start_all "$1" "$2" idle limit_s=45
  lose "$1" "$2" "$3" RING_STATUS_PEER_LOST $within
}

# A call is blocked, with a timeout that is longer.
blocked() {
  make_net "$1" "$2"
  start_all "$1" "$2" busy count=1048577 timeout_ms=90000 limit_s=45
  lose "$1" "$2" "$3" RING_STATUS_PEER_LOST $within
}

for size in 2 3 4; do
  number=0
  for what in $(cuts $size); do
    number=$((number + 1))
    beside "i$size$number" idle_loss $size "$what"
  done
done
beside blocked2 blocked 2 host:1
beside blocked3 blocked 3 host:1
all_beside

#!/bin/sh
# The network drops silently while calls run one after the other: every rank fails within the timeout and a second,
# blames what was cut, and has no wrong sum before that. Arguments: the program, the number of ranks.
. "$(dirname "$0")/loss.sh"
size=$2
timeout_ms=5000
# The timeout and a second from the last progress; what was under way at the cut may move for two seconds more
# on a machine that is busy with other things.
within=8

# NET WHAT COUNT
busy_loss() {
  make_net "$1" "$size"
  start_all "$1" "$size" busy count="$3" timeout_ms=$timeout_ms
  lose "$1" "$size" "$2" 'RING_STATUS_TIMEOUT|RING_STATUS_PEER_LOST' $within
}

# One starts when the one before has only its silence left, so that busy rings don't wait for each other's cores.
in_turn() {
  beside "$@"
  for _ in $(seq 100); do [ -e "$work/$1.cut" ] || sleep 0.1; done
}

number=0
for what in $(cuts "$size"); do
  number=$((number + 1))
  in_turn "large$number" busy_loss "$what" 1048577
  # In a small call ranks depend on few others: with one way cut, some finish it and wait in the next.
  case $what in way:*) in_turn "small$number" busy_loss "$what" 5 ;; esac
done
all_beside

#!/bin/sh
# Ranks 0 and 2 of a ring of four can't reach each other: a message between them is CONNECT_FAILED on both, with the
# address and the reason, and the ring goes on.
. "$(dirname "$0")/hosts.sh"

# unreached NET FROM KIND REASON MOST ARGUMENTS...: packets of one of the two hosts to the other meet a route of this kind.
unreached() {
  net=$1 from=$2 kind=$3 reason=$4 most=$5
  shift 5
  run_cut_off "$net" "$from" "$kind" far "$@"
  for rank in 0 2; do
    told=$(report "$net" "$rank" unsent)
    case $told in
      *"rank 0 can't reach rank 2: 10.0.0.3:5000: $reason"*) ;;
      *) fail "$net" "rank $rank was told: $told" ;;
    esac
    less "${told%% *}" "$most" || fail "$net" "rank $rank was told after ${told%% *} s"
  done
  echo "$net: $told"
}

beside noroute unreached 0 unreachable "No route to host" 1.5
beside prohibited unreached 0 prohibit "Permission denied" 1.5
beside blackhole unreached 0 blackhole "Invalid argument" 1.5
# Of half the timeout.
beside silent unreached 2 blackhole "no answer" 2.5 timeout_ms=4000
beside limited unreached 2 blackhole "no answer" 2.5 connect_timeout_ms=2000
all_beside

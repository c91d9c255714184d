#!/bin/sh
# Ranks 0 and 2 of a ring of four can't reach each other: a split that puts them side by side in a group is
# CONNECT_FAILED on all ranks, in the same words, and the ring goes on.
. "$(dirname "$0")/hosts.sh"

# In the group of ranks 0, 1 and 2 rank 2 dials rank 0.
unreached() {
  net=$1 from=$2 kind=$3 reason=$4 most=$5
  shift 5
  run_cut_off "$net" "$from" "$kind" split "$@"
  first=
  for rank in 0 1 2 3; do
    told=$(report "$net" "$rank" unsent)
    case $told in
      *"split(), call 2: rank 2 can't reach rank 0: 10.0.0.1:5000: $reason"*) ;;
      *) fail "$net" "rank $rank was told: $told" ;;
    esac
    less "${told%% *}" "$most" || fail "$net" "rank $rank was told after ${told%% *} s"
    [ "${first:=${told#* }}" = "${told#* }" ] || fail "$net" "rank $rank was told: $told"
  done
  echo "$net: $told"
}

beside noroute unreached 2 unreachable "No route to host" 1.5
beside silent unreached 0 blackhole "no answer" 2.5 timeout_ms=4000
beside limited unreached 0 blackhole "no answer" 2.5 connect_timeout_ms=2000
all_beside

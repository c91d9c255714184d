#!/bin/sh
# A rank that can't be reached while the ring forms: every rank fails at its connect timeout and names it.
. "$(dirname "$0")/hosts.sh"
timeout_ms=3000

# unformed NET SIZE: all try, and all fail in time; rank 1 is the one that can't be reached.
unformed() {
  start_all "$1" "$2" unformed connect_timeout_ms=$timeout_ms limit_s=20
  finish "$1" "$2"
  for rank in $(seq 0 $(($2 - 1))); do
    said=$(report "$1" "$rank" unformed)
    # Rank 1 itself knows its own address, to which nobody came.
    echo "$said" | grep -Eq 'RING_STATUS_CONNECT_FAILED .*(rank 1\b|10\.0\.0\.2:5000)' ||
      fail "$1" "rank $rank doesn't name rank 1"
    # The deadline of a rank that started earlier comes earlier, and it tells the others.
    less "${said%% *}" 4 && less 2 "${said%% *}" || fail "$1" "rank $rank took ${said%% *} s"
  done
  report "$1" 0 unformed | grep -q 'rank 1 .*10\.0\.0\.2:5000' || fail "$1" "rank 0 doesn't say what it tried"
}

# Packets to it, and it alone, get lost on rank 0's host.
no_route() {
  make_net "$1" "$2"
  cut_way "$1" 0 1
  unformed "$1" "$2"
}

# They get lost on the way back.
no_return() {
  make_net "$1" "$2"
  cut_way "$1" 1 0
  unformed "$1" "$2"
}

# Nothing at all gets to its host.
no_host() {
  make_net "$1" "$2"
  cut_host "$1" 1
  unformed "$1" "$2"
}

for size in 2 3; do
  beside "noroute$size" no_route $size
  beside "noreturn$size" no_return $size
  beside "nohost$size" no_host $size
done
all_beside

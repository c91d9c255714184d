#!/bin/sh
# Slow, not dead: whoever makes progress, or only computes, is waited for.
. "$(dirname "$0")/hosts.sh"

# A call over a slow link takes much longer than the timeout: each rank sends 20 MiB in it.
slow_link() {
  make_net "$1" "$2"
  for host in $(seq 0 $(($2 - 1))); do slow_down "$1" "$host" "$4"; done
  start_all "$1" "$2" sums count="$3" rounds=1 timeout_ms=3000 limit_s=60
  finish "$1" "$2"
  took=$(report "$1" 0 "done")
  less 6 "$took" || fail "$1" "the link isn't slow: it took $took s"
}

# Rank 1 computes for longer than the control links bear silence, with the windows of its data links full.
computes() {
  make_net "$1" "$2"
  start_all "$1" "$2" late count=16777217 pause_ms=27000 timeout_ms=60000 limit_s=90
  finish "$1" "$2"
}

beside slow2 slow_link 2 5242880 20mbit
beside slow3 slow_link 3 3932160 20mbit
beside computes2 computes 2
beside computes3 computes 3
all_beside

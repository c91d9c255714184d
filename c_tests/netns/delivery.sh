#!/bin/sh
# What successful calls sent is delivered, though the rank that sent it has destroyed its group, and its goodbye may
# come before the data.
. "$(dirname "$0")/hosts.sh"

# At 8 Mbit/s the 400 KB need 0.4 s of the second for which destroy waits.
last() {
  make_net "$1" "$2"
  slow_down "$1" 0 8mbit
  start_all "$1" "$2" "$3" count=100003
  finish "$1" "$2"
  sent=$(report "$1" 0 "done")
  got=$(report "$1" 1 "done")
  echo "$1: sent after $sent s, received after $got s"
}

beside message2 last 2 last_message
beside gather2 last 2 last_gather
beside gather3 last 3 last_gather
all_beside

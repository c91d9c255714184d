#!/bin/sh
# What successful calls sent is delivered, though the rank that sent it has destroyed its group, and its goodbye may
# come before the data.
. "$(dirname "$0")/hosts.sh"

# At 8 Mbit/s the 400 KB need 0.4 s of the second for which destroy waits.
last() {
  net=$1 size=$2 behaviour=$3
  shift 3
  make_net "$net" "$size"
  slow_down "$net" 0 8mbit
  start_all "$net" "$size" "$behaviour" count=100003 "$@"
  finish "$net" "$size"
  echo "$net: sent after $(report "$net" 0 "done") s, received after $(report "$net" 1 "done") s"
}

# What rank 0 never receives is little, or more than the two hosts keep: then its sender would see a
# connection that is closed with unread input fail, and the group with it.
beside message2 last 2 last_message unread=1000
beside message3 last 3 last_message unread=1000
beside unread2 last 2 last_message unread=8000000
beside unread3 last 3 last_message unread=8000000
beside gather2 last 2 last_gather
beside gather3 last 3 last_gather
all_beside

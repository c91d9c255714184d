#!/bin/sh
# Ranks of several hosts that meet at one address, and learn there where the others are.
. "$(dirname "$0")/hosts.sh"
[ -e /proc/net/if_inet6 ] || skip "this kernel has no IPv6"

# put NET HOST RANK SIZE RENDEZVOUS [BEHAVIOUR [NAME=VALUE...]]: a rank on a host.
put() {
  net_=$1 host_=$2 rank_=$3 size_=$4 at_=$5
  shift 5
  [ $# -gt 0 ] || set -- sums count=100003
  behaviour_=$1
  shift
  ip netns exec "$run-$net_-$host_" "$program" "$behaviour_" "$rank_" "$at_" "size=$size_" limit_s=30 "$@" \
    >"$work/$net_.$rank_" 2>&1 &
  echo $! >"$work/$net_.$rank_.pid"
}

# NET SIZE RENDEZVOUS: a rank on each host.
each_host() {
  make_net "$1" "$2"
  for host in $(seq 0 $(($2 - 1))); do put "$1" "$host" "$host" "$2" "$3"; done
  finish "$1" "$2"
}

# A scope is the name of an interface of the rank that reads it, and its number that host's alone.
scopes() {
  make_net "$1" 3
  ip -n "$run-$1-hub" link add br1 type bridge mcast_snooping 0
  ip -n "$run-$1-hub" link set br1 up
  plug "$1" 0 br1 veth-a 10.9.0.1/24
  ip -n "$run-$1-0" addr add fe80::a/64 dev veth-a nodad
  for host in 1 2; do
    for further in $(seq "$host"); do plug "$1" "$host" br1 "other$further" "10.9.$further.$host/24"; done
    plug "$1" "$host" br1 veth-b "10.9.0.1$host/24"
    ip -n "$run-$1-$host" addr add "fe80::b$host/64" dev veth-b nodad
  done
  put "$1" 0 0 3 '[fe80::a%veth-a]:5000'
  for host in 1 2; do put "$1" "$host" "$host" 3 '[fe80::a%veth-b]:5000'; done
  finish "$1" 3
}

# Two ranks share rank 0's host, whose own name is a loopback address to itself: they come to rank 0 by an address that
# is of no use to the others.
own_name() {
  make_net "$1" 2
  echo "127.0.1.1 zero.test" | hosts_file "$1" 0
  echo "10.0.0.1 zero.test" | hosts_file "$1" 1
  for rank in 0 1 3; do put "$1" 0 $rank 5 zero.test:5000; done
  for rank in 2 4; do put "$1" 1 $rank 5 zero.test:5000; done
  finish "$1" 5
}

# Each rank has another name for the place.
own_addresses() {
  make_net "$1" 2
  put "$1" 0 0 4 '[::]:5000'
  put "$1" 0 1 4 127.0.0.1:5000
  put "$1" 1 2 4 '[fd00::1]:5000'
  put "$1" 0 3 4 10.0.0.1:5000
  finish "$1" 4
}

# Host 1 and host 2 share a network with host 0 each, but none with each other: what they are told of the ranks there is
# the address by which they came. No two ranks beside each other in the ring are on hosts 1 and 2.
two_networks() {
  make_net "$1" 2
  ip -n "$run-$1-hub" link add br1 type bridge
  ip -n "$run-$1-hub" link set br1 up
  make_host "$1" 2
  plug "$1" 0 br1 eth1 10.1.0.1/24
  plug "$1" 2 br1 eth1 10.1.0.3/24
  put "$1" 0 0 4 0.0.0.0:5000
  put "$1" 1 1 4 10.0.0.1:5000
  put "$1" 0 2 4 localhost:5000
  put "$1" 2 3 4 10.1.0.1:5000
  finish "$1" 4
}

# All ranks on one host listen on loopback alone when rank 0 does.
stays_inside() {
  make_net "$1" 1
  for rank in 0 1; do put "$1" 0 $rank 3 "$2" unformed connect_timeout_ms=2500; done
  for _ in $(seq 100); do
    listeners=$(ip netns exec "$run-$1-0" sh -c 'cat /proc/net/tcp /proc/net/tcp6' | awk '$4 == "0A" { print $2 }')
    [ "$(echo "$listeners" | wc -w)" -lt 2 ] || break
    sleep 0.02
  done
  # 127.0.0.1 and ::1, in the kernel's order of bytes.
  for listener in $listeners; do
    case $listener in
      0100007F:* | 00000000000000000000000001000000:*) ;;
      *) fail "$1" "somebody listens at $listener" ;;
    esac
  done
  [ "$(echo "$listeners" | wc -w)" -ge 2 ] || fail "$1" "rank 1 listens nowhere"
  finish "$1" 2
}

# unmet NET SIZE MISSING: all fail in time, and name the rank whose host can't be reached.
unmet() {
  make_net "$1" "$2"
  cut_host "$1" "$3"
  for host in $(seq 0 $(($2 - 1))); do
    put "$1" "$host" "$host" "$2" 10.0.0.1:5000 unformed connect_timeout_ms=3000
  done
  finish "$1" "$2"
  for rank in $(seq 0 $(($2 - 1))); do
    [ "$rank" -ne "$3" ] || continue
    said=$(report "$1" "$rank" unformed)
    echo "$said" | grep -Eq "RING_STATUS_CONNECT_FAILED .*ranks? ([0-9, ]*, )?$3\b" || fail "$1" "rank $rank doesn't name rank $3"
    less "${said%% *}" 4 && less 2 "${said%% *}" || fail "$1" "rank $rank took ${said%% *} s"
  done
}

beside v4 each_host 3 10.0.0.1:5000
beside v6 each_host 3 '[fd00::1]:5000'
beside local each_host 3 '[fe80::1%eth0]:5000'
beside scopes scopes
beside ownname own_name
beside ownaddr own_addresses
beside twonets two_networks
beside inside stays_inside 127.0.0.1:5000
beside inside6 stays_inside localhost:5000
beside cut0 unmet 3 0
beside cut2 unmet 3 2
all_beside

#!/bin/sh
# Addresses of every kind between hosts: IPv6, link-local ones, names with several addresses, two links.
. "$(dirname "$0")/hosts.sh"
[ -e /proc/net/if_inet6 ] || skip "this kernel has no IPv6"

# NET TEXT [TEXT]: a ring of two; the hostfile's text, alike on both ranks or each its own.
pair() {
  start "$1" 0 sums "$2" limit_s=30 count=100003
  start "$1" 1 sums "${3:-$2}" limit_s=30 count=100003
  finish "$1" 2
}

# On one host.
loopback() {
  make_net "$1" 1
  start "$1" 0 sums '["[::1]:5000","[::1]:5001"]' limit_s=20
  ip netns exec "$run-$1-0" "$program" sums 1 '["[::1]:5000","[::1]:5001"]' limit_s=20 >"$work/$1.1" 2>&1 ||
    fail "$1" "rank 1 ended with exit status $?"
  finish "$1" 1
}

between_hosts() {
  make_net "$1" 2
  pair "$@"
}

# A scope is the name of an interface of the rank that reads it: here they differ.
scopes() {
  make_net "$1" 2
  plug "$1" 1 br0 veth-b 10.9.0.2/24
  ip -n "$run-$1-1" addr add fe80::b/64 dev veth-b nodad
  pair "$1" '["[fe80::1%eth0]:5000","[fe80::b%eth0]:5000"]' '["[fe80::1%veth-b]:5000","[fe80::b%veth-b]:5000"]'
}

# Rank 1 has a name with an IPv4 and an IPv6 address, and listens on one of them.
name() {
  make_net "$1" 2
  printf '%s peer.test\n' 10.0.0.2 fd00::2 | hosts_file "$1" 0
  pair "$1" '["10.0.0.1:5000","peer.test:5000"]' "[\"10.0.0.1:5000\",\"$2:5000\"]"
}

# Two more addresses of the name are no use: on one nobody listens, of the other nothing is heard.
dead_addresses() {
  make_net "$1" 2
  printf '%s peer.test\n' "$2" "$3" 10.0.0.2 fd00::2 | hosts_file "$1" 0
  pair "$1" '["10.0.0.1:5000","peer.test:5000"]' '["10.0.0.1:5000","10.0.0.2:5000"]'
}

# A name in the rank's own entry that also has an address of no host here: it listens on the one that is its own.
own_name() {
  make_net "$1" 2
  for host in 0 1; do
    printf '%s\n' "10.0.0.1 zero.test" "10.0.0.77 one.test" "fd00::2 one.test" | hosts_file "$1" $host
  done
  pair "$1" '["zero.test:5000","one.test:5000"]'
}

# Two hosts on two networks, each with a bridge of its own.
make_two_links() {
  make_net "$1" 2
  ip -n "$run-$1-hub" link add br1 type bridge
  ip -n "$run-$1-hub" link set br1 up
  plug "$1" 0 br1 eth1 10.1.0.1/24
  plug "$1" 1 br1 eth1 10.1.0.2/24
}
two='[["10.0.0.1:5000","10.1.0.1:5000"],["10.0.0.2:5000","10.1.0.2:5000"]]'

# Both links carry their part: of 3 times 4 MB, at least 4 MB each.
two_links() {
  make_two_links "$1"
  start "$1" 0 sums "$two" limit_s=20 count=1000003
  start "$1" 1 sums "$two" limit_s=20 count=1000003
  finish "$1" 2
  for link in eth0 eth1; do
    sent=$(ip netns exec "$run-$1-0" cat "/sys/class/net/$link/statistics/tx_bytes")
    [ "$sent" -gt 4000000 ] || fail "$1" "only $sent bytes went over $link"
  done
}

# Every lane needs its address: one that is dead keeps the ring from forming, and is named.
one_dead() {
  make_two_links "$1"
  cut_host "$1" 1 eth1
  start "$1" 0 unformed "$two" limit_s=20 connect_timeout_ms=3000
  start "$1" 1 unformed "$two" limit_s=20 connect_timeout_ms=3000
  finish "$1" 2
  for rank in 0 1; do
    report "$1" $rank unformed | grep -q 'RING_STATUS_CONNECT_FAILED .*10\.1\.0\.2:5000' ||
      fail "$1" "rank $rank doesn't name the dead address"
    took=$(report "$1" $rank unformed | cut -d ' ' -f 1)
    # The deadline of a rank that started earlier comes earlier, and it tells the other.
    less "$took" 4 && less 2 "$took" || fail "$1" "rank $rank took $took s"
  done
}

# An IPv6 address without brackets is refused, with the right form in the text.
no_brackets() {
  make_net "$1" 1
  start "$1" 0 unformed '["fd00::1:5000","fd00::2:5000"]'
  finish "$1" 1
  report "$1" 0 unformed | grep -q '^0\.0.*RING_STATUS_INVALID_CONFIG .*\[fd00::1\]:5000' ||
    fail "$1" "no hint at the right form"
}

beside loopback loopback
beside ula between_hosts '["[fd00::1]:5000","[fd00::2]:5000"]'
beside local between_hosts '["[fe80::1%eth0]:5000","[fe80::2%eth0]:5000"]'
beside wildcard between_hosts '["[::]:5000","10.0.0.2:5000"]' '["[fd00::1]:5000","0.0.0.0:5000"]'
beside scopes scopes
beside name4 name 10.0.0.2
beside name6 name '[fd00::2]'
beside dead dead_addresses 10.0.0.88 fd00::1
beside own own_name
beside two two_links
beside onedead one_dead
beside brackets no_brackets
all_beside

# Networks of hosts whose every link is limited, for run.sh: `switch`, `cables` and `switches` each make one.
. "$(dirname "$0")/../../tools/common/namespaces.sh"

RATE_MBIT=1000
# A packet that the kernel has not yet cut into segments counts as up to 46 of them, 69 KB with their headers: what
# exceeds the burst is cut in tbf, at the cost of CPU that a network card would not take. The burst is also what may be
# caught up after a late timer, 2 ms here; as little as that is lost in measurements of half a second.
: "${BURST:=256kb}"
# What a port keeps before it drops.
: "${LATENCY:=10ms}"
# A full Ethernet frame as tbf counts it, and the payload in it: 1,500 bytes less IPv4's header of 20 and TCP's of 32
# (with timestamps), and 14 bytes of Ethernet's own. Preamble, checksum and gap don't count.
FRAME_BYTES=1514
PAYLOAD_BYTES=1448
limit_mbit=$((RATE_MBIT * PAYLOAD_BYTES / FRAME_BYTES))

# limit NET NAMESPACE INTERFACE: what leaves there is limited; hosts' interfaces are remembered for `wire`.
limit() {
  tc -n "$run-$1-$2" qdisc add dev "$3" root tbf rate "${RATE_MBIT}mbit" burst "$BURST" latency "$LATENCY"
  echo "$run-$1-$2 $3" >>"$work/$1.links"
}

# limit_port NET HOST INTERFACE: the host's link to a switch, both ways.
limit_port() {
  limit "$1" "$2" "$3"
  limit "$1" hub "$3-$2"
}

# use_congestion NET SIZE NAME: the congestion control of all connections between the hosts. By route: sysctl offers
# a network namespace only what every user may choose.
use_congestion() {
  for host in $(seq 0 $(($2 - 1))); do
    ip -n "$run-$1-$host" -4 route show | while read -r route; do
      # The route's words.
      ip -n "$run-$1-$host" route replace $route congctl "$3"
    done
  done
}

# switch NET SIZE: one switch, a full-duplex link to each host.
switch() {
  make_net "$1" "$2"
  for host in $(seq 0 $(($2 - 1))); do limit_port "$1" "$host" eth0; done
}

# switches NET SIZE: two of them, and two links to each host.
switches() {
  switch "$1" "$2"
  ip -n "$run-$1-hub" link add br1 type bridge mcast_snooping 0
  ip -n "$run-$1-hub" link set br1 up
  for host in $(seq 0 $(($2 - 1))); do
    plug "$1" "$host" br1 eth1 "10.1.0.$((host + 1))/24"
    limit_port "$1" "$host" eth1
  done
}

# cables NET SIZE: no switch; a cable from the right port of each host to the left port of the next. Cable C is the
# network 10.0.C.0, in which 1 is its left end and 2 its right one.
cables() {
  for host in $(seq 0 $(($2 - 1))); do make_host "$1" "$host"; done
  for host in $(seq 0 $(($2 - 1))); do
    next=$(((host + 1) % $2))
    ip -n "$run-$1-$host" link add right type veth peer name left netns "$run-$1-$next"
    ip -n "$run-$1-$host" addr add "10.0.$host.1/24" dev right
    ip -n "$run-$1-$next" addr add "10.0.$host.2/24" dev left
    ip -n "$run-$1-$host" link set right up
    ip -n "$run-$1-$next" link set left up
    limit "$1" "$host" right
    limit "$1" "$next" left
  done
}

# switch_peers, switches_peers, cables_peers HOST SIZE: addresses of the host's right neighbour.
switch_peers() { echo "10.0.0.$((($1 + 1) % $2 + 1))"; }
switches_peers() { echo "10.0.0.$((($1 + 1) % $2 + 1)) 10.1.0.$((($1 + 1) % $2 + 1))"; }
cables_peers() { echo "10.0.$1.2"; }

# switch_hosts, switches_hosts, cables_hosts HOST SIZE: the text of the host's hostfile.
switch_hosts() { seq -s , 1 "$2" | sed 's/[0-9][0-9]*/["10.0.0.&:5000"]/g; s/.*/[&]/'; }
switches_hosts() { seq -s , 1 "$2" | sed 's/[0-9][0-9]*/["10.0.0.&:5000","10.1.0.&:5000"]/g; s/.*/[&]/'; }
# A rank listens at both of its ports, and its right neighbour has the address on their cable; the rest isn't used.
cables_hosts() {
  for entry in $(seq 0 $(($2 - 1))); do
    case $entry in
      "$1") echo '["0.0.0.0:5000"]' ;;
      $((($1 + 1) % $2))) echo "[\"10.0.$1.2:5000\"]" ;;
      *) echo '["10.255.0.1:0"]' ;;
    esac
  done | paste -s -d , | sed 's/.*/[&]/'
}

# wire NET: "INTERFACE BYTES DROPPED" of each limited interface, as its tbf has counted since the last `wire_reset`.
wire() {
  while read -r namespace interface; do
    tc -n "$namespace" -s qdisc show dev "$interface" |
      awk -v name="${namespace##*-}:$interface" '/Sent/ { sub(",", "", $7); print name, $2, $7 }'
  done <"$work/$1.links"
}

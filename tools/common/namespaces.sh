# Hosts on one machine: network namespaces on a bridge that has a namespace of its own, so that nothing of
# this machine's network is touched and addresses may repeat. Sourced by scripts that test or measure between hosts;
# everything is gone when the script ends. Where hosts can't be made, the script's own `skip TEXT` is called.
#
# Nets exist side by side: each function's first argument names one. Host H of a net has the addresses 10.0.0.(H+1),
# fd00::(H+1) and fe80::(H+1) at eth0. What a script keeps for itself goes to the folder $work.
run=ring-$$
PATH=$PATH:/usr/sbin:/sbin

[ "$(uname -s)" = Linux ] || skip "there are network namespaces on Linux only"
[ "$(id -u)" -eq 0 ] || skip "only root may make network namespaces"
for command in ip tc; do
  command -v $command >/dev/null || skip "the command $command is missing (iproute2 has it)"
done

work=$(mktemp -d)
# Processes of the script that end with it, also when it is ended early.
background=
clean_up() {
  # Whoever ends this script may signal it twice, as timeout does.
  trap '' INT TERM HUP
  for process in $background; do kill "$process" 2>/dev/null || true; done
  for namespace in $(ip netns list | cut -d ' ' -f 1 | grep "^$run-"); do
    # Whatever runs in there is this script's.
    for pid in $(ip netns pids "$namespace"); do kill -KILL "$pid" 2>/dev/null || true; done
    ip netns del "$namespace"
    rm -rf "/etc/netns/$namespace"
  done
  rmdir /etc/netns 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

ip netns add "$run-probe" 2>/dev/null || skip "network namespaces may not be made here"
ip -n "$run-probe" link add probe type bridge 2>/dev/null || skip "no bridge can be made here"

# make_host NET HOST: a host without any link.
make_host() {
  ip netns add "$run-$1-$2"
  ip -n "$run-$1-$2" link set lo up
}

# make_net NET SIZE: hosts 0 to SIZE-1 on one bridge.
make_net() {
  ip netns add "$run-$1-hub"
  ip -n "$run-$1-hub" link add br0 type bridge mcast_snooping 0
  ip -n "$run-$1-hub" link set br0 up
  for host in $(seq 0 $(($2 - 1))); do
    make_host "$1" "$host"
    plug "$1" "$host" br0 eth0 "10.0.0.$((host + 1))/24"
    # Without duplicate address detection an address is there at once.
    ip -n "$run-$1-$host" addr add "fd00::$((host + 1))/64" dev eth0 nodad
    ip -n "$run-$1-$host" addr add "fe80::$((host + 1))/64" dev eth0 nodad
  done
}

# plug NET HOST BRIDGE INTERFACE ADDRESS: a link of its own from a host to a bridge, at port INTERFACE-HOST.
plug() {
  ip -n "$run-$1-hub" link add "$4-$2" type veth peer name "$4" netns "$run-$1-$2"
  ip -n "$run-$1-$2" link set "$4" addrgenmode none
  ip -n "$run-$1-$2" addr add "$5" dev "$4"
  ip -n "$run-$1-$2" link set "$4" up
  ip -n "$run-$1-hub" link set "$4-$2" master "$3"
  ip -n "$run-$1-hub" link set "$4-$2" up
}

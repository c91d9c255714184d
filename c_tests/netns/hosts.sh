# Hosts for one test: network namespaces on a bridge that has a namespace of its own, so that nothing of
# this machine's network is touched and addresses may repeat. Sourced by the scripts beside it with the
# rank program as the only argument; everything is gone when the script ends.
#
# Tests run side by side within a script, too: each has a net, named by the first argument of the
# functions. Host H of a net has the addresses 10.0.0.(H+1), fd00::(H+1) and fe80::(H+1) at eth0.
set -eu
program=$1
run=ring-$$
PATH=$PATH:/usr/sbin:/sbin

# Where hosts can't be made there is nothing to test, unless whoever runs the tests says that they can be.
skip() {
  if [ "${RING_TESTS_REQUIRE_NETNS:-0}" = 1 ]; then
    echo "$1, but RING_TESTS_REQUIRE_NETNS is 1"
    exit 1
  fi
  echo "skipped: $1"
  exit 77
}

[ "$(uname -s)" = Linux ] || skip "there are network namespaces on Linux only"
[ "$(id -u)" -eq 0 ] || skip "only root may make network namespaces"
for command in ip tc; do
  command -v $command >/dev/null || skip "the command $command is missing (iproute2 has it)"
done

work=$(mktemp -d)
tests=
clean_up() {
  # Those that still run, if this script is ended early.
  for test_ in $tests; do kill "$test_" 2>/dev/null || true; done
  for namespace in $(ip netns list | cut -d ' ' -f 1 | grep "^$run-"); do
    # Whatever runs in there is a rank of this script.
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

# make_net NET SIZE: hosts 0 to SIZE-1 on one bridge.
make_net() {
  ip netns add "$run-$1-hub"
  ip -n "$run-$1-hub" link add br0 type bridge mcast_snooping 0
  ip -n "$run-$1-hub" link set br0 up
  for host in $(seq 0 $(($2 - 1))); do
    ip netns add "$run-$1-$host"
    ip -n "$run-$1-$host" link set lo up
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

# hosts_file NET HOST: what stands in the host's /etc/hosts, from the standard input. Another script's
# end may take the empty /etc/netns away in between.
hosts_file() {
  mkdir -p "/etc/netns/$run-$1-$2" || mkdir -p "/etc/netns/$run-$1-$2"
  cat >"/etc/netns/$run-$1-$2/hosts"
}

# cut_host NET HOST [INTERFACE]: from now on nothing goes to the host or comes from it, in silence.
cut_host() { ip -n "$run-$1-hub" link set "${3:-eth0}-$2" down; }

# cut_way NET FROM TO: the packets of one host to another vanish, in silence; the other way is left.
cut_way() { ip -n "$run-$1-$2" route add blackhole "10.0.0.$(($3 + 1))"; }

# slow_down NET HOST RATE: what the host sends leaves at this rate only.
slow_down() { tc -n "$run-$1-$2" qdisc add dev eth0 root tbf rate "$3" burst 32kb latency 200ms; }

# hosts SIZE: the text of the hostfile.
hosts() { seq -s , 1 "$1" | sed 's/[0-9][0-9]*/["10.0.0.&:5000"]/g; s/.*/[&]/'; }

# start NET HOST BEHAVIOUR HOSTS [NAME=VALUE...]: the rank with the host's number.
start() {
  net_=$1 host_=$2 behaviour_=$3 hosts_=$4
  shift 4
  ip netns exec "$run-$net_-$host_" "$program" "$behaviour_" "$host_" "$hosts_" "$@" >"$work/$net_.$host_" 2>&1 &
  echo $! >"$work/$net_.$host_.pid"
}

# start_all NET SIZE BEHAVIOUR [NAME=VALUE...]: a rank on each host.
start_all() {
  net__=$1 size__=$2 behaviour__=$3
  shift 3
  for rank_ in $(seq 0 $((size__ - 1))); do
    start "$net__" "$rank_" "$behaviour__" "$(hosts "$size__")" "$@"
  done
}

# fail NET TEXT: ends the test, with what its ranks have said.
fail() {
  echo "$1: $2"
  for said in "$work/$1".[0-9]; do sed "s/^/    rank ${said##*.}: /" "$said"; done
  exit 1
}

# until_ready NET SIZE: all ranks are where the fault may come.
until_ready() {
  for _ in $(seq 300); do
    ready=$(cat "$work/$1".[0-9] | grep -c '^ready' || true)
    [ "$ready" -lt "$2" ] || return 0
    sleep 0.1
  done
  fail "$1" "only $ready of $2 ranks got ready"
}

# finish NET SIZE: every rank ends, and has found everything as it must be.
finish() {
  for rank_ in $(seq 0 $(($2 - 1))); do
    wait "$(cat "$work/$1.$rank_.pid")" || fail "$1" "rank $rank_ ended with exit status $?"
  done
}

# report NET RANK WORD: the rest of the rank's report that begins with the word.
report() { sed -n "s/^$3 //p" "$work/$1.$2"; }

# less A B: whether one decimal number is the smaller.
less() { awk "BEGIN { exit !($1 < $2) }"; }

now() { "$program" now; }

# Tests of one script are functions that run side by side: `beside NAME FUNCTION ARGUMENTS...` starts one, with
# the name as its net, and `all_beside` waits for all and fails if one did.
beside() {
  name_=$1 function_=$2
  shift 2
  ("$function_" "$name_" "$@") &
  tests="$tests $!"
}
all_beside() {
  failed=0
  for test_ in $tests; do wait "$test_" || failed=1; done
  tests=
  exit $failed
}

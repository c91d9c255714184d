# Hosts for one test, and the ranks on them. Sourced by the scripts beside it with the rank program as the only
# argument. Tests run side by side within a script, too, each in a net of its own.
set -eu
program=$1

common=$(dirname "$0")/../../tools/common
. "$common/test_namespaces.sh"

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

# run_cut_off NET FROM KIND BEHAVIOUR ARGUMENTS...: four ranks, of which 0 or 2 (FROM) has a route of this kind to the other.
run_cut_off() {
  cut_=$1
  make_net "$1" 4
  ip -n "$run-$1-$2" route add "$3" "10.0.0.$((3 - $2))"
  shift 3
  start_all "$cut_" 4 "$@"
  finish "$cut_" 4
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
  background="$background $!"
}
all_beside() {
  failed=0
  for test_ in $background; do wait "$test_" || failed=1; done
  background=
  exit $failed
}

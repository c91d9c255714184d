#!/bin/sh
# How much of a network's links a ring of four hosts uses. `run.sh BUILD [NETWORK...]`: BUILD is where ring-perf and
# links-stream are, NETWORK is switch, cables or switches. README.md beside this says what the columns mean.
#
# From the environment: CONGESTION lists congestion controls (the machine's, and cubic), SIZES the arrays in MiB
# (1 16 64), MEASURE_S how long each row measures (3), LATENCY what a port keeps (10ms).
set -eu
build=$1
shift
skip() {
  echo "bench-links: $1" >&2
  exit 1
}
. "$(dirname "$0")/networks.sh"

: "${SIZES:=1 16 64}"
: "${MEASURE_S:=3}"
: "${CONGESTION:=$(echo "$(sysctl -n net.ipv4.tcp_congestion_control) cubic" | tr ' ' '\n' | sort -u | paste -s -d ' ')}"
SIZE=4
WARMUP=2

# on NET HOST COMMAND...: runs in the background; its output goes to $work/NET.HOST.
on() {
  net_=$1 host_=$2
  shift 2
  ip netns exec "$run-$net_-$host_" "$@" >"$work/$net_.$host_" 2>"$work/$net_.$host_.err" &
  echo $! >"$work/$net_.$host_.pid"
  background="$background $!"
}

# finish NET SIZE: all of them end well.
finish() {
  for host in $(seq 0 $(($2 - 1))); do
    wait "$(cat "$work/$1.$host.pid")" || { cat "$work/$1".?.err >&2; exit 1; }
  done
  background=
}

row() { printf '%-9s %-6s %-21s %8s %9s %8s %8s %6s %13s %8s\n' "$@"; }
percent() { awk "BEGIN { printf \"%.1f %%\", 100 * $1 / $2 }"; }

# raw NET SIZE NAME WAYS LIMIT ADDRESSES...: each argument is what the host of that number dials. Sets $raw, the mean
# of what the hosts that are sent to receive.
raw() {
  net=$1 size=$2 name=$3 ways=$4 limit=$5
  shift 5
  for host in $(seq 0 $((size - 1))); do
    # Addresses are words.
    on "$net" "$host" "$build/links-stream" "$MEASURE_S" "$ways" $1
    shift
  done
  finish "$net" "$size"
  raw=$(cat "$work/$net".[0-9] | awk '$1 > 0 { sum += $1; n++ } END { printf "%.0f", sum / n }')
  row "$network" "$congestion" "$name" - "$raw" "$(percent "$raw" "$limit")" - - - -
}

# ring NET MIB LIMIT: all_reduce of float32.
ring() {
  net=$1 mib=$2 limit=$3
  iterations=$((MEASURE_S * limit * 1000000 / 8 / (2 * (SIZE - 1) * mib * 1048576 / SIZE) + 1))
  wire "$net" >"$work/before"
  for host in $(seq 0 $((SIZE - 1))); do
    "${network}_hosts" "$host" $SIZE >"$work/hosts.$host"
    on "$net" "$host" env RING_RANK="$host" RING_HOSTFILE="$work/hosts.$host" RING_JOB_ID=links \
      "$build/ring-perf" -b "${mib}M" -e "${mib}M" -n $iterations -w $WARMUP --in-place --json
  done
  finish "$net" $SIZE
  wire "$net" >"$work/after"
  us=$(sed -n 's/.*"time_us": \([0-9.]*\).*/\1/p' "$work/$net.0")
  busbw=$(awk "BEGIN { printf \"%.0f\", 2 * ($SIZE - 1) / $SIZE * $mib * 1048576 * 8 / $us }")
  # ring-perf checks the numbers of one call more.
  paste -d ' ' "$work/before" "$work/after" |
    awk -v us="$us" -v calls=$((iterations + WARMUP + 1)) '
      { mbit = ($5 - $2) * 8 / calls / us; dropped += $6 - $3 }
      NR == 1 || mbit < least { least = mbit }
      mbit > most { most = mbit }
      END { printf "%.0f to %.0f\n%d\n", least, most, dropped }' >"$work/links"
  [ "$network" != switch ] || echo "$busbw" >"$work/one.$congestion.$mib"
  one=-
  [ ! -e "$work/one.$congestion.$mib" ] || one=$(awk "BEGIN { printf \"%.2f\", $busbw / $(cat "$work/one.$congestion.$mib") }")
  row "$network" "$congestion" "all_reduce $mib MiB" "$(awk "BEGIN { printf \"%.1f\", $us / 1000 }")" "$busbw" \
    "$(percent "$busbw" "$limit")" "$(percent "$busbw" "$raw")" "$one" "$(head -n 1 "$work/links")" "$(tail -n 1 "$work/links")"
}

# measure NETWORK CONGESTION LINKS: LINKS is how many a host has to send on.
measure() {
  network=$1 congestion=$2 limit=$((limit_mbit * $3))
  net=$1-$2
  "$1" "$net" $SIZE
  use_congestion "$net" $SIZE "$2"
  set --
  for host in $(seq 0 $((SIZE - 1))); do set -- "$@" "$("${network}_peers" "$host" $SIZE)"; done
  if [ "$network" = switch ]; then
    raw "$net" 2 "raw, one way" one "$limit" "$1" ""
    raw "$net" 2 "raw, both ways" both "$limit" "$1" ""
  fi
  raw "$net" $SIZE "raw, ring, both ways" both "$limit" "$@"
  for mib in $SIZES; do ring "$net" "$mib" "$limit"; done
}

echo "# $SIZE hosts, links of $RATE_MBIT Mbit/s each way; payload limit of a link $limit_mbit Mbit/s"
row network tcp what "time ms" "bus Mb/s" "of limit" "of raw" "x one" "link Mb/s" dropped
for name in ${*:-switch cables switches}; do
  for control in $CONGESTION; do
    case $name in
      switch) measure switch "$control" 1 ;;
      cables) measure cables "$control" 2 ;;
      switches) measure switches "$control" 2 ;;
      *) skip "no network is called $name" ;;
    esac
  done
done

#!/bin/sh
# readme-test.sh TOOLS: the program in README is the example, and the example runs as four ranks.
set -eu
tools=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk '/^```c$/ {inside = 1; next} /^```$/ {if (inside) exit} inside' "$root/README.md" >"$work/readme.c"
cmp "$work/readme.c" "$root/examples/c/all_reduce.c" || { echo "README's program is not examples/c/all_reduce.c"; exit 1; }

port=$((9000 + $$ % 900))
echo "[[\"127.0.0.1:$port\"], [\"127.0.0.1:$((port + 1))\"], [\"127.0.0.1:$((port + 2))\"], [\"127.0.0.1:$((port + 3))\"]]" >"$work/hosts.json"
export RING_HOSTFILE="$work/hosts.json" RING_CONNECT_TIMEOUT_MS=20000
for rank in 0 1 2 3; do
  RING_RANK=$rank "$tools/all_reduce" >"$work/out.$rank" 2>&1 &
done
wait
for rank in 0 1 2 3; do
  grep -q "^rank $rank of 4: 8 12 16 20$" "$work/out.$rank" || { echo "rank $rank said:"; cat "$work/out.$rank"; exit 1; }
done

# ring-perf computes right values itself, for every type.
for type in bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 bfloat16 complex64; do
  "$tools/ring-perf" --ranks 3 -b 1K -e 128K -f 128 -n 2 -w 0 -d $type -o max >"$work/perf" || { cat "$work/perf"; exit 1; }
done
"$tools/ring-perf" --ranks 4 -b 8 -e 1M -f 64 -n 2 -d float16 -o mean --json >"$work/perf.json"
if command -v python3 >/dev/null 2>&1; then
  python3 -m json.tool "$work/perf.json" >/dev/null
fi
echo "README's program and ring-perf are right"

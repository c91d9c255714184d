#!/bin/sh
# The smallest program and ring-perf as ranks of a ring that the environment describes. Arguments: the two
# programs.
set -eu
all_reduce=$1
perf=$2
. "$(dirname "$0")/../ring_of_three.sh"

ring_of_three "$all_reduce"
expect_sums "4.5 7.5 10.5 13.5"
ring_of_three "$perf" -b 8 -e 64K -f 64 -n 2 --connections 2
grep -q "connections: 2" "$work/0" && grep -q "values : 0 OK" "$work/0" || { cat "$work/0"; exit 1; }
[ ! -s "$work/1" ] || { cat "$work/1"; exit 1; }

#!/bin/sh
# Builds the program that times Open MPI's collectives, runs it beside libring and prints a table: `bench.sh [options of
# bench.py]`. CONGESTION is the congestion control, cubic unless set (the usual default of Linux).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
perf=$root/tools/ring-perf
[ -x "$root/build/tools/ring-perf" ] || { echo "bench.sh: run make tools first, or make bench-collectives" >&2; exit 1; }
build=${COLLECTIVES_BUILD:-$root/build/collectives}
mkdir -p "$build"
mpicc.openmpi -std=c11 -O2 -D_GNU_SOURCE -Wall -Wextra -I"$perf" -o "$build/openmpi" "$here/openmpi.c" "$perf/timing.c" "$perf/parts.c"
COLLECTIVES_BUILD=$build exec sh "$root/benches/peers/netns.sh" "${CONGESTION:-cubic}" python3 "$here/bench.py" "$@"

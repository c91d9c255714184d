#!/bin/sh
# Builds the peers, runs them and libring in interleaved rounds, prints tables: `bench.sh [options of bench.py]`.
#   CONGESTION=reno bench.sh --rounds 5 --n 2 --peers libring,nuvec --sizes 1K,16M
# CONGESTION is the congestion control, cubic unless set (the usual default of Linux). All of it takes about 20 minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "bench.sh: the comparison needs a Debian and root: it installs packages, and runs in a network namespace of its own" >&2
  exit 1
fi
[ -x "$root/build/tools/ring_worker" ] || { echo "bench.sh: run make tools first, or make bench-peers" >&2; exit 1; }
sh "$here/build.sh"

# A virtual machine's memory is slow the first time it is touched: touch what a ring of four needs now.
warm=$(mktemp -p /dev/shm)
trap 'rm -f "$warm"' EXIT
available_mib=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
warm_mib=4096
[ "$warm_mib" -lt $((available_mib / 2)) ] || warm_mib=$((available_mib / 2))
head -c "${warm_mib}M" /dev/zero >"$warm" || true
rm -f "$warm"

exec sh "$here/netns.sh" "${CONGESTION:-cubic}" python3 "$here/bench.py" "$@"

#!/bin/sh
# Runs bench.py with its options, as root in a network namespace with loopback alone. CONGESTION is the congestion control there,
# cubic unless set (the usual default of Linux).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ -e "$root/target/release/libring_mpi.so" ] || { echo "bench.sh: run make bench-mlx, which builds the plugin" >&2; exit 1; }
[ -x "$root/build/mlxenv/bin/python" ] || { echo "bench.sh: there is no mlx in build/mlxenv" >&2; exit 1; }
if [ "$(uname -s)" = Linux ] && [ "$(id -u)" -eq 0 ]; then
  exec sh "$root/benches/peers/netns.sh" "${CONGESTION:-cubic}" python3 "$here/bench.py" "$@"
fi
exec python3 "$here/bench.py" "$@"

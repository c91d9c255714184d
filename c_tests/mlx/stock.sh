#!/bin/sh
# Rings of the library and stock MLX: `stock.sh PROGRAMS CHECKOUT [results|starts|faults|all...]`, where PROGRAMS is the folder of
# mlx_rank and mlx_loop. Without a part, results, starts and faults. Exit status 77: MLX can't be had here.
set -eu
programs=$1 root=$2
shift 2
[ $# -gt 0 ] || set -- results starts faults
here=$(dirname "$0")
python=$root/build/mlxenv/bin/python

if ! "$python" -c 'import mlx.core as mx; assert mx.distributed.is_available()' 2>/dev/null; then
  if [ "${RING_TESTS_REQUIRE_MLX:-0}" = 1 ] || [ "${RING_TESTS_REQUIRE_LAUNCHERS:-0}" = 1 ]; then
    echo "MLX's Python package is missing in build/mlxenv, and is required"
    exit 1
  fi
  echo "skipped: MLX's Python package is missing in build/mlxenv"
  exit 77
fi

export PYTHONDONTWRITEBYTECODE=1
for part; do
  case $part in
    results) python3 "$here/mixed.py" stock "$programs/mlx_rank" --python "$python" ;;
    all) python3 "$here/mixed.py" stock "$programs/mlx_rank" --python "$python" --all ;;
    *) python3 "$here/stock.py" "$part" "$programs" --python "$python" ;;
  esac
done

#!/bin/sh
# Starts README's program by a launcher: `launchers.sh LAUNCHER PROGRAM CHECKOUT`, with $PORT and the three ports
# behind it free. mpirun and mlx.launch are the real ones; torchrun, srun and MPICH's mpirun are the variables that
# they set. Exit status 77: the launcher can't be had here.
set -eu
launcher=$1 program=$2 root=$3
work=$(mktemp -d)
ranks= occupant=
clean_up() {
  for child in $ranks $occupant; do kill "$child" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

skip() {
  if [ "${RING_TESTS_REQUIRE_LAUNCHERS:-0}" = 1 ]; then
    echo "$1, but RING_TESTS_REQUIRE_LAUNCHERS is 1"
    exit 1
  fi
  echo "skipped: $1"
  exit 77
}

fail() {
  echo "$1"
  sed 's/^/    /' "$work"/said*
  exit 1
}

# Whoever runs the tests may have been started by a launcher, too.
for name in $(env | sed -n 's/^\(\(RING\|MLX\|OMPI\|PMI\|PMIX\|SLURM\|MASTER\|TORCHELASTIC\)_[A-Z0-9_]*\|RANK\|WORLD_SIZE\)=.*/\1/p'); do
  [ "$name" = RING_TESTS_REQUIRE_LAUNCHERS ] || unset "$name"
done
export RING_CONNECT_TIMEOUT_MS=20000

# is_right [FILE...]: four ranks have printed the sum.
is_right() {
  for rank in 0 1 2 3; do echo "rank $rank of 4: 8 12 16 20"; done >"$work/expected"
  sort "$@" >"$work/sorted"
  grep '^rank' "$work/sorted" | cmp -s - "$work/expected" || fail "$launcher: these are not four ranks with the sum"
}

# by_hand FUNCTION: what a launcher does, rank by rank; the function exports what it tells a rank.
by_hand() {
  for rank in 0 1 2 3; do
    ("$1" "$rank" && exec "$program") >"$work/said.$rank" 2>&1 &
    ranks="$ranks $!"
  done
  for rank in $ranks; do wait "$rank" || fail "$launcher: a rank ended with exit status $?"; done
  ranks=
  is_right "$work"/said.[0-3]
}

# refused PART COMMAND...: fails, and says why.
refused() {
  part=$1
  shift
  if "$@" >"$work/said" 2>&1; then fail "$launcher: it formed a group: $*"; fi
  grep -q -- "$part" "$work/said" || fail "$launcher: it doesn't say \"$part\": $*"
}

open_mpi() {
  for mpirun in mpirun.openmpi mpirun; do
    if $mpirun --version 2>/dev/null | grep -q 'Open MPI'; then break; fi
    mpirun=
  done
  [ -n "$mpirun" ] || skip "Open MPI's mpirun is missing"
  # It keeps to this host, whatever that is called.
  mpirun="$mpirun --allow-run-as-root --oversubscribe --bind-to none --mca oob_tcp_if_include lo"
  export TMPDIR="$work"
  RING_RENDEZVOUS=127.0.0.1:$PORT $mpirun -n 4 "$program" >"$work/said" 2>&1 || fail "mpirun: exit status $?"
  is_right "$work/said"
  # A hostfile does as well, and must have as many ranks.
  echo "[\"127.0.0.1:$PORT\",\"127.0.0.1:$((PORT + 1))\",\"127.0.0.1:$((PORT + 2))\",\"127.0.0.1:$((PORT + 3))\"]" >"$work/hosts"
  RING_HOSTFILE=$work/hosts $mpirun -n 4 "$program" >"$work/said" 2>&1 || fail "mpirun with a hostfile: exit status $?"
  is_right "$work/said"
  refused "OMPI_COMM_WORLD_SIZE is 2, but RING_HOSTFILE $work/hosts has 4 entries" env "RING_HOSTFILE=$work/hosts" $mpirun -n 2 "$program"
  refused "none of RING_HOSTFILE, RING_RENDEZVOUS, MLX_HOSTFILE and MASTER_ADDR is" $mpirun -n 2 "$program"
}

mlx_launch() {
  launch=$root/build/mlxenv/bin/mlx.launch
  [ -x "$launch" ] || launch=$(command -v mlx.launch) || skip "mlx.launch is missing"
  "$launch" --help >/dev/null 2>&1 || skip "mlx.launch doesn't run here"
  command -v bash >/dev/null || skip "mlx.launch needs bash"
  # It leaves files in the temporary folder.
  for connections in 1 2; do
    TMPDIR=$work "$launch" --backend ring -n 4 --hosts 127.0.0.1 -p "$PORT" --connections-per-ip $connections "$program" \
      >"$work/said" 2>&1 || fail "mlx.launch: exit status $?"
    is_right "$work/said"
  done
}

# As torchrun sets them, by its documentation; `store` where its own store has the port.
torchrun_rank() {
  export RANK="$1" LOCAL_RANK="$1" GROUP_RANK=0 ROLE_RANK="$1" ROLE_NAME=default WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 \
    GROUP_WORLD_SIZE=1 ROLE_WORLD_SIZE=4 MASTER_ADDR="${master:-localhost}" MASTER_PORT="$PORT" TORCHELASTIC_RESTART_COUNT=0 \
    TORCHELASTIC_MAX_RESTARTS=0 TORCHELASTIC_RUN_ID=none TORCHELASTIC_USE_AGENT_STORE="$store"
}

torchrun() {
  store=False by_hand torchrun_rank
  if [ "$(uname -s)" != Linux ] || [ -e /proc/net/if_inet6 ]; then store=False master=::1 by_hand torchrun_rank; fi
  # The port itself is taken by somebody who doesn't speak this protocol.
  command -v python3 >/dev/null || skip "python3 is missing"
  python3 -c "
import socket, sys
taken = socket.create_server(('127.0.0.1', $PORT))
print('ready', flush=True)
sys.stdin.read()" >"$work/store" 2>&1 <"$work/end" &
  occupant=$!
  exec 3>"$work/end"
  while ! grep -q ready "$work/store"; do
    kill -0 "$occupant" 2>/dev/null || fail "the port $PORT can't be taken: $(cat "$work/store")"
    sleep 0.05
  done
  store=True master=127.0.0.1 by_hand torchrun_rank
  refused "127.0.0.1:$PORT" sh -c "RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT exec $program"
  exec 3>&-
}

# As srun sets them, by its documentation. It says nothing of where to meet: the user does.
srun_rank() {
  export SLURM_PROCID="$1" SLURM_LOCALID="$1" SLURM_NODEID=0 SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_NNODES=1 SLURM_STEP_NUM_TASKS=4 \
    SLURM_STEP_TASKS_PER_NODE=4 SLURM_TASKS_PER_NODE=4 SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=localhost \
    RING_RENDEZVOUS="127.0.0.1:$PORT"
}

# As MPICH's mpirun sets them, here inside an allocation of Slurm's.
hydra_rank() {
  export SLURM_PROCID=0 SLURM_NTASKS=1 PMI_RANK="$1" PMI_SIZE=4 PMI_FD=9 RING_RENDEZVOUS="127.0.0.1:$PORT"
}

case $launcher in
  mpirun) open_mpi ;;
  mlx.launch) mlx_launch ;;
  torchrun) mkfifo "$work/end" && torchrun ;;
  srun) by_hand srun_rank ;;
  hydra) by_hand hydra_rank ;;
  *) fail "no launcher is called $launcher" ;;
esac

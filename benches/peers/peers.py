#!/usr/bin/env python3
"""The peers, and how each is started.

    peers.py list
    peers.py run PEER N DTYPE BYTES:ITERATIONS...

prints a line (tabs) a size: peer, n, dtype, bytes, then median, p99 and mean time of a call on the slowest rank in us,
and CPU time of a call in us, of all ranks together, user and system.
"""
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("PEERS_BUILD", f"{ROOT}/build/peers")

MLX = [f"{BUILD}/mlxenv/bin/python", f"{HERE}/workers/mlx_ring.py"]
MLX_DTYPES = ("float32", "float16", "bfloat16")
NUVEC = [f"{BUILD}/rust-target/release/nuvec"]
PMETAL = [f"{BUILD}/rust-target/release/pmetal"]
GLOO = [f"{BUILD}/gloo_worker"]
RING = [os.environ.get("RING_WORKER", f"{ROOT}/build/tools/ring_worker")]
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1"]
OPEN_MPI_TCP = [*OPEN_MPI, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
OPEN_MPI_SHM = [*OPEN_MPI, "--mca", "btl", "vader,self"]
YIELD = ["--mca", "mpi_yield_when_idle", "1"]
MPICH = ["mpiexec.mpich"]
MPICH_TCP = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}

# `cmd` is a rank's worker (README.md says what it is given); `launcher` starts all ranks of `worker` instead.
# `link` is what the bytes cross; those with plain TCP are compared with libring.
PEERS = {
    "libring": dict(cmd=RING, link="tcp"),
    "libring-2conn": dict(cmd=RING, conns=2, link="tcp"),
    "mlx-ring": dict(cmd=MLX, link="tcp", dtypes=MLX_DTYPES),
    "mlx-ring-2conn": dict(cmd=MLX, conns=2, link="tcp", dtypes=MLX_DTYPES),
    "mlx-ring-4conn": dict(cmd=MLX, conns=4, link="tcp"),
    "gloo-ring": dict(cmd=GLOO, env={"ALGO": "ring"}, link="tcp"),
    "gloo-bcube": dict(cmd=GLOO, env={"ALGO": "bcube"}, link="tcp"),
    "openmpi": dict(launcher=OPEN_MPI_TCP, worker=f"{BUILD}/ompi_worker", link="tcp"),
    "openmpi-yield": dict(launcher=OPEN_MPI_TCP + YIELD, worker=f"{BUILD}/ompi_worker", link="tcp"),
    "mpich-ucx": dict(launcher=MPICH, worker=f"{BUILD}/mpich_worker", env=MPICH_TCP, link="tcp"),
    "pmetal": dict(cmd=PMETAL, env={"PLAIN": "1"}, link="tcp"),
    "nuvec": dict(cmd=NUVEC, link="tcp"),
    "nuvec-4conn": dict(cmd=NUVEC, conns=4, link="tcp"),
    "pmetal-noise": dict(cmd=PMETAL, link="encrypted"),
    "openmpi-shm": dict(launcher=OPEN_MPI_SHM, worker=f"{BUILD}/ompi_worker", link="memory"),
    "openmpi-shm-yield": dict(launcher=OPEN_MPI_SHM + YIELD, worker=f"{BUILD}/ompi_worker", link="memory"),
    "mpich-shm": dict(launcher=MPICH, worker=f"{BUILD}/mpich_worker", link="memory"),
}
TCP = [name for name, peer in PEERS.items() if peer["link"] == "tcp"]
OURS = ("libring", "libring-2conn")

# Below the ports that Linux gives to outgoing connections (from 32768).
FIRST_PORT, LAST_PORT = 12000, 32000

# A rank that ends late, after the others have failed, is given this long before it is killed.
GRACE_S = 2


def free_ports(count):
    ports, held = [], []
    while len(ports) < count:
        keeper = socket.socket()
        port = random.randrange(FIRST_PORT, LAST_PORT)
        try:
            keeper.bind(("127.0.0.1", port))
        except OSError:
            keeper.close()
            continue
        ports.append(port)
        held.append(keeper)
    for keeper in held:
        keeper.close()
    return ports


def commands(name, n, args, work):
    """[(argv, environment)], one a rank or one for a launcher. `work` is a folder for what the ranks share."""
    peer = PEERS[name]
    env = {**os.environ, **peer.get("env", {})}
    if "launcher" in peer:
        return [([*peer["launcher"], "-n", str(n), peer["worker"], *args], env)]
    conns = peer.get("conns", 1)
    ports = free_ports(n * conns)
    hosts = [[f"127.0.0.1:{port}" for port in ports[rank * conns:(rank + 1) * conns]] for rank in range(n)]
    hostfile, store = os.path.join(work, "hosts.json"), os.path.join(work, "store")
    with open(hostfile, "w") as file:
        json.dump(hosts, file)
    os.makedirs(store, exist_ok=True)
    env.update(WORLD=str(n), HOSTS=",".join(sum(hosts, [])), STORE=store, HOSTFILE=hostfile, MLX_HOSTFILE=hostfile)
    return [([*peer["cmd"], *args], {**env, "RANK": str(rank), "MLX_RANK": str(rank)}) for rank in range(n)]


def stop(processes):
    """Ends processes that were started as leaders of sessions; a launcher may first end its ranks."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            if process.poll() is None or number == signal.SIGKILL:
                try:
                    os.killpg(process.pid, number)
                except ProcessLookupError:
                    pass
        if number == signal.SIGTERM:
            end = time.monotonic() + GRACE_S
            while time.monotonic() < end and any(process.poll() is None for process in processes):
                time.sleep(0.05)
    for process in processes:
        process.wait()


def end_when_told():
    """A program that is told to end first ends its ranks, which are in sessions of their own."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def run(name, n, dtype, sizes, timeout_s=300):
    """Runs a peer's benchmark and returns its lines; what went wrong is said on stderr."""
    with tempfile.TemporaryDirectory(prefix="peers-") as work:
        processes, files = [], []
        for argv, env in commands(name, n, ["bench", dtype, *sizes], work):
            files.append(tempfile.TemporaryFile("w+"))
            processes.append(subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=files[-1],
                                              stderr=subprocess.STDOUT, start_new_session=True))
        end, said = time.monotonic() + timeout_s, ""
        try:
            for process in processes:
                process.wait(max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            said = f"not done after {timeout_s} s; "
        finally:
            if any(process.returncode != 0 for process in processes):
                stop(processes)
        text = []
        for file in files:
            file.seek(0)
            text.append(file.read())
            file.close()
    for process, output in zip(processes, text):
        if said or process.returncode:
            print(f"# {name} n={n}: {said}exit status {process.returncode}: {output[-500:]}", file=sys.stderr)
    ranks = {}
    for line in re.finditer(r"^R\t\d+\t(\w+)\t(\d+)\t(\S+)\t(\S+)\t(\S+)\t(\S+)$", "".join(text), re.M):
        ranks.setdefault((line[1], int(line[2])), []).append([float(line[column]) for column in (3, 4, 5, 6)])
    lines = []
    for (dtype, size), rows in ranks.items():
        if len(rows) == n:
            medians, p99s, means, cpus = zip(*rows)
            lines.append(f"{name}\t{n}\t{dtype}\t{size}\t{max(medians):.2f}\t{max(p99s):.2f}\t{max(means):.2f}\t"
                         f"{sum(cpus):.2f}")
    return lines


if __name__ == "__main__":
    end_when_told()
    if sys.argv[1:2] == ["list"]:
        print("\n".join(PEERS))
    elif sys.argv[1:2] == ["run"] and len(sys.argv) > 5:
        print("\n".join(run(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:])))
    else:
        sys.exit(__doc__)

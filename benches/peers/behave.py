#!/usr/bin/env python3
"""What libring and its peers do when something goes wrong. Run through netns.sh, after build.sh.

    behave.py OUTPUT [TEST...] [--peers a,b]

Prints and adds to OUTPUT a line a case (tabs): test, peer, what each rank did. Tests:
    kill, stop   rank 1 of 3 is killed, or stopped, while they reduce 64 MiB after 64 MiB
    mismatch     rank 0 reduces 1000 elements, rank 1 2000
    stray        a stranger connects to rank 0 before rank 1 does, and sends garbage
    late-0, late-1   that rank of 2 starts half a minute after the other
"""
import argparse
import concurrent.futures
import functools
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

import peers

DEFAULT_PEERS = "libring,mlx-ring,gloo-ring,openmpi-yield,pmetal-noise,nuvec"

# A rank that has done nothing by then is said to be still running.
WATCH_S = 65
WATCH_MISMATCH_S = 45
LATE_S = 30
LOOP_BYTES = 64 << 20
# Results that show that all ranks are well on their way.
GOING = 9
# Long enough to find and disturb a rank's port before it goes on.
PAUSE_S = 6
# CPU use says something of a wait that was longer than this.
LEAST_WAIT_S = 2
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
# What ranks say when all is well.
USUAL = re.compile(r"(it \d+|-+|R\t\d.*)$")


def look_at(pid):
    """(state, parent's pid, CPU seconds), or None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return fields[0], int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def rank_of_open_mpi(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            found = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", file.read())
    except OSError:
        return None
    return int(found[1]) if found else None


class Job:
    """Ranks of a peer that run, with their output in files. A launcher's ranks start together: `delay` makes one sleep
    first, while `only` some ranks of the others are started."""

    def __init__(self, peer, n, args, only=None, delay=(None, 0), env=()):
        self.folder = tempfile.TemporaryDirectory(prefix="behave-")
        self.launched = "launcher" in peers.PEERS[peer]
        self.commands = peers.commands(peer, n, args, self.folder.name)
        self.env, self.processes = dict(env), {}
        rank, seconds = delay
        if self.launched and rank is not None:
            argv, launcher_env = self.commands[0]
            at = argv.index(peers.PEERS[peer]["worker"])
            script = f'[ "$OMPI_COMM_WORLD_RANK" = {rank} ] && sleep {seconds}; exec "$0" "$@"'
            self.commands[0] = (argv[:at] + ["sh", "-c", script] + argv[at:], launcher_env)
        for rank in range(len(self.commands)):
            if only is None or rank in only or self.launched:
                self.start(rank)

    def start(self, rank):
        argv, env = self.commands[rank]
        with open(f"{self.folder.name}/out{rank}", "w") as out, open(f"{self.folder.name}/err{rank}", "w") as err:
            self.processes[rank] = subprocess.Popen(argv, env={**env, **self.env}, stdin=subprocess.DEVNULL, stdout=out,
                                                    stderr=err, start_new_session=True)

    def text(self, rank=None):
        text = ""
        for started in self.processes:
            if rank in (None, started):
                for kind in ("out", "err"):
                    with open(f"{self.folder.name}/{kind}{started}", errors="replace") as file:
                        text += file.read()
        return text

    def ranks(self):
        """{rank: pid}"""
        if not self.launched:
            return {rank: process.pid for rank, process in self.processes.items()}
        found = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            seen = look_at(name)
            rank = rank_of_open_mpi(name) if seen and seen[1] == self.processes[0].pid else None
            if rank is not None:
                found[rank] = int(name)
        return found

    def wait_for(self, pattern, count, limit_s):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if len(re.findall(pattern, self.text(), re.M)) >= count:
                return True
            time.sleep(0.05)
        return False

    def said_by(self, rank):
        lines = [line.strip() for line in self.text(rank).splitlines()]
        said = " / ".join(dict.fromkeys(line for line in lines if line and not USUAL.match(line)))[-600:]
        results = sum(line.startswith("R\t") for line in lines)
        return said + (f" [{results} results, sums correct]" if results else "")

    def watch(self, victim=None, limit_s=WATCH_S):
        """Waits for every process but the victim to end, and describes what each did."""
        start, ended, pids = time.monotonic(), {}, self.ranks()
        before = {rank: look_at(pid) for rank, pid in pids.items()}
        last = {}
        watched = [rank for rank in self.processes if self.launched or rank != victim]
        while len(ended) < len(watched) and time.monotonic() - start < limit_s:
            for rank in watched:
                if rank not in ended and self.processes[rank].poll() is not None:
                    ended[rank] = time.monotonic() - start
            for rank, pid in pids.items():
                seen = look_at(pid)
                if seen and seen[0] != "Z":
                    last[rank] = seen
            time.sleep(0.01)
        took = time.monotonic() - start
        done = []
        for rank in watched:
            how = (f"exit {self.processes[rank].returncode} after {ended[rank]:.2f} s" if rank in ended
                   else f"still running after {took:.0f} s")
            done.append(f"{'launcher' if self.launched else f'rank {rank}'}: {how}: {self.said_by(rank)}")
        for rank in pids:
            waited_s = ended.get(rank, took)
            if rank != victim and before[rank] and rank in last and waited_s > LEAST_WAIT_S:
                done.append(f"rank {rank} used {100 * (last[rank][2] - before[rank][2]) / waited_s:.0f} % of a core")
        return "; ".join(done)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.ranks().values():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        peers.stop(list(self.processes.values()))
        self.folder.cleanup()


def disturb(number, peer):
    victim = 1
    with Job(peer, 3, ["loop", str(LOOP_BYTES)]) as job:
        if not job.wait_for(r"^it \d+", GOING, WATCH_S):
            return "did not get going: " + job.text()[-300:]
        os.kill(job.ranks()[victim], number)
        return job.watch(victim)


def mismatch(peer):
    with Job(peer, 2, ["mismatch"]) as job:
        return job.watch(limit_s=WATCH_MISMATCH_S)


def listening_ports(pid):
    text = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True).stdout
    return [int(line.split()[3].rsplit(":", 1)[1]) for line in text.splitlines() if f"pid={pid}," in line]


def stray(peer):
    pause = {"PAUSE": str(PAUSE_S)} if "launcher" in peers.PEERS[peer] else {}
    with Job(peer, 2, ["bench", "float32", "4000000:3"], only=[0], env=pause) as job:
        strangers, ports = [], []
        end = time.monotonic() + PAUSE_S
        while not ports and time.monotonic() < end:
            time.sleep(0.1)
            ports = listening_ports(job.ranks().get(0))
        for port in ports:
            strangers.append(socket.create_connection(("127.0.0.1", port)))
            strangers[-1].sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(range(256)) * 16)
        time.sleep(1)
        if not job.launched:
            job.start(1)
        outcome = job.watch(limit_s=WATCH_MISMATCH_S)
        for stranger in strangers:
            stranger.close()
        return f"{len(ports)} port(s); {outcome}"


def late(rank, peer):
    with Job(peer, 2, ["bench", "float32", "4000000:3"], only=[1 - rank], delay=(rank, LATE_S)) as job:
        if not job.launched:
            time.sleep(LATE_S)
            job.start(rank)
        return job.watch(limit_s=WATCH_MISMATCH_S + LATE_S)


TESTS = {
    "kill": functools.partial(disturb, signal.SIGKILL),
    "mismatch": mismatch,
    "stray": stray,
    "stop": functools.partial(disturb, signal.SIGSTOP),
    "late-1": functools.partial(late, 1),
    "late-0": functools.partial(late, 0),
}
# These mostly wait, so that peers can be tried side by side.
TOGETHER = ("stop", "late-1", "late-0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("tests", nargs="*", metavar="TEST")
    parser.add_argument("--peers", default=DEFAULT_PEERS)
    options = parser.parse_args()
    peers.end_when_told()
    unknown = set(options.tests) - set(TESTS) | set(options.peers.split(",")) - set(peers.PEERS)
    if unknown:
        parser.error(f"no such test or peer: {', '.join(sorted(unknown))}")
    names = options.peers.split(",")
    hidden = [name for name in names if peers.PEERS[name].get("launcher") == peers.MPICH]
    if hidden:
        parser.error(f"finds ranks as Open MPI starts them, not as MPICH does: {', '.join(hidden)}")
    with open(options.output, "a") as file:
        for test in options.tests or TESTS:
            with concurrent.futures.ThreadPoolExecutor(len(names) if test in TOGETHER else 1) as pool:
                for peer, outcome in zip(names, pool.map(TESTS[test], names)):
                    print(f"{test}\t{peer}\t{outcome}", file=file, flush=True)
                    print(f"{test}\t{peer}\t{outcome}", flush=True)


if __name__ == "__main__":
    main()

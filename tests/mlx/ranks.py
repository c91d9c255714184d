#!/usr/bin/env python3
"""Starts the ranks of a ring on this host, and sees them end.

    ranks.py [-n N] [--addresses K] [--limit SECONDS] [--shim LIBRING_MPI] COMMAND...

Each rank is COMMAND with MLX_RANK and MLX_HOSTFILE set, on free ports of a loopback address; with --shim also MLX_MPI_LIBNAME.
What rank 0 prints is printed; if a rank fails, or is still running after the limit, what the failed ranks said is
printed instead, and the exit status is 1. Scripts use the class: the ranks may be different programs.
"""
import argparse
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

# Below the ports that Linux gives to outgoing connections (from 32768).
FIRST_PORT, LAST_PORT = 12000, 32000

# When a rank has failed, the others get this long to say what they saw of it.
GRACE_S = 10

# Whoever runs this may have been started by a launcher, too.
OF_LAUNCHERS = re.compile(r"(RING|MLX|OMPI|PMI|PMIX|SLURM|MASTER|TORCHELASTIC)_[A-Z0-9_]*|RANK|WORLD_SIZE")


def loopback():
    """Linux has 2^24 loopback addresses: with one of its own, a ring's ports are nobody else's before its ranks listen, either."""
    if sys.platform != "linux":
        return "127.0.0.1"
    return f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"


def free_ports(host, count):
    """All are held until all are found, so that they differ."""
    held = []
    while len(held) < count:
        keeper = socket.socket()
        try:
            keeper.bind((host, random.randrange(FIRST_PORT, LAST_PORT)))
            held.append(keeper)
        except OSError:
            keeper.close()
    ports = [keeper.getsockname()[1] for keeper in held]
    for keeper in held:
        keeper.close()
    return ports


def clean_environment():
    return {name: value for name, value in os.environ.items() if not OF_LAUNCHERS.fullmatch(name)}


def shim_environment(shim):
    """What lets mx.distributed.init(backend="mpi") find libring's plugin."""
    return {"MLX_MPI_LIBNAME": os.path.abspath(shim)}


class Ranks:
    """The processes of one ring: `with Ranks([argv of rank 0, argv of rank 1, ...]) as ranks:`. On the way out, those
    that still run are killed. `status[r]` is rank r's exit status once it has ended, negative for a signal."""

    def __init__(self, commands, environment=None, addresses=1):
        self.commands = commands
        self.environment = {**clean_environment(), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        self.addresses = addresses
        self.processes = []
        self.ended_in_order = []

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ranks-")
        try:
            host = loopback()
            ports = free_ports(host, len(self.commands) * self.addresses)
            hosts = [[f"{host}:{port}" for port in ports[at:at + self.addresses]]
                     for at in range(0, len(ports), self.addresses)]
            hostfile = f"{self.folder.name}/hosts.json"
            with open(hostfile, "w") as file:
                json.dump(hosts, file)
            for rank, command in enumerate(self.commands):
                environment = {**self.environment, "MLX_RANK": str(rank), "MLX_HOSTFILE": hostfile}
                with open(self._file(rank, "out"), "wb") as out, open(self._file(rank, "err"), "wb") as err:
                    self.processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                                           stderr=err))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.folder.cleanup()

    def _file(self, rank, stream):
        return f"{self.folder.name}/{rank}.{stream}"

    def _read(self, rank, stream):
        with open(self._file(rank, stream), errors="replace") as file:
            return file.read()

    def out(self, rank):
        return self._read(rank, "out")

    def err(self, rank):
        return self._read(rank, "err")

    @property
    def status(self):
        return [process.poll() for process in self.processes]

    def kill(self, rank):
        os.kill(self.processes[rank].pid, signal.SIGKILL)

    def wait_until(self, condition, limit_s):
        """False if it hasn't come true within the limit."""
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def wait(self, limit_s):
        """Until all have ended well, or the limit, or a grace after the first that failed. True if all ended well."""
        def over():
            self._note()
            return None not in self.status or any(self.status[rank] for rank in self.ended_in_order)
        self.wait_until(over, limit_s)
        if None in self.status and any(self.status[rank] for rank in self.ended_in_order):
            self.wait_until(lambda: self._note() or None not in self.status, GRACE_S)
        return all(status == 0 for status in self.status)

    def _note(self):
        self.ended_in_order += [rank for rank, status in enumerate(self.status)
                                if status is not None and rank not in self.ended_in_order]

    def failures(self):
        """What the ranks said that failed or run still, first those that failed first."""
        order = [*self.ended_in_order, *(rank for rank in range(len(self.processes)) if rank not in self.ended_in_order)]
        text = ""
        for rank in order:
            status = self.status[rank]
            if status == 0:
                continue
            how = ("still running" if status is None else f"exit status {status}" if status > 0
                   else f"ended by {signal.Signals(-status).name}")
            said = (self.out(rank) + self.err(rank)).rstrip()
            text += f"rank {rank} of {len(self.processes)}: {how}\n" + "".join(f"    {line}\n" for line in said.splitlines())
        return text


def end_when_told():
    """A program that is told to end first ends its ranks."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument("--addresses", type=int, default=1, help="of each rank")
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--shim", metavar="LIBRING_MPI", help="libring's plugin for MLX's MPI backend")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command or options.n < 1 or options.addresses < 1:
        parser.error("a command, ranks and addresses are needed")
    end_when_told()
    environment = shim_environment(options.shim) if options.shim else {}
    with Ranks([options.command] * options.n, environment, options.addresses) as ranks:
        if ranks.wait(options.limit):
            print(ranks.out(0), end="")
            return 0
        print(ranks.failures(), end="", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

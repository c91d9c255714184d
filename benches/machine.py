"""Where and when a benchmark ran, as lines of markdown."""
import datetime
import os
import platform
import socket
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def commit():
    """The commit of this checkout, with a + where files differ from it."""
    def git(*args):
        return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True).stdout.strip()

    try:
        name = git("rev-parse", "--short=10", "HEAD")
        return name + ("+" if git("status", "--porcelain", "--untracked-files=no") else "") if name else "unknown"
    except OSError:
        return "unknown"


def congestion_control():
    """What a connection over loopback has unless it asks: the system's default, or what a route says."""
    option = getattr(socket, "TCP_CONGESTION", None)
    if option is None:
        return "unknown"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        return client.getsockopt(socket.IPPROTO_TCP, option, 16).split(b"\0")[0].decode()


def describe():
    return "\n".join([
        f"- machine: {processor()}, {os.cpu_count()} cores, {platform.machine()}",
        f"- system: {platform.system()} {platform.release()}, TCP {congestion_control()} by default",
        f"- libring {commit()}, {datetime.date.today().isoformat()}",
    ])

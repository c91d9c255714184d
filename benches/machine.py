"""Where and when a benchmark ran, as lines of markdown."""
import datetime
import os
import platform
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def first_line(path, fallback="unknown"):
    try:
        with open(path) as file:
            return file.readline().strip() or fallback
    except OSError:
        return fallback


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
    return first_line("/proc/sys/net/ipv4/tcp_congestion_control")


def describe(congestion=None):
    """`congestion`: the algorithm where it isn't the one that the system gives."""
    return "\n".join([
        f"- machine: {processor()}, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()}"
        f" cores, {platform.machine()}",
        f"- system: {platform.system()} {platform.release()}, TCP {congestion or congestion_control()}",
        f"- libring {commit()}, {datetime.date.today().isoformat()}",
    ])

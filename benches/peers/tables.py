"""Markdown tables of what bench.py measured.

A line (tabs) is a call: congestion control, round, then what peers.py prints; or a limit: the word limit, name, n, value,
unit; or the word about and a line on the machine.
"""
import collections
import os
import statistics

import peers
from units import size_name, time_name

# At these sizes libring is also given as a share of what raw sockets move: smaller arrays stay in the caches, which the
# arrays of limits don't.
LEAST_BYTES_OF_LIMIT = 16 << 20
# Below, the CPU time of a call is that of its system calls, whatever the bytes.
LEAST_BYTES_OF_CPU = 64 << 10
# What limits/ring.c calls the ring of raw sockets, without and with the additions of an all-reduce.
RAW_RING, RAW_RING_ADDING = "tcp ring", "tcp ring, half added"

Sample = collections.namedtuple("Sample", "median_us p99_us mean_us cpu_us")


def read(lines):
    """([about], {(name, n, unit): [value]}, {(cc, dtype, n, bytes): {peer: {round: Sample}}})"""
    about, limits, cells = [], {}, {}
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "about":
            about.append(fields[1])
        elif fields[0] == "limit":
            limits.setdefault((fields[1], int(fields[2]), fields[4]), []).append(float(fields[3]))
        else:
            cc, number, peer, n, dtype, size = fields[:6]
            cell = cells.setdefault((cc, dtype, int(n), int(size)), {})
            cell.setdefault(peer, {})[int(number)] = Sample(*map(float, fields[6:]))
    return about, limits, dict(sorted(cells.items()))


def median(samples, field="median_us"):
    return statistics.median(getattr(sample, field) for sample in samples.values())


def busbw(n, size, us):
    """GB/s, as nccl-tests count it."""
    return 2 * (n - 1) / n * size / us / 1e3


def cpu_per_byte(n, size, samples):
    """CPU time in ns per byte of an array, a rank's share."""
    return median(samples, "cpu_us") * 1e3 / (n * size)


def ratio(ours, best):
    """Time over time: the median of the rounds' own ratios, and their range."""
    ratios = [ours[number].median_us / best[number].median_us for number in ours if number in best]
    if not ratios:
        return "-"
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def limit_of(limits, n):
    """GB/s of raw sockets. Additions take their time from the same cores where ranks outnumber cores; else the faster of both
    rings counts, since the one that adds receives into memory that stays in the caches."""
    found = {name: statistics.median(values) for (name, ranks, _), values in limits.items() if ranks == n}
    wanted = (RAW_RING_ADDING,) if n > os.cpu_count() else (RAW_RING, RAW_RING_ADDING)
    return max((found[name] for name in wanted if name in found), default=None)


def comparison(limits, cells):
    """A row a cell that has libring and a TCP peer."""
    rows = []
    for (cc, dtype, n, size), by_peer in cells.items():
        others = {p: s for p, s in by_peer.items() if p in peers.TCP and p not in peers.OURS}
        ours = {p: s for p, s in by_peer.items() if p in peers.OURS}
        if not others or not ours:
            continue
        best = min(others, key=lambda peer: median(others[peer]))
        row = [f"{n}", dtype, size_name(size)]
        row += [time_name(median(ours[p])) if p in ours else "-" for p in peers.OURS]
        row += [f"{time_name(median(others[best]))} {best}"]
        row += [ratio(ours[p], others[best]) if p in ours else "-" for p in peers.OURS]
        limit = limit_of(limits, n) if size >= LEAST_BYTES_OF_LIMIT else None
        fastest = min(median(samples) for samples in ours.values())
        row += [f"{busbw(n, size, fastest) / limit:.2f}" if limit else ""]
        if size >= LEAST_BYTES_OF_CPU:
            cpu = {peer: cpu_per_byte(n, size, samples) for peer, samples in by_peer.items()}
            thrifty = min(others, key=cpu.get)
            row += [f"{cpu[p]:.3g}" if p in cpu else "-" for p in peers.OURS] + [f"{cpu[thrifty]:.3g} {thrifty}"]
        else:
            row += [""] * (len(peers.OURS) + 1)
        rows.append(row)
    return rows


def markdown(header, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]) + "\n"


def details(n, size, by_peer):
    rows = []
    for peer, samples in sorted(by_peer.items(), key=lambda entry: median(entry[1])):
        us = median(samples)
        times = [sample.median_us for sample in samples.values()]
        rows.append([peer, f"{us:,.1f}", f"{min(times):,.1f}", f"{max(times):,.1f}", f"{median(samples, 'p99_us'):,.1f}",
                     f"{size / us / 1e3:.3g}", f"{busbw(n, size, us):.3g}", f"{median(samples, 'cpu_us'):,.1f}",
                     f"{cpu_per_byte(n, size, samples):.3g}", f"{len(times)}"])
    return markdown(["peer", "time us", "best", "worst", "p99 us", "algbw GB/s", "busbw GB/s", "CPU us",
                     "CPU ns/B", "rounds"], rows)


def document(lines):
    about, limits, cells = read(lines)
    text = "# libring and its peers\n\n" + "\n".join(about) + "\n\n"
    rows = comparison(limits, cells)
    if rows:
        text += ("Time of a call in place: the median over the rounds of the median over the calls, on the slowest rank. "
                 "The ratio is libring's time over the\nbest TCP peer's, the median of the rounds' own ratios with their "
                 "range: below 1, libring is faster. Limit: bus bandwidth as a share of what\nraw sockets moved "
                 "in the same run. CPU: user and system time of all ranks, in ns per byte and rank.\n\n")
        text += markdown(["n", "type", "size", "libring", "2 connections", "best TCP peer", "ratio",
                          "ratio, 2 connections", "of the limit", "CPU ns/B", "CPU, 2 connections",
                          "least CPU of the peers"], rows)
    if limits:
        text += "\n## Limits\n\nWhat this machine allows with no library in the way.\n\n"
        text += markdown(["what", "n", "median", "least", "most", "unit"],
                         [[name, str(n), f"{statistics.median(values):.3g}", f"{min(values):.3g}", f"{max(values):.3g}",
                           unit] for (name, n, unit), values in limits.items()])
    if cells:
        text += "\n## Every peer\n"
    for (cc, dtype, n, size), by_peer in cells.items():
        text += f"\n**{dtype}, {size_name(size)}, n={n}, {cc}**\n\n{details(n, size, by_peer)}"
    return text

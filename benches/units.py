"""Sizes and times as the benchmarks' options and tables write them."""
import statistics

UNITS = (("G", 30), ("M", 20), ("K", 10))


def parse_size(text):
    """64K is 65536."""
    units = dict(UNITS)
    return int(text[:-1]) << units[text[-1].upper()] if text[-1:].upper() in units else int(text)


def size_name(size):
    for unit, shift in UNITS:
        if size >> shift and not size & (1 << shift) - 1:
            return f"{size >> shift} {unit}iB"
    return f"{size} B"


def time_name(us):
    return f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.3g} us"


def time_cell(times):
    """The median of the rounds and the best."""
    return f"{time_name(statistics.median(times))} ({time_name(min(times))})" if times else "-"


def ratio_cell(ratios, form):
    """The median of the rounds' own ratios, and their range."""
    return f"{statistics.median(ratios):{form}} ({min(ratios):{form}} to {max(ratios):{form}})" if ratios else "-"

#!/usr/bin/env python3
"""The traces of a ring's ranks, together: one file that Perfetto opens, or a picture.

  trace.py join traces/ring-0badcafe-*.json > ring.json
  trace.py draw traces/ring-0badcafe-*.json > ring.svg

README's picture is of `build/c_tests/trace steps 4 traces`.
"""
import argparse
import json
import math
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 980, 112, 16, 66, 40
ROW, GAP = 22, 12
# Greys and hues of middle lightness, which stand out from white and from black: the page behind may be either.
TEXT, GRID = "#7a7f87", "#7a7f8740"
HUES = ("#2f81f7", "#2da05a", "#b065d8", "#3aa6a6", "#8d9440", "#6a7bd6", "#a06a4a")
WAIT = "#e0702a"
FAILED = "#e5484d"
# An average width of the letters, to know which names fit.
LETTER = 6.2


def read(paths):
    files = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                files.append(json.load(file))
            if not {"ring", "rank"} <= files[-1]["otherData"].keys() or not isinstance(files[-1]["traceEvents"], list):
                raise KeyError
        except OSError as error:
            sys.exit(f"trace.py: {path}: {error.strerror}")
        except (ValueError, LookupError, TypeError, AttributeError):
            sys.exit(f"trace.py: {path} is no trace of a rank")
    rings = sorted({file["otherData"]["ring"] for file in files})
    if len(rings) > 1:
        print(f"trace.py: files of several rings: {', '.join(rings)}", file=sys.stderr)
    return sorted(files, key=lambda file: file["otherData"]["rank"])


def join(files):
    events = [event for file in files for event in file["traceEvents"]]
    about = {f"rank {file['otherData']['rank']}": file["otherData"] for file in files}
    lines = ",\n".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events)
    head = json.dumps({"displayTimeUnit": "ms", "otherData": about}, ensure_ascii=False)[:-1]
    return f'{head},"traceEvents":[\n{lines}\n]}}\n'


def nice_step(most, steps):
    """1, 2 or 5 times a power of ten, for about that many steps."""
    power = 10 ** math.floor(math.log10(most / steps))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power * steps >= most)


def within(event, start, end):
    """The part of an event that is to be seen, from the start; None where that is nothing."""
    first, last = event["ts"] - start, event["ts"] - start + event.get("dur", 0)
    return None if last < 0 or first > end - start else (max(first, 0), min(last, end - start))


def label(x, width, y, text, colour="#ffffff"):
    if width < len(text) * LETTER + 4:
        return ""
    return f'<text x="{x + width / 2:.1f}" y="{y:.1f}" text-anchor="middle" fill="{colour}">{escape(text)}</text>'


def bar(event, span, scale, y, hues):
    """A call, a wait within it, or a moment."""
    first, last = span
    x, width = LEFT + first * scale, max((last - first) * scale, 1)
    name = escape(event["name"])
    if event["ph"] == "i":
        return [f'<path d="M{x:.1f} {y} v{ROW}" stroke="{FAILED}" stroke-width="2"><title>{name}</title></path>']
    if event["cat"] == "wait":
        return [f'<rect x="{x:.1f}" y="{y + ROW / 2}" width="{width:.1f}" height="{ROW / 2}" fill="{WAIT}"/>',
                label(x, width, y + ROW - 2, event["name"])]
    hue = hues.setdefault(event["name"], HUES[len(hues) % len(HUES)])
    told = ", ".join(f"{key} {value}" for key, value in event["args"].items())
    return [f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW}" fill="{hue}">'
            f'<title>{name}: {event["dur"]:g} us, {escape(told)}</title></rect>',
            label(x, width, y + 9, f'{event["name"]} {event["args"]["number"]}')]


def rank(file, start, end, scale, y, hues):
    """The rows of a rank, and where the next one's begin."""
    names = {event["tid"]: event["args"]["name"] for event in file["traceEvents"] if event["name"] == "thread_name"}
    rows = {}
    for event in file["traceEvents"]:
        span = event["ph"] != "M" and within(event, start, end)
        if span:
            rows.setdefault(event["tid"], []).append((event, span))
    lines = [f'<text x="{LEFT - 8}" y="{y + 9}" text-anchor="end" font-weight="600">rank {file["otherData"]["rank"]}</text>']
    y += 15
    for tid in sorted(rows):
        lines.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end" font-size="11">{escape(names[tid])}</text>')
        lines.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{ROW}" fill="{GRID}" opacity="0.3"/>')
        for event, span in sorted(rows[tid], key=lambda row: row[0]["ts"]):
            lines += bar(event, span, scale, y, hues)
        y += ROW + 3
    return lines, y + GAP


def time_axis(length, scale, bottom):
    step = nice_step(length / 1000, 10)
    for number in range(int(length / 1000 / step) + 1):
        x = LEFT + number * step * 1000 * scale
        yield f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" font-size="11">{number * step:g} ms</text>'


def legend(hues):
    x = LEFT
    for name, hue in [*hues.items(), ("asleep, waiting for a neighbour", WAIT)]:
        yield f'<rect x="{x:.0f}" y="36" width="12" height="12" fill="{hue}"/>'
        yield f'<text x="{x + 17:.0f}" y="46">{escape(name)}</text>'
        x += 17 + len(name) * LETTER + 22


def draw(files, first_ms, last_ms, title):
    shown = [event for file in files for event in file["traceEvents"] if event["ph"] != "M"]
    if not shown:
        sys.exit("trace.py: there are no calls to draw")
    begin = min(event["ts"] for event in shown)
    # A failure alone takes no time.
    finish = max(max(event["ts"] + event.get("dur", 0) for event in shown), begin + 1)
    start = begin + (first_ms or 0) * 1000
    end = finish if last_ms is None else min(finish, begin + last_ms * 1000)
    if end <= start:
        sys.exit(f"trace.py: there is nothing from {(start - begin) / 1000:g} ms to {(end - begin) / 1000:g} ms to draw")
    scale = (WIDTH - LEFT - RIGHT) / (end - start)
    hues, body, y = {}, [], TOP
    for file in files:
        lines, y = rank(file, start, end, scale, y, hues)
        body += lines
    height = y + BOTTOM
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" font-family="system-ui, sans-serif" font-size="10" fill="{TEXT}">')
    title_line = f'<text x="{LEFT}" y="22" font-size="15" font-weight="600">{escape(title)}</text>'
    lines = [head, f"<title>{escape(title)}</title>", title_line, '<g font-size="12">', *legend(hues), "</g>",
             *time_axis(end - start, scale, y), *body]
    return "\n".join(line for line in lines if line) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("join", "draw"))
    parser.add_argument("files", nargs="+", help="one a rank")
    parser.add_argument("--from", dest="first", type=float, help="milliseconds from the first call; draw")
    parser.add_argument("--to", dest="last", type=float, help="likewise")
    parser.add_argument("--title", default="Calls of each rank")
    options = parser.parse_args()
    files = read(options.files)
    sys.stdout.write(join(files) if options.what == "join" else draw(files, options.first, options.last, options.title))


if __name__ == "__main__":
    main()

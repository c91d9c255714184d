"""A line plot as SVG, written by hand: sizes on a logarithmic axis, each line with its name at its end."""
import math
from xml.sax.saxutils import escape

from units import size_name

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 84, 44, 56
# Greys and hues of middle lightness, which stand out from white and from black: the page behind may be either. Lines
# differ in marker and dash, too, for those who don't tell the hues apart.
TEXT, GRID = "#7a7f87", "#7a7f8740"
STYLES = (("#2f81f7", "", "circle"), ("#e0702a", "7 3", "square"), ("#2da05a", "2 3", "diamond"),
          ("#b065d8", "9 3 2 3", "circle"))
# The least distance between two names at the lines' ends.
NAME_HEIGHT = 16


def nice_step(most, steps=5):
    """1, 2 or 5 times a power of ten, for about that many steps."""
    power = 10 ** math.floor(math.log10(most / steps))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power * steps >= most)


def marker(shape, x, y, colour):
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if shape == "diamond" else ""
    return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" fill="{colour}"{turn}/>'


def apart(wanted, least):
    """Heights near those wanted, no two of them closer than the least distance."""
    placed = {}
    lowest = -math.inf
    for index in sorted(range(len(wanted)), key=wanted.__getitem__):
        placed[index] = lowest = max(wanted[index], lowest + least)
    return [placed[index] for index in range(len(wanted))]


def line_plot(title, lines, unit):
    """`lines`: [(name, [(size, value)])], in order of the sizes; at least one point in all. `unit` names the values."""
    sizes = sorted({size for _, points in lines for size, _ in points})
    most = max(value for _, points in lines for _, value in points) or 1
    step = nice_step(most)
    top = math.ceil(most / step) * step
    first, span = math.log2(sizes[0]), max(math.log2(sizes[-1] / sizes[0]), 1)

    def x_of(size):
        return LEFT + (math.log2(size) - first) / span * (WIDTH - LEFT - RIGHT)

    def y_of(value):
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           f'role="img" font-family="system-ui, sans-serif" font-size="12" fill="{TEXT}">',
           f"<title>{escape(title)}</title>",
           f'<text x="{LEFT}" y="22" font-size="15" font-weight="600">{escape(title)}</text>']
    for number in range(round(top / step) + 1):
        value = number * step
        y = y_of(value)
        svg.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{GRID}"/>')
        svg.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    # Every power of 16 gets a name: more would touch.
    exponents = range(math.ceil(first), math.floor(first + span) + 1)
    for exponent in exponents:
        if (exponent - exponents[0]) % 4 == 0:
            x = x_of(2 ** exponent)
            svg.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="{GRID}"/>')
            svg.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size_name(2 ** exponent)}</text>')
    middle_x, middle_y = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    svg.append(f'<text x="{middle_x:.0f}" y="{HEIGHT - 14}" text-anchor="middle">size of the array</text>')
    svg.append(f'<text x="18" y="{middle_y:.0f}" text-anchor="middle" transform="rotate(-90 18 {middle_y:.0f})">'
               f"{escape(unit)}</text>")
    names = apart([y_of(points[-1][1]) for _, points in lines], NAME_HEIGHT)
    for (name, points), name_y, (colour, dash, shape) in zip(lines, names, STYLES * len(lines)):
        at = [(x_of(size), y_of(value)) for size, value in points]
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        svg.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dashes} '
                   f'points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in at)}"/>')
        svg.extend(marker(shape, x, y, colour) for x, y in at)
        svg.append(f'<text x="{at[-1][0] + 10:.1f}" y="{name_y + 4:.1f}" fill="{colour}" font-weight="600">'
                   f"{escape(name)}</text>")
    return "\n".join([*svg, "</svg>"]) + "\n"

"""Simple plots as SVG."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 760, 360, 60, 40, 70, 110
COLOURS = ["#1f6fb2", "#d1662b", "#3b8f4a", "#8a4fa3"]


def _frame(title, low, high):
    """The parts that all plots have, and where a value is drawn."""
    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low))

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>']
    for i in range(6):
        value = low + (high - low) * i / 5
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
                     'stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    return parts, y


def _legend(parts, names):
    for i, name in enumerate(names):
        at = TOP + 18 * i
        parts.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{at}" width="10" height="10" '
                     f'fill="{COLOURS[i % len(COLOURS)]}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 30}" y="{at + 10}">{escape(str(name))}</text>')


def _write(path, parts):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*parts, "</svg>"]) + "\n")


def bars(path, title, series):
    """series: {name: {category: value}}, of 0 to 100"""
    categories = list(dict.fromkeys(category for values in series.values() for category in values))
    if not categories:
        return
    parts, y = _frame(title, 0, 100)
    room = (WIDTH - LEFT - RIGHT) / len(categories)
    width = room * 0.8 / len(series)
    for i, values in enumerate(series.values()):
        for k, category in enumerate(categories):
            if category in values:
                top = y(values[category])
                parts.append(f'<rect x="{LEFT + room * (k + 0.1) + width * i:.1f}" y="{top:.1f}" '
                             f'width="{width:.1f}" height="{y(0) - top:.1f}" fill="{COLOURS[i % len(COLOURS)]}"/>')
    for k, category in enumerate(categories):
        x = LEFT + room * (k + 0.5)
        parts.append(f'<text x="{x:.1f}" y="{y(0) + 12:.1f}" text-anchor="end" '
                     f'transform="rotate(-40 {x:.1f} {y(0) + 12:.1f})">{escape(category)}</text>')
    _legend(parts, series)
    _write(path, parts)


def lines(path, title, curves):
    """curves: {name: [(x, y)]}; x on a logarithmic scale"""
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return
    values = [value for _, value in points]
    low, high = min(values), max(values)
    margin = max((high - low) * 0.1, 0.05)
    parts, y = _frame(title, max(0, low - margin), high + margin)
    xs = sorted({x for x, _ in points})
    span = math.log(xs[-1] / xs[0]) or 1

    def place(x):
        return LEFT + 20 + (WIDTH - LEFT - RIGHT - 40) * math.log(x / xs[0]) / span

    for x in xs:
        parts.append(f'<text x="{place(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    for i, curve in enumerate(curves.values()):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(f"{place(x):.1f},{y(value):.1f}" for x, value in sorted(curve))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{place(x):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>'
                  for x, value in curve]
    _legend(parts, curves)
    _write(path, parts)

"""Plots as inline SVG: drawn by hand, coloured by the page's own variables, readable without them by their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH = 720
COLOURS = 6
LEFT = 210
ROW = 20
NAME, LEGEND = 28, 20
"""Letters of a name in front of its line, and beside a curve."""

Point = tuple[float, float]


def forest(title: str, rows: Sequence[tuple[str, str, float, float, float]]) -> str:
    """Means with intervals: (group, name, mean, low, high), one line each, groups under their heading."""
    groups: dict[str, list[tuple[str, float, float, float]]] = {}
    for group, name, mean, low, high in rows:
        groups.setdefault(group, []).append((name, mean, low, high))
    names = list(dict.fromkeys(name for _, name, *_ in rows))
    lowest = max(0.0, min(low for _, _, _, low, _ in rows) - 0.05)
    highest = min(1.0, max(high for *_, high in rows) + 0.05)
    span = max(highest - lowest, 1e-9)

    def across(value: float) -> float:
        return LEFT + (value - lowest) / span * (WIDTH - LEFT - 60)

    parts: list[str] = []
    y = 34
    for group, members in groups.items():
        parts.append(_text(4, y, group, "strong"))
        y += ROW
        for name, mean, low, high in members:
            colour = f"c{names.index(name) % COLOURS}"
            parts.append(_text(14, y, name, most=NAME))
            parts.append(
                f'<line class="{colour}" x1="{across(low):.1f}" x2="{across(high):.1f}" y1="{y - 4}" y2="{y - 4}"/>'
            )
            parts.append(f'<circle class="{colour}" cx="{across(mean):.1f}" cy="{y - 4}" r="4"/>')
            parts.append(_text(WIDTH - 50, y, f"{mean:.3f}"))
            y += ROW
    ticks = "".join(_tick(across(lowest + span * step / 4), y, lowest + span * step / 4) for step in range(5))
    return _svg(title, y + 24, "".join(parts) + ticks)


def lines(title: str, series: Mapping[str, Sequence[Point]], x_name: str, y_name: str) -> str:
    """Curves over a shared axis, each with its own colour and dashes, and a legend."""
    points = [point for curve in series.values() for point in curve]
    x0, x1 = min(x for x, _ in points), max(x for x, _ in points)
    y0, y1 = min(y for _, y in points), max(y for _, y in points)
    margin = max((y1 - y0) * 0.1, 0.005)
    y0, y1 = y0 - margin, y1 + margin
    bottom, top, left, right = 260, 34, 60, WIDTH - 190

    def place(point: Point) -> str:
        across = left + (point[0] - x0) / max(x1 - x0, 1e-9) * (right - left)
        return f"{across:.1f},{bottom - (point[1] - y0) / (y1 - y0) * (bottom - top):.1f}"

    parts = [f'<path class="axis" d="M{left},{top} V{bottom} H{right}"/>']
    for step in range(5):
        value = y0 + (y1 - y0) * step / 4
        parts.append(_text(8, bottom - (bottom - top) * step / 4 + 4, f"{value:.3f}"))
        parts.append(_tick(left + (right - left) * step / 4, bottom, x0 + (x1 - x0) * step / 4))
    for number, (name, curve) in enumerate(series.items()):
        style = f"c{number % COLOURS} d{number // COLOURS % 3}"
        parts.append(f'<polyline class="{style}" points="{" ".join(place(point) for point in sorted(curve))}"/>')
        height = top + 8 + number * 18
        parts.append(f'<line class="{style}" x1="{right + 14}" x2="{right + 34}" y1="{height}" y2="{height}"/>')
        parts.append(_text(right + 40, height + 4, name, most=LEGEND))
    parts.append(_text(left, bottom + 36, f"{x_name} → ; ↑ {y_name}"))
    return _svg(title, max(bottom + 46, top + 18 * len(series) + 20), "".join(parts))


def _svg(title: str, height: float, body: str) -> str:
    label = escape(title)
    head = f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {height:.0f}">'
    return f"{head}<title>{label}</title>{_text(4, 14, title, 'strong')}{body}</svg>"


def _text(x: float, y: float, text: str, style: str = "", *, most: int | None = None) -> str:
    """What has no room loses its middle: names of systems begin alike and differ at their end. The whole is a tip."""
    place, tip, shown = f'x="{x:.1f}" y="{y:.1f}"', "", text
    if most is not None and len(text) > most:
        tip, shown = f"<title>{escape(text)}</title>", f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"
    return f"<text {place}{f' class={chr(34)}{style}{chr(34)}' if style else ''}>{tip}{escape(shown)}</text>"


def _tick(x: float, y: float, value: float) -> str:
    return f'<path class="axis" d="M{x:.1f},{y:.1f} v4"/>{_text(x - 12, y + 18, f"{value:.3g}")}'

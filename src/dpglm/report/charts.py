"""The charts of a report, as inline SVG that fits any width; empty text if there is nothing to draw.

Places along the width are shares of it, written in percent, so a chart stretches with its column while its
text keeps the size of the page's. Places along the height are pixels. Colours are the page's variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..display import Html, element
from .text import Row, number, percent, percent_up, tiny, up

_ROW = 38


def guess(right: float) -> Html:
    """How far the chance of a right guess can rise above that of a coin toss."""
    share = 2 * (right - 0.5)
    label = percent_up(right)
    # a label near an end is anchored there, so that it stays inside
    anchor = "start" if share < 0.12 else "end" if share > 0.88 else "middle"
    return chart(
        "guess", f"Chance of a right guess: at most {label}",
        f"A bar from 50 %, a coin toss, to 100 %, certainty. This model reaches at most {label}.", 74,
        [
            rect(0, 30, 1, 14, "track", 7),
            rect(0, 30, max(share, 0.012), 14, "accent", 7),
            line(share, 24, share, 50, "tick"),
            text(share, 18, label, "strong", anchor),
            text(0, 66, "50 %: a coin toss", "soft"),
            text(1, 66, "100 %: certain", "soft", "end"),
        ],
    )  # fmt: skip


def curve(points: Sequence[Sequence[float]], marks: Sequence[tuple[str, float, float]]) -> Html:
    """All pairs of epsilon and delta that hold; the marks are names, epsilons and deltas of some of them."""
    drawn = [(x, d) for x, d in points if d > 0]
    farthest = max((x for x, _ in drawn), default=0.0)
    if farthest <= 0:
        return ""
    top, height, deepest = 22.0, 230.0, max(-12.0, math.floor(math.log10(min(d for _, d in drawn))))

    def place(x: float, d: float) -> tuple[float, float]:
        return x / farthest, math.log10(d) / deepest

    shapes = []
    places = [place(x, d) for x, d in drawn]
    shapes.append(path([(0.0, 0.0), *places, (1.0, 0.0)], height, top, "area"))
    for exponent in range(0, round(-deepest) + 1, 3):
        y = top + height * exponent / -deepest
        shapes.append(line(0, y, 1, y, "grid"))
        if y < top + height:  # the curve ends in the corner
            shapes.append(text(1, y + 14, tiny(10.0**-exponent), "soft small", "end", -6))
    for x in _ticks(farthest):
        shapes += [
            line(x / farthest, top + height, x / farthest, top + height + 5, "tick"),
            text(x / farthest, top + height + 20, f"{x:g}", "soft small", _anchor(x / farthest)),
        ]
    shapes += [
        path(places, height, top, "stroke"),
        text(0.5, top + height + 38, "epsilon", "soft small", "middle"),
        text(1, top - 8, "delta", "soft small", "end", -6),
    ]
    inside = [(name, x, d) for name, x, d in marks if 0 <= x <= farthest and math.log10(d) >= deepest]
    for name, x, d in inside:
        a, b = place(x, d)
        end = a > 0.45  # below the curve there is room on the left, at its beginning on the right
        anchor, shift = ("end", -10) if end else ("start", 10)
        y = top + height * b
        label = text(a, y + 13, f"epsilon {up(x, 3)}", "strong small", anchor, shift, f" at {name}")
        shapes += [dot(a, y, 5, "mark"), label]
    description = "; ".join(f"at delta {tiny(d)} epsilon is {up(x)}" for _, x, d in inside)
    return chart(
        "curve", "Every pair of epsilon and delta that holds",
        f"A falling curve: the larger epsilon, the smaller delta. {description}.", top + height + 46, shapes,
    )  # fmt: skip


def shares(parts: Sequence[tuple[str, float]], name: str, title: str) -> Html:
    """One bar, divided by shares that add up to 1 at most; their names belong into a list beside it."""
    shapes, start = [rect(0, 4, 1, 26, "track", 4)], 0.0
    for k, (_, share) in enumerate(parts):
        shapes.append(rect(start, 4, max(share - 0.003, 0.001), 26, f"part{k % 6}", 3))
        if share > 0.2:  # narrower ones have no room for it on a phone
            shapes.append(text(start + share / 2, 22, percent(share), "onpart small", "middle"))
        start += share
    description = "; ".join(f"{words} {percent(share)}" for words, share in parts)
    return chart(name, title, description, 34, shapes)


def forest(
    name: str, title: str, rows: Sequence[Row], unit: str, axis: tuple[float, float] | None = None
) -> Html:
    """Values with intervals, one below the other, on an axis that by default includes 0.

    A row has name, words, value, low and high; its words ``more`` are left out where there is little room.
    """
    ends = [0.0, *(end for row in rows for end in (row["value"], row["low"], row["high"]) if end is not None)]
    low, high = axis or (min(ends), max(ends))
    if not rows or not math.isfinite(high - low) or high == low:
        return ""
    pad = 0.02 * (high - low)
    low, high = low - pad, high + pad

    def place(value: float) -> float:
        return float((value - low) / (high - low))

    bottom = _ROW * len(rows) + 6
    zero = place(0.0)
    shapes = [line(zero, 4, zero, bottom, "zero")] if axis is None else []
    for tick in _ticks(high - low, low):
        shapes += [
            line(place(tick), 4, place(tick), bottom, "grid") if tick or axis else "",
            text(place(tick), bottom + 16, f"{tick:g}", "soft small", _anchor(place(tick))),
        ]
    for k, row in enumerate(rows):
        y = _ROW * k + 28.0
        kind = "plus" if row["value"] >= 0 else "minus"
        at = place(row["value"])
        shapes += [
            text(0, y - 10, _short(row["name"]), "label halo"),
            text(1, y - 10, row["words"], "soft small halo", "end", more=row["more"]),
            line(zero, y, at, y, f"stem {kind}")
            if row["low"] is None
            else line(place(row["low"]), y, place(row["high"]), y, f"interval {kind}"),
            dot(at, y, 4.5, f"mark {kind}"),
        ]
    shapes.append(text(0.5, bottom + 34, unit, "soft small", "middle"))
    description = "; ".join(f"{row['name']} {row['words']}{row['more']}" for row in rows)
    return chart(name, title, description, bottom + 42, shapes)


def scores(rows: Sequence[Row]) -> Html:
    """Scores between 0 and 1 with their intervals."""
    if not rows:
        return ""
    low = max(0.0, math.floor(20 * min(row["low"] for row in rows) - 1) / 20)
    high = min(1.0, math.ceil(20 * max(row["high"] for row in rows) + 1) / 20)
    drawn = [
        {
            "name": row["metric"],
            "words": number(row["value"], 3),
            "more": f" ({number(row['low'], 3)} to {number(row['high'], 3)})",
            **{end: min(max(row[end], low), high) for end in ("value", "low", "high")},
        }
        for row in rows
    ]
    return forest("scores", "Private scores with intervals", drawn, "score", (low, high))


def _anchor(share: float) -> str:
    # half a label is 6 % of the width of a phone
    return "start" if share < 0.06 else "end" if share > 0.94 else "middle"


def _short(name: str, limit: int = 32) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


def _ticks(width: float, start: float = 0.0) -> list[float]:
    """Round numbers inside of a range: about four."""
    raw = width / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda one: abs(one - raw))
    first = math.ceil(start / step - 1e-9)
    count = math.floor((start + width) / step + 1e-9) - first + 1
    return [round((first + k) * step, 12) + 0.0 for k in range(count)]


def chart(name: str, title: str, description: str, height: float, shapes: Iterable[Html]) -> Html:
    """A chart with its text alternative; the name is unique on its page."""
    return element(
        "svg", element("title", title, id=f"{name}-t"), element("desc", description, id=f"{name}-d"), *shapes,
        kind="chart", role="img", width="100%", height=height, aria_labelledby=f"{name}-t {name}-d",
    )  # fmt: skip


def rect(x: float, y: float, width: float, height: float, kind: str, rounding: float = 0) -> Html:
    """A bar; x and width are shares of the width of the chart."""
    return element(
        "rect", kind=kind, x=_percent(x), y=y, width=_percent(width), height=height, rx=rounding
    )  # fmt: skip


def line(x: float, y: float, to_x: float, to_y: float, kind: str) -> Html:
    """A straight line."""
    return element("line", kind=kind, x1=_percent(x), y1=y, x2=_percent(to_x), y2=to_y)


def dot(x: float, y: float, radius: float, kind: str) -> Html:
    """A filled circle."""
    return element("circle", kind=kind, cx=_percent(x), cy=y, r=radius)


def text(
    x: float, y: float, words: str, kind: str = "", anchor: str = "start", shift: float = 0, more: str = ""
) -> Html:
    """Text at (x, y), moved by `shift` pixels; `more` is appended where the page is wide enough."""
    rest = element("tspan", more, kind="more") if more else ""
    return element("text", words, rest, kind=kind, x=_percent(x), y=y, dx=shift or None, text_anchor=anchor)


def path(points: Iterable[tuple[float, float]], height: float, top: float, kind: str) -> Html:
    """A line through points, or the area that it surrounds: shares of the width, and of the height."""
    steps = "L".join(f"{1000 * x:.1f} {height * y:.1f}" for x, y in points)
    return element(
        "svg", element("path", kind=kind, d=f"M{steps}"), x=0, y=top, width="100%", height=height,
        viewBox=f"0 0 1000 {height:g}", preserveAspectRatio="none",
    )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"

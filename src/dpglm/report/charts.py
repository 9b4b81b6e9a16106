"""The charts of a report. Each takes plain values and returns SVG, or nothing if there is nothing to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import svg
from .text import number, percent, percent_up, tiny, up

_ROW = 38


def guess(right: float) -> str:
    """How far the chance of a right guess can rise above that of a coin toss."""
    place = 2 * (right - 0.5)
    said = percent_up(right)
    # a label near an end is anchored there, so that it stays inside
    anchor = "start" if place < 0.12 else "end" if place > 0.88 else "middle"
    return svg.chart(
        "guess", f"Chance of a right guess: at most {said}",
        f"A bar from 50 %, a coin toss, to 100 %, certainty. This model reaches at most {said}.", 74,
        [
            svg.rect(0, 30, 1, 14, "track", 7),
            svg.rect(0, 30, max(place, 0.012), 14, "accent", 7),
            svg.line(place, 24, place, 50, "tick"),
            svg.text(place, 18, said, "strong", anchor),
            svg.text(0, 66, "50 %: a coin toss", "soft"),
            svg.text(1, 66, "100 %: certain", "soft", "end"),
        ],
    )  # fmt: skip


def curve(points: Sequence[Sequence[float]], marks: Sequence[tuple[str, float, float]]) -> str:
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
    shapes.append(svg.path([(0.0, 0.0), *places, (1.0, 0.0)], height, top, "area"))
    for exponent in range(0, round(-deepest) + 1, 3):
        y = top + height * exponent / -deepest
        shapes.append(svg.line(0, y, 1, y, "grid"))
        if y < top + height:  # the curve ends in the corner
            shapes.append(svg.text(1, y + 14, tiny(10.0**-exponent), "soft small", "end", -6))
    for x in _ticks(farthest):
        shapes += [
            svg.line(x / farthest, top + height, x / farthest, top + height + 5, "tick"),
            svg.text(x / farthest, top + height + 20, f"{x:g}", "soft small", _anchor(x / farthest)),
        ]
    shapes += [
        svg.path(places, height, top, "stroke"),
        svg.text(0.5, top + height + 38, "epsilon", "soft small", "middle"),
        svg.text(1, top - 8, "delta", "soft small", "end", -6),
    ]
    inside = [(name, x, d) for name, x, d in marks if 0 <= x <= farthest and math.log10(d) >= deepest]
    for name, x, d in inside:
        a, b = place(x, d)
        end = a > 0.45  # below the curve there is room on the left, at its beginning on the right
        shift = -10 if end else 10
        shapes += [
            svg.dot(a, top + height * b, 5, "mark"),
            svg.text(
                a,
                top + height * b + 13,
                f"epsilon {up(x, 3)}",
                "strong small",
                "end" if end else "start",
                shift,
                f" at {name}",
            ),
        ]
    said = "; ".join(f"at delta {tiny(d)} epsilon is {up(x)}" for _, x, d in inside)
    return svg.chart(
        "curve", "Every pair of epsilon and delta that holds",
        f"A falling curve: the larger epsilon, the smaller delta. {said}.", top + height + 46, shapes,
    )  # fmt: skip


def shares(parts: Sequence[tuple[str, float]], name: str, title: str) -> str:
    """One bar, divided by shares that add up to 1 at most; their names belong into a list beside it."""
    shapes, start = [svg.rect(0, 4, 1, 26, "track", 4)], 0.0
    for k, (_, share) in enumerate(parts):
        shapes.append(svg.rect(start, 4, max(share - 0.003, 0.001), 26, f"part{k % 6}", 3))
        if share > 0.2:  # narrower ones have no room for it on a phone
            shapes.append(svg.text(start + share / 2, 22, percent(share), "onpart small", "middle"))
        start += share
    said = "; ".join(f"{words} {percent(share)}" for words, share in parts)
    return svg.chart(name, title, said, 34, shapes)


def forest(name: str, title: str, rows: Sequence[dict[str, Any]], unit: str) -> str:
    """Values with intervals, one below the other, around 0. A row has name, words, value, low and high.

    Where there is little room, the words that are ``more`` are left out.
    """
    ends = [end for row in rows for end in (row["value"], row["low"], row["high"]) if end is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    if not rows or not math.isfinite(high - low) or high == low:
        return ""
    pad = 0.02 * (high - low)
    low, high = low - pad, high + pad

    def place(value: float) -> float:
        return float((value - low) / (high - low))

    bottom = _ROW * len(rows) + 6
    zero = place(0.0)
    shapes = [svg.line(zero, 4, zero, bottom, "zero")]
    for tick in _ticks(high - low, low):
        shapes += [
            svg.line(place(tick), 4, place(tick), bottom, "grid") if tick else "",
            svg.text(place(tick), bottom + 16, f"{tick:g}", "soft small", _anchor(place(tick))),
        ]
    for k, row in enumerate(rows):
        y = _ROW * k + 28.0
        kind = "plus" if row["value"] >= 0 else "minus"
        shapes += [
            svg.text(0, y - 10, _short(row["name"]), "label halo"),
            svg.text(1, y - 10, row["words"], "soft small halo", "end", more=row["more"]),
        ]
        if row["low"] is None:
            shapes.append(svg.line(zero, y, place(row["value"]), y, f"stem {kind}"))
        else:
            shapes.append(svg.line(place(row["low"]), y, place(row["high"]), y, f"interval {kind}"))
        shapes.append(svg.dot(place(row["value"]), y, 4.5, f"mark {kind}"))
    shapes.append(svg.text(0.5, bottom + 34, unit, "soft small", "middle"))
    said = "; ".join(f"{row['name']} {row['words']}{row['more']}" for row in rows)
    return svg.chart(name, title, said, bottom + 42, shapes)


def scores(rows: Sequence[dict[str, Any]]) -> str:
    """Scores between 0 and 1 with their intervals."""
    if not rows:
        return ""
    shapes = []
    low = max(0.0, math.floor(20 * min(row["low"] for row in rows) - 1) / 20)
    high = min(1.0, math.ceil(20 * max(row["high"] for row in rows) + 1) / 20)

    def place(value: float) -> float:
        return float((min(max(value, low), high) - low) / (high - low))

    for k, row in enumerate(rows):
        y = _ROW * k + 28.0
        shapes += [
            svg.line(0, y, 1, y, "grid"),
            svg.line(place(row["low"]), y, place(row["high"]), y, "interval plus"),
            svg.dot(place(row["value"]), y, 4.5, "mark plus"),
            svg.text(0, y - 10, row["metric"], "label"),
            svg.text(1, y - 10, f"{number(row['value'], 3)} ({_ends(row)})", "soft small", "end"),
        ]
    y = _ROW * len(rows) + 20
    shapes += [svg.text(0, y, f"{low:g}", "soft small"), svg.text(1, y, f"{high:g}", "soft small", "end")]
    said = "; ".join(f"{row['metric']} {number(row['value'])}, from {_ends(row)}" for row in rows)
    return svg.chart("scores", "Private scores with intervals", said, y + 6, shapes)


def _ends(row: dict[str, Any]) -> str:
    return f"{number(row['low'], 3)} to {number(row['high'], 3)}"


def _anchor(place: float) -> str:
    return "start" if place < 0.03 else "end" if place > 0.97 else "middle"


def _short(name: str, most: int = 32) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _ticks(width: float, start: float = 0.0) -> list[float]:
    """Round numbers inside of a range: about four."""
    raw = width / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = min((size * factor for factor in (1, 2, 5, 10)), key=lambda one: abs(one - raw))
    first = math.ceil(start / step - 1e-9)
    count = math.floor((start + width) / step + 1e-9) - first + 1
    return [round((first + k) * step, 12) + 0.0 for k in range(count)]

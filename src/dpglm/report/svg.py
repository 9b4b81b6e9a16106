"""Pieces of charts as inline SVG that fits any width.

Places along the width are shares of it, written in percent, so a chart stretches with its column while its
text keeps the size of the page's. Places along the height are pixels. Colours are the page's variables. All
functions take plain text.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def chart(name: str, title: str, description: str, height: float, shapes: Iterable[str]) -> str:
    """A chart with its text alternative; the name is unique on its page."""
    return (
        f'<svg class="chart" role="img" width="100%" height="{height:g}" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>'
        f"{''.join(shapes)}</svg>"
    )


def rect(x: float, y: float, width: float, height: float, kind: str, rounding: float = 0) -> str:
    """A bar from a share of the width, so many shares wide."""
    return (
        f'<rect class="{kind}" x="{_percent(x)}" y="{y:g}" width="{_percent(width)}" height="{height:g}"'
        f' rx="{rounding:g}"/>'
    )


def line(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{_percent(x)}" y1="{y:g}" x2="{_percent(to_x)}" y2="{to_y:g}"/>'


def dot(x: float, y: float, radius: float, kind: str) -> str:
    """A filled circle."""
    return f'<circle class="{kind}" cx="{_percent(x)}" cy="{y:g}" r="{radius:g}"/>'


def text(
    x: float, y: float, words: str, kind: str = "", anchor: str = "start", shift: float = 0, more: str = ""
) -> str:
    """Words at a place, or so many pixels beside it, and more words where there is room for them."""
    moved = f' dx="{shift:g}"' if shift else ""
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    classed = f' class="{kind}"' if kind else ""
    rest = f'<tspan class="more">{escape(more)}</tspan>' if more else ""
    return f'<text x="{_percent(x)}" y="{y:g}"{moved}{anchored}{classed}>{escape(words)}{rest}</text>'


def path(points: Iterable[tuple[float, float]], height: float, top: float, kind: str) -> str:
    """A line through points, or the area that it surrounds: shares of the width, and of the height."""
    steps = "L".join(f"{1000 * x:.1f} {height * y:.1f}" for x, y in points)
    return (
        f'<svg x="0" y="{top:g}" width="100%" height="{height:g}" viewBox="0 0 1000 {height:g}"'
        f' preserveAspectRatio="none"><path class="{kind}" d="M{steps}"/></svg>'
    )


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"

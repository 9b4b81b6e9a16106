"""How promises, plans and audits look in a notebook: HTML that needs nothing but itself.

There is no script, no style sheet and no address in it. Text takes its colour from the page, and lines are
half transparent, so that it can be read on light and on dark pages. All functions take plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_LINE = "1px solid rgba(128,128,128,.35)"
_CARD = f"border:{_LINE};border-radius:8px;padding:12px 16px;max-width:860px;line-height:1.45"
_BADGE = "color:#fff;border-radius:9px;padding:1px 9px;margin-right:8px;font-size:85%;white-space:nowrap"
_GOOD, _BAD = "#1a7f37", "#c62828"
_TABLE = "border-collapse:collapse;margin:10px 0;text-align:left;color:inherit;font-size:92%"
_ROW = "background:transparent;color:inherit"
_CELL = (
    f"text-align:left;vertical-align:top;padding:3px 14px 3px 0;border:0;border-bottom:{_LINE};max-width:none"
)
_NAME = f"{_CELL};opacity:.7;white-space:nowrap;font-weight:normal"
_FIGURE = "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"


def card(badge: str, good: bool, title: str, *parts: str) -> str:
    """A frame with a coloured badge and a title over parts that are HTML already."""
    return f'<div style="{_CARD}"><div>{_mark(badge, good)}<b>{escape(title)}</b></div>{"".join(parts)}</div>'


def marked(badge: str, good: bool, words: str) -> str:
    """A line of text behind a coloured badge."""
    return f'<div style="margin-top:12px">{_mark(badge, good)}{escape(words)}</div>'


def paragraph(words: str) -> str:
    """Text, or nothing if there is none."""
    return f'<div style="margin-top:6px">{escape(words)}</div>' if words else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a head, or nothing if it has no rows."""
    body = [_row(*map(_cell, row)) for row in rows]
    head = _row(*(_head("col", name) for name in columns))
    return _table(head, *body) if body else ""


def figures(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of numbers, aligned on the right, with a name at the start of each row."""
    head = _row(_head("col", columns[0]), *(_head("col", name, _FIGURE) for name in columns[1:]))
    body = (_row(_head("row", name), *(_cell(number, _FIGURE) for number in rest)) for name, *rest in rows)
    return _table(head, *body)


def releases(rows: Iterable[Sequence[str]]) -> str:
    """A table of releases."""
    return table(("times", "release", "mechanism", "noise", "sensitivity", "records"), rows)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with what there is to say of each."""
    return _table(*(_row(_head("row", name), _cell(words)) for name, words in pairs))


def folded(title: str, items: Iterable[str]) -> str:
    """A list that unfolds when its title is clicked."""
    lines = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f'<details><summary style="cursor:pointer">{escape(title)}</summary><ul>{lines}</ul></details>'


def _table(*rows: str) -> str:
    return f'<table style="{_TABLE}">{"".join(rows)}</table>'


def _row(*cells: str) -> str:
    return f'<tr style="{_ROW}">{"".join(cells)}</tr>'


def _mark(badge: str, good: bool) -> str:
    return f'<span style="{_BADGE};background:{_GOOD if good else _BAD}">{escape(badge)}</span>'


def _head(scope: str, name: str, style: str = "") -> str:
    return f'<th scope="{scope}" style="{_styled(_NAME, style)}">{escape(name)}</th>'


def _cell(words: str, style: str = "") -> str:
    return f'<td style="{_styled(_CELL, style)}">{escape(words)}</td>'


def _styled(style: str, more: str) -> str:
    return f"{style};{more}" if more else style

"""Parts of the report's page. All functions take plain text and escape it, unless they say HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

THIS = ' class="this"'
"""Marks a row that stands out."""


def section(name: str, title: str, *parts: str) -> str:
    """A section of HTML parts that the contents can point to."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{escape(title)}</h2>'
        f"{''.join(parts)}</section>"
    )


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph, or nothing if there are no words."""
    classed = f' class="{kind}"' if kind else ""
    return f"<p{classed}>{escape(words)}</p>" if words else ""


def heading(words: str) -> str:
    """A heading inside of a section."""
    return f"<h3>{escape(words)}</h3>"


def figure(chart: str, caption: str, below: str = "") -> str:
    """A chart in HTML under its caption; nothing without a chart."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{chart}{below}</figure>" if chart else ""


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with what there is to say of each."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in pairs)
    return f'<dl class="facts">{rows}</dl>' if rows else ""


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """Few important numbers: each with what it is."""
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="tiles">{cells}</dl>'


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, figures: Iterable[int] = (),
    whole: Iterable[int] = (), marked: Iterable[int] = (), stack: bool = True,
) -> str:  # fmt: skip
    """A table whose first column names its rows; it scrolls sideways in its own box.

    Parameters
    ----------
    figures : iterable of int
        Columns that hold numbers, which are aligned on the right.
    whole : iterable of int
        Columns whose words stay in one line.
    marked : iterable of int
        Rows that stand out.
    stack : bool
        Whether a phone shows each row as a block of lines; the roles then say that it is a table still.
    """
    kinds = {k: ' class="w"' for k in whole} | {k: ' class="n"' for k in figures}
    stand_out = set(marked)

    def cell(k: int, words: str, head: str) -> str:
        kind = kinds.get(k, "") + role("rowheader" if head == "row" else "columnheader" if head else "cell")
        if head:
            return f'<th scope="{head}"{kind}>{escape(words)}</th>'
        named = f' data-name="{escape(columns[k])}"' if stack else ""
        return f"<td{kind}{named}>{escape(words)}</td>"

    def role(name: str) -> str:
        return f' role="{name}"' if stack else ""

    head = "".join(cell(k, words, "col") for k, words in enumerate(columns))
    body = "".join(
        f"<tr{THIS if number in stand_out else ''}{role('row')}>"
        + "".join(cell(k, words, "" if k else "row") for k, words in enumerate(row))
        + "</tr>"
        for number, row in enumerate(rows)
    )
    if not body:
        return ""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"<table{' class=stack' if stack else ''}{role('table')}><caption>{escape(caption)}</caption>"
        f"<thead{role('rowgroup')}><tr{role('row')}>{head}</tr></thead>"
        f"<tbody{role('rowgroup')}>{body}</tbody></table></div>"
    )


def legend(rows: Iterable[tuple[str, str, str]]) -> str:
    """What the colours of a chart are for: class of the colour, words, number."""
    items = "".join(
        f'<li><i class="{kind}"></i><span>{escape(words)}</span><b>{escape(value)}</b></li>'
        for kind, words, value in rows
    )
    return f'<ul class="legend">{items}</ul>'


def items(words: Iterable[str]) -> str:
    """A list."""
    rows = "".join(f"<li>{escape(one)}</li>" for one in words)
    return f'<ul class="plain">{rows}</ul>'


def code(words: str) -> str:
    """Text as it was written."""
    return f"<pre>{escape(words)}</pre>"


def folded(title: str, inside: str) -> str:
    """HTML that unfolds when its title is clicked, and is printed unfolded."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"

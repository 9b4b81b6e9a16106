"""One writer of HTML and SVG: elements, and the parts of which notebooks and reports consist.

Text becomes HTML in `render`, which escapes it. Elements have classes: a page has a style sheet for
them; in a notebook, which may strip one, they become style attributes. There is no script and no address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

Html: TypeAlias = "Element | str | Sequence[Html]"
"""Elements, plain text, and sequences of both; empty text is nothing."""

_LINE = "1px solid rgba(128,128,128,.35)"
_CELL = (
    f"text-align:left;vertical-align:top;padding:3px 14px 3px 0;border:0;border-bottom:{_LINE};max-width:none"
)
_NAME = f"{_CELL};opacity:.7;white-space:nowrap;font-weight:normal"
NOTEBOOK = {
    "card": f"border:{_LINE};border-radius:8px;padding:12px 16px;max-width:860px;line-height:1.45",
    "badge": "color:#fff;border-radius:9px;padding:1px 9px;margin-right:8px;font-size:85%;"
    "white-space:nowrap;background:#1a7f37",
    "bad": "background:#c62828",
    "block": "margin-top:12px",
    "p": "margin:6px 0 0",
    "table": "border-collapse:collapse;margin:10px 0;text-align:left;color:inherit;font-size:92%",
    "tr": "background:transparent;color:inherit",
    "facts": "display:grid;grid-template-columns:max-content minmax(0,1fr);margin:10px 0;font-size:92%",
    "dt": f"{_NAME};float:none;width:auto",
    "dd": f"{_CELL};margin:0;width:auto;overflow-wrap:anywhere",
    "td": _CELL,
    "th": _NAME,
    "n": "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums",
    "summary": "cursor:pointer",
}
"""Styles of tags and classes in a notebook, for light and dark pages: text has the colour of the page, and
lines are half transparent."""

_EMPTY = ("circle", "line", "path", "rect")


@dataclass(frozen=True)
class Element:
    """A tag with its attributes and its content."""

    tag: str
    content: Sequence[Html]
    attributes: Mapping[str, str | float | None]


def element(tag: str, *content: Html, kind: str = "", **attributes: str | float | None) -> Element:
    """An element of the class ``kind``; names of attributes have "_" for "-", and None leaves one out."""
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    return Element(tag, content, {"class": kind or None, **named})


def render(content: Html, styles: Mapping[str, str] | None = None) -> str:
    """HTML text. With ``styles`` for tags and classes, classes become style attributes."""
    if isinstance(content, str):
        return escape(content)
    if not isinstance(content, Element):
        return "".join(render(part, styles) for part in content)
    tag, attributes = content.tag, dict(content.attributes)
    if styles is not None:
        names = (tag, *str(attributes.pop("class", None) or "").split())
        attributes["style"] = ";".join(styles[name] for name in names if name in styles) or None
    written = "".join(
        f' {name}="{escape(value) if isinstance(value, str) else f"{value:g}"}"'
        for name, value in attributes.items()
        if value is not None
    )
    return (
        f"<{tag}{written}/>"
        if tag in _EMPTY
        else f"<{tag}{written}>{render(content.content, styles)}</{tag}>"
    )


def card(words: str, good: bool, title: str, *parts: Html) -> str:
    """HTML for a notebook: a frame with a coloured badge and a title over its parts."""
    head = element("div", badge(words, good), element("b", title))
    return render(element("div", head, *parts, kind="card"), NOTEBOOK)


def badge(words: str, good: bool) -> Element:
    """A coloured label."""
    return element("span", words, kind="badge" if good else "badge bad")


def paragraph(words: str, kind: str = "") -> Html:
    """A paragraph, or nothing if there are no words."""
    return element("p", words, kind=kind) if words else ""


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names with what there is to say of each."""
    return element("dl", [(element("dt", name), element("dd", words)) for name, words in pairs], kind="facts")


def items(words: Iterable[str]) -> Element:
    """A list."""
    return element("ul", [element("li", line) for line in words], kind="plain")


def folded(title: str, *inside: Html) -> Element:
    """What unfolds when its title is clicked."""
    return element("details", element("summary", title), *inside)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, names: bool = True, figures: Iterable[int] = (),
    whole: Iterable[int] = (), marked: Iterable[int] = (), caption: str = "", stack: bool = True,
) -> Html:  # fmt: skip
    """A table, or nothing if it has no rows.

    Parameters
    ----------
    names : bool
        Whether the first column names the rows.
    figures : iterable of int
        Columns that hold numbers, which are aligned on the right.
    whole : iterable of int
        Columns whose words stay in one line.
    marked : iterable of int
        Rows that stand out.
    caption : str
        A table with a caption scrolls sideways in its own box.
    stack : bool
        Whether a phone shows each row of such a table as a block of lines; the roles then say that it is a
        table still.
    """
    stack = stack and caption != ""
    kinds, stand_out = dict.fromkeys(whole, "w") | dict.fromkeys(figures, "n"), set(marked)

    def role(name: str) -> str | None:
        return name if stack else None

    def cell(k: int, words: str) -> Element:
        if names and k == 0:
            return element("th", words, scope="row", kind=kinds.get(k, ""), role=role("rowheader"))
        return element("td", words, kind=kinds.get(k, ""), role=role("cell"), data_name=role(columns[k]))

    def row(number: int, words: Sequence[str]) -> Element:
        cells = [cell(k, part) for k, part in enumerate(words)]
        return element("tr", *cells, kind="this" if number in stand_out else "", role=role("row"))

    head = [
        element("th", words, scope="col", kind=kinds.get(k, ""), role=role("columnheader"))
        for k, words in enumerate(columns)
    ]
    body = [row(number, words) for number, words in enumerate(rows)]
    if not body:
        return ""
    whole_table = element(
        "table",
        element("caption", caption) if caption else "",
        element("thead", element("tr", *head, role=role("row")), role=role("rowgroup")),
        element("tbody", *body, role=role("rowgroup")),
        kind="stack" if stack else "", role=role("table"),
    )  # fmt: skip
    if not caption:
        return whole_table
    return element("div", whole_table, kind="scroll", role="region", aria_label=caption, tabindex=0)


def releases(rows: Iterable[Sequence[str]]) -> Html:
    """A table of releases."""
    return table(("times", "release", "mechanism", "noise", "sensitivity", "records"), rows, names=False)

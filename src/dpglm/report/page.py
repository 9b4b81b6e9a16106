"""The report: one HTML page that needs nothing but itself, from a statement."""

from __future__ import annotations

from html import escape
from typing import Any

from .. import display

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;color:#1b1f24}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}code,pre{font-size:85%}"
    "pre{white-space:pre-wrap;background:#f6f8fa;padding:.8rem;border-radius:6px}"
    "@media(prefers-color-scheme:dark){body{background:#16181c;color:#e6e6e6}pre{background:#22252b}}"
)

_COLUMNS = ("times", "release", "mechanism", "noise", "sensitivity", "records", "share of the price")


def page(stated: dict[str, Any]) -> str:
    """The HTML text of a report."""
    privacy, private = stated["privacy"], stated["meaning"] is not None
    title = f"{stated['model']} for {stated['target']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        display.card("private" if private else "not private", private, stated["headline"],
                     display.paragraph(f"In words: {stated['meaning']}." if private else "")),
        "<h2>The promise</h2>",
        display.facts(
            [
                ("epsilon", str(privacy["epsilon"])),
                ("delta", str(privacy["delta"])),
                *([] if stated["mu"] is None else [("mu (Gaussian privacy)", f"{stated['mu']:.6g}")]),
                ("neighbours", stated["relation"]),
                *((f"public: {name}", str(value)) for name, value in privacy["public"].items()),
                ("composed", privacy["composition"]),
                ("randomness", privacy["randomness"]),
            ]
        ),
        "<h2>What was released</h2>",
        display.table(_COLUMNS, map(_release, stated["releases"])),
        *(part for fit in stated["fits"] for part in _coefficients(fit, stated["level"])),
        "<h2>What is not covered</h2>",
        "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in privacy["not_covered"]) + "</ul>",
        "<h2>Columns</h2>",
        f"<pre>{escape(stated['schema'])}</pre>",
        f"<p>Made by {escape(stated['software'])}. SHA-256 of the statement: ",
        f"<code>{stated['digest']}</code></p>",
    ]  # fmt: skip
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _release(line: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(line["count"]),
        f"{'then ' if line['follows'] else ''}{line['query']}",
        line["mechanism"],
        f"{line['noise']:.4g}",
        line["sensitivity"],
        line["sampling"],
        "" if line["share"] is None else f"{100 * line['share']:.1f} %",
    )


def _coefficients(fit: dict[str, Any], level: float) -> list[str]:
    outcome = f": {fit['outcome']}" if fit["outcome"] else ""
    head = f"<h2>Coefficients in units of the columns{escape(outcome)}</h2>"
    if not fit["determined"]:
        why = (
            "The solver of this fit releases no standard errors: these are estimates for prediction."
            if fit["determined"] is None
            else "Noise hides how far the coefficients may be off: no intervals can be stated."
        )
        rows = [(row["name"], f"{row['value']:.5g}") for row in fit["coefficients"]]
        return [head, display.paragraph(why), display.figures(("feature", "coefficient"), rows)]
    columns = ("feature", "coefficient", "standard error", "share of noise", "from", "to")
    rows_of = [
        (
            row["name"], f"{row['value']:.5g}", f"{row['standard_error']:.3g}",
            "" if row["privacy_share"] is None else f"{100 * row['privacy_share']:.0f} %",
            f"{row['low']:.5g}", f"{row['high']:.5g}",
        )
        for row in fit["coefficients"]
    ]  # fmt: skip
    said = f"{100 * level:g} % intervals count sampling and noise. {fit['estimand']}"
    return [head, display.paragraph(said), display.figures(columns, rows_of)]

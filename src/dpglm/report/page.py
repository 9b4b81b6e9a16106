"""The report: one HTML page that needs nothing but itself, from a statement."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from . import charts, html
from .html import STYLE
from .sections import audited, evaluated, model, not_covered, paid, promise, public, read, released, versions
from .text import percent_up, scene, tiny, units, up

_SECTIONS: tuple[tuple[str, str, Callable[[dict[str, Any]], str]], ...] = (
    ("promise", "The promise", promise),
    ("released", "What was released", released),
    ("model", "The model", model),
    ("scores", "How good it is", evaluated),
    ("table", "How the table was read", read),
    ("public", "What was treated as public", public),
    ("ledger", "The ledger", paid),
    ("audit", "The audit", audited),
    ("limits", "What is not covered", not_covered),
    ("origin", "Versions and hash", versions),
)


def page(stated: dict[str, Any]) -> str:
    """The HTML text of a report: no script, no address, all text escaped."""
    title = stated["model"] + (f" for {stated['target']}" if stated["target"] else "")
    found = [(name, head, make(stated)) for name, head, make in _SECTIONS]
    shown = [(name, head, body) for name, head, body in found if body]
    contents = "".join(f'<li><a href="#{name}">{escape(head)}</a></li>' for name, head, _ in shown)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Privacy report: {escape(title)}</title><style>{STYLE}</style></head><body>"
        '<a class="skip" href="#promise">Skip to the promise</a>'
        f'<header><p class="over">Privacy report</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(_subject(stated))}</p></header>'
        f'<main>{_card(stated)}<nav aria-label="Contents"><ul>{contents}</ul></nav>'
        f"{''.join(html.section(*one) for one in shown)}</main>"
        f"<footer><p>Made by {escape(stated['software'])} from released and public values only. SHA-256 of "
        f"the facts: <code>{stated['digest']}</code></p></footer></body></html>\n"
    )


def _subject(stated: dict[str, Any]) -> str:
    chosen = f", chosen by {stated['chosen_by']}" if stated["chosen_by"] else ""
    return (
        f"{stated['kind'].capitalize()} by {stated['solver']}{chosen}, fitted to "
        f"{units(stated)} with {stated['features']:,} features."
    )


def _card(stated: dict[str, Any]) -> str:
    """The promise for readers in a hurry."""
    found, private = stated["measures"], stated["private"]
    kind, word = ("", "Private") if private else (" bad", "Not private")
    parts = [f'<div class="card"><span class="badge{kind}">{word}</span>']
    if not private:
        parts.append(html.paragraph(stated["headline"], "say"))
    else:
        right = percent_up(found["guess"]["right"])
        parts += [
            html.paragraph(
                f"{scene(stated)} Without this model, a guess is right 50 % of the time. With everything "
                f"that was released here, it is right at most {right} of the time.",
                "say",
            ),
            charts.guess(found["guess"]["right"]),
        ]
    if found is not None:
        at = found["epsilons"][0]
        parts.append(
            html.tiles(
                [
                    ("mu, Gaussian differential privacy", up(found["mu"])),
                    (f"epsilon at delta {tiny(at['delta'], 2)}", up(at["epsilon"])),
                    ("releases", f"{sum(line['count'] for line in stated['releases']):,}"),
                    ("protected unit", stated["unit"]),
                ]
            )
        )
    return "".join([*parts, "</div>"])

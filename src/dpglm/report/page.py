"""The report: one self-contained HTML page, from a statement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from ..display import Html, badge, element, facts, folded, items, paragraph, render, table
from ..inference import FOR_PREDICTION
from . import charts
from .text import (
    coefficient,
    effect,
    meanings,
    number,
    percent,
    percent_up,
    scene,
    score_cells,
    subject,
    tiny,
    title,
    units,
    up,
)

Statement = dict[str, Any]


def page(stated: Statement) -> str:
    """The HTML text of a report: no script, no address, all text escaped."""
    chosen = f", chosen by {stated['chosen_by']}" if stated["chosen_by"] else ""
    contents = [element("li", element("a", head, href=f"#{name}")) for name, head, _ in _SECTIONS]
    sections = [
        element(
            "section", element("h2", head, id=f"{name}-h"), make(stated), id=name, aria_labelledby=f"{name}-h"
        )
        for name, head, make in _SECTIONS
    ]
    made = f"Made by {stated['software']} from released and public values only. SHA-256 of the facts: "
    body = [
        element("a", "Skip to the promise", kind="skip", href="#promise"),
        element(
            "header", element("p", "Privacy report", kind="over"), element("h1", title(stated)),
            element("p", f"{subject(stated, chosen)}.", kind="lead"),
        ),
        element(
            "main", _card(stated), element("nav", element("ul", *contents), aria_label="Contents"), *sections
        ),
        element("footer", element("p", made, element("code", stated["digest"]))),
    ]  # fmt: skip
    return _template().substitute(title=render(title(stated)), body=render(body))


@cache
def _template() -> Template:
    return Template((files(__package__) / "page.html").read_text(encoding="utf-8"))


def _card(stated: Statement) -> Html:
    """The promise for readers in a hurry."""
    measures, private = stated["measures"], stated["private"]
    if private:
        right = measures["guess"]["right"]
        parts = [
            paragraph(
                f"{scene(stated)} Without this model, a guess is right 50 % of the time. With everything "
                f"that was released here, it is right at most {percent_up(right)} of the time.",
                "say",
            ),
            charts.guess(right),
        ]
    else:
        parts = [paragraph(stated["headline"], "say")]
    if measures is not None:
        at = measures["epsilons"][0]
        numbers = [
            ("mu, Gaussian differential privacy", up(measures["mu"])),
            (f"epsilon at delta {tiny(at['delta'], 2)}", up(at["epsilon"])),
            ("releases", f"{sum(line['count'] for line in stated['releases']):,}"),
            ("protected unit", stated["unit"]),
        ]
        tiles = [element("div", element("dt", name), element("dd", value)) for name, value in numbers]
        parts.append(element("dl", *tiles, kind="tiles"))
    return element("div", badge("Private" if private else "Not private", private), *parts, kind="card")


def _figure(chart: Html, caption: str, below: Html = "") -> Html:
    """A chart under its caption; nothing without a chart."""
    return element("figure", element("figcaption", caption), chart, below) if chart else ""


def _legend(rows: Iterable[tuple[str, str, str]]) -> Html:
    """What the colours of a chart are for: class of the colour, words, number."""
    lines = [
        element("li", element("i", kind=kind), element("span", words), element("b", value))
        for kind, words, value in rows
    ]
    return element("ul", *lines, kind="legend")


def promise(stated: Statement) -> Html:
    """All usual parameters, the whole curve, and what the promise is about."""
    about = [
        ("protected unit", f"one {stated['unit']}"),
        ("neighbouring tables", stated["relation"]),
        ("composition", stated["privacy"]["composition"]),
        ("randomness", stated["privacy"]["randomness"]),
    ]
    measures = stated["measures"]
    if measures is None:
        return [paragraph(stated["headline"], "note alarm"), facts(about)]
    alarm = "" if stated["private"] else stated["headline"]
    guess = measures["guess"]
    rest = "" if measures["exact"] else f", and {number(measures['slack'], 2)} in delta"
    rows = []
    if measures["mu"] is not None:
        meaning = (
            f"the releases hide a {stated['unit']} as well as one Gaussian release of sensitivity mu and "
            f"deviation 1{rest}; smaller is more private"
        )
        rows.append(("mu", up(measures["mu"]), meaning))
    factor = number(math.exp(min(stated["privacy"]["epsilon"], 700.0)), 3)
    notes = [
        f": any result is at most {factor} times as likely with one table as with its neighbour, except with "
        "probability delta",
        *[""] * len(measures["epsilons"]),
    ]
    rows += [
        ("epsilon", up(line["epsilon"]), f"at delta = {tiny(line['delta'])}, {line['name']}{words}")
        for line, words in zip(measures["epsilons"], notes, strict=False)
    ]
    if measures["rho"] is not None:
        meaning = "zero-concentrated differential privacy, mu²/2; what sampling the noise adds is in delta"
        rows.append(("rho", up(measures["rho"]), meaning))
    rows += [
        ("right guesses", f"at most {percent_up(guess['right'])}",
         "between two equally likely neighbours, from the whole curve: (1 + delta at epsilon 0) / 2"),
        ("right guesses", f"at most {percent_up(guess['right_by_epsilon'])}",
         "from epsilon and delta of the fit alone, a weaker bound: (e^epsilon + delta) / (1 + e^epsilon)"),
        ("caught", f"at most {percent_up(guess['caught'])}",
         f"true positive rate of any test with a false positive rate of {percent(guess['false_alarms'])}"),
    ]  # fmt: skip
    marks = [(f"delta {tiny(line['delta'], 2)}", line["epsilon"], line["delta"])
             for line in measures["epsilons"] if not isinstance(line["epsilon"], str)]  # fmt: skip
    near = [mark for k, mark in enumerate(marks) if all(abs(math.log10(mark[2] / other[2])) > 0.7
            for other in marks[:k])]  # fmt: skip
    return [
        paragraph(alarm, "note alarm"),
        items(meanings(stated)),
        table(
            ("parameter", "value", "meaning"),
            rows,
            whole=(1,),
            caption="The promise in numbers, all rounded up",
        ),
        _figure(
            charts.curve(measures["curve"], near),
            "Every pair of epsilon and delta on the curve, or in the shaded area above it, is a "
            "guarantee that holds.",
        ),
        facts(about),
    ]


def releases(stated: Statement) -> Html:
    """Every release with its noise and its share of the price."""
    lines = stated["releases"]
    if not lines:
        return paragraph("Coefficients without noise.", "note alarm")
    parts = [(_named(line), line["share"]) for line in lines if line["share"] is not None]
    chart = charts.shares(parts, "shares", "Share of each release in the privacy cost") if parts else ""
    colours = _legend(
        (f"c{k % 6}", words, percent(share)) for k, (words, share) in enumerate(parts)
    )  # fmt: skip
    intro = (
        "The model was computed from these noisy answers and from nothing else. Noise is stated as a "
        f"multiple of the sensitivity: the most that one {stated['unit']} can change the exact answer."
    )
    if not parts:
        intro += " The shares of several fits, one of which is chosen, cannot be separated."
    rows = [
        (
            f"{'then ' if line['follows'] else ''}{line['query']}", f"{line['count']:,}", line["mechanism"],
            number(line["noise"]), line["sensitivity"], f"{line['entries']:,}", line["sampling"],
            percent(line["share"]) if line["share"] is not None else "",
        )
        for line in lines
    ]  # fmt: skip
    columns = ("release", "times", "mechanism", "noise", "sensitivity", "numbers", "records", "share")
    return [
        paragraph(intro),
        _figure(chart, "Shares of the privacy cost, in squared mu.", colours if len(parts) > 1 else ""),
        table(columns, rows, figures=(1, 3, 5, 7), caption="All releases"),
    ]


def _named(line: dict[str, Any]) -> str:
    return f"{line['count']:,} × {line['query']}"


MAX_ROWS = 400
"""Largest number of coefficients shown, in all fits together."""

MAX_PER_FIT = 40
MIN_PER_FIT = 8


def coefficients(stated: Statement) -> Html:
    """Coefficients in units of the columns, with intervals where the fit released them."""
    fits = stated["fits"]
    each = min(MAX_PER_FIT, max(MIN_PER_FIT, MAX_ROWS // len(fits)))
    shown = fits[: max(1, MAX_ROWS // each)]
    parts = [_fit(k, fit, stated, each) for k, fit in enumerate(shown)]
    if len(shown) < len(fits):
        parts.append(paragraph(f"{len(fits) - len(shown)} further outcomes are not shown.", "note"))
    return parts


def _fit(index: int, fit: dict[str, Any], stated: Statement, limit: int) -> Html:
    rows, private = fit["coefficients"], stated["private"]
    features = [row for row in rows if row["name"] != "intercept"]
    ordered = sorted(features, key=effect, reverse=True)[:limit]
    left_out = len(features) - len(ordered)
    chosen = set(map(id, ordered))
    listed = [row for row in rows if row["name"] == "intercept" or id(row) in chosen]
    ranges = all(row["range"] is not None for row in ordered)
    about = f"Coefficients{', ' + fit['outcome'] if fit['outcome'] else ''}"
    intro = _about_intervals(fit, stated["level"])
    if left_out:
        intro += f" Shown are {len(ordered):,} of {len(features):,} features: those that can change a "
        intro += "prediction most."
    unit = "change over the declared range of the feature" if ranges else "coefficient"
    caption = "Coefficients in units of the columns."
    if ranges:
        caption = (
            "The change of the linear predictor over the declared range of each feature. The numbers are "
            "coefficients in units of the column."
        )
    drawn = [_drawn(row, ranges, fit, private) for row in ordered]
    deviance, error = fit["deviance"] or (None, None)
    noisy = f"Released deviance: {number(deviance, 6)}, error by noise {number(error, 2)}."
    numbers = _numbers(listed, fit, private, about)
    return [
        element("h3", fit["outcome"]) if fit["outcome"] else "",
        paragraph(intro),
        _figure(charts.forest(f"forest{index}", about, drawn, unit), caption),
        folded(f"All {len(listed):,} numbers" if not left_out else "These numbers", numbers),
        paragraph("" if deviance is None else noisy),
    ]


def _about_intervals(fit: dict[str, Any], level: float) -> str:
    if fit["determined"] is None:
        return _sentence(FOR_PREDICTION)
    if not fit["determined"]:
        return f"There is too much noise for intervals: {fit['reason']}."
    return f"{100 * level:g} % intervals account for sampling and noise. {_sentence(fit['estimand'])}"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].rstrip('.')}."


def _numbers(rows: Sequence[dict[str, Any]], fit: dict[str, Any], private: bool, about: str) -> Html:
    """The coefficients as a table, with errors and intervals if they are determined."""
    columns = ["feature", "coefficient"]
    if fit["determined"]:
        columns += ["standard error", "of which noise", "from", "to"]
    cells = [
        (row["name"], coefficient(row, fit, private, 5), number(row["standard_error"], 3),
         percent(row["privacy_share"]), number(row["low"]), number(row["high"]))[: len(columns)]
        for row in rows
    ]  # fmt: skip
    return table(columns, cells, figures=range(1, len(columns)), caption=about, stack=False)


def _drawn(row: dict[str, Any], ranges: bool, fit: dict[str, Any], private: bool) -> dict[str, Any]:
    scale = row["range"] if ranges else 1.0
    more = f" ({number(row['low'], 3)} to {number(row['high'], 3)})" if fit["determined"] else ""
    ends = {name: None if row[name] is None else scale * row[name] for name in ("value", "low", "high")}
    return {"name": row["name"], "words": coefficient(row, fit, private, 3), "more": more, **ends}


def table_facts(stated: Statement) -> Html:
    """How often the table was read, and what its columns are declared to be."""
    passes = stated["passes"]
    trusted = stated["privacy"]["public"].get("trusted")
    counted = stated["privacy"].get("record_share")
    pairs = [
        ("size", units(stated)),
        *([("records that counted", str(counted))] if counted else []),
        ("features", f"{stated['features']:,}"),
        ("passes over the table", passes or "not counted: the table is in memory"),
        *([("also trusted", str(trusted))] if trusted else []),
        *([("target", stated["target"])] if stated["target"] else []),
        *([("classes", ", ".join(stated["classes"]))] if stated["classes"] else []),
    ]
    schema = stated["schema"]
    return [facts(pairs), folded("Declared columns (schema)", element("pre", schema)) if schema else ""]


def public(stated: Statement) -> Html:
    """What counts as known to everybody."""
    return [
        paragraph("Known to everyone, or decided before any record was read."),
        facts((name, str(value)) for name, value in stated["privacy"]["public"].items()),
    ]


def limits(stated: Statement) -> Html:
    """What the promise does not cover."""
    return items(stated["privacy"]["not_covered"])


def origin(stated: Statement) -> Html:
    """What the report was made with, and a hash of its facts."""
    return facts(
        [
            ("report by", stated["software"]),
            *stated["versions"].items(),
            ("format", f"{stated['format']}, version {stated['version']}"),
            ("SHA-256 of the facts", stated["digest"]),
        ]
    )


MAX_FINDINGS = 8
"""More findings of an audit are folded up."""

_BETWEEN_0_AND_1 = ("accuracy", "auc")


def scores(stated: Statement) -> Html:
    """Private scores, if there are any."""
    evaluation = stated["evaluation"]
    if evaluation is None:
        return paragraph(
            "No score was released. A score on private records has a privacy cost; dpglm.evaluate "
            "releases scores with intervals."
        )
    rows = [
        (*score_cells(score), number(score["noise"], 2), score["words"].rstrip(":"))
        for score in evaluation["scores"]
    ]
    drawn = [
        group for group in evaluation["scores"] if group["metric"] in _BETWEEN_0_AND_1 and group["determined"]
    ]
    level = 100 * evaluation["scores"][0]["level"]
    bins = [
        (f"{group['low']:.2f} to {group['high']:.2f}", percent(group["share"]), f"{group['gap']:+.3f}",
         number(group["error"], 2))
        for score in evaluation["scores"] for group in score["bins"]
    ]  # fmt: skip
    return [
        paragraph(
            f"Scores on {evaluation['plan']['n_records']:,} private records, released with noise. They "
            f"have a guarantee of their own, in addition to the model's: {stated['evaluation_headline']}"
        ),
        _figure(charts.scores(drawn), f"Scores with {level:g} % intervals."),
        table(
            ("score", "value", "from", "to", "error by noise", "meaning"), rows, figures=(1, 2, 3, 4),
            caption=f"Scores with {level:g} % intervals, which account for sampling and noise",
        ),
        table(
            ("predicted", "records", "outcome - prediction", "standard error"), bins,
            figures=(1, 2, 3), caption="Calibration", stack=False,
        ),
    ]  # fmt: skip


def ledger(stated: Statement) -> Html:
    """The account that paid."""
    account, payment = stated["ledger"], stated["privacy"]["public"].get("ledger")
    if account is None:
        return paragraph(f"Paid for by {payment}.") if payment else paragraph(
            "No ledger: nothing adds up this release and others from the same records.", "note"
        )  # fmt: skip
    journal = account["journal"]
    own = [k for k, entry in enumerate(journal) if payment and entry["hash"] in str(payment)]
    own_share = sum(journal[k]["share"] or 0.0 for k in own)
    parts = [("this model", own_share), ("everything else", account["share_spent"] - own_share)]
    legend = [("c0", "this model", percent(own_share)), ("c1", "everything else", percent(parts[1][1])),
              ("ct", f"left: {account['left']}", percent(1 - account["share_spent"]))]  # fmt: skip
    rows = [
        (
            str(entry["number"]), entry["kind"], entry["time"],
            "" if entry["mu"] is None else number(entry["mu"]),
            percent(entry["spent"]), entry["what"], entry["hash"][:12],
        )
        for entry in journal
    ]  # fmt: skip
    omitted = f", without {account['omitted']} in between" if account["omitted"] else ""
    return [
        paragraph(
            f"Account {account['account']}: epsilon {account['epsilon']:g} at delta {account['delta']:g} for "
            f"everything together ({account['neighbours']}, unit {account['unit']})."
        ),
        _figure(
            charts.shares(parts, "account", "Shares of the budget of the account"),
            "Shares of the account's budget, in squared mu.", _legend(legend),
        ),
        table(
            ("entry", "kind", "time", "mu", "spent", "what", "hash"), rows, figures=(3, 4), marked=own,
            caption=f"Entries of the journal{omitted}; its head is {account['head']}",
        ),
    ]  # fmt: skip


def findings(stated: Statement) -> Html:
    """What an audit found, if there was one."""
    audit = stated["audit"]
    if audit is None:
        return paragraph(
            "No audit was given. dpglm audit runs a fit many times on two neighbouring tables and gives "
            "a lower bound on the epsilon that it really spends.", "note",
        )  # fmt: skip
    count = len(audit["findings"])
    verdict = "A claim was refuted." if audit["violated"] else "No claim was refuted."
    rows = [
        (
            finding["subject"], finding["verdict"], finding["seen"], finding["neighbours"],
            number(finding["epsilon"]), number(finding["lower"], 3), number(finding["fitted"] or None, 3),
            f"{finding['runs']:,}" if finding["runs"] else "exact",
        )
        for finding in audit["findings"]
    ]  # fmt: skip
    whole = table(
        ("subject", "verdict", "seen", "neighbours", "claimed", "at least", "fitted", "runs"),
        rows, figures=(4, 5, 6, 7), caption="Findings",
        marked=[k for k, finding in enumerate(audit["findings"]) if finding["violated"]],
    )  # fmt: skip
    intro = (
        f"{verdict} {count} finding{'s' * (count != 1)}, each with confidence {audit['confidence']:g}. An "
        "audit can refute a claim; it cannot prove one."
    )
    return [
        paragraph(intro, "note alarm" if audit["violated"] else ""),
        whole if count <= MAX_FINDINGS else folded(f"All {count} findings", whole),
    ]


_SECTIONS: tuple[tuple[str, str, Callable[[Statement], Html]], ...] = (
    ("promise", "The promise", promise),
    ("released", "What was released", releases),
    ("model", "The model", coefficients),
    ("scores", "How good it is", scores),
    ("table", "How the table was read", table_facts),
    ("public", "What was treated as public", public),
    ("ledger", "The ledger", ledger),
    ("audit", "The audit", findings),
    ("limits", "What is not covered", limits),
    ("origin", "Versions and hash", origin),
)

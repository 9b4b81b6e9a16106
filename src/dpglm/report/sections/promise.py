"""How strong the promise is, and what it was spent on."""

from __future__ import annotations

import math
from typing import Any

from .. import charts, html
from ..numbers import number, percent, percent_up, tiny, up
from ..words import meanings


def promise(stated: dict[str, Any]) -> str:
    """All usual parameters, the whole curve, and what the promise is about."""
    about = [
        ("protected unit", f"one {stated['unit']}"),
        ("neighbouring tables", stated["relation"]),
        ("added up", stated["privacy"]["composition"]),
        ("randomness", stated["privacy"]["randomness"]),
    ]
    found = stated["measures"]
    if found is None:
        return html.paragraph(stated["headline"], "note alarm") + html.facts(about)
    alarm = "" if stated["private"] else stated["headline"]
    guess = found["guess"]
    rest = "" if found["exact"] else f", beside {number(found['slack'], 2)} of delta"
    rows = []
    if found["mu"] is not None:
        rows.append(("mu", up(found["mu"]), f"the releases hide a {stated['unit']} as well as one Gaussian "
                     f"release of sensitivity mu and deviation 1{rest}; less is more private"))  # fmt: skip
    factor = number(math.exp(min(stated["privacy"]["epsilon"], 700.0)), 3)
    said = [
        f": any result is at most {factor} times as likely with one table as with its neighbour, but for a "
        "probability of delta",
        *[""] * len(found["epsilons"]),
    ]
    rows += [
        ("epsilon", up(one["epsilon"]), f"at delta = {tiny(one['delta'])}, {one['name']}{words}")
        for one, words in zip(found["epsilons"], said, strict=False)
    ]
    if found["rho"] is not None:
        rows.append(("rho", up(found["rho"]), "zero-concentrated differential privacy, mu²/2, but for how "
                     "noise is drawn, which is counted in delta"))  # fmt: skip
    rows += [
        ("right guesses", f"at most {percent_up(guess['right'])}",
         "of two equally likely neighbours, by the whole curve: (1 + delta at epsilon 0) / 2"),
        ("right guesses", f"at most {percent_up(guess['right_by_epsilon'])}",
         "by epsilon and delta of the fit alone, which say less: (e^epsilon + delta) / (1 + e^epsilon)"),
        ("caught", f"at most {percent_up(guess['caught'])}",
         f"of the cases in which the suspicion is true, by a test that accuses wrongly in "
         f"{percent(guess['false_alarms'])} of the others"),
    ]  # fmt: skip
    marks = [(f"delta {tiny(one['delta'], 2)}", one["epsilon"], one["delta"])
             for one in found["epsilons"] if not isinstance(one["epsilon"], str)]  # fmt: skip
    near = [mark for k, mark in enumerate(marks) if all(abs(math.log10(mark[2] / other[2])) > 0.7
            for other in marks[:k])]  # fmt: skip
    return "".join(
        [
            html.paragraph(alarm, "note alarm"),
            html.items(meanings(stated)),
            html.table(
                "The promise in numbers, all rounded up", ("parameter", "value", "meaning"), rows, whole=(1,)
            ),
            html.figure(
                charts.curve(found["curve"], near),
                "Every pair of epsilon and delta on the curve, or in the shaded area above it, is a promise "
                "that holds.",
            ),
            html.facts(about),
        ]
    )


def released(stated: dict[str, Any]) -> str:
    """Every release with its noise and its share of the price."""
    lines = stated["releases"]
    if not lines:
        return html.paragraph("Coefficients without noise.", "note alarm")
    parts = [(_named(line), line["share"]) for line in lines if line["share"] is not None]
    chart = charts.shares(parts, "shares", "Share of each release in the price") if parts else ""
    colours = html.legend(
        (f"c{k % 6}", words, percent(share)) for k, (words, share) in enumerate(parts)
    )  # fmt: skip
    said = (
        "The model was computed from these noisy answers and from nothing else. Noise is stated as a "
        f"multiple of the sensitivity: the most that one {stated['unit']} can change the exact answer."
    )
    if not parts:
        said += " The shares of a choice among several fits cannot be told apart."
    rows = [
        (
            f"{'then ' if line['follows'] else ''}{line['query']}", f"{line['count']:,}", line["mechanism"],
            number(line["noise"]), line["sensitivity"], f"{line['entries']:,}", line["sampling"],
            percent(line["share"]) if line["share"] is not None else "",
        )
        for line in lines
    ]  # fmt: skip
    columns = ("release", "times", "mechanism", "noise", "sensitivity", "numbers", "records", "share")
    return "".join(
        [
            html.paragraph(said),
            html.figure(chart, "Shares of the price, in squares of mu.", colours if len(parts) > 1 else ""),
            html.table("All releases", columns, rows, figures=(1, 3, 5, 7)),
        ]
    )


def _named(line: dict[str, Any]) -> str:
    return f"{line['count']:,} × {line['query']}"

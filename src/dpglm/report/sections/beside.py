"""What is given beside the model: scores, the account that paid, an audit."""

from __future__ import annotations

from typing import Any

from .. import charts, html
from ..numbers import number, percent

MOST_FINDINGS = 8
"""More findings of an audit are folded up."""

_BETWEEN_0_AND_1 = ("accuracy", "auc")


def evaluated(stated: dict[str, Any]) -> str:
    """Private scores, if there are any."""
    found = stated["evaluation"]
    if found is None:
        return html.paragraph(
            "No score was released. A score on private records is a statistic of them and has a price; "
            "dpglm.evaluate releases scores with intervals."
        )
    rows = [
        (
            one["metric"], number(one["value"]) if one["determined"] else "not determined",
            number(one["low"]), number(one["high"]), number(one["noise"], 2), one["words"].rstrip(":"),
        )
        for one in found["scores"]
    ]  # fmt: skip
    drawn = [one for one in found["scores"] if one["metric"] in _BETWEEN_0_AND_1 and one["determined"]]
    level = 100 * found["scores"][0]["level"]
    bins = [
        (f"{one['low']:.2f} to {one['high']:.2f}", percent(one["share"]), f"{one['gap']:+.3f}",
         number(one["error"], 2))
        for score in found["scores"] for one in score["bins"]
    ]  # fmt: skip
    return "".join(
        [
            html.paragraph(
                f"Scores on {found['plan']['n_records']:,} private records, released with noise. They have a "
                f"promise of their own, beside that of the model: {stated['evaluation_headline']}"
            ),
            html.figure(charts.scores(drawn), f"Scores with {level:g} % intervals."),
            html.table(
                f"Scores with {level:g} % intervals, which count sampling and noise",
                ("score", "value", "from", "to", "error by noise", "meaning"), rows, figures=(1, 2, 3, 4),
            ),
            html.table(
                "Calibration", ("predicted", "records", "outcome - prediction", "standard error"), bins,
                figures=(1, 2, 3), stack=False,
            ),
        ]
    )  # fmt: skip


def paid(stated: dict[str, Any]) -> str:
    """The account that paid."""
    found, words = stated["ledger"], stated["privacy"]["public"].get("ledger")
    if found is None:
        return html.paragraph(f"Paid for by {words}.") if words else html.paragraph(
            "No ledger: nobody adds up what was released of these records besides this model.", "note"
        )  # fmt: skip
    journal = found["journal"]
    own = [k for k, entry in enumerate(journal) if words and entry["hash"] in str(words)]
    here = sum(journal[k]["share"] or 0.0 for k in own)
    parts = [("this model", here), ("everything else", found["share_spent"] - here)]
    legend = [("c0", "this model", percent(here)), ("c1", "everything else", percent(parts[1][1])),
              ("ct", f"left: {found['left']}", percent(1 - found["share_spent"]))]  # fmt: skip
    rows = [
        (
            str(entry["number"]), entry["kind"], entry["time"],
            "" if entry["mu"] is None else number(entry["mu"]),
            percent(entry["spent"]), entry["what"], entry["hash"][:12],
        )
        for entry in journal
    ]  # fmt: skip
    omitted = f", without {found['omitted']} in between" if found["omitted"] else ""
    return "".join(
        [
            html.paragraph(
                f"Account {found['account']}: epsilon {found['epsilon']:g} at delta {found['delta']:g} for "
                f"everything together ({found['neighbours']}, unit {found['unit']})."
            ),
            html.figure(
                charts.shares(parts, "account", "Shares of the budget of the account"),
                "What is spent of the account's budget, in squares of mu.", html.legend(legend),
            ),
            html.table(
                f"Entries of the journal{omitted}; its head is {found['head']}",
                ("entry", "kind", "time", "mu", "spent", "what", "hash"), rows, figures=(3, 4), marked=own,
            ),
        ]
    )  # fmt: skip


def audited(stated: dict[str, Any]) -> str:
    """What an audit found, if there was one."""
    found = stated["audit"]
    if found is None:
        return html.paragraph(
            "No audit was given. dpglm audit runs a fit many times on two neighbouring tables and bounds "
            "from below what it really spends.", "note",
        )  # fmt: skip
    count = len(found["findings"])
    verdict = "A claim was refuted." if found["violated"] else "No claim was refuted."
    rows = [
        (
            one["subject"], one["verdict"], one["seen"], one["neighbours"], number(one["epsilon"]),
            number(one["lower"], 3), number(one["fitted"], 3) if one["fitted"] else "–",
            f"{one['runs']:,}" if one["runs"] else "exact",
        )
        for one in found["findings"]
    ]  # fmt: skip
    whole = html.table(
        "Findings", ("subject", "verdict", "seen", "neighbours", "claimed", "at least", "fitted", "runs"),
        rows, figures=(4, 5, 6, 7), marked=[k for k, one in enumerate(found["findings"]) if one["violated"]],
    )  # fmt: skip
    return html.paragraph(
        f"{verdict} {count} finding{'s' * (count != 1)}, each with confidence {found['confidence']:g}. An "
        "audit can refute a claim; it cannot prove one.",
        "note alarm" if found["violated"] else "",
    ) + (whole if count <= MOST_FINDINGS else html.folded(f"All {count} findings", whole))

"""Coefficients in units of the columns."""

from __future__ import annotations

from typing import Any

from ...inference import FOR_PREDICTION
from .. import charts, html
from ..numbers import coefficient, number, percent

MOST_ROWS = 400
"""So many coefficients are shown at most, in all fits together."""

MOST_IN_A_FIT = 40
LEAST_IN_A_FIT = 8


def model(stated: dict[str, Any]) -> str:
    """Coefficients in units of the columns, with intervals where the fit released them."""
    fits = stated["fits"]
    each = min(MOST_IN_A_FIT, max(LEAST_IN_A_FIT, MOST_ROWS // len(fits)))
    shown = fits[: max(1, MOST_ROWS // each)]
    parts = [_fit(k, fit, stated, each) for k, fit in enumerate(shown)]
    if len(shown) < len(fits):
        parts.append(html.paragraph(f"{len(fits) - len(shown)} further outcomes are not shown.", "note"))
    return "".join(parts)


def _fit(number_: int, fit: dict[str, Any], stated: dict[str, Any], most: int) -> str:
    rows = fit["coefficients"]
    features = [row for row in rows if row["name"] != "intercept"]
    ordered = sorted(features, key=_weight, reverse=True)[:most]
    kept = {id(row) for row in ordered}
    listed = [row for row in rows if id(row) in kept or row["name"] == "intercept"]
    ranges = all(row["range"] is not None for row in ordered)
    left_out = len(features) - len(ordered)
    said = f"{100 * stated['level']:g} % intervals count sampling and noise. {_sentence(fit['estimand'])}"
    if fit["determined"] is None:
        said = _sentence(FOR_PREDICTION)
    elif not fit["determined"]:
        said = f"Noise hides how far the coefficients may be off, so there are no intervals: {fit['reason']}."
    if left_out:
        said += f" Shown are {len(ordered):,} of {len(features):,} features: those that can change a "
        said += "prediction most."
    about = f"Coefficients{', ' + fit['outcome'] if fit['outcome'] else ''}"
    drawn = [_drawn(row, ranges, fit, stated["private"]) for row in ordered]
    unit = "change over the declared range of the feature" if ranges else "coefficient"
    caption = (
        "How far each feature moves the linear predictor over its declared range. The numbers are "
        "coefficients in units of the column."
        if ranges
        else "Coefficients in units of the columns."
    )
    columns = ["feature", "coefficient"]
    if fit["determined"]:
        columns += ["standard error", "of which noise", "from", "to"]
    cells = [
        (row["name"], coefficient(row["value"], fit, stated["private"], 5), number(row["standard_error"], 3),
         percent(row["privacy_share"]), number(row["low"]), number(row["high"]))[: len(columns)]
        for row in listed
    ]  # fmt: skip
    numbers = html.table(about, columns, cells, figures=range(1, len(columns)), stack=False)
    deviance = fit["deviance"]
    return "".join(
        [
            html.heading(fit["outcome"]) if fit["outcome"] else "",
            html.paragraph(said),
            html.figure(charts.forest(f"forest{number_}", about, drawn, unit), caption),
            html.folded(f"All {len(listed):,} numbers" if not left_out else "These numbers", numbers),
            html.paragraph(
                "" if deviance is None
                else f"Released deviance: {number(deviance[0], 6)}, error by noise {number(deviance[1], 2)}."
            ),
        ]
    )  # fmt: skip


def _sentence(words: str | None) -> str:
    return f"{words[0].upper()}{words[1:].rstrip('.')}." if words else ""


def _weight(row: dict[str, Any]) -> float:
    return float(abs(row["value"]) * (row["range"] or 1.0))


def _drawn(row: dict[str, Any], ranges: bool, fit: dict[str, Any], private: bool) -> dict[str, Any]:
    scale = row["range"] if ranges else 1.0
    more = f" ({number(row['low'], 3)} to {number(row['high'], 3)})" if fit["determined"] else ""
    ends = {name: None if row[name] is None else scale * row[name] for name in ("value", "low", "high")}
    return {"name": row["name"], "words": coefficient(row["value"], fit, private, 3), "more": more, **ends}

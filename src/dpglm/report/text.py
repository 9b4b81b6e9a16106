"""Numbers and sentences of a report. Numbers of the guarantee are rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal
from typing import Any

from ..inference import rough
from ..privacy import rounded_up

Row = dict[str, Any]
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | str | None, digits: int = 4) -> str:
    """A number for readers; a dash if there is none."""
    if value is None:
        return "–"
    if isinstance(value, str):  # "inf", as JSON keeps it
        return "infinite" if value == "inf" else value
    return "infinite" if math.isinf(value) else f"{value:.{digits}g}"


def up(value: float | str | None, digits: int = 4) -> str:
    """A number of the guarantee, rounded up."""
    if value is None or isinstance(value, str) or math.isinf(value):
        return number(value)
    return rounded_up(value, digits)


def tiny(value: float, digits: int = 3) -> str:
    """A delta, rounded up, as a power of ten where that is easier to read."""
    shown = rounded_up(value, digits)
    mantissa, _, exponent = shown.partition("e")
    if not exponent:
        return shown
    raised = str(int(exponent)).translate(_RAISED)
    return f"10{raised}" if mantissa == "1" else f"{mantissa}×10{raised}"


def percent(share: float | None) -> str:
    """A share for readers."""
    if share is None:
        return "–"
    return f"{100 * share:.1f} %" if share >= 0.001 or share == 0 else "below 0.1 %"


def percent_up(share: float) -> str:
    """A share of the guarantee in percent, rounded up to one digit."""
    percents = (Decimal(share) * 100).quantize(Decimal("0.1"), rounding=ROUND_CEILING)
    return f"{min(percents, Decimal(100)):f} %"


def coefficient(row: Row, fit: Row, private: bool, digits: int = 4) -> str:
    """A coefficient of a fit: with two digits where noise was added and nobody knows how much it moves it."""
    return rough(row["value"]) if private and fit["determined"] is None else number(row["value"], digits)


def effect(row: Row) -> float:
    """The most by which a feature can change a prediction; 1 for a range that is not declared."""
    return float(abs(row["value"]) * (row["range"] or 1.0))


def score_cells(score: Row) -> tuple[str, str, str, str]:
    """A private score with the ends of its interval."""
    value = number(score["value"]) if score["determined"] else "not determined"
    return score["metric"], value, number(score["low"]), number(score["high"])


def title(stated: Row) -> str:
    """The model, and what it predicts."""
    return f"{stated['model']} for {stated['target']}" if stated["target"] else str(stated["model"])


def subject(stated: Row, chosen: str = "") -> str:
    """What was fitted to which table."""
    return (
        f"{stated['kind'].capitalize()} by {stated['solver']}{chosen}, fitted to {units(stated)} with "
        f"{stated['features']:,} features"
    )


_MEANINGS = (
    "The guarantee holds against everyone, whatever else they know and however long they compute, now and "
    "in the future.",
    "It covers what a single {unit} adds. What many have in common is what a model is meant to learn, and "
    "is not hidden: it could be learnt from a table without the {unit} in question.",
    "It covers all releases of the fit together, and everything that is computed from them.",
)


def meanings(stated: Row) -> list[str]:
    """Sentences that explain any guarantee."""
    return [words.format(unit=stated["unit"]) for words in _MEANINGS]


def scene(stated: Row) -> str:
    """A sentence about who is guessing what."""
    return f"Someone knows {stated['doubt']}."


def units(stated: Row) -> str:
    """The number of protected units, or its released estimate."""
    count = f"{stated['records']:,} {stated['unit']}s"
    return count if stated["records_are"] == "public" else f"about {count} (a released count)"

"""What a promise means, in words for readers who do not know differential privacy."""

from __future__ import annotations

from typing import Any

_MEANINGS = (
    "The promise holds against everybody, whatever they know besides and however long they compute, now and "
    "later.",
    "It is about what one {unit} adds. What holds for many alike is what a model is meant to learn, and is "
    "not hidden: it could be learnt from a table without the {unit} in question.",
    "It holds for everything that the fit released together, and for everything that is computed from it.",
)


def meanings(stated: dict[str, Any]) -> list[str]:
    """What readers should know of any promise."""
    return [words.format(unit=stated["unit"]) for words in _MEANINGS]


def scene(stated: dict[str, Any]) -> str:
    """Who is guessing what."""
    return f"Someone knows {stated['doubt']}."


def units(stated: dict[str, Any]) -> str:
    """How many units of privacy the table has, as far as that is known."""
    count = f"{stated['records']:,} {stated['unit']}s"
    return count if stated["records_are"] == "public" else f"about {count} (a released count)"

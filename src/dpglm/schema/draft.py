"""A first schema of a table: from names and types alone, or, not privately, from its records."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..arrays import Vector
from ..data.adapters import as_source
from ..data.columnar import Columnar
from ..data.files import TextFile
from . import toml
from .cells import BAD, MISSING_TEXTS, Cells
from .date_format import formats_that_fit
from .frames import cells_of, checked_names, column_names, is_frame, type_of
from .spelling import DateSpelling, NumberSpelling, Spelling, number_facts

FILL_IN = "?"
"""What is to be filled in; a schema with it is refused."""

UNKNOWN = "unknown"
"""The type of a column whose file declares none."""

MOST_LEVELS = 100
"""A column of more different texts is hashed."""

_NUMBER = re.compile(r"(u?int|float|double|halffloat|decimal)", re.IGNORECASE)
_BOOLEAN = re.compile(r"bool", re.IGNORECASE)
_DATE = re.compile(r"(date|timestamp)", re.IGNORECASE)
_BUCKETS = 1024

_SHOWN = 200
"""So many different strings are tried as dates and amounts."""

EXAMPLES = {
    "number": 'age = { type = "number", low = 0, high = 120, missing = "indicator" }',
    "category": 'ward = { type = "category", levels = ["surgery", "other ward"], casefold = true }',
    "boolean": 'member = { type = "boolean", aliases = { ja = true, nein = false } }',
    "date": 'since = { type = "date", low = 2000-01-01, high = 2030-01-01, format = "%d.%m.%Y" }',
    "ordinal": 'grade = { type = "ordinal", levels = ["low", "middle", "high"] }',
    "hashed": 'zip = { type = "hashed", buckets = 1024 }',
    "text": 'note = { type = "text", buckets = 4096 }',
    "target": 'cost = { type = "target", low = 0, high = 9000, decimal = ",", thousands = ".", strip = "€" }',
    "weight": 'weight = { type = "weight", high = 10 }',
    "offset": 'start = { type = "offset", low = -2, high = 2 }',
    "exposure": 'days = { type = "exposure", low = 1, high = 365 }',
    "unit": 'patient = { type = "unit", rows = 5 }',
    "drop": 'row = { type = "drop" }',
}
"""A line for a column of each type."""

_HEADER = """\
# A draft from the names and types of columns: replace every "?" by what is known of the column,
# from its meaning or a data dictionary, never from its values.
"""
_PEEKED = """\
# NOT PRIVATE: ranges and levels were read off the records. A model of these records has no promise until
# every range and level below has been replaced by, or found to agree with, what is known without them.
"""


def drafted(frame: object, target: str | None, peek: bool) -> str:
    """The TOML text for a table."""
    types = types_of(frame)
    if target is not None and target not in types:
        raise ValueError(f"the table has no column {target!r}")
    if peek and not is_frame(frame):
        raise ValueError(f"peek needs a table in memory, got a {type(frame).__name__}")
    lines = [(_PEEKED if peek else _HEADER) + _known_types(), "[columns]"]
    for name, kind in types.items():
        facts, remark = _peeked(cells_of(frame, name), kind) if peek else (_by_type(kind), "")
        if name == target:
            facts, remark = _as_target(facts), ""
        given = dict(facts)
        lines.append(toml.line(name, given.pop("type"), given) + (f"  # {remark}" if remark else ""))
    return "\n".join(lines) + "\n"


def types_of(frame: Any) -> dict[str, str]:
    """The declared types of columns by their names."""
    if is_frame(frame):
        return {name: type_of(frame, name) for name in column_names(frame)}
    source = as_source(frame)
    if isinstance(source, Columnar):
        return {name: str(source.types[name]) for name in checked_names(list(source.types))}
    if isinstance(source, TextFile):  # text declares no types
        return dict.fromkeys(checked_names(source.names), UNKNOWN)
    if hasattr(frame, "dtypes") and hasattr(frame, "columns"):  # a data frame of Dask
        return {
            name: str(kind) for name, kind in zip(checked_names(frame.columns), frame.dtypes, strict=True)
        }
    raise ValueError(f"a {type(frame).__name__} has no columns with names and types")


def _known_types() -> str:
    """A line for each type of a column, as comments."""
    return "".join(
        f"# {line}\n" for line in ("An example of each type:", *(EXAMPLES[kind] for kind in toml.KINDS))
    )


def _by_type(kind: str) -> dict[str, Any]:
    if kind == UNKNOWN:
        return {"type": FILL_IN}
    if _NUMBER.match(kind):
        return {"type": "number", "low": FILL_IN, "high": FILL_IN, "missing": "null"}
    if _BOOLEAN.match(kind):
        return {"type": "boolean", "missing": "null"}
    if _DATE.match(kind):
        return {"type": "date", "low": FILL_IN, "high": FILL_IN, "missing": "null"}
    return {"type": "category", "levels": FILL_IN}


def _peeked(cells: Cells, kind: str) -> tuple[dict[str, Any], str]:
    """Facts that the records show, and a remark."""
    numbers, missing, bad = cells.as_numbers(MISSING_TEXTS)
    rule = "indicator" if missing.any() else "null"
    if _BOOLEAN.match(kind):
        return {"type": "boolean", "missing": rule}, ""
    if (~missing).any() and not bad.any():
        return _numbers_of(numbers) | {"missing": rule}, _id_of(numbers)
    days, missing, bad = cells.as_days(MISSING_TEXTS)
    if (~missing).any() and not bad.any():
        return _dates_of(days) | {"missing": rule}, ""
    found = cells.as_texts(MISSING_TEXTS)
    levels = sorted({text for k in np.unique(found.places) if (text := found.texts[k]) is not None})
    facts = _spelling_of(levels)
    if facts is not None:
        spelt = _reading(facts).read(cells, MISSING_TEXTS)
        if "format" in facts:
            days, remark = spelt.as_days(MISSING_TEXTS).values, f"dates as {facts['format']}"
            return _dates_of(days) | {"missing": rule} | facts, remark
        remark = "numbers with " + " and ".join(f"{key} = {toml.value(fact)}" for key, fact in facts.items())
        return _numbers_of(spelt.as_numbers(MISSING_TEXTS).values) | {"missing": rule} | facts, remark
    if len(levels) <= MOST_LEVELS:
        folded = {level.casefold(): level for level in levels}
        if len(folded) < len(levels):
            facts = {"type": "category", "levels": list(folded.values()), "casefold": True}
            return facts, "some levels differ by case only"
        return {"type": "category", "levels": levels or FILL_IN}, ""
    if not any(" " in level for level in levels):
        return {"type": FILL_IN}, (
            f'an id? then "unit" (whom the promise protects) or "drop"; else "hashed", buckets = {_BUCKETS}'
        )
    return {"type": "hashed", "buckets": _BUCKETS}, 'or "text", whose words count'


def _numbers_of(numbers: Vector) -> dict[str, Any]:
    seen = numbers[~np.isnan(numbers)]
    low, high = float(seen.min()), float(seen.max())
    return {"type": "number", "low": low, "high": high if high > low else low + 1.0}


def _id_of(numbers: Vector) -> str:
    """A remark on whole numbers that all differ."""
    seen = numbers[~np.isnan(numbers)]
    is_id = len(seen) > MOST_LEVELS and len(np.unique(seen)) == len(seen) and not (seen % 1).any()
    return 'all numbers differ: an id? then "unit" or "drop"' if is_id else ""


def _dates_of(days: Vector) -> dict[str, Any]:
    seen = days[~np.isnan(days)]
    ends = [str(np.datetime64("1970-01-01") + int(day)) for day in (seen.min() // 1, seen.max() // 1 + 1)]
    return {"type": "date", "low": ends[0], "high": ends[1]}


def _spelling_of(levels: list[str]) -> dict[str, Any] | None:
    """The usual spelling of dates or numbers that nearly all of these strings have; None without one."""
    shown = levels[:: max(1, len(levels) // _SHOWN)]
    known: list[dict[str, Any]] = [
        *({"format": format} for text in shown for format in formats_that_fit(text)),
        *sorted((facts for text in shown for facts in number_facts(text) if _is_amount(facts)), key=len),
    ]
    for facts in [facts for k, facts in enumerate(known) if facts not in known[:k]]:
        spelling = _reading(facts)
        lost = sum(spelling.value(text, frozenset()) is BAD for text in shown)
        if lost <= len(shown) // 20:
            return facts
    return None


def _is_amount(facts: dict[str, Any]) -> bool:
    """Whether facts spell numbers differently, but not with letters, which ids have."""
    return bool(facts) and not any(letter.isalpha() for part in facts.get("strip", "") for letter in part)


def _reading(facts: dict[str, Any]) -> Spelling:
    if "format" in facts:
        return DateSpelling((facts["format"],))
    usual = {"decimal": ".", "thousands": None, "strip": ""}
    return NumberSpelling(**(usual | facts))


def _as_target(facts: dict[str, Any]) -> dict[str, Any]:
    if facts["type"] == "boolean":
        return {"type": "target", "classes": [False, True]}
    if facts["type"] == FILL_IN:
        return {"type": "target", "low": FILL_IN, "high": FILL_IN, "classes": FILL_IN}
    if facts["type"] in ("number", "date"):
        kept = ("low", "high", "decimal", "thousands", "strip")
        return {"type": "target"} | {key: fact for key, fact in facts.items() if key in kept}
    classes = {"type": "target", "classes": facts.get("levels", FILL_IN)}
    return classes | {key: fact for key, fact in facts.items() if key == "casefold"}

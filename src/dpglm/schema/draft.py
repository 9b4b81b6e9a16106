"""A first schema of a table: from names and types alone, or, not privately, from its records."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np

from ..data import sources
from ..data.columnar import Columnar
from ..data.lines import Lines
from . import toml
from .cells import MISSING_TEXTS, Cells
from .frames import cells_of, checked_names, column_names, is_frame, type_of

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
    lines = [_PEEKED if peek else _HEADER + _known_types(), "[columns]"]
    for name, kind in types.items():
        facts = _peeked(cells_of(frame, name), kind) if peek else _by_type(kind)
        if name == target:
            facts = _as_target(facts)
        given = dict(facts)
        lines.append(toml.line(name, given.pop("type"), given))
    return "\n".join(lines) + "\n"


def types_of(frame: Any) -> dict[str, str]:
    """The declared types of columns by their names."""
    if is_frame(frame):
        return {name: type_of(frame, name) for name in column_names(frame)}
    source = sources.recognised(frame)
    if isinstance(source, Columnar):
        return {name: str(source.types[name]) for name in checked_names(list(source.types))}
    if isinstance(source, Lines):  # text declares no types
        return dict.fromkeys(checked_names(source.names), UNKNOWN)
    if hasattr(frame, "dtypes") and hasattr(frame, "columns"):  # a data frame of Dask
        return {
            name: str(kind) for name, kind in zip(checked_names(frame.columns), frame.dtypes, strict=True)
        }
    raise ValueError(f"a {type(frame).__name__} has no columns with names and types")


def _known_types() -> str:
    """The types of columns, as a comment."""
    *first, last = toml.KINDS
    said = f"The types are {', '.join(first)} and {last}."
    return textwrap.fill(said, 104, initial_indent="# ", subsequent_indent="# ") + "\n"


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


def _peeked(cells: Cells, kind: str) -> dict[str, Any]:
    """Facts that the records show."""
    numbers, missing, bad = cells.as_numbers(MISSING_TEXTS)
    rule = "indicator" if missing.any() else "null"
    seen = numbers[~np.isnan(numbers)]
    if _BOOLEAN.match(kind):
        return {"type": "boolean", "missing": rule}
    if len(seen) and not bad.any():
        low, high = float(seen.min()), float(seen.max())
        return {"type": "number", "low": low, "high": high if high > low else low + 1.0, "missing": rule}
    days, missing, bad = cells.as_days(MISSING_TEXTS)
    seen = days[~np.isnan(days)]
    if len(seen) and not bad.any():
        ends = [str(np.datetime64("1970-01-01") + int(day)) for day in (seen.min() // 1, seen.max() // 1 + 1)]
        return {"type": "date", "low": ends[0], "high": ends[1], "missing": rule}
    found = cells.as_texts(MISSING_TEXTS)
    levels = sorted({text for k in np.unique(found.places) if (text := found.texts[k]) is not None})
    if not 0 < len(levels) <= MOST_LEVELS:
        return {"type": "hashed", "buckets": _BUCKETS}
    return {"type": "category", "levels": levels}


def _as_target(facts: dict[str, Any]) -> dict[str, Any]:
    if facts["type"] in ("number", "date"):
        return {"type": "target", "low": facts["low"], "high": facts["high"]}
    if facts["type"] == "boolean":
        return {"type": "target", "classes": [False, True]}
    if facts["type"] == FILL_IN:
        return {"type": "target", "low": FILL_IN, "high": FILL_IN, "classes": FILL_IN}
    return {"type": "target", "classes": facts.get("levels", FILL_IN)}

"""Schemas as TOML, a line for each column; and the draft of one from names and types of a table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import date
from typing import Any

import numpy as np

from ..arrays import Vector
from ..data.adapters import as_source
from ..data.columnar import Columnar
from ..data.files import TextFile
from ..data.frames import NUMBERS, column_names, column_type, library_of, text_names, type_kind
from .categories import Boolean, Category, Hashed, Ordinal, Text
from .cells import BAD, Cells, read_cells
from .column import Column
from .numbers import Date, Number
from .roles import Drop, Exposure, Offset, Role, Target, Unit, Weight
from .spelling import DateSpelling, NumberSpelling, Spelling, matching_formats, number_spellings

KINDS: dict[str, type[Any]] = {
    kind.kind: kind
    for kind in (
        Number, Category, Boolean, Date, Ordinal, Hashed, Text, Target, Weight, Offset, Exposure, Unit, Drop
    )
}  # fmt: skip


_BESIDE = ("interactions", "missing", "row_norm")


def read_toml(text: str) -> dict[str, Any]:
    """What a TOML text declares: columns, interactions, texts for missing values, and the norm of rows."""
    try:
        tables = tomllib.loads(text.removeprefix("\ufeff"))  # some editors mark the order of bytes
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the schema is no TOML: {error}") from None
    unknown = sorted(set(tables) - {"columns", *_BESIDE})
    if unknown:
        raise ValueError(
            f"a schema has columns, {', '.join(_BESIDE[:-1])} and {_BESIDE[-1]}, not {', '.join(unknown)}"
        )
    columns = tables.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise ValueError("a schema needs a table [columns] with a line for each column")
    columns_by_name = {name: _column(name, values) for name, values in columns.items()}
    return {"columns": columns_by_name, **{name: tables[name] for name in _BESIDE if name in tables}}


def _column(name: str, values: object) -> Any:
    if not isinstance(values, dict) or "type" not in values:
        raise ValueError(f'column {name!r} needs a type, such as {{ type = "number", low = 0, high = 1 }}')
    facts = dict(values)
    kind = facts.pop("type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"column {name!r}: type must be one of {', '.join(KINDS)}, got {kind!r}")
    fields_of_kind = {field.name for field in fields(KINDS[kind])}
    unknown = sorted(set(facts) - fields_of_kind)
    if unknown:
        raise ValueError(
            f"column {name!r}: a {kind} has no {', '.join(unknown)}, but {', '.join(sorted(fields_of_kind))}"
        )
    try:
        return KINDS[kind](**facts)
    except TypeError:
        needed = [field.name for field in fields(KINDS[kind]) if field.default is MISSING]
        raise ValueError(f"column {name!r}: a {kind} needs {' and '.join(needed)}") from None
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None


def write_toml(
    columns: Mapping[str, Column | Target | Role | Drop],
    interactions: Sequence[Sequence[str]],
    missing: Sequence[str],
    row_norm: object = None,
) -> str:
    """The TOML text of a schema; what has its default is left out."""
    lines = []
    if missing:
        lines.append(f"missing = {toml_value(list(missing))}")
    if interactions:
        lines.append(f"interactions = {toml_value([list(pair) for pair in interactions])}")
    if row_norm is not None:
        lines.append(f"row_norm = {toml_value(row_norm)}")
    lines += ["", "[columns]"] if lines else ["[columns]"]
    for name, column in columns.items():
        facts = {
            field.name: getattr(column, field.name)
            for field in fields(column)
            if getattr(column, field.name) != field.default
        }
        lines.append(toml_line(name, column.kind, facts))
    return "\n".join(lines) + "\n"


def toml_line(name: str, kind: str, facts: Mapping[str, object]) -> str:
    """The line of a column."""
    parts = [f"type = {toml_value(kind)}", *(f"{key} = {toml_value(fact)}" for key, fact in facts.items())]
    return f"{toml_key(name)} = {{ {', '.join(parts)} }}"


def toml_key(name: str) -> str:
    """The name of a column as a key."""
    plain = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if plain else toml_value(name)


def toml_value(fact: object) -> str:
    """A value as TOML."""
    if isinstance(fact, bool):
        return "true" if fact else "false"
    if isinstance(fact, str):
        return '"' + "".join(map(_escaped, fact)) + '"'
    if isinstance(fact, int):
        return str(fact)
    if isinstance(fact, float):
        whole = fact.is_integer() and abs(fact) < 2**53
        return str(int(fact)) if whole else repr(fact)
    if isinstance(fact, date):
        return fact.isoformat()
    if isinstance(fact, list | tuple):
        return f"[{', '.join(map(toml_value, fact))}]"
    if isinstance(fact, Mapping):
        return (
            f"{{ {', '.join(f'{toml_key(str(key))} = {toml_value(part)}' for key, part in fact.items())} }}"
        )
    raise ValueError(f"a {type(fact).__name__} cannot be written as TOML")


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if 0xD800 <= ord(letter) < 0xE000:  # half of a pair, which no file can hold
        return "\ufffd"
    return f"\\u{ord(letter):04x}" if ord(letter) < 32 or ord(letter) == 127 else letter


FILL_IN = "?"
"""What is to be filled in; a schema with it is refused."""

UNKNOWN = "unknown"
"""The type of a column whose file declares none."""

MOST_LEVELS = 100
"""A column of more different texts is hashed."""

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


def draft(frame: object, target: str | None, peek: bool) -> str:
    """The TOML text for a table."""
    types = types_of(frame)
    if target is not None and target not in types:
        raise ValueError(f"the table has no column {target!r}")
    if peek and library_of(frame) is None:
        raise ValueError(f"peek needs a table in memory, got a {type(frame).__name__}")
    lines = [(_PEEKED if peek else _HEADER) + _known_types(), "[columns]"]
    for name, kind in types.items():
        facts, remark = _facts_of_cells(read_cells(frame, name), kind) if peek else (_facts_of_type(kind), "")
        if name == target:
            facts, remark = _as_target(facts), ""
        rest = dict(facts)
        lines.append(toml_line(name, rest.pop("type"), rest) + (f"  # {remark}" if remark else ""))
    return "\n".join(lines) + "\n"


def types_of(frame: Any) -> dict[str, str]:
    """The declared types of columns by their names."""
    if library_of(frame) is not None:
        return {name: column_type(frame, name) for name in text_names(column_names(frame))}
    source = as_source(frame)
    if isinstance(source, Columnar):
        return {name: str(source.types[name]) for name in text_names(source.types)}
    if isinstance(source, TextFile):  # text declares no types
        return dict.fromkeys(text_names(source.names), UNKNOWN)
    if hasattr(frame, "dtypes") and hasattr(frame, "columns"):  # a data frame of Dask
        return {name: str(kind) for name, kind in zip(text_names(frame.columns), frame.dtypes, strict=True)}
    raise ValueError(f"a {type(frame).__name__} has no columns with names and types")


def _known_types() -> str:
    """A line for each type of a column, as comments."""
    return "".join(
        f"# {line}\n" for line in ("An example of each type:", *(EXAMPLES[kind] for kind in KINDS))
    )


def _facts_of_type(kind: str) -> dict[str, Any]:
    if kind == UNKNOWN:
        return {"type": FILL_IN}
    nature = type_kind(kind)
    if nature == "boolean":
        return {"type": "boolean", "missing": "null"}
    if nature in NUMBERS:
        return {"type": "number", "low": FILL_IN, "high": FILL_IN, "missing": "null"}
    if nature == "date":
        return {"type": "date", "low": FILL_IN, "high": FILL_IN, "missing": "null"}
    return {"type": "category", "levels": FILL_IN}


def _facts_of_cells(cells: Cells, kind: str) -> tuple[dict[str, Any], str]:
    """Facts that the records show, and a remark."""
    numbers, missing, bad = cells.as_numbers()
    rule = "indicator" if missing.any() else "null"
    if type_kind(kind) == "boolean":
        return {"type": "boolean", "missing": rule}, ""
    if (~missing).any() and not bad.any():
        return _numbers_of(numbers) | {"missing": rule}, _id_of(numbers)
    days, missing, bad = cells.as_days()
    if (~missing).any() and not bad.any():
        return _dates_of(days) | {"missing": rule}, ""
    texts = cells.as_texts()
    levels = sorted({text for k in np.unique(texts.places) if (text := texts.texts[k]) is not None})
    facts = _spelling_of(levels)
    return _facts_of_levels(levels) if facts is None else _facts_of_spelt(cells, facts, rule)


def _facts_of_spelt(cells: Cells, spelling: dict[str, Any], rule: str) -> tuple[dict[str, Any], str]:
    """Facts of dates or numbers in a spelling, and a remark that states it."""
    spelt = _reading(spelling).read(cells)
    if "format" in spelling:
        days, remark = spelt.as_days().values, f"dates as {spelling['format']}"
        return _dates_of(days) | {"missing": rule} | spelling, remark
    remark = "numbers with " + " and ".join(f"{key} = {toml_value(fact)}" for key, fact in spelling.items())
    return _numbers_of(spelt.as_numbers().values) | {"missing": rule} | spelling, remark


def _facts_of_levels(levels: list[str]) -> tuple[dict[str, Any], str]:
    """Facts of texts, by how many different ones there are, and a remark."""
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
    present = numbers[~np.isnan(numbers)]
    low, high = float(present.min()), float(present.max())
    return {"type": "number", "low": low, "high": high if high > low else low + 1.0}


def _id_of(numbers: Vector) -> str:
    """A remark on whole numbers that all differ."""
    present = numbers[~np.isnan(numbers)]
    is_id = len(present) > MOST_LEVELS and len(np.unique(present)) == len(present) and not (present % 1).any()
    return 'all numbers differ: an id? then "unit" or "drop"' if is_id else ""


def _dates_of(days: Vector) -> dict[str, Any]:
    present = days[~np.isnan(days)]
    ends = [
        str(np.datetime64("1970-01-01") + int(day)) for day in (present.min() // 1, present.max() // 1 + 1)
    ]
    return {"type": "date", "low": ends[0], "high": ends[1]}


def _spelling_of(levels: list[str]) -> dict[str, Any] | None:
    """The usual spelling of dates or numbers that nearly all of these strings have; None without one."""
    sample = levels[:: max(1, len(levels) // _SHOWN)]
    known: list[dict[str, Any]] = [
        *({"format": format} for text in sample for format in matching_formats(text)),
        *sorted((facts for text in sample for facts in number_spellings(text) if _is_amount(facts)), key=len),
    ]
    for facts in [facts for k, facts in enumerate(known) if facts not in known[:k]]:
        spelling = _reading(facts)
        unread = sum(spelling.value(text, frozenset()) is BAD for text in sample)
        if unread <= len(sample) // 20:
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
        shared = ("low", "high", "decimal", "thousands", "strip")
        return {"type": "target"} | {key: fact for key, fact in facts.items() if key in shared}
    classes = {"type": "target", "classes": facts.get("levels", FILL_IN)}
    return classes | {key: fact for key, fact in facts.items() if key == "casefold"}

"""Schemas as TOML: a table ``columns`` with a line for each column, and two lists."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import date
from typing import Any

from .boolean import Boolean
from .category import Category
from .column import Column
from .date import Date
from .hashed import Hashed, Text
from .number import Number
from .ordinal import Ordinal
from .roles import Beside, Drop, Exposure, Offset, Target, Unit, Weight

KINDS: dict[str, type[Any]] = {
    kind.kind: kind
    for kind in (
        Number, Category, Boolean, Date, Ordinal, Hashed, Text, Target, Weight, Offset, Exposure, Unit, Drop
    )
}  # fmt: skip


_BESIDE = ("interactions", "missing", "row_norm")


def read(text: str) -> dict[str, Any]:
    """What a TOML text declares: columns, interactions, texts for missing values, and the norm of rows."""
    try:
        found = tomllib.loads(text.removeprefix("\ufeff"))  # some editors mark the order of bytes
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the schema is no TOML: {error}") from None
    unknown = sorted(set(found) - {"columns", *_BESIDE})
    if unknown:
        raise ValueError(
            f"a schema has columns, {', '.join(_BESIDE[:-1])} and {_BESIDE[-1]}, not {', '.join(unknown)}"
        )
    columns = found.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise ValueError("a schema needs a table [columns] with a line for each column")
    made = {name: _column(name, values) for name, values in columns.items()}
    return {"columns": made, **{name: found[name] for name in _BESIDE if name in found}}


def _column(name: str, values: object) -> Any:
    if not isinstance(values, dict) or "type" not in values:
        raise ValueError(f'column {name!r} needs a type, such as {{ type = "number", low = 0, high = 1 }}')
    given = dict(values)
    kind = given.pop("type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"column {name!r}: type must be one of {', '.join(KINDS)}, got {kind!r}")
    known = {field.name for field in fields(KINDS[kind])}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(
            f"column {name!r}: a {kind} has no {', '.join(unknown)}, but {', '.join(sorted(known))}"
        )
    try:
        return KINDS[kind](**given)
    except TypeError:
        needed = [field.name for field in fields(KINDS[kind]) if field.default is MISSING]
        raise ValueError(f"column {name!r}: a {kind} needs {' and '.join(needed)}") from None
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None


def written(
    columns: Mapping[str, Column | Target | Beside | Drop],
    interactions: Sequence[Sequence[str]],
    missing: Sequence[str],
    row_norm: object = None,
) -> str:
    """The TOML text of a schema; what has its default is left out."""
    lines = []
    if missing:
        lines.append(f"missing = {value(list(missing))}")
    if interactions:
        lines.append(f"interactions = {value([list(pair) for pair in interactions])}")
    if row_norm is not None:
        lines.append(f"row_norm = {value(row_norm)}")
    lines += ["", "[columns]"] if lines else ["[columns]"]
    for name, column in columns.items():
        facts = {
            field.name: getattr(column, field.name)
            for field in fields(column)
            if getattr(column, field.name) != field.default
        }
        lines.append(line(name, column.kind, facts))
    return "\n".join(lines) + "\n"


def line(name: str, kind: str, facts: Mapping[str, object]) -> str:
    """The line of a column."""
    parts = [f"type = {value(kind)}", *(f"{key} = {value(fact)}" for key, fact in facts.items())]
    return f"{key_of(name)} = {{ {', '.join(parts)} }}"


def key_of(name: str) -> str:
    """The name of a column as a key."""
    plain = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if plain else value(name)


def value(fact: object) -> str:
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
        return f"[{', '.join(map(value, fact))}]"
    if isinstance(fact, Mapping):
        return f"{{ {', '.join(f'{key_of(str(key))} = {value(part)}' for key, part in fact.items())} }}"
    raise ValueError(f"a {type(fact).__name__} cannot be written as TOML")


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if 0xD800 <= ord(letter) < 0xE000:  # half of a pair, which no file can hold
        return "\ufffd"
    return f"\\u{ord(letter):04x}" if ord(letter) < 32 or ord(letter) == 127 else letter

"""What a schema reads a cell as, in words: for whoever writes a schema, without a record."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.bounded_numbers import MISSING, Codes
from ..data.columns import RecordColumns
from ..data.source import LARGEST_NORM
from .categories import Boolean, Ordinal
from .cells import ABSENT, KIND_NAMES, Cells
from .column import Column, encoded_table, format_number
from .learning import blank, null_records
from .numbers import Date, declared_days
from .roles import Drop, Exposure, Offset, Target, Unit, Weight
from .schema import Schema
from .spelling import ISO, LevelCells, NumberCells, matching_formats, number_spellings
from .toml import toml_value

_WORDS = {"target": "class of the target", "boolean": "boolean"}


class CellReading(NamedTuple):
    """What a cell is read as.

    Attributes
    ----------
    column : str
    cell : str
    meaning : str
        In words.
    null : bool
        Whether it makes its record a null record.
    remedy : str, optional
        What could be declared so that the cell is read.
    """

    column: str
    cell: str
    meaning: str
    null: bool
    remedy: str | None = None

    def __str__(self) -> str:
        meaning = f"the record would be null: {self.meaning}" if self.null else self.meaning
        return f"{self.column}={self.cell}: {meaning}{'' if self.remedy is None else f' ({self.remedy})'}"


@np.errstate(all="ignore")
def read_cell(schema: Schema, name: str, cell: str) -> CellReading:
    """What the schema reads a cell of a column as."""
    column: Any = schema.columns[name]
    if isinstance(column, Drop):
        return CellReading(name, cell, "not read: the column is dropped", False)
    if isinstance(column, Unit):
        (unit,) = column.ids(np.array([cell], dtype=object), schema._missing_texts)
        return CellReading(name, cell, "missing" if unit is None else f"the id {unit!r}", unit is None)
    cells = schema._cells({name: [cell]}, name)
    if _has_levels(column):
        meaning, null, is_known = _level(name, column, cells)
    elif isinstance(column, NumberCells):
        meaning, null = _number(name, column, cells)
        is_known = not null
    elif isinstance(column, Date):
        meaning, null = _date(name, column, cells)
        is_known = not null
    else:
        meaning, null = _features(name, column, cells)
        is_known = True
    remedy = None if is_known or meaning == "missing" else _remedy(column, cell)
    return CellReading(name, cell, meaning, null, remedy)


def _has_levels(column: Any) -> bool:
    return isinstance(column, LevelCells) and (not isinstance(column, Target) or column.is_class)


def _number(name: str, column: Any, cells: Cells) -> tuple[str, bool]:
    values, is_missing, bad = (part[0] for part in cells.as_numbers())
    if bad:
        return "no number", True
    if is_missing:
        return _absent(name, column)
    low, high = column.widest if getattr(column, "pending", False) else column.declared_range
    if isinstance(column, Exposure) and values <= 0:
        return "an exposure of 0 or less", True
    return _cut("the number", values, low, high, format_number), False


def _date(name: str, column: Date, cells: Cells) -> tuple[str, bool]:
    days, is_missing, bad = (part[0] for part in cells.as_days())
    if bad:
        formats = [column.format] if isinstance(column.format, str) else column.format
        stated = " or ".join("ISO 8601" if format == ISO else format for format in formats)
        return f"no date of the format {stated}", True
    if is_missing:
        return _absent(name, column)
    ends = declared_days("low", column.low), declared_days("high", column.high)
    return _cut("the date", days, *ends, _written), False


def _written(days: float) -> str:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=float(days))
    except OverflowError:
        return f"{days:g} days after 1970-01-01"
    return moment.strftime("%Y-%m-%d" if not float(days) % 1 else "%Y-%m-%d %H:%M:%S UTC")


def _cut(what: str, value: float, low: float, high: float, written: Any) -> str:
    inside = min(max(value, low), high)
    return f"{what} {written(value)}" + ("" if inside == value else f", cut to {written(inside)}")


def _level(name: str, column: Any, cells: Cells) -> tuple[str, bool, bool]:
    """What a level is read as, whether its record is null, and whether it is one that is declared."""
    if column.pending_levels:
        texts = cells.as_texts()
        if texts.missing[0]:
            return *_absent(name, column), True
        return f"the level {texts.texts[texts.places[0]]!r}, if it is learnt", False, True
    (code,) = column.level_codes(cells)
    if code >= 0:
        return f"the {_WORDS.get(column.kind, 'level')} {column.known_levels[code]!r}", False, True
    if code == ABSENT:
        return *_absent(name, column), True
    if isinstance(column, Target | Boolean):
        return f"no {_WORDS[column.kind]}", True, False
    if isinstance(column, Ordinal) and not column.fused:
        return "an unknown level, which counts as the middle", False, False
    return f"an unknown level: {_features(name, column, cells)[0]}", False, False


def _absent(name: str, column: Any) -> tuple[str, bool]:
    """What a missing cell means."""
    rule = getattr(column, "missing", "null")
    if rule == "null":
        return "missing", True
    meanings = {
        "indicator": f"the feature {name} (missing)", "other": "an unknown level", "zero": "a row of zeros"
    }  # fmt: skip
    return f"missing, which counts as {meanings.get(rule, rule) if isinstance(rule, str) else rule}", False


def _features(name: str, column: Column, cells: Cells) -> tuple[str, bool]:
    """The features of a cell that are not 0."""
    part = blank(column).encode(cells)
    row: Any = encoded_table([(part, 1.0)], [0, column.n_features], 1, True, False)
    names = [column.features(name)[k] for k in row.indices[row.data != 0]]
    meaning = "a row of zeros" if not names else f"the feature{'s' * (len(names) > 1)} {', '.join(names)}"
    return meaning, bool(part.null[0])


def _remedy(column: Any, cell: str) -> str | None:
    """What could be declared so that a cell is read; None if nothing usual would do."""
    facts: Iterator[dict[str, object]] = iter(())
    if isinstance(column, Date):
        facts = ({"format": format} for format in matching_formats(cell))
    elif _has_levels(column):
        facts = _level_facts(column, cell)
    elif isinstance(column, NumberCells):
        facts = iter(number_spellings(cell))
    remedies = [
        ", ".join(f"{key} = {toml_value(fact)}" for key, fact in one.items()) for one in islice(facts, 3)
    ]
    return f"{' or '.join(remedies)} would read it" if remedies else None


def _level_facts(column: Any, cell: str) -> Iterator[dict[str, object]]:
    folded = {str(level).casefold(): level for level in column.known_levels}
    text = cell.strip().casefold()
    if text in folded and not column.casefold:
        yield {"casefold": True}
    for match in difflib.get_close_matches(text, folded, 1):
        if match != text:
            yield {"aliases": {cell.strip(): folded[match]}}


Readable = Column | Target | Weight | Offset


@dataclass(frozen=True)
class KindSchema(Schema):
    """What each cell of a table is, as a table of codes: a column for each that is read, then null records.

    A code is one of the kinds of `schema.cells`; in the last column 1 stands for a record that counts for
    nothing in a fit, and 0 for any other. Facts may still be to be learnt: a number without a range is never
    out of it. Ids are taken as they are.
    """

    @classmethod
    def of(cls, schema: Schema) -> KindSchema:
        """The same declarations."""
        return cls(**{field.name: getattr(schema, field.name) for field in fields(Schema)})

    @property
    def readable(self) -> dict[str, Readable]:
        """The columns whose cells are looked at."""
        return {name: column for name, column in self.columns.items() if isinstance(column, Readable)}

    @property
    def codes(self) -> Codes:
        """For each column of codes those that can occur, but for cells that nothing is wrong with."""
        return *(column.possible_kinds for column in self.readable.values()), (MISSING,)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """What the codes of each column are called."""
        return {
            name: tuple(KIND_NAMES[kind] for kind in column.possible_kinds)
            for name, column in self.readable.items()
        }

    @property
    def n_features(self) -> int:
        return len(self.readable) + 1

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def beside(self) -> RecordColumns:
        return RecordColumns(unit=super().beside.unit)

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a record
    def encode(self, frame: object, *, null: bool = True) -> Vector | sp.csr_array:
        count = self._checked(frame, target=True)
        null_rows, table = null_records(self, frame, count), np.zeros((count, self.n_features))
        for k, (name, column) in enumerate(self.readable.items()):
            cells = self._cells(frame, name)
            table[:, k] = column.kinds(cells)
            if isinstance(column, Weight | Offset):
                values = column.read(cells)
                null_rows |= ~(np.abs(values) < LARGEST_NORM)
                if isinstance(column, Exposure):
                    null_rows |= ~(values > 0)
        table[null_rows, -1] = 1.0
        return table

    def read_target(self, frame: object) -> Vector | NDArray[np.str_]:
        """Nothing: cells of the target are among the codes."""
        return np.zeros(self._checked(frame, target=True))

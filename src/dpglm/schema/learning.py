"""What a schema leaves to be learnt: how raw records are counted for it, and the schema that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.raw_counts import Counts, RawCounts, cells_of
from ..data.source import LARGEST_NORM
from .categories import Category
from .cells import Mask, level_key
from .column import Column
from .numbers import Candidates, Number, candidates_of
from .roles import Target
from .schema import LEARN, Schema

NORMS = 64
"""How many norms of rows are candidates."""


def numbers_to_learn(schema: Schema) -> dict[str, Number]:
    """Columns whose range is to be learnt, the target included."""
    return {
        name: column if isinstance(column, Number) else Number(learn=True, widest=column.widest)
        for name, column in schema.columns.items()
        if isinstance(column, Number | Target) and column.pending
    }


def categories_to_learn(schema: Schema) -> dict[str, Category]:
    """Columns whose levels are to be learnt."""
    return {
        name: column for name, column in schema.columns.items()
        if isinstance(column, Category) and column.pending
    }  # fmt: skip


def ranges_of(schema: Schema) -> list[Candidates]:
    """The candidates for each range that is to be learnt."""
    return [candidates_of(column) for column in numbers_to_learn(schema).values()]


def norms_of(schema: Schema) -> Vector:
    """The candidates for the norm of rows."""
    return np.asarray(schema.radius * np.arange(1, NORMS + 1) / NORMS)


def census_of(schema: Schema, frame: object) -> RawCounts:
    """Counts of the records of a table in memory; null records are counted in ``length`` only."""
    count = schema._checked(frame, target=True)
    null = null_records(schema, frame, count)
    cells = [
        cells_of(np.where(null, np.nan, _numbers(schema, frame, name)), found.values)
        for name, found in zip(numbers_to_learn(schema), ranges_of(schema), strict=True)
    ]
    levels = tuple(_levels(schema, frame, name, null) for name in categories_to_learn(schema))
    return RawCounts(count, np.array(cells, dtype=np.int64), levels)


@np.errstate(all="ignore")  # a warning about a number would reveal something about a record
def null_records(schema: Schema, frame: object, count: int) -> Mask:
    """Which records count for nothing, whatever is learnt: by a cell that cannot be read, or no target."""
    null = np.zeros(count, dtype=bool)
    for name, column in schema.columns.items():
        if isinstance(column, Column):
            readable = blank(column)
            null |= readable.encode(schema._cells(frame, name)).null
        elif isinstance(column, Target):
            found = column.read(schema._cells(frame, name))
            # a target that is this large makes a null record in a fit, too
            null |= found == "" if found.dtype.kind == "U" else ~(np.abs(found) < LARGEST_NORM)
    return null


def blank(column: Column) -> Column:
    """A column with any facts in place of those that are to be learnt: its null records are the same."""
    if isinstance(column, Number) and column.pending and column.widest is not None:
        return replace(column, low=column.widest[0], high=column.widest[1])
    return replace(column, levels=()) if isinstance(column, Category) and column.pending else column


def _numbers(schema: Schema, frame: object, name: str) -> Vector:
    return schema._cells(frame, name).as_numbers().values


def _levels(schema: Schema, frame: object, name: str, null: Mask) -> Counter[float | str]:
    """Counts of levels by what they are compared by; missing cells have none."""
    texts, places, missing, bad = schema._cells(frame, name).as_texts()
    counts: Counter[float | str] = Counter()
    kept = places[~(null | missing | bad)]
    seen = np.bincount(kept + len(texts) * (kept < 0), minlength=len(texts))
    for text, n in zip(texts, seen.tolist(), strict=True):
        key = None if text is None else level_key(text)
        if n and key is not None and key != "" and _is_written(key):
            counts[key] += n
    return counts


def _is_written(key: float | str) -> bool:
    """Whether a level can stand in a file; half of a surrogate pair cannot, and its level is another one."""
    return not (isinstance(key, str) and any(0xD800 <= ord(letter) < 0xE000 for letter in key))


def norm_counts(schema: Schema, frame: object, candidates: Vector) -> tuple[int, Counts]:
    """How many records there are, and counts of the norms of encoded rows; null records are not counted."""
    rows: Any = schema.encode(frame)
    with np.errstate(all="ignore"):
        squares = (rows.multiply(rows) if sp.issparse(rows) else np.square(rows)).sum(axis=1)
        norms = np.sqrt(np.asarray(squares, dtype=np.float64).ravel())
    norms[null_records(schema, frame, len(norms))] = np.nan
    return len(norms), cells_of(norms, candidates)


def with_facts(
    schema: Schema, ranges: Sequence[tuple[float, float]], levels: Sequence[Sequence[float | str]]
) -> Schema:
    """The schema with what was learnt of its columns."""
    columns: dict[str, Any] = dict(schema.columns)
    for name, (low, high) in zip(numbers_to_learn(schema), ranges, strict=True):
        columns[name] = replace(columns[name], low=low, high=high)
    taken = set(schema.features)
    for name, found in zip(categories_to_learn(schema), levels, strict=True):
        plain = [level if isinstance(level, str) else _shortest(level) for level in found]
        # a level whose feature would have the name of another feature counts as other
        kept = [level for level in plain if f"{name}={level}" not in taken and " : " not in str(level)]
        taken.update(f"{name}={level}" for level in kept)
        columns[name] = replace(columns[name], levels=tuple(kept))
    return replace(schema, columns=columns)


def _shortest(level: float) -> float:
    return int(level) if level.is_integer() and abs(level) < 2**53 else level


def without_facts(learnt: Schema, declared: Schema) -> Schema:
    """A learnt schema without what ``declared`` leaves to be learnt: it must equal ``declared``."""
    columns: dict[str, Any] = dict(learnt.columns)
    for name, column in declared.columns.items():
        here = columns.get(name)
        if getattr(column, "pending", False) and type(here) is type(column):
            blank: dict[str, Any] = (
                {"levels": None} if isinstance(column, Category) else {"low": None, "high": None}
            )
            columns[name] = replace(here, **blank)
    return replace(learnt, columns=columns, row_norm=LEARN if declared.row_norm == LEARN else learnt.row_norm)


@dataclass(frozen=True)
class Scaled(Schema):
    """A learnt schema as a fit sees it: on scales that do not depend on what was learnt.

    Rows are stretched so that the learnt norm becomes the radius, and targets so that the learnt range
    becomes [-1, 1]: bounds, and with them the plan, are the same whatever was learnt.

    Parameters
    ----------
    stretch : float
        Factor of rows.
    middle, half : float
        A target t becomes (t - middle) / half, after it is cut to the learnt range.
    """

    stretch: float = 1.0
    middle: float = 0.0
    half: float = 1.0

    @classmethod
    def of(cls, learnt: Schema, declared: Schema, centred: bool) -> Scaled:
        """The scales for a schema that ``declared`` left open; ``centred`` moves middle targets to 0."""
        facts: dict[str, Any] = {field.name: getattr(learnt, field.name) for field in fields(learnt)}
        target = learnt._target
        if target is not None and declared._target is not None and declared._target.pending:
            low, high = float(target.low or 0.0), float(target.high or 0.0)
            middle = (low + high) / 2 if centred else 0.0
            facts |= {"middle": middle, "half": (high - low) / 2 if centred else max(abs(low), abs(high))}
        if declared.row_norm == LEARN and isinstance(learnt.row_norm, float):
            facts["stretch"] = learnt.radius / min(learnt.radius, learnt.row_norm)
        return cls(**facts)

    @np.errstate(all="ignore")
    def encode(self, frame: object, *, null: bool = True) -> Vector | sp.csr_array:
        rows = super().encode(frame, null=null)
        if self.stretch == 1.0:
            return rows
        if not isinstance(rows, np.ndarray):
            rows.data *= self.stretch
            return rows
        return np.asarray(rows * self.stretch)

    @np.errstate(all="ignore")
    def read_target(self, frame: object) -> Vector | NDArray[np.str_]:
        found = super().read_target(frame)
        target = self._target
        if target is None or target.low is None or target.high is None or found.dtype.kind == "U":
            return found
        values = np.asarray(found, dtype=np.float64)
        if not (self.middle or self.half != 1.0):
            return values
        lost = ~(np.abs(values) < LARGEST_NORM)
        moved = (np.clip(values, target.low, target.high) - self.middle) / self.half
        return np.where(lost, np.nan, np.clip(moved, -1.0, 1.0))

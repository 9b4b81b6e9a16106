"""Tables with named columns: how record batches of Arrow become blocks of numbers.

Nothing of Arrow is imported here; the adapters do that, each in its own file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..entries import numbers
from .columns import RecordColumns
from .frames import distinct, is_nested, is_single, type_kind, type_name
from .stream import Source, guarded, rows_per_block


class Level(NamedTuple):
    """Some records of a column: its different values, an array of Arrow, and the place of each record's.

    A missing value has the place -1.
    """

    values: Any
    places: NDArray[np.intp]


class Levels(tuple[Level, ...]):
    """A column by its different values: what is found for a value holds for each record that has it."""

    def through(self, numbers_of: Callable[[object], Vector]) -> Vector:
        """The number of each record's value; NaN where it is missing."""
        parts = [np.append(numbers_of(values), np.nan)[places] for values, places in self]
        return np.concatenate(parts) if parts else np.empty(0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Columnar(Source):
    """A table with named columns, one of which may hold the targets.

    Parameters
    ----------
    n_samples : int
    types : mapping
        The declared type of each column by its name, in the order of the table.
    target : str, optional
    others : tuple of str or None
        Columns of weights, offsets and exposures, in this order; None for what there is not.
    """

    n_samples: int
    types: Mapping[str, object]
    target: str | None = None
    others: tuple[str | None, ...] = ()

    @abstractmethod
    def batches(self, names: list[str], rows: int) -> Iterable[Any]:
        """The named columns in that order, as record batches of Arrow; the best length is ``rows``."""

    @property
    def feature_names(self) -> Sequence[str]:  # type: ignore[override]
        return [name for name in self.types if name != self.target and name not in self.others]

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return len(self.feature_names)

    def beside(self, names: Sequence[str | None]) -> Self:
        for name in names:
            if name is not None and (name not in self.types or is_nested(self.types[name])):
                raise ValueError(
                    f"{name!r} must be a column of numbers of X, whose columns are {list(self.types)}"
                )
        return replace(self, others=tuple(names))

    def aimed(self, target: str) -> Self:
        if target not in self.types:
            raise ValueError(
                f"y must be an array or name a column of X, whose columns are {list(self.types)}"
            )
        if is_nested(self.types[target]):
            raise ValueError(
                f"column {target!r} of X is of type {type_name(self.types[target])}: targets must be numbers "
                "or labels"
            )
        return replace(self, target=target)

    def blocks(self) -> Iterator[tuple[object, object]]:
        features, named = list(self.feature_names), (self.target, *self.others)
        aim = [name for name in named if name is not None]
        single = all(is_single(self.types[name]) for name in features)
        precision: type[np.floating] = np.float32 if single else np.float64
        rows = rows_per_block(len(features) * np.dtype(precision).itemsize)
        for pieces in _regrouped(guarded(lambda: self.batches(features + aim, rows)), rows):
            columns = [piece.columns for piece in pieces]
            pieces.clear()  # what is kept here would be in memory while the next batch is read
            rows_of_block, found = _block(columns, len(features), len(aim), precision)
            parts = iter(found)
            several = RecordColumns(*(None if name is None else next(parts) for name in named))
            yield rows_of_block, several if self.others else several.target


def typed(names: Iterable[str], types: Iterable[object]) -> dict[str, object]:
    """The types of columns by their names, which must differ."""
    return dict(zip(distinct(names), types, strict=True))


def _regrouped(batches: Iterable[Any], rows: int) -> Iterator[list[Any]]:
    """Batches cut and put together to blocks of so many rows each, the last one of fewer."""
    pieces: list[Any] = []
    missing = rows
    for batch in batches:
        while batch is not None and batch.num_rows:
            pieces.append(batch.slice(0, missing))
            batch = batch.slice(missing) if batch.num_rows > missing else None
            missing -= pieces[-1].num_rows
            if not missing:
                yield pieces
                pieces, missing = [], rows
    if pieces:
        yield pieces


def _block(
    columns: list[list[Any]], p: int, more: int, precision: type[np.floating]
) -> tuple[NDArray[np.floating], list[object]]:
    """Rows, targets and what stands beside them, of the columns of some batches, which are let go."""
    block: tuple[NDArray[np.floating], list[object]] = (
        _table([piece[:p] for piece in columns], p, precision),
        [_target([piece[p + k] for piece in columns]) for k in range(more)],
    )
    columns.clear()
    return block


def _table(pieces: list[Sequence[Any]], p: int, precision: type[np.floating]) -> NDArray[np.floating]:
    """The columns of pieces of a table as one array, by columns as they come."""
    edges = np.cumsum([0, *(len(columns[0]) for columns in pieces)])
    table = np.empty((edges[-1], p), dtype=precision, order="F")
    for k, columns in enumerate(pieces):
        for j, column in enumerate(columns):
            table[edges[k] : edges[k + 1], j] = _floats(column)
    return table


def _floats(column: Any) -> NDArray[np.generic]:
    """A column of numbers, NaN where one is missing."""
    kind = type_kind(column.type)
    if kind == "null":
        return np.full(len(column), np.nan)
    if kind == "decimal":  # rounded as Python does, as the tables in memory are
        return numbers(column.to_pylist())
    values: Vector = (column.cast("uint8") if kind == "boolean" else column).to_numpy(zero_copy_only=False)
    return values


def _target(pieces: list[Any]) -> NDArray[np.generic] | Levels:
    """A column of targets: an array of numbers, if none that is no float is missing; else its levels."""
    kind = type_kind(pieces[0].type)
    missing = any(piece.null_count for piece in pieces)
    if kind == "float" or kind == "integer" and not missing:
        return np.concatenate([_floats(piece) for piece in pieces])
    return Levels(map(_level, pieces))


def _level(column: Any) -> Level:
    coded = column if str(column.type).startswith("dictionary") else column.dictionary_encode()
    places = coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
    places[coded.indices.is_null().to_numpy(zero_copy_only=False)] = -1
    values = coded.dictionary
    if (
        type_kind(values.type) == "text"
    ):  # nobody has checked that the bytes are UTF-8: one cell would fail all
        from .adapters import decoded

        values = decoded(values)
    return Level(values, places)

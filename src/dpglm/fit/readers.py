"""How blocks and columns of a table become numbers, and what a table that is read block by block is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from ..arrays import Vector
from ..bounds import ROWS_PER_UNIT, Bounds
from ..data.adapters import as_source
from ..data.cluster import by_blocks, is_dask
from ..data.columnar import Columnar, Levels
from ..data.columns import NAMES, RecordColumns
from ..data.stream import MISCOUNTED, UNREADABLE, Source, Stream, prefetch
from ..errors import DpglmError, PrivacyWarning, SourceChanged, UnsupportedProblem
from .inputs import Labels, Table, numeric_table, numeric_target, require_numbers
from .keys import LENGTHS
from .presentations import Presentation

_NO_COLUMNS = RecordColumns()
Codes = Callable[[object], Vector]
"""From targets as users give them to numbers, each by itself."""

Targets = TypeVar("Targets", bound=Labels)
Method = TypeVar("Method", bound=Callable[..., Any])


def lazily(method: Method) -> Method:
    """A method of rows that, of a Dask collection, returns a Dask array: it is computed block by block."""

    @wraps(method)
    def either(self: Any, X: object, **beside: Any) -> Any:
        if not is_dask(X):
            return method(self, X, **beside)
        for name, part in beside.items():
            if part is not None and not isinstance(part, str):
                raise ValueError(f"{name} of a Dask collection must be the name of a column of X")
        return by_blocks(partial(getattr(self, method.__name__), **beside), X)

    return cast(Method, either)


def source_of(X: object, target: str | None = None, beside: RecordColumns = _NO_COLUMNS) -> Source | None:
    """The source that X is, ``target`` the column of its targets; None if X is a table in memory.

    Columns that are named in ``beside`` are weights, offsets and exposures.

    An object that can be read only once, and a column of another type than numbers, are refused by their
    types.
    """
    if _can_be_read_once(X):
        raise ValueError(
            f"X is a {type(X).__name__}, which can be read only once: give the table or query that it reads, "
            "or a dpglm.Stream, whose function returns a fresh iterator for each pass"
        )
    source = as_source(X)
    if source is None:
        return None
    if target is not None:
        source = source.aimed(target)
    if beside.names:
        source = source.beside([part if isinstance(part, str) else None for part in beside[1:]])
    if isinstance(source, Columnar):
        for name in source.feature_names:
            require_numbers(f"column {name!r} of X", source.types[name])
    return source


def _can_be_read_once(X: object) -> bool:
    return isinstance(X, Iterator) or type(X).__name__ == "RecordBatchReader"


def source_like(
    estimator: BaseEstimator, X: object, target: str | None = None, beside: RecordColumns = _NO_COLUMNS
) -> Source | None:
    """The source that X is, if it has the columns of the fit; None if X is a table in memory.

    The columns that held targets, weights and offsets of the fit may be there, but need not. Those of
    ``beside`` are read.
    """
    source = None if _can_be_read_once(X) else as_source(X)
    if target is None and isinstance(source, Columnar):
        fitted_target = getattr(estimator, "_target_column", None)
        target = fitted_target if fitted_target in source.types else None
    if isinstance(source, Columnar):
        fitted_beside = getattr(estimator, "_column_names", _NO_COLUMNS)
        known = RecordColumns(*(name if name in source.types else None for name in fitted_beside))
        beside = beside.joined(known)._replace(target=None)
    source = source_of(X if source is None else source, target if source is not None else None, beside)
    if source is None:
        return None
    names, fitted = source.feature_names, getattr(estimator, "feature_names_in_", None)
    if names is not None and fitted is not None and list(names) != list(fitted):
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order: expected "
            f"{list(fitted)}, got {list(names)}"
        )
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return source


def remember_columns(estimator: BaseEstimator, source: Source) -> None:
    """Remember the number and the names of the columns of a source."""
    estimator.n_features_in_, estimator._target_column = source.n_features, source.target
    if source.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def columns_in_memory(source: Source, columns: RecordColumns) -> RecordColumns:
    """What is given beside a source as arrays, read as numbers; None where its blocks have it."""
    numbers = {
        name: column_in_memory(source, part, partial(numeric_target, name=name), columns.unit is not None)
        for name, part in columns.columns._replace(unit=None)._asdict().items()
        if part is not None
    }
    return RecordColumns(**numbers)


def column_in_memory(
    source: Source, y: object, targets_of: Callable[[object], Targets], of_units: bool = False
) -> Targets | None:
    """The targets that are given beside a source; None if its blocks have them.

    With ``of_units`` the number of records is private, and an error does not state it.
    """
    if isinstance(y, str) or y is None and source.has_targets:
        return None
    if not isinstance(y, Stream):
        targets = targets_of(y)
    else:
        parts = [targets_of(rows) for rows, _ in prefetch(y.blocks())]
        targets = cast(Targets, np.concatenate(parts)) if parts else targets_of([])
    if of_units and len(targets) != source.n_samples:
        raise ValueError(LENGTHS)
    check_consistent_length(source, targets)
    return targets


def nameless(estimator: BaseEstimator) -> BaseEstimator:
    """The estimator as one that was fitted without names, to check blocks that have none."""
    plain = copy(estimator)
    if hasattr(plain, "feature_names_in_"):
        del plain.feature_names_in_
    return plain


class BlockReader:
    """How the rows and targets of a block become numbers: a function that can be sent elsewhere.

    Parameters
    ----------
    n_features : int
    codes : callable
        Turns targets into numbers.
    """

    def __init__(self, n_features: int, codes: Codes) -> None:
        self._n_features, self._codes = n_features, codes

    def __call__(self, rows: object, targets: object) -> tuple[Table, Vector]:
        try:
            return self._numbers(rows, targets)
        except (ValueError, TypeError, DpglmError):  # they name types and shapes
            raise
        except Exception:  # a block that is an odd object may raise anything
            pass
        raise SourceChanged(UNREADABLE)

    def _numbers(self, rows: object, targets: object) -> tuple[Table, Vector]:
        table = numeric_table(BaseEstimator(), rows, reset=True, missing=True)
        if table.shape[1] != self._n_features:
            raise ValueError(f"a block has {table.shape[1]} features, the source states {self._n_features}")
        values = codes_in_block(targets, self._codes)
        check_consistent_length(table, values)
        return table, values


def codes_in_block(targets: object, codes: Codes) -> Vector:
    """The targets of a block as numbers."""
    if targets is None:
        raise ValueError("the blocks of X have no targets: give y, or pairs of rows and targets")
    by_level = isinstance(targets, Levels) and not getattr(codes, "takes_levels", False)
    return targets.through(codes) if by_level else codes(targets)  # type: ignore[attr-defined]


def filled(source: Source, out: Any, value_of: Callable[[object, object], Any]) -> Any:
    """An array of one entry for each record, filled with the values of each block."""
    place = 0
    for rows, targets in prefetch(source.blocks()):
        values = value_of(rows, targets)
        place += len(values)
        if place > len(out):
            break
        out[place - len(values) : place] = values
    if place != len(out):
        raise SourceChanged(MISCOUNTED)
    return out


@dataclass(frozen=True)
class ColumnReader:
    """How targets, weights and offsets of records become numbers; it can be sent to workers.

    Parameters
    ----------
    codes : callable
        Turns targets into numbers.
    presentations : tuple of Presentation
    several : bool
        Whether to give targets, weights and offsets in three columns, with numbers of units as a fourth
        column if there are any; NaN for what is no number. Otherwise targets alone.
    limited : set of str, optional
        Columns that the bounds of a fit limit: others are refused. By default they are left out.
    """

    codes: Codes
    presentations: tuple[Presentation, ...] = ()
    several: bool = True
    limited: frozenset[str] | None = None

    takes_levels: ClassVar[bool] = True

    @np.errstate(all="ignore")
    def __call__(self, targets: object) -> Vector:
        columns = targets if isinstance(targets, RecordColumns) else RecordColumns(targets)
        if self.limited is not None:
            self._require_limits(columns)
        target = codes_in_block(columns.target, self.codes)
        if not self.several:
            return target
        values = np.column_stack([target, np.ones(len(target)), np.zeros(len(target))])
        if columns.weight is not None:
            values[:, 1] = _numbers(columns.weight, NAMES.weight, target)
        values[:, 2] += offsets(columns, target)
        for presentation in self.presentations:
            values = presentation.columns(values)
        return values if columns.unit is None else np.column_stack([values, columns.unit])

    def _require_limits(self, columns: RecordColumns) -> None:
        assert self.limited is not None
        for name, part in columns._asdict().items():
            if part is not None and name not in self.limited:
                raise UnsupportedProblem(
                    f"the table gives a column {name!r} for each record, and the bounds do not limit it: "
                    "declare weight=..., offset=... or rows_per_unit=... in them"
                )


@np.errstate(all="ignore")
def offsets(columns: RecordColumns, target: Vector) -> Vector:
    """The offset of each record; an exposure adds its logarithm."""
    total = np.zeros(len(target))
    for part, name in ((columns.offset, NAMES.offset), (columns.exposure, NAMES.exposure)):
        if part is not None:
            total = total + _offsets(_numbers(part, name, target), name)
    return total


def _numbers(part: object, name: str, target: Vector) -> Vector:
    found = codes_in_block(part, partial(numeric_target, name=name))
    check_consistent_length(target, found)
    return found


def _offsets(numbers: Vector, name: str) -> Vector:
    return np.log(numbers) if name == NAMES.exposure else numbers


def with_default_bounds(bounds: Bounds, several: RecordColumns, private: bool) -> Bounds:
    """The bounds with those of weights and offsets, if these are given and not bounded yet.

    A private fit takes weights up to 1, with a warning, and refuses offsets. A fit without noise takes the
    largest that there are. Of each person, 1,000 records count.
    """
    more: dict[str, Any] = {}
    if several.unit is not None and bounds.rows_per_unit is None:
        more["rows_per_unit"] = ROWS_PER_UNIT
    if several.weight is not None and bounds.weight is None:
        if private:
            warnings.warn(
                "no largest weight is declared, so weights are clipped to [0, 1]: give weight=... in the "
                "bounds",
                PrivacyWarning,
                stacklevel=4,
            )
        more["weight"] = 1.0 if private else _largest(several.weight, NAMES.weight)
    if several.has_offset and bounds.offset is None:
        if private:
            raise ValueError(
                "no range of offsets is declared: give offset=(low, high) in the bounds, the range of "
                "logarithms for an exposure"
            )
        parts = [(several.offset, NAMES.offset), (several.exposure, NAMES.exposure)]
        size = sum(_largest(part, name) for part, name in parts if part is not None)
        more["offset"] = -size, size
    return replace(bounds, **more) if more else bounds


def _largest(part: object, name: str) -> float:
    """The largest absolute value of what is given as an array: not private."""
    if isinstance(part, str):
        raise ValueError(
            f"{name} is the name of a column: give weight=... or offset=... in the bounds, since nobody "
            "looks for the largest value in a column"
        )
    with np.errstate(all="ignore"):
        found = np.abs(_offsets(numeric_target(part, name), name))
    found = found[np.isfinite(found)]
    return max(float(found.max(initial=0.0)), 1e-6)

"""Targets, weights, offsets and exposures of records, turned into numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_consistent_length

from ..arrays import Vector
from ..bounds import ROWS_PER_UNIT, Bounds
from ..data.columns import RecordColumns
from ..errors import PrivacyWarning
from .inputs import numeric_target
from .presentations import Presentation
from .sources import Codes, codes_in_block

NAMES = RecordColumns("y", "sample_weight", "offset", "exposure", "units")


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
    """

    codes: Codes
    presentations: tuple[Presentation, ...] = ()
    several: bool = True

    takes_levels: ClassVar[bool] = True

    @np.errstate(all="ignore")
    def __call__(self, targets: object) -> Vector:
        columns = targets if isinstance(targets, RecordColumns) else RecordColumns(targets)
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

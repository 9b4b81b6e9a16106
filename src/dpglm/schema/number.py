"""Columns of numbers with a declared range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from .. import strict
from ..arrays import Vector
from ..data.bounded_numbers import OUTSIDE
from . import basis
from .cells import Cells, Mask, Read
from .column import MISSING, Column, Slots, checked_range, increasing, one_hot, scaled
from .kinds import Kinds, of_numbers
from .spelling import NumberCells

_TRANSFORMS = ("log", "log1p")


@dataclass(frozen=True)
class Number(NumberCells, Column):
    """A number in a declared range, scaled to [-1, 1]; what lies outside of the range is cut to it.

    Parameters
    ----------
    low, high : float
        The range, from the meaning of the column, never from its values. A range that is to be learnt is left
        out.
    missing : "null", "indicator" or float
        What a missing value means: its record counts for nothing; or a feature of its own is 1; or it is this
        number.
    transform : "log" or "log1p", optional
        The logarithm of x, or of 1 + x, takes the place of x.
    cuts : sequence of float, optional
        Cut points: each bin between them becomes a feature that is 0 or 1.
    fused : bool
        Whether `Schema.penalty` draws neighbouring bins to equal coefficients.
    knots : sequence of float, optional
        Inner knots: cubic B-splines take the place of x.
    learn : bool
        Whether the range is learnt in the fit, privately and as part of its price; see
        `make_private_pipeline`.
    widest : (float, float), optional
        The widest range that can be learnt, which must be declared; it may be too wide by far.
    decimal : str
        The decimal mark of cells that are strings, such as ",".
    thousands : str, optional
        What separates groups of digits in cells that are strings, such as "." or " ".
    strip : str or sequence of str
        Characters, or strings, that are removed from both ends of cells that are strings, such as "€%".
    weight : float
        As in all columns: largest norm of the features.

    Examples
    --------
    >>> from dpglm.schema import Number
    >>> Number(17, 90, cuts=[30, 50]).features("age")
    ['age [17, 30)', 'age [30, 50)', 'age [50, 90]']
    """

    low: float = None  # type: ignore[assignment]  # None until it is learnt
    high: float = None  # type: ignore[assignment]
    missing: str | float = "null"
    transform: str | None = None
    cuts: tuple[float, ...] = ()
    knots: tuple[float, ...] = ()
    learn: bool = False
    widest: tuple[float, float] | None = None
    fused: bool = False

    kind: ClassVar[str] = "number"

    def check(self) -> None:
        self.check_numbers()
        low, high = checked_range(self)
        if self.learn and (len(self.cuts) or len(self.knots)):
            raise ValueError(
                "cuts and knots lie within a declared range: give low and high, and do not learn"
            )
        object.__setattr__(self, "missing", missing_number(self.missing, *(self.widest or (low, high))))
        if self.transform is not None:
            strict.one_of("transform", self.transform, _TRANSFORMS)
            least = 0.0 if self.transform == "log" else -1.0
            if low <= least:
                raise ValueError(f"low must be more than {least:g} for the transform {self.transform!r}")
        for name in ("cuts", "knots"):
            if len(values := strict.sequence(name, getattr(self, name))):
                object.__setattr__(self, name, increasing(name, values, low, high))
            else:
                object.__setattr__(self, name, ())
        if bool(self.cuts) + bool(self.knots) + (self.transform is not None) > 1:
            raise ValueError("give one of transform, cuts and knots")
        if strict.flag("fused", self.fused) and not self.cuts:
            raise ValueError("fused is for bins: give cuts")

    @property
    def pending(self) -> bool:
        return self.low is None

    @property
    def _marked(self) -> bool:
        return self.missing == "indicator"

    @property
    def _parts(self) -> int:
        """Features without the indicator of missing values."""
        return len(self.cuts) + 1 if self.cuts else basis.spline_size(self.knots) if self.knots else 1

    @property
    def n_features(self) -> int:
        return self._parts + self._marked

    @property
    def neighbours(self) -> int:
        return self._parts if self.fused else 0

    @property
    def slots(self) -> int:
        return basis.DEGREE + 1 if self.knots else 1

    def features(self, name: str) -> list[str]:
        if self.cuts:
            names = [f"{name} {part}" for part in basis.bin_names(self.low, self.cuts, self.high)]
        elif self.knots:
            names = [f"{name} spline {k + 1}" for k in range(self._parts)]
        else:
            inner = f"1 + {name}" if self.transform == "log1p" else name
            names = [name if self.transform is None else f"log({inner})"]
        return [*names, f"{name} ({MISSING})"] if self._marked else names

    def ranges(self) -> tuple[Vector, Vector]:
        low, high = one_hot(self.n_features)
        if self._parts == 1:
            low[0] = -1.0
        return low, high

    def encode(self, cells: Cells, stand_for_missing: frozenset[str]) -> Slots:
        return self.encode_numbers(*self.read(cells, stand_for_missing))

    def read(self, cells: Cells, stand_for_missing: frozenset[str]) -> Read:
        """The numbers of the cells."""
        return cells.as_numbers(stand_for_missing)

    def kinds(self, cells: Cells, stand_for_missing: frozenset[str]) -> Kinds:
        return self.kinds_of(self.read(cells, stand_for_missing))

    def kinds_of(self, read: Read) -> Kinds:
        """What cells are that were read; a range that is still to be learnt has no outside."""
        return of_numbers(read) if self.pending else of_numbers(read, self.low, self.high)

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        return super().possible_kinds if self.pending else (*super().possible_kinds, OUTSIDE)

    def encode_numbers(self, values: Vector, missing: Mask, bad: Mask) -> Slots:
        """The features of numbers, NaN where they are missing or bad."""
        null = (bad | missing) if self.missing == "null" else bad
        filled = self.missing if isinstance(self.missing, float) else (self.low + self.high) / 2
        x = np.clip(np.where(np.isnan(values), filled, values), self.low, self.high)
        if self.knots:
            index, value = basis.spline(x, self.low, self.knots, self.high)
        elif self.cuts:
            index, value = basis.bins(x, self.cuts)[:, None].astype(np.int32), np.ones((len(x), 1))
        else:
            z = self._scaled(x)
            index, value = np.zeros((len(x), 1), dtype=np.int32), z[:, None]
        hidden = null | (missing & (not isinstance(self.missing, float)))
        if hidden.any():
            index[hidden] = -1
        if self._marked:
            index[missing, 0], value[missing, 0] = self._parts, 1.0
        return Slots(index, value, null)

    def _scaled(self, x: Vector) -> Vector:
        middle, half = self._middle_and_half
        return np.clip((self.transformed(x) - middle) / half, -1.0, 1.0)

    def transformed(self, x: Vector) -> Vector:
        """The numbers on the scale on which they are features."""
        if self.transform is None:
            return x
        found: Vector = np.log(x) if self.transform == "log" else np.log1p(x)
        return found

    def back(self, z: Vector) -> Vector:
        """The inverse of ``transformed``."""
        if self.transform is None:
            return z
        found: Vector = np.exp(z) if self.transform == "log" else np.expm1(z)
        return found

    @property
    def _middle_and_half(self) -> tuple[float, float]:
        low, high = self.transformed(np.array([self.low, self.high])).tolist()
        return (low + high) / 2, (high - low) / 2

    def raw(self) -> sp.csr_array:
        if self.cuts or self.knots:
            return super().raw()
        middle, half = self._middle_and_half
        return scaled(half, middle, self._marked)


def missing_number(missing: object, low: float, high: float) -> str | float:
    """What a missing value means: "null", "indicator" or a number of the range."""
    if isinstance(missing, str):
        return strict.one_of("missing", missing, ("null", "indicator"))
    return strict.number(
        "missing", missing, '"null", "indicator" or a number from low to high', lambda x: low <= x <= high
    )

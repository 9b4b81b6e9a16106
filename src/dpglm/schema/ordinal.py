"""Columns of declared levels that have an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from ..data.bounded_numbers import UNKNOWN
from .cells import ABSENT, UNREAD, Cells, codes_of_levels, key_of
from .column import MISSING, Column, InOneFeature, Slots, checked_levels, one_hot, scaled, single
from .kinds import Kinds, of_levels
from .spelling import LevelCells


@dataclass(frozen=True)
class Ordinal(LevelCells, InOneFeature):
    """One of several levels in a declared order: one feature, from -1 for the first to 1 for the last.

    With ``fused`` it is a feature for each level, 0 or 1, and `Schema.penalty` draws neighbours to equal
    coefficients.

    Parameters
    ----------
    levels : sequence of text, numbers or truth values
        At least two, in their order; steps between them count the same. Levels are compared as those of a
        `Category`. An unknown level counts as the middle.
    missing : "null", "indicator" or a level
        What a missing value means: its record counts for nothing; or a feature of its own is 1; or it is this
        level.
    aliases : mapping of str to level, optional
        Other spellings of levels, such as ``{"M": "male"}``.
    casefold : bool
        Whether upper and lower case are the same.
    fused : bool
        Whether each level has a feature; an unknown level then has none.
    weight : float
        As in all columns: largest norm of the features.
    """

    levels: Sequence[object]
    missing: object = "null"
    fused: bool = False

    kind: ClassVar[str] = "ordinal"

    def check(self) -> None:
        strict.flag("fused", self.fused)
        object.__setattr__(self, "levels", checked_levels("levels", self.levels))
        codes = codes_of_levels("levels", self.levels)
        if len(codes) < 2:
            raise strict.wrong("levels", self.levels, "at least two levels")
        self.check_levels()
        if self.missing not in ("null", "indicator") and key_of(self.missing) not in codes:
            raise strict.wrong("missing", self.missing, '"null", "indicator" or one of the levels')

    @property
    def known_levels(self) -> Sequence[object]:
        return self.levels

    def encode(self, cells: Cells, stand_for_missing: frozenset[str]) -> Slots:
        declared = self.codes
        codes = self.read(cells, stand_for_missing)
        if self.missing not in ("null", "indicator"):
            codes[codes == ABSENT] = next(
                code for key, code in declared.items() if key == key_of(self.missing)
            )
        missing, bad, half = codes == ABSENT, codes == UNREAD, (len(self.levels) - 1) / 2
        if self.fused:
            index = np.where(codes >= 0, codes, -1)
            if self.missing == "indicator":
                index = np.where(missing, len(self.levels), index)
            return single(index, 1.0, bad | missing if self.missing == "null" else bad)
        value = np.where(codes >= 0, (codes - half) / half, 0.0)
        if self.missing == "null":
            return single(np.where(missing | bad, -1, 0), value, missing | bad)
        return single(np.where(bad, -1, missing), np.where(missing, 1.0, value), bad)

    def read(self, cells: Cells, stand_for_missing: frozenset[str]) -> NDArray[np.intp]:
        """The codes of the levels of the cells."""
        return cells.as_codes(self.codes, stand_for_missing)

    def kinds(self, cells: Cells, stand_for_missing: frozenset[str]) -> Kinds:
        return of_levels(self.read(cells, stand_for_missing))

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        return *super().possible_kinds, UNKNOWN

    def features(self, name: str) -> list[str]:
        if not self.fused:
            return super().features(name)
        names = [f"{name}={level}" for level in self.levels]
        return [*names, f"{name} ({MISSING})"] if self._marked else names

    @property
    def n_features(self) -> int:
        return len(self.levels) + self._marked if self.fused else super().n_features

    @property
    def neighbours(self) -> int:
        return len(self.levels) if self.fused else 0

    def ranges(self) -> tuple[Vector, Vector]:
        return one_hot(self.n_features) if self.fused else super().ranges()

    def raw(self) -> sp.csr_array:
        if self.fused:
            return Column.raw(self)
        half = (len(self.levels) - 1) / 2
        return scaled(half, half, self._marked)

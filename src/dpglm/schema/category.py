"""Columns of a few declared levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from ..data.bounded_numbers import FINE, UNKNOWN
from .cells import ABSENT, UNREAD, Cells, codes_of_levels, key_of
from .column import MISSING, Column, Slots, checked_levels, one_hot, single
from .kinds import Kinds, of_levels
from .spelling import LevelCells


@dataclass(frozen=True)
class Category(LevelCells, Column):
    """One of several declared levels: a feature for each, which is 0 or 1.

    A level is compared as text, without spaces around it; a level that is a number is compared as a number,
    so that 1, 1.0 and "1" are the same.

    Parameters
    ----------
    levels : sequence of text, numbers or truth values
        From a data dictionary, never from the values of the column. Levels that are to be learnt are left
        out.
    other : bool
        Whether all other levels share a feature; without it they are a row of zeros.
    missing : "other", "null" or "indicator"
        What a missing value means: another level; or its record counts for nothing; or a feature of its own
        is 1.
    baseline : text, number or truth value, optional
        A level without a feature, against which the others are compared: intervals need one.
    learn : bool
        Whether the levels are learnt in the fit, privately and as part of its price: those that many records
        have; see `make_private_pipeline`.
    most : int
        The largest number of levels that are learnt: so many features there are, however many are found.
    aliases : mapping of str to level, optional
        Other spellings of levels, such as ``{"M": "male"}``.
    casefold : bool
        Whether upper and lower case are the same. Levels that are learnt are then in lower case.
    weight : float
        As in all columns: largest norm of the features.
    """

    levels: Sequence[object] = None  # type: ignore[assignment]  # None until they are learnt
    other: bool = True
    missing: str = "other"
    baseline: object = None
    learn: bool = False
    most: int = 20

    kind: ClassVar[str] = "category"

    def check(self) -> None:
        strict.flag("other", self.other)
        strict.one_of("missing", self.missing, ("other", "null", "indicator"))
        strict.keep(self, learn=strict.flag, most=strict.whole)
        if self.learn:
            if self.baseline is not None:
                raise ValueError("a baseline is one of declared levels: give them, and do not learn")
            if self.levels is None:
                self.check_levels()
                return
        elif self.levels is None:
            raise ValueError("a category needs levels, or learn = true")
        found = (
            strict.sequence("levels", self.levels) if self.learn else checked_levels("levels", self.levels)
        )
        if self.learn and len(found) > self.most:
            raise strict.wrong("levels", self.levels, f"at most {self.most} levels that were learnt")
        object.__setattr__(self, "levels", found)
        codes = codes_of_levels("levels", self.levels)
        if self.baseline is not None and key_of(self.baseline) not in codes:
            raise strict.wrong("baseline", self.baseline, "one of the levels")
        self.check_levels()

    @property
    def known_levels(self) -> Sequence[object]:
        return self.levels or ()

    @property
    def declared_levels(self) -> Sequence[object] | None:
        return None if self.learn else self.levels

    @property
    def pending_levels(self) -> bool:
        return self.pending

    @property
    def pending(self) -> bool:
        return self.levels is None

    def unused(self, name: str) -> list[str]:
        return self.features(name)[len(self._kept) : self._room]

    @property
    def _room(self) -> int:
        """How many features are for levels."""
        return self.most if self.learn else len(self._kept)

    @property
    def _kept(self) -> list[object]:
        """The levels that have a feature."""
        base = None if self.baseline is None else key_of(self.baseline)
        return [level for level in self.levels or () if base is None or key_of(level) != base]

    def features(self, name: str) -> list[str]:
        names = [f"{name}={level}" for level in self._kept]
        names += [f"{name} (unused {k + 1})" for k in range(self._room - len(names))]
        names += [f"{name} (other)"] if self.other else []
        return names + ([f"{name} ({MISSING})"] if self.missing == "indicator" else [])

    @property
    def n_features(self) -> int:
        return self._room + self.other + (self.missing == "indicator")

    def ranges(self) -> tuple[Vector, Vector]:
        return one_hot(self.n_features)

    def encode(self, cells: Cells, stand_for_missing: frozenset[str]) -> Slots:
        codes = self.read(cells, stand_for_missing)
        kept, count = {key_of(level): k for k, level in enumerate(self._kept)}, self._room
        places = [kept.get(key_of(level), -1) for level in self.levels]  # -1 for the baseline
        unknown = count if self.other else -1
        absent = {"other": unknown, "null": -1, "indicator": count + self.other}[self.missing]
        index = np.array([*places, -1, absent, unknown])[codes]  # codes below 0 count from the end
        return single(index, 1.0, (codes == UNREAD) | (codes == ABSENT) & (self.missing == "null"))

    def read(self, cells: Cells, stand_for_missing: frozenset[str]) -> NDArray[np.intp]:
        """The codes of the levels of the cells."""
        return cells.as_codes(self.codes, stand_for_missing, declared=not self.learn)

    def kinds(self, cells: Cells, stand_for_missing: frozenset[str]) -> Kinds:
        return of_levels(self.read(cells, stand_for_missing), FINE if self.pending else UNKNOWN)

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        return super().possible_kinds if self.pending else (*super().possible_kinds, UNKNOWN)

"""Columns that are no features: target, weight, offset, exposure, id, and those that are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import strict
from ..arrays import Vector
from ..bounds import ROWS_PER_UNIT
from .cells import NO_LEVEL, Cells, Kinds, codes_of_levels
from .column import check_ends, check_range, checked_levels
from .spelling import LevelCells, NumberCells, Spelling


@dataclass(frozen=True)
class Target(NumberCells, LevelCells):
    """What is to be predicted: one of several classes, or a number in a declared range.

    A record whose target is missing, no number, or none of the classes counts for nothing.

    Parameters
    ----------
    low, high : float, optional
        Range of the targets of a regression; what lies outside is cut to it.
    classes : sequence, optional
        The classes of a classification; they are compared as levels of a `Category`.
    learn : bool
        Whether the range is learnt in the fit, privately and as part of its price.
    widest : (float, float), optional
        The widest range that can be learnt, which must be declared.
    decimal, thousands, strip : str
        How cells that are strings spell numbers, as in `Number`.
    aliases, casefold : mapping of str to class, bool
        How cells spell classes, as in `Category`.

    Examples
    --------
    >>> from dpglm.schema import Target
    >>> Target(classes=["<=50K", ">50K"]).is_class, Target(0, 500_000).is_class
    (True, False)
    """

    low: float | None = None
    high: float | None = None
    classes: Sequence[object] = ()
    learn: bool = False
    widest: tuple[float, float] | None = None

    kind: ClassVar[str] = "target"

    def __post_init__(self) -> None:
        numbers = self.low is not None or self.high is not None or self.learn or self.widest is not None
        if numbers == (len(strict.sequence("classes", self.classes)) > 0):
            raise ValueError("a target has either a range, low and high, or classes")
        if self.classes:
            object.__setattr__(self, "classes", checked_levels("classes", self.classes))
            if len(codes_of_levels("classes", self.classes)) < 2:
                raise strict.wrong("classes", self.classes, "at least two classes")
            types = {str if isinstance(label, str) else float for label in self.classes}
            if len(types) > 1:
                raise strict.wrong("classes", self.classes, "classes of one type")
            self.check_levels()
        else:
            check_range(self)
            self.check_numbers()
        other = NumberCells if self.classes else LevelCells
        foreign = [field.name for field in fields(other) if getattr(self, field.name) != field.default]
        if foreign:
            kind = "classes" if self.classes else "a range"
            raise ValueError(f"a target with {kind} has no {' and '.join(foreign)}")

    @property
    def known_levels(self) -> Sequence[object]:
        return self.classes

    @property
    def spelling(self) -> Spelling | None:
        """How cells spell classes or numbers; None if in the usual way."""
        return super(NumberCells, self).spelling if self.is_class else super().spelling

    @property
    def pending(self) -> bool:
        """Whether the range is still to be learnt."""
        return not self.classes and self.low is None

    @property
    def is_class(self) -> bool:
        """Whether it is one of several classes."""
        return bool(self.classes)

    def read(self, cells: Cells) -> Vector | NDArray[np.str_]:
        """The targets: numbers, NaN where there is none; or classes as declared, "" or NaN for no class."""
        if not self.is_class:
            return cells.as_numbers().values
        codes = np.maximum(self.level_codes(cells), NO_LEVEL)
        text = isinstance(self.classes[0], str)
        labels = np.array([*self.classes, "" if text else math.nan], dtype=None if text else np.float64)
        targets: Vector | NDArray[np.str_] = labels[codes]
        return targets

    def kinds(self, cells: Cells) -> Kinds:
        """What each cell is, by the reading that ``read`` uses."""
        kind = LevelCells if self.is_class else NumberCells
        return kind.kinds(self, cells)

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        """What a cell can be besides fine."""
        return super(NumberCells, self).possible_kinds if self.is_class else super().possible_kinds


@dataclass(frozen=True)
class Role:
    """A number of each record that is no feature; a record in which it is missing counts for nothing."""

    kind: ClassVar[str]

    def read(self, cells: Cells) -> Vector:
        """The numbers, NaN where there is none."""
        return cells.as_numbers().values


@dataclass(frozen=True)
class Weight(NumberCells, Role):
    """The weight of a record.

    Parameters
    ----------
    high : float
        The largest weight; weights are cut to [0, high].
    decimal, thousands, strip : str
        How cells that are strings spell numbers, as in `Number`.
    """

    high: float

    kind: ClassVar[str] = "weight"

    def __post_init__(self) -> None:
        object.__setattr__(self, "high", strict.positive("high", self.high))
        self.check_numbers()

    @property
    def declared_range(self) -> tuple[float, float]:
        return 0.0, self.high


@dataclass(frozen=True)
class Offset(NumberCells, Role):
    """A number that is added to the linear predictor of a record.

    Parameters
    ----------
    low, high : float
        The range of offsets; what lies outside is cut to it.
    decimal, thousands, strip : str
        How cells that are strings spell numbers, as in `Number`.
    """

    low: float
    high: float

    kind: ClassVar[str] = "offset"

    def __post_init__(self) -> None:
        self.check_numbers()
        low, high = check_ends(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def ends(self) -> tuple[float, float]:
        """The range of what is added."""
        return self.low, self.high


@dataclass(frozen=True)
class Exposure(Offset):
    """What a count is proportional to, as years or persons: its logarithm is an offset.

    Parameters
    ----------
    low, high : float
        The range of exposures, above 0; what lies outside is cut to it. A record with an exposure of 0 or
        less counts for nothing.
    decimal, thousands, strip : str
        How cells that are strings spell numbers, as in `Number`.
    """

    kind: ClassVar[str] = "exposure"

    def __post_init__(self) -> None:
        super().__post_init__()
        strict.positive("low", self.low)

    @property
    def ends(self) -> tuple[float, float]:
        return math.log(self.low), math.log(self.high)


@dataclass(frozen=True)
class Unit(Role):
    """The id of the person whose record it is: the promise is then one to persons, not to records.

    A record without an id counts for nothing.

    Parameters
    ----------
    rows : int
        How many records of a person count at most: the first ones.
    """

    rows: int = ROWS_PER_UNIT

    kind: ClassVar[str] = "unit"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", strict.whole("rows", self.rows))

    def ids(self, entries: NDArray[np.object_], missing_texts: frozenset[str]) -> NDArray[np.object_]:
        """The ids, None where there is none."""
        found = [entry.strip() if isinstance(entry, str) else entry for entry in entries]
        known = np.empty(len(found), dtype=object)
        known[:] = [None if isinstance(one, str) and one in missing_texts else one for one in found]
        return known


@dataclass(frozen=True)
class Drop:
    """A column that is not used; it may be missing in a table."""

    kind: ClassVar[str] = "drop"

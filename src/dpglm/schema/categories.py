"""Columns of levels and of text: each level a feature, a hash of it, or its place in an order."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from .. import strict
from ..arrays import Vector
from ..data.bounded_numbers import FINE, UNKNOWN, UNREADABLE
from .cells import (
    ABSENT,
    NO_LEVEL,
    UNREAD,
    Cells,
    Kinds,
    Texts,
    codes_of_levels,
    level_key,
    text_kinds,
)
from .column import (
    Column,
    Ragged,
    SingleFeatureColumn,
    Slots,
    checked_levels,
    one_hot,
    scaled_raw_map,
    single_slot,
)
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
        levels = (
            strict.sequence("levels", self.levels) if self.learn else checked_levels("levels", self.levels)
        )
        if self.learn and len(levels) > self.most:
            raise strict.wrong("levels", self.levels, f"at most {self.most} levels that were learnt")
        object.__setattr__(self, "levels", levels)
        codes = codes_of_levels("levels", self.levels)
        if self.baseline is not None and level_key(self.baseline) not in codes:
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
        base = None if self.baseline is None else level_key(self.baseline)
        return [level for level in self.levels or () if base is None or level_key(level) != base]

    def features(self, name: str) -> list[str]:
        names = [f"{name}={level}" for level in self._kept]
        names += [f"{name} (unused {k + 1})" for k in range(self._room - len(names))]
        names += [f"{name} (other)"] if self.other else []
        return self.with_indicator(name, names)

    @property
    def n_features(self) -> int:
        return self._room + self.other + self.has_indicator

    def ranges(self) -> tuple[Vector, Vector]:
        return one_hot(self.n_features)

    def encode(self, cells: Cells) -> Slots:
        codes = self.level_codes(cells)
        feature_of, count = {level_key(level): k for k, level in enumerate(self._kept)}, self._room
        places = [feature_of.get(level_key(level), -1) for level in self.levels]  # -1 for the baseline
        unknown = count if self.other else -1
        absent = {"other": unknown, "null": -1, "indicator": count + self.other}[self.missing]
        index = np.array([*places, -1, absent, unknown])[codes]  # codes below 0 count from the end
        return single_slot(index, 1.0, (codes == UNREAD) | (codes == ABSENT) & (self.missing == "null"))

    @property
    def undeclared_kind(self) -> int:
        return FINE if self.pending else UNKNOWN


@dataclass(frozen=True)
class Ordinal(LevelCells, SingleFeatureColumn):
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
    aliases, casefold : mapping of str to level, bool
        How cells spell levels, as in `Category`.
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
        if self.missing not in ("null", "indicator") and level_key(self.missing) not in codes:
            raise strict.wrong("missing", self.missing, '"null", "indicator" or one of the levels')

    @property
    def known_levels(self) -> Sequence[object]:
        return self.levels

    def encode(self, cells: Cells) -> Slots:
        declared = self.codes
        codes = self.level_codes(cells)
        if self.missing not in ("null", "indicator"):
            codes[codes == ABSENT] = next(
                code for key, code in declared.items() if key == level_key(self.missing)
            )
        missing, bad, half = codes == ABSENT, codes == UNREAD, (len(self.levels) - 1) / 2
        if self.fused:
            index = np.where(codes >= 0, codes, -1)
            if self.has_indicator:
                index = np.where(missing, len(self.levels), index)
            return single_slot(index, 1.0, bad | missing if self.missing == "null" else bad)
        value = np.where(codes >= 0, (codes - half) / half, 0.0)
        if self.missing == "null":
            return single_slot(np.where(missing | bad, -1, 0), value, missing | bad)
        return single_slot(np.where(bad, -1, missing), np.where(missing, 1.0, value), bad)

    def features(self, name: str) -> list[str]:
        if not self.fused:
            return super().features(name)
        return self.with_indicator(name, [f"{name}={level}" for level in self.levels])

    @property
    def n_features(self) -> int:
        return len(self.levels) + self.has_indicator if self.fused else super().n_features

    @property
    def neighbours(self) -> int:
        return len(self.levels) if self.fused else 0

    def ranges(self) -> tuple[Vector, Vector]:
        return one_hot(self.n_features) if self.fused else super().ranges()

    def raw(self) -> sp.csr_array:
        if self.fused:
            return Column.raw(self)
        half = (len(self.levels) - 1) / 2
        return scaled_raw_map(half, half, self.has_indicator)


_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _HashedColumn(Column):
    """A number of buckets, which a keyed hash chooses among."""

    buckets: int
    key: str = ""
    missing: str = "zero"

    refused: ClassVar[frozenset[str]] = frozenset()

    def check(self) -> None:
        strict.keep(self, buckets=lambda name, value: strict.whole(name, value, 2))
        if self.buckets > 1 << 30:
            raise strict.wrong("buckets", self.buckets, "at most 2**30")
        if not isinstance(self.key, str) or len(self.key.encode("utf-8", "replace")) > 64:
            raise strict.wrong("key", self.key, "a text of at most 64 bytes")
        strict.one_of("missing", self.missing, ("zero", "null", "indicator"))

    def bucket(self, text: str) -> int:
        """The bucket of a text."""
        key = self.key.encode("utf-8", "replace")
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8, key=key).digest()
        return int.from_bytes(digest, "little") % self.buckets

    def features(self, name: str) -> list[str]:
        return self.with_indicator(name, [f"{name} #{k}" for k in range(self.buckets)])

    @property
    def n_features(self) -> int:
        return self.buckets + self.has_indicator

    def ranges(self) -> tuple[Vector, Vector]:
        return one_hot(self.n_features)

    def read(self, cells: Cells) -> Texts:
        """The texts of the cells."""
        return cells.as_texts()

    def kinds(self, cells: Cells) -> Kinds:
        read = self.read(cells)
        return text_kinds(read.missing, read.bad)

    @property
    def _absent(self) -> int:
        """The feature of a missing value."""
        return self.buckets if self.has_indicator else -1


@dataclass(frozen=True)
class Hashed(_HashedColumn):
    """One of many levels that nobody can list: a public hash chooses one of so many features.

    Parameters
    ----------
    buckets : int
        Number of features; levels that fall into the same one are not told apart.
    key : str
        Public text that makes this hash differ from others.
    missing : "zero", "null" or "indicator"
        What a missing value means: a row of zeros; or its record counts for nothing; or a feature of its own
        is 1.
    weight : float
        As in all columns: largest norm of the features.
    """

    kind: ClassVar[str] = "hashed"

    def encode(self, cells: Cells) -> Slots:
        texts, places, missing, bad = self.read(cells)
        buckets = np.array([-1 if text is None else self.bucket(text) for text in texts])
        index = np.where(missing, self._absent, buckets[places])
        return single_slot(index, 1.0, bad | missing & (self.missing == "null"))


@dataclass(frozen=True)
class Text(_HashedColumn):
    """Free text: each word, in lower case, chooses one of so many features by a public hash.

    A row has the same value in each of its buckets, and norm 1 as long as it has a word.

    Parameters
    ----------
    buckets : int
        Number of features; words that fall into the same one are not told apart.
    key : str
        Public text that makes this hash differ from others.
    missing : "zero", "null" or "indicator"
        What a missing value means: a row of zeros; or its record counts for nothing; or a feature of its own
        is 1.
    weight : float
        As in all columns: largest norm of the features.
    """

    kind: ClassVar[str] = "text"

    @property
    def slots(self) -> None:
        return None

    def encode(self, cells: Cells) -> Ragged:
        texts, places, missing, bad = self.read(cells)
        known: dict[str, int] = {}
        bucket_lists = [[] if text is None else self._buckets_of(text, known) for text in texts]
        bucket_lists.append([self.buckets] if self.has_indicator else [])
        lengths = np.array([len(buckets) for buckets in bucket_lists])
        edges = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.fromiter((k for buckets in bucket_lists for k in buckets), dtype=np.int64, count=edges[-1])
        values = np.repeat(1.0 / np.sqrt(np.maximum(lengths, 1)), lengths)
        table = sp.csr_array((values, flat, edges), shape=(len(bucket_lists), self.n_features))
        rows = np.where(missing, len(texts), places % len(texts))
        return Ragged(table[rows], bad | missing & (self.missing == "null"))

    def _buckets_of(self, text: str, known: dict[str, int]) -> list[int]:
        """The different buckets of the words of a text, in order."""
        words = set(_WORD.findall(text.lower()))
        for word in words.difference(known):
            known[word] = self.bucket(word)
        return sorted({known[word] for word in words})


_WORDS = {"yes": 1, "y": 1, "t": 1, "no": 0, "n": 0, "f": 0}
_CODES: dict[float | str, int] = {1.0: 1, 0.0: 0} | {
    spelt: code for word, code in _WORDS.items() for spelt in (word, word.capitalize(), word.upper())
}


@dataclass(frozen=True)
class Boolean(LevelCells, SingleFeatureColumn):
    """A truth value: one feature, 1 for true and -1 for false.

    Cells are truth values, 1 and 0, or the texts true, false, yes, no, t, f, y and n.

    Parameters
    ----------
    missing : "null", "indicator" or bool
        What a missing value means: its record counts for nothing; or a feature of its own is 1; or it is this
        truth value.
    aliases : mapping of str to bool, optional
        Other spellings of truth values, such as ``{"ja": True, "nein": False}``.
    casefold : bool
        Whether upper and lower case are the same.
    weight : float
        As in all columns: largest norm of the features.
    """

    missing: str | bool = "null"

    kind: ClassVar[str] = "boolean"

    def check(self) -> None:
        self.check_levels()
        if not isinstance(self.missing, bool):
            strict.one_of("missing", self.missing, ("null", "indicator"))

    @property
    def known_levels(self) -> Sequence[object]:
        return False, True

    @property
    def codes(self) -> dict[float | str, int]:
        return _CODES

    @property
    def declared_levels(self) -> Sequence[object]:
        return (True, False, *_WORDS) if self.casefold else tuple(_CODES)

    def encode(self, cells: Cells) -> Slots:
        codes = self.level_codes(cells)
        if isinstance(self.missing, bool):
            codes[codes == ABSENT] = self.missing
        bad, missing = (codes == NO_LEVEL) | (codes == UNREAD), codes == ABSENT
        if self.missing == "null":
            return single_slot(np.where(codes < 0, -1, 0), np.where(codes == 1, 1.0, -1.0), bad | missing)
        index = np.where(bad, -1, np.where(missing, 1, 0))
        return single_slot(index, np.where((codes == 1) | missing, 1.0, -1.0), bad)

    @property
    def undeclared_kind(self) -> int:
        return UNREADABLE

    def raw(self) -> sp.csr_array:
        return scaled_raw_map(0.5, 0.5, self.has_indicator)

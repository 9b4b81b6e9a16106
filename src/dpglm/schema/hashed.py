"""Columns of many levels, and of text, by a public hash: nothing is learnt from the records."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from .. import strict
from ..arrays import Vector
from .cells import Cells, Texts
from .column import NEVER, Column, Ragged, Slots, one_hot, single
from .kinds import Kinds, of_texts

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Bucketed(Column):
    """A number of buckets, which a keyed hash chooses among.

    Parameters
    ----------
    buckets : int
    key : str
        Public text that makes this hash differ from others.
    missing : "zero", "null" or "indicator"
        What a missing value means: a row of zeros; or its record counts for nothing; or a feature of its own
        is 1.
    weight : float
        As in all columns: largest norm of the features.
    """

    buckets: int
    key: str = ""
    missing: str = "zero"

    refused: ClassVar[re.Pattern[str]] = NEVER

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
        names = [f"{name} #{k}" for k in range(self.buckets)]
        return [*names, f"{name} (missing)"] if self.missing == "indicator" else names

    @property
    def n_features(self) -> int:
        return self.buckets + (self.missing == "indicator")

    def ranges(self) -> tuple[Vector, Vector]:
        return one_hot(self.n_features)

    def read(self, cells: Cells, stand_for_missing: frozenset[str]) -> Texts:
        """The texts of the cells."""
        return cells.as_texts(stand_for_missing)

    def kinds(self, cells: Cells, stand_for_missing: frozenset[str]) -> Kinds:
        read = self.read(cells, stand_for_missing)
        return of_texts(read.missing, read.bad)

    @property
    def _absent(self) -> int:
        """The feature of a missing value."""
        return self.buckets if self.missing == "indicator" else -1


@dataclass(frozen=True)
class Hashed(_Bucketed):
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

    def encode(self, cells: Cells, stand_for_missing: frozenset[str]) -> Slots:
        texts, places, missing, bad = self.read(cells, stand_for_missing)
        buckets = np.array([-1 if text is None else self.bucket(text) for text in texts])
        index = np.where(missing, self._absent, buckets[places])
        return single(index, 1.0, bad | missing & (self.missing == "null"))


@dataclass(frozen=True)
class Text(_Bucketed):
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

    def encode(self, cells: Cells, stand_for_missing: frozenset[str]) -> Ragged:
        texts, places, missing, bad = self.read(cells, stand_for_missing)
        known: dict[str, int] = {}
        found = [[] if text is None else self._buckets_of(text, known) for text in texts]
        found.append([self.buckets] if self.missing == "indicator" else [])
        lengths = np.array([len(buckets) for buckets in found])
        edges = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.fromiter((k for buckets in found for k in buckets), dtype=np.int64, count=edges[-1])
        values = np.repeat(1.0 / np.sqrt(np.maximum(lengths, 1)), lengths)
        table = sp.csr_array((values, flat, edges), shape=(len(found), self.n_features))
        rows = np.where(missing, len(texts), places % len(texts))
        return Ragged(table[rows], bad | missing & (self.missing == "null"))

    def _buckets_of(self, text: str, known: dict[str, int]) -> list[int]:
        """The different buckets of the words of a text, in order."""
        words = set(_WORD.findall(text.lower()))
        for word in words.difference(known):
            known[word] = self.bucket(word)
        return sorted({known[word] for word in words})

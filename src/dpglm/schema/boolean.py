"""Columns of truth values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import strict
from ..data.bounded_numbers import UNREADABLE
from .cells import ABSENT, UNKNOWN, UNREAD, Cells
from .column import InOneFeature, Slots, scaled, single
from .kinds import Kinds, of_levels
from .spelling import LevelCells

_WORDS = {"yes": 1, "y": 1, "t": 1, "no": 0, "n": 0, "f": 0}
_CODES: dict[float | str, int] = {1.0: 1, 0.0: 0} | {
    spelt: code for word, code in _WORDS.items() for spelt in (word, word.capitalize(), word.upper())
}


@dataclass(frozen=True)
class Boolean(LevelCells, InOneFeature):
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

    def encode(self, cells: Cells, stand_for_missing: frozenset[str]) -> Slots:
        codes = self.read(cells, stand_for_missing)
        if isinstance(self.missing, bool):
            codes[codes == ABSENT] = self.missing
        bad, missing = (codes == UNKNOWN) | (codes == UNREAD), codes == ABSENT
        if self.missing == "null":
            return single(np.where(codes < 0, -1, 0), np.where(codes == 1, 1.0, -1.0), bad | missing)
        index = np.where(bad, -1, np.where(missing, 1, 0))
        return single(index, np.where((codes == 1) | missing, 1.0, -1.0), bad)

    def read(self, cells: Cells, stand_for_missing: frozenset[str]) -> NDArray[np.intp]:
        """1 and 0 for the cells that hold a truth value."""
        return cells.as_codes(self.codes, stand_for_missing)

    def kinds(self, cells: Cells, stand_for_missing: frozenset[str]) -> Kinds:
        return of_levels(self.read(cells, stand_for_missing), UNREADABLE)

    def raw(self) -> sp.csr_array:
        return scaled(0.5, 0.5, self._marked)

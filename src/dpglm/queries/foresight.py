"""Extraction of the columns that Frank-Wolfe steps will look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.arguments import Bins, Followed, Leading, Words

if TYPE_CHECKING:
    from ..data.sparse import ColumnCache

_WORDS_AHEAD = 1 << 18


def hold_proposed(
    columns: ColumnCache, words: Words, at: int, left: int, factor: float, followed: Followed,
    leading: Leading, bins: Bins,
) -> bool:  # fmt: skip
    """Extract the leading columns, and all that the words at hand will lead to in the steps that are left.

    False, without extraction, if more words are needed to see them. What is selected does not depend on when
    columns are extracted.
    """
    from ..kernels import frank_wolfe_lazy  # compiled code is loaded by those who use it

    wanted = np.zeros(len(columns.held.columns), dtype=np.uint8)
    wanted[leading.columns] = 1
    found = frank_wolfe_lazy.foresee(
        words, at, left + left // 16 + 16, factor, followed, leading, bins, wanted
    )  # fmt: skip
    if found < left and len(words) - at < _WORDS_AHEAD:
        return False
    columns.hold(wanted)
    return True

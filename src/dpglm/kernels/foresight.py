"""Which columns Frank-Wolfe steps will look at, if no bin changes before."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .arguments import Bins, Followed, Leading, Words
from .bins import propose, weigh
from .coin import WORD
from .compiled import compiled
from .steps import outlook

_BELOW_1 = 1 - 2.0**-53


@compiled(nogil=True)
def foresee(
    words: Words, at: int, steps: int, factor: float, followed: Followed, leading: Leading, bins: Bins,
    wanted: NDArray[np.uint8],
) -> int:  # fmt: skip
    """Mark the columns that are proposed until about so many steps have accepted one, or words run out.

    A proposal depends on words and bins only, and a coin takes one word but for one time in 2**64: so the
    proposals are those of the steps until a bin changes. How many they accept is a guess, for it depends on
    sums that are not computed here. Returns this number.
    """
    accepted, top = 0, weigh(bins)
    while accepted < steps:
        at, k, member = propose(words, at, top, 2, bins)
        if member < 0:
            break
        j = np.uint64(bins.perm[bins.start[k] + (member >> 1)])
        wanted[j] = 1
        likely, _ = outlook(j, k, 1.0 if member & 1 else -1.0, factor, followed, leading, bins.line)
        accepted += words[at] < np.uint64(min(math.exp(likely), _BELOW_1) * WORD)
        at += 1
    return accepted

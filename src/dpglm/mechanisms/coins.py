"""Secret coins, one for each record, that depend on its position alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .words import Words

_BLOCK = 1 << 16  # coins whose ties share a stretch of the second stream
_SECOND = 1 << 64  # where the second stream begins, in words of the first


class Coins:
    """A coin of a given rate for each position: digits of AES in counter mode under one 128-bit key.

    Coin i compares eight binary digits, byte i of the stream, with those of the rate. If they are equal, 45
    digits of a second stretch of the stream decide; the ties of each block of 65,536 positions take them in
    turn. So the coins of some positions are the same, whatever other coins are looked at.

    Parameters
    ----------
    key : int
        Secret: it never appears in text.
    rate : float
        Probability of each coin, a multiple of 2**-53.
    """

    def __init__(self, key: int, rate: float) -> None:
        self._key, self._rate = key, rate

    def taken(self, start: int, stop: int) -> NDArray[np.intp]:
        """The positions from start to stop whose coins say yes, counted from ``start``."""
        from ..kernels.coin import taken as compiled  # compiled code is loaded by those who use it

        first, rest = divmod(int(self._rate * 2**53), 1 << 45)
        begin, read = start - start % _BLOCK, self._reader()
        digits = read(begin // 8, -(-(stop - begin) // 8)).view(np.uint8)[: stop - begin]
        equal = digits == first
        counts = [int(np.count_nonzero(equal[k : k + _BLOCK])) for k in range(0, len(digits), _BLOCK)]
        words = [read(_SECOND + begin + k * _BLOCK, count) for k, count in enumerate(counts) if count]
        ties = np.concatenate(words) >> np.uint64(19) < np.uint64(rest) if words else np.empty(0, dtype=bool)
        # Space for one more: a large array would be taken anew from the system each time.
        space = np.empty(np.count_nonzero(digits < first) + np.count_nonzero(ties) + 1, dtype=np.intp)
        compiled(digits, first, ties, space)
        taken = space[:-1]
        return taken[np.searchsorted(taken, start - begin) :] - (start - begin) if start > begin else taken

    def _reader(self) -> Callable[[int, int], NDArray[np.uint64]]:
        """What reads words from a place on, each time from a later one."""
        return Words(self._key).read

"""Random words by their numbers: AES in counter mode."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter


class Words:
    """A stream of 64-bit words, each by its number: AES in counter mode under a key of 128 binary digits.

    Compiled code makes many at a time where the processor has instructions for AES. Elsewhere randomgen makes
    the same words. One thread at a time may read them, each time from where the last ended or later on.

    Parameters
    ----------
    key : int
        Secret: it never appears in text.
    """

    def __init__(self, key: int) -> None:
        from ..kernels import aes  # compiled code is loaded by those who use it

        self._generator = None if aes.is_available() else AESCounter(key=key)
        self._at, self._keys = 0, np.empty(aes.KEY_WORDS, dtype=np.uint64)
        if self._generator is None:
            self._keys[0], self._keys[1] = key & _WORD, key >> 64
            aes.expand(self._keys)

    def read(self, start: int, count: int) -> NDArray[np.uint64]:
        """So many words from number ``start`` on."""
        words: NDArray[np.uint64]
        if self._generator is not None:
            self._generator.advance(start - self._at)
            self._at = start + count
            words = self._generator.random_raw(count)
            return words
        from ..kernels.aes import GROUP, write_words

        block, before = divmod(start, 2)
        words = np.empty(-(-(before + count) // GROUP) * GROUP, dtype=np.uint64)
        write_words(self._keys, np.uint64(block >> 64), np.uint64(block & _WORD), words)
        return words[before : before + count]

    def from_number(self, start: int) -> Callable[[int], NDArray[np.uint64]]:
        """What reads the next words at each call, the first time from number ``start`` on."""
        at = start

        def read(count: int) -> NDArray[np.uint64]:
            nonlocal at
            at += count
            return self.read(at - count, count)

        return read


_WORD = (1 << 64) - 1

"""The one source of randomness: every noise value of dpglm is made here."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, partial
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

from ..accounting import NegativeBinomial, Tries
from ..kernels.arguments import Whole
from ..threads import run_ranges
from . import exact_noise
from .grid import Integers, Numbers


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
        """Return ``count`` words from number ``start`` on."""
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
        """Return a function that reads the next words at each call, first from number ``start`` on."""
        at = start

        def read(count: int) -> NDArray[np.uint64]:
            nonlocal at
            at += count
            return self.read(at - count, count)

        return read


_WORD = (1 << 64) - 1


_COINS_AT_ONCE = 1 << 16  # coins whose ties share a stretch of the second stream
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
        from ..kernels.draws import taken as compiled  # compiled code is loaded by those who use it

        first, rest = divmod(int(self._rate * 2**53), 1 << 45)
        begin, read = start - start % _COINS_AT_ONCE, self._reader()
        digits = read(begin // 8, -(-(stop - begin) // 8)).view(np.uint8)[: stop - begin]
        equal = digits == first
        counts = [
            int(np.count_nonzero(equal[k : k + _COINS_AT_ONCE]))
            for k in range(0, len(digits), _COINS_AT_ONCE)
        ]
        words = [read(_SECOND + begin + k * _COINS_AT_ONCE, count) for k, count in enumerate(counts) if count]
        ties = np.concatenate(words) >> np.uint64(19) < np.uint64(rest) if words else np.empty(0, dtype=bool)
        # Space for one more: a large array would be taken anew from the system each time.
        space = np.empty(np.count_nonzero(digits < first) + np.count_nonzero(ties) + 1, dtype=np.intp)
        compiled(digits, first, ties, space)
        taken = space[:-1]
        return taken[np.searchsorted(taken, start - begin) :] - (start - begin) if start > begin else taken

    def _reader(self) -> Callable[[int, int], NDArray[np.uint64]]:
        """Return a function that reads words from a given number on, which must grow from call to call."""
        return Words(self._key).read


def order_of(keys: NDArray[np.int64], digits: int) -> NDArray[np.int64]:
    """Return the order of uniform random numbers of ``digits`` binary digits, least number first.

    It takes a tenth of the time of NumPy's sort, and equal numbers stay in their order on every processor.
    """
    from ..kernels.draws import write_order  # compiled code is loaded by those who use it

    order, space = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    begins = np.empty((1 << min(len(keys).bit_length(), digits)) + 1, dtype=np.int64)
    write_order(keys, digits, begins, space, order)
    return order


GAUSSIAN_DISTANCE = 2.0**-1000
GUMBEL_DISTANCE = 2.0**-400
"""Bounds on the distance of one draw from its law, in total variation; Laplace draws are exact."""

Shape = tuple[int, ...]
Compiled = Callable[..., tuple[Whole, Whole, bool]]

_FEWEST, _MOST = 1 << 11, 1 << 13  # larger arrays would be given back to the system, and taken anew
_WORDS_A_DRAW, _WORDS_A_STEP = 2, 7
_BLOCK = 1 << 13
_MORE_WORDS = 6
_WIDE, _STRETCH = 1 << 17, 1 << 16


class _Stream:
    """Words of a generator, in order, and draws of noise that take them one after the other."""

    def __init__(self, source: Callable[[int], NDArray[np.uint64]]) -> None:
        self._source = source
        self._words, self._at = np.empty(0, dtype=np.uint64), 0

    def fill(
        self,
        compiled: Compiled,
        reference: Callable[[exact_noise.Read, int], int],
        scales: NDArray[np.uint64],
        out: NDArray[np.int64],
    ) -> None:
        """Draw noise of each scale, or of one; ``reference`` draws where first digits decide nothing."""
        done = 0
        while True:
            at, reached, undecided = compiled(self._words, self._at, scales, out, done)
            self._at, done = int(at), int(reached)
            if done == out.size:
                return
            if undecided:
                out[done] = reference(lambda: int(self._take(1)[0]), int(scales[done % scales.size]))
                done += 1
            else:
                self._extend(min(max(_WORDS_A_DRAW * (out.size - done), _FEWEST), _MOST))

    def _extend(self, count: int) -> None:
        words, left = self._source(count), self._words[self._at :]
        self._words, self._at = np.concatenate([left, words]) if left.size else words, 0

    def _take(self, count: int) -> NDArray[np.uint64]:
        if self._at + count > self._words.size:
            self._extend(max(count, _FEWEST))
        self._at += count
        return self._words[self._at - count : self._at]


class Randomness(_Stream):
    """Noise from one stream of 64-bit words of a cryptographic generator: AES in counter mode, 128-bit key.

    ``Randomness()`` draws its key from the operating system. ``Randomness(seed)`` is for tests and
    studies: whoever knows the seed can subtract the noise, so nothing is private. All draws take their
    words from the stream in order: a block of draws is the same as one after the other. Only a block of
    131,072 or more numbers of Gaussian or Laplace noise takes a key from it and nothing else: each 65,536
    numbers have a stream of their own under that key, so that threads share the work, in any number of them.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.secure = seed is None
        key = secrets.randbits(128) if seed is None else seed
        if not 0 <= key < 1 << 128:
            raise ValueError("random_state must be None or an integer between 0 and 2**128 - 1")
        super().__init__(Words(int(key)).from_number(0))
        self._one = np.empty(1, dtype=np.uint64), np.empty(1, dtype=np.int64)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a source of randomness cannot be copied: the copy would repeat its noise")

    @property
    def description(self) -> str:
        """The source of the noise, in words."""
        source = "keyed by the operating system" if self.secure else "with a fixed seed: NOT private"
        return f"AES-128 counter generator, {source}"

    def gaussian(self, scale: Integers, size: int | Shape | None = None) -> Integers:
        """round(scale * Z) for standard normal Z and whole numbers ``scale`` from 1 to 2**41."""
        return self._rounded(_gaussian(), exact_noise.gaussian, scale, size)

    def laplace(self, scale: Integers, size: int | Shape | None = None) -> Integers:
        """round(scale * L) for L of density exp(-abs(t)) / 2 and whole numbers ``scale`` from 1 to 2**41."""
        from ..kernels.draws import laplace

        return self._rounded(laplace, exact_noise.laplace, scale, size)

    def gumbel(self, size: int | Shape | None = None) -> Numbers:
        """Standard Gumbel noise: the largest of scores plus it is a draw proportional to exp(score)."""
        shaped = np.empty(1 if size is None else size)
        noise, done = shaped.reshape(-1), 0
        while done < noise.size:
            first, second = self._take(2 * min(noise.size - done, _BLOCK)).reshape(-1, 2).T
            # v lies in (0, 1/2) with full relative precision, and the last digit of its first word chooses
            # between v and 1 - v: so the exponential is as precise near 0 as it is far out.
            v = ((first >> _1) + (second + 0.5) * 2.0**-64) * 2.0**-64
            if first.min() < _SMALL:
                # Two words have too few digits for this v. It has the next ones, and those behind it wait.
                small = int(np.argmax(first < _SMALL))
                self._at -= 2 * (len(v) - small - 1)
                first, v = first[: small + 1], v[: small + 1]
                v[small] = self._small(int(first[small]) >> 1, int(second[small]))
            end = done + len(v)
            noise[done:end] = -np.log(np.where(first & _1, -np.log(v), -np.log1p(-v)))
            done = end
        return float(noise[0]) if size is None else shaped

    def integers(self, stop: int, size: int) -> NDArray[np.int64]:
        """Uniform integers in [0, stop)."""
        largest = np.uint64((1 << 64) - (1 << 64) % stop - 1)
        accepted = self._take(size)
        if size and accepted.max() > largest:
            accepted = accepted[accepted <= largest]
            while len(accepted) < size:
                words = self._take(size - len(accepted))
                accepted = np.append(accepted, words[words <= largest])
        # The remainder: NumPy divides many numbers by one several times as fast as it finds remainders.
        below: NDArray[np.uint64] = accepted // np.uint64(stop)
        below *= np.uint64(stop)
        np.subtract(accepted, below, out=below)
        return below.view(np.int64)

    def coins(self, rate: float) -> Coins:
        """A coin for each record, of a rate that is a multiple of 2**-53; its key is drawn here."""
        return Coins(self._key(), rate)

    def run(self, compiled: Callable[..., tuple[int, int]], *arguments: object) -> int:
        """The result of ``compiled(words, at, *arguments)``, which reads the words from ``at`` on.

        It returns the place of the next word and a result, or a negative result if it runs out of words. It
        is then called again from the same first word with more words, so the result depends on the stream
        only.
        """
        while True:
            at, result = compiled(self._words, self._at, *arguments)
            if result >= 0:
                self._at = at
                return result
            self._extend(_FEWEST)

    def run_on(self, compiled: Callable[..., tuple[int, int]], count: int, *arguments: object) -> None:
        """Let ``compiled(words, at, done, *arguments)`` draw until ``count`` draws are done.

        It returns the place of the next word and how many are done; where words run out, it returns the first
        word of the draw that lacks them, and is called again with more.
        """
        done = 0
        if self._at == self._words.size:  # a call without words would take tens of microseconds
            self._extend(_words_for(count))
        while True:
            self._at, done = compiled(self._words, self._at, done, *arguments)
            if done == count:
                return
            self._extend(_words_for(count - done))

    def _rounded(
        self,
        compiled: Compiled,
        reference: Callable[[exact_noise.Read, int], int],
        scale: Integers,
        size: int | Shape | None,
    ) -> Integers:
        if isinstance(scale, int) and (size is None or size == ()):
            # At every step of some methods: no arrays are made.
            scales, drawn = self._one
            scales[0] = scale
            self.fill(compiled, reference, scales, drawn)
            return int(drawn[0])
        shape = np.shape(scale) if size is None else size
        out = np.empty(shape, dtype=np.int64).reshape(-1)
        if np.ndim(scale):
            scales = np.broadcast_to(np.asarray(scale, dtype=np.uint64), shape).ravel()
        else:
            scales = np.array([scale], dtype=np.uint64)
        if out.size < _WIDE:
            self.fill(compiled, reference, scales, out)
        else:
            key = self._key()

            def fill(stretch: int, start: int, stop: int) -> None:
                stream = _Stream(Words(key).from_number(stretch << 64))
                rows = slice(start, stop) if len(scales) > 1 else slice(None)
                stream.fill(compiled, reference, scales[rows], out[start:stop])

            run_ranges(fill, [*range(0, out.size, _STRETCH), out.size])
        return out.reshape(shape) if shape != () else int(out[0])

    def _key(self) -> int:
        high, low = (int(word) for word in self._take(2))
        return high << 64 | low

    def _small(self, first: int, second: int) -> float:
        """The middle of the numbers below 1 / 2 with these and further binary digits, rounded once."""
        digits = first << 64 | second
        for word in self._take(_MORE_WORDS):
            digits = digits << 64 | int(word)
        return (2 * digits + 1) / (1 << 64 * (2 + _MORE_WORDS) + 1)


def _words_for(steps: int) -> int:
    """Number of words to draw at once for ``steps`` steps."""
    return min(max(_WORDS_A_STEP * steps, _FEWEST), _MOST)


@cache
def _gaussian() -> Compiled:
    from ..kernels.draws import gaussian  # compiled code is loaded by those who use it

    own, other = exact_noise.columns()
    shares = [share >> exact_noise.BITS - exact_noise.CHOICE_BITS for share in own]
    packed = [share << exact_noise.COLUMN_BITS | cell for share, cell in zip(shares, other, strict=True)]
    return partial(gaussian, np.array(packed, dtype=np.uint64))


_1 = np.uint64(1)
_SMALL = np.uint64(1 << 21)


TRIES_DISTANCE = 2.0**-100
"""Bound on the distance of a draw from its law, in total variation."""

_DIGITS, _BITS, _NOTHING = 60, 62, Decimal("1e-45")


def draw_tries(tries: Tries, randomness: Randomness) -> int:
    """A number of tries: the first k with P(K <= k) above a uniform number of 124 binary digits.

    Probabilities are computed to 60 decimal digits, so that no sum of them is off by more than 2**-120.
    """
    high, low = (int(word) for word in randomness.integers(1 << _BITS, 2))
    with localcontext() as context:
        context.prec = _DIGITS
        uniform = (Decimal(high << _BITS | low) + Decimal("0.5")) / Decimal(1 << 2 * _BITS)
        if isinstance(tries, NegativeBinomial):
            return _negative_binomial(tries, uniform)
        mean = Decimal(tries.mean)
        k, term = 0, (-mean).exp()
        below = term
        while below <= uniform and (term > _NOTHING or k < mean):
            k += 1
            term *= mean / k
            below += term
        return k


def _negative_binomial(tries: NegativeBinomial, uniform: Decimal) -> int:
    shape, stop = Decimal(tries.shape), Decimal(tries.stop)
    norm = ((-shape * stop.ln()).exp() - 1) / shape if shape else -stop.ln()
    k, term = 1, (1 - stop) / norm
    below = term
    # A tail is at most its first term over 1 minus the largest ratio of two neighbours in it.
    while below <= uniform and term > _NOTHING * (1 - (1 - stop) * max((k + shape) / (k + 1), Decimal(1))):
        term *= (1 - stop) * (k + shape) / (k + 1)
        k += 1
        below += term
    return k

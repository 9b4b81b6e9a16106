"""The one source of randomness: every noise value of dpglm is made here."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter


class Randomness:
    """Noise from a cryptographic generator: AES in counter mode, 128-bit key.

    ``Randomness()`` draws its key from the operating system. ``Randomness(seed)`` is for tests and
    studies: whoever knows the seed can subtract the noise, so nothing is private.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.secure = seed is None
        key = secrets.randbits(128) if seed is None else seed
        if not 0 <= key < 1 << 128:
            raise ValueError("random_state must be None or an integer between 0 and 2**128 - 1")
        self._generator = np.random.Generator(AESCounter(key=int(key)))

    @property
    def description(self) -> str:
        """Where the noise comes from, in words."""
        source = "keyed by the operating system" if self.secure else "with a fixed seed: NOT private"
        return f"AES-128 counter generator, {source}"

    def gaussian(self, scale: Any, size: Any = None) -> Any:
        """Normal noise with standard deviation ``scale``."""
        return self._generator.standard_normal(size) * scale

    def laplace(self, scale: Any, size: Any = None) -> Any:
        """Laplace noise with density proportional to exp(-abs(x) / scale)."""
        return self._generator.laplace(size=size) * scale

    def gumbel(self, scale: Any, size: Any = None) -> Any:
        """Gumbel noise: the largest of scores plus it is a draw proportional to exp(score / scale)."""
        return self._generator.gumbel(size=size) * scale

    def integers(self, stop: int, size: int) -> NDArray[np.int64]:
        """Uniform integers in [0, stop)."""
        return self._generator.integers(stop, size=size)

    def subset(self, size: int, rate: float) -> NDArray[np.intp]:
        """Indices below ``size``, each taken independently with probability ``rate``."""
        return np.flatnonzero(self._generator.random(size) < rate)

"""What is left of a budget, in numbers that people plan with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..accounting import gaussian_mu
from .price import Price, root_down


@dataclass(frozen=True)
class Left:
    """What may still be spent.

    Attributes
    ----------
    price : Price
        As exact numbers.
    delta : float
        The account's delta.
    """

    price: Price
    delta: float

    @property
    def mu(self) -> float:
        """The mu of the largest Gaussian release that can be paid for, rounded down."""
        return root_down(self.price.mu_squared)

    def epsilon(self, fits: int = 1, delta: float | None = None) -> float:
        """The epsilon of each of so many further fits with Gaussian releases, rounded down to three digits.

        Parameters
        ----------
        fits : int
        delta : float, optional
            The delta of a fit; by default the account's.
        """
        mu = self.mu / math.sqrt(fits)
        delta = self.delta if delta is None else delta
        if mu == 0 or gaussian_mu(1e-6, delta) > mu:
            return 0.0
        low, high = 1e-6, 1.0
        while gaussian_mu(high, delta) <= mu and high < 1e6:
            low, high = high, 2 * high
        while high > low * (1 + 1e-6):
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_mu(middle, delta) <= mu else (low, middle)
        scale = 10.0 ** (2 - math.floor(math.log10(low)))
        return float(f"{math.floor(low * scale) / scale:.3g}")

    @property
    def words(self) -> str:
        """What is left, as fits that could be made of it."""
        one, ten = self.epsilon(), self.epsilon(10)
        if one == 0:
            return "nothing: no further fit"
        return f"one more fit at epsilon {one:g}, or ten at {ten:g} each (Gaussian, delta {self.delta:g})"

    def __str__(self) -> str:
        return self.words

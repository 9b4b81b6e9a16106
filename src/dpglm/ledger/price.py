"""Prices in the currency of the ledger: squares of mu, and slacks, as exact rational numbers.

Every number is rounded up to a multiple of 2^-256, so sums are exact and no charge is rounded to nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ..accounting import cover, cover_pure, gaussian_mu
from ..plan import Plan
from ..privacy import Budget

UNIT = 2**256
"""Numbers are whole multiples of 1/UNIT."""

SLACK_SHARE = Fraction(1, 10)
"""Share of an account's delta that is set aside for slacks, by rule."""

FIT_SHARE = Fraction(1, 50)
"""Share of the slack left that a fit may use at most, by rule; so slack never runs out."""

_TEXT = re.compile(r"(0|[1-9]\d{0,199})/([1-9]\d{0,79})")


@dataclass(frozen=True)
class Price:
    """What something costs: mu squared and slack, both exact and not negative."""

    mu_squared: Fraction
    slack: Fraction

    def __add__(self, other: Price) -> Price:
        return Price(self.mu_squared + other.mu_squared, self.slack + other.slack)

    def __le__(self, other: Price) -> bool:
        return self.mu_squared <= other.mu_squared and self.slack <= other.slack

    @property
    def mu(self) -> float:
        """The root of ``mu_squared``, rounded up."""
        return root_up(self.mu_squared)

    def less(self, other: Price) -> Price:
        """What is left after another price; nothing is less than 0."""
        zero = Fraction(0)
        return Price(max(zero, self.mu_squared - other.mu_squared), max(zero, self.slack - other.slack))

    def larger(self, other: Price) -> Price:
        """The larger of both numbers, each by itself."""
        return Price(max(self.mu_squared, other.mu_squared), max(self.slack, other.slack))

    def to_list(self) -> list[str]:
        """The price as two texts."""
        return [to_text(self.mu_squared), to_text(self.slack)]

    @classmethod
    def from_list(cls, values: object) -> Price:
        """The inverse of ``to_list``."""
        if not isinstance(values, list) or len(values) != 2:
            raise ValueError("a price must be a list of two fractions")
        return cls(from_text(values[0]), from_text(values[1]))


FREE = Price(Fraction(0), Fraction(0))


def rounded_up(value: Fraction) -> Fraction:
    """The least multiple of 1/UNIT that is not below the value."""
    return Fraction(math.ceil(value * UNIT), UNIT)


def to_text(value: Fraction) -> str:
    """A fraction as text, always with its denominator."""
    return f"{value.numerator}/{value.denominator}"


def from_text(text: object) -> Fraction:
    """The inverse of ``to_text``; refuses what is negative, too large or no multiple of 1/UNIT."""
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r:.60} is no fraction")
    value = Fraction(int(match[1]), int(match[2]))
    if UNIT % value.denominator or to_text(value) != text:
        raise ValueError(f"{text!r:.60} is no multiple of 2^-256 in lowest terms")
    return value


def root_up(value: Fraction) -> float:
    """A float whose square is not below the value."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def root_down(value: Fraction) -> float:
    """A float whose square is not above the value."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    return root


def price_of_mu(mu: float, slack: float = 0.0) -> Price:
    """The price of a Gaussian mechanism with this mu, and of a slack."""
    if not (0 <= mu < math.inf and 0 <= slack < 1):
        raise ValueError(f"mu must be finite and not negative and slack in [0, 1), got {mu!r} and {slack!r}")
    return Price(rounded_up(Fraction(mu) ** 2), rounded_up(Fraction(slack)))


def price_of_epsilon(epsilon: float, delta: float) -> Price:
    """The price of anything that is (epsilon, delta)-private: its delta is a slack, the rest a Gaussian."""
    if not (0 <= epsilon < math.inf and 0 <= delta < 1):
        raise ValueError(
            f"epsilon must be finite and not negative and delta in [0, 1), got {epsilon!r} and {delta!r}"
        )
    mu = cover_pure(epsilon)
    if math.isinf(mu):
        raise ValueError(f"epsilon = {epsilon!r} is too large to have a price")
    return price_of_mu(mu, delta)


def price_of_plan(plan: Plan, slack: Fraction) -> Price | None:
    """The price of a fit by this plan with at most this slack; None if it has none, or needs more slack."""
    if not plan.budget.private:
        return None
    if slack <= 0:
        return None
    # a power of two, so that a plan that is priced again has the same slack for a while
    covered = cover(
        plan.event, 2.0 ** (math.floor(math.log2(slack.numerator) - math.log2(slack.denominator)) - 1)
    )
    return price_of_mu(covered.mu, covered.slack) if math.isfinite(covered.mu) else None


def whole_budget(epsilon: float, delta: float) -> Price:
    """What an account may spend: the largest mu with H_mu(epsilon) <= 9/10 delta, and delta/10 as slack."""
    budget = Budget(epsilon, delta)
    if not budget.private:
        raise ValueError(f"epsilon must be finite, got {epsilon!r}")
    slack = Fraction(math.floor(Fraction(delta) * SLACK_SHARE * UNIT), UNIT)
    rest = Fraction(delta) - slack
    curve = float(rest)
    while Fraction(curve) > rest:
        curve = math.nextafter(curve, 0.0)
    mu = gaussian_mu(epsilon, curve)
    square = Fraction(math.floor(Fraction(mu) ** 2 * UNIT), UNIT)
    if not (square and slack):
        raise ValueError(f"epsilon = {epsilon!r} and delta = {delta!r} leave nothing to spend")
    return Price(square, slack)


def largest_epsilon(plan: Plan, planned: Callable[[float], Plan], remaining: Price) -> float | None:
    """The largest epsilon, to three digits, at which a fit can be paid for; None below a thousandth."""
    low, high = plan.budget.epsilon / 1000, plan.budget.epsilon

    def fits(epsilon: float) -> bool:
        try:
            price = price_of_plan(planned(epsilon), remaining.slack * FIT_SHARE)
        except ValueError:
            return False
        return price is not None and price <= remaining

    if not fits(low):
        return None
    while high > 1.005 * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if fits(middle) else (low, middle)
    shown = float(f"{low:.3g}")
    return shown if shown <= low else low


@dataclass(frozen=True)
class Remaining:
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

"""Sampling: the records that take part in a release, and the price of a release made on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from .. import accounting, strict
from ..privacy import Neighbours
from .additive import Gaussian
from .base import Mechanism
from .randomness import Coins, Randomness


class Sampling(Protocol):
    """Draws a batch and prices a release made on it."""

    @property
    def words(self) -> str: ...

    def draw(self, randomness: Randomness) -> Coins | None: ...

    def price(self, mechanism: Mechanism, neighbours: Neighbours) -> accounting.Event: ...


@dataclass(frozen=True)
class Everyone:
    """Every record takes part."""

    @property
    def words(self) -> str:
        return "on all records"

    def draw(self, randomness: Randomness) -> None:
        return None

    def price(self, mechanism: Mechanism, neighbours: Neighbours) -> accounting.Event:
        if mechanism.relation not in (None, neighbours.priced_as):
            raise ValueError(
                f"neighbours must be {mechanism.relation!r}, which the {mechanism.name} is priced for, "
                f"got {neighbours.value!r}"
            )
        return mechanism.event


@dataclass(frozen=True)
class Poisson:
    """Each record takes part by its own coin; the batch and its size stay secret.

    The rate is rounded up to a multiple of 2**-53, which the coin has exactly.
    """

    rate: float

    def __post_init__(self) -> None:
        strict.keep(self, rate=lambda name, rate: math.ceil(accounting.RATE(name, rate) * 2**53) / 2**53)

    @property
    def words(self) -> str:
        return f"on Poisson batches of rate {self.rate:.4g}"

    def draw(self, randomness: Randomness) -> Coins:
        return randomness.coins(self.rate)

    def price(self, mechanism: Mechanism, neighbours: Neighbours) -> accounting.Event:
        if not isinstance(mechanism, Gaussian):
            raise ValueError(
                f"Poisson batches are priced for the Gaussian mechanism only, got {mechanism.name}"
            )
        # The mechanism's noise is in units of the sensitivity, the event's in units of one contribution.
        contributions = mechanism.noise * neighbours.records_moved
        return accounting.PoissonGaussian(contributions, self.rate, neighbours.priced_as)


BY_NAME: dict[str, type[Sampling]] = {kind.__name__: kind for kind in (Everyone, Poisson)}
"""Kinds of sampling that a stored plan may name."""

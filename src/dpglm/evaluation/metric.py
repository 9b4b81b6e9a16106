"""What a metric is: releases with shares of the budget, and how they become a score with an interval."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from ..inference.coefficients import quantile
from ..losses import Loss
from ..privacy import Neighbours
from ..queries import Query, ScoreSums
from ..scores import PublicModel, Score
from .result import Estimate

SEEN = 4.0
"""A count that exceeds the deviation of its noise by this factor is seen."""


@dataclass(frozen=True)
class Stage:
    """One release of a metric: its name, its share of what the metric may spend, and its entries."""

    name: str
    share: float
    entries: int
    sensitivity: str


@dataclass(frozen=True, eq=False)
class Setting:
    """What is public in an evaluation.

    Attributes
    ----------
    model : PublicModel
    loss : Loss
    target : (float, float) or None
        The declared range of numbers.
    limits : (float, float) or None
        The range of predicted numbers.
    n_classes : int
        0 for numbers.
    n_records : int
    neighbours : Neighbours
    log_loss_cut : float
    reach : float
        No margin is larger.
    """

    model: PublicModel
    loss: Loss
    target: tuple[float, float] | None
    limits: tuple[float, float] | None
    n_classes: int
    n_records: int
    neighbours: Neighbours
    log_loss_cut: float
    reach: float


Released = Callable[[str, Query], tuple[Vector, float]]
"""Makes the release of a stage: the released numbers, and the deviation of the noise in each."""


@dataclass(frozen=True)
class Sums:
    """What a release of score sums says: of v, the score in [-1, 1].

    Attributes
    ----------
    count : float
        Number of records that count, at most the public number of records.
    total : float
        Sum of v.
    squares : float
        Sum of v².
    noise : float
        Deviation of the noise in the sum of v.
    counting : float
        Deviation of the noise in ``count``.
    squaring : float
        Deviation of the noise in ``squares`` that does not come with ``count``.
    """

    count: float
    total: float
    squares: float
    noise: float
    counting: float
    squaring: float

    @property
    def seen(self) -> bool:
        """Whether the number of records exceeds its noise."""
        return self.count > SEEN * self.counting

    @property
    def mean(self) -> float:
        """Mean of v."""
        return min(max(self.total / self.count, -1.0), 1.0)

    @property
    def mean_noise(self) -> float:
        """Deviation of the noise in the mean of v."""
        return math.hypot(self.noise, self.mean * self.counting) / self.count

    @property
    def variance(self) -> float:
        """Variance of v between records, increased by the deviation of its noise."""
        mean = self.mean
        found = max(self.squares / self.count - mean**2, 0.0)
        owed = math.hypot(self.squaring, 2 * mean * self.noise, self.counting) / self.count
        return min(found + owed, 1.0 - mean**2) if mean**2 < 1.0 else 0.0


class Metric(ABC):
    """A score, what it releases and what it needs."""

    name: ClassVar[str]
    stages: ClassVar[tuple[Stage, ...]]
    needs: ClassVar[str]

    @abstractmethod
    def serves(self, setting: Setting) -> bool:
        """Whether the model has such a score."""

    @abstractmethod
    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        """Make the releases of all stages, in any case, and state the score."""

    def sums(self, setting: Setting, release: Released, stage: str, score: Score) -> Sums:
        """The released sums of a score."""
        query = ScoreSums.weighed(score, setting.model, setting.n_records, setting.neighbours)
        (counted, total, left), noise = release(stage, query)
        n = float(setting.n_records)
        count = min(max(counted / query.counted, 1.0), n)
        squares = min(max(count - left / query.weight, 0.0), n)
        return Sums(count, total, squares, noise, noise / query.counted, noise / query.weight)

    def estimate(
        self, value: float, sampling: float, noise: float, level: float, determined: bool,
        ends: tuple[float, float], words: str,
    ) -> Estimate:  # fmt: skip
        """A score with its normal interval, cut to what is possible, or all of that if noise hides it."""
        error = math.hypot(sampling, noise)
        half = quantile(level) * error
        low, high = (np.clip(value + side * half, *ends) for side in (-1.0, 1.0))
        if not determined:
            low, high, error = *ends, math.inf
        return Estimate(
            self.name, float(np.clip(value, *ends)), float(low), float(high), error, noise, level, determined,
            words,
        )  # fmt: skip

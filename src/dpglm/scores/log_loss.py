"""The logarithm of the probability of a record's class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from ..arrays import Vector
from .base import Score


@dataclass(frozen=True, eq=False)
class LogLoss(Score):
    """-log of the predicted probability of the record's class, at most ``cut``.

    Parameters
    ----------
    cut : float
        A probability below exp(-cut) counts as exp(-cut).
    shares : bool
        Whether probabilities of several classes are those of softmax, or one-vs-rest ones normalised.
    """

    cut: float
    shares: bool = False

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, self.cut

    def value(self, margins: Vector, y: Vector) -> Vector:
        if margins.shape[1] == 1:
            found: Vector = np.logaddexp(0.0, np.where(y > 0, -margins[:, 0], margins[:, 0]))
            return found
        positive = softmax(margins, axis=1) if self.shares else expit(margins)
        total = positive.sum(axis=1)
        own = positive[np.arange(len(y)), np.clip(y, 0, margins.shape[1] - 1).astype(np.intp)]
        chance = np.where(total > 0, own / total, 1.0 / margins.shape[1])
        return np.asarray(-np.log(np.maximum(chance, np.exp(-self.cut))))

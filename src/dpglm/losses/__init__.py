"""Losses: convex functions of one prediction z and one target y, elementwise in NumPy.

A new loss is one file here and its place in `LOSSES`; the contract tests then run on it. `Multinomial` has a
prediction for each class, and tests of its own.
"""

from __future__ import annotations

from .base import Loss
from .classification import Hinge, Logistic, Multinomial, SmoothedHinge
from .counts import NegativeBinomial, Poisson, Tweedie
from .regression import EpsilonInsensitive, Huber, LogCosh, Quantile, Squared

LOSSES: tuple[type[Loss], ...] = (
    Logistic, Squared, Huber, LogCosh, SmoothedHinge, Hinge, EpsilonInsensitive, Poisson, Tweedie,
    NegativeBinomial, Quantile,
)  # fmt: skip

__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "LogCosh",
    "Logistic",
    "Loss",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "Quantile",
    "SmoothedHinge",
    "Squared",
    "Tweedie",
    "get",
]


def get(loss: str | Loss, target: tuple[float, float] | None = None) -> Loss:
    """Return the loss itself, or the built-in of that name with its usual parameters for a target range.

    Examples
    --------
    >>> get("huber")
    Huber(threshold=1.0)
    """
    if isinstance(loss, Loss):
        return loss
    named = {cls.name: cls for cls in LOSSES}
    if not isinstance(loss, str) or loss not in named:
        raise ValueError(f"loss must be a Loss or one of {sorted(named)}, got {loss!r}")
    return named[loss].for_target(target)

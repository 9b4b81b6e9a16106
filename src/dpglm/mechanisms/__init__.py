"""Mechanisms: noise for what a query answers, and the event that it costs."""

from .additive import Additive, Gaussian, Laplace, Levels, LinearTerm, Thresholded
from .base import Mechanism
from .randomness import Randomness
from .selection import STRUCTURES, Exponential, LaplaceNoisyMax, Round, Selection

MECHANISMS: tuple[type[Mechanism], ...] = (Gaussian, Laplace, Exponential, LaplaceNoisyMax)

BY_NAME: dict[str, type[Mechanism]] = {kind.__name__: kind for kind in MECHANISMS} | {
    LinearTerm.__name__: LinearTerm,
    Round.__name__: Round,
    Thresholded.__name__: Thresholded,
}
"""Mechanisms that a stored plan may name."""

__all__ = [
    "BY_NAME",
    "MECHANISMS",
    "STRUCTURES",
    "Additive",
    "Exponential",
    "Gaussian",
    "Laplace",
    "LaplaceNoisyMax",
    "Levels",
    "LinearTerm",
    "Mechanism",
    "Randomness",
    "Round",
    "Selection",
    "Thresholded",
]

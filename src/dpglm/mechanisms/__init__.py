"""Mechanisms: noise for what a query answers, and the event that it costs."""

from .base import Mechanism
from .exponential import STRUCTURES, Exponential
from .gaussian import Gaussian
from .laplace import Laplace
from .linear_term import LinearTerm
from .noisy_max import LaplaceNoisyMax
from .randomness import Randomness

MECHANISMS: tuple[type[Mechanism], ...] = (Gaussian, Laplace, Exponential, LaplaceNoisyMax)

__all__ = [
    "MECHANISMS",
    "STRUCTURES",
    "Exponential",
    "Gaussian",
    "Laplace",
    "LaplaceNoisyMax",
    "LinearTerm",
    "Mechanism",
    "Randomness",
]

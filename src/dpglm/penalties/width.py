"""Gaussian widths of the polytopes of set functions and of penalties."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.special import erfc

from ..arrays import Vector
from .plateaus import Plateaus
from .set_functions import SetFunction

_FAR = 38.0  # no larger normal deviate has a probability that floats can hold


def gaussian_width(
    function: SetFunction | Plateaus, n_features: int | None = None, draws: int | None = None, seed: int = 0
) -> float:
    """Return the mean of max g · s over the s with abs(s)(A) <= F(A) for all A, for standard normal g.

    This is the mean norm of g, and the polytope is the unit ball of the dual norm. The norm is the integral
    over x > 0 of F({j: abs(g_j) > x}), so the width is an integral of means of F at random sets. Where these
    have no formula, as for `Custom`, it is simulated.

    For a penalty that draws coefficients to equal values the polytope is the base polytope, the s with
    s(A) <= F(A) for all A and s(all features) = 0, and the width is the mean of the extension of F at g.
    Strength, L1 and L2 parts have no part in it.

    Parameters
    ----------
    function : SetFunction, TotalVariation, GraphFused, Fused or Lovasz
    n_features : int, optional
        How many features there are, for a function that takes any number.
    draws : int, optional
        Simulate, with so many draws of g; by default only where there is no formula, with 10,000.
    seed : int
        Seed of the simulation.

    Returns
    -------
    float
        The width; where it is simulated, the mean over the draws.

    References
    ----------
    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: what the bounds of Theorems 1 and 4 depend on.

    Examples
    --------
    >>> from dpglm.penalties import Cardinality, gaussian_width
    >>> round(gaussian_width(Cardinality(), 100), 6) == round(100 * math.sqrt(2 / math.pi), 6)
    True
    """
    known = (function.extension if isinstance(function, Plateaus) else function).n_features
    p = n_features if known is None else known
    if p is None or n_features not in (None, p):
        raise ValueError(f"n_features must be given and fit {function!r}, got {n_features!r}")
    if isinstance(function, Plateaus):
        extension = function.extension
        extension.require(p)
        width = extension.gaussian_width(p) if draws is None else None
        return _simulated(extension.value, p, draws, seed) if width is None else width
    if draws is None and function.mean_value(np.array(0.5), p) is not None:
        return float(
            quad(lambda x: function.mean_value(erfc(x / math.sqrt(2)), p), 0, _FAR, epsrel=1e-10, limit=200)[
                0
            ]
        )
    return _simulated(function.norm, p, draws, seed)


def _simulated(function: Callable[[Vector], float], p: int, draws: int | None, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return float(np.mean([function(rng.standard_normal(p)) for _ in range(draws or 10_000)]))

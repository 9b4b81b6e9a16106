"""Norms that induce structure, from a price of sets of features, and Gaussian widths."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import erfc

from .. import strict
from ..arrays import Vector
from .base import CONFIDENCE, Penalty
from .fused import FusionPenalty
from .submodular_functions import SetFunction

_DRAWS = 100


@dataclass(frozen=True)
class Submodular(Penalty):
    """strength * the norm of a non-decreasing submodular function F of sets of features, + l2 / 2 * norm(w)².

    The norm is the convex stand-in for F(support of w): the function prices the patterns of coefficients that
    differ from 0, and coefficients are drawn to cheap ones.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.
    function : SetFunction
        One of `Cardinality`, `AnyFeature`, `Ordered`, `GroupCover`, `Range` and `Custom`.
    l2 : float
        Weight of the L2 part, with the Euclidean norm. Output perturbation and dual Frank-Wolfe need one.

    References
    ----------
    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: equations (5) and (6).

    Bach, "Structured sparsity-inducing norms through submodular functions", NIPS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import Bounds, GLMRegressor
    >>> from dpglm.penalties import GroupCover
    >>> penalty = Submodular(0.1, GroupCover([[0, 1], [2, 3]]))
    >>> penalty.prox(np.array([3.0, -2.0, 0.4, 0.5]), step=10.0)
    array([ 2., -2.,  0.,  0.])
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (5000, 4))
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = GLMRegressor(epsilon=1.0, penalty=penalty, bounds=bounds).fit(X, X[:, 0] - X[:, 1])
    >>> model.coef_.shape
    (4,)
    """

    strength: float
    function: SetFunction
    l2: float = 0.0

    def __post_init__(self) -> None:
        strict.level("strength", self.strength)
        strict.level("l2", self.l2)

    @property
    def strong_convexity(self) -> float:
        return self.l2

    @property
    def is_zero(self) -> bool:
        return self.strength == 0 and self.l2 == 0

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength, l2=factor * self.l2)

    def value(self, w: Vector) -> float:
        return self.strength * self.function.norm(w) + self.l2 / 2 * float(np.sum(np.square(w)))

    def prox(self, w: Vector, step: float | Vector) -> Vector:
        self._require_one_step(step)
        shrink = 1 + float(step) * self.l2
        return self.function.prox(w / shrink, self.strength * float(step) / shrink)

    def support(self, w: Vector, noise: float) -> NDArray[np.bool_]:
        """Return which coefficients are to differ from 0 if w carries noise of that deviation.

        Those that stay after a proximal step of the norm that takes everything from noise alone, in all but
        about a twentieth of cases.
        """
        if self.strength == 0 or noise == 0:
            return super().support(w, noise)
        rng = np.random.default_rng(0)
        levels = [self.function.dual_norm(rng.standard_normal(w.shape)) for _ in range(_DRAWS)]
        return np.not_equal(self.function.prox(w, float(np.quantile(levels, CONFIDENCE)) * noise), 0)

    def dual_norm(self, g: Vector) -> float:
        """Return max of abs(g)(A) / F(A) over the nonempty A; strength and l2 have no part in it."""
        return self.function.dual_norm(g)

    def linear_minimiser(self, g: Vector) -> Vector:
        """Return a point of the unit ball of the dual norm at which the inner product with g is least."""
        return self.function.linear_minimiser(g)


_FAR = 38.0  # no larger normal deviate has a probability that floats can hold


def gaussian_width(
    function: SetFunction | FusionPenalty,
    n_features: int | None = None,
    draws: int | None = None,
    seed: int = 0,
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
    known = (function.extension if isinstance(function, FusionPenalty) else function).n_features
    p = n_features if known is None else known
    if p is None or n_features not in (None, p):
        raise ValueError(f"n_features must be given and fit {function!r}, got {n_features!r}")
    if isinstance(function, FusionPenalty):
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

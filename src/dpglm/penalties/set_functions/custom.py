"""A set function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ... import strict
from ...arrays import Vector
from .base import Features, SetFunction, check_set_function

_MOST = 10_000
"""Largest number of features."""


@dataclass(frozen=True, repr=False)
class Custom(SetFunction):
    """Any non-decreasing submodular function of a set of features.

    Proximal steps search for minimum-norm points of polytopes, which takes thousands of values of the
    function where there are a hundred features.

    Parameters
    ----------
    function : callable
        From an array of distinct features, in any order, to a number.
    p : int
        Number of features.

    Raises
    ------
    ValueError
        If the function is not 0 for no feature or not positive for one, or if a thousand random sets show
        that it decreases or is not submodular.

    Examples
    --------
    >>> import numpy as np
    >>> def root(features):
    ...     return len(features) ** 0.5
    >>> Custom(root, 4).norm(np.array([0.0, 1.0, 0.0, -1.0]))
    1.4142135623730951
    """

    function: Callable[[Features], float]
    p: int

    def __post_init__(self) -> None:
        if strict.whole("p", self.p) > _MOST:
            raise strict.wrong("p", self.p, f"at most {_MOST:,}: the value of each set is computed in Python")
        check_set_function(self, self.p)

    def __repr__(self) -> str:
        return f"Custom({getattr(self.function, '__qualname__', repr(self.function))}, p={self.p})"

    @property
    def n_features(self) -> int:
        return self.p

    def value(self, subset: Features) -> float:
        return float(self.function(np.asarray(subset, dtype=np.intp)))

    def gains(self, order: Features) -> Vector:
        return np.diff([self.value(order[:k]) for k in range(len(order) + 1)])

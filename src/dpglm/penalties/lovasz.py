"""The Lovász extension of a set function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from .. import strict
from .extensions import Extension, Own
from .plateaus import Plateaus
from .set_functions.submodular_function import Features

_MOST = 10_000
"""Largest number of features."""


@dataclass(frozen=True, repr=False)
class Lovasz(Plateaus):
    """strength * f(w) + l2 / 2 * norm(w)², f the Lovász extension of a submodular F with F(all features) = 0.

    f(w) is the integral over x of F({j: w_j > x}): F prices the sets of features whose coefficients are
    larger than those of the others, and coefficients are drawn to equal values. The function of a set A that
    counts the neighbours of which one is in A gives `TotalVariation`.

    Proximal steps search for minimum-norm points of polytopes, which takes thousands of values of the
    function where there are a hundred features.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.
    function : callable
        From an array of distinct features, in any order, to a number.
    p : int
        Number of features.
    l2 : float
        Weight of the L2 part. Output perturbation needs one.

    Raises
    ------
    ValueError
        If the function is not 0 for no feature and for all, or if a thousand random sets show that it is
        negative or not submodular.

    Examples
    --------
    >>> import numpy as np
    >>> def balance(features):
    ...     return len(features) * (4 - len(features))
    >>> penalty = Lovasz(0.1, balance, p=4)
    >>> round(penalty.value(np.array([1.0, 1.0, 1.0, 3.0])), 6)
    0.6
    >>> penalty.prox(np.array([1.0, 1.1, 1.2, 3.0]), step=1.0).round(6)
    array([1.2, 1.2, 1.2, 2.7])
    """

    function: Callable[[Features], float]
    p: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if strict.whole("p", self.p) > _MOST:
            raise strict.wrong("p", self.p, f"at most {_MOST:,}: the value of each set is computed in Python")
        if not callable(self.function):
            raise strict.wrong("function", self.function, "a function of a set of features")
        self.extension.require(self.p)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"Lovasz(strength={self.strength!r}, function={name}, p={self.p}, l2={self.l2!r})"

    @cached_property
    def extension(self) -> Extension:
        return Own(self.function, self.p)

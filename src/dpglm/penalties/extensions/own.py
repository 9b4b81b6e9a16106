"""The Lovász extension of a function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arrays import Vector
from ..set_functions.submodular_function import NONE, Features, SubmodularFunction, check_random_sets
from .base import Extension, Labels

_TRIALS, _TOLERANCE = 1000, 1e-9


@dataclass(frozen=True)
class _Values(SubmodularFunction):
    """A function of sets, given by its values."""

    function: Callable[[Features], float]

    def value(self, subset: Features) -> float:
        return float(self.function(np.asarray(subset, dtype=np.intp)))

    def gains(self, order: Features) -> Vector:
        return np.diff([self.value(order[:k]) for k in range(len(order) + 1)])


class Own(Extension):
    """The extension of a submodular function that is given by its values.

    Raises
    ------
    ValueError
        If the function is not 0 for no feature and for all, or if a thousand random sets show that it is
        negative or not submodular.
    """

    def __init__(self, function: Callable[[Features], float], n_features: int) -> None:
        self._function, self._size = _Values(function), n_features
        every = np.arange(n_features)
        scale = max(abs(self._function.value(every[j : j + 1])) for j in every.tolist())
        for subset, what in ((NONE, "no features"), (every, "all features")):
            if not abs(value := self._function.value(subset)) <= _TOLERANCE * scale:
                raise ValueError(f"the value of {what} must be 0, got {value!r}")
        rounding = _TOLERANCE * scale
        for rest, i, without, value in check_random_sets(self._function, n_features, _TRIALS, 0, rounding):
            for subset, found in ((rest, without), (np.append(rest, i), value)):
                if not found >= -rounding:
                    raise ValueError(
                        f"the value must be at least 0, got {found!r} for {sorted(subset.tolist())}"
                    )

    @property
    def n_features(self) -> int:
        return self._size

    def require(self, n_features: int) -> None:
        if n_features != self._size:
            raise ValueError(f"Lovasz is for {self._size} features, got {n_features}")

    def value(self, w: Vector) -> float:
        order = np.argsort(-w, kind="stable")
        return float(w[order] @ self._function.gains(order))

    def flatten(self, w: Vector, step: float) -> Vector:
        return self._function.levels(w, step, np.arange(w.size))

    def plateaus(self, w: Vector, width: float) -> Labels:
        order = np.argsort(w, kind="stable")
        labels = np.empty(len(w), dtype=np.intp)
        labels[order] = np.cumsum(np.diff(w[order], prepend=w[order[:1]]) > width)
        return labels

"""What a submodular function of sets of features is, and how blocks of one level come from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import Vector
from .min_norm_point import minimising_set

Features = NDArray[np.intp]

NONE: Features = np.empty(0, dtype=np.intp)
LEAST_GAIN = 1e-15  # relative; a set must be better than another by more than this


@dataclass(frozen=True)
class SubmodularFunction(ABC):
    """A function F of sets of features with F(A + j) - F(A) that never grows with A; 0 for no feature.

    A subclass defines `gains`; all else follows from them, and may be overridden by a closed form.
    """

    @property
    def n_features(self) -> int | None:
        """How many features there are; None for a function that takes any number."""
        return None

    @abstractmethod
    def gains(self, order: Features) -> Vector:
        """Return F(order[:k + 1]) - F(order[:k]) for every k and an order of some or all features."""

    def value(self, subset: Features) -> float:
        """Return F(subset)."""
        return float(np.sum(self.gains(np.asarray(subset, dtype=np.intp))))

    def levels(self, worth: Vector, step: float, free: Features) -> Vector:
        """Return the u that minimises norm(u - worth)² / 2 + step * f(u), f being the extension of F.

        Features that are not ``free`` are 0. The set where the result is above a level minimises
        step * F(A) - sum over A of (worth - level). Features of one block are equal to its level unless a
        part of it is above; then it is split. See Groenevelt, "Two algorithms for maximizing a separable
        concave function over a polymatroid feasible region", and Bach, "Learning with submodular functions",
        section 9.1, doi:10.1561/2200000039.
        """
        result = np.zeros(worth.shape)
        blocks = [(NONE, free)]
        while blocks:
            above, block = blocks.pop()
            if not block.size:
                continue
            price = step * np.sum(self.gains(np.append(above, block))[above.size :])
            level = (np.sum(worth[block]) - price) / block.size
            upper = self.minimiser(worth - level, step, above, block) if block.size > 1 else NONE
            if 0 < upper.size < block.size:
                lower = np.setdiff1d(block, upper, assume_unique=True)
                blocks += [(above, upper), (np.append(above, upper), lower)]
            else:
                result[block] = level
        return result

    def minimiser(self, worth: Vector, step: float, taken: Features, free: Features) -> Features:
        """Return the A within `free` that minimises step * F(taken and A) - worth(A).

        Found from the minimum-norm point of the base polytope, for any F; a subclass may be faster.
        """

        def gains(order: Features) -> Vector:
            features = free[order]
            return step * self.gains(np.append(taken, features))[taken.size :] - worth[features]

        rounding = LEAST_GAIN * float(np.sum(np.abs(worth)))
        return free[minimising_set(gains, free.size, rounding)] if free.size else free


def check_random_sets(
    function: SubmodularFunction, n_features: int, trials: int, seed: int, rounding: float
) -> Iterator[tuple[Features, int, float, float]]:
    """Refuse a function that is not submodular, as far as random sets show.

    Yields a random set, a feature that is not in it, and the values without and with that feature.
    """
    rng = np.random.default_rng(seed)
    for _ in range(trials if n_features > 1 else 0):
        i, j, *rest = rng.permutation(n_features)[: rng.integers(2, n_features, endpoint=True)].tolist()
        none, with_i, with_j, both = (
            function.value(np.array(rest + more, dtype=np.intp)) for more in ([], [i], [j], [i, j])
        )
        yield np.array(rest, dtype=np.intp), i, none, with_i
        if not with_i - none >= both - with_j - rounding:
            raise ValueError(f"not submodular: {i} adds more to {sorted([*rest, j])} than to {sorted(rest)}")

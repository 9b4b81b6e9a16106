"""The exponential mechanism, and the structures of scores that it draws from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from .. import accounting
from ..arrays import Vector
from ..errors import UnsupportedProblem
from .base import Index, Kept, Selection, opposed_scores
from .grid import public_grid
from .grouped import Grouped
from .heap import Heap
from .randomness import GUMBEL_DISTANCE, Randomness


class Gumbel(Kept):
    """Rounded scores; a draw adds Gumbel noise to all of them and takes the largest.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale. Proof: docs/proofs/grid_noise.md.
    """

    @property
    def log_weights(self) -> Vector:
        """Rounded scores below the largest, in units of the scale."""
        return (self._values - float(self._values.max())) / self._scale

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        return int(np.argmax(self.log_weights + randomness.gumbel(self._values.shape)))


class Binned(Kept):
    """Candidates in bins of width 1 in log-weight, by composition and rejection.

    A draw takes candidate j with probability proportional to exp(rounded score_j / scale): it chooses a bin
    by an upper bound of its mass and one of its members uniformly, and accepts that one with the probability
    that corrects for the bound. Otherwise it starts again, a few times on average. A new score moves its
    candidate over the boundaries between its old bin and its new one, by a swap for each; sums are never
    kept, so nothing drifts. The bound holds for all scores below the edge of a bin: a score that moves within
    its ``slack`` needs no update, if ``draw`` is given its present value.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale, after any updates. Proof: docs/proofs/binned_selection.md.
    """

    def __init__(self, scores: ArrayLike, grid: float, scale: float) -> None:
        from ..kernels import binned, bins  # compiled code is loaded by those who use it

        self._kernels = binned
        count = np.size(scores)
        self._values = np.empty(count)
        self._bins = bins.empty(count, np.array([grid, 1 / scale, 0.0]))
        super().__init__(scores, grid, scale)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The rounded scores and the parts of the bins, for compiled code that uses them by itself."""
        return (self._values, *self._bins)

    def slack(self, index: Index) -> Vector:
        return np.asarray(self._kernels.slack(index, self._values, self._bins.line))

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        kernels = self._kernels
        if score is None:
            return randomness.run(kernels.draw, self._values, *self._bins)
        while True:
            j, k = divmod(randomness.run(kernels.draw_bin, *self._bins), kernels.BINS)
            if randomness.run(kernels.accept, score(j), k, self._bins.line):
                return int(j)

    def set_all(self, scores: Vector) -> None:
        """Set the scores of all candidates, and sort them anew."""
        self._build(scores)

    def _build(self, scores: Vector) -> None:
        self._kernels.build(np.ascontiguousarray(scores, dtype=np.float64), self._values, *self._bins)

    def _set(self, index: Index, scores: Vector, everything: Callable[[], Vector] | None) -> bool:
        sort, _ = self._kernels.update(index, scores, self._values, *self._bins)
        if sort:
            self._build(everything() if everything else self._values)
        return bool(sort)


STRUCTURES: dict[str, type[Kept]] = {"binned": Binned, "grouped": Grouped, "gumbel": Gumbel, "heap": Heap}
"""What scores can be kept in, by name."""

_WEIGHT_ERROR = 2.0**-39
_MOST_NOISE = 2.0**37
_FEWEST_KEPT = 1 << 12
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Exponential(Selection):
    """Chooses index j with probability proportional to exp(score_j / (noise * sensitivity)).

    The sensitivity bounds how far any one score moves. The draw is the largest score after adding
    Gumbel noise, so its bounded range is 2 / noise; no other noise has that range. Scores are rounded to a
    public grid first. The scale is enlarged by what this rounding and that of Gumbel noise can change.
    """

    name: ClassVar[str] = "exponential"
    distance: ClassVar[float] = GUMBEL_DISTANCE

    @property
    def event(self) -> accounting.Event:
        return accounting.Exponential(self.noise)

    def release(self, answer: ArrayLike, sensitivity: float, randomness: Randomness) -> int:
        scores = np.asarray(answer, dtype=np.float64)
        if self.noise == 0 or sensitivity == 0:
            return int(np.argmax(scores))
        return Gumbel(scores, *self.law(sensitivity)).draw(randomness)

    def keep(self, scores: ArrayLike, sensitivity: float, structure: str = "auto") -> Kept | None:
        """Keep scores for many selections among them, with the law of ``release``, and updates in between.

        Parameters
        ----------
        scores : array
            Finite scores of all candidates.
        sensitivity : float
            How far neighbours move any one score.
        structure : {"auto", "binned", "grouped", "gumbel", "heap"}
            What the scores are kept in: a heap without noise, any of the others with it. "auto" takes bins,
            or returns None where ``release`` of all scores is needed or as fast: without noise, with very
            little noise, or with few candidates.
        """
        exact = self.noise == 0 or sensitivity == 0
        if structure == "auto":
            if exact or np.size(scores) < _FEWEST_KEPT or not self._divides(sensitivity):
                return None
            structure = "binned"
        if structure not in STRUCTURES:
            raise ValueError(f"structure must be 'auto' or one of {[*STRUCTURES]}, got {structure!r}")
        kind = STRUCTURES[structure]
        if kind.noisy == exact:
            others = [name for name, other in STRUCTURES.items() if other.noisy != exact]
            raise ValueError(
                f"structure {structure!r} is for selections {'with' if exact else 'without'} noise, and here "
                f"noise is {self.noise:g} and the sensitivity {sensitivity:g}: use one of {others}"
            )
        if exact:
            return kind(scores)
        if not self._divides(sensitivity):
            raise ValueError("scores cannot be kept with so little noise: use structure 'auto'")
        return kind(scores, *self.law(sensitivity))

    def _divides(self, sensitivity: float) -> bool:
        """Whether 1 / scale is finite."""
        return self.law(sensitivity)[1] >= _SMALLEST

    def require_drawable(self, entries: int) -> None:
        self.law(1.0)

    def law(self, sensitivity: float) -> tuple[float, float]:
        """(grid, scale): index j has probability proportional to exp(score_j on the grid / scale)."""
        if self.noise > _MOST_NOISE:
            raise UnsupportedProblem("this much noise cannot hide its rounding: the budget is too small")
        grid, _ = public_grid(sensitivity, self.noise, 1.0)
        return grid, self.noise * (sensitivity + grid) * (1 + (1 + 2 * self.noise) * _WEIGHT_ERROR)

    def probabilities(self, answer: ArrayLike, sensitivity: float) -> Vector:
        return np.asarray(softmax(Gumbel(answer, *self.law(sensitivity)).log_weights))

    def log_likelihood(self, released: int, answer: ArrayLike, sensitivity: float) -> float:
        return float(np.log(self.probabilities(answer, sensitivity)[released]))

    def worst_cases(self) -> dict[str, tuple[Vector, Vector]]:
        # Scores that are not monotone. An unlikely candidate shows the whole range of the loss at once; two
        # that are equally likely show most over many rounds.
        return opposed_scores({"unlikely candidate": 1.0 + 3.0 * self.noise, "equal candidates": 1.0})

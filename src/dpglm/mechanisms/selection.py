"""Mechanisms that select one of many candidates by their scores, and the structures that they draw from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from .. import accounting, strict
from ..arrays import Vector
from ..errors import UnsupportedProblem
from .additive import Additive
from .base import Mechanism
from .grid import on_grid, public_grid
from .randomness import GUMBEL_DISTANCE, Randomness

Index = NDArray[np.signedinteger]
"""Indices of candidates."""


class ScoreStructure(ABC):
    """Scores of all candidates, kept for many selections among them, with updates in between.

    Parameters
    ----------
    scores : array
        Finite scores of all candidates.
    grid : float
        Power of two that scores are rounded to; 0 if they are not.
    scale : float
        Scale of the exponential mechanism; ``noisy`` says whether a structure draws with noise.
    """

    noisy: ClassVar[bool] = True

    def __init__(self, scores: ArrayLike, grid: float = 0.0, scale: float = 0.0) -> None:
        self._grid, self._scale = grid, scale
        self._build(np.asarray(scores, dtype=np.float64))

    def update(
        self, index: ArrayLike, scores: ArrayLike, everything: Callable[[], Vector] | None = None
    ) -> bool:
        """Set the scores at ``index``; where one candidate is named twice, the last score counts.

        Returns True if all candidates were sorted again, by ``everything()`` if given. It must be given if
        other scores have moved within their ``slack`` since they were set.
        """
        places, values = np.asarray(index), np.asarray(scores, dtype=np.float64)
        if places.ndim != 1 or places.shape != values.shape:
            raise ValueError("there must be one score for each candidate")
        return self._set(places, values, everything)

    def slack(self, index: Index) -> Vector:
        """Return how far each of these scores may move, up or down, before it must be set again."""
        return np.zeros(len(index))

    @abstractmethod
    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        """Choose a candidate.

        ``score(j)`` is the present score of candidate j. It is needed if scores have moved within their
        ``slack``.
        """

    def _build(self, scores: Vector) -> None:
        """Keep these scores."""
        self._values = self._rounded(scores)

    def _set(self, index: Index, scores: Vector, everything: Callable[[], Vector] | None) -> bool:
        if index.size and not 0 <= index.min() <= index.max() < self._values.size:
            raise IndexError("there is no such candidate")
        self._values[index] = self._rounded(scores)
        return False

    def _rounded(self, scores: Vector) -> Vector:
        """A copy of the scores, on the grid if there is one."""
        return on_grid(scores, self._grid) if self._grid else scores.copy()


@dataclass(frozen=True)
class Selection(Mechanism):
    """Chooses one of many candidates by their scores; the sensitivity bounds how far any one score moves."""

    @abstractmethod
    def release(self, answer: ArrayLike, sensitivity: float, randomness: Randomness) -> int:
        """The index chosen."""

    @abstractmethod
    def log_likelihood(self, released: int, answer: ArrayLike, sensitivity: float) -> float: ...

    @abstractmethod
    def worst_cases(self) -> Mapping[str, tuple[Vector, Vector]]: ...

    def keep(self, scores: ArrayLike, sensitivity: float, structure: str = "auto") -> ScoreStructure | None:
        """The scores kept for many choices; None where ``release`` of all scores is as fast."""
        if structure != "auto":
            raise ValueError(f"the {self.name} mechanism keeps no scores: structure must be 'auto'")
        return None


def opposed_scores(gaps: Mapping[str, float]) -> dict[str, tuple[Vector, Vector]]:
    """Worst cases for selections: of two candidates so far apart, one rises while the other falls."""
    return {name: (np.array([1.0 - gap, -1.0]), np.array([-gap, 0.0])) for name, gap in gaps.items()}


class Grouped(ScoreStructure):
    """About sqrt(p) groups of about sqrt(p) consecutive candidates, with the sum of the weights of each.

    The weight of candidate j is exp((rounded score_j - reference) / scale). An update adds up the groups of
    its candidates anew from all of their members, never by differences, so nothing drifts. A draw halves the
    set of groups by coins until one is left, and then its members. If the sum of all weights leaves a wide
    range, the largest score becomes the reference. It takes the place of Algorithm 4 of Raff, Khanna and Lu,
    arXiv:2310.19978, whose groups drift.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale, after any updates.
    Proof: docs/proofs/grouped_selection.md.
    """

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        return randomness.run(self._kernels.draw_from_groups, self._weights, self._sums)

    def _build(self, scores: Vector) -> None:
        from ..kernels import bins  # compiled code is loaded by those who use it

        super()._build(scores)
        self._kernels = bins
        count = self._values.size
        size = 1 << ((count - 1).bit_length() + 1) // 2
        groups = -(-count // size)
        self._weights = np.zeros((groups, size))
        self._sums = np.zeros(2 << (groups - 1).bit_length())
        self._refer()

    def _set(self, index: Index, scores: Vector, everything: Callable[[], Vector] | None) -> bool:
        super()._set(index, scores, everything)
        if not self._kernels.LOWEST_SUM <= self._weigh(index) <= self._kernels.HIGHEST_SUM:
            self._refer()
        return False

    def _refer(self) -> None:
        """Weigh all candidates against the largest score."""
        self._reference = float(self._values.max())
        self._weigh(np.arange(self._values.size))

    def _weigh(self, index: Index) -> float:
        """Weigh these candidates; returns the sum of all weights."""
        index = index.astype(np.int64, copy=False)
        return self._kernels.weigh_groups(
            index, self._values, self._weights, self._sums, self._reference, self._scale
        )


class Largest(ScoreStructure):
    """Scores without noise; a draw is the first of the largest.

    Guarantee
    ---------
    None: there is no noise.
    """

    noisy: ClassVar[bool] = False

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        return int(np.argmax(self._values))


class Gumbel(ScoreStructure):
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


class Binned(ScoreStructure):
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
        from ..kernels import bins  # compiled code is loaded by those who use it

        self._kernels = bins
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


STRUCTURES: dict[str, type[ScoreStructure]] = {
    "binned": Binned,
    "grouped": Grouped,
    "gumbel": Gumbel,
    "heap": Largest,
}
"""Structures of scores by name."""

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

    def keep(self, scores: ArrayLike, sensitivity: float, structure: str = "auto") -> ScoreStructure | None:
        """Keep scores for many selections among them, with the law of ``release``, and updates in between.

        Parameters
        ----------
        scores : array
            Finite scores of all candidates.
        sensitivity : float
            How far neighbours move any one score.
        structure : {"auto", "binned", "grouped", "gumbel", "heap"}
            What the scores are kept in. "heap" is the plain maximum, without noise; all others are for noise.
            "auto" takes bins, or returns None where ``release`` of all scores is needed or as fast: without
            noise, with very little noise, or with few candidates.
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
        """Return whether 1 / scale is finite."""
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


_FARTHEST = 10_000
_NEAR, _PANEL = 40.0, 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class LaplaceNoisyMax(Selection):
    """Adds Laplace noise of scale noise * sensitivity, on a grid, to each score; returns the largest's index.

    The sensitivity bounds how far any one score moves. Of equal ones the first counts as the largest.

    Guarantee
    ---------
    2 / noise, however scores move. Unlike `Exponential` with the same noise it is not known to have that
    bounded range, so over many rounds it costs more: it is here for comparison, and for methods as they were
    published. Proof: docs/proofs/noisy_max.md.
    """

    name: ClassVar[str] = "Laplace noisy max"

    @property
    def event(self) -> accounting.Event:
        return accounting.Pure(2 / self.noise if self.noise > 0 else math.inf)

    def release(self, answer: ArrayLike, sensitivity: float, randomness: Randomness) -> int:
        scores = np.asarray(answer, dtype=np.float64)
        if self.noise == 0 or sensitivity == 0:
            return int(np.argmax(scores))
        behind, scale = self._in_steps(scores, sensitivity)
        return int(np.argmax(behind + randomness.laplace(scale, scores.shape)))

    def require_drawable(self, entries: int) -> None:
        public_grid(1.0, self.noise, 1.0)

    def _in_steps(self, scores: Vector, sensitivity: float) -> tuple[Vector, int]:
        """Scores below the largest in whole steps of the grid, and the scale of the noise in such steps."""
        grid, scale = public_grid(sensitivity, self.noise, 1.0)
        rounded = on_grid(scores, grid)
        with np.errstate(over="ignore"):
            return (rounded - rounded.max()) / grid, scale

    def log_likelihood(self, released: int, answer: ArrayLike, sensitivity: float) -> float:
        return float(self._log_probabilities(answer, sensitivity)[released])

    def probabilities(self, answer: ArrayLike, sensitivity: float) -> Vector:
        return np.exp(self._log_probabilities(answer, sensitivity))

    def _log_probabilities(self, answer: ArrayLike, sensitivity: float) -> Vector:
        behind, scale = self._in_steps(np.asarray(answer, dtype=np.float64), sensitivity)
        return _log_law(tuple(np.maximum(behind, -_FARTHEST * scale).tolist()), scale)

    def worst_cases(self) -> dict[str, tuple[Vector, Vector]]:
        # A candidate far behind shows all that the loss can be, but is hardly ever seen; two that are equally
        # likely show most over many rounds.
        far, near = 2.0 + 20.0 * self.noise, 2.0 + 2.0 * self.noise
        return opposed_scores(
            {"candidate far behind": far, "candidate behind": near, "equal candidates": 1.0}
        )


@lru_cache(maxsize=256)
def _log_law(scores: tuple[float, ...], scale: int) -> Vector:
    """Log-probability of each index, from whole scores of which the largest is 0.

    With G_i(y) the probability that score i plus noise is below y, for y half-way between whole numbers,
    index j is the first of the largest with probability

        sum over y of (G_j(y + 1) - G_j(y)) * prod_{i < j} G_i(y) * prod_{i > j} G_i(y + 1).

    Each G_i is smooth on both sides of its score. The terms y = score - 1/2 are added one by one; the sum of
    those between two scores is an integral, with relative error of about (candidates / scale)**2 / 24: 1e-9
    where noise is a hundredth of the number of candidates, or more.
    """
    whole = np.array(scores)
    kinks = np.unique(whole)
    total = np.full(whole.size, -np.inf)
    for kink in kinks:
        terms = _log_terms(np.array([kink - 0.5]) / scale, whole, scale, whole < kink, whole == kink)
        total = np.logaddexp(total, terms[:, 0])
    far = scale * (_NEAR + math.log(whole.size))
    starts, ends = np.append(kinks[0] - 1 - far, kinks), np.append(kinks - 1, far)
    for start, end in zip(starts, ends, strict=True):
        if end > start:
            edges = _panels((end - start) / scale)
            half = np.diff(edges)[:, None] / 2
            places = start / scale + (edges[:-1, None] + half * (1 + _NODES)).ravel()
            terms = _log_terms(places, whole, scale, whole <= start, np.zeros(whole.size, dtype=bool))
            terms += np.log(scale * half * _WEIGHTS).ravel()
            total = np.logaddexp(total, np.logaddexp.reduce(terms, axis=1))
    total.flags.writeable = False
    return total


def _log_terms(
    places: Vector, whole: Vector, scale: int, passed: NDArray[np.bool_], at: NDArray[np.bool_]
) -> Vector:
    """Logarithms of the terms of the sum for each index, at y / scale = places.

    ``passed`` says which scores are below y, ``at`` which are between y and y + 1.
    """
    step = 1 / scale
    beyond = places - (whole / scale)[:, None]
    low, high = _log_cdf(beyond), _log_cdf(beyond + step)
    before = np.cumsum(low, axis=0) - low
    after = np.cumsum(high[::-1], axis=0)[::-1] - high
    # Log-probability of y < score + noise < y + 1.
    rising = beyond + math.log(math.expm1(step) / 2)
    falling = -beyond + math.log(-math.expm1(-step) / 2)
    between = np.where(passed[:, None], falling, rising)
    between[at] = math.log(-math.expm1(-step / 2))
    return np.asarray(before + between + after)


def _log_cdf(x: Vector) -> Vector:
    return np.where(x < 0, x - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(x))))


def _panels(length: float) -> Vector:
    """Edges from 0 to a length: even steps near both ends, ever longer ones towards the middle."""
    half = length / 2
    near = min(half, _NEAR)
    edges = np.linspace(0, near, math.ceil(near / _PANEL) + 1).tolist()
    while edges[-1] < half:
        edges.append(min(2 * edges[-1], half))
    return np.append(edges, length - np.array(edges[-2::-1]))


Answer = tuple[Vector, Vector]
Bounds = tuple[float, Vector]


@dataclass(frozen=True)
class Round(Mechanism):
    """Selects a candidate j by its score, then releases the value of j with noise.

    The answer is (scores, values) with an entry of both for each candidate. The sensitivity is how far any
    one score moves, and a vector of how far each value moves.

    Parameters
    ----------
    selection : Selection
        Chooses j.
    additive : Additive
        Adds noise to the value of j.

    Guarantee
    ---------
    The event is the composition of both, in this order, which costs less than the two in any order. Only the
    one value that was selected is released. Proof: docs/proofs/composition.md.
    """

    name: ClassVar[str] = "round"
    value: ClassVar[str] = "value of the choice"
    noise: float = field(init=False, repr=False, compare=False)
    selection: Selection
    additive: Additive

    def __post_init__(self) -> None:
        if not isinstance(self.selection, Selection):
            raise strict.wrong("selection", self.selection, "a mechanism that selects")
        if not isinstance(self.additive, Additive):
            raise strict.wrong("additive", self.additive, "a mechanism that adds noise")
        # Without noise in either of the two nothing is promised.
        object.__setattr__(self, "noise", min(self.selection.noise, self.additive.noise))

    @property
    def event(self) -> accounting.Event:
        return accounting.Composed((self.selection.event, self.additive.event))

    def entries(self, answer: Answer) -> int:
        return self.selection.entries(answer[0])

    def imprecision(self, entries: int) -> Counter[accounting.Event]:
        """The imprecision of a selection among ``entries`` candidates, and of one number."""
        return self.selection.imprecision(entries) + self.additive.imprecision(1)

    def require_drawable(self, entries: int) -> None:
        self.selection.require_drawable(entries)
        self.additive.require_drawable(1)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.selection.scaled(factor), self.additive.scaled(factor))

    def release(self, answer: Answer, sensitivity: Bounds, randomness: Randomness) -> tuple[int, float]:
        """The candidate selected, and its noisy value."""
        j = self.selection.release(answer[0], sensitivity[0], randomness)
        return j, self.additive.release(float(answer[1][j]), sensitivity[1][j], randomness)

    def log_likelihood(self, released: tuple[int, float], answer: Answer, sensitivity: Bounds) -> float:
        j, value = released
        choice = self.selection.log_likelihood(j, answer[0], sensitivity[0])
        return choice + self.additive.log_likelihood(value, answer[1][j], sensitivity[1][j])

    def worst_cases(self) -> dict[str, tuple[Answer, Answer]]:
        # Scores as in the worst cases of the selection, and values of all candidates that move by 1.
        return {
            name: ((first, np.ones(len(first))), (second, np.zeros(len(second))))
            for name, (first, second) in self.selection.worst_cases().items()
        }

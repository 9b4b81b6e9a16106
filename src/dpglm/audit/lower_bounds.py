"""Lower bounds on epsilon from outputs on two neighbouring tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import ndtri

from ..arrays import Vector
from .findings import Claim


@dataclass(frozen=True)
class Statistic:
    """A named number of each run.

    Attributes
    ----------
    name : str
    compute : callable
        From outputs to numbers.
    rehearsed : pair of arrays, optional
        Its numbers on the held-out runs of either table, for a statistic that was fitted to these runs: each
        as if it had not seen that run. Large numbers then must stand for the first table, since what is left
        of a pair of equal outputs points the other way.
    """

    name: str
    compute: Callable[[Vector], Vector]
    rehearsed: tuple[Vector, Vector] | None = None

    def __call__(self, outputs: Vector) -> Vector:
        return self.compute(outputs)

    def judged(self, held_out: list[Vector]) -> tuple[Vector, Vector]:
        """Its numbers on the held-out runs of both tables."""
        return self.rehearsed or (self(held_out[0]), self(held_out[1]))


def candidates(first: Vector, second: Vector) -> list[Statistic]:
    """Statistics that may tell two samples of outputs apart.

    Every column, its distance from zero and from the pooled median, the largest and smallest entry, and the
    linear combination that separates the samples best (Fisher's discriminant), which also finds a direction
    without any noise. Last, how often the same output was seen on either side: noise that repeats itself
    says which table it was added to.
    """
    width = first.shape[1]
    centre = np.median(np.concatenate([first, second]), axis=0)
    found = []
    for j in range(width):
        found.append(Statistic(f"output {j}", _column(j)))
        found.append(Statistic(f"size of output {j}", _distance(j, 0.0)))
        found.append(Statistic(f"distance of output {j} from its median", _distance(j, float(centre[j]))))
    if width > 1:
        found.append(Statistic("largest output", lambda outputs: outputs.max(axis=1)))
        found.append(Statistic("smallest output", lambda outputs: outputs.min(axis=1)))
        direction = _discriminant(first, second)
        found.append(Statistic("discriminant", lambda outputs: (outputs - centre) @ direction))
        entries = [slice(j, j + 1) for j in range(width)]
        found.append(_remembered("entries seen before", entries, first, second))
    found.append(_remembered("output seen before", [slice(None)], first, second))
    return found


def _remembered(name: str, columns: list[slice], first: Vector, second: Vector) -> Statistic:
    """How much more often outputs occur in the first sample than in the second; 0 if in neither.

    Each group of columns is looked up alone, and what is found is added up.
    """
    known = [[Counter(_keys(sample[:, group])) for sample in (first, second)] for group in columns]

    def more(outputs: Vector, own: tuple[int, int] = (0, 0)) -> Vector:
        total = np.zeros(len(outputs))
        for group, counts in zip(columns, known, strict=True):
            keys = _keys(outputs[:, group])
            here, there = (np.array([count[key] for key in keys]) for count in counts)
            total += np.log1p(here - own[0]) - np.log1p(there - own[1])
        return total

    return Statistic(name, more, (more(first, (1, 0)), more(second, (0, 1))))


def _keys(outputs: Vector) -> list[float | bytes]:
    """A key for each row, the same for equal rows: adding 0 makes zeros of either sign alike."""
    rows = np.ascontiguousarray(outputs + 0.0)
    return rows[:, 0].tolist() if rows.shape[1] == 1 else [row.tobytes() for row in rows]


def _column(j: int) -> Callable[[Vector], Vector]:
    return lambda outputs: outputs[:, j]


def _distance(j: int, centre: float) -> Callable[[Vector], Vector]:
    return lambda outputs: np.abs(outputs[:, j] - centre)


def _discriminant(first: Vector, second: Vector) -> Vector:
    """Fisher's direction, with columns scaled by their deviation so that none drowns the others."""
    within = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    gap = first.mean(axis=0) - second.mean(axis=0)
    scale = np.sqrt(np.mean(within**2, axis=0) + gap**2)
    scale[scale == 0] = 1.0
    covariance = (within / scale).T @ (within / scale) / len(within)
    covariance += 1e-10 * np.eye(len(scale))
    return np.asarray(np.linalg.solve(covariance, gap / scale) / scale)


_THRESHOLDS = 256

Goal = Callable[[Vector, Vector], Vector]


@dataclass(frozen=True)
class Test:
    """A way to tell the tables apart: a statistic, a threshold, and what lies beyond it.

    Attributes
    ----------
    statistic : Statistic
    threshold : float
    above : bool
        Whether the test says "first" above the threshold or below it.
    swapped : bool
        Whether it says "second" instead.
    """

    statistic: Statistic
    threshold: float
    above: bool
    swapped: bool

    def counts(self, first: Vector, second: Vector) -> tuple[tuple[int, int], tuple[int, int]]:
        """((false alarms, runs), (hits, runs))."""
        counts = []
        for outputs in (first, second):
            values = self.statistic(outputs)
            beyond = values > self.threshold if self.above else values < self.threshold
            counts.append((int(beyond.sum()), len(values)))
        hits, alarms = reversed(counts) if self.swapped else counts
        return alarms, hits

    @property
    def words(self) -> str:
        side = "above" if self.above else "below"
        return f"{self.statistic.name} {side} {self.threshold:.4g}"


@dataclass(frozen=True)
class Bound:
    """What outputs on two neighbouring tables say about epsilon.

    Attributes
    ----------
    epsilon : float
        A lower bound on epsilon at the claim's delta, whatever the mechanism is.
    explained : float
        A lower bound if the noise is of the claimed kind but for its size; 0 if no event was claimed.
    violated : bool
        Whether the outputs contradict the claim.
    test : Test
        The test that gives ``epsilon``.
    """

    epsilon: float
    explained: float
    violated: bool
    test: Test


def clopper_pearson(count: int, total: int, error: float) -> tuple[float, float]:
    """Exact bounds on a probability from a count; each fails with probability at most ``error``."""
    low = stats.beta.ppf(error, count, total - count + 1) if count else 0.0
    high = stats.beta.ppf(1 - error, count + 1, total - count) if count < total else 1.0
    return float(low), float(high)


def epsilon_of(false_alarms: ArrayLike, hits: ArrayLike, delta: float) -> Vector:
    """The least epsilon >= 0 with hits <= e**epsilon * false_alarms + delta."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(np.maximum((np.asarray(hits) - delta) / np.asarray(false_alarms), 1.0)))


def advantage_of(alarms: tuple[int, int], hits: tuple[int, int], error: float) -> float:
    """A lower bound on the rate of hits minus that of false alarms, wrong with probability ``error``.

    Right answers on n runs of each table are a sum of 2n independent coins. By Hoeffding (1956) its upper
    tail is heaviest when all coins have the mean probability, so the exact bound of a binomial count holds.
    """
    runs = hits[1]
    return 2 * clopper_pearson(hits[0] + runs - alarms[0], 2 * runs, error)[0] - 1


def bound(first: ArrayLike, second: ArrayLike, claim: Claim, confidence: float = 0.99) -> Bound:
    """Lower-bound epsilon from outputs of independent runs on two neighbouring tables.

    Statistic, threshold and direction are chosen on one half of the outputs; the other half is
    counted. A test for (epsilon, delta) itself and one for the claimed kind of noise share the error.

    Parameters
    ----------
    first, second : array of shape (runs,) or (runs, numbers)
        What each run put out, on either table.
    claim : Claim
    confidence : float
        Probability with which neither bound exceeds the truth, nor a true claim counts as violated.
    """
    tables = [_matrix(outputs) for outputs in (first, second)]
    if tables[0].shape[1] != tables[1].shape[1]:
        raise ValueError("first and second must have the same number of columns")
    if len(tables[0]) != len(tables[1]) or len(tables[0]) < 4:
        raise ValueError("first and second need the same number of runs, at least four")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence!r}")
    held_out = [table[: len(table) // 2] for table in tables]
    counted = [table[len(table) // 2 :] for table in tables]
    error = (1 - confidence) / 2
    chosen = candidates(*held_out)
    direct = _best(chosen, held_out, error, lambda alarms, hits: epsilon_of(alarms, hits, claim.delta))
    alarms, hits = direct.counts(*counted)
    most, least = clopper_pearson(*alarms, error / 2)[1], clopper_pearson(*hits, error / 2)[0]
    widest = _best(chosen, held_out, error, lambda alarms, hits: hits - alarms)
    advantage = advantage_of(*widest.counts(*counted), error)
    return Bound(
        epsilon=float(epsilon_of(most, least, claim.delta)),
        explained=claim.explained(advantage),
        violated=not (claim.allows(most, least) and claim.allows_advantage(advantage)),
        test=direct,
    )


def exact_epsilon(first: ArrayLike, second: ArrayLike, delta: float) -> float:
    """The epsilon of two distributions over the same finite set of outputs, in both directions."""
    p, q = (np.asarray(values, dtype=np.float64) for values in (first, second))
    return max(_one_sided(p, q, delta), _one_sided(q, p, delta))


def _one_sided(p: Vector, q: Vector, delta: float) -> float:
    """The least epsilon with sum of max(p - e**epsilon q, 0) at most delta."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, p / q, 0.0)
    order = np.argsort(-ratio, kind="stable")
    above_p, above_q = np.cumsum(p[order]), np.cumsum(q[order])
    # With the k outputs of largest ratio beyond e**epsilon the sum is above_p - e**epsilon above_q.
    with np.errstate(divide="ignore"):
        needed = np.where(above_p > delta, (above_p - delta) / above_q, 0.0)
    best = float(np.max(needed, initial=1.0))
    return math.log(best) if math.isfinite(best) else math.inf


def _matrix(outputs: ArrayLike) -> Vector:
    table = np.asarray(outputs, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise ValueError(f"outputs must have one row for each run, got {table.ndim} dimensions")
    # What is no number is an output too: it must neither hide nor stop an audit.
    return np.nan_to_num(np.clip(table, -1e100, 1e100), nan=2e100)


def _best(statistics: list[Statistic], held_out: list[Vector], error: float, goal: Goal) -> Test:
    """The test with the largest goal on the held-out half, judged with its own uncertainty.

    The first statistic is the one that should be best; the others have to beat it as one of many guesses.
    """
    best, found = Test(statistics[0], 0.0, True, False), -math.inf
    for statistic in statistics:
        guesses = 1 if statistic is statistics[0] else len(statistics)
        deviations = -ndtri(error / 2 / guesses)
        values = [np.sort(numbers) for numbers in statistic.judged(held_out)]
        totals = [len(numbers) for numbers in values]
        thresholds = _thresholds(*values)
        if not len(thresholds):
            continue
        below = [np.searchsorted(sample, thresholds) for sample in values]
        for above in (True, False):
            counts = [total - low for total, low in zip(totals, below, strict=True)] if above else below
            for swapped in (not above,) if statistic.rehearsed else (False, True):
                hit, miss = (1, 0) if swapped else (0, 1)
                low, _ = _wilson(counts[hit], totals[hit], deviations)
                _, high = _wilson(counts[miss], totals[miss], deviations)
                values_of = goal(high, low)
                k = int(np.argmax(values_of))
                if values_of[k] > found:
                    best, found = Test(statistic, float(thresholds[k]), above, swapped), float(values_of[k])
    return best


def _wilson(count: NDArray[np.intp], total: int, deviations: float) -> tuple[Vector, Vector]:
    """Approximate bounds on probabilities: good enough to choose a test, and quick."""
    rate, z = count / total, deviations**2 / total
    middle, half = rate + z / 2, np.sqrt(z * (rate * (1 - rate) + z / 4))
    return np.maximum(middle - half, 0.0) / (1 + z), (middle + half) / (1 + z)


def _thresholds(first: Vector, second: Vector) -> Vector:
    """Midpoints between neighbouring values; of many values some quantiles, closer together in the tails."""
    values = np.sort(np.concatenate([first, second]))
    last = len(values) - 1
    if last > _THRESHOLDS:
        tail = np.geomspace(1, last, _THRESHOLDS // 3)
        ranks = np.concatenate([tail, last - tail, np.linspace(0, last, _THRESHOLDS // 3)])
        values = values[np.unique(ranks.astype(int))]
    values = np.unique(values)
    return values[:-1] + np.diff(values) / 2

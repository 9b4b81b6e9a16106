"""Numbers that a test may look at: columns of the outputs, and combinations fitted on a held-out half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector


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

"""Numbers that a test may look at: columns of the outputs, and combinations fitted on a held-out half."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statistic:
    """A named number of each run."""

    name: str
    compute: Callable[[Array], Array]

    def __call__(self, outputs: Array) -> Array:
        return self.compute(outputs)


def candidates(first: Array, second: Array) -> list[Statistic]:
    """Statistics that may tell two samples of outputs apart.

    Every column, its distance from zero and from the pooled median, the largest and smallest entry, and the
    linear combination that separates the samples best (Fisher's discriminant), which also finds a direction
    without any noise.
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
    return found


def _column(j: int) -> Callable[[Array], Array]:
    return lambda outputs: outputs[:, j]


def _distance(j: int, centre: float) -> Callable[[Array], Array]:
    return lambda outputs: np.abs(outputs[:, j] - centre)


def _discriminant(first: Array, second: Array) -> Array:
    """Fisher's direction, with columns scaled by their deviation so that none drowns the others."""
    within = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    gap = first.mean(axis=0) - second.mean(axis=0)
    scale = np.sqrt(np.mean(within**2, axis=0) + gap**2)
    scale[scale == 0] = 1.0
    covariance = (within / scale).T @ (within / scale) / len(within)
    covariance += 1e-10 * np.eye(len(scale))
    return np.linalg.solve(covariance, gap / scale) / scale

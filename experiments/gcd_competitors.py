"""The two competitors of greedy coordinate descent: DP-CD by dpglm, DP-SGD by a compiled loop of the study.

DP-SGD takes one record a step on average, or ``batch`` (Poisson sampling at rate batch/n), clips gradients to
norm C, adds Gaussian noise and makes a proximal step of constant size. Its noise level is dpglm's for that
mechanism; its noise comes from an ordinary generator in single precision, so its runs are for studies only.
All settings of a seed share their draws.
"""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from gcd_kernels import sgd
from gcd_problems import NEIGHBOURS, Task, Vector
from numpy.typing import NDArray

from dpglm.accounting import PoissonGaussian, Repeated, calibrate
from dpglm.losses import Logistic
from dpglm.solvers import CoordinateDescent


def coordinate_descent(task: Task, steps: int, clip: float, step_size: float) -> CoordinateDescent:
    return CoordinateDescent(steps=steps, clip=clip, step_size=step_size, second_moments=task.second_moments)


@lru_cache
def sgd_noise(n: int, steps: int, epsilon: float, delta: float, batch: int = 1) -> float:
    """Noise over the clip that pays for so many steps at rate batch/n."""
    return calibrate(Repeated(PoissonGaussian(1.0, batch / n, NEIGHBOURS.value), steps), epsilon, delta)


class StochasticGradient:
    """DP-SGD on one task for one seed: the draws are made once, for the longest run."""

    def __init__(self, task: Task, seed: int, longest: int, batch: int = 1) -> None:
        n, p = task.shape
        rng = np.random.default_rng(seed)
        start = time.perf_counter()
        self._noise = rng.standard_normal((longest, p), dtype=np.float32)
        sizes = rng.binomial(n, batch / n, longest)
        self._size, self._factor = batch, 1.0
        self._batches = np.append(0, np.cumsum(sizes))
        self._batch = _distinct(rng, n, sizes)
        self._drawing = (time.perf_counter() - start) / longest
        self._task, self._rows = task, sp.csr_array(task.X)
        self._norms = np.sqrt(self._rows.multiply(self._rows).sum(axis=1))

    def scale_noise(self, factor: float) -> None:
        """Runs have so many times the noise that the exact price asks for, as under a looser price."""
        self._factor = factor

    def run(self, steps: int, clip: float, step_size: float) -> tuple[Vector, float]:
        """The last iterate, and the seconds it took with the drawing of its noise."""
        task, rows = self._task, self._rows
        budget = task.budget
        exact = sgd_noise(task.shape[0], steps, budget.epsilon, budget.delta, self._size)
        deviation = self._factor * clip * exact
        l1, l2, *_ = task.problem.penalty.coordinate_form()
        start = time.perf_counter()
        w = sgd(
            rows.indptr, rows.indices, rows.data, self._norms, task.y,
            isinstance(task.problem.loss, Logistic), self._batches[: steps + 1], self._batch, self._noise,
            clip, deviation, step_size, l1, l2,
        )  # fmt: skip
        return w, time.perf_counter() - start + steps * self._drawing


def _distinct(rng: np.random.Generator, n: int, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each size so many different numbers below n, one after the other."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    drawn = rng.integers(n, size=len(owner))
    while True:
        again = np.ones(len(owner), dtype=bool)
        again[np.unique(owner * n + drawn, return_index=True)[1]] = False
        if not again.any():
            return drawn
        drawn[again] = rng.integers(n, size=again.sum())

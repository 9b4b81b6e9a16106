import math

import numpy as np
import pytest

from dpglm.solvers.iterates import TailMean, tail_weights


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 8, 9, 500])
def test_the_mean_is_over_the_tail_of_of_the_iterates_rounded_up(steps):
    iterates = np.random.default_rng(steps).standard_normal((steps, 3))
    tail = TailMean(steps, iterates[0])
    for w in iterates:
        tail.add(w)
    count = math.ceil(steps / 4)
    assert np.allclose(tail.mean, iterates[-count:].mean(axis=0))
    assert tail_weights(steps).tolist() == [0.0] * (steps - count) + [1.0] * count

"""Each coordinate pays for its own clip, one by one and in blocks."""

import numpy as np
import pytest

from dpglm import Bounds, Neighbours
from dpglm.data import as_data
from dpglm.losses import Logistic
from dpglm.mechanisms import Gaussian
from dpglm.queries import CoordinateSums
from dpglm.queries.base import Exact
from dpglm.queries.coordinate import CoordinateRule

CLIP = np.array([1.0, 2.0, 4.0])


class Told(Exact):
    """Releases exact answers and writes down the sensitivities that it is told."""

    def __init__(self):
        self.single, self.blocks = [], []

    def __call__(self, answer, sensitivity, mechanism, follows=False):
        self.single.append(sensitivity)
        return answer

    def noise(self, sensitivity, mechanism):
        self.blocks.append(sensitivity)
        return np.zeros(len(sensitivity)), np.zeros(len(sensitivity))


@pytest.mark.parametrize("neighbours", Neighbours)
def test_noise_is_told_the_sensitivity_of_its_own_coordinate(neighbours):
    told, rng = Told(), np.random.default_rng(0)
    data = as_data(rng.standard_normal((20, 3)), np.ones(20), Bounds(row_norm=1.0))
    opened = CoordinateSums(Logistic(), CLIP).open(data, np.zeros(3), neighbours, told)
    order = np.array([2, 0, 1, 1, 2])
    for j in order:
        opened.release(j, Gaussian(1.0))
    free = np.full(3, np.inf)
    rule = CoordinateRule(np.full(3, 0.1), np.zeros(3), np.zeros(3), np.zeros(3), -free, free)
    opened.descend(order, Gaussian(1.0), rule)
    expected = neighbours.records_moved * CLIP[order]
    assert np.array_equal(told.single, expected)
    assert len(told.blocks) == 1 and np.array_equal(told.blocks[0], expected)

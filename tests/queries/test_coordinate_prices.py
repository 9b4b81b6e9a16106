"""Each coordinate pays for its own clip, one by one and in blocks."""

import numpy as np
import pytest

from dpglm import Bounds, Neighbours
from dpglm.data import as_data
from dpglm.losses import Logistic
from dpglm.mechanisms import Gaussian
from dpglm.queries import CoordinateSums
from dpglm.queries.base import Opening
from dpglm.queries.coordinate import CoordinateRule

from . import told

CLIP = np.array([1.0, 2.0, 4.0])


class ToldInBlocks(told.ToldInBlocks):
    expected = 1, 5


def opened(releases, neighbours):
    rng = np.random.default_rng(0)
    data = as_data(rng.standard_normal((20, 3)), np.ones(20), Bounds(row_norm=1.0))
    return CoordinateSums(Logistic(), CLIP).open(
        Opening(data, np.zeros(3), neighbours, releases, Gaussian(1.0))
    )


@pytest.mark.parametrize("neighbours", Neighbours)
def test_noise_is_told_the_sensitivity_of_its_own_coordinate(neighbours):
    order, free = np.array([2, 0, 1, 1, 2]), np.full(3, np.inf)
    expected = neighbours.records_moved * CLIP[order]
    single = told.Told()
    for j in order:
        opened(single, neighbours).release(j)
    assert np.array_equal(single.told, expected)
    rule = CoordinateRule(np.full(3, 0.1), np.zeros(3), np.zeros(3), np.zeros(3), -free, free)
    one_by_one, block = told.Told(), ToldInBlocks()
    opened(one_by_one, neighbours).descend(order, rule)
    assert np.array_equal(one_by_one.told, expected)
    opened(block, neighbours).descend(order, rule)  # told once, of all coordinates: draws have their numbers
    assert np.array_equal(block.told, [neighbours.records_moved * CLIP])

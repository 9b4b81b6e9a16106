"""Each coordinate pays for its own clip, one by one and in blocks."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from dpglm import Bounds, Neighbours
from dpglm.data import as_data
from dpglm.losses import Logistic
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.queries import CoordinateSums
from dpglm.queries.base import Draws, Exact, Opening
from dpglm.queries.coordinate import CoordinateRule

CLIP = np.array([1.0, 2.0, 4.0])


class Told(Exact):
    """Releases exact answers and writes down the sensitivities that it is told."""

    def __init__(self):
        self.told = []

    def give(self, answer, sensitivity, mechanism):
        self.told.append(sensitivity)
        return answer


@dataclass(frozen=True)
class ToldDraws(Draws):
    """Writes down the sensitivities that it is asked to pad."""

    told: list = field(default_factory=list)

    def padded(self, sensitivity):
        self.told.append(sensitivity)
        return super().padded(sensitivity)


class ToldInBlocks(Told):
    """Hands out a stream."""

    in_blocks = True

    def spend(self, mechanism, entries, count=1):
        assert (entries, count) == (1, 5)
        return ToldDraws(Randomness(0), 1.0, True, self.told)


def opened(told, neighbours):
    rng = np.random.default_rng(0)
    data = as_data(rng.standard_normal((20, 3)), np.ones(20), Bounds(row_norm=1.0))
    return CoordinateSums(Logistic(), CLIP).open(Opening(data, np.zeros(3), neighbours, told, Gaussian(1.0)))


@pytest.mark.parametrize("neighbours", Neighbours)
def test_noise_is_told_the_sensitivity_of_its_own_coordinate(neighbours):
    order, free = np.array([2, 0, 1, 1, 2]), np.full(3, np.inf)
    expected = neighbours.records_moved * CLIP[order]
    single = Told()
    for j in order:
        opened(single, neighbours).release(j)
    assert np.array_equal(single.told, expected)
    rule = CoordinateRule(np.full(3, 0.1), np.zeros(3), np.zeros(3), np.zeros(3), -free, free)
    for kind in (Told, ToldInBlocks):
        told = kind()
        opened(told, neighbours).descend(order, rule)
        assert len(told.told) == (1 if told.in_blocks else 5)
        assert np.array_equal(np.ravel(told.told), expected)

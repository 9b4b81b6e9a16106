"""Every way out of the curator has the query's own sensitivity, enlarged by what rounding can add."""

from dataclasses import dataclass

import numpy as np
import pytest

from dpglm import Bounds, Neighbours, accounting
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.mechanisms import Exponential, Gaussian, Randomness
from dpglm.mechanisms.randomness import GAUSSIAN_DISTANCE, GUMBEL_DISTANCE
from dpglm.sampling import Poisson


@dataclass(frozen=True)
class Told(Gaussian):
    """Releases the sensitivity that it is told."""

    def release(self, answer, sensitivity, randomness):
        return sensitivity


def holder(neighbours=Neighbours.REPLACE_ONE):
    curator = Curator(as_data(np.ones((40, 2)), np.ones(40), Bounds(row_norm=1.0)), neighbours, Randomness(0))
    curator._rounding = 1.25
    return curator


@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_release_of_a_batch_is_told_its_sensitivity_and_keeps_that_batch(neighbours):
    curator, asked, kept = holder(neighbours), [], []
    released = curator._releaser.sampled(
        lambda batch: (asked.append(batch) or 0.0, "changes"),
        lambda batch, changes: kept.append((batch, changes)),
        2.0,
        Told(3.0),
        Poisson(0.5),
    )
    assert released == 1.25 * 2.0
    assert len(asked) == 1 and 5 < len(asked[0]) < 35
    assert kept[0][0] is asked[0] and kept[0][1] == "changes"
    event = accounting.PoissonGaussian(3.0 * neighbours.records_moved, 0.5, neighbours.value)
    assert curator.spent == {event: 1, accounting.Imprecision(GAUSSIAN_DISTANCE): 1}


def test_compiled_choices_have_the_law_of_the_enlarged_sensitivity_and_are_all_logged():
    curator, mechanism = holder(), Exponential(5.0)
    given = curator._releaser.choices(lambda *law: law, 7, 12, 2.0, mechanism)
    assert given[1:] == mechanism.law(1.25 * 2.0)
    assert given[1:] != mechanism.law(2.0)
    assert curator.spent == {
        accounting.Exponential(5.0): 7,
        accounting.Imprecision(GUMBEL_DISTANCE): 7 * 12,
    }

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dpglm import Bounds, Neighbours, accounting, queries
from dpglm.curator import Curator, rounding_factor
from dpglm.data import as_data
from dpglm.losses import Logistic
from dpglm.mechanisms import Exponential, Gaussian, Laplace, LaplaceNoisyMax, Randomness, Round
from dpglm.mechanisms.grid import public_grid
from dpglm.mechanisms.randomness import GAUSSIAN_DISTANCE, GUMBEL_DISTANCE
from dpglm.mechanisms.sampling import Everyone, Poisson
from dpglm.penalties import L2

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((200, 3)), rng.choice([-1.0, 1.0], 200)
GRADIENT = queries.ClippedGradient(Logistic(), 0.5)


def curator(neighbours=Neighbours.REPLACE_ONE, seed=0):
    return Curator(as_data(X, Y, Bounds(row_norm=1.0)), neighbours, Randomness(seed))


def test_every_release_is_logged_with_its_event():
    holder = curator()
    for _ in range(3):
        holder.release(GRADIENT, Gaussian(2.0), np.zeros(3))
    opened = holder.open(queries.CoordinateSums(Logistic(), np.ones(3)), np.zeros(3), Gaussian(5.0))
    opened.release(1)
    opened.move(1, 0.3)
    numbers = {accounting.Imprecision(GAUSSIAN_DISTANCE): 3 * 3 + 1}
    assert holder.spent == {accounting.Gaussian(2.0): 3, accounting.Gaussian(5.0): 1} | numbers


SCORES = queries.CoordinateScores(
    Logistic(), np.ones(3), np.ones(3), "gs-r", (0.0, 0.0, -math.inf, math.inf), np.ones(3)
)


def test_a_selection_and_the_release_after_it_are_logged_as_one_round():
    holder = curator()
    opened = holder.open(SCORES, np.zeros(3), Round(Exponential(2.0), Gaussian(5.0)))
    for _ in range(4):
        opened.step()
    selection, release = accounting.Exponential(2.0), accounting.Gaussian(5.0)
    assert holder.spent == {
        accounting.Composed((selection, release)): 4,
        accounting.Imprecision(GUMBEL_DISTANCE): 4 * 3,
        accounting.Imprecision(GAUSSIAN_DISTANCE): 4,
    }
    one, apart = (
        accounting.compose(event).delta(1.0)
        for event in (
            accounting.Repeated(accounting.Composed((selection, release)), 4),
            accounting.Composed((accounting.Repeated(selection, 4), accounting.Repeated(release, 4))),
        )
    )
    assert one < apart


@pytest.mark.parametrize(
    ("query", "mechanism"),
    [
        (SCORES, Exponential(1.0)),
        (SCORES, Gaussian(1.0)),
        (queries.CoordinateSums(Logistic(), np.ones(3)), Exponential(1.0)),
        (queries.CoordinateSums(Logistic(), np.ones(3)), Round(Exponential(1.0), Gaussian(1.0))),
        (queries.VertexScores(Logistic(), 1.0, 3, 1.0), Gaussian(1.0)),
        (queries.VertexScores(Logistic(), 1.0, 3, 1.0), LaplaceNoisyMax(1.0)),
        (queries.DualStep(Logistic(), 1.0, 1.0, 1.0), Laplace(1.0)),
        (queries.DualVertices(queries.Minimiser(Logistic(), 0.5, L2(0.1), 200, 3, 1.0), 1.0), Gaussian(1.0)),
        (queries.Minimiser(Logistic(), 0.5, L2(0.1), 200, 3, 1.0), Gaussian(1.0)),
    ],
    ids=lambda value: value.name,
)
def test_a_query_opens_only_for_a_mechanism_that_its_sensitivity_is_for(query, mechanism):
    holder = curator()
    with pytest.raises(ValueError, match="released by|priced for another"):
        holder.open(query, np.zeros(3), mechanism)
    assert not holder.spent


def test_entries_with_sensitivities_of_their_own_cannot_leave_as_one_release():
    for sampling in (None, Everyone(), Poisson(0.5)):
        holder = curator()
        with pytest.raises(ValueError, match="one by one"):
            holder.release(
                queries.CoordinateSums(Logistic(), np.ones(3)), Gaussian(1.0), np.zeros(3), sampling=sampling
            )
        assert not holder.spent


@pytest.mark.parametrize("neighbours", Neighbours)
def test_noise_is_the_multiplier_times_the_sensitivity(neighbours):
    """Sixty thousand numbers: of twenty releases, in each of which every number has noise of its own."""
    p = 3_000
    records = as_data(rng.standard_normal((20, p)), Y[:20], Bounds(row_norm=1.0))
    holder, silent = (Curator(records, neighbours, Randomness(0)) for _ in range(2))
    exact = silent.release(GRADIENT, Gaussian(0.0), np.zeros(p))
    noise = np.array([holder.release(GRADIENT, Gaussian(3.0), np.zeros(p)) - exact for _ in range(20)])
    expected = 3.0 * 0.5 * neighbours.records_moved
    assert abs(noise.std() / expected - 1) < 5 / np.sqrt(2 * noise.size)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_poisson_release_is_priced_as_sampled_and_reads_only_the_batch(neighbours):
    holder = curator(neighbours)
    totals = [
        holder.release(GRADIENT, Gaussian(0.0), np.zeros(3), sampling=Poisson(0.25)) for _ in range(400)
    ]
    event = accounting.PoissonGaussian(0.0, 0.25, neighbours.priced_as)
    assert holder.spent == {event: 400}
    exact = curator().release(GRADIENT, Gaussian(0.0), np.zeros(3))
    spread = 0.5 * np.sqrt(200 * 0.25 * 0.75 / 400)
    assert np.abs(np.mean(totals, axis=0) - 0.25 * exact).max() < 6 * spread


def test_rounding_adds_next_to_nothing_to_the_sensitivity_of_any_number_of_records():
    for n in (1, 1_000, 10**6, 10**9):
        assert 1 < rounding_factor(n, 50) <= 1 + 1e-8
    assert rounding_factor(10**6, 10**6) <= 1 + 1e-8


@dataclass(frozen=True)
class Told(Gaussian):
    """Releases the sensitivity that it is told."""

    def release(self, answer, sensitivity, randomness):
        return sensitivity

    drawn: ClassVar[list] = []

    def draw_each(self, sensitivity, index, randomness):
        self.drawn.append(sensitivity[index])
        return np.zeros(index.shape), np.zeros(sensitivity.shape)


def test_every_sensitivity_is_enlarged_by_what_rounding_can_add():
    told, holder = Told(2.0), curator()
    holder._releases._rounding = 1.25
    assert holder.release(GRADIENT, told, np.zeros(3)) == 1.25 * GRADIENT.sensitivity(Neighbours.REPLACE_ONE)
    opened = holder.open(queries.CoordinateSums(Logistic(), np.array([0.5, 1.0, 2.0])), np.zeros(3), told)
    assert opened.release(1) == 1.25 * 2.0
    free, none = np.full(3, math.inf), np.zeros(3)
    opened.descend(np.array([2, 0]), queries.CoordinateRule(np.ones(3), none, none, none, -free, free))
    assert np.array_equal(told.drawn.pop(), [1.25 * 4.0, 1.25 * 1.0])


def test_sampling_everyone_costs_what_the_mechanism_costs():
    for neighbours in Neighbours:
        assert Everyone().price(Gaussian(2.0), neighbours) == accounting.Gaussian(2.0)


def test_poisson_at_rate_one_costs_the_same_as_everyone():
    for neighbours in Neighbours:
        sampled = accounting.compose(Poisson(1.0).price(Gaussian(2.0), neighbours)).delta(1.0)
        whole = accounting.compose(accounting.Gaussian(2.0)).delta(1.0)
        assert whole <= sampled <= whole * 1.01


def test_poisson_batches_are_priced_for_gaussian_noise_only():
    with pytest.raises(ValueError, match="Gaussian mechanism only"):
        Poisson(0.5).price(Laplace(1.0), Neighbours.ZERO_OUT)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan")])
def test_an_impossible_rate_is_refused(rate):
    with pytest.raises(ValueError, match="rate"):
        Poisson(rate)


def test_released_numbers_lie_on_one_grid_whatever_the_records():
    for table, targets in ((X, Y), (np.zeros_like(X), Y), (1e9 * X, -Y)):
        holder = Curator(as_data(table, targets, Bounds(row_norm=1.0)), Neighbours.REPLACE_ONE, Randomness(1))
        for mechanism, entries in ((Gaussian(3.0), 2 * math.sqrt(3)), (Laplace(3.0), 3.0)):
            released = holder.release(GRADIENT, mechanism, np.zeros(3))
            grid, _ = public_grid(1.0 * rounding_factor(200, 3), 3.0, entries)
            assert math.frexp(grid)[0] == 0.5 and 2.0**-23 < grid < 2.0**-18
            assert np.array_equal(released / grid, np.rint(released / grid))


@pytest.mark.parametrize("rate", [0.3, 1e-9, 1e-30, 0.7, 1.0, 32 / 32_561])
def test_a_rate_is_rounded_up_to_what_a_coin_can_have(rate):
    sampling = Poisson(rate)
    assert (sampling.rate * 2**53).is_integer()
    assert rate <= sampling.rate <= rate + 2**-53
    assert Poisson(sampling.rate) == sampling

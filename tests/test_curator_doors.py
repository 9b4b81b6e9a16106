"""Every way out of the curator logs exactly what it lets out, and pads the sensitivity against rounding."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpglm import Bounds, Neighbours, accounting, queries
from dpglm.audit.transcript import Recording, Replaying
from dpglm.curator import Curator, NoisyReleases
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Logistic
from dpglm.mechanisms import Exponential, Gaussian, Laplace, LaplaceNoisyMax, Randomness, Round
from dpglm.mechanisms.randomness import GAUSSIAN_DISTANCE, GUMBEL_DISTANCE
from dpglm.mechanisms.sampling import Everyone, Poisson
from dpglm.penalties import L2
from dpglm.privacy import PUBLIC_SIZE


@dataclass(frozen=True)
class Told(Gaussian):
    """Releases the sensitivity that it is told."""

    def release(self, answer, sensitivity, randomness):
        return sensitivity


RECORDS = as_data(np.ones((40, 2)), np.ones(40), Bounds(row_norm=1.0))


def releases(neighbours=Neighbours.REPLACE_ONE):
    made = NoisyReleases(RECORDS, neighbours, Randomness(0))
    made._rounding = 1.25
    return made


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_a_release_of_a_batch_is_told_its_sensitivity_and_keeps_that_batch(neighbours):
    given, asked, kept = releases(neighbours), [], []
    released = given.sampled(
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
    assert given.log.spent == {event: 1, accounting.Imprecision(GAUSSIAN_DISTANCE): 1}


@pytest.mark.parametrize("size", [1, 7])
def test_an_answer_is_given_with_the_padded_sensitivity_as_one_release_of_all_its_entries(size):
    given = releases()
    assert given.give(np.zeros(size), 2.0, Told(3.0)) == 1.25 * 2.0
    assert given.log.spent == {
        accounting.Gaussian(3.0): 1,
        accounting.Imprecision(GAUSSIAN_DISTANCE): size,
    }


def test_a_round_is_given_with_both_padded_sensitivities_as_one_release():
    given = releases()
    each = np.array([1.0, 4.0, 2.0])
    j, told = given.give(
        (np.array([0.0, 9e9, 0.0]), np.zeros(3)), (2.0, each), Round(Exponential(5.0), Told(3.0))
    )
    assert j == 1 and told == 1.25 * 4.0
    assert given.log.spent == {
        accounting.Composed((accounting.Exponential(5.0), accounting.Gaussian(3.0))): 1,
        accounting.Imprecision(GUMBEL_DISTANCE): 3,
        accounting.Imprecision(GAUSSIAN_DISTANCE): 1,
    }


def test_a_block_is_logged_in_full_before_trusted_code_has_the_stream():
    given, mechanism = releases(), Exponential(5.0)
    draws = given.spend(mechanism, 12, 7)
    assert given.log.spent == {
        accounting.Exponential(5.0): 7,
        accounting.Imprecision(GUMBEL_DISTANCE): 7 * 12,
    }
    assert mechanism.law(draws.padded(2.0)) == mechanism.law(1.25 * 2.0) != mechanism.law(2.0)
    assert np.array_equal(draws.padded(np.array([2.0, 4.0])), [2.5, 5.0])
    scores, slopes = draws.padded((2.0, np.array([4.0])))
    assert scores == 2.5 and np.array_equal(slopes, [5.0])


@pytest.mark.parametrize("sensitivity", [math.inf, math.nan, np.array([1.0, math.inf])], ids=repr)
def test_no_noise_is_scaled_to_a_sensitivity_that_is_not_finite(sensitivity):
    with pytest.raises(UnsupportedProblem, match="finite"):
        releases().spend(Gaussian(1.0), 1).padded(sensitivity)
    releases().spend(Gaussian(0.0), 1).padded(sensitivity)


def rule(size):
    free, none = np.full(size, math.inf), np.zeros(size)
    return queries.CoordinateRule(np.full(size, 0.01), none, none, none, -free, free)


FORM = 0.0, 0.0, -math.inf, math.inf
MINIMISER = queries.Minimiser(Logistic(), 0.5, L2(0.1), 40, 2, 1.0)
SCORES = queries.CoordinateScores(Logistic(), np.ones(2), np.ones(2), "gs-r", FORM, np.ones(2))
SUMS = queries.CoordinateSums(Logistic(), np.ones(2))
VERTICES = [
    queries.VertexScores(Logistic(), 0.1, 2, 1.0, structure) for structure in ("lazy", "binned", "gumbel")
]
STEPS = np.full(3, 0.3)

WAYS = {
    "coordinate": (SUMS, Gaussian(2.0), lambda opened: opened.release(1), 1, 1),
    "coordinates": (SUMS, Laplace(2.0), lambda opened: opened.descend(np.array([1, 0, 1]), rule(2)), 3, 1),
    "round": (SCORES, Round(Exponential(2.0), Gaussian(3.0)), lambda opened: opened.step(), 1, 2),
    "Laplace round": (SCORES, Round(LaplaceNoisyMax(2.0), Laplace(3.0)), lambda opened: opened.step(), 1, 2),
    "dual step": (queries.DualStep(Logistic(), 1.0, 1.0, 1.0), Gaussian(2.0),
                  lambda opened: opened.step(np.zeros(2), Everyone()), 1, 2),
    "dual vertex": (queries.DualVertices(MINIMISER, 1.0), Exponential(2.0),
                    lambda opened: opened.select(np.zeros(2)), 1, 4),
} | {
    f"{query.structure} vertices": (query, Exponential(2.0), lambda opened: opened.run(STEPS, 1.0), 3, 4)
    for query in VERTICES
}  # fmt: skip


def one_by_one(*arguments):
    made = NoisyReleases(*arguments)
    made.in_blocks = False
    return made


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize(
    "kind", [NoisyReleases, one_by_one, Recording], ids=["blocks", "one by one", "audit"]
)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_out_of_an_opened_query_is_logged_with_all_that_it_draws(way, kind, neighbours):
    query, mechanism, ask, count, entries = WAYS[way]
    made = kind(RECORDS, neighbours, Randomness(0))
    curator = Curator(RECORDS, neighbours, Randomness(1), made)
    opened = curator.open(query, np.zeros(2), mechanism)
    assert not curator.spent, "nothing is released by opening"
    ask(opened)
    expected = {mechanism.event: count}
    for event, times in mechanism.imprecision(entries).items():
        expected[event] = count * times
    assert curator.spent == expected
    if isinstance(made, Recording):
        assert len(made.answers) == len(made.released) == count
        replaying = Replaying(RECORDS, neighbours, made.released)
        ask(Curator(RECORDS, neighbours, Randomness(2), replaying).open(query, np.zeros(2), mechanism))
        assert replaying.log.spent == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_query_cannot_draw_what_is_not_logged(way):
    """If the log refuses, the stream has not moved and nothing was let out."""
    query, mechanism, ask, _, _ = WAYS[way]
    randomness = Randomness(0)
    made = NoisyReleases(RECORDS, Neighbours.REPLACE_ONE, randomness)

    def refuse(*_, **__):
        raise PermissionError

    made.log.add = refuse
    opened = Curator(RECORDS, Neighbours.REPLACE_ONE, randomness, made).open(query, np.zeros(2), mechanism)
    with pytest.raises(PermissionError):
        ask(opened)
    assert np.array_equal(randomness.integers(1 << 62, 5), Randomness(0).integers(1 << 62, 5))

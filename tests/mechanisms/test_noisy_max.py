"""Report noisy max on a grid has its stated law, and tells no neighbours apart by more than 2 / noise."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpglm import accounting
from dpglm.errors import UnsupportedProblem
from dpglm.mechanisms import LaplaceNoisyMax, Randomness, selection
from dpglm.mechanisms.grid import public_grid
from dpglm.plan import Release


def lattice(scores, scale):
    """The law by adding up every whole number, for small scales."""
    y = np.arange(min(scores) - 50 * scale, max(scores) + 50 * scale) + 0.5
    low, high = ((y + step - np.array(scores)[:, None]) / scale for step in (0, 1))
    low, high = (0.5 + np.sign(x) * (0.5 - 0.5 * np.exp(-np.abs(x))) for x in (low, high))
    return np.array(
        [
            ((high[j] - low[j]) * np.prod(low[:j], axis=0) * np.prod(high[j + 1 :], axis=0)).sum()
            for j in range(len(scores))
        ]
    )


@pytest.mark.parametrize(
    "scores", [[0, 0, 0], [0, -1], [-1, 0], [0, -300, -300, -5_000], [-9_000, 0, -20_000], [0, -1, -2, -3]]
)
def test_probabilities_are_those_of_whole_numbers_with_ties(scores):
    scale = 3_000
    found = np.exp(selection._log_law(tuple(map(float, scores)), scale))
    assert found == pytest.approx(lattice(scores, scale), abs=1e-8)  # the error is of order 1 / scale²
    rough = np.exp(selection._log_law(tuple(map(float, scores)), 20))
    assert rough == pytest.approx(lattice(scores, 20), abs=2e-3)


@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0, 7.0, 20.0, 300.0, 5_000.0])
def test_the_probability_of_the_loser_of_two_is_known(gap):
    """(2 + gap) exp(-gap) / 4, but for what rounding to the grid changes."""
    mechanism = LaplaceNoisyMax(1.0)
    scores = np.array([0.0, -gap])
    expected = math.log((2 + gap) / 4) - gap
    assert mechanism.log_likelihood(1, scores, 1.0) == pytest.approx(expected, abs=1e-5, rel=3e-6)
    assert mechanism.probabilities(scores, 1.0).sum() == pytest.approx(1, abs=1e-12)


def test_scores_of_any_gap_have_probabilities():
    mechanism = LaplaceNoisyMax(2.0)
    for scores in ([0.0, -1e6, -1e300], [1e300, -1e300], [1e16, 0.0], [3.0]):
        found = mechanism.probabilities(np.array(scores), 1.0)
        assert found == pytest.approx(np.eye(len(scores))[0], abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "noise", "sensitivity"),
    [
        ([0.0, -1.0, -3.0, 0.5], 1.0, 1.0),
        ([5.0, 5.0, 5.0], 3.0, 0.1),
        ([1e9, 1e9 - 3, 1e9 + 1], 0.7, 4.0),
    ],
)
def test_releases_have_the_stated_probabilities(scores, noise, sensitivity):
    mechanism, randomness = LaplaceNoisyMax(noise), Randomness(1)
    chosen = [mechanism.release(scores, sensitivity, randomness) for _ in range(30_000)]
    expected = mechanism.probabilities(scores, sensitivity)
    counts = np.bincount(chosen, minlength=len(scores))
    assert stats.chisquare(counts, 30_000 * expected / expected.sum()).pvalue > 1e-6


def test_ties_have_their_probability_where_they_are_frequent(monkeypatch):
    """On a grid as coarse as the noise half of all pairs tie, and the first of them is returned."""
    monkeypatch.setattr(selection, "public_grid", lambda *_: (1.0, 1))
    mechanism, randomness = LaplaceNoisyMax(1.0), Randomness(2)
    for scores in ([0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, -1.0]):
        counts = np.bincount([mechanism.release(scores, 1.0, randomness) for _ in range(20_000)], minlength=3)
        assert stats.chisquare(counts, 20_000 * lattice(scores, 1)).pvalue > 1e-6


def losses(mechanism, here, there, sensitivity=1.0):
    pairs = ((mechanism.log_likelihood(j, s, sensitivity) for s in (here, there)) for j in range(len(here)))
    return [abs(a - b) for a, b in pairs]


@pytest.mark.parametrize("noise", [0.5, 2.0, 20.0])
def test_no_neighbours_differ_by_more_than_the_claim(noise):
    mechanism, rng = LaplaceNoisyMax(noise), np.random.default_rng(0)
    claim = mechanism.event.epsilon
    assert claim == 2 / noise
    most = 0.0
    for gaps in itertools.product([0.0, 1.0, 2.5, 4 * noise], repeat=2):
        here = np.array([0.0, *gaps])
        for moves in itertools.product([-1.0, 0.0, 1.0], repeat=3):
            most = max(most, *losses(mechanism, here, here + moves))
    for _ in range(60):
        here = rng.standard_normal(4) * noise * 10 ** rng.uniform(-1, 1)
        most = max(most, *losses(mechanism, here, here + rng.uniform(-1, 1, 4)))
    assert 0.7 * claim < most <= claim


@pytest.mark.parametrize("scale", [1, 2, 5])
def test_ties_on_a_coarse_grid_do_not_break_the_claim(scale):
    """Scores that move by m steps, noise of scale s in steps: the loss is at most 2 m / s, ties or not."""
    for here in itertools.product([0, 1, 4], repeat=3):
        for moves in itertools.product([-2, 0, 2], repeat=3):
            there = np.add(here, moves).tolist()
            ratios = np.log(lattice(list(here), scale) / lattice(there, scale))
            assert np.abs(ratios).max() <= 2 * 2 / scale + 1e-9


@pytest.mark.parametrize("noise", [0.2, 1.0, 10.0, 1000.0])
def test_a_candidate_far_behind_shows_nearly_all_of_the_claim(noise):
    mechanism = LaplaceNoisyMax(noise)
    here, there = mechanism.worst_cases()["candidate far behind"]
    assert np.abs(here - there).max() == pytest.approx(1.0)
    assert 0.95 <= max(losses(mechanism, here, there)) / mechanism.event.epsilon <= 1.0


def test_the_scale_covers_the_sensitivity_and_one_step_of_rounding():
    for noise, sensitivity in itertools.product([0.1, 1.0, 31.7, 1e6], [1e-9, 0.3, 7.0]):
        grid, _ = public_grid(sensitivity, noise, 1.0)
        behind, scale = LaplaceNoisyMax(noise)._in_steps(np.array([0.3, 0.7 * sensitivity]), sensitivity)
        assert np.array_equal(behind, np.rint(behind)) and behind.max() == 0
        moved = math.floor(Fraction(sensitivity) / Fraction(grid) + 1)
        assert scale >= Fraction(noise) * moved


def test_no_noise_is_the_exact_argmax_at_an_infinite_price():
    assert LaplaceNoisyMax(0.0).event == accounting.Pure(math.inf)
    assert LaplaceNoisyMax(0.0).release([1.0, 3.0, 3.0], 1.0, Randomness(0)) == 1
    assert LaplaceNoisyMax(5.0).release([1.0, 3.0, 3.0], 0.0, Randomness(0)) == 1


def test_more_noise_than_a_grid_can_hold_is_refused():
    with pytest.raises(UnsupportedProblem, match="noise"):
        LaplaceNoisyMax(1e13).release(np.zeros(2), 1.0, Randomness(0))


def test_a_stored_release_is_read_back():
    release = Release("scores", LaplaceNoisyMax(3.0), 5, "1", entries=7)
    assert Release.from_dict(release.to_dict()) == release
    assert not release.mechanism.imprecision(7), "Laplace noise is drawn exactly"

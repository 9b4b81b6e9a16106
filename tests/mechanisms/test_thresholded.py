"""Counts above a threshold: what is released, how often, and that levels of one record stay secret."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpglm.accounting import Composed, Gaussian, Imprecision, Repeated, calibrate_beside, compose
from dpglm.mechanisms import Levels, Randomness, Thresholded
from dpglm.plan import Release


def released(mechanism, counts, runs):
    randomness = Randomness(0)
    return [mechanism.release(Levels((counts,), 10), math.sqrt(2), randomness).counts[0] for _ in range(runs)]


def test_a_level_of_one_record_is_released_as_seldom_as_stated():
    mechanism = Thresholded(5.0, cutoff=1.5)
    share = np.mean(["x" in found for found in released(mechanism, {"x": 1.0}, 8_000)])
    assert mechanism.revealing == pytest.approx(norm.sf(1.5))
    assert share <= mechanism.revealing + 5.5 * math.sqrt(mechanism.revealing / 8_000)
    assert share >= 0.9 * mechanism.revealing  # the threshold is not higher than needed


def test_counts_far_above_the_threshold_have_gaussian_noise():
    found = np.array([table["x"] for table in released(Thresholded(5.0), {"x": 1000.0}, 4_000)])
    deviation = 5.0 * math.sqrt(2)
    assert abs(found.mean() - 1000) < 5.5 * deviation / math.sqrt(4_000)
    assert found.std() == pytest.approx(deviation, rel=0.07)


def test_a_level_that_does_not_occur_is_never_released_and_no_noise_keeps_all():
    assert all(set(found) <= {"x", 2.0} for found in released(Thresholded(0.1), {"x": 50.0, 2.0: 1.0}, 50))
    assert released(Thresholded(0.0), {"x": 1.0}, 1) == [{"x": 1.0}]


def test_the_likelihood_adds_up_to_one():
    mechanism, answer, sensitivity = Thresholded(2.0, cutoff=1.0), Levels(({"x": 3.0},), 10), 1.0
    _, _, threshold = mechanism.law(sensitivity)
    grid = np.linspace(threshold, threshold + 40, 40_001)
    seen = [mechanism.log_likelihood(Levels(({"x": v},), 10), answer, sensitivity) for v in grid]
    hidden = math.exp(mechanism.log_likelihood(Levels(({},), 10), answer, sensitivity))
    assert hidden + np.trapezoid(np.exp(seen), grid) == pytest.approx(1.0, abs=1e-6)
    unseen = Levels(({"y": 9.0},), 10)
    assert mechanism.log_likelihood(unseen, answer, sensitivity) == -math.inf


def test_the_price_is_that_of_the_gaussian_and_of_unseen_levels():
    mechanism = Thresholded(3.0, cutoff=4.0, columns=2)
    assert mechanism.event == Gaussian(3.0)
    assert mechanism.entries(Levels(({}, {}), 10)) == 20  # never the number of levels, which is secret
    extra = mechanism.imprecision(20)
    assert extra[Imprecision(mechanism.revealing)] == 1 and mechanism.revealing >= 2 * norm.sf(4.0)
    release = Release("levels of columns", mechanism, 1, "2", entries=20)
    assert Release.from_dict(release.to_dict()) == release


def test_noise_beside_a_fixed_event_is_the_least_within_the_budget():
    fixed, event = Repeated(Gaussian(20.0), 4), Repeated(Gaussian(1.0), 9)
    factor = calibrate_beside(fixed, event, 1.0, 1e-6)
    deltas = [compose(Composed((fixed, event.scaled(f)))).delta(1.0) for f in (factor, factor / 1.002)]
    assert deltas[0] <= 1e-6 < deltas[1]
    with pytest.raises(ValueError, match="the budget is spent"):
        calibrate_beside(Gaussian(1.0), event, 1.0, 1e-6)

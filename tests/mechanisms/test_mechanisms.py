"""Mechanisms: laws, units and independence of noise, which noise can be drawn, and thresholded counts."""

import math
import secrets

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

from dpglm import Bounds, Neighbours, accounting
from dpglm.accounting import Composed, Imprecision, Repeated, calibrate_beside, compose
from dpglm.arrays import Total
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Logistic
from dpglm.mechanisms import (
    MECHANISMS,
    Exponential,
    Gaussian,
    Laplace,
    LaplaceNoisyMax,
    Levels,
    LinearTerm,
    Randomness,
    Round,
    Thresholded,
)
from dpglm.plan import Release
from dpglm.queries import ClippedGradient, SecondMoments
from dpglm.testing import check_mechanism

DRAWS = 100_000


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_is_in_units_of_the_sensitivity(mechanism):
    check_mechanism(mechanism)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_negative_noise_is_refused(mechanism):
    with pytest.raises(ValueError, match="noise"):
        mechanism(-1.0)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda r: r.gaussian(2**30, DRAWS), stats.norm(scale=2**30)),
        (lambda r: r.laplace(2**30, DRAWS), stats.laplace(scale=2**30)),
        (lambda r: r.gumbel(DRAWS), stats.gumbel_r()),
    ],
)
def test_noise_follows_its_law(draw, law):
    assert stats.kstest(draw(Randomness(1)), law.cdf).pvalue > 1e-6


def test_the_exponential_mechanism_is_a_softmax():
    scores, scale = np.array([0.0, 1.0, 3.0]), 2.0
    expected = np.exp(scores / scale) / np.exp(scores / scale).sum()
    randomness = Randomness(2)
    chosen = [Exponential(scale).release(scores, 1.0, randomness) for _ in range(20_000)]
    assert stats.chisquare(np.bincount(chosen), 20_000 * expected).pvalue > 1e-6


def test_noise_without_a_seed_never_repeats():
    assert Randomness().secure
    assert not np.array_equal(Randomness().gaussian(100, 4), Randomness().gaussian(100, 4))


def test_a_seed_repeats_the_noise_and_is_not_secure():
    assert not Randomness(5).secure
    assert np.array_equal(Randomness(5).gaussian(100, 4), Randomness(5).gaussian(100, 4))
    assert "NOT private" in Randomness(5).description


def test_a_seed_outside_the_key_space_is_refused():
    with pytest.raises(ValueError, match="random_state"):
        Randomness(-1)


NOISES = [0.5, 1e3, *(10.0**k * f for k in range(8, 15) for f in (1, 2, 5)), 1e150]
SENSITIVITIES = [1e-90, 1e-3, 1.0, 7.3, 1e90]
TOTAL = Total(np.arange(5), 2.0**-30)
UNITS = Total(np.arange(5), 2.0**-30, unit=np.array([1.0, 1.9, 0.6, 1.0, 1.0]))
SCORES = np.arange(5.0)
LEVELS = Levels(({"a": 3.0}, {"b": 1.0}), 5)


def of_levels(mechanism, size):
    return mechanism.release(LEVELS, 2.0 if size == 1.0 else 1.0, Randomness(0))


KINDS = {
    "gaussian": (Gaussian, 5, lambda m, s: m.release(s * SCORES, s, Randomness(0))),
    "laplace": (Laplace, 5, lambda m, s: m.release(s * SCORES, s, Randomness(0))),
    "gaussian, exact sum": (Gaussian, 5, lambda m, s: m.release(TOTAL, max(s, 1e-3), Randomness(0))),
    "gaussian, in units": (Gaussian, 5, lambda m, s: m.release(UNITS, max(s, 1e-3), Randomness(0))),
    "exponential": (Exponential, 5, lambda m, s: m.release(s * SCORES, s, Randomness(0))),
    "noisy max": (LaplaceNoisyMax, 5, lambda m, s: m.release(s * SCORES, s, Randomness(0))),
    "levels": (lambda noise: Thresholded(noise, 7.0, 2), 10, of_levels),
    "round": (
        lambda noise: Round(Exponential(1.0), Gaussian(noise)), 5,
        lambda m, s: m.release((s * SCORES, s * SCORES), (s, np.full(5, s)), Randomness(0)),
    ),
    "round, selection": (
        lambda noise: Round(Exponential(noise), Gaussian(1.0)), 5,
        lambda m, s: m.release((s * SCORES, s * SCORES), (s, np.full(5, s)), Randomness(0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_noise_that_is_called_drawable_is_drawn_whatever_the_sensitivity(kind):
    made, entries, release = KINDS[kind]
    refused = []
    for noise in NOISES:
        mechanism = made(noise)
        try:
            mechanism.require_drawable(entries)
        except UnsupportedProblem:
            refused.append(noise)
            continue
        for size in SENSITIVITIES:
            release(mechanism, size)
    assert refused and refused == NOISES[-len(refused) :]
    # little is refused that could be drawn: less than a factor of a hundred in noise
    with pytest.raises(UnsupportedProblem):
        for size in SENSITIVITIES:
            release(made(100 * refused[0]), size)


SIZE = 4000
ADDITIVE = {"Gaussian": (Gaussian(2.0), 2.0), "Laplace": (Laplace(2.0), 2.0 * np.sqrt(2))}


def require_independent(noise, deviation):
    """Noise of that deviation whose entries, neighbours, and halves have nothing in common."""
    noise = np.ravel(noise) / deviation
    assert abs(np.mean(noise**2) - 1) < 6 * np.sqrt(5 / noise.size)  # kurtosis 6 of Laplace noise
    assert abs(np.mean(noise)) < 6 / np.sqrt(noise.size)
    for lag in (1, 2, 3, noise.size // 2):
        assert abs(np.mean(noise[lag:] * noise[:-lag])) < 6 / np.sqrt(noise.size - lag)
    assert len(np.unique(noise)) > 0.98 * noise.size


@pytest.mark.parametrize("shape", [(SIZE,), (SIZE // 40, 40)], ids=str)
@pytest.mark.parametrize("name", ADDITIVE)
def test_the_entries_of_a_release_have_independent_noise(name, shape):
    mechanism, deviation = ADDITIVE[name]
    answer = np.random.default_rng(0).standard_normal(shape)
    require_independent(mechanism.release(answer, 1.0, Randomness(1)) - answer, deviation)


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_block_of_draws_has_independent_noise(name):
    mechanism, deviation = ADDITIVE[name]
    sensitivity = np.random.default_rng(2).uniform(0.5, 20.0, SIZE)
    noise, grid = mechanism.draw(sensitivity, (SIZE,), Randomness(3))
    require_independent(noise / sensitivity, deviation)
    assert np.array_equal(noise / grid, np.rint(noise / grid))
    noise, _ = mechanism.draw(1.0, (SIZE,), Randomness(4))
    require_independent(noise, deviation)


@pytest.mark.parametrize("name", ADDITIVE)
def test_releases_one_after_the_other_have_independent_noise(name):
    mechanism, deviation = ADDITIVE[name]
    randomness = Randomness(5)
    require_independent([mechanism.release(0.25, 1.0, randomness) - 0.25 for _ in range(SIZE)], deviation)


class Echo:
    """An objective whose minimiser is its linear term; what is found is off by 2**-20 at most."""

    dimension = SIZE
    query = property(lambda self: self)

    def perturbed_error(self, length, moved):
        return 2.0**-20

    def minimiser(self, linear):
        self.linear = np.array(linear)
        return self.linear


def test_a_linear_term_and_the_noise_after_it_have_independent_entries():
    echo, mechanism = Echo(), LinearTerm(3.0, 0.1, "any", 1.0, "zero-out")
    released = mechanism.release(echo, 1.0, Randomness(6))
    require_independent(echo.linear, 3.0)
    after = released - echo.linear
    require_independent(after, mechanism.deviation(echo, 1.0))
    assert abs(np.corrcoef(after, echo.linear)[0, 1]) < 6 / np.sqrt(SIZE)


@pytest.mark.parametrize("mechanism", [Exponential(1.0), LaplaceNoisyMax(1.0)], ids=lambda kind: kind.name)
def test_equal_scores_are_chosen_equally_often(mechanism):
    """Noise that some of them shared would favour the first."""
    randomness, draws = Randomness(7), 6000
    chosen = [mechanism.release(np.zeros(6), 1.0, randomness) for _ in range(draws)]
    expected = draws / 6
    assert (np.abs(np.bincount(chosen, minlength=6) - expected) < 6 * np.sqrt(expected)).all()


@pytest.mark.parametrize(
    "query", [ClippedGradient(Logistic(), 1.0), SecondMoments(1.0)], ids=lambda q: q.name
)
def test_the_curator_gives_every_entry_of_a_sum_noise_of_its_own(query):
    records = as_data(np.zeros((5, SIZE)), np.ones(5), Bounds(row_norm=1.0))
    point = () if isinstance(query, SecondMoments) else (np.zeros(SIZE),)
    released = Curator(records, Neighbours.ZERO_OUT, Randomness(8)).release(query, Gaussian(2.0), *point)
    require_independent(released, 2.0)


# The key.


def test_a_key_has_128_bits_of_the_operating_system(monkeypatch):
    asked, key = [], (0xDEAD << 112) | 0xBEEF
    monkeypatch.setattr(secrets, "randbits", lambda bits: asked.append(bits) or key)
    keyed = Randomness()
    assert asked == [128] and keyed.secure
    assert np.array_equal(keyed.integers(1 << 62, 20), Randomness(key).integers(1 << 62, 20))


def test_every_bit_of_the_key_reaches_the_stream():
    streams = {tuple(Randomness(1 << bit).integers(1 << 62, 4)) for bit in range(128)}
    assert len(streams | {tuple(Randomness(0).integers(1 << 62, 4))}) == 129


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
    assert mechanism.event == accounting.Gaussian(3.0)
    assert mechanism.entries(Levels(({}, {}), 10)) == 20  # never the number of levels, which is secret
    extra = mechanism.imprecision(20)
    assert extra[Imprecision(mechanism.revealing)] == 1 and mechanism.revealing >= 2 * norm.sf(4.0)
    release = Release("levels of columns", mechanism, 1, "2", entries=20)
    assert Release.from_dict(release.to_dict()) == release


def test_noise_beside_a_fixed_event_is_the_least_within_the_budget():
    fixed, event = Repeated(accounting.Gaussian(20.0), 4), Repeated(accounting.Gaussian(1.0), 9)
    factor = calibrate_beside(fixed, event, 1.0, 1e-6)
    deltas = [compose(Composed((fixed, event.scaled(f)))).delta(1.0) for f in (factor, factor / 1.002)]
    assert deltas[0] <= 1e-6 < deltas[1]
    with pytest.raises(ValueError, match="the budget is spent"):
        calibrate_beside(accounting.Gaussian(1.0), event, 1.0, 1e-6)

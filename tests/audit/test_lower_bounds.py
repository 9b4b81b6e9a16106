import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from dpglm.accounting import Gaussian, Laplace, PoissonGaussian, Pure, Repeated, compose, gaussian_mu
from dpglm.audit import Claim, audit_outputs
from dpglm.audit.lower_bounds import advantage_of, bound, candidates, clopper_pearson, exact_epsilon


@pytest.mark.parametrize(("count", "total"), [(0, 10), (3, 10), (10, 10), (17, 5000)])
def test_clopper_pearson_is_the_exact_interval(count, total):
    expected = stats.binomtest(count, total).proportion_ci(0.99, method="exact")
    assert np.allclose(clopper_pearson(count, total, 0.005), (expected.low, expected.high), rtol=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
def test_the_exact_epsilon_is_where_the_hockey_stick_meets_delta(delta):
    rng = np.random.default_rng(0)
    for _ in range(50):
        p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
        epsilon = exact_epsilon(p, q, delta)

        def excess(e, p=p, q=q):
            return max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((p, q), (q, p)))

        assert excess(epsilon) <= delta + 1e-12
        if epsilon > 0:
            assert excess(epsilon - 1e-6) > delta


def test_outputs_with_disjoint_supports_have_no_finite_epsilon():
    assert exact_epsilon([1.0, 0.0], [0.0, 1.0], 0.5) == math.inf
    assert exact_epsilon([0.5, 0.5], [0.5, 0.5], 0.0) == 0.0


def test_lower_bounds_exceed_the_truth_no_more_often_than_they_may():
    rng = np.random.default_rng(1)
    truth, claim = 1.0, Claim(1.0, 0.0, Pure(1.0))
    wrong = 0
    for _ in range(400):
        noise = rng.laplace(size=(2, 400))
        found = bound(noise[0], noise[1] + truth, claim)
        wrong += found.epsilon > truth or found.violated
    assert stats.binom.sf(wrong - 1, 400, 0.01) > 1e-6


def test_the_best_of_many_statistics_is_judged_on_runs_that_did_not_choose_it():
    rng = np.random.default_rng(7)
    claim = Claim(0.01, 0.0, Pure(0.01))
    accused = sum(bound(*rng.standard_normal((2, 100, 30)), claim).violated for _ in range(60))
    assert stats.binom.sf(accused - 1, 60, 0.01) > 1e-6


def test_noise_that_is_too_small_by_a_fifth_is_seen_by_the_advantage_alone():
    rng = np.random.default_rng(8)
    event = Gaussian(3.0)
    first, second = 2.4 * rng.standard_normal((2, 60_000))
    claim = Claim(compose(event).epsilon(1e-5), 1e-5, event)
    found = bound(first + 1, second, claim)
    assert found.violated and found.epsilon < claim.epsilon < found.explained


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_half_the_noise_that_is_claimed_is_noticed(law):
    rng = np.random.default_rng(2)
    draw = rng.standard_normal if law == "gaussian" else rng.laplace
    event = Gaussian(2.0) if law == "gaussian" else Laplace(2.0)
    first, second = draw(size=20_000) + 1, draw(size=20_000)
    claim = Claim(compose(event).epsilon(1e-5), 1e-5, event)
    assert bound(first, second, claim).violated
    assert not bound(2 * (first - 1) + 1, 2 * second, claim).violated


def test_rates_on_the_trade_off_of_the_claim_are_allowed_and_rates_above_are_not():
    mu = 0.7
    claim = Claim(1.0, compose(Gaussian(1 / mu)).delta(1.0), Gaussian(1 / mu))
    for alarms in (1e-4, 0.01, 0.3):
        hits = stats.norm.sf(stats.norm.isf(alarms) - mu)
        assert claim.allows(alarms, hits * (1 - 1e-6))
        assert not claim.allows(alarms, hits * 1.001)


def test_the_largest_advantage_of_the_claim_is_allowed_and_more_is_not():
    mu, epsilon, delta = 0.7, 1.0, 0.05
    most = 2 * stats.norm.cdf(mu / 2) - 1
    claim = Claim(epsilon, delta, Gaussian(1 / mu))
    assert claim.allows_advantage(most * (1 - 1e-9)) and not claim.allows_advantage(most * 1.001)
    alone = Claim(epsilon, delta)
    # The best test of an (epsilon, delta) mechanism: hits and misses on the two lines of its trade-off.
    alarms = (1 - delta) / (1 + math.exp(epsilon))
    most = math.exp(epsilon) * alarms + delta - alarms
    assert alone.allows_advantage(most * (1 - 1e-9)) and not alone.allows_advantage(most * 1.001)


def test_for_gaussian_noise_the_fitted_epsilon_is_that_of_the_mu_estimator():
    claim = Claim(1.0, 1e-5, Gaussian(1 / gaussian_mu(1.0, 1e-5)))
    for mu in (0.05, 0.3, 2.0):
        advantage = 2 * stats.norm.cdf(mu / 2) - 1
        expected = compose(Gaussian(1 / mu)).epsilon(1e-5)
        assert math.isclose(claim.explained(advantage), expected, rel_tol=5e-3)


def test_the_fitted_epsilon_of_sampled_noise_is_consistent_with_its_own_curve():
    event = Repeated(PoissonGaussian(2.0, 0.25, "zero-out"), 4)
    claim = Claim(compose(event).epsilon(1e-3), 1e-3, event)
    assert math.isclose(claim.explained(compose(event).delta(0.0)), claim.epsilon, rel_tol=0.01)


def test_an_advantage_that_almost_no_noise_explains_is_huge_and_none_explains_nothing():
    claim = Claim(1.0, 1e-5, Gaussian(3.0))
    assert claim.explained(0.0) == 0.0
    assert Claim(1.0, 1e-5).explained(0.9) == 0.0
    sampled = Repeated(PoissonGaussian(2.0, 0.1, "zero-out"), 2)
    assert Claim(1.0, 1e-5, sampled).explained(0.5) > 50


def test_the_bound_on_an_advantage_is_wrong_no_more_often_than_it_may_be():
    rng = np.random.default_rng(4)
    found = cache(lambda alarms, hits: advantage_of((alarms, 200), (hits, 200), 0.01))
    for rates in ((0.5, 0.5), (0.1, 0.9), (0.02, 0.3), (0.0, 0.004)):
        alarms, hits = (rng.binomial(200, rate, 4000) for rate in rates)
        wrong = sum(
            found(a, h) > rates[1] - rates[0] for a, h in zip(alarms.tolist(), hits.tolist(), strict=True)
        )
        assert stats.binom.sf(wrong - 1, 4000, 0.01) > 1e-6


def test_the_discriminant_finds_a_direction_without_noise():
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((2, 2000))
    first = np.column_stack([noise[0], noise[0] + 0.01])
    second = np.column_stack([noise[1], noise[1] - 0.01])
    (discriminant,) = [s for s in candidates(first, second) if s.name == "discriminant"]
    assert discriminant(first).min() > discriminant(second).max()


def test_repeated_outputs_are_no_evidence_where_the_claim_allows_them():
    rng = np.random.default_rng(9)
    claim, accused = Claim(1.0, 0.0, Pure(1.0)), 0
    for many in (2, 30, 400):
        # Randomised response and outputs of which each occurs a few times, as likely as the claim allows.
        likely = 1 / (1 + math.exp(-1.0))
        for _ in range(40):
            sides = [rng.random(400) < chance for chance in (likely, 1 - likely)]
            first, second = (side + 2.0 * rng.integers(many // 2, size=400) for side in sides)
            accused += bound(first, second, claim).violated
    assert stats.binom.sf(accused - 1, 120, 0.01) > 1e-6


def test_outputs_that_repeat_on_one_table_only_are_told_apart_by_memory():
    rng = np.random.default_rng(10)
    known = rng.standard_normal((2, 100, 3))
    first, second = (side[rng.integers(100, size=200)] for side in known)
    found = bound(first, second, Claim(1.0, 1e-5))
    assert found.violated and "seen before" in found.test.words
    assert not bound(*rng.standard_normal((2, 200, 3)), Claim(1.0, 1e-5)).violated


def test_outputs_that_are_no_numbers_are_outputs_too():
    first, second = np.full((200, 2), np.nan), np.zeros((200, 2))
    first[:, 1] = second[:, 1] = np.inf
    assert audit_outputs(first, second, Claim(1.0, 0.0)).violated
    assert not audit_outputs(first, first.copy(), Claim(1.0, 0.0)).violated


def test_bad_arguments_are_named():
    rows = np.zeros((10, 2))
    with pytest.raises(ValueError, match="columns"):
        bound(rows, rows[:, :1], Claim(1.0, 0.0))
    with pytest.raises(ValueError, match="at least four"):
        bound(rows[:2], rows, Claim(1.0, 0.0))
    with pytest.raises(ValueError, match="confidence"):
        bound(rows, rows, Claim(1.0, 0.0), confidence=1.0)
    with pytest.raises(ValueError, match="dimensions"):
        bound(np.zeros((4, 4, 4)), rows, Claim(1.0, 0.0))

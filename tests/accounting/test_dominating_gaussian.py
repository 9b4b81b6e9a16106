"""The least Gaussian above a curve, the curve of objective perturbation beneath it, and reserved budgets."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpglm.accounting import (
    Composed,
    Exponential,
    Gaussian,
    Imprecision,
    Laplace,
    ObjectivePerturbation,
    Parallel,
    PoissonGaussian,
    Pure,
    Repeated,
    Reserved,
    Search,
    calibrate,
    calibrate_covered,
    compose,
    cover,
    cover_pure,
    event_from_dict,
    gaussian_delta,
    reserved,
    tries_of,
)
from dpglm.accounting.compose import composed_curve_of, normal_form
from dpglm.accounting.objective import transport_bounds

SLACK = 1e-10
EVENTS = {
    "batches": Repeated(PoissonGaussian(2.0, 0.05, "replace-one"), 40),
    "batches, zero-out": Repeated(PoissonGaussian(1.0, 0.05, "zero-out"), 40),
    "rounds": Repeated(Composed((Exponential(40.0), Gaussian(30.0))), 30),
    "selections": Repeated(Exponential(20.0), 12),
    "laplace": Repeated(Laplace(10.0), 9),
    "one laplace": Laplace(2.0),
    "pure": Pure(0.3),
    "mixture": Composed((Gaussian(3.0), Pure(0.2), Repeated(Laplace(12.0), 5))),
    "objective": ObjectivePerturbation(5.6, 0.06, "logistic", 1.1, "zero-out"),
    "objective, replace-one": ObjectivePerturbation(11.4, 0.035, "signed", 1.0, "replace-one"),
    "objective, any slopes": ObjectivePerturbation(11.7, 0.035, "any", 1.0, "replace-one"),
    "steep objective": ObjectivePerturbation(2.0, 3.0, "signed", 1.0, "zero-out"),
}


@pytest.mark.parametrize("name", [name for name in EVENTS if "objective" not in name])
def test_the_cover_is_above_the_curve_and_a_smaller_one_is_not(name):
    event = EVENTS[name]
    found = cover(event, SLACK)
    assert found.slack <= SLACK
    curve = compose(event)
    epsilons = found.mu * np.concatenate([np.linspace(0, 8, 60), [0.003, 0.011]])
    excess = [curve.delta(e) * (1 - 2e-6) - gaussian_delta(found.mu, e) - found.slack for e in epsilons]
    assert max(excess) <= 0
    smaller = [curve.delta(e) - gaussian_delta(0.99 * found.mu, e) - found.slack for e in epsilons]
    assert max(smaller) > 0


def test_gaussians_cost_their_mu_and_nearly_no_slack():
    event = Composed((Repeated(Gaussian(20.0), 100), Imprecision(1e-116)))
    found = cover(event, 1e-9)
    assert found.mu == pytest.approx(0.5, rel=1e-13)
    assert 1e-116 < found.slack < 1e-100
    curve = compose(event)
    epsilons = np.linspace(0, 20, 2000)
    # what holds at an epsilon holds at every larger one
    deltas = np.minimum.accumulate([curve.delta(e) for e in epsilons])
    covers = np.array([gaussian_delta(found.mu, e) + found.slack for e in epsilons])
    assert np.all(deltas[1:] * (1 - 1e-14) <= np.maximum(covers[1:], deltas[-1]))
    assert found.slack >= deltas[-1] * 0.9


def test_a_distance_that_the_slack_cannot_pay_for_has_no_price():
    assert cover(Composed((Gaussian(2.0), Imprecision(1e-6))), 1e-9).mu == math.inf
    assert cover(Gaussian(0.0), 1e-9).mu == math.inf
    with pytest.raises(ValueError, match="slack must be positive"):
        cover(Gaussian(1.0), 0.0)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.01, 0.3, 1.0, 5.0, 40.0])
def test_randomized_response_is_below_its_gaussian_and_touches_it(epsilon):
    mu = cover_pure(epsilon)
    for x in epsilon * np.linspace(0, 1, 50):
        response = -math.expm1(x - epsilon) / (1 + math.exp(-epsilon))
        assert response <= gaussian_delta(mu, x)
    at_zero = -math.expm1(-epsilon) / (1 + math.exp(-epsilon))
    assert gaussian_delta(mu, 0.0) == pytest.approx(at_zero, rel=1e-9, abs=1e-13)
    assert cover_pure(1e3) == math.inf


@pytest.mark.parametrize("name", ["batches", "batches, zero-out", "rounds", "selections", "mixture"])
def test_many_points_of_a_curve_from_few_transforms_equal_single_ones(name):
    curve = composed_curve_of(normal_form(EVENTS[name]))
    last = math.ceil(3.0 / curve.step)
    many = curve.at_grid_points(last)
    for k in np.linspace(0, last, 15).astype(int):
        single = curve.delta(k * curve.step)
        assert single * (1 - 1e-5) <= many[k] <= single * (1 + 1e-3) + 1e-16


def paths(rng, mu, curvature, count):
    """Shifts that rise from 0 to at most mu with slopes from 0 to the curvature, on a grid of the line."""
    u = np.linspace(-9, 6, 3001)
    step = u[1] - u[0]
    for k in range(count):
        if k % 2:
            start = rng.uniform(-7, 0)
            slope = np.where(u > start, curvature, 0.0)
            first = rng.uniform(0, mu) * rng.integers(2)
        else:
            knots = np.sort(rng.uniform(-8, 4, 6))
            slope = curvature * (np.searchsorted(knots, u) % 2)
            first = rng.uniform(0, mu) * rng.integers(2)
        shift = np.minimum(first + np.concatenate([[0], np.cumsum(slope[:-1]) * step]), mu)
        yield u, shift


def exact(u, upper, lower, x):
    """E_{e^x} of the laws whose distribution functions, on a grid, are Phi(upper) and Phi(lower)."""
    gain = np.diff(ndtr(upper), prepend=0.0) - math.exp(x) * np.diff(ndtr(lower), prepend=0.0)
    return gain[gain > 0].sum()


@pytest.mark.parametrize(("mu", "curvature"), [(0.18, 0.06), (0.5, 1.0), (0.05, 0.2), (1.5, 0.3)])
def test_no_path_of_a_shift_exceeds_the_bound(mu, curvature):
    rng = np.random.default_rng(0)
    event = ObjectivePerturbation(1 / mu, curvature, "signed", 1.0, "zero-out")
    x, bound = transport_bounds(event, np.linspace(0.3, 5, 12))
    exceeds_gaussian = False
    for u, shift in paths(rng, mu, curvature, 120):
        for level, most in zip(x, bound, strict=True):
            there, back = exact(u, u + shift, u, level), exact(u, u, u + shift, level)
            assert max(there, back) <= most * (1 + 1e-9)
            exceeds_gaussian |= there > gaussian_delta(mu, level) * 1.001
    if curvature == 1.0:
        assert exceeds_gaussian  # so the determinant is not free, and the bound has something to bound


def test_no_pair_of_paths_exceeds_the_bound_for_replaced_records():
    rng = np.random.default_rng(1)
    mu, curvature = 0.3, 0.3
    event = ObjectivePerturbation(1 / mu, curvature, "signed", 1.0, "replace-one")
    x, bound = transport_bounds(event, np.linspace(0.3, 5, 12))
    pairs = zip(paths(rng, mu, curvature, 150), paths(rng, mu, curvature, 150), strict=True)
    for (u, first), (_, second) in pairs:
        opposite = -second[::-1]  # on the reversed grid: a slope of the other sign
        other = np.interp(-u, u, second)
        assert opposite.shape == other.shape
        for level, most in zip(x, bound, strict=True):
            assert exact(u, u + first, u - other, level) <= most * (1 + 1e-9)
            assert exact(u, u + first, u + second, level) <= most * (1 + 1e-9)


@pytest.mark.parametrize(("mu", "curvature"), [(0.18, 0.06), (0.5, 1.0), (1.5, 0.3), (0.3, 3.0)])
def test_no_path_of_either_sign_exceeds_the_bound(mu, curvature):
    rng = np.random.default_rng(2)
    event = ObjectivePerturbation(1 / mu, curvature, "any", 1.0, "zero-out")
    x, bound = transport_bounds(event, np.linspace(0.3, 5, 12))
    two_tails = False
    for u, shift in paths(rng, 2 * mu, curvature, 120):
        either = shift - mu
        for level, most in zip(x, bound, strict=True):
            there, back = exact(u, u + either, u, level), exact(u, u, u + either, level)
            assert max(there, back) <= most * (1 + 1e-9)
            two_tails |= back > 1.05 * gaussian_delta(mu, level)
    if curvature == 3.0:
        assert two_tails


@pytest.mark.parametrize("name", [name for name in EVENTS if "objective" in name])
def test_objective_perturbation_is_covered_where_its_bounds_are_known(name):
    event = EVENTS[name]
    found = cover(event, SLACK)
    mu = (1 if event.neighbours == "zero-out" else 2) / event.noise
    assert found.mu >= mu  # half-lines cost what the Gaussian costs
    x, bound = transport_bounds(event, np.linspace(0.3, 3, 30))
    curve = compose(event)
    for level, most in zip(x[1:], bound[1:], strict=True):
        # the convex hull is below the smaller of the two, and the curve below the hull
        assert gaussian_delta(found.mu, level) + found.slack >= gaussian_delta(mu, level)
        assert min(most, curve.delta(level)) >= gaussian_delta(mu, level) * (1 - 1e-9)


PLANS = {
    "gaussian": Repeated(Gaussian(1.0), 100),
    "batches": Repeated(PoissonGaussian(1.0, 0.05, "zero-out"), 200),
    "rounds": Repeated(Composed((Exponential(1.0), Gaussian(1.0))), 5),
}


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3), (1000.0, 1e-6)])
def test_a_reserve_is_the_largest_that_keeps_the_budget(epsilon, delta):
    most = reserved(epsilon, delta)
    assert compose(most).delta(epsilon) <= delta
    assert compose(most.scaled(0.999)).delta(min(epsilon, 600.0)) > delta
    assert most.slack == pytest.approx(delta / 4096)


def test_the_curve_of_a_reserve_is_that_of_a_gaussian_with_a_slack_above_it():
    event = Reserved(0.5, 1e-5)
    assert compose(event).delta(1.0) == pytest.approx(gaussian_delta(0.5, 1.0) + 1e-5, rel=1e-9)
    epsilon = compose(event).epsilon(1e-3)
    assert compose(event).delta(epsilon) <= 1e-3
    assert math.isinf(compose(event).epsilon(1e-5)) and compose(event).delta(math.inf) == 1e-5


def test_reserves_add_up_in_squares_and_slacks():
    both = Composed((Reserved(0.3, 1e-7), Repeated(Reserved(0.4, 2e-7), 1)))
    assert compose(both).delta(1.0) == pytest.approx(compose(Reserved(0.5, 3e-7)).delta(1.0), rel=1e-9)
    covered = cover(Composed((Reserved(0.3, 1e-7), Gaussian(2.5))), 1e-6)
    assert covered.mu == pytest.approx(0.5) and covered.slack == pytest.approx(1e-7)
    assert math.isinf(cover(Reserved(0.3, 1e-5), 1e-6).mu)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_noise_for_a_reserve_is_enough_and_hardly_more_than_exact_curves_need(plan):
    most = reserved(1.0, 1e-6)
    factor = calibrate_covered(plan, most.mu, most.slack / 2)
    assert cover(plan.scaled(factor), most.slack / 2).mu <= most.mu
    assert cover(plan.scaled(factor * 0.998), most.slack / 2).mu > most.mu
    assert 1.0 <= factor / calibrate(plan, 1.0, 1e-6) < 1.03


def test_what_a_slack_cannot_pay_for_is_refused():
    with pytest.raises(ValueError, match="cannot pay"):
        calibrate_covered(Composed((Exponential(1.0), Imprecision(1e-3))), 0.2, 1e-9)
    with pytest.raises(ValueError, match="without noise"):
        calibrate_covered(Gaussian(0.0), 0.2, 1e-9)


def test_a_reserve_is_stored_and_is_no_part_of_a_search():
    event = Reserved(0.25, 1e-9)
    assert event_from_dict(event.to_dict()) == event
    for around in (Parallel((event,), "halves"), Search((event,), tries_of("geometric", 4.0))):
        with pytest.raises(ValueError, match="no part of"):
            compose(around)
    with pytest.raises(ValueError, match="slack"):
        Reserved(0.25, 1.0)

"""What is reserved for a plan that follows from a first release."""

import math

import pytest

from dpglm.accounting import (
    Composed,
    Exponential,
    Gaussian,
    Imprecision,
    Parallel,
    PoissonGaussian,
    Repeated,
    Reserved,
    Search,
    calibrate,
    calibrate_covered,
    compose,
    cover,
    event_from_dict,
    gaussian_delta,
    reserved,
    tries_of,
)

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

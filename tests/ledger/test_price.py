"""Prices of plans, and exact numbers."""

import math
from fractions import Fraction

import pytest

from dpglm import (
    GLMClassifier,
    Lasso,
    LinearSVC,
    LogisticRegression,
)
from dpglm.accounting import gaussian_delta, gaussian_mu
from dpglm.ledger import Price, price_of_epsilon, price_of_mu, price_of_plan
from dpglm.ledger.price import FREE, UNIT, from_text, root_down, root_up, to_text, whole_budget
from dpglm.penalties import L1Ball
from dpglm.solvers import (
    CoordinateDescent,
    DualCoordinateDescent,
    DualFrankWolfe,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
)

SLACK = Fraction(2e-11)
N, P = 32_561, 123


def own_mu(plan):
    return gaussian_mu(plan.budget.epsilon, plan.budget.delta)


def ten_plans(neighbours):
    settings = {"epsilon": 1.0, "neighbours": neighbours}
    return [
        LogisticRegression(**settings).plan(N, P),
        LogisticRegression(solver=GradientDescent(steps=60), **settings).plan(N, P),
        LogisticRegression(solver=GradientDescent(batch_size=500), **settings).plan(N, P),
        LogisticRegression(solver=CoordinateDescent(), **settings).plan(N, P),
        Lasso(alpha=0.01, solver=GreedyCoordinateDescent(), **settings).plan(N, P),
        LogisticRegression(penalty=L1Ball(10.0), solver=FrankWolfe(), **settings).plan(N, P),
        LinearSVC(solver=DualCoordinateDescent(), **settings).plan(N, P),
        LogisticRegression(penalty=None, solver=Newton(), **settings).plan(N, 10),
        LogisticRegression(C=1e-3, solver=OutputPerturbation(), **settings).plan(N, P),
        GLMClassifier(solver=GradientDescent(), **settings).plan(N, P, n_classes=5),
    ]


@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
def test_ten_plans_of_all_solvers_cost_together_hardly_more_than_their_own_mu(neighbours):
    plans = ten_plans(neighbours)
    total = sum((price_of_plan(plan, SLACK) for plan in plans), FREE)
    assert total.mu <= 1.015 * math.sqrt(sum(own_mu(plan) ** 2 for plan in plans))
    assert total.mu >= math.sqrt(sum(own_mu(plan) ** 2 for plan in plans)) * (1 - 1e-6)


@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
def test_objective_perturbation_costs_at_most_five_percent_more_than_its_own_mu(neighbours):
    model = LogisticRegression(solver=ObjectivePerturbation(), epsilon=1.0, neighbours=neighbours)
    plan = model.plan(N, P)
    assert price_of_plan(plan, SLACK).mu <= 1.05 * own_mu(plan)


def test_every_solver_is_among_the_plans():
    from dpglm.solvers import SOLVERS

    kinds = {plan.solver for plan in ten_plans("replace-one")} | {ObjectivePerturbation.plan_type.solver}
    assert kinds | {DualFrankWolfe.plan_type.solver} >= {
        solver.plan_type.solver for solver in SOLVERS.values()
    }


def test_a_one_vs_rest_fit_costs_all_of_its_fits():
    one = LogisticRegression(epsilon=1.0).plan(N, P)
    five = LogisticRegression(epsilon=1.0, multi_class="ovr").plan(N, P, n_classes=5)
    at_once = LogisticRegression(epsilon=1.0).plan(N, P, n_classes=5)
    assert five.fits == 5 and at_once.fits == 1
    assert price_of_plan(at_once, SLACK).mu == pytest.approx(price_of_plan(one, SLACK).mu, rel=1e-9)
    assert price_of_plan(five, SLACK).mu == pytest.approx(price_of_plan(one, SLACK).mu, rel=1e-9)


def test_a_fit_without_noise_has_no_price_and_no_slack_buys_nothing():
    assert price_of_plan(LogisticRegression(epsilon=math.inf).plan(N, P), SLACK) is None
    assert price_of_plan(LogisticRegression(epsilon=1.0).plan(N, P), Fraction(0)) is None


@pytest.mark.parametrize(("epsilon", "delta"), [(3.0, 1e-8), (0.1, 1e-5), (20.0, 1e-12), (1.0, 0.5)])
def test_a_budget_that_is_spent_in_full_keeps_the_promise(epsilon, delta):
    budget = whole_budget(epsilon, delta)
    spent = gaussian_delta(root_up(budget.mu_squared) * (1 - 1e-15), epsilon) + float(budget.slack)
    assert spent <= delta * (1 + 1e-12)
    assert spent >= delta * (1 - 1e-6)


@pytest.mark.parametrize("bad", [(math.inf, 1e-6), (0.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (math.nan, 0.1)])
def test_what_is_no_budget_is_refused(bad):
    with pytest.raises(ValueError):
        whole_budget(*bad)


def test_no_charge_vanishes():
    large, tiny = price_of_mu(1.0, 0.5), price_of_mu(1e-60, 1e-300)
    assert tiny.mu_squared == tiny.slack == Fraction(1, UNIT)
    total = large
    for _ in range(3):
        total += tiny
    assert total.mu_squared - 1 == 3 * tiny.mu_squared


def test_prices_of_promises():
    assert price_of_epsilon(1.0, 1e-9).slack >= Fraction(1e-9)
    assert price_of_epsilon(0.0, 0.0).mu < 1e-12
    for bad in [(-1.0, 0.0), (1.0, -0.1), (math.nan, 0.0), (math.inf, 0.0), (1e4, 0.0), (1.0, 1.0)]:
        with pytest.raises(ValueError):
            price_of_epsilon(*bad)
    for bad in [(-1.0, 0.0), (math.nan, 0.0), (math.inf, 0.0)]:
        with pytest.raises(ValueError):
            price_of_mu(*bad)


def test_roots_and_texts_are_exact():
    for value in [Fraction(1, 3), Fraction(2), Fraction(1, UNIT)]:
        assert Fraction(root_up(value)) ** 2 >= value >= Fraction(root_down(value)) ** 2
    price = price_of_mu(0.3, 1e-9)
    assert Price.from_list(price.to_list()) == price
    assert from_text(to_text(Fraction(0))) == 0


@pytest.mark.parametrize(
    "bad",
    ["-1/2", "1/3", "2/4", "1", "1.5/2", "nan", "1/0", "1e9/1", "0/2", None, 3, "9" * 300 + "/1", "²/1"],
)
def test_what_is_no_fraction_is_refused(bad):
    with pytest.raises(ValueError):
        from_text(bad)

"""A fit does not depend on the units of targets and features, nor on where the targets have their zero."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import dpglm
from dpglm import Bounds, Budget, Neighbours, losses
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import EpsilonInsensitive, Huber, Squared
from dpglm.mechanisms import Randomness
from dpglm.penalties import L1, L2, Box, ElasticNet, L1Ball, Submodular, Zero
from dpglm.penalties.set_functions import Cardinality
from dpglm.problem import Problem
from dpglm.solvers import SOLVERS, ObjectivePerturbation

rng = np.random.default_rng(0)
N, P = 600, 3
# Multiples of 2**-20: scaling and shifting them is exact.
X = np.round(rng.uniform(-1, 1, (N, P)) * 2**20) / 2**20
Y = np.round((0.5 + X @ [0.3, -0.2, 0.0] + rng.normal(0, 0.05, N)) * 2**20) / 2**20
BUDGET, INFINITE = Budget(10.0, 1e-6), Budget(math.inf, 0.5)
# In units far below 2**-12 Frank-Wolfe draws from the same law in another way.
UNITS = [2.0**-12, 2.0**40]


@dataclass(frozen=True)
class Case:
    """A problem in any unit u of targets and f of features; k is the unit of the slopes."""

    solver: str
    loss: str
    penalty: str
    bounds: str = "feature"

    def problem(self, u=1.0, f=1.0, shift=0.0):
        target = (u * shift, u * (1.0 + shift))
        bounds = Bounds(**{self.bounds: f}, target=target)
        loss = {
            "squared": lambda: Squared(),
            "small": lambda: Huber(0.02 * u),
            "absolute": lambda: EpsilonInsensitive(0.0),
        }.get(self.loss, lambda: losses.get(self.loss, target))()
        k = self.slope_unit(u) * (0.04 if self.loss == "small" else 1.0)
        penalty = {
            "zero": Zero(),
            "l2": L2(0.02 * k / u * f**2),
            "l1": L1(0.003 * k * f),
            "box": Box(-0.1 * u / f, 0.2 * u / f),
            "elastic": ElasticNet(0.003 * k * f, 0.02 * k / u * f**2),
            "ball": L1Ball(0.4 * u / f),
            "norm": Submodular(0.003 * k * f, Cardinality(), 0.02 * k / u * f**2),
        }[self.penalty]
        return Problem(loss, penalty, bounds)

    def slope_unit(self, u):
        return 1.0 if self.loss in ("absolute", "epsilon_insensitive") else u

    def fitted(self, u=1.0, f=1.0, shift=0.0, budget=BUDGET):
        problem, solver = self.problem(u, f, shift), SOLVERS[self.solver]()
        plan = solver.plan(problem, N, P, budget, Neighbours.REPLACE_ONE)
        records = as_data(f * X, u * (Y + shift), problem.bounds, problem.constant(P))
        w = solver.run(plan, problem, Curator(records, Neighbours.REPLACE_ONE, Randomness(5))).w
        return plan, w[:P], w[P] * problem.constant(P)


@cache
def in_its_own_unit(case):
    """The fit that others are compared with, made once for all tests."""
    return case.fitted()


SMOOTH = ("squared", "huber", "small")
CASES = [
    *(Case(solver, loss, penalty)
      for solver, penalties in {
          "gradient-descent": ("zero", "l1"),
          "preconditioned-descent": ("zero", "l2"),
          "coordinate-descent": ("zero", "box"),
          "greedy-coordinate-descent": ("zero", "elastic"),
          "frank-wolfe": ("ball",),
          "dual-coordinate-descent": ("l2", "elastic"),
          "output-perturbation": ("elastic",),
          "objective-perturbation": ("l1",),
          "dual-frank-wolfe": ("norm",),
      }.items()
      for penalty in penalties
      for loss in SMOOTH),
    *(Case("dual-coordinate-descent", loss, penalty)
      for loss in ("absolute", "epsilon_insensitive") for penalty in ("l2", "elastic")),
    *(Case(solver, "squared", "zero", "row_norm")
      for solver in ("gradient-descent", "coordinate-descent", "greedy-coordinate-descent")),
]  # fmt: skip
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(vars(case).values()))


IN_UNITS_OF_A_ROW = ("gradient descent", "preconditioned descent")
"""Their clips and step sizes have no unit: they are those of a typical row, which is released."""


def same_plan(one, other, clip):
    """Whether plans are the same but for the unit of their clip."""
    clip = 1.0 if one.solver in IN_UNITS_OF_A_ROW else clip
    assert [(r.mechanism, r.count, r.sampling) for r in one.releases] == [
        (r.mechanism, r.count, r.sampling) for r in other.releases
    ]
    assert (one.steps, one.price) == (other.steps, other.price)
    assert other.clip == pytest.approx(clip * one.clip, rel=1e-12)
    if isinstance(getattr(one, "step_size", None), float):
        assert other.step_size == pytest.approx(one.step_size, rel=1e-12)


def one_of(values, case):
    """One of two values for a case, so that every solver, loss and penalty meets both."""
    return values[CASES.index(case) % 2]


@pytest.mark.parametrize("part", ["solver", "loss", "penalty", "bounds"])
def test_every_solver_loss_and_penalty_meets_both_units(part):
    met = {(getattr(case, part), one_of(UNITS, case)) for case in CASES}
    assert met == {(getattr(case, part), unit) for case in CASES for unit in UNITS}


@EVERY_CASE
def test_a_fit_follows_the_unit_of_the_targets(case):
    plan, coef, intercept = in_its_own_unit(case)
    assert np.isfinite(coef).all() and coef.any()
    unit = one_of(UNITS, case)
    other, scaled, moved = case.fitted(unit)
    same_plan(plan, other, case.slope_unit(unit))
    assert np.allclose(scaled / unit, coef, rtol=1e-9, atol=1e-12)
    assert moved / unit == pytest.approx(intercept, rel=1e-9)


@EVERY_CASE
def test_a_fit_follows_the_unit_of_the_features(case):
    plan, coef, intercept = in_its_own_unit(case)
    unit = one_of(UNITS, case)
    other, scaled, moved = case.fitted(f=unit)
    same_plan(plan, other, unit)
    assert np.allclose(scaled * unit, coef, rtol=1e-9, atol=1e-12)
    assert moved == pytest.approx(intercept, rel=1e-9)


@EVERY_CASE
def test_a_shift_of_the_targets_and_their_range_is_taken_up_by_the_intercept(case):
    _, coef, intercept = in_its_own_unit(case)
    shift = one_of((-1.0, 64.0), case)
    _, shifted, moved = case.fitted(shift=shift)
    # A minimiser is known up to a tolerance that allows for the length of the start.
    # Rows in a metric are float32, so a large intercept leaves an error of its size times 6e-8.
    digits, least = {True: (1e-6, 1e-7), False: (1e-9, 1e-12)}[
        case.solver.endswith(("perturbation", "dual-frank-wolfe"))
    ]
    if case.solver == "preconditioned-descent":
        digits, least = 1e-5, 64 * 6e-8
    assert np.allclose(shifted, coef, rtol=digits, atol=least)
    assert moved - shift == pytest.approx(intercept, rel=1e-6)


@EVERY_CASE
def test_without_noise_a_fit_follows_the_unit_of_the_targets(case):
    _, coef, intercept = case.fitted(budget=INFINITE)
    unit = one_of(UNITS, case)
    _, scaled, moved = case.fitted(unit, budget=INFINITE)
    assert np.allclose(scaled / unit, coef, rtol=1e-6, atol=1e-6)
    assert moved / unit == pytest.approx(intercept, rel=1e-6)


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize("unit", [1.0, 1e5])
@pytest.mark.parametrize(
    "make",
    [
        lambda unit, **k: dpglm.LinearSVR(1.0, C=unit, **k),
        lambda unit, **k: dpglm.GLMRegressor(1.0, loss="huber", **k),
        lambda unit, **k: dpglm.GLMRegressor(
            1.0, loss="epsilon_insensitive", penalty=L2(1 / (20_000 * unit)), **k
        ),
    ],
    ids=["LinearSVR", "huber", "epsilon_insensitive"],
)
def test_targets_in_large_units_are_predicted_as_well_as_in_small_ones(make, unit):
    draws = np.random.default_rng(1)
    x = draws.uniform(-1, 1, (20_000, 2))
    y = unit * (0.5 + x @ [0.3, -0.2] + draws.normal(0, 0.05, 20_000))
    model = make(unit, bounds=Bounds(feature=1.0, target=(0, unit)), random_state=0)
    assert model.fit(x, y).score(x, y) > 0.94


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize("threshold", [1.0, 0.1, 1e-2, 1e-5])
@pytest.mark.parametrize(
    ("solver", "penalty"),
    [
        ("gradient-descent", Zero()),
        ("coordinate-descent", Zero()),
        ("greedy-coordinate-descent", Zero()),
        ("frank-wolfe", L1Ball(0.6)),
        ("dual-coordinate-descent", None),
    ],
)
def test_a_small_threshold_keeps_no_solver_from_crossing_the_range(solver, penalty, threshold):
    draws = np.random.default_rng(1)
    x = draws.uniform(-1, 1, (20_000, 2))
    y = 0.9 + x @ [0.3, -0.2] + draws.normal(0, 0.05, 20_000)
    model = dpglm.GLMRegressor(
        1.0, loss=Huber(threshold), penalty=penalty or L2(1e-4 * threshold), solver=solver,
        bounds=Bounds(feature=1.0, target=(-1, 2)), random_state=0,
    )  # fmt: skip
    assert model.fit(x, y).score(x, y) > 0.9


def test_a_quadratic_term_that_keeps_predictions_from_crossing_the_range_is_told():
    bounds = Bounds(feature=1.0, target=(-1, 1))
    with pytest.warns(UserWarning, match=r"range of 2: a loss that turns linear at a larger residual"):
        ObjectivePerturbation().plan(
            Problem(Huber(1e-5), Zero(), bounds), 20_000, 2, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", [Squared(), Huber(1.0), Huber(0.1)], ids=repr)
def test_a_quadratic_term_that_lets_predictions_cross_the_range_is_not_told(loss):
    problem = Problem(loss, Zero(), Bounds(feature=1.0, target=(-1, 1)))
    plan = ObjectivePerturbation().plan(problem, 20_000, 2, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)
    assert plan.quadratic > 0


def test_losses_by_name_have_the_scale_of_the_declared_range():
    assert losses.get("huber", (-1.0, 1.0)) == losses.get("huber") == Huber(1.0)
    assert losses.get("huber", (100.0, 500.0)) == Huber(200.0)
    assert losses.get("epsilon_insensitive", (-1.0, 1.0)) == EpsilonInsensitive(0.1)
    assert losses.get("epsilon_insensitive", (100.0, 500.0)) == EpsilonInsensitive(20.0)


class Doubled(Squared):
    """Twice the squared loss."""

    form = None

    def value(self, z, y):
        return 2 * super().value(z, y)

    def derivative(self, z, y):
        return 2 * super().derivative(z, y)

    def lipschitz(self, target=None):
        return math.inf

    def smoothness(self):
        return 2.0


def test_slope_bounds_are_those_at_the_start_whatever_the_unit_of_the_loss():
    bounds = Bounds(row_norm=1.0, target=(0.0, 0.5))
    bound = {loss: Problem(loss, Zero(), bounds).slope_bound() for loss in (Squared(), Doubled(), Huber(0.1))}
    assert list(bound.values()) == [0.25, 0.5, 0.1]
    assert Problem(EpsilonInsensitive(), L2(1.0), bounds).slope_bound() == 1.0
    assert (
        Problem(losses.get("poisson", (0.0, 8.0)), Zero(), Bounds(row_norm=1, target=(0, 8))).slope_bound()
        == 4.0
    )


def test_the_domain_of_a_conjugate_is_as_sharp_for_a_small_threshold():
    for threshold in (1e-20, 1.0, 1e20):
        u = threshold * np.array([-1.001, -1.0, 0.5, 1.0, 1.001])
        assert list(np.isfinite(Huber(threshold).conjugate(u, np.zeros(5)))) == [
            False,
            True,
            True,
            True,
            False,
        ]

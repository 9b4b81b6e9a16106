"""Certificates in pairs of doubles: what is computed is within the stated bound of what is exact."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Budget
from dpglm.data import as_data
from dpglm.data.terms import Gradient, PreciseGradient
from dpglm.losses import Huber, Logistic, Poisson, SmoothedHinge, Squared
from dpglm.mechanisms import LinearTerm
from dpglm.penalties import L2, Box, ElasticNet, Zero
from dpglm.privacy import PUBLIC_SIZE
from dpglm.problem import Problem
from dpglm.queries import Minimiser, proximal_gradient
from dpglm.queries.minimiser import Objective
from dpglm.solvers import ObjectivePerturbation
from dpglm.solvers.perturbation import minimiser

from ..kernels.test_double_double import exact_slope

LOSSES = [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.3), Poisson(5.0)]
FORMS = (np.array, np.asfortranarray, sp.csr_array, sp.csc_array, np.float32)


def bounds_of(loss):
    return Bounds(row_norm=1.0, target=None if loss.kind == "classification" else (0.0, 3.0))


def nasty(loss, n, p, far):
    """Columns that nearly cancel at coefficients that are far out, zeros, a null record, large sums."""
    rng = np.random.default_rng(n + p)
    X = rng.standard_normal((n, p)) * 10 ** rng.uniform(-3, 0.5, (n, 1))
    X[:, 1] = -X[:, 0] * (1 + 1e-6 * rng.standard_normal(n))
    X[rng.random((n, p)) < 0.3] = 0.0
    X = X.astype(np.float32).astype(float)
    X[3 % n, 0] = np.nan
    y = rng.choice([-1.0, 1.0], n) if loss.kind == "classification" else np.abs(rng.standard_normal(n))
    w = rng.standard_normal(p + 1)
    w[:2] = far
    return X, y, np.array([w, w * 2.0**-30 * rng.uniform(-1, 1, p + 1)])


def exact_sum(loss, data, X, w, clip):
    """The sum of clipped gradients; limits of slopes are doubles, as in the definition of the objective."""
    point = [mpmath.mpf(a) + mpmath.mpf(b) for a, b in w.T]
    total = [mpmath.mpf(0)] * len(point)
    for i in np.flatnonzero(data.scale):
        row = [mpmath.mpf(x) * mpmath.mpf(data.scale[i]) for x in X[i]] + [mpmath.mpf(data.constant)]
        limit = mpmath.mpf(clip / data.row_norms[i])
        z = mpmath.fdot(row, point)
        slope = min(max(exact_slope(loss, z, mpmath.mpf(data.y[i])), -limit), limit)
        total = [a + slope * x for a, x in zip(total, row, strict=True)]
    return total


@pytest.mark.parametrize("far", [1.0, 1e6])
@pytest.mark.parametrize(("n", "p"), [(150, 5), (40, 60)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_gradient_in_pairs_is_within_the_stated_bound_in_every_layout(loss, n, p, far):
    (X, y, w), clip, constant = nasty(loss, n, p, far), 0.3, 0.5
    tables = [as_data(form(X), y, bounds_of(loss), constant) for form in FORMS]
    totals = [data.total(PreciseGradient(loss, w, clip), finely=2) for data in tables]
    for other in totals[1:]:
        assert np.array_equal(other.steps, totals[0].steps) and np.array_equal(other.rest, totals[0].rest)
    # The point of this norm is as far out as may be.
    query = Minimiser(loss, clip, L2(1.0), n, p, math.hypot(1, constant), hold=1.0, push=far * 2)
    assert np.linalg.norm(w[0]) <= query.farthest(query.push) or far == 1.0
    room = query._rounding(query.push) * clip

    def error(value):
        with mpmath.workprec(300):
            return float(
                mpmath.norm([sum(map(mpmath.mpf, each)) - g for *each, g in zip(*value, exact, strict=True)])
            )

    with mpmath.workprec(300):
        exact = exact_sum(loss, tables[0], X, w, clip)
    assert error(totals[0].twofold()) <= room
    # Mutants: one limb less of the terms, none of the coefficients, or plain doubles throughout.
    short = replace(totals[0], rest=0 * totals[0].rest)
    blunt = tables[0].total(PreciseGradient(loss, w * [[1], [0]], clip), finely=2)
    plain = tables[0].total(Gradient(loss, w[0], clip), finely=1)
    for mutant in (short, blunt, plain):
        assert error(mutant.twofold()) > room


def test_a_sum_over_many_records_needs_the_limbs_that_it_has():
    """A hundred thousand terms that nearly cancel; their number decides on the grid."""
    n = 100_000
    X = np.full((n, 1), 0.1) * np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    X[0] *= 1 + 2.0**-40
    data, w = as_data(X, np.zeros(n), Bounds(row_norm=1.0, target=(-1, 1))), np.array([[1 / 3], [2.0**-60]])
    total = data.total(PreciseGradient(Squared(), w, 1.0), finely=2)
    with mpmath.workprec(300):
        point = mpmath.mpf(w[0, 0]) + mpmath.mpf(w[1, 0])
        square = (n - 1) * mpmath.mpf(0.1) ** 2 + mpmath.mpf(X[0, 0]) ** 2
        high, low = total.twofold()
        error = abs(mpmath.mpf(high[0]) + mpmath.mpf(low[0]) - point * square)
    query = Minimiser(Squared(), 1.0, L2(1.0), n, 1, 1.0)
    assert float(error) <= query._rounding(0.0)
    assert query._rounding(0.0) < 1e-20


def exact_minimiser(loss, data, X, query, linear, found):
    """Newton in 300 bits from what was found; coordinates at 0 and at the ends of a box stay there."""
    l1, l2, low, high = query.penalty.coordinate_form()
    free = [j for j, value in enumerate(found) if (value != 0 or not l1) and low < value < high]
    w = [mpmath.mpf(float(value)) for value in found]
    strength = mpmath.mpf(query.strength)
    for _ in range(8):
        gradient, hessian = [strength * a + mpmath.mpf(b) for a, b in zip(w, linear, strict=True)], None
        hessian = mpmath.diag([strength] * len(w))
        for i in np.flatnonzero(data.scale):
            row = [mpmath.mpf(x) * mpmath.mpf(data.scale[i]) for x in X[i]]
            z, y, limit = (
                mpmath.fdot(row, w),
                mpmath.mpf(data.y[i]),
                mpmath.mpf(query.clip / data.row_norms[i]),
            )
            slope = exact_slope(loss, z, y)
            curve = abs(slope) * (1 - abs(slope)) if isinstance(loss, Logistic) else mpmath.mpf(1)
            curve, slope = curve * (abs(slope) < limit), min(max(slope, -limit), limit)
            for j, x in enumerate(row):
                gradient[j] += slope * x / query.n_records
                for k, other in enumerate(row):
                    hessian[j, k] += curve * x * other / query.n_records
        residual = [gradient[j] + l1 * mpmath.sign(w[j]) for j in free]
        move = mpmath.lu_solve(
            mpmath.matrix([[hessian[j, k] for k in free] for j in free]), mpmath.matrix(residual)
        )
        for place, j in enumerate(free):
            w[j] -= move[place]
    for j in set(range(len(w))) - set(free):  # and staying there is best
        assert abs(gradient[j]) <= l1 or gradient[j] * (w[j] - (low + high) / 2) < 0
    return w


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "sure"])
@pytest.mark.parametrize(
    "penalty", [L2(1e-4), ElasticNet(0.02, 1e-4), Box(-0.4, 0.3), Zero()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_what_is_found_closely_is_within_the_error_of_the_exact_minimiser(loss, penalty, fast, monkeypatch):
    if not fast:
        monkeypatch.setattr(proximal_gradient, "_fast", lambda *arguments: None)
        monkeypatch.setattr(proximal_gradient, "_refine", lambda *arguments: None)
    n, p, rng = 60, 3, np.random.default_rng(5)
    X = rng.standard_normal((n, p)) * 0.5
    y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(n))
    bounds = Bounds(row_norm=1.0, target=None if loss.kind == "classification" else (-1.0, 1.0))
    quadratic = 1e-4 - penalty.strong_convexity
    query = minimiser(Problem(loss, penalty, bounds, fit_intercept=False), n, p, 2.0, quadratic)
    data, pushed = as_data(X, y, bounds), 0.3 * rng.standard_normal(p)
    found = Objective(query, data, np.zeros(p), np.zeros(p)).minimiser(pushed)
    with mpmath.workprec(300):
        exact = exact_minimiser(loss, data, X, query, pushed / n, found)
        distance = float(mpmath.norm([mpmath.mpf(float(a)) - b for a, b in zip(found, exact, strict=True)]))
    error = query.error(np.linalg.norm(pushed) / n, closely=True)
    assert distance <= error <= 1e-5


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("relation", PUBLIC_SIZE)
def test_the_finishing_noise_is_a_hundredth_of_the_linear_term_at_any_number_of_records(epsilon, relation):
    """Along every direction of curvature up to 0.1; along those of the largest possible, a thirtieth."""
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    for n in (10**k for k in range(3, 10)):
        plan = ObjectivePerturbation().plan(problem, n, 10, Budget(epsilon, n**-2.0), relation)
        query = minimiser(problem, n, 10, plan.clip, plan.quadratic)
        mechanism = plan.releases[0].mechanism
        assert isinstance(mechanism, LinearTerm)
        finishing = mechanism.deviation(query, relation.records_moved * plan.clip)
        assert finishing <= 0.015 * plan.deviation / (query.strength + 0.1)
        assert finishing <= 0.04 * plan.deviation / (query.strength + 0.25)
        assert n == 10**9 or finishing <= 0.01 * plan.deviation / (query.strength + 0.25)

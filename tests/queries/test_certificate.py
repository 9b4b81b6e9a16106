"""What a certificate counts on: rounding of proximal steps, where points lie, how many steps there are."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpglm import Bounds, Neighbours
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Huber, Logistic, Squared
from dpglm.penalties import L2, AnyFeature, Penalty, Submodular
from dpglm.queries import Minimiser, proximal_gradient
from dpglm.queries.proximal_gradient import Composite, Refined, Steps

UNIT = 2.0**-53


@dataclass(frozen=True)
class Inexact(Penalty):
    """strength / 2 norm(w)², with a proximal step that is off along feature 2 by as much as is allowed."""

    strength: float

    @property
    def strong_convexity(self):
        return self.strength

    def value(self, w):
        return self.strength / 2 * float(w @ w)

    def prox(self, w, step):
        shrunk = w / (1 + step * self.strength)
        off = 0.99 * (8 * len(w) + 16) * UNIT * np.linalg.norm(shrunk)
        return shrunk + off * np.eye(len(w))[2]


def test_a_point_is_certified_within_a_norm_and_not_within_a_distance_of_the_start():
    """The proof bounds the rounding of a point by its norm: a start away from 0 must not add to it."""
    strength, start = 0.1, np.array([10.0])
    function = Composite(
        lambda w: w - 10.5, lambda w, step: (w + step * strength * start) / (1 + step * strength),
        lambda v: v, smoothness=1.0, strength=strength,
    )  # fmt: skip
    minimiser = (10.5 + strength * 10.0) / (1 + strength)  # 0.45 from the start
    assert proximal_gradient._fast(function, start, 1e-6, farthest=1.0) is None
    found = proximal_gradient._fast(function, start, 1e-6, farthest=minimiser)
    assert abs(found[0] - minimiser) <= 1e-6 / strength


@pytest.mark.parametrize("p", [30, 150])
@pytest.mark.parametrize("push", [0.5, 20.0])
def test_a_proximal_step_that_is_off_by_p_roundings_stays_within_the_declared_error(p, push):
    """The records have curvature along feature 0 only; the linear term pulls along feature 1."""
    n, strength, clip = 300, 2e-5, 1.0
    query = Minimiser(Squared(), clip, Inexact(strength), n, p, 1.0, push=push)
    X, linear = np.eye(p)[np.zeros(n, dtype=int)], -push * np.eye(p)[1]
    data = as_data(X, np.full(n, 0.5), Bounds(row_norm=1.0, target=(-1, 1)))
    found = query(data, linear, np.zeros(p))
    exact = [Fraction(0)] * p
    exact[0] = Fraction(1, 2) / (1 + Fraction(strength))
    exact[1] = Fraction(push) / Fraction(strength)
    distance = math.hypot(*(float(Fraction(float(a)) - b) for a, b in zip(found, exact, strict=True)))
    assert distance <= query.error(push)
    if push > clip:
        # Allowing for a few roundings of the proximal step, whatever p is, would not have been enough.
        few = 2 * UNIT * n * (n + (p + 8) * (1 + 1 / strength)) * (1 + push / clip)
        assert distance > (1e-8 + 2 * few) * clip / (n * strength)


def test_what_the_penalty_says_of_its_proximal_step_is_in_the_sensitivity():
    query = Minimiser(Logistic(), 0.5, Submodular(0.0, AnyFeature(), l2=0.01), 50, 20, 1.0)
    products = 17 / 16 * (20 + 4 + 2 * (8 * 20 + 16)) * (1 + 0.25 / 0.01)
    rounding = 50 * UNIT * (20 + 32 + products)
    for neighbours in Neighbours:
        exact = neighbours.records_moved * 0.5 / (50 * 0.01)
        error = (1e-8 + 2 * rounding) * 0.5 / (50 * 0.01)
        assert query.sensitivity(neighbours) - exact == pytest.approx(2 * error, rel=1e-5)


def test_a_point_farther_out_than_any_minimiser_is_not_certified(monkeypatch):
    """Where a step undoes any distance the subgradient vanishes, but rounding grows with the distance."""
    function = Composite(lambda w: w, lambda w, step: w / (1 + 0.5 * step), lambda v: v, 1.0, 0.5)
    monkeypatch.setattr(proximal_gradient, "_SAFETY", 1.0)
    ends = iter([1e9, 1.0])
    monkeypatch.setattr(proximal_gradient, "accelerated", lambda *rest: (np.array([next(ends)]), 0.0))
    assert proximal_gradient._fast(function, np.zeros(1), 1e-6, 1.0) == pytest.approx(0.0)
    assert next(ends, None) is None  # the first end was passed over


# Steps.


def counted(query, monkeypatch):
    """How many steps a search takes if no end of fast steps is ever certified."""
    taken, step = [], Steps.__call__
    monkeypatch.setattr(Steps, "__call__", lambda self, w: taken.append(1) or step(self, w))
    monkeypatch.setattr(Composite, "subgradient", lambda self, w, step: (w, math.inf))
    monkeypatch.setattr(Refined, "certify", lambda self, d: (d, math.inf, 0.0))
    n, p = query.n_records, query.n_features
    X = np.random.default_rng(0).standard_normal((n, p))
    data = as_data(X, X[:, 0], Bounds(row_norm=1.0, target=(-1, 1)))
    query(data, np.zeros(p), np.zeros(p))
    return len(taken)


def test_fast_steps_give_up_after_about_as_many_as_are_enough_for_any_table(monkeypatch):
    query = Minimiser(Squared(), 0.5, L2(1e-3), 20, 3, 1.0)
    sure = proximal_gradient.fallback_steps(1 + 1 / 1e-3, 0.5 / query.tolerance(0.0))
    assert 1000 < sure <= counted(query, monkeypatch) <= 8 * sure


@pytest.mark.parametrize("n", [10, 1000])
def test_more_steps_than_anyone_waits_for_are_refused_with_the_remedy(n):
    query = Minimiser(Logistic(), 0.5, L2(1e-9), n, 3, 1.0)
    for neighbours in Neighbours:
        with pytest.raises(UnsupportedProblem, match="steps.*stronger L2 part.*quadratic"):
            query.sensitivity(neighbours)
        assert math.isfinite(replace(query, quadratic=1e-4).sensitivity(neighbours))


def refusal(query, push):
    """Why the query refuses such a linear term; nothing if it does not."""
    try:
        return "" if query.error(push) > 0 else "no error at all"
    except UnsupportedProblem as refused:
        return str(refused)


@pytest.mark.parametrize("n", [10**k for k in range(1, 10)])
@pytest.mark.parametrize("loss", [Logistic(), Squared(), Huber(0.5)], ids=lambda loss: loss.name)
def test_no_default_penalty_needs_so_many_steps(n, loss):
    """C = 1 and alpha = 1 are L2 parts of 1 / n."""
    for p, push in product((1, 10, 1000), (0.0, 0.1)):
        reason = refusal(Minimiser(loss, 1.0, L2(1 / n), n, p, 1.2, hold=1 / n), push)
        assert reason == ""


# A clip that no gradient reaches.


@pytest.mark.parametrize("radius", [0.5, 3.0])
@pytest.mark.parametrize("times", [0.3, 1.0, 1.5, 100.0])
def test_the_curvature_that_is_priced_bounds_that_of_every_slope(radius, times):
    """Slope a of a row of full length has the gradient norm t times the clip, and curvature a (1 - a)."""
    query = Minimiser(Logistic(), times * radius, L2(0.1), 10, 3, radius)
    facts = query.perturbation(Neighbours.ZERO_OUT)
    assert facts["slopes"] == "logistic"
    slope = np.linspace(0, 1, 1001)
    share = slope * radius / query.clip
    inside = share <= 1
    priced = 4 * facts["curvature"] * share / facts["reach"] * (1 - share / facts["reach"])
    true = slope * (1 - slope) * radius**2 / (10 * 0.1)
    assert (true[inside] <= priced[inside] + 1e-12 * true.max()).all()
    assert inside.sum() >= 300


@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_clip_above_every_gradient_is_the_largest_gradient(neighbours):
    largest = Minimiser(Logistic(), 2.0, L2(0.1), 10, 3, 2.0)
    above = replace(largest, clip=7.0)
    assert above.perturbation(neighbours) == largest.perturbation(neighbours)
    assert above.sensitivity(neighbours) == largest.sensitivity(neighbours)
    assert replace(largest, loss=Squared(), clip=7.0).clip == 7.0  # nothing bounds its slopes

"""Minimisers: their certificate, on every path to it, and how far one record moves them."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Neighbours
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Huber, Logistic, Poisson, SmoothedHinge, Squared
from dpglm.mechanisms import Gaussian, LinearTerm
from dpglm.penalties import L1, L2, Box, ElasticNet, GroupL2, Hierarchy, L1Ball, Submodular, Zero
from dpglm.penalties.set_functions import AnyFeature, Cardinality, Custom, GroupCover, Ordered, Range
from dpglm.privacy import PUBLIC_SIZE
from dpglm.problem import Problem
from dpglm.queries import DualVertices, Minimiser, proximal_gradient
from dpglm.queries import minimiser as objective_module
from dpglm.queries.base import Exact, Opening
from dpglm.queries.minimiser import TOLERANCE
from dpglm.solvers.perturbation import minimiser

N, P = 30, 4
SETS = {
    "cardinality": Cardinality(),
    "any feature": AnyFeature(),
    "ordered": Ordered([1.0, 0.7, 0.2, 0.1]),
    "groups": GroupCover([[0, 1], [1, 2], [3]]),
    "range": Range(P),
    "custom": Custom(lambda features: math.sqrt(len(features)), P),
}
PENALTIES = {
    "L2": (L2(0.05), 0.0),
    "elastic net": (ElasticNet(0.02, 0.05), 0.0),
    "L1 with quadratic": (L1(0.02), 0.05),
    "box with quadratic": (Box(-0.1, 0.3), 0.05),
    "box without 0": (Box(0.2, 0.6), 0.05),
    "ball with quadratic": (L1Ball(0.4), 0.05),
    "nothing but quadratic": (Zero(), 0.05),
    "L2 with quadratic": (L2(0.02), 0.03),
    "sparse groups": (GroupL2(0.02, [[0, 2], [1, 3]], l1=0.01, l2=0.05), 0.0),
    "hierarchy with quadratic": (Hierarchy(0.02, [-1, 0, 1, 1]), 0.05),
    **{name: (Submodular(0.02, function, l2=0.05), 0.0) for name, function in SETS.items()},
}
LOSSES = [Logistic(), Squared(), Huber(0.7), SmoothedHinge(0.5), Poisson(max_rate=3.0)]
FORMS = {"dense": np.array, "CSR": sp.csr_array, "CSC": sp.csc_array, "float32": np.float32}


def bounds_of(loss, row_norm=1.0):
    return Bounds(row_norm=row_norm, target=None if loss.kind == "classification" else (0.0, 2.0))


def table(seed, loss, n=N, p=P):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 0.7
    y = X @ np.linspace(-2, 2, p) + rng.standard_normal(n)
    return X, np.sign(y) if loss.kind == "classification" else np.round(np.abs(y))


def asked(problem, n, p, clip, quadratic, linear=None):
    """The query with what is public about it."""
    query = minimiser(problem, n, p, clip, quadratic)
    start = problem.start(p)
    linear = np.zeros_like(start) if linear is None else linear
    return replace(query, push=query.push + float(np.linalg.norm(linear))), linear, start


def scaled_rows(X, y, problem):
    """Rows, limits of slopes and targets as dense arrays, by plain NumPy."""
    X, y = np.array(X, dtype=float), np.array(y, dtype=float)
    null = ~(np.isfinite(X).all(axis=1) & np.isfinite(y))
    X[null], y[null] = 0.0, 0.0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True) / problem.bounds.row_norm, 1.0)
    if problem.bounds.target is not None:
        y = np.clip(y, *problem.bounds.target)
    if problem.fit_intercept:
        X = np.column_stack([X, np.where(null, 0.0, problem.constant(X.shape[1]))])
    return X, y


def reference(problem, X, y, clip, quadratic, linear):
    """The minimiser to about 1e-13, by proximal steps of another program from another start."""
    rows, y = scaled_rows(X, y, problem)
    n, p = X.shape
    with np.errstate(divide="ignore"):
        limit = clip / np.linalg.norm(rows, axis=1)
    strength = problem.penalty.strong_convexity + quadratic
    centre = problem.start(p)
    step = 1 / (problem.loss.smoothness() * max(np.linalg.norm(rows, 2) ** 2 / n, 1e-3))
    w = 0.1 * np.random.default_rng(5).standard_normal(len(centre))
    for _ in range(100_000):
        slopes = np.clip(problem.loss.derivative(rows @ w, y), -limit, limit)
        moved = w - step * (rows.T @ slopes / n + linear)
        new = np.empty_like(w)
        shrink = 1 + step * quadratic
        new[:p] = problem.penalty.prox(moved[:p] / shrink, step / shrink)
        if problem.fit_intercept:
            new[p] = (moved[p] + step * strength * centre[p]) / (1 + step * strength)
        if np.linalg.norm(new - w) <= 1e-13 * step * strength:
            return new
        w = new
    raise AssertionError("the reference did not converge")


def distance(problem, X, y, clip=0.4, quadratic=0.0, linear=None, form=np.array):
    """How far the answer is from the reference, over what the certificate allows."""
    query, linear, start = asked(problem, *X.shape, clip, quadratic, linear)
    records = as_data(form(X), y, problem.bounds, problem.constant(X.shape[1]))
    found = query(records, linear, start)
    best = reference(problem, np.array(form(X).astype(float)) if form is np.float32 else X, y,
                     clip, quadratic, linear)  # fmt: skip
    return np.linalg.norm(found - best) / (TOLERANCE * clip / (len(y) * query.strength))


def no_fast_path(monkeypatch):
    monkeypatch.setattr(proximal_gradient, "_fast", lambda *arguments: None)
    monkeypatch.setattr(proximal_gradient, "_refine", lambda *arguments: None)


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "sure"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", PENALTIES)
def test_every_penalty_is_minimised_as_closely_as_is_certified(name, fit_intercept, fast, monkeypatch):
    if not fast:
        no_fast_path(monkeypatch)
    penalty, quadratic = PENALTIES[name]
    loss = LOSSES[len(name) % len(LOSSES)]
    problem = Problem(loss, penalty, bounds_of(loss), fit_intercept)
    assert distance(problem, *table(1, loss), quadratic=quadratic) <= 1 + 1e-6


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "sure"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("form", FORMS)
def test_every_loss_and_layout_is_minimised_as_closely_as_is_certified(loss, form, fast, monkeypatch):
    if not fast:
        no_fast_path(monkeypatch)
    problem = Problem(loss, ElasticNet(0.01, 0.05), bounds_of(loss))
    linear = np.linspace(-0.2, 0.3, P + 1)
    assert distance(problem, *table(2, loss), linear=linear, form=FORMS[form]) <= 1 + 1e-6


def awkward_tables():
    X, y = table(3, Logistic())
    empty = X.copy()
    empty[:, [0, 2]] = 0.0
    null = X.copy()
    null[::3, 1], null[1, 2] = np.nan, np.inf
    start = np.random.default_rng(0).standard_normal(P)  # where the power iteration starts
    across = X - np.outer(X @ start, start) / (start @ start)
    whole = np.tile(np.round(3 * X[0, 0]) + 1.0, (N, 1)) * np.array([1.0, -1.0, 0.0, 0.0])
    mixed = across + 1e-9 * X[:, :1] * start
    return {
        "wide": (np.random.default_rng(4).standard_normal((5, 12)), y[:5]),
        "one row": (X[:1], y[:1]),
        "one number": (X[:1, :1], y[:1]),
        "empty columns": (empty, y),
        "nothing": (np.zeros((N, P)), y),
        "all null": (np.full((N, P), np.nan), y),
        "some null": (null, np.where(np.arange(N) == 4, np.nan, y)),
        "tiny": (1e-9 * X, y),
        "vanishing": (1e-160 * X, y),
        "huge": (1e90 * X, y),
        "one long row": (np.vstack([1e60 * X[:1], 1e-6 * X[1:]]), y),
        "orthogonal to the power iteration": (across, y),
        "nearly orthogonal to it": (mixed, y),
        "one direction": (whole, y),
        "separable": (X, np.where(X[:, 0] > 0, 1.0, -1.0)),
    }


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "sure"])
@pytest.mark.parametrize("name", awkward_tables())
def test_awkward_tables_are_minimised_as_closely_as_is_certified(name, fast, monkeypatch):
    if not fast:
        no_fast_path(monkeypatch)
    for fit_intercept in (True, False):
        problem = Problem(Logistic(), ElasticNet(0.001, 0.02), Bounds(row_norm=1.0), fit_intercept)
        assert distance(problem, *awkward_tables()[name]) <= 1 + 1e-6


def test_a_power_iteration_that_sees_no_curvature_still_leads_to_the_certificate(monkeypatch):
    monkeypatch.setattr(proximal_gradient, "largest_curvature", lambda curve, dimension: 1e-6)
    problem = Problem(Squared(), L2(0.05), Bounds(row_norm=1.0, target=(-2, 2)))
    assert distance(problem, *table(6, Squared())) <= 1 + 1e-6


@pytest.mark.parametrize("given", [1e-9, 1e-3, 1e3, 1e14, 1e18, math.inf, math.nan])
def test_whatever_the_power_iteration_says_what_is_returned_is_near(given, monkeypatch):
    """Steps that are far too long, far too short or no numbers at all: the certificate must not be fooled."""
    monkeypatch.setattr(proximal_gradient, "largest_curvature", lambda curve, dimension: given)
    # The intercept starts at 4, where short steps are lost.
    problem = Problem(Squared(), L2(0.05), Bounds(row_norm=1.0, target=(0, 4)))
    draw = np.random.default_rng(0)
    X, y = draw.standard_normal((30, 3)), draw.uniform(-1, 3, 30)
    with np.errstate(all="ignore"):
        assert distance(problem, X, y) <= 1 + 1e-6


def test_the_sure_path_needs_the_steps_that_it_takes(monkeypatch):
    """On the slowest table, where the error is as large as may be, a tenth of the steps is not enough."""
    no_fast_path(monkeypatch)
    problem = Problem(Squared(), L2(0.05), Bounds(row_norm=1.0, target=(-2, 2)), fit_intercept=False)
    X, y = np.zeros((N, P)), np.ones(N)
    linear = np.array([0.3, 0.0, 0.0, 0.0])
    assert distance(problem, X, y, linear=linear) <= 1
    steps = []
    count = proximal_gradient.math.ceil
    monkeypatch.setattr(
        proximal_gradient.math, "ceil", lambda number: steps.append(count(number / 10)) or steps[-1]
    )
    assert distance(problem, X, y, linear=linear) > 1 and steps


# How far one record moves a minimiser.


def share_moved(query, problem, first, second, bystanders, neighbours):
    """How far two neighbours are apart, over the sensitivity, without a linear term."""
    X, y = bystanders
    p = X.shape[1]
    if neighbours is Neighbours.ZERO_OUT:
        second = np.full(p, np.nan), 0.0
    start = problem.start(p)
    ends = [
        query(
            as_data(np.vstack([X, row]), np.append(y, target), problem.bounds, problem.constant(p)),
            np.zeros_like(start),
            start,
        )
        for row, target in (first, second)
    ]
    return float(np.linalg.norm(ends[0] - ends[1])) / float(query.sensitivity(neighbours))


def pulled(problem, n, radius):
    """Bystanders that pull the minimiser to where both of two nearly parallel records have full slopes."""
    lean = 0.3 * radius
    shared = math.sqrt(radius**2 - lean**2)
    X = np.tile([0.0, radius], (n - 1, 1))
    return (X, np.ones(n - 1)), (np.array([shared, -lean]), 1.0), (np.array([shared, lean]), -1.0)


def random_pair(rng, loss):
    n, p = int(rng.integers(2, 12)), int(rng.integers(1, 6))
    l2 = 10 ** rng.uniform(-2, 1)
    penalty = [L2(l2), ElasticNet(0.02, l2), Submodular(0.05, AnyFeature(), l2)][rng.integers(3)]
    quadratic = 0.0 if rng.random() < 0.7 else l2
    problem = Problem(loss, penalty, bounds_of(loss, 10 ** rng.uniform(-1, 1)), bool(rng.random() < 0.5))
    X = rng.standard_normal((n + 1, p)) * 10 ** rng.uniform(-1, 2)
    X *= np.exp(rng.standard_normal((n + 1, 1)))
    X[n] = -X[n - 1] if rng.random() < 0.5 else X[n]
    y = rng.choice([-1.0, 1.0], n + 1) if loss.kind == "classification" else rng.uniform(-9, 9, n + 1)
    if rng.random() < 0.1:
        X[rng.integers(n + 1), rng.integers(p)] = rng.choice([np.nan, np.inf, 1e300, 1e-200])
    largest = min(problem.slope_bound(), 3.0) * problem.radius(p)
    query = minimiser(problem, n, p, largest * 10 ** rng.uniform(-2, 0), quadratic)
    return query, problem, (X[n - 1], y[n - 1]), (X[n], y[n]), (X[: n - 1], y[: n - 1])


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize("loss", [*LOSSES[:3], Poisson(max_rate=2.0)], ids=lambda loss: loss.name)
def test_no_neighbour_moves_the_minimiser_farther_than_it_says(loss, neighbours):
    """P7, over a thousand pairs in all."""
    rng = np.random.default_rng(8)
    reached = [share_moved(*random_pair(rng, loss), neighbours) for _ in range(130)]
    assert max(reached) <= 1 + 1e-9
    assert np.mean(np.array(reached) > 0.05) > 0.3  # the pairs are no trifles


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize(
    ("loss", "clip", "l2"),
    [(Logistic(), 0.5, 0.27), (Logistic(), 0.3, 0.1), (Squared(), 0.5, 0.4), (Huber(0.6), 0.6, 0.4)],
    ids=str,
)
def test_some_neighbours_move_it_by_nearly_as_far_without_a_linear_term(loss, clip, l2, neighbours):
    target = None if loss.kind == "classification" else (-1, 1)
    problem = Problem(loss, L2(l2), Bounds(row_norm=1.0, target=target), fit_intercept=False)
    bystanders, first, second = pulled(problem, 20, 1.0)
    query = minimiser(problem, 20, 2, clip)
    share = share_moved(query, problem, first, second, bystanders, neighbours)
    assert 0.9 <= share <= 1 + 1e-9


@pytest.mark.parametrize("function", SETS, ids=str)
def test_a_norm_in_the_penalty_does_not_let_a_record_move_it_farther(function):
    rng = np.random.default_rng(9)
    problem = Problem(Logistic(), Submodular(0.01, SETS[function], l2=0.1), Bounds(row_norm=1.0), False)
    query = minimiser(problem, 8, P, 0.3)
    largest = 0.0
    for _ in range(10):
        X, y = rng.standard_normal((7, P)), rng.choice([-1.0, 1.0], 7)
        row = rng.standard_normal(P) * 5
        for neighbours in PUBLIC_SIZE:
            share = share_moved(query, problem, (row, 1.0), (-row, 1.0), (X, y), neighbours)
            largest = max(largest, share)
    assert 0.3 <= largest <= 1 + 1e-9


def test_the_test_would_notice_half_the_sensitivity():
    class Halved(Minimiser):
        def sensitivity(self, neighbours):
            return super().sensitivity(neighbours) / 2

    problem = Problem(Logistic(), L2(0.27), Bounds(row_norm=1.0), fit_intercept=False)
    bystanders, first, second = pulled(problem, 20, 1.0)
    true = minimiser(problem, 20, 2, 0.5)
    query = Halved(**{each.name: getattr(true, each.name) for each in fields(true)})
    assert share_moved(query, problem, first, second, bystanders, Neighbours.REPLACE_ONE) > 1.8


# The zeros of a null record, and what is refused.


def test_a_null_record_is_as_if_it_had_no_gradient():
    problem = Problem(Logistic(), L2(0.1), Bounds(row_norm=1.0))
    X, y = table(10, Logistic())
    query, linear, start = asked(problem, N, P, 0.5, 0.0)
    zero = X.copy()
    zero[0] = 0.0
    null = X.copy()
    null[0] = np.nan
    ends = [query(as_data(rows, y, problem.bounds, 0.5), linear, start) for rows in (null, X, zero)]
    kept = replace(query, n_records=N - 1, table_size=N - 1, clip=query.clip)
    fewer = Problem(Logistic(), L2(0.1 * N / (N - 1)), Bounds(row_norm=1.0))
    without = replace(kept, penalty=fewer.penalty, hold=0.1 * N / (N - 1))
    assert np.allclose(ends[0], without(as_data(X[1:], y[1:], problem.bounds, 0.5), linear, start), atol=1e-6)
    assert not np.allclose(ends[0], ends[1], atol=1e-4)
    assert not np.allclose(ends[0], ends[2], atol=1e-4)  # a zero row still has a constant feature


@pytest.mark.parametrize("penalty", [Zero(), L1(0.1), L1Ball(1.0), Box(-1, 1), Submodular(0.1, AnyFeature())])
def test_a_minimiser_without_an_l2_part_is_refused_with_the_way_out(penalty):
    with pytest.raises(UnsupportedProblem, match="without an L2 part.*ElasticNet"):
        Minimiser(Logistic(), 0.5, penalty, 10, 3, 1.0)


def test_an_intercept_that_nothing_holds_is_refused():
    with pytest.raises(UnsupportedProblem, match="L2 part"):
        Minimiser(Logistic(), 0.5, L2(1.0), 10, 3, 1.0, hold=0.0)


def test_an_intercept_that_is_held_more_strongly_than_the_features_is_refused():
    """The bound on rounding is proven for the others only."""
    with pytest.raises(ValueError, match="hold must be at most the strength 1 of the L2 part, got 1.5"):
        Minimiser(Logistic(), 0.5, L2(1.0), 10, 3, 1.0, hold=1.5)


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_what_double_precision_does_not_find_is_refused_before_any_record_is_read(neighbours):
    query = Minimiser(Logistic(), 0.5, Submodular(0.1, AnyFeature(), l2=1e-12), 10_000, 3, 1.0)
    with pytest.raises(UnsupportedProblem, match="double precision"):
        query.sensitivity(neighbours)
    assert math.isfinite(replace(query, penalty=L2(1e-6)).sensitivity(neighbours))
    with pytest.raises(UnsupportedProblem, match="double precision"):
        replace(query, penalty=L2(0.1), push=1e15).sensitivity(neighbours)  # the answer itself is a double


@pytest.mark.parametrize("size", [(9, 3), (10, 4)])
def test_a_table_of_another_size_than_planned_is_refused(size):
    query = Minimiser(Logistic(), 0.5, L2(0.1), 10, 3, 1.0)
    data = as_data(np.zeros(size), np.ones(size[0]), Bounds(row_norm=1.0))
    with pytest.raises(ValueError, match="another size"):
        query(data, np.zeros(size[1]), np.zeros(size[1]))


@pytest.mark.parametrize("scale", [1.001, 1e6, math.nan, math.inf])
@pytest.mark.parametrize("where", [0, 1])
def test_a_linear_term_or_start_larger_than_planned_is_refused(where, scale):
    query = Minimiser(Logistic(), 0.5, L2(0.1), 10, 3, 1.0, push=0.2)
    data = as_data(np.zeros((10, 3)), np.ones(10), Bounds(row_norm=1.0))
    public = [np.zeros(3), np.zeros(3)]
    public[where] = np.array([0.2 * scale / (1.0, 0.1)[where], 0.0, 0.0])
    with pytest.raises(ValueError, match="larger than planned"):
        query(data, *public)


def test_scores_of_vertices_are_the_minimiser_along_each_of_them():
    inner = Minimiser(Logistic(), 0.5, L2(0.1), N, P, math.hypot(1, 0.5), hold=0.1)
    data = as_data(*table(11, Logistic()), Bounds(row_norm=1.0), 0.5)
    public = np.zeros(P + 1), np.zeros(P + 1)
    theta, scores = inner(data, *public)[:P], DualVertices(inner, 0.3)(data, *public)
    vertices = 0.3 * np.vstack([np.eye(P), -np.eye(P)])
    assert np.allclose(scores, vertices @ theta, rtol=1e-12)
    for neighbours in PUBLIC_SIZE:
        each = DualVertices(inner, 0.3).sensitivity(neighbours)
        assert np.array_equal(each, np.full(2 * P, 0.3 * inner.sensitivity(neighbours)))


def test_an_opened_minimiser_tells_nothing_but_what_it_releases():
    query = Minimiser(Logistic(), 0.5, L2(0.1), N, P, 1.0)
    data, seen = as_data(*table(12, Logistic()), Bounds(row_norm=1.0)), []

    class Told(Exact):
        def give(self, answer, sensitivity, mechanism):
            seen.append(sensitivity)
            return "released"

    def opened(mechanism):
        return query.open(Opening(data, np.zeros(P), Neighbours.REPLACE_ONE, Told(), mechanism))

    facts = query.perturbation(Neighbours.REPLACE_ONE)
    assert opened(LinearTerm(1.0, **facts)).release() == "released" and seen == [2 * 0.5]
    wrong = {
        "curvature": 0.5 * facts["curvature"],
        "slopes": "signed",
        "reach": 1.0,
        "neighbours": "zero-out",
    }
    for name, value in wrong.items():
        with pytest.raises(ValueError, match="another objective"):
            opened(LinearTerm(1.0, **facts | {name: value}))
    with pytest.raises(ValueError, match="another objective"):
        opened(Gaussian(1.0))
    assert len(seen) == 1


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_the_sensitivity_is_that_of_the_exact_minimiser_and_twice_the_error(neighbours):
    query = Minimiser(Squared(), 0.5, L2(0.1), N, P, 2.0, quadratic=0.3, hold=0.2, push=7.0)
    # What a certified point loses when it becomes a double; the certificate itself hardly rounds.
    double = 2.0**-53 * 17 / 16 * (7.0 + 0.5) / 0.2
    assert query.error(7.0) == pytest.approx(TOLERANCE * 0.5 / (N * 0.2) + double, rel=2e-6)
    exact = neighbours.records_moved * 0.5 / (N * 0.2)
    assert query.sensitivity(neighbours) == pytest.approx(exact + 2 * query.error(7.0), rel=1e-14)


def test_clips_whose_squares_leave_the_range_of_doubles_are_refused():
    for clip in (1e-120, 1e120, math.nan):
        with pytest.raises(ValueError, match="clip must be from"):
            Minimiser(Logistic(), clip, L2(0.1), 10, 3, 1.0)
    assert Minimiser(Logistic(), math.inf, L2(0.1), 10, 3, 1.0).clip == 1.0
    with pytest.raises(UnsupportedProblem, match="clip must be finite"):
        Minimiser(Squared(), math.inf, L2(0.1), 10, 3, 1.0)
    with pytest.raises(UnsupportedProblem, match="Bounds"):
        Minimiser(Logistic(), 0.5, L2(0.1), 10, 3, math.inf)


def test_momentum_against_a_wall_leads_to_a_certificate_by_the_fast_way(monkeypatch):
    """Clipped slopes make the objective flat, then steep: steps grow more than tenfold on the way."""
    monkeypatch.setattr(
        proximal_gradient, "_fallback", lambda *arguments: pytest.fail("the fallback was taken")
    )
    problem = Problem(Huber(0.01), L2(1e-7), Bounds(row_norm=1.0, target=(-1, 1)), fit_intercept=False)
    y = np.where(np.arange(200) < 101, 1.0, -1.0)
    query, start = minimiser(problem, 200, 1, 0.01), problem.start(1)
    w = query(as_data(np.ones((200, 1)), y, problem.bounds), np.zeros(1), start)
    # 101 records pull up by 0.01 each, 99 down, until the former are within 0.01 of their target.
    assert w == pytest.approx(1 - 0.01 * 99 / 101, abs=1e-4)


def test_records_that_were_clipped_into_other_bounds_are_refused():
    query = Minimiser(Logistic(), 0.5, L2(0.1), N, P, 1.0)
    X, y = table(13, Logistic())
    with pytest.raises(ValueError, match="not clipped into the bounds"):
        query(as_data(5 * X, y, Bounds(row_norm=2.0)), np.zeros(P), np.zeros(P))
    assert query(as_data(5 * X, y, Bounds(row_norm=1.0)), np.zeros(P), np.zeros(P)).shape == (P,)


def test_the_certificate_asks_for_what_the_sensitivity_is_made_of(monkeypatch):
    """A public linear term is part of the push already, and a random one comes on top of it."""
    asked_for = []
    keep = objective_module.certified_minimiser
    monkeypatch.setattr(
        objective_module, "certified_minimiser", lambda *rest: asked_for.append(rest[2:4]) or keep(*rest)
    )
    query = Minimiser(Logistic(), 0.5, L2(0.1), N, P, 1.0, push=0.3)
    data, linear = as_data(*table(14, Logistic()), Bounds(row_norm=1.0)), np.array([0.3, 0.0, 0.0, 0.0])
    query(data, linear, np.zeros(P))
    objective_module.Objective(query, data, np.zeros(P), np.zeros(P)).minimiser(N * linear)
    assert asked_for == [
        (query.tolerance(0.3), query.farthest(0.3)),
        (query.tolerance(0.6, closely=True), query.farthest(0.6)),
    ]
    assert query.farthest(0.3) < query.farthest(0.6)
    weak = replace(query, penalty=L2(1e-6))
    assert weak.tolerance(0.3, closely=True) == 2.0**-12 / weak.condition * 0.5 / N < weak.tolerance(0.3)


@pytest.mark.parametrize("row_norm", [1e-9, 1e-3])
def test_rows_so_short_that_the_penalty_is_all_are_no_trouble(row_norm, monkeypatch):
    problem = Problem(Logistic(), L2(1.0), Bounds(row_norm=row_norm))
    X, y = table(15, Logistic())
    query, linear, start = asked(problem, N, P, row_norm / 2, 0.0)
    ends = [query(as_data(X, y, problem.bounds, row_norm / 2), linear, start)]
    no_fast_path(monkeypatch)
    ends.append(query(as_data(X, y, problem.bounds, row_norm / 2), linear, start))
    assert np.linalg.norm(ends[0] - ends[1]) <= 2 * query.error(query.push)

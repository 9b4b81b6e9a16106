"""Clips that double precision cannot enforce are refused, and all others are enforced."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.data.records import finite
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Huber, Logistic, Poisson, SmoothedHinge, Squared
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.penalties import L2, L1Ball, Submodular, Zero
from dpglm.penalties.set_functions import Cardinality
from dpglm.problem import Problem
from dpglm.queries import (
    ClippedGradient,
    CoordinateScores,
    CoordinateSums,
    DualStep,
    InterceptSlope,
    VertexScores,
)
from dpglm.solvers import SOLVERS, CoordinateDescent, DualFrankWolfe, FrankWolfe, Newton

REPLACE = Neighbours.REPLACE_ONE
FREE = (0.0, 0.0, -math.inf, math.inf)
QUERIES = {
    "gradient": lambda clip: ClippedGradient(Logistic(), clip),
    "dual step": lambda clip: DualStep(Logistic(), clip, 1.0, 1.0),
    "vertices": lambda clip: VertexScores(Logistic(), clip, 2, 1.0),
    "intercept": lambda clip: InterceptSlope(Logistic(), clip),
    "coordinates": lambda clip: CoordinateSums(Logistic(), np.array([1.0, clip])),
    "scores": lambda clip: CoordinateScores(
        Logistic(), np.array([1.0, clip]), np.ones(2), "gs-q", FREE, np.ones(2)
    ),
}


@pytest.mark.parametrize("clip", [5e-324, 1e-201, 1e201, 0.0, -1.0, math.nan])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_refuses_a_clip_that_it_cannot_enforce(query, clip):
    with pytest.raises(ValueError, match=r"clip.* must be from 1e-\d+ to 1e\+\d+, got "):
        QUERIES[query](clip)


@pytest.mark.parametrize("query", ["gradient", "dual step", "vertices"])
def test_queries_that_scale_rows_or_bound_many_sums_refuse_more(query):
    for clip in (9e-101, 1.1e100):
        with pytest.raises(ValueError, match="clip must be from 1e-100 to 1e") as refused:
            QUERIES[query](clip)
        assert str(refused.value).endswith(f"got {clip!r}")


@pytest.mark.parametrize("clip", [1e-200, 9e-101, 1.1e100, 1e300])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solver_refuses_a_clip_that_cannot_be_enforced(solver, clip):
    with pytest.raises(ValueError, match="clip must be from 1e-100 to 1e"):
        SOLVERS[solver](clip=clip)
    assert SOLVERS[solver](clip=1e-100).clip == 1e-100


@pytest.mark.parametrize("layout", [np.array, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("clip", [1e-100, 1e-70, 1.0])
@pytest.mark.parametrize("size", [1e-154, 1e-158, 1e-162, 1e-163, 1e-165, 1e-170])
def test_rows_whose_squares_underflow_add_no_more_than_the_clip(size, clip, layout):
    data = as_data(layout(np.array([[0.6 * size, 0.8 * size]])), [9e99], Bounds(row_norm=1.0))
    for query in (ClippedGradient(Squared(), clip), DualStep(Squared(), clip, 1.0, 1.0)):
        assert np.abs(query(data, np.zeros(2))).max() <= clip * (1 + 1e-9)


def test_slopes_of_any_size_become_slopes_of_at_most_1e150():
    slopes = np.array([math.nan, math.inf, -math.inf, 1e200, -1e308, 3.0])
    assert np.array_equal(finite(slopes), [0.0, 1e150, -1e150, 1e150, -1e150, 3.0])
    assert finite(slopes[-1:]) is not None and np.array_equal(finite(slopes[-1:]), [3.0])


def test_scores_whose_squares_would_underflow_are_refused():
    clip, curvature = np.full(2, 1e-100), np.full(2, 1e100)
    with pytest.raises(ValueError, match="clip over the root of the curvature"):
        CoordinateScores(Squared(), clip, curvature, "gs-q", FREE, np.ones(2))
    with pytest.raises(ValueError, match="curvature of a coordinate"):
        CoordinateScores(Squared(), np.ones(2), np.full(2, 1e-221), "gs-q", FREE, np.ones(2))


EXTREMES = [
    (loss, Bounds(row_norm=bound, target=target))
    for loss in (Logistic(), Squared(), Huber(1e-200), Huber(1e200), SmoothedHinge(1e-40), Poisson(1e50))
    for bound in (1e-50, 1.0, 1e50)
    for target in ((0.0, 1e50), (-1e-50, 1e-50), (0.0, 1e-200), (0.0, 5e-324))
]
PENALTIES = {Newton: Zero(), FrankWolfe: L1Ball(1.0), DualFrankWolfe: Submodular(1.0, Cardinality(), l2=1.0)}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_a_plan_at_extreme_bounds_has_a_clip_that_can_be_enforced_or_is_refused(solver):
    fine, why = 0, []
    for loss, bounds in EXTREMES:
        problem = Problem(loss, PENALTIES.get(solver, L2(1.0)), bounds)
        try:
            clip = solver().plan(problem, 1000, 3, Budget(1.0, 1e-6), REPLACE).clip
        except UnsupportedProblem as error:
            why.append(str(error))
        else:
            fine += 1
            assert 1e-100 <= clip <= 1e100
    known = (
        "the clip that follows from",
        "the largest slope of",
        "double precision does not find",
        "Newton needs",
        "PreconditionedDescent takes",
        "lower, upper, the penalty or the range of targets keeps",
        "steps of this length could take",
        "the penalty, its pull at the start, or noise is so large",
    )
    assert fine > 1 and len(why) > 5 and all(reason.startswith(known) for reason in why)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("layout", [np.asfortranarray, np.array], ids=["F", "C"])
def test_single_precision_does_not_limit_the_constant_feature(layout):
    problem = Problem(Squared(), L2(1e-3), Bounds(feature=1e39, target=(-1, 1)))
    table = np.random.default_rng(0).integers(-4, 5, (100, 2)) * 2.0**100  # exact in single precision
    solver, ends = CoordinateDescent(steps=12, clip=1.0), []
    plan = solver.plan(problem, 100, 2, Budget(1.0, 1e-5), REPLACE)
    assert problem.constant(2) > float(np.finfo(np.float32).max)
    for dtype in (np.float32, np.float64):
        data = as_data(layout(table.astype(dtype)), np.zeros(100), problem.bounds, problem.constant(2))
        ends.append(solver.run(plan, problem, Curator(data, REPLACE, Randomness(3))).w)
    assert np.isfinite(ends[0]).all() and np.array_equal(*ends)


def test_a_row_too_short_to_measure_moves_a_release_by_no_more_than_its_sensitivity():
    tables = np.zeros((2, 100, 1))
    tables[0, 0, 0] = 1e-163
    y = np.full(100, 9e99)
    query, ends = ClippedGradient(Squared(), 1e-100), []
    for X in tables:
        curator = Curator(as_data(X, y, Bounds(row_norm=1.0)), REPLACE, Randomness(0))
        ends.append(curator.release(query, Gaussian(1.0), np.zeros(1))[0])
    assert abs(ends[0] - ends[1]) <= 2e-100 * (1 + 1e-5)

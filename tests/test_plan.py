"""Plans are values: they survive strict JSON as they are, and a plan that lies is refused."""

import copy
import json
import math
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpglm import Bounds, Budget, Neighbours, solvers, strict
from dpglm.accounting import compose
from dpglm.losses import Logistic
from dpglm.mechanisms import BY_NAME, MECHANISMS, Gaussian, Laplace, LinearTerm, Round, Thresholded
from dpglm.mechanisms.sampling import Poisson
from dpglm.penalties import L2, AnyFeature, L1Ball, Submodular
from dpglm.plan import Plan, Release
from dpglm.problem import Problem

PENALTIES = {solvers.FrankWolfe: L1Ball(1.0), solvers.DualFrankWolfe: Submodular(0.01, AnyFeature(), l2=0.1)}
FEW = {
    solvers.GradientDescent: solvers.GradientDescent(steps=5, clip=0.5),
    solvers.PreconditionedDescent: solvers.PreconditionedDescent(steps=5),
    solvers.CoordinateDescent: solvers.CoordinateDescent(steps=6, second_moments="private"),
    solvers.GreedyCoordinateDescent: solvers.GreedyCoordinateDescent(steps=4),
    solvers.FrankWolfe: solvers.FrankWolfe(steps=5),
    solvers.DualCoordinateDescent: solvers.DualCoordinateDescent(steps=3, batch_size=400),
    solvers.DualFrankWolfe: solvers.DualFrankWolfe(steps=4),
    solvers.ObjectivePerturbation: solvers.ObjectivePerturbation(),
    solvers.OutputPerturbation: solvers.OutputPerturbation(),
}


def planned(solver, epsilon=1.0, neighbours=Neighbours.REPLACE_ONE, fits=2):
    problem = Problem(Logistic(), PENALTIES.get(type(solver), L2(0.1)), Bounds(row_norm=1.0))
    return solver.plan(problem, 400, 6, Budget(epsilon, 1e-6), neighbours, fits)


AUDITED = [solver.audit_cases()[0] for solver in solvers.SOLVERS.values()]
PLANS = [
    planned(solver, epsilon, neighbours)
    for solver in [
        *FEW.values(),
        solvers.GradientDescent(steps=5),
        solvers.GradientDescent(steps=5, batch_size=40),
    ]  # fmt: skip
    for neighbours in Neighbours
    for epsilon in (1.0, math.inf)
] + [
    solver.plan(case.problem, 400, case.bystanders[0].shape[1], Budget(epsilon, 1e-6), Neighbours.ZERO_OUT)
    for case in AUDITED
    for solver, epsilon in ((case.solver, 1.0), (type(case.solver)(), math.inf))
]
PRIVATE = [plan for plan in PLANS if plan.budget.private]


def named(plan):
    return f"{plan.solver}, {plan.neighbours.value}, {plan.budget.epsilon:g}"


def test_the_plans_of_this_file_are_of_all_solvers():
    assert {type(plan) for plan in PLANS} == {solver.plan_type for solver in solvers.SOLVERS.values()}


@pytest.mark.parametrize("plan", PLANS, ids=named)
def test_a_plan_survives_strict_json_with_its_price(plan):
    content = plan.to_json()
    json.loads(content, parse_constant=pytest.fail)
    for again in (Plan.from_json(content), Plan.from_dict(json.loads(content))):
        assert again == plan and again.price == plan.price and again.epsilon == plan.epsilon
        assert str(again) == str(plan) and again.to_json() == content
    assert pickle.loads(pickle.dumps(plan)) == plan == copy.deepcopy(plan)


NUMPY = [
    solvers.GradientDescent(
        steps=np.int64(3), clip=np.float64(0.3), step_size=np.float32(0.5), average=np.True_
    ),
    solvers.CoordinateDescent(steps=np.int32(3), clip=np.float32(0.3), periods=np.int64(2)),
    solvers.GreedyCoordinateDescent(
        steps=np.int64(3), clip=np.float64(0.3), step_size=np.float64(0.5),
        second_moments=np.full(6, 0.25, np.float32), warm_start=np.arange(6),
    ),
    solvers.FrankWolfe(
        steps=np.int64(3), step_size=np.float64(0.3), average=np.False_, refresh=np.float64(0.01)
    ),
    solvers.DualCoordinateDescent(
        batch_size=np.int64(50), clip=np.float64(0.3), steps=np.int64(3), overlap=np.float32(0.5),
        average=np.False_,
    ),
    solvers.DualFrankWolfe(steps=np.int64(3), clip=np.float64(0.3), sparse=np.False_, share=np.float64(0.5)),
    solvers.ObjectivePerturbation(clip=np.float64(0.3), quadratic=np.float64(0.01)),
    solvers.OutputPerturbation(clip=np.float32(0.3), sparse=np.False_),
]  # fmt: skip


@pytest.mark.parametrize("solver", NUMPY, ids=lambda solver: type(solver).__name__)
def test_settings_given_as_numpy_scalars_become_python_values(solver):
    holds_python_values(planned(solver, fits=np.int64(1)))


@pytest.mark.parametrize("case", AUDITED, ids=lambda case: type(case.solver).__name__)
def test_settings_of_audited_solvers_become_python_values(case):
    scalars = {bool: np.bool_, int: np.int64, float: np.float64}
    given = {
        name: scalars.get(type(value), lambda same: same)(value) for name, value in vars(case.solver).items()
    }
    solver, p = replace(case.solver, **given), np.int64(case.bystanders[0].shape[1])
    plan = solver.plan(case.problem, np.int64(400), p, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE, np.int64(2))
    holds_python_values(plan)


def holds_python_values(plan):
    kinds = {type(value) for value in [*plan.settings().values(), plan.n_records, plan.fits]}
    assert kinds <= {bool, int, float, str, tuple, type(None)}
    assert Plan.from_json(plan.to_json()) == plan


def changed(plan, path, value):
    """The stored plan with one place overwritten, by somebody who computes its digest anew."""
    values = plan.to_dict()
    place = values
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    if path == ("digest",):
        return values
    rest = {name: found for name, found in values.items() if name != "digest"}
    try:
        return strict.sealed(rest)
    except ValueError:  # what no JSON holds has no digest
        return values


def of(solver, **arguments):
    return planned(FEW[solver], **arguments)


GD, POISSON = of(solvers.GradientDescent), planned(solvers.GradientDescent(steps=5, clip=0.5, batch_size=40))
OBJECTIVE, FW = of(solvers.ObjectivePerturbation), of(solvers.FrankWolfe)
CD, GREEDY = of(solvers.CoordinateDescent), of(solvers.GreedyCoordinateDescent)
DUAL = of(solvers.DualCoordinateDescent)
DECLARED = planned(solvers.GreedyCoordinateDescent(steps=4, second_moments=[0.5] * 6, warm_start=[0.1] * 7))
FIRST = ("releases", 0)

ROUND = "releases", len(GREEDY.releases) - 1
PARTS = *ROUND, "parameters"
GAUSSIAN = {"mechanism": "Gaussian", "noise": 0.1, "parameters": {}}
LIES = [
    (GD, ("n_records",), -5, "n_records"),
    (GD, ("n_records",), 0, "n_records"),
    (GD, ("n_records",), 400.0, "n_records"),
    (GD, ("n_features",), True, "n_features"),
    (GD, ("n_features",), "6", "n_features"),
    (GD, ("fits",), 0, "fits"),
    (GD, ("fits",), -1, "fits"),
    (GD, ("fits",), 1.5, "fits"),
    (GD, ("fits",), True, "fits"),
    (GD, ("fits",), 3, "epsilon"),
    (GD, ("solver",), "gradient ascent", "solver"),
    (GD, ("solver",), ["gradient descent"], "solver"),
    (GD, ("solver",), "coordinate descent", "settings"),
    (GD, ("neighbours",), "other-tables", "neighbours"),
    (GD, ("neighbours",), None, "neighbours"),
    (GD, ("budget",), 1.0, "budget"),
    (GD, ("budget",), {"epsilon": 1.0}, "delta"),
    (GD, ("budget", "epsilon"), -3, "epsilon"),
    (GD, ("budget", "epsilon"), 0, "epsilon"),
    (GD, ("budget", "epsilon"), math.nan, "epsilon"),
    (GD, ("budget", "epsilon"), True, "epsilon"),
    (GD, ("budget", "epsilon"), "1.0", "epsilon"),
    (GD, ("budget", "epsilon"), 0.99, "epsilon must be at most 0.99"),
    (GD, ("budget", "delta"), 0, "delta"),
    (GD, ("budget", "delta"), 1, "delta"),
    (GD, ("budget", "delta"), "1e-6", "delta"),
    (GD, ("budget", "delta"), 1e-7, "epsilon"),
    (GD, ("budget", "gamma"), 1, "gamma"),
    (GD, ("releases",), [], "releases"),
    (GD, ("releases",), {}, "releases"),
    (GD, ("releases",), [1], "release"),
    (GD, (*FIRST, "count"), 0, "count"),
    (GD, (*FIRST, "count"), -5, "count"),
    (GD, (*FIRST, "count"), 2.5, "count"),
    (GD, (*FIRST, "count"), True, "count"),
    (GD, (*FIRST, "count"), "5", "count"),
    (GD, (*FIRST, "count"), 10**400, "count"),
    (GD, (*FIRST, "count"), 1, "steps"),
    (GD, (*FIRST, "entries"), 0, "entries"),
    (GD, (*FIRST, "entries"), -7, "entries"),
    (GD, (*FIRST, "entries"), 1.5, "entries"),
    (GD, (*FIRST, "sensitivity"), ["1", "1"], "sensitivity"),
    (GD, (*FIRST, "mechanism"), "Round", "noise"),
    (GD, (*FIRST, "parameters"), {"selection": GAUSSIAN}, "selection"),
    (GD, (*FIRST, "noise"), -1.0, "noise"),
    (GD, (*FIRST, "noise"), math.nan, "noise"),
    (GD, (*FIRST, "noise"), math.inf, "noise"),
    (GD, (*FIRST, "noise"), "inf", "noise"),
    (GD, (*FIRST, "noise"), "3", "noise"),
    (GD, (*FIRST, "noise"), None, "noise"),
    (GD, (*FIRST, "noise"), 10**400, "noise"),
    (GD, (*FIRST, "noise"), 0.0, "epsilon"),
    (GD, (*FIRST, "noise"), 1e-3, "epsilon"),
    (GD, (*FIRST, "query"), 5, "query"),
    (GD, (*FIRST, "query"), " ", "query"),
    (GD, (*FIRST, "sensitivity"), 2.0, "sensitivity"),
    (GD, (*FIRST, "mechanism"), "Randomness", "mechanism"),
    (GD, (*FIRST, "mechanism"), "Mechanism", "mechanism"),
    (GD, (*FIRST, "mechanism"), "STRUCTURES", "mechanism"),
    (GD, (*FIRST, "mechanism"), "gaussian", "mechanism"),
    (GD, (*FIRST, "mechanism"), None, "mechanism"),
    (GD, (*FIRST, "parameters"), {"finish": 3}, "parameters"),
    (GD, (*FIRST, "parameters"), [], "parameters"),
    (GD, (*FIRST, "sampling", "kind"), "dataclass", "sampling"),
    (GD, (*FIRST, "sampling", "kind"), "Neighbours", "sampling"),
    (GD, (*FIRST, "sampling", "kind"), "Poisson", "rate"),
    (GD, (*FIRST, "sampling", "rate"), 0.1, "rate"),
    (GD, (*FIRST, "sampling"), "Everyone", "sampling"),
    (GD, (*FIRST, "extra"), 1, "extra"),
    (GD, ("settings", "steps"), 4, "steps"),
    (GD, ("settings", "steps"), 0, "steps"),
    (GD, ("settings", "steps"), 5.0, "steps"),
    (GD, ("settings", "clip"), -1.0, "clip"),
    (GD, ("settings", "clip"), "inf", "clip"),
    (GD, ("settings", "clip"), None, "clip"),
    (GD, ("settings", "step_size"), math.nan, "step_size"),
    (GD, ("settings", "average"), 1, "average"),
    (GD, ("settings", "average"), "false", "average"),
    (GD, ("settings", "friction"), 0.9, "friction"),
    (GD, ("settings", "momentum"), 1.0, "momentum"),
    (GD, ("settings",), [], "settings"),
    (GD, ("version",), 1, "version"),
    (POISSON, (*FIRST, "sampling", "rate"), 0.0, "rate"),
    (POISSON, (*FIRST, "sampling", "rate"), 1.1, "rate"),
    (POISSON, (*FIRST, "sampling", "rate"), "0.1", "rate"),
    (POISSON, (*FIRST, "sampling", "rate"), 0.9, "epsilon"),
    (POISSON, (*FIRST, "mechanism"), "Laplace", "Poisson"),
    (OBJECTIVE, ("neighbours",), "zero-out", "neighbours"),
    (OBJECTIVE, (*FIRST, "parameters", "neighbours"), "zero-out", "neighbours"),
    (OBJECTIVE, (*FIRST, "parameters", "neighbours"), "both", "neighbours"),
    (OBJECTIVE, (*FIRST, "parameters", "slopes"), "steep", "slopes"),
    (OBJECTIVE, (*FIRST, "parameters", "curvature"), -1, "curvature"),
    (OBJECTIVE, (*FIRST, "parameters", "reach"), 0.5, "reach"),
    (OBJECTIVE, (*FIRST, "parameters", "finish"), 0, "finish"),
    (OBJECTIVE, (*FIRST, "parameters", "finish"), 0.1, "epsilon"),
    (OBJECTIVE, (*FIRST, "parameters"), {}, "curvature"),
    (GREEDY, (*ROUND, "count"), 3, "steps"),
    (GREEDY, (*ROUND, "count"), 99, "epsilon"),
    (GREEDY, (*ROUND, "noise"), 5.0, "noise"),
    (GREEDY, (*ROUND, "mechanism"), "Exponential", "noise"),
    (GREEDY, (*ROUND, "sensitivity"), "1", "sensitivity"),
    (GREEDY, (*ROUND, "sensitivity"), ["1"], "sensitivity"),
    (GREEDY, (*ROUND, "sensitivity"), ["1", ""], "sensitivity"),
    (GREEDY, (*ROUND, "sampling"), {"kind": "Poisson", "rate": 0.5}, "Poisson"),
    (GREEDY, (*PARTS, "selection"), GAUSSIAN, "selection"),
    (GREEDY, (*PARTS, "selection"), 2.0, "selection"),
    (GREEDY, (*PARTS, "selection", "noise"), -1.0, "noise"),
    (GREEDY, (*PARTS, "selection", "noise"), 0.1, "epsilon"),
    (GREEDY, (*PARTS, "selection", "extra"), 1, "extra"),
    (GREEDY, (*PARTS, "selection", "mechanism"), "Round", "noise"),
    (GREEDY, (*PARTS, "additive"), GAUSSIAN | {"mechanism": "Exponential"}, "additive"),
    (GREEDY, (*PARTS, "additive"), GAUSSIAN, "epsilon"),
    (GREEDY, (*PARTS, "additive", "parameters"), {"noise": 9.0}, "parameters"),
    (GREEDY, (*PARTS, "third"), GAUSSIAN, "third"),
    (GREEDY, ("settings", "rule"), "gs-z", "rule"),
    (GREEDY, ("settings", "start"), "one", "start"),
    (FW, ("settings", "selection"), "largest", "selection"),
    (FW, ("settings", "step_size"), "0.1", "step_size"),
    (CD, ("settings", "clip_rule"), "none", "clip_rule"),
    (CD, ("settings", "second_moments"), "guessed", "second_moments"),
    (CD, ("settings", "periods"), -1, "periods"),
    (CD, ("settings", "second_moments"), "declared", "second_moments"),
    (DUAL, ("settings", "batch_size"), 2.5, "batch_size"),
    (GD, (*FIRST, "query"), "gradient", "clipped gradient"),
    (GD, (*FIRST, "mechanism"), "Laplace", "mechanism"),
    (FW, (*FIRST, "mechanism"), "Gaussian", "mechanism"),
    (FW, ("releases", 1, "query"), "vertex scores", "releases"),
    (GREEDY, ("releases", len(GREEDY.releases) - 1, "mechanism"), "Exponential", "mechanism"),
    (GREEDY, ("settings", "start"), "given", "start"),
    (DECLARED, ("settings", "start"), 0.1, "start"),
    (DECLARED, ("settings", "start", 3), "0.1", "start"),
    (DECLARED, ("settings", "start", 3), None, "start"),
    (DECLARED, ("settings", "start", 3), [0.1], "start"),
    (DECLARED, ("settings", "second_moments", 0), math.nan, "second_moments"),
    (DECLARED, ("settings", "second_moments", 0), math.inf, "second_moments"),
    (DECLARED, ("settings", "second_moments", 0), "inf", "second_moments"),
    (DECLARED, ("settings", "second_moments", 0), True, "second_moments"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "path", "value", "word"),
    LIES,
    ids=lambda value: None if isinstance(value, Plan) else repr(value),
)
def test_a_stored_plan_that_lies_is_refused_by_name(plan, path, value, word):
    with pytest.raises(ValueError, match=word):
        Plan.from_dict(changed(plan, path, value))


@pytest.mark.parametrize("key", GD.to_dict())
def test_a_stored_plan_without_one_of_its_parts_is_refused(key):
    values = GD.to_dict()
    del values[key]
    with pytest.raises(ValueError, match=key):
        Plan.from_dict(values)


@pytest.mark.parametrize("key", GD.to_dict()["releases"][0])
def test_a_stored_release_without_one_of_its_parts_is_refused(key):
    values = GD.to_dict()
    del values["releases"][0][key]
    with pytest.raises(ValueError, match=key):
        Plan.from_dict(values)


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_are_refused(token):
    content = GD.to_json().replace('"epsilon": 1.0', f'"epsilon": {token}')
    assert token in content
    with pytest.raises(ValueError, match=token):
        Plan.from_json(content)


def test_a_key_that_occurs_twice_is_refused():
    content = GD.to_json().replace('"epsilon": 1.0,', '"epsilon": 8.0, "epsilon": 1.0,')
    with pytest.raises(ValueError, match="epsilon"):
        Plan.from_json(content)


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: replace(GD, n_records=0), "n_records"),
        (lambda: replace(GD, fits=-1), "fits"),
        (lambda: replace(GD, neighbours="replace-one"), "neighbours"),
        (lambda: replace(GD, budget=(1.0, 1e-6)), "budget"),
        (lambda: replace(GD, releases=list(GD.releases)), "releases"),
        (lambda: replace(GD, releases=()), "releases"),
        (lambda: replace(GD, average="no"), "average"),
        (lambda: replace(OBJECTIVE, neighbours=Neighbours.ZERO_OUT), "neighbours"),
        (lambda: replace(GD.releases[0], count=0), "count"),
        (lambda: replace(GD.releases[0], entries=0), "entries"),
        (lambda: replace(GD.releases[0], mechanism="Gaussian"), "mechanism"),
        (lambda: replace(GD.releases[0], sampling=Poisson), "sampling"),
        (lambda: replace(GD, releases=(Release("q", Laplace(1.0), 5, "1", Poisson(0.1)),)), "Poisson"),
        (lambda: Gaussian("1"), "noise"),
        (lambda: Gaussian(True), "noise"),
        (lambda: Gaussian(math.nan), "noise"),
        (lambda: Gaussian(math.inf), "noise"),
        (lambda: LinearTerm(1.0, 0.1, "any", 1.0, "zero-out", math.nan), "finish"),
        (lambda: LinearTerm(1.0, 0.1, "any", 1.0, "both"), "neighbours"),
        (lambda: Poisson("0.5"), "rate"),
    ],
)
def test_a_plan_that_lies_cannot_be_made(build, word):
    with pytest.raises(ValueError, match=word):
        build()


@pytest.mark.parametrize("kind", [list, list[float]], ids=str)
def test_a_setting_of_an_unknown_type_cannot_be_stored_and_is_refused(kind):
    plan = type("Listed", (Plan,), {"solver": "listed", "__annotations__": {"knots": kind}})
    try:
        with pytest.raises(TypeError, match="knots"):
            dataclass(frozen=True)(plan)(9, 2, GD.budget, GD.neighbours, 1, GD.releases, 5, [1.0])
    finally:
        del Plan.kinds["listed"]


def test_a_release_is_found_by_the_name_of_its_query():
    assert all(plan[release.query] is release for plan in PLANS for release in plan.releases)
    with pytest.raises(KeyError, match="no release of 'gradient'.*'clipped gradient'"):
        GD["gradient"]


def test_declared_numbers_are_stored_in_full_and_printed_by_their_count():
    assert DECLARED.second_moments == (0.5,) * 6 and DECLARED.start == (0.1,) * 7
    assert Plan.from_json(DECLARED.to_json()) == DECLARED
    assert "second_moments 6 declared values, start 7 declared values" in str(DECLARED)


def test_every_mechanism_can_be_stored():
    assert set(BY_NAME.values()) == {*MECHANISMS, LinearTerm, Round, Thresholded}


def places(values, path=()):
    """Every place of a nested value, the inner ones too."""
    keys = values if isinstance(values, dict) else range(len(values)) if isinstance(values, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places(values[key], (*path, key))


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([2**53, 2**63, 10**400]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0.01, 20.0),
    st.sampled_from(
        [
            "",
            "inf",
            "nan",
            "1",
            "false",
            "zero-out",
            "replace-one",
            "Gaussian",
            "Laplace",
            "LinearTerm",
            "Poisson",
        ]
    ),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["kind", "noise", "epsilon"]), st.floats(), max_size=2),
)


@settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
@given(st.data())
def test_one_changed_place_of_a_stored_plan_is_refused_or_priced(data):
    plan = data.draw(st.sampled_from(PRIVATE))
    path = data.draw(st.sampled_from(list(places(plan.to_dict()))))
    values = changed(plan, path, data.draw(ANYTHING))
    try:
        again = Plan.from_dict(values)
    except ValueError:
        return
    assert again.epsilon >= 0 and all(count > 0 for count in again.price.values())
    if again.budget.private:
        assert again.epsilon <= again.budget.epsilon * (1 + 1e-9)
        assert compose(again.event).delta(again.epsilon) <= again.budget.delta * (1 + 1e-9)
    if path[0] in ("settings", "n_records", "n_features", "solver"):
        assert again.price == plan.price and again.epsilon == plan.epsilon
    assert Plan.from_json(again.to_json()) == again


@pytest.mark.parametrize("plan", PRIVATE, ids=lambda plan: plan.solver)
def test_an_edited_plan_is_refused_wherever_it_was_edited(plan):
    stored = plan.to_dict()
    for path in places(stored):
        values = copy.deepcopy(stored)
        place = values
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = other_than(place[path[-1]])
        with pytest.raises(ValueError):
            Plan.from_dict(values)


def other_than(value):
    """A value of the same type that means something else."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if value == "replace-one":
        return "zero-out"
    return f"{value}." if isinstance(value, str) else [] if value else "x"


@pytest.mark.parametrize("plan", [GD, FW, GREEDY], ids=named)
def test_a_stored_plan_with_more_noise_than_any_grid_has_cells_is_priced(plan):
    again = Plan.from_dict(changed(plan, (*FIRST, "noise"), 2.0**53))
    assert 0 <= again.epsilon <= plan.epsilon

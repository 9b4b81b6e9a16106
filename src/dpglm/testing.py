"""Contracts that every query, mechanism, loss form and solver must keep; run them on your own.

Each function raises ``AssertionError`` with the reason, or returns what it measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .arrays import Vector
from .bounds import Bounds
from .curator import Curator
from .data import Records, as_data
from .kernels.arguments import Form
from .kernels.formulas import dual_steps, slopes_and_curvatures
from .losses import Loss
from .mechanisms import Mechanism, Randomness
from .mechanisms.grid import Numbers
from .plan import Plan
from .privacy import PUBLIC_SIZE, Budget, Neighbours
from .problem import Problem
from .queries import Query
from .solvers import AnySolver

Layout = Callable[[Vector], ArrayLike]
LAYOUTS: tuple[Layout, ...] = (
    np.array,
    np.asfortranarray,
    sp.csr_array,
    sp.csc_matrix,
    lambda table: table.astype(np.float32),
)

Record = tuple[Vector, float | Vector]


def check_query(
    query: Query,
    neighbours: Neighbours,
    bounds: Bounds,
    n_features: int = 4,
    constant: float = 0.0,
    pairs: int = 10_000,
    seed: int = 0,
    tightness: float = 0.95,
    held: Callable[[list[Record]], object] | None = None,
) -> float:
    """Neighbours move the answer by at most the sensitivity, and some by nearly all of it.

    Parameters
    ----------
    query : Query
    neighbours : Neighbours
    bounds : Bounds
        Bounds that the query's sensitivity was stated for. If they limit weights or offsets, records have
        both: of any size, also beyond the bounds or no numbers. If they have ``rows_per_unit``, neighbours
        differ in all records of a person, up to so many: equal ones, opposed ones, tiny ones, any.
    n_features : int
    constant : float
        Value of the constant feature.
    pairs : int
        Number of neighbouring tables, dense and sparse, in double and single precision: random ones, ones
        outside the bounds or not finite, and the query's own worst case among random bystanders.
    seed : int
    tightness : float
        Share of the sensitivity that some pair must reach, in every entry that is released alone.
    held : callable, optional
        Makes of rows and targets what the query is asked of; by default records inside the bounds.

    Returns
    -------
    float
        The largest share of the sensitivity that was reached.
    """
    rng = np.random.default_rng(seed)
    beside = _Beside(bounds, rng) if (bounds.weight, bounds.offset) != (None, None) else None
    allowed = np.asarray(query.sensitivity(neighbours))
    reached = np.zeros(allowed.shape)
    for first, second, others, public in _pairs(query, bounds, n_features, constant, pairs, rng):
        alone = None if neighbours.size_is_public else len(others) + 1
        if neighbours is Neighbours.ZERO_OUT:
            second = (np.full(n_features, np.nan), 0.0)
        if beside is not None:
            first, second = beside.largest(first), beside.largest(second)
            others = [beside.any(record) for record in others]
        layout = LAYOUTS[rng.integers(len(LAYOUTS))]
        tables = [[first, *others], [second, *others] if alone is None else others]
        if bounds.rows_per_unit is not None:
            tables = _tables_of_persons(first, second, others, bounds.rows_per_unit, rng)
        here, there = (
            np.asarray(
                query(held(table) if held else _records(table, bounds, constant, layout, alone), *public)
            )
            for table in tables
        )
        difference = np.abs(here - there) if allowed.ndim else np.linalg.norm(here - there)
        reached = np.maximum(reached, difference / allowed)
    most, least = float(reached.max()), float(reached.min())
    assert most <= 1 + 1e-9, f"{query.name}: a neighbour moved the answer by {most} of the sensitivity"
    assert least >= tightness, f"{query.name}: no neighbour reached more than {least} of the sensitivity"
    return most


def _tables_of_persons(
    first: Record, second: Record, others: list[Record], rows: int, rng: np.random.Generator
) -> list[list[Record]]:
    """Neighbouring tables that differ in all records of one person, up to so many."""
    crowd = [_person(record, 2, rng) for record in others]
    different = (_person(record, rows, rng) for record in (first, second))
    return [_numbered([person, *crowd]) for person in different]


class _Beside:
    """Weights and offsets of the records of a check, which become arrays of target, weight and offset."""

    def __init__(self, bounds: Bounds, rng: np.random.Generator) -> None:
        self._bounds, self._rng = bounds, rng

    def any(self, record: Record) -> Record:
        """A record with a weight and an offset of any size."""
        weight, offset = self._rng.standard_normal(2) * 10 ** self._rng.uniform(-2, 3, 2)
        if self._rng.random() < 0.05:
            weight = self._rng.choice([np.nan, np.inf, -np.inf, -1.0, 1e300])
        if self._rng.random() < 0.05:
            offset = self._rng.choice([np.nan, np.inf, -np.inf, 1e300])
        return record[0], np.array([record[1], weight, offset])

    def largest(self, record: Record) -> Record:
        """A record in which neighbours differ: half of them have the largest weight, and no offset."""
        if self._rng.random() < 0.5:
            return self.any(record)
        return record[0], np.array([record[1], 2 * self._bounds.weight_unit, 0.0])


def _person(record: Record, most: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Rows and values of a person with up to so many records, made of one of them or of any."""
    count, kind = int(np.exp(rng.uniform(0, np.log(most + 1)))), int(rng.integers(8))
    x, y = record
    rows = np.tile(x, (count, 1))
    if not np.isnan(x).all():  # null records stay so
        if kind == 1:  # opposed in turn
            rows[1::2] *= -1.0
        elif kind == 2:  # so small that rounding is all there is
            rows *= 10 ** rng.uniform(-20, 0, (count, 1))
        elif kind == 3:
            rows = rng.standard_normal((count, len(x))) * 10 ** rng.uniform(-2, 3, (count, 1))
            rows[rng.random(rows.shape) < 0.01] = rng.choice([np.nan, np.inf, 1e300, -1e99, 1e-200])
        elif kind == 4:  # one that adds nothing among equal ones
            rows[0] = np.nan
    return rows, np.tile(np.append(y, [] if np.ndim(y) else [1.0, 0.0]), (count, 1))


def _numbered(persons: list[tuple[Vector, Vector]]) -> list[Record]:
    """The records of all persons, with target, weight, offset and the number of the person."""
    rows = np.concatenate([rows for rows, _ in persons])
    values = np.concatenate(
        [np.column_stack([values, np.full(len(values), float(k))]) for k, (_, values) in enumerate(persons)]
    )
    return list(zip(rows, values, strict=True))


def _pairs(
    query: Query, bounds: Bounds, n_features: int, constant: float, pairs: int, rng: np.random.Generator
) -> Iterator[tuple[Record, Record, list[Record], tuple[Vector, ...]]]:
    worst = query.worst_case(n_features, bounds.radius(n_features), constant)
    for k in range(pairs):
        others = [_random_record(rng, n_features) for _ in range(3)]
        if k % 4 == 0:
            order = rng.permutation(n_features)
            first, second = ((x[order], y) for x, y in (worst.first, worst.second))
            yield first, second, others, tuple(_permuted(value, order) for value in worst.public)
            continue
        public = tuple(
            rng.standard_normal(np.shape(value)) * 10 ** rng.uniform(-3, 3) for value in worst.public
        )
        yield _random_record(rng, n_features), _random_record(rng, n_features), others, public


def _permuted(point: Vector, order: NDArray[np.int64]) -> Vector:
    """The point with its features in another order; the intercept stays last.

    What has fewer entries has none for each feature, and stays as it is.
    """
    return point if len(point) < len(order) else np.concatenate([point[order], point[len(order) :]])


def _random_record(rng: np.random.Generator, n_features: int) -> Record:
    x = rng.standard_normal(n_features) * 10 ** rng.uniform(-2, 3)
    if rng.random() < 0.05:
        x[rng.integers(n_features)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e153, -1e99, 1e-200])
    return x, float(rng.choice([-1.0, 1.0]))


def _records(
    records: list[Record], bounds: Bounds, constant: float, layout: Layout, size: int | None
) -> Records:
    rows, targets = zip(*records, strict=True)
    with np.errstate(over="ignore"):
        table = layout(np.array(rows))
    return as_data(table, np.array(targets), bounds, constant, size or 0)


def check_mechanism(mechanism: type[Mechanism]) -> None:
    """Noise 0 returns the exact answer, noise is in units of the sensitivity, the event scales."""
    answer = np.array([3.0, -1.0, 2.0])
    exact = mechanism(0.0).release(answer, 1.0, Randomness(0))
    assert np.array_equal(exact, answer) or exact == answer.argmax(), "noise 0 must give the exact answer"
    assert mechanism(2.0).event == mechanism(1.0).event.scaled(2.0), "the event must scale with the noise"
    here = np.array([mechanism(1.0).release(answer, 4.0, Randomness(s)) for s in range(20)])
    there = np.array([mechanism(2.0).release(answer, 2.0, Randomness(s)) for s in range(20)])
    # Each has its own grid, of about a millionth of the sensitivity.
    assert np.allclose(here, there, rtol=0, atol=2e-5), "noise must be measured in units of the sensitivity"
    assert len(np.unique(here)) > 1, "noise must change the answer"
    cases = mechanism(2.0).worst_cases()
    assert cases, f"{mechanism.name} names no worst case for the auditor"
    for first, second in cases.values():
        released = mechanism(2.0).release(first, 1.0, Randomness(0))
        ratio = [mechanism(2.0).log_likelihood(released, answer, 1.0) for answer in (first, second)]
        assert ratio[0] != ratio[1], f"{mechanism.name}: both answers of a worst case are equally likely"


def check_loss_form(loss: Loss) -> None:
    """What a loss says of itself holds at sampled points, and its compiled form, if any, is the loss.

    Compared are the slope, the curvature and the dual step. Checked are ``lipschitz``, ``smoothness``,
    ``curvature_lipschitz``, ``joint_constant``, ``fall``, ``largest_curvature`` and ``slopes``.
    """
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 2000) if loss.kind == "classification" else rng.standard_normal(2000)
    if loss.kind == "count":
        y = np.abs(y)
    z = rng.standard_normal(2000) * 10 ** rng.uniform(-3, 4, 2000)
    z[::2] = y[::2] + rng.uniform(-4, 4, 1000)  # where slopes change most
    near = z + rng.normal(0, 0.1, 2000)
    _check_facts(loss, z, np.where(rng.random(2000) < 0.5, near, rng.permutation(z)), y)
    if loss.form is None:
        return
    form = Form.of(loss)
    slopes, curvatures = slopes_and_curvatures(form, z, y)
    _same(loss, "slope", slopes, loss.derivative(z, y))
    _same(loss, "curvature", curvatures, loss.curvature(z, y))
    alpha, weight = -loss.derivative(rng.permutation(z), y), rng.permutation(np.append(0.0, np.abs(z[1:])))
    _same(loss, "dual step", dual_steps(form, alpha, z, y, weight), loss.dual_step(alpha, z, y, weight))


def _same(loss: Loss, what: str, compiled: Vector, expected: Vector) -> None:
    assert np.allclose(compiled, expected, rtol=1e-12, atol=1e-12), f"{loss.name}: compiled {what} differs"


def _check_facts(loss: Loss, z: Vector, other: Vector, y: Vector) -> None:
    """What a loss says of itself, at pairs of predictions z and ``other`` with targets y."""

    def holds(name: str, values: Numbers, bound: Numbers, rounding: Numbers = 0.0) -> None:
        assert np.all(values <= bound * (1 + 1e-9) + rounding), (
            f"{loss.name}: what it says of its {name} is false"
        )

    here, there = loss.derivative(z, y), loss.derivative(other, y)
    bend, far_bend = loss.curvature(z, y), loss.curvature(other, y)
    apart = np.abs(z - other)
    rounding = 1e-13 * (1 + np.abs(here) + np.abs(there) + np.abs(z) + np.abs(y))
    ends = None if loss.kind == "classification" else (float(y.min()), float(y.max()))
    for target in {None, ends}:
        holds("lipschitz", np.maximum(np.abs(here), np.abs(there)), loss.lipschitz(target), rounding)
    holds("smoothness", bend, loss.smoothness())
    if math.isfinite(loss.smoothness()):
        holds("smoothness", np.abs(here - there), loss.smoothness() * apart, rounding)
    if math.isfinite(loss.curvature_lipschitz()):
        holds("curvature_lipschitz", np.abs(bend - far_bend), loss.curvature_lipschitz() * apart, rounding)
    if math.isfinite(loss.joint_constant()):
        left = 1 - np.square(here / loss.slope_unit())
        holds("joint_constant", np.square(bend), 4 * loss.joint_constant() * left, 1e-12)
    holds("fall", loss.value(0.0 * z, y) - loss.value(z, y), loss.fall(ends), rounding)
    holds("largest_curvature", np.maximum(bend, far_bend), loss.largest_curvature(z, other))
    if loss.slopes != "any":
        holds("slopes", -here * there, 0.0, rounding)
    if loss.slopes == "logistic":
        holds("slopes", bend, np.abs(here) * (1 - np.abs(here)), rounding)
        holds("slopes", loss.smoothness(), 0.25)


def check_solver(solver: AnySolver, problem: Problem, X: Vector, y: Vector, seed: int = 0) -> Plan:
    """A solver spends exactly its plan, within its budget, and names its worst cases.

    The plan suffices: read back from JSON it is the same, and runs to the same model.
    """
    (n, p), name = X.shape, type(solver).__name__
    assert solver.audit_cases(), f"{name} names no worst-case neighbours for the auditor"
    budget = Budget(1.0, 1e-6)
    for neighbours in PUBLIC_SIZE:
        plan: Plan = solver.plan(problem, n, p, budget, neighbours)
        assert plan.epsilon <= budget.epsilon, f"{name} plans to overspend: {plan.epsilon}"
        assert plan.epsilon >= 0.99 * budget.epsilon, f"{name} leaves budget unused: {plan.epsilon}"
        again = Plan.from_json(plan.to_json())
        assert again == plan, "a saved plan must be the same plan"
        silent = replace(plan, releases=tuple(release.scaled(0.0) for release in plan.releases))
        found = []
        for one in (plan, again, silent):
            records = as_data(X, y, problem.bounds, problem.constant(p))
            curator = Curator(records, neighbours, Randomness(seed))
            found.append(type(solver).run(one, problem, curator).w)
            if one is not silent:
                assert curator.spent == plan.price, f"{name} spent {curator.spent}, planned {plan.price}"
        w, repeated, without = found
        assert np.array_equal(w, repeated), f"{name}: the same plan and seed must give the same model"
        assert np.isfinite(w).all()
        moved = (w != problem.start(p)) | (without != problem.start(p))
        same = moved & np.isclose(without, w, rtol=1e-6, atol=0)
        assert moved.any(), f"{name} moves no coefficient"
        assert not same.any(), f"{name}: no noise reaches the coefficients {np.flatnonzero(same)}"
    assert math.isinf(solver.plan(problem, n, p, Budget(math.inf, 1e-6), neighbours).epsilon)
    return plan

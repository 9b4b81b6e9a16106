"""Fits whose promise is one to persons: `fit(X, y, units=ids)`."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
import scipy.sparse as sp

from dpglm import (
    Bounds,
    BoundsScaler,
    GLMClassifier,
    Guarantee,
    Ledger,
    LinearRegression,
    LogisticRegression,
    Neighbours,
    PrivatePath,
    PrivateSearch,
    Stream,
    evaluate,
)
from dpglm.curator import Curator
from dpglm.data import columnar, stream
from dpglm.data.units import Units
from dpglm.errors import LedgerError, SourceChanged, UnsupportedProblem
from dpglm.estimators import make_private_pipeline
from dpglm.fit.keys import ranked
from dpglm.penalties import L2
from dpglm.plan import Plan
from dpglm.schema import Number, Schema, Target, Unit
from dpglm.schema.encoder import encoded
from dpglm.solvers import SOLVERS, GradientDescent, Newton, OutputPerturbation, PreconditionedDescent

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

PERSONS = 150
RNG = np.random.default_rng(0)
IDS = np.repeat(np.arange(PERSONS), RNG.integers(1, 9, PERSONS))
X = RNG.uniform(-1, 1, (len(IDS), 3))
Y = np.where(X[:, 0] + RNG.normal(0, 0.5, len(IDS)) > 0, 1, -1)
BOUNDS = Bounds(row_norm=1.0, rows_per_unit=5)
STEPS = GradientDescent(steps=3)

TAKING = {
    "gradient descent": STEPS,
    "batches": GradientDescent(steps=3, batch_size=30),
    "preconditioned descent": PreconditionedDescent(steps=2),
    "newton": Newton(rounds=2),
    "output perturbation": OutputPerturbation(),
}


class Letter(StrEnum):
    A = "a"


def fitted(X, y, units=None, solver=STEPS, bounds=BOUNDS, **more):
    penalty = L2(0.1) if isinstance(solver, OutputPerturbation) else None
    bounds = bounds if units is not None else replace(bounds, rows_per_unit=None)
    model = GLMClassifier(
        epsilon=1.0, classes=[-1, 1], solver=solver, bounds=bounds, penalty=penalty, random_state=0, **more
    )
    return model.fit(X, y, **({} if units is None else {"units": units}))


def same(one, other):
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(one.intercept_, other.intercept_)


@pytest.mark.parametrize("solver", TAKING.values(), ids=TAKING)
def test_one_record_a_person_gives_the_bits_of_a_fit_to_records(solver):
    n = 200
    order = RNG.permutation(n)
    bounds = replace(BOUNDS, rows_per_unit=1000)
    assert same(fitted(X[:n], Y[:n], solver=solver), fitted(X[order], Y[order], order, solver, bounds))


@pytest.mark.parametrize("solver", TAKING.values(), ids=TAKING)
def test_memory_sparse_tables_and_streams_of_any_cut_give_the_same_bits(solver):
    def read(size):
        return ((X[k : k + size], Y[k : k + size]) for k in range(0, len(X), size))

    first = fitted(X, Y, IDS, solver)
    assert first.plan_.n_records == PERSONS and first.plan_.unit == "person"
    assert same(first, fitted(sp.csr_array(X), Y, IDS, solver))
    sizes = [(400, None)] if isinstance(solver, OutputPerturbation) else [(400, None), (5, PERSONS)]
    for size, count in sizes:
        stream = Stream(partial(read, size), *X.shape, n_units=count)
        assert same(first, fitted(stream, None, IDS.astype(str), solver))


def test_the_order_of_persons_and_what_their_ids_are_change_nothing(monkeypatch):
    first = fitted(X, Y, IDS)
    order = np.argsort(RNG.random(PERSONS)[IDS], kind="stable")
    assert same(first, fitted(X[order], Y[order], IDS[order]))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=Y, id=[f"person {k:03d}" for k in IDS])
    assert same(first, fitted(frame, "y", "id"))
    assert same(first, fitted(frame.assign(id=pd.Categorical(frame["id"])), "y", "id"))
    monkeypatch.setattr(columnar, "rows_per_block", lambda _: 11)
    model = fitted(pads.dataset(pa.Table.from_pandas(frame)), "y", "id")
    assert same(first, model)
    assert model.predict(frame[list("abc")]).shape == Y.shape


def test_ids_of_every_type_are_told_apart_and_missing_ones_are_nobodys():
    for ids in (
        [3, 1, None, 1], [3.0, 1.0, math.nan, 1.0], ["10", "9", None, "9"], np.array(["b", "a", "", "a"]),
        [b"y", b"x", None, b"x"], pd.Series([3, 1, None, 1], dtype="Int64"),
        np.array(["2021-05-03", "2020-01-01", "NaT", "2020-01-01"], dtype="datetime64[D]"),
    ):  # fmt: skip
        ranks = ranked(ids)[0]
        expected = [2, 1, 0, 1] if isinstance(ids, np.ndarray) and ids.dtype.kind == "U" else [1, 0, -1, 0]
        assert ranks.tolist() == expected
    assert len(ranked([7, "007", "7", 7.0, 7.5])[1]) == 3
    # Types whose values are equal: two ids of one person would be protected apart.
    one = datetime(2020, 1, 1)
    for equal in (
        ["a", np.str_("a"), Letter.A], [b"a", np.bytes_(b"a")], [-3, "-3", -3.0],
        [Decimal("1.0"), Decimal("1.00"), 1, "1"], [one, pd.Timestamp(one)],
        [one.replace(tzinfo=UTC), one.replace(hour=1, tzinfo=timezone(timedelta(hours=1)))],
    ):  # fmt: skip
        assert ranked(equal)[0].tolist() == [0] * len(equal)
    lost = IDS.astype(object)
    lost[::3] = None
    kept = lost != None  # noqa: E711  # elementwise
    assert same(fitted(X, Y, lost), fitted(X[kept], Y[kept], IDS[kept]))


def test_only_the_first_records_of_a_person_count():
    place = np.arange(len(IDS)) - np.searchsorted(IDS, IDS)
    other = np.where(place[:, None] < 5, X, 7.0)
    assert same(fitted(X, Y, IDS), fitted(other, np.where(place < 5, Y, -Y), IDS))
    assert not same(fitted(X, Y, IDS), fitted(np.where(place[:, None] < 4, X, 7.0), Y, IDS))


def test_without_noise_a_person_counts_as_the_mean_of_its_records():
    shares = 1 / np.bincount(IDS)[IDS]
    free = Bounds(row_norm=math.inf, rows_per_unit=100)
    persons = GLMClassifier(epsilon=math.inf, classes=[-1, 1], bounds=free).fit(X, Y, units=IDS)
    weighed = GLMClassifier(epsilon=math.inf, classes=[-1, 1]).fit(X, Y, sample_weight=shares)
    assert np.allclose(persons.coef_, weighed.coef_, atol=1e-6)


def test_nothing_but_releases_depends_on_the_number_of_records():
    several = np.unique(IDS, return_index=True)[1]
    all_records, one_each = fitted(X, Y, IDS), fitted(X[several], Y[several], IDS[several])
    assert all_records.plan_ == one_each.plan_
    assert str(all_records.privacy_) == str(one_each.privacy_)
    assert np.array_equal(all_records.n_iter_, one_each.n_iter_)
    for table, ids in ((X, IDS[1:]), (X[several], IDS)):
        with pytest.raises(ValueError, match="^X, y, units and what else is given .*record$"):
            fitted(table, Y[: len(table)], ids)


def test_noise_is_that_of_one_record_a_person():
    for solver in TAKING.values():
        planned = [
            fitted(X[:PERSONS], Y[:PERSONS], solver=solver), fitted(X, Y, IDS, solver)
        ]  # fmt: skip
        assert planned[0].plan_.releases == planned[1].plan_.releases


@pytest.mark.parametrize("solver", [kind for kind in SOLVERS.values() if not kind.takes_units])
def test_a_solver_that_takes_no_persons_is_refused_by_name(solver):
    with pytest.raises(UnsupportedProblem, match=rf"{solver.__name__} takes no persons .*GradientDescent"):
        fitted(X, Y, IDS, solver())


def test_unsorted_and_changing_streams_are_refused():
    def read(order):
        return [(X[order][:100], Y[order][:100]), (X[order][100:], Y[order][100:])]

    order = np.arange(len(IDS))
    with pytest.raises(SourceChanged, match="must be sorted by units"):
        fitted(Stream(lambda: read(order[::-1]), *X.shape), None, IDS[::-1])
    with pytest.raises(SourceChanged, match="more or fewer records than it states"):
        fitted(Stream(lambda: read(order), *X.shape, n_units=PERSONS + 1), None, IDS)
    with pytest.raises(SourceChanged, match="have no ids of persons"):
        model = GLMClassifier(epsilon=1.0, classes=[-1, 1], bounds=BOUNDS, solver=STEPS)
        model.fit(Stream(lambda: read(order), *X.shape))


@pytest.mark.parametrize("scaled", [False, True])
def test_a_memory_map_needs_no_order_and_has_the_bits_of_the_array_on_both_sides_of_its_limit(
    scaled, tmp_path, monkeypatch
):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    mixed = np.random.default_rng(5).permutation(len(X))

    def coefficients(rows, ids):
        model = GLMClassifier(epsilon=1.0, classes=[-1, 1], bounds=BOUNDS, solver=STEPS, random_state=1)
        rows = BoundsScaler(-2, 2).fit(rows).transform(rows) if scaled else rows
        return model.fit(rows, Y, units=ids).coef_

    for ids in (IDS, IDS[mixed], IDS[::-1].astype(str)):
        expected = coefficients(X, ids)
        for limit in (X.nbytes, X.nbytes - 1, 1 << 9):  # an array; a source; one of several blocks
            monkeypatch.setattr(stream, "BLOCK_BYTES", limit)
            np.testing.assert_array_equal(coefficients(mapped, ids), expected)


def test_bounds_of_persons_need_units():
    with pytest.raises(ValueError, match="rows_per_unit, .*: give units"):
        GLMClassifier(epsilon=1.0, classes=[-1, 1], bounds=BOUNDS).fit(X, Y)
    for wrong in (0, 2.5, "many"):
        with pytest.raises(ValueError, match="rows_per_unit"):
            Bounds(row_norm=1.0, rows_per_unit=wrong)


def test_plan_and_promise_name_the_unit_and_old_files_mean_records():
    model = fitted(X, Y, IDS)
    assert Plan.from_json(model.plan_.to_json()) == model.plan_
    assert Guarantee.from_json(model.privacy_.to_json()) == model.privacy_
    assert "all records of one person replaced by any others" in str(model.privacy_)
    assert "150 persons" in str(model.plan_) and "number of persons" in str(model.privacy_)
    records = fitted(X, Y)
    assert "unit" not in records.plan_.to_dict() and "unit" not in records.privacy_.to_dict()
    assert Plan.from_json(records.plan_.to_json()).unit == "record"
    assert (
        Neighbours.ZERO_OUT.of("person")
        == "all records of one person replaced by null records that add nothing"
    )


def test_an_account_pays_for_its_own_unit_only(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    persons = ledger.create("persons", epsilon=9.0, delta=1e-3, unit="person")
    records = ledger.create("records", epsilon=9.0, delta=1e-3)
    model = GLMClassifier(epsilon=1.0, classes=[-1, 1], bounds=BOUNDS, solver=STEPS)
    with persons:
        model.fit(X, Y, units=IDS)
        with pytest.raises(LedgerError, match="protects a person and a fit protects a record"):
            LogisticRegression(epsilon=1.0, classes=[-1, 1]).fit(X, Y)
    with records, pytest.raises(LedgerError, match="protects a record and a fit protects a person"):
        model.fit(X, Y, units=IDS)
    assert [entry.content.get("unit") for entry in persons.history()[1:2]] == ["person"]
    assert len(records.history()) == 1


def test_a_schema_declares_the_id():
    columns = {name: Number(-1, 1) for name in "abc"}
    schema = Schema({"id": Unit(rows=5), **columns, "y": Target(classes=[-1, 1])})
    assert Schema.from_toml(schema.to_toml()) == schema and schema.bounds().rows_per_unit == 5
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=Y, id=2**60 + IDS)
    model = make_private_pipeline(
        schema, LogisticRegression(epsilon=1.0, solver=STEPS, random_state=0)
    )  # fmt: skip
    first = model.fit(frame).estimator_
    assert model.plan_.unit == "person" and model.plan_.n_records == PERSONS
    assert model.plan(PERSONS) == model.plan_
    assert same(first, model.fit(pads.dataset(pa.Table.from_pandas(frame))).estimator_)
    assert model.predict(frame[list("abc")]).shape == Y.shape


def test_intervals_cover_for_clustered_records_with_persons_only():
    covered = {True: 0, False: 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        ids = np.repeat(np.arange(1500), rng.integers(1, 15, 1500))
        dose, effect = rng.uniform(-1, 1, 1500)[ids], rng.normal(0, 0.3, 1500)[ids]
        y = 0.3 * dose + effect + rng.normal(0, 0.1, len(ids))
        for persons in covered:
            bounds = Bounds(feature=1.0, target=(-1.5, 1.5), rows_per_unit=20 if persons else None)
            model = LinearRegression(4.0, delta=1e-6, bounds=bounds, solver=Newton(), random_state=seed)
            model.fit(dose[:, None], y, units=ids if persons else None)
            low, high = model.summary().blocks[0].intervals(0.95)[0]
            covered[persons] += low <= 0.3 <= high
    assert covered[True] >= 25 and covered[False] <= 22


def test_a_path_holds_out_persons(monkeypatch):
    seen = []
    made = Units.only
    monkeypatch.setattr(Units, "only", lambda self, chosen: seen.append(len(chosen)) or made(self, chosen))
    model = LogisticRegression(epsilon=8.0, classes=[-1, 1], solver=STEPS, bounds=BOUNDS)
    path = PrivatePath(model, share=0.2).fit(X, Y, units=IDS)
    assert path.plan_.unit == path.plan_.parts[0].unit == "person"
    assert seen == [path.plan_.parts[0].n_records, PERSONS - path.plan_.parts[0].n_records]


def test_a_search_takes_units_whose_bounds_follow_from_the_fit():
    model = LogisticRegression(classes=[-1, 1], solver=STEPS)
    search = PrivateSearch(model, {"C": [0.1, 1.0]}, runs=2, epsilon=4.0).fit(X, Y, units=IDS)
    assert search.plan_.unit == search.plan_.parts[0].unit == search.privacy_.unit == "person"
    assert search.best_estimator_._fitted_problem.bounds.rows_per_unit == 1000
    with pytest.raises(UnsupportedProblem, match="takes no persons"):
        PrivateSearch(model, {"solver": ["objective-perturbation"]}, runs=2).fit(X, Y, units=IDS)


def test_persons_whose_number_is_private_are_refused():
    with pytest.raises(UnsupportedProblem, match="units are for neighbours whose number is public"):
        fitted(X, Y, IDS, neighbours="add-remove", delta=1e-6)


def test_a_model_of_persons_is_evaluated_by_records_in_memory_and_on_streams():
    model, results = fitted(X, Y, IDS), []
    for table, y in ((X, Y), (Stream(lambda: iter([(X, Y)]), *X.shape), None)):
        found = evaluate(model, table, y, epsilon=1.0, random_state=0)
        assert found.privacy.unit == "record" and "person" not in str(found.privacy)
        results.append(found["accuracy"].value)
    assert results[0] == results[1]


def test_records_of_persons_are_not_counted_before_a_fit_is_refused(monkeypatch):
    """Their number is not private for persons: the refusal came after it was released, with no account."""
    monkeypatch.setattr(Curator, "release", lambda *_: pytest.fail("something was released"))
    with pytest.raises(UnsupportedProblem, match="units are for neighbours whose number is public"):
        fitted(X, Y, IDS, neighbours="add-remove", delta=1e-6)


@pytest.mark.parametrize("limits", [{}, {"weight": 2.0}])
def test_units_that_the_bounds_do_not_limit_are_refused_and_not_left_out(limits, tmp_path):
    schema = Schema({"x": Number(-1, 1), "y": Target(classes=[0, 1]), "u": Unit(2)})
    table = pa.table({"x": np.linspace(-1, 1, 40), "y": np.arange(40) % 2, "u": np.repeat(np.arange(20), 2)})
    pads.write_dataset(table, tmp_path, format="parquet")
    source = encoded(schema, pads.dataset(tmp_path), targets=True)
    bounds = Bounds(row_norm=1.0, **limits)
    with pytest.raises(UnsupportedProblem, match="'unit' for each record, and the bounds do not limit it"):
        LogisticRegression(classes=[0, 1], bounds=bounds).fit(source)

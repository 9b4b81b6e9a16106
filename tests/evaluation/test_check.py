"""Priced counts of cells: what is counted is what the encoder reads, and neighbours move it by no more."""

import io
import json
import math

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as datasets
import pyarrow.parquet as parquet
import pytest

from dpglm import Ledger, Neighbours, Stream, check
from dpglm.audit.auditor import examine
from dpglm.audit.cases import check_targets
from dpglm.data.bounded_numbers import FINE, MISSING, OUTSIDE, UNKNOWN, UNREADABLE
from dpglm.errors import BudgetExceeded, LedgerError, PrivacyWarning, SourceChanged, UnsupportedProblem
from dpglm.evaluation.check import CheckPlan, percent, percent_up
from dpglm.plan import Plan
from dpglm.privacy import PUBLIC_SIZE, Budget
from dpglm.queries import CellCounts
from dpglm.schema import (
    Boolean,
    Category,
    Date,
    Drop,
    Exposure,
    Hashed,
    Number,
    Offset,
    Ordinal,
    Schema,
    Target,
    Text,
    Unit,
    Weight,
)
from dpglm.schema.column import Column
from dpglm.schema.diagnosis import KindSchema
from dpglm.schema.source import Held

from ..schema.fuzzing import odd_cell
from ..schema.raw_tables import SCHEMA, containers, frame

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes:dpglm.errors.PrivacyWarning")

INF = math.inf
MIXED = ["7", "x", "", None, "200", 5, math.inf, "2020-01-01", "1,5", True, "no", "mid", object(), "?", " 7 "]


def exactly(result):
    return {(share.column, share.kind): share.value for share in result.shares}


def test_every_kind_of_cell_is_told_in_every_kind_of_column():
    schema = Schema(
        {
            "number": Number(0, 10),
            "date": Date("2000-01-01", "2010-01-01"),
            "category": Category(["a", "b"]),
            "boolean": Boolean(),
            "ordinal": Ordinal(["low", "high"], missing="indicator"),
            "hashed": Hashed(8),
            "words": Text(8),
            "weight": Weight(2.0),
            "years": Exposure(0.5, 10),
            "id": Drop(),
            "y": Target(classes=["u", "v"]),
        },
        missing=["?"],
    )
    fine = {
        "number": 5, "date": "2005-01-01", "category": "a", "boolean": "yes", "ordinal": "low", "hashed": "z",
        "words": "z z", "weight": 1, "years": 1, "id": 0, "y": "u",
    }  # fmt: skip
    cases = {  # cell, its kind, and whether its record counts for nothing
        "number": [("1,123.40", "unreadable", 1), ("?", "missing", 1), (11, "out of range", 0)],
        "date": [("15.04.2005", "unreadable", 1), (None, "missing", 1), ("2026-04-15", "out of range", 0)],
        "category": [("A", "unknown level", 0), ("", "missing", 0), (object(), "unreadable", 1)],
        "boolean": [("maybe", "unreadable", 1), (None, "missing", 1)],
        "ordinal": [("middle", "unknown level", 0), (None, "missing", 0), (object(), "unreadable", 1)],
        "hashed": [(None, "missing", 0), (object(), "unreadable", 1)],
        "words": [(None, "missing", 0), (object(), "unreadable", 1)],
        "weight": [("x", "unreadable", 1), (3, "out of range", 0), (-1, "out of range", 0)],
        "years": [(None, "missing", 1), (0, "out of range", 1), (11, "out of range", 0)],
        "y": [("U", "unknown level", 1), (None, "missing", 1), (object(), "unreadable", 1)],
    }  # fmt: skip
    for name, cells in cases.items():
        for cell, kind, null in cells:
            rows = [fine, fine | {name: cell}, fine, fine]
            table = {column: [row[column] for row in rows] for column in fine}
            found = exactly(check(schema, table, epsilon=INF))
            wrong = {place for place, share in found.items() if share}
            assert wrong == {(name, kind)} | ({(None, "null record")} if null else set()), (name, cell)
            assert found[name, kind] == 0.25


@pytest.mark.parametrize(
    "column",
    [
        Number(0, 10), Number(0, 10, missing="indicator"), Number(0, 10, missing=3.0), Number(1, 9, cuts=[5]),
        Date("2000-01-01", "2021-01-01"), Category(["7", "mid"]), Category(["7"], missing="null"),
        Category(["7"], other=False, baseline="7"), Boolean(), Boolean(missing=True), Ordinal([5, 7]),
        Ordinal([5, 7], missing="indicator"), Hashed(4, missing="null"), Text(4),
    ],
    ids=repr,
)  # fmt: skip
def test_kinds_and_the_encoder_never_disagree(column):
    """A cell is unreadable if and only if its record is null whatever missing means; others are not null."""
    schema = Schema({"x": column}, missing=["?"])
    table = {"x": MIXED}
    kinds, cells = KindSchema.of(schema).encode(table), schema._cells(table, "x")
    null = column.encode(cells).null
    assert np.array_equal(kinds[:, -1] == 1, null)
    assert null[kinds[:, 0] == UNREADABLE].all()
    assert not null[np.isin(kinds[:, 0], (FINE, OUTSIDE, UNKNOWN))].any()
    missing = null[kinds[:, 0] == MISSING]
    assert len(missing) >= 3 and (missing == missing[0]).all()
    assert set(kinds[:, 0]) <= {FINE, *column.possible_kinds}


def test_null_records_are_those_of_a_fit():
    raw = frame(500).astype(object)
    rng = np.random.default_rng(1)
    for name in raw.columns:
        raw.loc[rng.random(500) < 0.03, name] = "no number, no date"
        raw.loc[rng.random(500) < 0.03, name] = object()
    rows, target = SCHEMA.encode(raw).toarray(), SCHEMA.read_target(raw)
    lost = np.isnan(rows).any(axis=1) | np.isnan(target)
    assert 0.2 < lost.mean() < 0.9
    result = check(SCHEMA, raw, epsilon=INF)
    assert result.null_records.value == lost.mean()
    assert all(isinstance(SCHEMA.columns[name], Column | Target) for name in KindSchema.of(SCHEMA).readable)


def test_all_kinds_of_tables_give_the_same_bits(tmp_path):
    raw = frame(200)
    raw["age"] = raw["age"].astype(object)
    raw.loc[:20, "age"], raw.loc[21:50, "age"] = 300, "old"
    text, tables = raw.to_csv(index=False), {}
    (tmp_path / "table.csv").write_text(text)
    from dpglm.data.files import source_of_file

    plain = pd.read_csv(io.StringIO(text), dtype=str)
    tables = {name: found for name, found in containers(raw, tmp_path).items() if "typed" not in name}
    parquet.write_table(pa.Table.from_pandas(plain), tmp_path / "text.parquet", row_group_size=50)
    tables |= {
        "lines": source_of_file(tmp_path / "table.csv", ()),
        "lines, held": Held(source_of_file(tmp_path / "table.csv", ())),
        "data set": datasets.dataset(tmp_path / "text.parquet"),
        "lazy": pl.scan_parquet(tmp_path / "text.parquet"),
        "stream": Stream(
            lambda: (plain[k : k + 37] for k in range(0, 200, 37)), len(plain), len(plain.columns)
        ),
        "Dask": dd.from_pandas(plain, npartitions=3),
    }
    found = {name: exactly(check(SCHEMA, X, epsilon=1.0, random_state=3)) for name, X in tables.items()}
    assert len({tuple(shares.items()) for shares in found.values()}) == 1, found


def people(rng, n):
    """Rows of persons, shuffled: the amounts of a person are readable, or every other one is not."""
    ids = rng.integers(0, n // 5, n)
    kinds = np.array(["10", "1,5", "200", ""])[rng.integers(0, 4, n)]
    return pd.DataFrame({"id": ids, "amount": kinds, "y": rng.integers(0, 2, n)})


PEOPLE = Schema({"id": Unit(rows=4), "amount": Number(0, 100), "y": Target(classes=[0, 1])})


def test_each_person_counts_once_as_the_mean_of_its_first_records():
    raw = people(np.random.default_rng(0), 1_000)
    first = raw.groupby("id").head(4)
    for cell, kind in (("1,5", "unreadable"), ("200", "out of range"), ("", "missing")):
        truth = (first["amount"] == cell).groupby(first["id"]).mean().mean()
        result = check(PEOPLE, raw, epsilon=INF)
        assert result["amount"][kind].value == pytest.approx(truth, abs=1e-4)
    assert result.plan.unit == "person" and result.plan.n_records == raw["id"].nunique()
    assert "id" not in KindSchema.of(PEOPLE).readable
    ordered = raw.sort_values("id", kind="stable")
    stream = Stream(lambda: (ordered[k : k + 99] for k in range(0, 1_000, 99)), 1_000, 3)
    some, others = (check(PEOPLE, X, epsilon=1.0, random_state=1) for X in (raw, stream))
    assert exactly(some) == exactly(others)
    assert some.privacy.unit == "person"
    with pytest.raises(SourceChanged, match="sorted"):
        check(PEOPLE, Stream(lambda: iter([raw]), 1_000, 3), epsilon=1.0)
    with pytest.raises(UnsupportedProblem, match="Dask"):
        check(PEOPLE, dd.from_pandas(raw, npartitions=2), epsilon=1.0)


def test_facts_that_are_still_to_be_learnt_have_no_outside():
    schema = Schema(
        {
            "x": Number(learn=True, widest=(-10, 10)),
            "level": Category(learn=True),
            "y": Target(learn=True, widest=(0, 10)),
        }
    )
    table = {"x": ["1", "500", "x"], "level": ["a", "b", None], "y": [1, 2, "y"]}
    result = check(schema, table, epsilon=INF)
    assert set(result["x"]) == set(result["level"]) == set(result["y"]) == {"missing", "unreadable"}
    assert result["x"]["unreadable"].value == pytest.approx(1 / 3)
    assert result.null_records.value == pytest.approx(1 / 3)


@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
def test_shares_are_right_within_their_stated_error(neighbours):
    raw = frame(1_000)
    truth = exactly(check(SCHEMA, raw, epsilon=INF))
    off = []
    for seed in range(10):
        result = check(SCHEMA, raw, epsilon=2.0, neighbours=neighbours, random_state=seed)
        off += [(share.value - truth[share.column, share.kind]) / share.error for share in result.shares]
    assert 0.93 < math.sqrt(np.mean(np.square(off))) < 1.07 and np.abs(off).max() < 5


def test_a_null_record_is_counted_so_zeroing_out_costs_as_much_as_replacing():
    query = CellCounts(((MISSING, UNREADABLE, OUTSIDE), (MISSING, UNREADABLE), (MISSING,)), 10)
    assert [query.sensitivity(relation) for relation in Neighbours] == pytest.approx(
        [math.sqrt(5), math.sqrt(5), math.sqrt(3)]
    )


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_raw_neighbours_move_the_counts_by_at_most_the_sensitivity(neighbours):
    """One raw record replaced by any other; or by one without a cell, which is what a null record is."""
    schema = Schema({"a": Number(0, 1, missing="indicator"), "b": Number(0, 1), "y": Target(0, 1)})
    query, rng = CellCounts(KindSchema.of(schema).codes, 4), np.random.default_rng(0)
    cells, farthest = ["0.5", "x", "", "7"], 0.0

    def counts(table):
        return 4 * np.array([share.value for share in check(schema, table, epsilon=INF).shares])

    for k in range(60):
        rows = rng.choice(cells, (4, 3))
        if k == 0:
            rows[0] = "7"  # nothing that makes it a null record
        other = rows.copy()
        other[0] = ("x" if k == 0 else rng.choice(cells, 3)) if neighbours is Neighbours.REPLACE_ONE else ""
        moved = [counts(dict(zip("aby", table.T, strict=True))) for table in (rows, other)]
        farthest = max(farthest, np.linalg.norm(moved[0] - moved[1]) / query.sensitivity(neighbours))
    assert 0.95 < farthest <= 1 + 1e-9


def test_audits_of_checks_stay_below_the_claim_and_show_half_of_it():
    budget = Budget(1.0, 0.01)
    targets = list(check_targets(budget))
    assert {target.neighbours for target in targets} == {"replace-one", "zero-out"}
    for target in targets:
        report = examine(target, 4, 0.999, random_state=1)
        assert not report.violated, str(report)
    ratios = []
    run = type(targets[0]).run

    class Watched(type(targets[0])):
        def run(self, second, randomness):
            row = run(self, second, randomness)
            ratios.append((second, row[0]))
            return row

    watched = Watched(targets[0].case, targets[0].plan)
    assert not examine(watched, 300, random_state=11).violated
    first = np.array([ratio for second, ratio in ratios if not second])
    parts = np.maximum(1 - np.exp(budget.epsilon / 2 - first), 0.0)
    assert parts.mean() - 3 * parts.std() / math.sqrt(len(parts)) > budget.delta


def test_an_audit_refutes_counts_that_state_too_little(monkeypatch):
    monkeypatch.setattr(CellCounts, "sensitivity", lambda *_: 0.5)
    assert examine(next(check_targets(Budget(1.0, 0.01))), 120, 0.99, random_state=1).violated


def test_an_account_pays_once_and_a_refused_check_costs_nothing(tmp_path):
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    account = Ledger(url).create("raw", epsilon=1.0, delta=1e-6)
    raw, address = frame(300), f"{url}#raw"
    before = len(list(account.history()))
    for wrong, kind in (
        ({"neighbours": "add-remove"}, UnsupportedProblem), ({"neighbours": "none"}, ValueError),
        ({"epsilon": -1.0}, ValueError), ({"delta": 2.0}, ValueError), ({"random_state": 1}, LedgerError),
        ({"epsilon": INF}, (LedgerError, BudgetExceeded)),
    ):  # fmt: skip
        with pytest.raises(kind):
            check(SCHEMA, raw, **{"epsilon": 0.1, "delta": 1e-7, "ledger": address, **wrong})
    moments = raw.assign(age=pd.Timestamp("2020-01-01"))
    refused = [raw.drop(columns="age"), raw.drop(columns="rent"), raw.assign(more=1), moments]
    for table in (
        *refused, *(dd.from_pandas(one, npartitions=2) for one in refused), pa.Table.from_pandas(moments),
        raw[:0], 5, {}, None, [1, 2],
    ):  # fmt: skip
        with pytest.raises(ValueError):
            check(SCHEMA, table, epsilon=0.1, delta=1e-7, ledger=address)
    with pytest.raises(ValueError, match=r"schema must be a dpglm.schema.Schema"):
        check("schema", raw, epsilon=0.1, delta=1e-7, ledger=address)
    assert len(list(account.history())) == before
    with pytest.warns(PrivacyWarning, match="300 records are too few for epsilon 0.1 and 12 columns"):
        paid = check(SCHEMA, raw, epsilon=0.1, delta=1e-7, ledger=address)
    assert "raw" in paid.privacy.public["ledger"] and len(list(account.history())) == before + 2
    assert paid.privacy.epsilon <= 0.1 and len(paid.privacy.releases) == 1


def test_a_check_says_what_it_found_and_can_be_stored():
    schema = Schema({"cost": Number(0, 5_000), "ward": Category(["A", "B"]), "y": Target(classes=[0, 1])})
    table = {"cost": ["1,123.40"] * 500 + ["7"] * 500, "ward": ["a"] * 1_000, "y": [0, 1] * 500}
    result = check(schema, table, epsilon=INF)
    assert str(result).splitlines()[:5] == [
        "1,000 records, each share ± 0 %",
        "      missing  unreadable  out of range  unknown level",
        "cost      0 %        50 %           0 %              -",
        "ward      0 %         0 %             -          100 %",
        "y         0 %         0 %             -            0 %",
    ]
    unreadable, unknown = result.remarks
    assert unreadable.startswith("50 % (± 0 %) of the cells of 'cost' cannot be read: `dpglm schema try`")
    assert unknown.startswith("100 % (± 0 %) of the cells of 'ward' have a level that is not declared")
    assert "50 % (± 0 %) of the records count for nothing in a fit" in str(result)
    assert "of the cells of" in result._repr_html_()
    stored = json.loads(check(schema, table, epsilon=1.0).to_json())
    assert stored["format"] == "dpglm check" and len(stored["shares"]) == 10
    assert isinstance(Plan.from_dict(stored["plan"]), CheckPlan)
    with pytest.raises(KeyError):
        result["age"]


def test_the_plan_forecasts_how_well_shares_will_be_known():
    schema = Schema({"x": Number(0, 1)})
    plan = CheckPlan.of(
        CellCounts(KindSchema.of(schema).codes, 10_000),
        Budget(0.1, 1e-8),
        Neighbours.REPLACE_ONE,
        "record",
    )
    result = check(schema, {"x": [0.5] * 10_000}, epsilon=0.1)
    assert result.plan == plan and result.shares[0].error == plan.error
    assert plan.forecast == f"each share will be known to ± {percent_up(2 * plan.error)}"
    assert plan.warning is None


def test_shares_in_words_are_cut_to_what_is_possible_and_margins_rounded_up():
    assert [percent(share) for share in (-0.2, 0.0, 0.011, 0.5, 1.3)] == [
        "0 %", "0 %", "1.1 %", "50 %", "100 %"
    ]  # fmt: skip
    assert [percent_up(share) for share in (0.0, 0.0101, 0.1234, 0.999, 2.0)] == [
        "0 %", "1.1 %", "13 %", "100 %", "200 %"
    ]  # fmt: skip


def test_an_offset_has_a_range_too():
    schema = Schema({"x": Number(0, 1), "shift": Offset(-1, 1), "y": Target(0, 1)})
    found = exactly(check(schema, {"x": [0, 1], "shift": [5, "?!"], "y": [0, 1]}, epsilon=INF))
    assert found["shift", "out of range"] == found["shift", "unreadable"] == 0.5
    assert found[None, "null record"] == 0.5


def test_odd_cells_change_their_own_record_alone_and_are_what_the_encoder_makes_of_them():
    rng, kinds, raw = np.random.default_rng(0), KindSchema.of(SCHEMA), frame(24).astype(object)
    before, names = kinds.encode(raw), [*kinds.readable]
    for _ in range(60):
        spoilt, rows = raw.copy(), set()
        for _ in range(12):
            row, name = int(rng.integers(24)), names[rng.integers(len(names))]
            spoilt.at[row, name] = odd_cell(rng)
            rows.add(row)
        found = kinds.encode(spoilt)
        others = [row for row in range(24) if row not in rows]
        assert np.array_equal(found[others], before[others])
        null = np.zeros(24, dtype=bool)
        for k, (name, column) in enumerate(kinds.readable.items()):
            assert set(found[:, k]) <= {FINE, *column.possible_kinds}
            if isinstance(column, Column):
                here = column.encode(SCHEMA._cells(spoilt, name)).null
                assert np.array_equal(here, found[:, k] == UNREADABLE)  # missing cells have a meaning here
            else:
                here = ~(np.abs(SCHEMA.read_target(spoilt)) < 1e100)
            null |= here
        assert np.array_equal(null, found[:, -1] == 1)

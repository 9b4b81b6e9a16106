"""Frank-Wolfe steps that extract the columns they need from the rows choose as with all columns."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds
from dpglm.data import as_data, sparse
from dpglm.data.sparse import _MOST_PASSES
from dpglm.losses import Logistic
from dpglm.mechanisms import Randomness
from dpglm.queries import VertexScores
from dpglm.queries.frank_wolfe_lazy import LazyVertices

N, P, RADIUS = 300, 2000, 20.0
SIZES = 2 / (np.arange(1, 301) + 2)


def table(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = sp.random_array((N, P), density=0.01, format="csr", rng=rng, data_sampler=rng.standard_normal)
    X = sp.csr_array(sp.hstack([X, sp.csr_array(rng.random((N, 1)))]).astype(dtype))  # one heavy column
    return X, np.where(rng.random(N) < 0.5, 1.0, -1.0)


def records(dtype=np.float64):
    return as_data(*table(dtype), Bounds(row_norm=1.0))


def lazy(data, scale):
    query = VertexScores(Logistic(), 1.0, P + 1, 1.0)
    return LazyVertices(query, data, np.zeros(N), 0.0, RADIUS, 2.0**-20 * scale, scale)


@pytest.mark.parametrize("portion", [1, 1 << 16], ids=["few words", "all words"])
@pytest.mark.parametrize(("scale", "few"), [(200.0, True), (20.0, None), (0.5, False)])
def test_choices_are_those_of_a_table_with_all_columns(scale, few, portion):
    found = []
    for converted in (False, True):
        data, randomness = records(), Randomness(1)
        if converted:
            _ = data.both_ways
        randomness._extend(portion)
        state = lazy(data, scale)
        found.append(state.run(SIZES, randomness.run_on))
        if not converted and few is not None:
            assert data.block.has_columns != few
        if not converted and few:
            _, held = data.on_demand.held
            assert held[found[0] // 2].all() and held.sum() < P / 2
            assert data.on_demand._passes == 1  # all columns had been foreseen
    assert np.array_equal(*found)
    assert len(np.unique(found[0])) > 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_by_rows_are_those_by_columns_to_the_last_digit(dtype):
    data, other = records(dtype), records(dtype)
    _ = other.both_ways
    slopes = np.random.default_rng(1).standard_normal(N)
    by_rows, by_columns = data.weighed(slopes, 0.3), other.weighed(slopes, 0.3)
    assert not data.block.has_columns and other.block.has_columns
    for name in ("sums", "counts", "largest", "least", "cut", "grid"):
        assert np.array_equal(getattr(by_rows, name), getattr(by_columns, name))
    assert by_rows.counts.sum() == data.block.entries and (np.abs(by_rows.sums[:, 0]) > 0.3).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_are_held_are_those_of_a_conversion(dtype):
    data, full = records(dtype), table(dtype)[0].tocsc()
    counts, rng = np.diff(full.indptr).astype(np.uint32), np.random.default_rng(2)
    asked = np.zeros(P + 1, dtype=np.uint8)
    for known in (None, counts)[:_MOST_PASSES]:
        asked[rng.choice(P + 1, 100)] = 1
        data.on_demand.hold(asked, known)
        (_, (indptr, indices, entries)), held = data.on_demand.held
        assert not data.block.has_columns and np.array_equal(held, asked)
        for j in np.flatnonzero(asked):
            here, there = slice(*indptr[j : j + 2]), slice(*full.indptr[j : j + 2])
            assert np.array_equal(indices[here], full.indices[there])
            assert np.array_equal(entries[here], full.data[there])
        assert np.any(np.diff(np.flatnonzero(asked)) == 1)  # some are neighbours, some are alone
        assert len(indices) == len(entries) == counts[asked > 0].sum() and entries.dtype == dtype


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 22])
def test_columns_are_the_same_from_lists_of_any_length(at_a_time, monkeypatch):
    monkeypatch.setattr(sparse, "_AT_A_TIME", at_a_time)
    data, full = records(), table()[0].tocsc()
    asked = np.zeros(P + 1, dtype=np.uint8)
    asked[::9] = 1
    data.on_demand.hold(asked)
    (_, (indptr, indices, entries)), _ = data.on_demand.held
    for j in np.flatnonzero(asked):
        here, there = slice(*indptr[j : j + 2]), slice(*full.indptr[j : j + 2])
        assert np.array_equal(indices[here], full.indices[there])
        assert np.array_equal(entries[here], full.data[there])


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("wanted", ["nothing new", "half of the entries", "too often"])
def test_the_table_is_converted_where_passes_are_of_no_use(wanted, known):
    data = records()
    entries, columns = np.diff(table()[0].tocsc().indptr).astype(np.uint32), data.on_demand
    counts = entries if known else None
    asked = np.zeros(P + 1, dtype=np.uint8)
    asked[3] = 1
    columns.hold(asked, counts)
    assert not data.block.has_columns
    if wanted == "half of the entries":
        asked[: P - 100] = 1
    if wanted == "too often":
        for j in range(_MOST_PASSES - 1):
            asked[10 + j] = 1
            columns.hold(asked, counts)
        assert not data.block.has_columns
        asked[9] = 1
    columns.hold(asked, counts)
    assert data.block.has_columns
    found, held = columns.held
    assert found.columns.indptr[-1] == entries.sum() and held.all()

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm.data import CSC, CSR, as_block, records, resident, sparse
from dpglm.data.sparse import converted, even_ranges

rng = np.random.default_rng(0)


def table(n, p, density, dtype=np.float64, index=np.int32):
    X = sp.random_array((n, p), density=density, format="csr", dtype=dtype, rng=rng)
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    return X


def assert_equal(ours, theirs):
    assert ours.format == theirs.format and ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert isinstance(ours, sp.sparray) == isinstance(theirs, sp.sparray)
    assert np.array_equal(ours.indptr, theirs.indptr)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.data, theirs.data)


@pytest.fixture(params=[1, 2, 3], ids="{} threads".format)
def threads(request, monkeypatch):
    monkeypatch.setattr(sparse, "PROCESSORS", request.param)
    monkeypatch.setattr(sparse, "_ENTRIES_PER_THREAD", 1)


SHAPES = [
    (300, 700, 0.05),
    (700, 300, 0.002),
    (1, 50, 0.5),
    (50, 1, 0.5),
    (5, 4, 0.0),
    (1, 1, 1.0),
    (0, 3, 0.0),
]


@pytest.mark.parametrize(("n", "p", "density"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_conversion_equals_scipys_in_both_directions(n, p, density, dtype, index, threads):
    X = table(n, p, density, dtype, index)
    Y = converted(X)
    assert_equal(Y, X.tocsc())
    assert Y.indices.dtype == Y.indptr.dtype == np.int32
    assert_equal(converted(Y), X)


def test_matrices_stay_matrices():
    X = sp.csr_matrix(table(30, 20, 0.2))
    assert_equal(converted(X), X.tocsc())


def test_rows_in_any_order_are_converted_all_the_same(threads):
    X = table(200, 90, 0.3).tocsc()
    shuffled = X[rng.permutation(200)]
    assert np.array_equal(CSC(shuffled).by_rows.X.toarray(), shuffled.toarray())


def test_a_table_with_popular_columns_is_converted_all_the_same(threads):
    X = table(300, 40, 0.05).tolil()
    X[:, 7] = 1.0
    assert_equal(converted(X.tocsr()), X.tocsc())


def test_long_tables_keep_short_indices_and_get_long_pointers(monkeypatch):
    monkeypatch.setattr(sparse, "index_type", lambda largest: np.int32 if largest < 100 else np.int64)
    X = table(60, 90, 0.2)
    Y = converted(X)
    assert Y.indptr.dtype == np.int64 and Y.indices.dtype == np.int32
    assert [part.dtype.kind for part in CSC(Y).unsigned] == ["u", "u", "f"]
    assert np.array_equal(Y.toarray(), X.toarray())
    r = rng.standard_normal(60)
    assert np.allclose(CSC(Y).t_dot(r), X.T @ r)


def test_ranges_cover_the_index_and_hold_about_as_many_entries_each():
    indices = np.minimum(rng.geometric(0.01, 100_000), 999).astype(np.uint32)
    edges = even_ranges(indices, 1000, 4)
    assert edges[0] == 0 and edges[-1] == 1000 and edges == sorted(edges)
    held, _ = np.histogram(indices, edges)
    assert (held < 0.3 * len(indices)).all()
    assert even_ranges(indices[:0], 5, 3) == [0, 0, 0, 5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_and_products_depend_neither_on_threads_nor_on_the_order_of_storage(dtype, monkeypatch):
    X = table(400, 150, 0.2, dtype)
    scale, limit = rng.random(400), np.full(150, 0.5)
    answers = []
    for processors, parts in ((1, 1), (2, 5), (3, 16)):
        monkeypatch.setattr(sparse, "PROCESSORS", processors)
        for module in (sparse, resident, records):
            monkeypatch.setattr(module, "chunk_count", lambda *_, parts=parts: parts)
        for block in (CSR(X), CSC(X.tocsc())):
            dense = [
                table.by_rows.X.toarray()
                for table in (
                    block.clipped(-limit, limit),
                    block.without(scale < 0.3),
                    block.scaled_columns(scale),
                )
            ]
            answers.append([block.row_norms, block.dot(scale[:150]), block.t_dot(scale), *dense])
    for answer in answers[1:]:
        assert all(map(np.array_equal, answer, answers[0]))


@pytest.mark.parametrize("wrap", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_passes_over_a_sparse_table_equal_those_over_a_dense_one(wrap, dtype):
    exact = table(80, 30, 0.3, dtype).toarray()
    block, dense = as_block(wrap(exact)), as_block(exact)
    limit, scale, dropped = rng.random(30), rng.random(80), rng.random(80) < 0.2
    assert np.array_equal(block.clipped(-limit, limit).X.toarray(), dense.clipped(-limit, limit).X)
    assert np.array_equal(block.without(dropped).X.toarray(), dense.without(dropped).X)
    assert np.array_equal(block.scaled_columns(scale).X.toarray(), dense.scaled_columns(scale).X)
    assert block.without(dropped).X.dtype == block.scaled_columns(scale).X.dtype == dtype


@pytest.mark.parametrize("wrap", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_nothing_is_copied_without_need(wrap):
    X = wrap(table(40, 30, 0.3))
    block = as_block(X)
    for kept in (block, block.clipped(np.full(30, -1.0), np.full(30, 1.0))):
        assert all(
            map(np.shares_memory, (X.data, X.indices, X.indptr), (kept.X.data, kept.X.indices, kept.X.indptr))
        )
    counts = as_block(wrap(X > 0))
    assert np.shares_memory(counts.without(np.zeros(40, dtype=bool)).X.indices, counts.X.indices)


def test_rows_that_are_not_finite_have_such_norms_and_can_be_emptied():
    X = table(5, 40, 0.5).toarray()
    X[0, 0], X[1, 0], X[2, 0] = np.nan, np.inf, 1e200
    for wrap in (sp.csr_array, sp.csc_array):
        block = as_block(wrap(X))
        assert np.array_equal(np.isfinite(block.row_norms), [False, False, False, True, True])
        emptied = block.without(~np.isfinite(block.row_norms))
        assert np.array_equal(emptied.X.toarray(), np.where(np.arange(5)[:, None] < 3, 0, X))

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds
from dpglm.bounds import rounded_inward
from dpglm.data import as_block, as_data
from dpglm.data.terms import SquaredRow
from dpglm.kernels.formulas import on_grid

rng = np.random.default_rng(0)
TABLE = rng.standard_normal((60, 7)) * (rng.random((60, 7)) < 0.4)
TABLE[:, 3] = 0.0
TABLE[5] = 0.0
Y = rng.standard_normal(60)


def memory_map(tmp_path):
    path = tmp_path / "table.npy"
    np.save(path, TABLE)
    return np.load(path, mmap_mode="r")


LAYOUTS = {
    "C order": lambda _: TABLE,
    "F order": lambda _: np.asfortranarray(TABLE),
    "float32": lambda _: TABLE.astype(np.float32),
    "integers": lambda _: (TABLE * 10).astype(np.int64),
    "memory map": memory_map,
    "CSR matrix": lambda _: sp.csr_matrix(TABLE),
    "CSR array": lambda _: sp.csr_array(TABLE),
    "CSR float32": lambda _: sp.csr_array(TABLE.astype(np.float32)),
    "CSC matrix": lambda _: sp.csc_matrix(TABLE),
    "CSC array": lambda _: sp.csc_array(TABLE),
    "COO": lambda _: sp.coo_array(TABLE),
}


def squares(records, radius):
    return np.asarray(records.total(SquaredRow(radius)))


@pytest.fixture(params=LAYOUTS)
def stored(request, tmp_path):
    X = LAYOUTS[request.param](tmp_path)
    exact = (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.float64)
    return X, exact


def test_every_layout_gives_the_same_products(stored):
    X, exact = stored
    block = as_block(X)
    w, r = rng.standard_normal(7), rng.standard_normal(60)
    assert np.allclose(block.dot(w), exact @ w, rtol=1e-13, atol=1e-13)
    assert np.allclose(block.t_dot(r), exact.T @ r, rtol=1e-13, atol=1e-13)
    assert np.allclose(block.row_norms, np.linalg.norm(exact, axis=1), rtol=1e-13)
    for j in range(7):
        rows, entries = block.column(j)
        column = np.zeros(60)
        column[rows] = entries
        assert np.array_equal(column, exact[:, j])
    some = np.array([3, 5, 59])
    assert np.allclose(block.rows(some).dot(w), exact[some] @ w, rtol=1e-13, atol=1e-13)


def test_records_lie_inside_their_bounds_in_every_layout(stored):
    X, exact = stored
    bounds = Bounds(row_norm=0.8, feature=np.linspace(0.1, 0.7, 7))
    records = as_data(X, Y, bounds, constant=0.5)
    inside = np.column_stack([bounds.clip(exact), np.full(60, 0.5)])
    w = rng.standard_normal(8)
    assert np.allclose(records.dot(w), inside @ w, rtol=1e-6, atol=1e-7)
    assert np.allclose(records.t_dot(Y), inside.T @ Y, rtol=1e-6)
    assert np.allclose(records.row_norms, np.linalg.norm(inside, axis=1), rtol=1e-6)
    assert (records.row_norms <= np.hypot(0.8, 0.5) * (1 + 1e-12)).all()
    assert np.allclose(squares(records, 0.8), np.square(inside[:, :7]).sum(axis=0), rtol=1e-6)
    columns = np.zeros((60, 7))
    for j in range(7):
        rows, entries = records.by_columns.column(j)
        columns[rows, j] = entries
    assert np.allclose(columns, inside[:, :7], rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("wrap", [np.array, sp.csr_array, sp.csc_array])
def test_a_record_that_is_not_finite_contributes_nothing(bad, wrap):
    broken = TABLE.copy()
    broken[7, 2] = bad
    y = Y.copy()
    y[11] = bad
    records = as_data(wrap(broken), y, Bounds(row_norm=1.0, target=(-1, 1)), constant=1.0)
    alone = np.zeros(60)
    alone[[7, 11]] = 1.0
    assert np.array_equal(records.t_dot(alone), np.zeros(8))
    assert records.row_norms[7] == records.row_norms[11] == 0.0
    assert np.isfinite(records.dot(np.ones(8))).all()
    assert np.isfinite(squares(records, 1.0)).all()
    assert np.isfinite(records.y).all()


def test_targets_are_cut_to_their_range():
    assert np.array_equal(
        as_data(TABLE[:3], [-5.0, 0.5, 9.0], Bounds(row_norm=1.0, target=(-1, 2))).y, [-1.0, 0.5, 2.0]
    )


def test_huge_entries_do_not_overflow_into_other_records():
    X = np.array([[1e300, 1e300], [0.3, 0.4]])
    records = as_data(X, [0.0, 0.0], Bounds(row_norm=1.0))
    assert np.allclose(records.dot(np.ones(2)), [0.0, 0.7])


@pytest.mark.parametrize("wrap", [np.array, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("norm", [1e-3, 1e20, 1e90, 1.3e154])
@pytest.mark.parametrize("limit", [1e-40, 2.1e-8, 1.0])
def test_the_squares_of_a_row_stay_below_its_bound_whatever_its_size(wrap, norm, limit):
    records = as_data(wrap([[norm * 0.6, norm * 0.8]]), [0.0], Bounds(row_norm=limit))
    assert squares(records, limit).sum() <= limit**2 * (1 + 1e-13)
    assert records.row_norms[0] <= limit * (1 + 1e-15)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wrap", [np.array, sp.csr_array, sp.csc_array])
def test_bounds_beyond_single_precision_are_those_of_its_largest_number(wrap):
    limit = np.array([1e50, 1e-50, 1.0, 3.4e38, 1e39])
    largest = np.finfo(np.float32).max
    _, edge = rounded_inward(-limit, limit, np.dtype(np.float32))
    assert edge.dtype == np.float32 and np.array_equal(edge[[0, 1, 2, 4]], [largest, 0.0, 1.0, largest])
    assert edge[3] <= 3.4e38 < np.nextafter(edge[3], np.float32(np.inf))
    X = np.array([[1e38, 1e-40, 2.0, -largest, -largest]], dtype=np.float32)
    cut = as_block(wrap(X)).clipped(-limit, limit).X
    assert np.array_equal(
        cut.toarray() if sp.issparse(cut) else cut, [[X[0, 0], 0.0, 1.0, -edge[3], -largest]]
    )


@pytest.mark.parametrize("wrap", [np.array, sp.csr_array, sp.csc_array])
def test_a_row_is_never_said_to_be_shorter_than_it_is(wrap):
    sizes = np.array([0.0, 5e-324, 1e-170, 1e-163, 1e-160, 1e-156, 1e-152, 1e-150, 1e-149, 1.0])
    norms = as_block(wrap(sizes[:, None])).row_norms
    assert np.all(norms >= sizes * (1 - 1e-15))
    assert np.allclose(norms, np.maximum(sizes, 1e-150), rtol=1e-15, atol=0)


def test_a_sparse_table_that_wrongly_believes_to_be_canonical_is_summed_all_the_same():
    X = sp.csr_array(np.array([[1.0, 1.0]]))
    assert X.has_canonical_format
    X.indices[1] = 0
    records = as_data(X, [0.0], Bounds(row_norm=1.0))
    assert np.allclose(records.dot(np.array([1.0, 0.0])), [1.0])


def test_the_table_of_the_caller_is_never_written():
    X, y = TABLE.copy(), Y.copy()
    X[0, 0], y[1] = np.nan, np.nan
    before_X, before_y = X.copy(), y.copy()
    as_data(X, y, Bounds(row_norm=0.1, feature=0.05, target=(-0.1, 0.1)), constant=1.0)
    assert np.array_equal(X, before_X, equal_nan=True) and np.array_equal(y, before_y, equal_nan=True)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_dense_table_inside_its_ranges_is_not_copied(order):
    X = np.asarray(np.random.default_rng(0).uniform(-1, 1, (40, 13)), order=order)
    high = np.abs(X).max(axis=0)
    inside = as_block(X)
    assert inside.clipped(-high, high) is inside
    for i, j in ((0, 0), (39, 12), (17, 8)):
        beyond = X.copy(order="K")
        beyond[i, j] = -np.nextafter(high[j], 2.0)
        cut = as_block(beyond).clipped(-high, high)
        assert np.array_equal(cut.X, np.clip(beyond, -high, high)) and cut.X[i, j] == -high[j]


def test_duplicate_entries_of_a_sparse_table_are_summed_before_they_are_clipped():
    X = sp.coo_array((np.array([0.6, 0.6]), (np.array([0, 0]), np.array([0, 0]))), shape=(1, 2))
    X = sp.csr_array((X.data, np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    records = as_data(X, [0.0], Bounds(feature=1.0))
    assert np.allclose(records.dot(np.array([1.0, 0.0])), [1.0])


def test_single_precision_limits_are_rounded_towards_zero():
    limit = np.array([0.1, 0.7])
    clipped = as_block(np.full((3, 2), 9.0, dtype=np.float32)).clipped(-limit, limit)
    assert (clipped.X.astype(np.float64) <= limit).all()


def test_compiled_sums_are_rounded_to_the_grid_like_all_answers():
    for total in (*rng.standard_normal(200) * 10 ** rng.uniform(-6, 20, 200), 0.0, 1.5, -2.5):
        for grid in (0.0, 2.0**-30, 1.0, 2.0**10):
            rounded = total if grid == 0 or abs(total) >= 2**53 * grid else np.rint(total / grid) * grid
            assert on_grid(float(total), grid) == rounded


ORDERS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["negative", "positive"])
@pytest.mark.parametrize("form", ORDERS)
@pytest.mark.parametrize("limit", [0.5, np.array([0.5, 0.25, 8.0])], ids=["one limit", "one each"])
def test_entries_of_one_sign_beyond_the_bound_are_cut(form, sign, dtype, limit):
    X = sign * np.array([[3.0, 0.0, 0.125], [0.0, 7.0, 0.25], [0.25, 0.125, 0.0]], dtype=dtype)
    data = as_data(ORDERS[form](X), np.zeros(3), Bounds(feature=limit))
    expected = np.clip(X, -np.broadcast_to(limit, 3), np.broadcast_to(limit, 3))
    rows = np.array([data.t_dot(unit) for unit in np.eye(3)])
    assert np.array_equal(rows, expected)
    assert np.allclose(data.row_norms, np.linalg.norm(expected, axis=1))

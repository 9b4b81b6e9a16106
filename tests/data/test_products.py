"""Sums of products of a record's numbers are exact: they depend on the set of records alone."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info

from dpglm import Bounds, Stream
from dpglm.arrays import Total, on_column_grids, one_blas_thread
from dpglm.data import as_data, records
from dpglm.data.bounded_numbers import LossValues
from dpglm.data.products import (
    JointRows,
    MomentRows,
    bits_of_factors,
    coordinates_of,
    grid_of_factors,
    rows_a_chunk,
    symmetric,
    triangle,
)
from dpglm.data.streamed import StreamedRecords
from dpglm.losses import LogCosh, Logistic
from dpglm.mechanisms import Gaussian, Randomness

N, P = 3000, 5
rng = np.random.default_rng(0)
X, Y = rng.uniform(-1.5, 1.5, (N, P)), rng.choice([-1.0, 1.0], N)
X[rng.random((N, P)) < 0.3] = 0.0
BOUNDS = Bounds(feature=(-1.0, 1.25), target=(-1, 1))
BOX = BOUNDS.coordinates(P, intercept=True)
METRIC = on_column_grids(rng.standard_normal((P + 1, P + 1)))
POINT = METRIC[:, 2].copy()
TERMS = {
    "moments": MomentRows(BOX, 2.0, 0.1, 0.7, N),
    "logistic": JointRows(Logistic(), BOX, 1.3, 0.5, N, METRIC, POINT),
    "log-cosh": JointRows(LogCosh(0.4), BOX, 1.3, 0.6, N, METRIC, POINT),
    "values": LossValues(LogCosh(0.4), BOX, 1.0, N, POINT),
}
EVERY_TERM = pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
LAYOUTS = (np.array, np.asfortranarray, sp.csr_array, sp.csc_array, sp.csc_matrix)


def steps(table, y, term):
    return as_data(table, y, BOUNDS, 0.5, table_size=N).cross_products(term).steps


@EVERY_TERM
def test_sums_are_the_same_in_every_layout_order_and_cut(term, monkeypatch):
    expected = steps(X, Y, term)
    assert expected.shape == (term.entries(P),) and expected.any()
    for layout in LAYOUTS:
        assert np.array_equal(steps(layout(X), Y, term), expected)
    order = rng.permutation(N)
    assert np.array_equal(steps(X[order], Y[order], term), expected)
    cuts = [0, 1, 17, 1024, 2999, N]
    parts = [steps(X[a:b], Y[a:b], term) for a, b in zip(cuts, cuts[1:], strict=False)]
    assert np.array_equal(sum(parts), expected)
    for parts_, rows in ((1, 7), (5, 64), (16, 4096)):
        monkeypatch.setattr(records, "chunk_count", lambda entries, parts_=parts_: parts_)
        monkeypatch.setattr(records, "rows_a_chunk", lambda d, rows=rows: rows)
        assert np.array_equal(steps(X, Y, term), expected)


@EVERY_TERM
def test_a_stream_and_a_batch_have_the_sums_of_their_records(term):
    stream = Stream(lambda: iter([(X[:700], Y[:700]), (X[700:], Y[700:])]), N, P)
    streamed = StreamedRecords(stream, lambda rows, targets: (rows, targets), BOUNDS, 0.5)
    assert np.array_equal(streamed.cross_products(term).steps, steps(X, Y, term))
    batch = np.flatnonzero(rng.random(N) < 0.3)
    whole = as_data(X, Y, BOUNDS, 0.5)
    assert np.array_equal(whole.rows(batch).cross_products(term).steps, steps(X[batch], Y[batch], term))


@EVERY_TERM
def test_neighbours_differ_exactly_by_what_the_two_records_add(term):
    other, y = X.copy(), Y.copy()
    other[5], y[5] = rng.uniform(-1, 1, P), -Y[5]
    whole = steps(X, Y, term) - steps(other, y, term)
    alone = steps(X[5:6], Y[5:6], term) - steps(other[5:6], y[5:6], term)
    assert np.array_equal(whole, alone) and whole.any()


def test_products_of_blas_are_those_of_rational_arithmetic():
    term, rows = TERMS["moments"], as_data(X[:40], Y[:40], BOUNDS, 0.5, table_size=N)
    z = np.column_stack([coordinates_of(rows, BOX), 0.7 * (rows.y - 0.1)])
    z *= np.minimum(1.0, 2.0 / np.linalg.norm(z, axis=1))[:, None]
    z = np.rint(z / term.grid) * term.grid
    exact = [
        sum(Fraction(a) * Fraction(b) for a, b in zip(z[:, i], z[:, j], strict=True))
        / Fraction(term.grid) ** 2
        for i, j in zip(*np.triu_indices(P + 2), strict=True)
    ]
    assert [int(step) for step in rows.cross_products(term).steps] == exact


@pytest.mark.parametrize("n", [1, 1000, 2**20, 10**7, 10**9, 10**12])
def test_no_sum_of_products_leaves_the_digits_of_its_type(n):
    bits = bits_of_factors(n)
    for limit in (1e-60, 0.3, 1.0, 7.5, 1e60):
        most = Fraction(limit) * (1 + Fraction(1, 2**21)) / Fraction(grid_of_factors(limit, n)) + 1
        assert most <= 2**bits
    assert rows_a_chunk(1) * 4**bits <= 2**52 and n * 4**bits <= 2**61
    assert bits >= 10


def test_products_with_the_metric_are_exact_in_any_order():
    for d in (1, 2, 11, 51, 400):
        metric = on_column_grids(rng.standard_normal((d, 3)) * 10.0 ** rng.uniform(-5, 5, 3))
        grid = np.ldexp(1.0, np.frexp(np.abs(metric).max(axis=0))[1] - (53 - 23 - d.bit_length()))
        assert np.array_equal(np.rint(metric / grid), metric / grid)
        assert np.array_equal(on_column_grids(metric), metric)
        coordinates = np.rint(rng.uniform(-1, 1, (20, d)) * 2.0**23) / 2.0**23
        order = rng.permutation(d)
        assert np.array_equal(coordinates @ metric, coordinates[:, order] @ metric[order])


def test_noise_in_units_is_that_of_the_whole_vector():
    """Each entry has its own grid and unit: after both, noise has one deviation, and no noise is none."""
    unit = np.array([2.0**-30, 2.0**-20 / np.sqrt(2), 3.7e-9, 1e-5])
    total = Total(np.array([5, -(2**40), 2**50, 12345]), 1.0, unit=unit)
    assert np.allclose(np.asarray(total), total.steps * unit)
    assert np.array_equal(Gaussian(0.0).release(total, 1.0, Randomness(0)), np.asarray(total))
    released = np.array([Gaussian(2.0).release(total, 3.0, Randomness(k)) for k in range(4000)])
    noise = released - np.asarray(total)
    assert np.allclose(noise.std(axis=0), 6.0, rtol=0.06)
    assert np.all(np.abs(noise.mean(axis=0)) < 0.5)
    for column, one in zip(released.T, unit, strict=True):
        whole = column / one
        assert np.allclose(whole, np.rint(whole), rtol=0, atol=1e-6 * np.abs(whole).max())


def test_a_symmetric_matrix_comes_back_from_its_triangle():
    matrix = rng.standard_normal((4, 4))
    matrix += matrix.T
    i, j = np.triu_indices(4)
    assert len(i) == triangle(4)
    assert np.allclose(symmetric(np.where(i == j, matrix[i, j] / np.sqrt(2), matrix[i, j]), 4), matrix)


def test_blas_has_one_thread_inside_and_its_own_number_outside():
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    with one_blas_thread():
        assert all(pool["num_threads"] == 1 for pool in threadpool_info() if pool["user_api"] == "blas")
    assert before == [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

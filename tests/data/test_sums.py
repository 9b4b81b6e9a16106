"""Sums of cut terms: fresh over dense tables, kept over sparse ones."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, threads
from dpglm.data import as_data
from dpglm.data.sums import exact_grid

rng = np.random.default_rng(0)
WIDE = Bounds(feature=1e3)
DENSE = {
    "C order": np.array,
    "F order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float32, F order": lambda X: np.asfortranarray(X.astype(np.float32)),
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
SPARSE = {
    "CSR": sp.csr_array,
    "CSC": sp.csc_matrix,
    "CSR float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def table(n, p, fill=0.5):
    return rng.standard_normal((n, p)) * (rng.random((n, p)) < fill)


def cut(X, r, limit):
    return np.clip(np.asarray(X, dtype=np.float64) * r[:, None], -limit, limit).sum(axis=0)


def limits(count, shared):
    """A limit for each feature, or one that all share but the last."""
    return np.r_[np.full(count - 1, 0.3), 0.07] if shared else np.geomspace(1e-2, 3.0, count)


def sums_at(records, limit, r, reach=np.inf):
    kept = records.sums(limit, np.full(len(limit), reach))
    kept.shift(slice(None), np.zeros_like(r), r)
    return kept


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (37, 9), (50, 131)], ids=str)
@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("layout", DENSE | SPARSE)
def test_every_layout_sums_the_cut_terms(layout, shared, constant, shape):
    X, r = table(*shape), rng.standard_normal(shape[0])
    stored = (DENSE | SPARSE)[layout](X)
    exact = stored.toarray() if sp.issparse(stored) else stored
    limit = limits(shape[1] + bool(constant), shared)
    full = np.column_stack([exact, np.full(shape[0], constant)])[:, : len(limit)]
    found = sums_at(as_data(stored, r, WIDE, constant), limit, r).sums
    assert np.allclose(found, cut(full, r, limit), rtol=1e-12, atol=1e-9)


def test_threads_do_not_change_a_sum(monkeypatch):
    X, r = table(64, 300), rng.standard_normal(64)
    limit = np.full(300, 0.4)
    monkeypatch.setattr(threads, "_ENTRIES_PER_CHUNK", 1_000)
    found = []
    for processors in (1, 3):
        monkeypatch.setattr(threads, "PROCESSORS", processors)
        found.append([sums_at(as_data(layout(X), r, WIDE), limit, r).sums for layout in DENSE.values()])
    assert np.array_equal(*found)
    for layout, sums in zip(DENSE.values(), found[0], strict=True):
        assert np.allclose(sums, cut(layout(X), r, limit), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("layout", SPARSE)
def test_kept_sums_do_not_drift_and_are_exact(layout, shared):
    n, p = 40, 25
    records = as_data(SPARSE[layout](table(n, p, 0.3)), np.zeros(n), Bounds(row_norm=1.0), 0.5)
    limit = limits(p + 1, shared)
    r = rng.standard_normal(n)
    kept = sums_at(records, limit, r)
    for _ in range(2_000):
        rows = rng.choice(n, rng.integers(1, 6), replace=False).astype(np.int32)
        new = rng.standard_normal(len(rows)) * 10 ** rng.uniform(-3, 3)
        touched = kept.shift(rows, r[rows], new, 7)
        changed = np.any(records.block.X[rows].toarray() != 0, axis=0)
        assert set(np.flatnonzero(changed)) | {7, p} == set(touched.tolist())
        assert len(set(touched.tolist())) == len(touched)
        r[rows] = new
    assert np.array_equal(kept.sums, sums_at(records, limit, r).sums)
    grid = exact_grid(limit, n)
    steps = kept.sums / grid
    assert np.array_equal(steps, np.rint(steps))
    assert (np.abs(steps) <= 2**51).all()


def test_terms_on_the_grid_stay_within_their_limit():
    limit = 10.0 ** rng.uniform(-30, 30, 200)
    for n in (1, 2, 3, 1000, 10**7):
        grid = exact_grid(limit, n)
        for top, step in zip(limit, grid, strict=True):
            assert Fraction(top) * n <= 2**51 * Fraction(step) < Fraction(top) * n * 4
    X = sp.csr_array(np.full((1, 200), 7.0))
    sums = sums_at(as_data(X, [0.0], WIDE), limit, np.array([1e40])).sums
    assert (sums <= limit).all()
    assert (sums >= limit * (1 - 2.0**-49)).all()


def test_sums_without_limits_are_those_of_a_product():
    X, r = table(30, 12), rng.standard_normal(30)
    records = as_data(sp.csr_array(X), r, WIDE)
    assert np.allclose(sums_at(records, np.full(12, np.inf), r).sums, X.T @ r, rtol=1e-12)


def test_the_kept_sum_of_the_constant_feature_does_not_drift_where_scaled_factors_round_to_the_same():
    rng = np.random.default_rng(0)
    limit, reach = np.array([0.3, 0.3, 0.125]), np.full(3, np.inf)
    for _ in range(200):
        records = as_data(sp.csr_array(rng.uniform(1, 3, (4, 2))), np.zeros(4), Bounds(row_norm=1.0), 0.5)
        r, zero = rng.uniform(0.1, 0.2, 4), np.zeros(4)
        kept, fresh = records.sums(limit, reach), records.sums(limit, reach)
        kept.shift(slice(None), zero, r)
        for _ in range(50):
            new = np.nextafter(r, r + rng.choice([-1, 1], 4))
            kept.shift(slice(None), r, new)
            r = new
        fresh.shift(slice(None), zero, r)
        assert np.array_equal(kept.sums, fresh.sums)

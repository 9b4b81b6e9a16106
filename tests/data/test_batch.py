"""Batches: rows that are read in place, and of which no rounding tells who is beside them."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.data.terms import SquaredRow
from dpglm.losses import Logistic, Squared
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.mechanisms.sampling import Poisson
from dpglm.queries import ClippedGradient, DualStep

rng = np.random.default_rng(0)
N, P = 60, 37
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.7)
Y = rng.choice([-1.0, 1.0], N)
FORMS = [np.array, np.asfortranarray, sp.csr_array, sp.csc_matrix, np.float32]
EVERY_FORM = pytest.mark.parametrize("form", FORMS, ids=["C", "F", "CSR", "CSC", "float32"])


@EVERY_FORM
@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_products_are_those_of_the_rows(form, constant):
    records = as_data(form(X), Y, Bounds(row_norm=1.0), constant)
    index = np.sort(rng.choice(N, 23, replace=False))
    batch, w, r = records.rows(index), rng.standard_normal(P + bool(constant)), rng.standard_normal(23)
    assert np.allclose(batch.dot(w), records.dot(w)[index], rtol=1e-12, atol=1e-12)
    spread = np.zeros(N)
    spread[index] = r
    assert np.allclose(batch.t_dot(r), records.t_dot(spread), rtol=1e-12, atol=1e-12)
    squares = np.asarray(batch.total(SquaredRow(1.0)))
    entries = np.array([records.rows(index).dot(unit) for unit in np.eye(P + bool(constant))[:P]])
    assert np.allclose(squares, np.square(entries).sum(axis=1), rtol=1e-9, atol=1e-12)
    assert batch.block.shape == (23, P) and np.array_equal(batch.row_norms, records.row_norms[index])


def test_a_batch_can_be_copied():
    batch = as_data(X, Y, Bounds(row_norm=1.0)).rows(np.array([1, 4])).block
    assert np.array_equal(copy.copy(batch).dot(np.ones(P)), batch.dot(np.ones(P)))


@EVERY_FORM
def test_a_margin_does_not_depend_on_the_rows_beside_it(form):
    records = as_data(form(X), Y, Bounds(row_norm=1.0), 0.5)
    w = rng.standard_normal(P + 1)
    alone = np.array([records.rows(np.array([i])).dot(w)[0] for i in range(N)])
    for _ in range(50):
        index = np.sort(rng.choice(N, rng.integers(2, N), replace=False))
        assert np.array_equal(records.rows(index).dot(w), alone[index])


@EVERY_FORM
def test_rows_of_zeros_change_no_bit_of_a_sum(form):
    table = X.copy()
    table[::3] = 0.0
    records = as_data(form(table), Y, Bounds(row_norm=1.0))
    r = rng.standard_normal(N)
    some = np.flatnonzero(np.arange(N) % 3)
    assert np.array_equal(records.rows(np.arange(N)).t_dot(r), records.rows(some).t_dot(r[some]))


@EVERY_FORM
@pytest.mark.parametrize("stateful", [False, True], ids=["gradient", "dual step"])
def test_a_null_record_leaves_no_trace_in_a_batch(form, stateful):
    """Tables with and without a null record, and coins that fall alike for all others, give the same bits."""
    table = np.insert(X, 4, np.nan, axis=0)
    with_null = as_data(form(table), np.insert(Y, 4, 1.0), Bounds(row_norm=1.0), 0.5)
    released = []
    for seen in (with_null, as_data(form(X), Y, Bounds(row_norm=1.0), 0.5)):
        curator = Curator(seen, Neighbours.ZERO_OUT, Randomness(0))
        drawn = np.delete(np.arange(N), [1, 7])
        if seen is with_null:
            drawn = np.insert(drawn + (drawn >= 4), 3, 4)
        curator._randomness.coins = lambda rate, drawn=drawn: Drawn(drawn)
        w = np.linspace(-1, 1, P + 1)
        if stateful:
            opened = curator.open(DualStep(Logistic(), 0.1, 0.5, 0.5), w, Gaussian(0.0))
            released.append([opened.step(w, Poisson(0.5)) for _ in range(3)])
        else:
            query = ClippedGradient(Logistic(), 0.1)
            released.append([curator.release(query, Gaussian(0.0), w, sampling=Poisson(0.5))])
    assert np.array_equal(released[0], released[1])


class Drawn:
    """Coins that say yes for given records."""

    def __init__(self, drawn):
        self._drawn = drawn

    def taken(self, start, stop):
        return self._drawn


VIEWS = {
    "some columns": lambda table: np.hstack([table, table])[:, :P],
    "every other row": lambda table: np.repeat(table, 2, axis=0)[::2],
    "every other column": lambda table: np.repeat(table, 2, axis=1)[:, ::2],
    "rows of columns": lambda table: np.asfortranarray(np.repeat(table, 2, axis=0))[::2],
    "backwards": lambda table: table[::-1].copy()[::-1],
    "float32": lambda table: np.hstack([table, table]).astype(np.float32)[:, :P],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("entry", [np.nan, 100.0], ids=["null", "cut"])
def test_no_margin_tells_that_another_record_had_the_table_copied(view, entry):
    """A record that is null or outside its bounds has the table copied, and a copy may round otherwise."""
    touched = X.copy()
    touched[7, 3] = entry
    others, w = np.setdiff1d(np.arange(N), [7]), rng.standard_normal(P)
    one, two = (as_data(view(table), Y, Bounds(feature=10.0)) for table in (X, touched))
    assert np.array_equal(one.dot(w)[others], two.dot(w)[others])
    assert np.array_equal(one.rows(others).dot(w), two.rows(others).dot(w))
    r = rng.standard_normal(N - 1)
    assert np.array_equal(one.rows(others).t_dot(r), two.rows(others).t_dot(r))


@pytest.mark.parametrize(
    "query", [ClippedGradient(Squared(), 1.0), DualStep(Squared(), 1.0, 1.0, 1.0)], ids=repr
)
@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("entry", [1e-170, 1e-160, 1.0])
@pytest.mark.parametrize("target", [1e99, 1e200, 2.3e303, 1.7e308])
def test_no_target_is_so_large_that_a_record_adds_more_than_the_clip(query, form, entry, target):
    """Norms of rows below 1e-154 underflow, and no clip sees what their entries add times a huge target."""
    records = as_data(form([[entry, entry]]), [target], Bounds(row_norm=5.0))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert np.linalg.norm(np.asarray(query(records, np.zeros(2)))) <= 1.0 + 1e-12

"""Exact sums of gradients with a prediction for each class, in every layout and cut."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, threads
from dpglm.audit.targets import on_a_stream
from dpglm.bounds import Coordinates
from dpglm.data import as_data, records
from dpglm.data.bounded_numbers import ClassSizes
from dpglm.data.products import ClassGradients, MetricClassRows
from dpglm.losses import Multinomial
from dpglm.mechanisms import Randomness
from dpglm.mechanisms.sampling import Poisson
from dpglm.penalties import Zero
from dpglm.problem import Problem

rng = np.random.default_rng(0)
N, P, K = 503, 11, 4
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.6) * 10.0 ** rng.uniform(-3, 2, (N, 1))
X[17], X[300, 3] = 0.0, np.nan
Y = rng.integers(K, size=N).astype(float)
Y[5] = np.nan
W = rng.standard_normal((P + 1, K))
LOSS, BOUNDS = Multinomial(K), Bounds(row_norm=1.0)
PROBLEM = Problem(LOSS, Zero(), BOUNDS)
LAYOUTS = {
    "C": np.array, "F": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array,
    "strided": lambda table: np.repeat(table, 2, axis=1)[:, ::2],
}  # fmt: skip
COORDINATES = Coordinates(np.zeros(P), np.full(P, 2.0), True)
METRIC = np.round(rng.standard_normal((P + 1, P + 1)) * 64) / 64
TERMS = {
    "gradient": ClassGradients(LOSS, W, 0.4, 0.4, N),
    "gradient with another constant": ClassGradients(LOSS, W, 0.4, 0.4, N, constant=0.125),
    "gradient without a clip": ClassGradients(LOSS, W, math.inf, 2.0, N),
    "gradient in a metric": MetricClassRows(LOSS, COORDINATES, METRIC, W, 0.4, 2.0, N),
    "class sizes": ClassSizes(None, 1.0, K, N),
}
EVERY_TERM = pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)


def held(table, y=Y):
    return as_data(table, y, BOUNDS, 0.5, table_size=N)


def steps(data, term):
    total = data.cross_products(term)
    return np.concatenate([total.steps, [] if total.rest is None else total.rest.ravel()])


@EVERY_TERM
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_records_have_the_same_sum_in_every_layout_order_and_cut(term, dtype, monkeypatch):
    table = X.astype(dtype)
    expected = steps(held(table), term)
    for layout in LAYOUTS.values():
        assert np.array_equal(steps(held(layout(table)), term), expected)
    order = rng.permutation(N)
    assert np.array_equal(steps(held(table[order], Y[order]), term), expected)
    for processors, cuts in ((1, 3), (2, 7)):
        monkeypatch.setattr(threads, "PROCESSORS", processors)
        monkeypatch.setattr(records, "chunk_count", lambda *_, cuts=cuts: cuts)
        assert np.array_equal(steps(held(table), term), expected)


@EVERY_TERM
def test_a_stream_has_the_sum_of_memory(term):
    stream = on_a_stream(X, Y, PROBLEM)
    assert np.array_equal(steps(stream, term), steps(as_data(X, Y, BOUNDS, PROBLEM.constant(P)), term))


def test_a_batch_of_a_stream_has_the_sum_of_the_same_batch_in_memory():
    term, sums = TERMS["gradient"], []
    for data in (as_data(X, Y, BOUNDS, 0.5), on_a_stream(X, Y, PROBLEM)):
        coins = Poisson(0.3).draw(Randomness(3))
        sums.append(steps(data.rows(data.batch(coins)), term))
    assert np.array_equal(*sums) and not np.array_equal(sums[0], steps(held(X), term))


@EVERY_TERM
def test_neighbours_differ_exactly_by_what_the_two_records_add(term):
    other, y = X.copy(), Y.copy()
    other[0], y[0] = rng.standard_normal(P), (Y[0] + 1) % K

    def total(table, targets):
        found = held(table, targets).cross_products(term)
        return [int(step) * Fraction(found.grid) for step in found.steps]

    whole = [a - b for a, b in zip(total(X, Y), total(other, y), strict=True)]
    alone = [a - b for a, b in zip(total(X[:1], Y[:1]), total(other[:1], y[:1]), strict=True)]
    assert whole == alone and any(whole)


@EVERY_TERM
def test_a_null_record_adds_exactly_nothing(term):
    assert not steps(held(X[[300]], Y[[300]]), term).any()
    assert not steps(held(X[[5]], Y[[5]]), term).any()


@pytest.mark.parametrize("clip", [0.4, math.inf])
def test_the_sum_is_that_of_the_clipped_gradients_of_the_loss(clip):
    data = held(X)
    rows = np.column_stack([data.dot(unit) for unit in np.eye(P + 1)])
    slopes = np.where(data.scale[:, None] > 0, LOSS.derivative(rows @ W, data.y), 0.0)
    sizes = data.row_norms * np.linalg.norm(slopes, axis=1)
    expected = rows.T @ (slopes * np.minimum(clip / np.maximum(sizes, 1e-300), 1.0)[:, None])
    found = np.asarray(data.cross_products(ClassGradients(LOSS, W, clip, min(clip, 2.0), N)))
    assert found.shape == ((P + 1) * K,)
    assert np.allclose(found.reshape(P + 1, K), expected, rtol=0, atol=1e-12)


def test_without_a_constant_feature_there_is_no_entry_for_it():
    data = as_data(X, Y, BOUNDS)
    found = data.cross_products(ClassGradients(LOSS, W[:P], 0.4, 0.4, N))
    assert found.shape == (P * K,)


def test_the_class_sizes_are_the_counts_of_the_classes():
    counts = np.asarray(held(X).cross_products(TERMS["class sizes"]))[1:]
    counted = np.delete(Y, [5, 300])
    assert np.array_equal(counts, np.bincount(counted.astype(int), minlength=K))

"""Exact sums: a function of the set of records, whatever the cut, order, thread, layout and processor."""

import os
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, threads
from dpglm.arrays import Total, bits_of_terms, grid_of_terms
from dpglm.data import as_data, records, resident
from dpglm.data.terms import CutGradient, Gradient, InterceptGradient, SquaredRow
from dpglm.kernels.arguments import Form
from dpglm.kernels.formulas import LOGISTIC, write_slopes
from dpglm.losses import LOSSES, Huber, Logistic, Squared

rng = np.random.default_rng(0)
N, P = 1003, 21
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.6) * 10.0 ** rng.uniform(-3, 2, (N, 1))
X[17], X[900, 3] = 0.0, np.nan
Y = rng.choice([-1.0, 1.0], N)
W = rng.standard_normal(P + 1)
BOUNDS = Bounds(row_norm=1.0)
LAYOUTS = {
    "C": np.array, "F": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array,
    "strided": lambda table: np.repeat(table, 2, axis=1)[:, ::2],
}  # fmt: skip
TERMS = {
    "gradient": Gradient(Logistic(), W, 0.4),
    "gradient of another loss": Gradient(Huber(0.3), W, 0.4),
    "gradient without a clip": Gradient(Squared(), W, np.inf),
    "intercept": InterceptGradient(Logistic(), W, 0.3),
    "squares": SquaredRow(1.0),
    "squares of rows without a bound": SquaredRow(np.inf),
}
EVERY_TERM = pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)


def steps(total):
    return np.concatenate([total.steps, [] if total.rest is None else total.rest.ravel()])


@EVERY_TERM
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_records_have_the_same_sum_in_every_layout_order_and_cut(term, dtype, monkeypatch):
    table = X.astype(dtype)
    expected = steps(as_data(table, Y, BOUNDS, 0.5).total(term))
    for layout in LAYOUTS.values():
        assert np.array_equal(steps(as_data(layout(table), Y, BOUNDS, 0.5).total(term)), expected)
    order = rng.permutation(N)
    assert np.array_equal(steps(as_data(table[order], Y[order], BOUNDS, 0.5).total(term)), expected)
    whole = as_data(table, Y, BOUNDS, 0.5)
    for processors, cuts in ((1, 3), (2, 7), (3, 16)):
        monkeypatch.setattr(threads, "PROCESSORS", processors)
        for module in (resident, records):
            monkeypatch.setattr(module, "chunk_count", lambda *_, cuts=cuts: cuts)
        assert np.array_equal(steps(whole.total(term)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.array, np.asfortranarray], ids=["C", "F"])
def test_rows_that_are_multiplied_four_at_a_time_have_the_products_of_single_rows(dtype, layout):
    n = 11
    for p in range(1, 18):
        table, y = rng.standard_normal((n, p)).astype(dtype), rng.choice([-1.0, 1.0], n)
        term = Gradient(Logistic(), rng.standard_normal(p + 1), 0.4)
        single = sum(
            as_data(table[i : i + 1], y[i : i + 1], BOUNDS, 0.5, table_size=n).total(term).steps
            for i in range(n)
        )
        whole = as_data(layout(table), y, BOUNDS, 0.5)
        assert np.array_equal(whole.total(term).steps, single)
        assert np.array_equal(whole.rows(rng.permutation(n)).total(term).steps, single)


def test_sums_of_cut_terms_are_the_same_in_every_layout():
    term = CutGradient(Logistic(), W, np.linspace(0.01, 0.2, P + 1))
    grid = np.array([grid_of_terms(limit, 2**20) for limit in term.clips])
    sums = [as_data(layout(X), Y, BOUNDS, 0.5).cut_sums(term, grid) for layout in LAYOUTS.values()]
    assert all(np.array_equal(one, sums[0]) for one in sums)
    rows = as_data(X, Y, BOUNDS, 0.5)
    slopes = rows.slopes(Logistic(), rows.margins(W))
    for j in (0, P):
        entries = rows.dot(np.eye(P + 1)[j])
        exact = np.clip(slopes * entries, -term.clips[j], term.clips[j]).sum()
        assert sums[0][j] == pytest.approx(exact, abs=N * grid[j])


def exactly(total):
    """The entries of a sum as rational numbers."""
    return [int(step) * Fraction(total.grid) for step in total.steps]


@EVERY_TERM
def test_neighbours_differ_exactly_by_what_the_two_records_add(term):
    """In rational arithmetic, on a table that is made to round badly: one sign, nearly one size."""
    n = 1 << 12
    table = np.full((n, P), 0.2) * (1 + 2.0**-30 * rng.standard_normal((n, P)))
    other, y = table.copy(), np.ones(n)
    other[0] = rng.standard_normal(P)
    if np.isinf(term.limit):
        pytest.skip("terms without a limit have no public grid: their sum is not private")

    def total(rows, targets):
        return exactly(as_data(rows, targets, BOUNDS, 0.5, table_size=n).total(term))

    whole = [a - b for a, b in zip(total(table, y), total(other, y), strict=True)]
    alone = [a - b for a, b in zip(total(table[:1], y[:1]), total(other[:1], y[:1]), strict=True)]
    assert whole == alone and any(whole)


@pytest.mark.parametrize("n", [1, 2, 1000, 10**6, 10**9, 2**40])
def test_no_sum_of_terms_up_to_the_limit_leaves_64_bits(n):
    for limit in (1e-100, 0.3, 1.0, 2.0**20, 1e100):
        grid = grid_of_terms(limit, n)
        most = Fraction(limit) * (1 + Fraction(1, 2**21)) / Fraction(grid) + 1
        assert most <= 2 ** bits_of_terms(n) < 2**51 and n * most < 2**62
        assert 2 * most > 2 ** bits_of_terms(n)


def test_a_sum_goes_over_to_a_coarser_grid_by_rounding_to_the_nearest_step():
    steps_, total = np.array([-7, -6, -2, -1, 0, 1, 2, 3, 2**61]), 2.0**-5
    coarse = Total(steps_, total).on(4 * total)
    assert np.array_equal(coarse, [round(Fraction(int(k), 4) + Fraction(1, 10**9)) for k in steps_])
    assert np.array_equal(Total(steps_, total).on(total), steps_)
    assert np.array_equal(Total(steps_, total).on(2.0**62 * total)[:-1], np.zeros(8))
    assert not Total(steps_, total).on(2.0**300 * total).any()


def test_the_own_exponential_is_off_by_at_most_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-700, 700, 4001), rng.uniform(-1, 1, 4000), [0.0, -745.0, 700.0]])
    slopes = np.empty_like(x)
    write_slopes(Form(LOGISTIC, 0.0), x, np.ones_like(x), slopes)
    with mpmath.workdps(40):
        for k in range(0, len(x), 7):
            exact = -1 / (1 + mpmath.exp(mpmath.mpf(x[k])))
            assert abs(mpmath.mpf(slopes[k]) - exact) <= 5 * 2.0**-53 * abs(exact) + 2.0**-1074


_HASH = """
import hashlib, numpy as np
from dpglm import Bounds
from dpglm.data import as_data
from dpglm.arrays import on_column_grids
from dpglm.data.bounded_numbers import LossValues
from dpglm.data.products import ClassGradients, JointMargins, JointRows, MetricRows, MomentRows
from dpglm.data.terms import Gradient, SquaredRow
from dpglm.losses import LogCosh, Logistic, Multinomial, Poisson
rng = np.random.default_rng(1)
X, y, w = rng.standard_normal((999, 19)), rng.choice([-1.0, 1.0], 999), rng.standard_normal(20)
digest = hashlib.sha256()
for table in (X, np.asfortranarray(X), X.astype(np.float32)):
    rows = as_data(table, y, Bounds(row_norm=1.0), 0.5)
    digest.update(rows.margins(w).tobytes() + rows.row_norms.tobytes())
    for term in (Gradient(Logistic(), w, 0.4), Gradient(Poisson(), w, 0.4), SquaredRow(1.0)):
        digest.update(rows.total(term).steps.tobytes())
    box = Bounds(feature=1.0).coordinates(19, intercept=True)
    metric = on_column_grids(np.outer(w, w[::-1]) + np.eye(20))
    for loss in (Logistic(), LogCosh(0.3)):
        joint = JointRows(loss, box, 1.1, 0.6, 999, metric, metric[0])
        values = LossValues(loss, box, 2.0, 999, metric[0])
        margins = JointMargins(loss, None, 1.1, 0.6, 999, metric[:2, :2], metric[0, :2], w)
        for products in (joint, margins, values, MomentRows(box, 2.0, 0.0, 0.5, 999)):
            digest.update(rows.cross_products(products).steps.tobytes())
    classes = ClassGradients(Multinomial(3), np.outer(w, [1.0, -2.0, 0.5]), 0.4, 0.4, 999)
    for products in (classes, MetricRows(Logistic(), box, metric, metric[0], 0.4, 2.0, 999)):
        digest.update(rows.cross_products(products).steps.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="processors of one kind only are compared")
def test_every_processor_computes_the_same_bits(capsys):
    """Compiled for this processor and for the oldest that there is: shorter vectors, no fused operations.

    Both share the cache of the tests: processor and features are part of its keys.
    """
    exec(_HASH, {})
    oldest = os.environ | {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "-avx,-fma"}
    command = [sys.executable, "-c", _HASH]
    run = subprocess.run(command, env=oldest, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == capsys.readouterr().out != ""


def test_every_loss_with_a_form_has_compiled_slopes():
    rows = as_data(X, Y, BOUNDS, 0.5)
    for kind in LOSSES:
        loss = kind()
        fused = Gradient(loss, W, 0.4)
        assert fused.is_compiled == (loss.form is not None)
        chunked = rows.steps(fused, grid_of_terms(0.4, N), finely=True)[0]
        assert np.array_equal(rows.steps(fused, grid_of_terms(0.4, N))[0], chunked)

"""What a record adds: margins, slopes and clipped slopes, with null records, overflow and batches."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds
from dpglm.data import as_data
from dpglm.data.terms import DualMoves, FixedFactors
from dpglm.losses import LOSSES, Hinge, Logistic, Squared

rng = np.random.default_rng(0)
N, P = 40, 5
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.7)
Y = rng.choice([-1.0, 1.0], N)
NULL = np.array([3, 17])
FORMS = {"C": np.array, "F": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_matrix}
EVERY_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
CONSTANTS = pytest.mark.parametrize("constant", [0.0, 0.5])


def with_null(form, constant):
    table = X.copy()
    table[NULL] = np.nan
    return as_data(form(table), Y, Bounds(row_norm=1.0), constant)


@dataclass(frozen=True)
class Overflowing(Squared):
    """Squared loss with slopes that no double can hold, of either sign, and one that is undefined."""

    name: ClassVar[str] = "overflowing"

    def derivative(self, z, y):
        return np.resize([np.inf, -np.inf, np.nan, 1e200, -1e200, 1.0], len(z))

    def lipschitz(self, target=None):
        return np.inf

    def smoothness(self):
        return 1.0


@EVERY_FORM
@CONSTANTS
def test_margins_are_the_scaled_rows_times_the_coefficients(form, constant):
    records = as_data(form(X), Y, Bounds(row_norm=1.0), constant)
    w = rng.standard_normal(P + bool(constant))
    rows = X / np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
    features, intercept = records.split(w)
    expected = rows @ features + constant * intercept.sum()
    assert np.allclose(records.margins(w), expected, rtol=1e-13, atol=1e-13)


@EVERY_FORM
@CONSTANTS
def test_null_records_have_margin_and_slope_zero_whatever_their_target(form, constant):
    records = with_null(form, constant).with_target(np.ones_like)
    z = records.margins(np.ones(P + bool(constant)))
    slopes = records.slopes(Logistic(), z)
    assert not z[NULL].any() and not slopes[NULL].any()
    others = np.setdiff1d(np.arange(N), NULL)
    assert np.allclose(slopes[others], Logistic().derivative(z[others], records.y[others]), rtol=1e-14)


@EVERY_FORM
@CONSTANTS
def test_dual_steps_of_null_records_add_nothing(form, constant):
    records = with_null(form, constant).with_target(np.ones_like)
    z = records.margins(np.ones(P + bool(constant)))
    steps = records.dual_steps(Logistic(), np.zeros(N), z, np.ones(N))
    without = np.where(np.isin(np.arange(N), NULL), 0.0, steps)
    assert steps[NULL].all() and np.array_equal(records.t_dot(steps), records.t_dot(without))


@EVERY_FORM
@CONSTANTS
def test_compiled_dual_moves_are_dual_steps_clipped_and_summed_in_the_same_bits(form, constant):
    records = with_null(form, constant).with_target(lambda y: np.where(y > 0, 1.0, -1.0))
    w, weight = np.linspace(-1.0, 1.0, P + bool(constant)), np.linspace(0.0, 3.0, N)
    weight[0] = math.inf  # overflow leaves no number: a step of 0
    for some in (slice(None), np.array([0, 2, 17, 30])):
        here = records if isinstance(some, slice) else records.rows(some)
        for loss in (Hinge(), Logistic()):
            alpha, moves = np.zeros(here.n_records), np.full(here.n_records, math.nan)
            total = here.total(DualMoves(loss, w, 0.05, alpha, weight[some], moves))
            steps = here.dual_steps(loss, alpha, here.margins(w), weight[some])
            assert np.array_equal(moves, here.clipped(steps, 0.05)) and moves.any()
            assert np.array_equal(total.steps, here.total(FixedFactors(moves, 0.05)).steps)


@pytest.mark.parametrize("loss", [cls() for cls in LOSSES], ids=lambda loss: loss.name)
@pytest.mark.parametrize("make", [as_data, with_null], ids=["all count", "some null"])
def test_slopes_of_some_records_are_those_of_all(loss, make):
    records = with_null(np.array, 0.5) if make is with_null else as_data(X, Y, Bounds(row_norm=1.0), 0.5)
    z = records.margins(rng.standard_normal(P + 1))
    slopes = records.slopes(loss, z)
    index = np.array([17, 2, 30])
    assert np.array_equal(records.slopes(loss, z[index], index), slopes[index])
    assert np.array_equal(records.slopes(loss, z[5:20], slice(5, 20)), slopes[5:20])
    assert np.array_equal(records.rows(index).slopes(loss, z[index]), slopes[index])


def test_a_slope_that_overflows_is_cut_and_adds_a_finite_number():
    records = as_data(X, Y, Bounds(row_norm=1.0), 0.5)
    slopes = records.slopes(Overflowing(), np.zeros(N))
    assert np.array_equal(slopes[:6], [1e150, -1e150, 0.0, 1e150, -1e150, 1.0])
    contributions = records.clipped(slopes, 0.25) * records.row_norms
    assert np.isfinite(contributions).all() and np.abs(contributions).max() <= 0.25 * (1 + 1e-15)


@EVERY_FORM
@CONSTANTS
def test_clipped_slopes_times_rows_have_norm_at_most_the_clip(form, constant):
    records = with_null(form, constant)
    slopes = 10.0 ** rng.uniform(-3, 3, N)
    clipped = records.clipped(slopes, 0.3)
    norms = clipped * records.row_norms
    assert (norms <= 0.3 * (1 + 1e-15)).all()
    short = slopes * records.row_norms <= 0.3
    assert short.any() and np.array_equal(clipped[short], slopes[short])
    assert np.allclose(norms[~short], 0.3)


def test_nothing_is_clipped_by_an_infinite_clip():
    records = as_data(X, Y, Bounds(row_norm=1.0))
    slopes = rng.standard_normal(N)
    assert np.array_equal(records.clipped(slopes, np.inf), slopes)


@EVERY_FORM
def test_a_change_of_margins_is_linear(form):
    records = with_null(form, 0.5)
    w, move = rng.standard_normal((2, P + 1))
    change = records.margins(w + move) - records.margins(w)
    assert np.allclose(change, records.dot(move), rtol=1e-12, atol=1e-12)


def test_weights_and_offsets_without_declared_bounds_are_those_of_a_record_that_has_none():
    beside = np.array([[0.0, 1e6, 5.0], [0.0, 0.25, -5.0], [0.0, -3.0, 0.0], [0.0, np.nan, 0.0]])
    found = as_data(np.ones((4, 2)), beside, Bounds(row_norm=1.0)).beside
    assert found is not None
    assert found.share.tolist() == [1.0, 0.25, 0.0, 0.0]
    assert found.offset.tolist() == [0.0, 0.0, 0.0, 0.0]
    free = as_data(np.ones((4, 2)), beside, Bounds(row_norm=1.0, weight=np.inf, offset=4.0)).beside
    assert free is not None
    assert free.share.tolist() == [1e6, 0.25, 0.0, 0.0]
    assert free.offset.tolist() == [4.0, -4.0, 0.0, 0.0]


@pytest.mark.parametrize("form", [np.array, np.asfortranarray, np.float32], ids=["C", "F", "float32"])
def test_norms_of_rows_inside_their_ranges_are_computed_when_they_are_asked_for(form):
    lazy = as_data(form(X), Y, Bounds(feature=10.0), 0.5)
    known = as_data(form(X), Y, Bounds(feature=10.0, row_norm=1e6), 0.5)  # norms decide on the scale of rows
    assert lazy.known_norms is None and known.known_norms is not None
    batch = np.array([1, 4])
    for view in (
        lambda records: records,
        lambda records: records.part(3, 20),
        lambda records: records.rows(batch),
    ):
        assert np.array_equal(view(lazy).row_norms, view(known).row_norms)
    assert lazy.part(3, 20).known_norms is not None  # a pass after the first does not compute them again


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200, -11.0])
def test_a_table_with_an_entry_out_of_its_range_is_as_one_whose_norms_are_known(bad):
    table = X.copy()
    table[3, 2] = bad
    lazy, known = (as_data(table, Y, Bounds(feature=10.0, row_norm=norm), 0.5) for norm in (None, 1e6))
    for name in ("scale", "row_norms"):
        assert np.array_equal(getattr(lazy, name), getattr(known, name))
    assert lazy.scale[3] == (bad == -11.0)

"""What releases that are paid anyway say of how many records counted: right within its stated error."""

import math
import re

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import (
    Bounds,
    Guarantee,
    LinearRegression,
    LogisticRegression,
    Neighbours,
    PoissonRegressor,
    PrivatePath,
    PrivateSearch,
    Stream,
)
from dpglm.errors import PrivacyWarning
from dpglm.penalties import L2
from dpglm.solvers import GradientDescent, Newton, ObjectivePerturbation, PreconditionedDescent
from dpglm.solvers import record_share as shares
from dpglm.solvers.record_share import RecordShare

N, SEEDS = 4_000, 6
NULL = (0.0, 0.1, 0.5, 1.0)
BOX = Bounds(feature=1.0)


def table(null, seed, classes=2, rows=N):
    """Rows of very different lengths, some of which are null; targets, and how many records count."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 4)) * rng.choice([0.02, 1.0], (rows, 1))
    X[:, 0] = rng.random(rows) < 0.03
    y = rng.integers(0, classes, rows)
    lost = rng.permutation(rows) < null * rows
    X[lost, 1] = np.nan
    return X, y, lost


def logistic(**settings):
    return LogisticRegression(2.0, **{"classes": [0, 1], "bounds": BOX, **settings})


def linear(**settings):
    return LinearRegression(2.0, **{"bounds": Bounds(feature=1.0, target=(0.0, 1.0)), **settings})


NEWTON = {"C": math.inf, "solver": Newton()}
SAID = {
    "Newton": lambda **more: logistic(**NEWTON, **more),
    "Newton without an intercept": lambda **more: logistic(**NEWTON, fit_intercept=False, **more),
    "Newton, linear": lambda **more: linear(solver=Newton(), **more),
    "class counts": lambda **more: logistic(solver=GradientDescent(), class_weight="balanced", **more),
    "classes of gradient descent": lambda **more: logistic(
        classes=[0, 1, 2], multi_class="multinomial", solver=GradientDescent(), **more
    ),
    "classes of preconditioned descent": lambda **more: logistic(
        classes=[0, 1, 2], multi_class="multinomial", solver=PreconditionedDescent(), **more
    ),
    "several fits": lambda **more: logistic(classes=[0, 1, 2], multi_class="ovr", **NEWTON, **more),
}
BOUNDED = {
    "preconditioned descent": lambda **more: logistic(solver=PreconditionedDescent(), **more),
    "preconditioned descent, linear": lambda **more: linear(solver=PreconditionedDescent(), **more),
}
SILENT = {
    "without an intercept": lambda **more: logistic(
        solver=PreconditionedDescent(), fit_intercept=False, **more
    ),
    "gradient descent": lambda **more: logistic(solver=GradientDescent(), **more),
    "objective perturbation": lambda **more: logistic(
        solver=ObjectivePerturbation(), penalty=L2(0.01), **more
    ),
}


@pytest.fixture
def fitted(monkeypatch):
    """The share that a fit finds; None if its releases do not tell."""
    found = []
    monkeypatch.setattr(
        shares, "in_words", lambda share, unit: found.append(share) or f"{share} of the {unit}s"
    )

    def of(model, *data, **beside):
        model.fit(*data, **beside)
        return found[-1]

    return of


RELATIONS = [
    *((Neighbours.REPLACE_ONE, units) for units in (False, True)),
    (Neighbours.ZERO_OUT, False),
    (Neighbours.ADD_REMOVE, False),
]


@pytest.mark.parametrize(("neighbours", "units"), RELATIONS)
@pytest.mark.parametrize("kind", [*SAID, *BOUNDED])
def test_the_share_of_records_that_counted_is_right_within_its_stated_error(kind, neighbours, units, fitted):
    """Deviations of the estimates are those that are stated, or the truth is between the ends."""
    off = []
    for place, null in enumerate(NULL):
        for seed in range(place * SEEDS, (place + 1) * SEEDS):
            X, y, lost = table(null, seed, classes=3 if kind in SAID else 2)
            truth, beside = 1 - lost.mean(), {}
            if units:  # 1 to 7 records each
                ids = np.random.default_rng(seed).integers(0, N // 4, N)
                count = np.bincount(ids)
                truth = np.mean(np.bincount(ids, ~lost)[count > 0] / count[count > 0])
                beside = {"units": ids}
            if y.max() == 2 and "classes" not in kind and "several" not in kind:
                y = y % 2
            model = {**SAID, **BOUNDED}[kind](neighbours=neighbours.value, random_state=seed, delta=1e-6)
            share = fitted(model, X, y, **beside)
            if kind in SAID:
                assert share.least == share.most
                off.append((share.most - truth) / share.error)
            else:
                assert share.least - 4 * share.error <= truth <= share.most + 4 * share.error
                assert share.error < 0.25
    if off:
        assert np.abs(off).max() < 4
        assert 0.6 < math.sqrt(np.mean(np.square(off))) < 1.5, off  # of 24 draws


@pytest.mark.parametrize("kind", [*SAID, *BOUNDED])
def test_the_share_has_the_same_bits_on_arrays_sparse_tables_streams_and_dask(kind, fitted):
    X, y, _ = table(0.3, 0, classes=3)
    if "classes" not in kind and "several" not in kind:
        y = y % 2
    tables = {
        "array": (X, y),
        "sparse": (sp.csr_array(X), y),
        "stream": (Stream(lambda: ((X[k : k + 999], y[k : k + 999]) for k in range(0, N, 999)), N, 4),),
        "Dask": (da.from_array(X, chunks=(1_500, 4)), da.from_array(y, chunks=1_500)),
    }
    found = [fitted({**SAID, **BOUNDED}[kind](random_state=0), *data) for data in tables.values()]
    assert len(set(found)) == 1 and found[0] is not None


@pytest.mark.parametrize("kind", SILENT)
def test_releases_that_do_not_tell_are_not_asked(kind, fitted):
    X, y, _ = table(0.5, 0)
    assert fitted(SILENT[kind](random_state=0), X, y) is None


@pytest.mark.parametrize("kind", ["Newton", "preconditioned descent"])
def test_a_share_of_weight_is_no_share_of_records(kind, fitted):
    X, y, _ = table(0.0, 0)
    model = {**SAID, **BOUNDED}[kind](bounds=Bounds(feature=1.0, weight=1.0), random_state=0)
    assert fitted(model, X, y, sample_weight=np.full(N, 0.1)) is None


def test_offsets_hide_the_share_only_where_they_multiply_second_moments(fitted):
    X, y, _ = table(0.5, 0)
    offset, ends = np.full(N, -1.0), {"offset": (-1.0, 1.0)}
    model = logistic(**{**NEWTON, "bounds": Bounds(feature=1.0, **ends)}, random_state=0)
    share = fitted(model, X, y, offset=offset)
    assert abs(share.most - 0.5) < 4 * share.error
    counts = PoissonRegressor(
        2.0, alpha=0, solver=Newton(), bounds=Bounds(feature=1.0, target=(0, 1), **ends), random_state=0
    )
    assert fitted(counts, X, y, offset=offset) is None
    counts.set_params(bounds=Bounds(feature=1.0, target=(0, 1)))
    share = fitted(counts, X, y)
    assert abs(share.most - 0.5) < 4 * share.error


def test_what_records_may_add_to_a_gram_matrix_bounds_how_many_there_are():
    """For records of any length r, in units of the bound, in which the constant has a share k."""
    rng = np.random.default_rng(0)
    k = 0.3**2 / 1.09
    for _ in range(200):
        r = np.maximum(k, 10 ** rng.uniform(-3, 3, rng.integers(1, 50)) * 10 ** rng.uniform(-2, 2))
        constant, trace = np.minimum(1, 1 / r).sum(), np.minimum(r, 1).sum()
        assert max(constant, trace) <= len(r) * (1 + 1e-12)
        assert len(r) <= trace + (1 - k) * constant + 1e-9


@pytest.mark.parametrize("kind", ["Newton", "preconditioned descent"])
def test_a_fit_to_null_records_warns_and_says_so_in_its_promise(kind):
    """Such a fit was charged and gave a model of noise, without a word."""
    X, y, _ = table(1.0, 0)
    with pytest.warns(PrivacyWarning, match=r"only about \d+ % \(± \d+ %\) of the records counted"):
        model = {**SAID, **BOUNDED}[kind]().fit(X, y)
    assert "% of the records counted" in model.privacy_.record_share.replace(")", "").replace("(", "")
    assert "records    : about" in str(model.privacy_)
    assert "of the records counted" in model.privacy_._repr_html_()
    assert Guarantee.from_json(model.privacy_.to_json()) == model.privacy_


@pytest.mark.filterwarnings("error::dpglm.errors.PrivacyWarning")
def test_a_fit_whose_records_count_says_so_and_does_not_warn():
    X, y, _ = table(0.0, 0)
    said = SAID["Newton"]().fit(X, y).privacy_.record_share
    assert re.match(r"about (9\d|100) % \(± 4 %\) of the records counted", said)  # five deviations


def test_a_fit_that_cannot_know_says_what_tells():
    X, y, _ = table(1.0, 0)
    said = SILENT["gradient descent"]().fit(X, y).privacy_.record_share
    assert "cannot be known" in said and "dpglm check" in said
    assert LogisticRegression(math.inf, classes=[0, 1]).fit(X, y).privacy_.record_share is None


def test_words_and_warnings_follow_the_noise():
    assert str(RecordShare(0.97, 0.97, 0.01, "x")) == "about 97 % (± 2 %)"
    assert str(RecordShare(1.03, 1.03, 0.02, "x")) == "about 100 % (± 4 %)"
    assert str(RecordShare(0.4, 0.7, 0.01, "x")) == "between 40 % and 70 % (± 2 %)"
    assert str(RecordShare(0.8, 1.2, 0.01, "x")) == "at least 80 % (± 2 %)"
    assert RecordShare(0.85, 0.85, 0.02, "x").is_small
    assert not RecordShare(0.87, 0.87, 0.02, "x").is_small
    assert not RecordShare(0.4, 0.95, 0.01, "x").is_small
    hidden = RecordShare(-3.0, -3.0, 0.5, "x")
    assert hidden.is_hidden and not hidden.is_small
    assert "noise hides it" in shares.in_words(hidden, "record")
    assert shares.combined([]) is None
    exact, noisy = RecordShare(1.0, 1.0, 0.0, "x"), RecordShare(0.5, 0.5, 0.1, "y")
    assert shares.combined([noisy, exact]) == RecordShare(1.0, 1.0, 0.0, "y and x")


def test_a_choice_along_a_fit_and_a_search_hand_on_what_their_fit_says(fitted):
    """Of the rows that were fitted to, where others are held out."""
    X, y, _ = table(0.5, 0)
    path = PrivatePath(SAID["Newton"](random_state=0))
    newton = logistic(solver=Newton(intervals=False), random_state=0)
    search = PrivateSearch(newton, {"C": [1.0, 10.0]}, epsilon=8.0, runs=2)
    share = fitted(path, X, y)
    assert abs(share.most - 0.5) < 4 * share.error
    share = fitted(search, X, y)
    assert share is None or abs(share.most - 0.5) < 4 * share.error + 0.05

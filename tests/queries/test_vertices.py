"""Scores of vertices: the law of lazy selections, the bounds behind it, and plain Frank-Wolfe."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit
from scipy import stats
from scipy.special import softmax

from dpglm import Bounds, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.kernels import frank_wolfe_lazy as kernels
from dpglm.kernels.bins import BINS, LOWEST, ORIGIN
from dpglm.kernels.frank_wolfe_lazy import CHUNK, DUE
from dpglm.losses import LOSSES, Huber, Logistic, Poisson, SmoothedHinge, Squared
from dpglm.mechanisms import STRUCTURES, Exponential, Gaussian, Randomness
from dpglm.queries import VertexScores
from dpglm.queries.base import Opening
from dpglm.queries.frank_wolfe_lazy import LazyVertices

from . import told

REPLACE = Neighbours.REPLACE_ONE
RADIUS = 20.0


def table(n, p, fill, seed=0, power=1.0):
    """A sparse table whose columns are popular by a power law, rows of norm 1, and labels."""
    rng = np.random.default_rng(seed)
    popular = fill * p * (1 + np.arange(p)) ** -power / ((1 + np.arange(p)) ** -power).sum()
    X = sp.csr_array((rng.random((n, p)) < popular) * rng.lognormal(0, 0.5, (n, p)))
    X = sp.csr_array(X.multiply(1 / np.maximum(sp.linalg.norm(X, axis=1), 1e-9)[:, None]))
    y = np.where(X @ (3 * rng.standard_normal(p)) + 0.5 + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


X, LABELS = table(400, 150, 0.1)
SIZES = 2 / (np.arange(1, 2001) + 2)


def lazy(loss, clip, scale, X=X, y=LABELS, w_intercept=0.0, constant=0.0, seed=0):
    """Lazy steps over a table from w = 0, and the stream that they draw from."""
    records = as_data(X, y, Bounds(row_norm=1.0), constant)
    n, p = X.shape
    query = VertexScores(loss, clip, p, 1.0)
    return LazyVertices(
        query, records, np.zeros(n), constant * w_intercept, RADIUS, 2.0**-20 * scale, scale
    ), Randomness(seed)


def sums(loss, clip, parts, rest, X=X, y=LABELS):
    """Sums of cut terms, straight from their definition."""
    terms = X.multiply(loss.derivative(parts + rest, y)[:, None]).toarray()
    return np.clip(terms, -clip, clip).sum(axis=0)


def run(state, randomness, factors, pushes):
    """The compiled loop without the scaling of margins at its end."""
    choices = np.empty(len(pushes), dtype=np.int64)
    randomness.run_on(*state._arguments(choices, factors, pushes))
    return choices


CASES = {
    "flat": (Logistic(), 1.0, 400.0),
    "cut": (Logistic(), 0.05, 1.0),
    "sharp": (Logistic(), 1.0, 2.0),
    "sharper": (Logistic(), 1.0, 1.0),
    "squared": (Squared(), 0.2, 2.0),
    "huber": (Huber(0.5), 0.1, 1.0),
    "hinge": (SmoothedHinge(), 1.0, 3.0),
    "poisson": (Poisson(5.0), 0.5, 8.0),
}


@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("steps", [1, 7, 60, 700])
@pytest.mark.parametrize("before", [0, 3], ids=["from 0", "from a point"])
def test_bins_hold_upper_bounds_of_all_scores(case, steps, constant, before):
    loss, clip, scale = CASES[case]
    state, randomness = lazy(loss, clip, scale, w_intercept=-0.7, constant=constant, seed=steps)
    state.run(SIZES[:before], randomness.run_on)
    state._settle(steps)
    factors = np.cumprod(np.append(1.0, 1 - SIZES[:steps]))
    run(state, randomness, factors, SIZES[:steps] * RADIUS / factors[1:])
    exact = sums(loss, clip, factors[-1] * state._state[:, 0], -0.7 * constant)
    heads, columns = state._leading.lines, state._leading.columns.astype(np.int64)
    assert (len(columns) > 0) == (case in ("sharp", "sharper"))
    centre, width = state._followed.sums.T.copy()
    centre[columns], width[columns] = heads[:, 0] + factors[-1] * heads[:, 1], heads[:, 2]
    assert np.all(np.abs(exact - centre) <= width + 1e-12)
    assert np.all(width >= state._line[0])  # scores are rounded to that grid
    bound = np.abs(centre) + width
    perm, position, *_ = state._bins
    assert np.array_equal(np.sort(perm), np.arange(150)) and np.array_equal(perm[position], np.arange(150))
    assert np.all(bound <= edges(state, scale) * (1 + 1e-12))


def test_leading_columns_have_the_curvature_of_their_own_loss():
    """A Huber loss that is quadratic wherever margins go: its lines are exact."""
    quadratic = type("Quadratic", (Huber,), {"curvature_lipschitz": lambda self: 0.0})
    state, randomness = lazy(quadratic(threshold=200.0), 1000.0, 2.0)
    state._settle(60)
    factors = np.cumprod(np.append(1.0, 1 - SIZES[:60]))
    run(state, randomness, factors, SIZES[:60] * RADIUS / factors[1:])
    heads, columns = state._leading.lines, state._leading.columns.astype(np.int64)
    exact = sums(Huber(200.0), 1000.0, factors[-1] * state._state[:, 0], 0.0)[columns]
    assert len(columns) > 20 and np.abs(state._state[:, 0]).max() > 1
    assert np.all(np.abs(exact - heads[:, 0] - factors[-1] * heads[:, 1]) <= heads[:, 2])


@pytest.mark.parametrize("steps", [60, 150, 300])
def test_moves_that_models_leave_out_are_within_what_is_counted_for_them(steps):
    scale = 2.0
    state, randomness = lazy(Logistic(), 1.0, scale)
    state._settle(steps)
    factors = np.cumprod(np.append(1.0, 1 - SIZES[:steps]))
    run(state, randomness, factors, SIZES[:steps] * RADIUS / factors[1:])
    columns = state._leading.columns.astype(np.int64)
    left_out = factors[-1] * np.abs(state._state[:, 0] - state._state[:, 7])
    counted = factors[-1] * state._leading.drift[0]
    assert left_out.max() > 0 and 0 < counted <= 1
    errors = 0.25 * abs(X).toarray()[:, columns].T @ left_out
    assert errors.max() <= counted * scale / 16


@pytest.mark.parametrize("started", [False, True], ids=["from 0", "from within the ball"])
@pytest.mark.parametrize("case", CASES)
def test_no_row_lags_behind_by_more_than_its_slack(case, started):
    """Also rows that hold no selected feature, whose margins shrink from the first step on."""
    loss, clip, scale = CASES[case]
    state, randomness = lazy(loss, clip, scale)
    start = RADIUS * np.eye(150)[0] if started else np.zeros(150)
    state._state[:, 0] = X @ start
    factors = np.cumprod(np.append(1.0, np.full(40, 0.95)))
    state._settle(40)
    choices = np.empty(40, dtype=np.int64)
    kernel, _, _, *rest = state._arguments(choices, factors, 0.05 * RADIUS / factors[1:])
    randomness._extend(1 << 16)
    lags, head_lags = [], []
    for t in range(40):
        randomness._at, done = kernel(randomness._words, randomness._at, t, choices[: t + 1], *rest)
        assert done == t + 1
        parts = factors[t + 1] * state._state[:, 0]
        lags.append(np.abs(parts - state._state[:, 1]).max())
        head_lags.append(np.abs(parts - state._state[:, 4]).max())
    assert 0 < max(lags) <= state._followed.slack * (1 + 1e-9)
    assert max(head_lags) <= state._leading.slack * (1 + 1e-9)


@pytest.mark.parametrize("case", CASES)
def test_a_run_is_the_same_in_one_call_and_in_one_for_each_step(case):
    """A call sets out from the bins alone: what a run keeps beside them is never stale."""
    loss, clip, scale = CASES[case]
    steps, found = 300, []
    factors = np.cumprod(np.append(1.0, 1 - SIZES[:steps]))
    for stop in (range(1, steps + 1), [steps]):
        state, randomness = lazy(loss, clip, scale, seed=1)
        state._settle(steps)
        choices, done = np.empty(steps, dtype=np.int64), 0
        kernel, _, _, *rest = state._arguments(choices, factors, SIZES[:steps] * RADIUS / factors[1:])
        randomness._extend(1 << 17)
        for end in stop:
            randomness._at, done = kernel(randomness._words, randomness._at, done, choices[:end], *rest)
            assert done == end
        found.append(choices)
    assert np.array_equal(*found)


def opposed_blocks(n):
    """Two features that share no record: only one of them can be on the rise."""
    X = sp.block_diag([np.ones((n, 1)), np.ones((n, 1))], format="csr")
    return X, np.repeat([1.0, -1.0], n)


def test_a_run_from_within_the_ball_has_the_law_of_the_exponential_mechanism():
    """The margins of feature 0 shrink though only feature 1 is chosen: its sum must not be forgotten."""
    X, y = opposed_blocks(200)
    state, randomness = lazy(Logistic(), 1.0, 3.0, X, y)
    state._state[:, 0] = X @ np.array([6.0, 0.0])
    state._settle(60)
    factors = np.cumprod(np.append(1.0, np.full(60, 0.95)))
    run(state, randomness, factors, np.zeros(60))  # nothing is added: margins shrink, and no more
    exact = sums(Logistic(), 1.0, factors[-1] * state._state[:, 0], 0.0, X, y)
    heads = state._leading.lines
    centre, width = heads[:, 0] + factors[-1] * heads[:, 1], heads[:, 2]
    assert len(centre) == 2 and abs(exact[0]) > 10
    assert np.all(np.abs(exact - centre) <= width)


def planned(margins, followed, factors, slack):
    """A calendar of when rows with these margins must be looked at."""
    rows = np.zeros((len(margins), 8))
    rows[:, 0], rows[:, 1] = margins, followed
    calendar = kernels.empty_calendar(np.array(factors), rows.view(np.int32))
    calendar = calendar._replace(pool=calendar.pool[:8])
    kernels.schedule_all(rows, slack, math.inf, calendar)
    return calendar


# Parts of compiled functions, in such.
@njit(error_model="numpy")
def scheduled_anew(i, least, step, calendar):
    kernels.clear(calendar)
    kernels.schedule(i, least, step, calendar)


@njit(error_model="numpy")
def noted(i, step, calendar):
    kernels.note(i, step, calendar)


def test_a_row_at_the_very_edge_of_its_slack_is_not_looked_at_for_ever():
    # Behind by exactly 1 at the last factor, and by less than that before.
    calendar = planned([4.0], [2.0], [1.0, 0.5, 0.25], 1.0)
    assert list(calendar.lists[:, 2]) == [0, 0, 1] and calendar.links[0, DUE] == 2
    calendar.links[0, DUE] = 0
    scheduled_anew(np.uint64(0), 0.25, 2, calendar)
    assert not calendar.lists[:, 2].any()


def test_margins_whose_products_underflow_are_in_the_calendar():
    margins = [1e-170, -1e-170, 0.0]
    calendar = planned(margins, margins, [1.0, 0.5, 0.25], 1e-180)
    assert list(calendar.links[:, DUE]) == [1, 1, 0]


def test_a_calendar_written_anew_forgets_no_row_and_frees_what_is_stale():
    margins = np.linspace(1.0, 2.0, 40)
    calendar = planned(margins, margins, [1.0, 0.9, 0.6, 0.2], 0.3)
    links, lists, pool, spare = calendar[1:5]
    due = links[:, DUE].copy()
    assert sorted(set(due)) == [2] and lists[2, 2] == 40 and spare[1] == 8 - 3
    for i in range(20):  # now due earlier; their old places are stale
        noted(np.uint64(i), 1, calendar)
    links[30, DUE] = 0
    kernels.write_anew(calendar)
    assert list(lists[:, 2]) == [0, 20, 19, 0] and spare[1] == 8 - 4
    for step, rows in ((1, range(20)), (2, [*range(20, 30), *range(31, 40)])):
        chunk, filled, found = lists[step, 0], lists[step, 1], []
        while chunk >= 0:
            found += list(pool[chunk, 1 : 1 + filled])
            chunk, filled = pool[chunk, 0], CHUNK
        assert sorted(found) == list(rows)


def test_a_calendar_that_fills_up_is_written_anew_on_the_way(monkeypatch):
    def chosen():
        state, randomness = lazy(Logistic(), 1.0, 2.0, seed=1)
        return state.run(np.full(900, 0.02), randomness.run_on), state.work

    roomy, work = chosen()
    plain = kernels.empty_calendar

    def cramped(factors, links):
        calendar = plain(factors, links)
        return calendar._replace(pool=calendar.pool[: len(factors) + 3 * len(links) // 15])

    monkeypatch.setattr(kernels, "empty_calendar", cramped)
    again, same_work = chosen()
    assert np.array_equal(roomy, again) and np.array_equal(work, same_work)


def edges(state, scale):
    """The upper edge of the bin of each column."""
    _, position, start, *_ = state._bins
    bins = np.repeat(np.arange(BINS), np.diff(start))[position]
    return (bins + 1 - ORIGIN) * scale + state._line[2]


def test_rounding_to_the_grid_lifts_no_score_above_its_bin():
    p, scale, grid = 4000, 1.0, 2.0**-8
    sizes = np.random.default_rng(0).uniform(0, 10, p)
    # A column so heavy that the others have almost no slack.
    X = sp.diags_array(np.append(sizes, 2.0**30), format="csr")
    records = as_data(X, np.ones(p + 1), Bounds(row_norm=2.0**30))
    query = VertexScores(Huber(1.0), 16.003, p + 1, 2.0**30)  # so that no edge lies on the grid
    state = LazyVertices(query, records, np.zeros(p + 1), 0.0, 1e-9, grid, scale)
    state._settle(1)
    rounded = np.rint(sizes / grid) * grid
    assert np.all(rounded <= edges(state, scale)[:p])
    assert np.any(sizes + grid / 2 > edges(state, scale)[:p] - grid)  # some are as near as that


def test_bounds_allow_for_the_rounding_of_a_large_intercept():
    base, n = 1e12, 50
    records = as_data(sp.csr_array(np.ones((n, 1))), np.full(n, base + 0.5), Bounds(row_norm=1.0), 0.5)
    query = VertexScores(Squared(), 10.0, 1, 1.0)
    state = LazyVertices(query, records, np.ones(n), base, 1.0, 2.0**-20, 0.5)
    state._settle(100)
    factors = np.cumprod(np.append(1.0, np.full(100, 0.997)))
    choices, randomness = np.empty(100, dtype=np.int64), Randomness(0)
    kernel, _, _, *rest = state._arguments(choices, factors, np.zeros(100))
    randomness._extend(1 << 16)
    for t in range(100):
        randomness._at, done = kernel(randomness._words, randomness._at, t, choices[: t + 1], *rest)
        assert done == t + 1
        exact = ((factors[done] * state._state[:, 0] + base) - records.y).sum()
        assert abs(exact - state._followed.sums[0, 0]) <= state._followed.sums[0, 1]


def test_steps_whose_grid_shows_are_taken_one_by_one():
    curator = Curator(as_data(X, LABELS, Bounds(row_norm=1.0)), REPLACE, Randomness(0))
    event = Exponential(1e-9)
    opened = curator.open(VertexScores(Logistic(), 1.0, 150, 1.0), np.zeros(150), event)
    opened.run(SIZES[:20], RADIUS)
    assert opened._clipped is not None
    assert curator.spent == {event.event: 20} | event.imprecision(20 * 300)


def test_a_radius_that_would_overflow_is_refused():
    curator = Curator(as_data(X, LABELS, Bounds(row_norm=1.0)), REPLACE, Randomness(0))
    opened = curator.open(VertexScores(Logistic(), 1.0, 150, 1.0), np.zeros(150), Exponential(1.0))
    with pytest.raises(FloatingPointError):
        opened.run(SIZES[:20], 1e300)
    assert not curator.spent


def test_sums_of_followed_margins_are_exact_after_many_steps():
    state, randomness = lazy(Logistic(), 1.0, 50.0)
    state._settle(2000)
    state._followed = state._followed._replace(slack=0.01)  # more rows follow than speed would ask for
    factors = np.cumprod(np.append(1.0, 1 - SIZES))
    run(state, randomness, factors, SIZES * RADIUS / factors[1:])
    assert state.work[3] > 1e5
    followed = sums(Logistic(), 1.0, state._state[:, 1], 0.0)
    assert np.allclose(state._followed.sums[:, 0], followed, rtol=0, atol=1e-9)
    steps = state._followed.sums[:, 0] / (state._terms.cut.rounding / (1.5 * 2.0**52))
    assert np.array_equal(steps, np.rint(steps)) and np.abs(steps).max() <= 2.0**51
    lag = np.abs(factors[-1] * state._state[:, 0] - state._state[:, 1])
    assert 0.005 < lag.max() <= 0.01 * (1 + 1e-9)


def misfit(chosen, exact, scale):
    """p-value of choices under the exponential mechanism with these sums; rare ones are pooled."""
    expected = len(chosen) * softmax(np.column_stack([exact, -exact]).ravel() / scale)
    found = np.bincount(chosen, minlength=len(expected))
    order = np.argsort(expected)
    rare = np.searchsorted(np.cumsum(expected[order]), 20.0) + 1
    pooled = [np.append(part[order[:rare]].sum(), part[order[rare:]]) for part in (found, expected)]
    assert len(pooled[0]) > 2
    return stats.chisquare(*pooled).pvalue


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("steps", [1, 40])
def test_a_lazy_selection_has_the_law_of_the_exponential_mechanism(case, steps):
    loss, clip, scale = CASES[case]
    state, randomness = lazy(loss, clip, scale, seed=3)
    state._settle(steps)
    factors = np.cumprod(np.append(1.0, 1 - SIZES[:steps]))
    run(state, randomness, factors, SIZES[:steps] * RADIUS / factors[1:])
    # Steps that move nothing: draws from one and the same state.
    draws = 100_000
    chosen = run(state, randomness, np.full(draws + 1, factors[-1]), np.zeros(draws))
    assert misfit(chosen, sums(loss, clip, factors[-1] * state._state[:, 0], 0.0), scale) > 1e-6
    assert state.work[1] > 0  # true sums were computed on the way


def test_the_law_is_the_same_where_sums_lag_behind_by_almost_their_slack():
    """All margins of a feature have moved by 0.95 of what they may: coins that guess less are noticed."""
    X, _ = opposed_blocks(50)
    y = np.repeat([5.9, 0.1], 50)
    state, randomness = lazy(Squared(), 100.0, 10.0, X, y)
    state._state[:, 0] = X @ np.array([6.0, 0.0])
    state._settle(1)
    factor = 1 - 0.95 * state._followed.slack / 6.0
    draws = 100_000
    chosen = run(state, randomness, np.full(draws + 1, factor), np.zeros(draws))
    exact = sums(Squared(), 100.0, factor * state._state[:, 0], 0.0, X, y)
    assert abs(exact[0] - state._followed.sums[0, 0]) > 0.9 * state._followed.sums[0, 1] > 4.0
    assert misfit(chosen, exact, 10.0) > 1e-6
    assert 0 < state.work[1] < state.work[0]  # coins of both kinds


def test_scores_are_rounded_to_the_grid_of_the_mechanism():
    X, y = opposed_blocks(50)
    y[::10] *= -1
    state, randomness = lazy(Logistic(), 1.0, 8.0, X, y)
    state._line[0] = 16.0  # a grid so coarse that rounding shows: 20 becomes 16
    draws = 100_000
    state._settle(1)
    chosen = run(state, randomness, np.ones(draws + 1), np.zeros(draws))
    exact = sums(Logistic(), 1.0, np.zeros(100), 0.0, X, y)
    assert misfit(chosen, np.rint(exact / 16) * 16, 8.0) > 1e-6 > misfit(chosen, exact, 8.0)


def test_scores_that_fall_far_are_sorted_anew():
    """200 slopes shrink from 20 to almost 0: by thousands of scales, to the lowest bin of all."""
    X, _ = opposed_blocks(200)
    state, randomness = lazy(Huber(100.0), 100.0, 0.5, X, np.zeros(400))
    state._state[:, 0] = X @ np.array([RADIUS, -RADIUS])
    state._settle(10)
    run(state, randomness, 0.5 ** np.arange(11.0), np.zeros(10))
    assert state._bins.start[LOWEST] < 2


def test_bounds_that_forget_their_slack_are_noticed():
    loss, clip, scale = SmoothedHinge(), 1.0, 8.0
    state, randomness = lazy(loss, clip, scale, seed=3)
    state._settle(40)
    state._followed = state._followed._replace(slack=100.0)
    state._followed.sums[:, 1] = 0.0
    kernels.sort(state._followed, state._leading, state._bins)
    factors = np.cumprod(np.append(1.0, 1 - SIZES[:40]))
    run(state, randomness, factors, SIZES[:40] * RADIUS / factors[1:])
    draws = 100_000
    chosen = run(state, randomness, np.full(draws + 1, factors[-1]), np.zeros(draws))
    assert misfit(chosen, sums(loss, clip, factors[-1] * state._state[:, 0], 0.0), scale) < 1e-6


SMALL, SMALL_LABELS = table(30, 3, 0.6, seed=5)


def last_choices(structure, runs, steps=6, noise=3.0):
    """The choices of the last two of some steps, over many runs."""
    randomness = Randomness(11)
    query = VertexScores(Logistic(), 0.3, 3, 1.0, structure, refresh=0.0)
    counts, records = np.zeros(36), as_data(SMALL, SMALL_LABELS, Bounds(row_norm=1.0))
    for _ in range(runs):
        curator = Curator(records, REPLACE, randomness)
        choices = curator.open(query, np.zeros(3), Exponential(noise)).run(SIZES[:steps], RADIUS)
        counts[6 * choices[-2] + choices[-1]] += 1
    return counts


@pytest.fixture(scope="module")
def lazy_choices():
    return last_choices("lazy", 2000)


@pytest.mark.parametrize("structure", [name for name in STRUCTURES if name != "heap"])
def test_all_structures_give_one_law_of_whole_paths(structure, lazy_choices):
    counts = np.array([lazy_choices, last_choices(structure, 2000)])
    counts = counts[:, counts.sum(axis=0) >= 20]
    assert counts.shape[1] > 10
    assert stats.chi2_contingency(counts).pvalue > 1e-6


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_matrix], ids=["dense", "CSR", "CSC"])
@pytest.mark.parametrize("loss", [cls() for cls in LOSSES], ids=lambda loss: loss.name)
def test_a_block_of_choices_is_logged_and_the_same_for_every_layout(loss, layout):
    y = np.abs(LABELS) if loss.kind == "count" else LABELS
    models = []
    for form in (sp.csr_array, layout):
        dense = X.toarray() if form is np.asarray else X
        curator = Curator(as_data(form(dense), y, Bounds(row_norm=1.0), 0.5), REPLACE, Randomness(2))
        event = Exponential(5.0)
        opened = curator.open(VertexScores(loss, 0.1, 150, 1.0), np.append(np.zeros(150), 0.3), event)
        models.append(opened.run(SIZES[:300], RADIUS))
        assert curator.spent == {event.event: 300} | event.imprecision(300 * 300)
    assert np.array_equal(*models)
    assert len(np.unique(models[0])) > 10


def test_random_words_may_come_in_any_portions():
    def chosen(portion):
        curator = Curator(as_data(X, LABELS, Bounds(row_norm=1.0)), REPLACE, randomness := Randomness(9))
        randomness._extend(portion)
        opened = curator.open(VertexScores(Logistic(), 1.0, 150, 1.0), np.zeros(150), Exponential(2.0))
        return opened.run(SIZES[:200], RADIUS)

    assert np.array_equal(chosen(1), chosen(1 << 16))
    assert np.array_equal(chosen(100), chosen(1 << 16))


def test_a_run_goes_on_from_where_the_last_one_stopped():
    """Margins after a run are those of the public point that it leads to."""
    curator = Curator(as_data(X, LABELS, Bounds(row_norm=1.0)), REPLACE, Randomness(4))
    opened = curator.open(VertexScores(Logistic(), 1.0, 150, 1.0), np.zeros(150), Exponential(30.0))
    w = np.zeros(150)
    for sizes in (SIZES[:50], np.full(900, 0.4), SIZES[50:60]):  # the second has more than one block
        for size, choice in zip(sizes, opened.run(sizes, RADIUS), strict=True):
            w *= 1 - size
            w[choice // 2] += size * RADIUS * (1 if choice % 2 else -1)
        assert np.allclose(opened._factor * opened._v, X @ w, rtol=1e-9, atol=1e-9)


def plain(loss, X, y, steps):
    """Textbook Frank-Wolfe: the point after every step."""
    w, points = np.zeros(X.shape[1]), []
    for t in range(1, steps + 1):
        gradient = X.T @ loss.derivative(X @ w, y)
        j = int(np.argmax(np.abs(gradient)))
        w = (1 - 2 / (t + 2)) * w
        w[j] -= 2 / (t + 2) * RADIUS * np.sign(gradient[j])
        points.append(w)
    return np.array(points)


def followed(loss, X, y, steps, refresh):
    """Our points without noise, with all scores kept, and the opened query."""
    curator = Curator(as_data(X, y, Bounds(row_norm=math.inf)), REPLACE, Randomness(0))
    query = VertexScores(loss, math.inf, X.shape[1], math.inf, "heap", refresh)
    opened = curator.open(query, np.zeros(X.shape[1]), Exponential(0.0))
    w, points = np.zeros(X.shape[1]), []
    for size in SIZES[:steps]:
        (choice,) = opened.run(np.array([size]), RADIUS)
        w = (1 - size) * w
        w[choice // 2] += size * RADIUS * (1 if choice % 2 else -1)
        points.append(w)
    return np.array(points), opened


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_without_noise_the_iterates_are_those_of_plain_frank_wolfe(loss, layout):
    dense = X.toarray()
    points, _ = followed(loss, layout(dense), LABELS, 2000, refresh=0.0)
    assert np.abs(points - plain(loss, dense, LABELS, 2000)).max() <= 1e-9 * RADIUS


def test_a_refresh_tolerance_keeps_slopes_and_iterates_within_what_it_states():
    dense, refresh = X.toarray(), 0.01
    points, opened = followed(Logistic(), X, LABELS, 2000, refresh)
    margins = X @ points[-1]
    lag = np.abs(opened._slopes - Logistic().derivative(margins, LABELS))
    assert lag.max() <= 0.25 * np.abs(margins).max() * refresh / (1 - refresh)
    assert lag.max() > 0
    exact = plain(Logistic(), dense, LABELS, 2000)
    losses = [np.array([Logistic().value(X @ w, LABELS).mean() for w in path[9::50]])
              for path in (points, exact)]  # fmt: skip
    assert np.all(np.abs(losses[0] - losses[1]) <= 0.01 * losses[1])


def test_squared_loss_needs_no_refresh():
    points, _ = followed(Squared(), X, LABELS, 500, refresh=1e9)
    assert np.abs(points - plain(Squared(), X.toarray(), LABELS, 500)).max() <= 1e-9 * RADIUS


def test_the_gap_bounds_what_is_left_to_gain_and_is_not_for_private_runs():
    points, opened = followed(Logistic(), X, LABELS, 2000, refresh=0.0)
    gap = opened.gap(RADIUS)
    values = [Logistic().value(X @ w, LABELS).mean() for w in points]
    assert values[99] - values[-1] > 0 and 0 <= gap < 0.02
    curator = Curator(as_data(X, LABELS, Bounds(row_norm=1.0)), REPLACE, Randomness(0))
    query = VertexScores(Logistic(), math.inf, 150, math.inf)
    assert curator.open(query, points[99], Exponential(0.0)).gap(RADIUS) >= values[99] - values[-1]
    with pytest.raises(ValueError, match="not private"):
        curator.open(query, points[99], Exponential(1.0)).gap(RADIUS)
    assert not curator.spent.keys() - {Gaussian(0.0).event}


class Told(told.Told):
    """Chooses the first candidate."""

    def give(self, answer, sensitivity, mechanism):
        super().give(answer, sensitivity, mechanism)
        return 0


class ToldInBlocks(told.ToldInBlocks):
    expected = 300, 3


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("kind", "times"), [(Told, 3), (ToldInBlocks, 1)])
def test_every_choice_is_released_with_the_sensitivity_of_the_query(neighbours, kind, times):
    query, releases = VertexScores(Logistic(), 0.3, 150, 1.0), kind()
    data = as_data(X, LABELS, Bounds(row_norm=1.0))
    query.open(Opening(data, np.zeros(150), neighbours, releases, Exponential(1.0))).run(SIZES[:3], RADIUS)
    assert releases.told == times * [0.3 * neighbours.records_moved]
    assert np.array_equal(query.sensitivity(neighbours), np.full(300, 0.3 * neighbours.records_moved))


@pytest.mark.parametrize("n, p", [(1, 1), (1, 5), (5, 1), (3, 4)])
def test_tables_of_one_row_or_column_and_of_zeros(n, p):
    for X in (np.zeros((n, p)), np.ones((n, p))):
        curator = Curator(as_data(sp.csr_array(X), np.ones(n), Bounds(row_norm=1.0)), REPLACE, Randomness(0))
        opened = curator.open(VertexScores(Logistic(), 1.0, p, 1.0), np.zeros(p), Exponential(1e3))
        choices = opened.run(SIZES[:500], RADIUS)
        counts = np.bincount(choices, minlength=2 * p)
        assert stats.chisquare(counts).pvalue > 1e-6  # so much noise hides all of it


TINY = [0.0, 5e-324, 1e-309, 3e-308, 1e-200]
SCALED = [(1.0, 1.0), (1e100, 1.0), (1e-40, 1e-50), (1e100, 1e50)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("entry", TINY)
@pytest.mark.parametrize(
    "loss", [Logistic(), Squared(), SmoothedHinge(), Poisson(5.0)], ids=lambda loss: loss.name
)
def test_a_tiny_entry_changes_no_probability(loss, entry):
    """All vertices are equally likely; 2,000 draws of one of four are 9 deviations within 175 of 500."""
    X = np.zeros((50, 2))
    X[0, 0] = entry
    for (clip, bound), layout in zip(SCALED, 2 * (np.asarray, sp.csr_array), strict=True):
        data = as_data(layout(X), np.ones(50), Bounds(row_norm=bound)).without_zeros
        state = LazyVertices(
            VertexScores(loss, clip, 2, bound), data, np.zeros(50), 0.0, 1.0, 2.0**-20 * clip, 3.0 * clip
        )
        randomness = Randomness(5)
        state.run(np.full(3, 0.5), randomness.run_on)
        state._settle(1)
        assert all(
            np.isfinite(part).all() for part in (state._followed.sums, state._line, state._followed.slack)
        )
        draws = run(state, randomness, np.ones(2001), np.zeros(2000))
        assert np.abs(np.bincount(draws, minlength=4) - 500).max() < 175


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("structure", ["lazy", *(name for name in STRUCTURES if name != "heap")])
def test_tables_of_extreme_entries_give_finite_scores_and_no_warning(structure):
    sizes = [0.0, 5e-324, 1e-309, 1e-200, 1e-163, 1e-50, 1.0, 1e50, 1e99, 1e160, math.inf, math.nan]
    losses = [Logistic(), Squared(), Huber(1e-40), Huber(1e40), SmoothedHinge(1e-30), SmoothedHinge(1e30),
              Poisson(1e50)]  # fmt: skip
    rng, lazily = np.random.default_rng(8), 0
    for case in range(150):
        loss, bound = losses[case % len(losses)], 10.0 ** rng.choice([-50, 0, 50])
        X = np.where(
            rng.random((4, 3)) < 0.3, 0.0, rng.choice(sizes, (4, 3)) * rng.choice([-1.0, 1.0], (4, 3))
        )
        y = rng.choice([-1.0, 1.0], 4) if loss.kind == "classification" else rng.choice(sizes[:8], 4)
        data = as_data((np.asarray, sp.csr_array)[case % 2](X), y, Bounds(row_norm=bound))
        clip = min(max(bound * 10.0 ** rng.choice([-3, 0, 50]), 1e-100), 1e100)
        curator = Curator(data, REPLACE, Randomness(case))
        radius, event = 10.0 ** rng.choice([-40, 0, 5]), Exponential(10.0 ** rng.choice([-3, 0, 3]))
        opened = curator.open(VertexScores(loss, clip, 3, bound, structure), np.zeros(3), event)
        assert set(opened.run(np.full(4, 0.4), radius)) <= set(range(6))
        assert np.isfinite(opened._factor * opened._v).all()
        lazily += opened._clipped is None
    assert (lazily > 50) if structure == "lazy" else (lazily == 0)


def test_margins_too_large_for_lazy_bounds_are_kept_in_full():
    for radius in (1e9, 1e14, 1e60):
        curator = Curator(as_data(X, LABELS, Bounds(row_norm=1.0)), REPLACE, Randomness(0))
        opened = curator.open(VertexScores(Logistic(), 1.0, 150, 1.0), np.zeros(150), Exponential(100.0))
        assert len(np.unique(opened.run(SIZES[:40], radius))) > 30
        assert sum(curator.spent.values()) == 40 + 40 * 300

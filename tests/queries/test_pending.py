"""Frank-Wolfe steps whose moves of heavy columns stay pending: law, bounds, and digits."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit
from scipy import stats
from scipy.special import softmax

from dpglm import Bounds, LogisticRegression
from dpglm import threads as threads_module
from dpglm.data import as_data
from dpglm.kernels import frank_wolfe_pending as kernels
from dpglm.kernels.arguments import Compressed
from dpglm.kernels.pending_moves import UNIT, bounds_of, by_blocks, expand, weight_of
from dpglm.losses import Huber, LogCosh, Logistic
from dpglm.mechanisms import Randomness
from dpglm.penalties import L1Ball
from dpglm.queries import VertexScores, frank_wolfe_lazy
from dpglm.queries.frank_wolfe_lazy import LazyVertices, PendingMoves, heads_of
from dpglm.solvers import FrankWolfe
from dpglm.threads import limit_threads

from .test_vertices import LABELS, RADIUS, SIZES, X, edges, misfit, sums

SCALES = {"sharp": 2.0, "sharper": 0.5}


def lazy(scale, X=X, y=LABELS, loss=None, radius=RADIUS, base=0.0):
    query = VertexScores(loss or Logistic(), 1.0, X.shape[1], 1.0)
    data = as_data(X, y, Bounds(row_norm=1.0), 0.5 if base else 0.0)
    return LazyVertices(query, data, np.zeros(X.shape[0]), base, radius, 2.0**-20 * scale, scale)


def heads(state):
    weighed = state._weigh()
    found = heads_of(
        state._query.loss, weighed, float(state._line[1]), state._radius, state._reach(weighed),
        state._rounding(weighed), state._data.n_records, 300,
    )  # fmt: skip
    return weighed, found


class Steps:
    """Steps of a block, stopped while moves are pending."""

    def __init__(self, scale, steps, X=X, **options):
        self.table, self.state, self.randomness = X, lazy(scale, X, **options), Randomness(steps)
        weighed, found = heads(self.state)
        assert len(found) > 4
        self.weights = weighed.sums[:, 1].copy()
        self.block = self.state._pending_moves(weighed, found)
        most = steps + 50
        self.factors = np.cumprod(np.append(1.0, 1 - SIZES[:most]))
        self.pushes = SIZES[:most] * self.state._radius / self.factors[1:]
        self.choices = np.empty(most, dtype=np.int64)
        self.randomness._extend(1 << 20)
        self.block._begin(most, 1.0)
        done = 0
        while done < steps or self.block._pending.counts[0] < 4:
            steps = max(steps, done + 1)
            at, done, why = self.call(done, self.choices, self.pushes, self.factors, steps)
            self.randomness._at = at
            pending = self.block._pending
            if why == kernels.STALE or np.any(pending.coefs.any(axis=1) > pending.active):
                self.block._refer(done, self.factors[done], self.pushes[done] * self.factors[done + 1])
            elif why == kernels.FULL:
                self.block._make_moves()
        self.steps, self.factor = steps, self.factors[steps]

    def call(self, done, choices, pushes, factors, stop):
        block = self.block
        return kernels.run(
            self.randomness._words, self.randomness._at, done, choices[:stop], pushes, factors,
            block._columns.held, block._terms, block._followed, block._pending, block._bins, self.state.work,
        )  # fmt: skip

    def v(self):
        """v of all rows, every move made at once."""
        v, rows = np.zeros(self.state._state.shape[0]), self.state._state
        by_columns = self.table.tocsc()
        for choice, push in zip(self.choices[: self.steps], self.pushes, strict=False):
            inside = slice(*by_columns.indptr[choice // 2 : choice // 2 + 2])
            i = by_columns.indices[inside]
            v[i] += (push if choice % 2 else -push) * (rows[i, 3] * by_columns.data[inside])
        return v

    def draw(self, count):
        """Selections from the state as it is."""
        pending, found = self.block._pending, np.empty(count, dtype=np.int64)
        counts, masks, coefs = pending.counts.copy(), pending.masks.copy(), pending.coefs.copy()
        rows, one = self.state._state.copy(), np.empty(1, dtype=np.int64)
        for k in range(count):
            if self.randomness._at + (1 << 16) > len(self.randomness._words):
                self.randomness._extend(1 << 20)
            self.randomness._at, _, why = self.call(0, one, np.zeros(1), np.full(2, self.factor), 1)
            assert why == kernels.DONE
            pending.counts[:], pending.masks[:], pending.coefs[:] = counts, masks, coefs
            self.state._state[:] = rows
            found[k] = one[0]
        return found


class Binned:
    """What `edges` looks at."""

    def __init__(self, block):
        self._bins, self._line = block._bins, block._line


@pytest.fixture(scope="module", params=[*SCALES, "none is likely"])
def steps(request):
    if request.param in SCALES:
        return Steps(SCALES[request.param], 200)
    with pytest.MonkeyPatch.context() as patch:  # a head is active once it has been selected
        patch.setattr(
            PendingMoves, "_likely", lambda self, steps: np.zeros(len(self._pending.active), dtype=bool)
        )
        return Steps(0.5, 200)


def test_heads_have_no_moves_until_they_are_active(steps):
    pending = steps.block._pending
    moved = pending.coefs.any(axis=1)
    assert pending.counts[1] > 0 and 4 < moved.sum() < len(moved) and not np.any(moved > pending.active)


def test_head_columns_have_the_bounds_that_their_bins_state(steps):
    block, scale = steps.block, 1 / steps.state._line[1]
    pending = block._pending
    assert pending.counts[0] > 3 and pending.counts[1] > 0
    steps.draw(1)  # sets the bounds at the present factor
    exact = sums(Logistic(), 1.0, steps.factor * steps.v(), 0.0)
    columns = block._leading.columns.astype(int)
    centre, width = (pending.values * UNIT).T
    off = np.abs(exact[columns] - centre)
    assert np.all(off <= width) and (width / scale).max() > 0.05
    light = np.setdiff1d(np.arange(150), columns)
    assert len(light) and np.all(np.abs(exact[light]) <= steps.weights[light])
    assert np.all(np.abs(exact) <= edges(Binned(block), scale))


def test_a_selection_has_the_law_of_the_exponential_mechanism(steps):
    draws, scale = 16_000, 1 / steps.state._line[1]
    before = steps.state.work.copy()
    chosen = steps.draw(draws)
    exact = sums(Logistic(), 1.0, steps.factor * steps.v(), 0.0)
    assert misfit(chosen, exact, scale) > 1e-6
    looked, read = (steps.state.work - before)[1:3]
    assert read > draws  # rows were drawn, or sums computed
    # The test notices if candidates are kept by their upper bounds.
    pending, columns = steps.block._pending, steps.block._leading.columns.astype(int)
    upper = np.column_stack([exact, -exact])
    upper[columns] = (pending.values[:, [1]] + pending.values[:, [0]] * np.array([1, -1])) * UNIT
    biased = np.random.default_rng(0).choice(300, draws, p=softmax(upper.ravel() / scale))
    assert misfit(biased, exact, scale) < 1e-6


@njit(error_model="numpy")
def of_row(i, entry, rows, pending):
    """Bounds of a row, in a compiled function, which is where they are computed."""
    return bounds_of(i, entry, rows, pending)


@njit(error_model="numpy")
def weight_of_row(x, pending):
    """The same of a column that is no head."""
    return weight_of(x, pending)


def added_by_rows(steps):
    """For each head, what each of its rows adds, and what that may be off by."""
    pending, rows = steps.block._pending, steps.state._state
    expand(steps.factor, pending)
    by_columns = steps.table.tocsc()
    for j in pending.leading.columns.astype(int):
        inside = slice(*by_columns.indptr[j : j + 2])
        entries = zip(by_columns.indices[inside], by_columns.data[inside], strict=True)
        yield np.array([of_row(np.uint64(i), float(entry), rows, pending) for i, entry in entries])


@pytest.mark.parametrize("level", [0, 1])
def test_sums_of_heads_are_to_the_last_digit_what_their_rows_add(level, monkeypatch):
    monkeypatch.setattr(frank_wolfe_lazy, "_ROWS_A_BLOCK", 48)
    steps = Steps(2.0, 200)
    assert steps.block._pending.counts[0] > 3 and steps.block._pending.counts[3] > 0
    if level == 0:  # a pass of slopes alone, after rows were moved apart
        monkeypatch.setattr(frank_wolfe_lazy, "_FAR", 0.0)
        steps.block._refer(200, steps.factor, 1.0)
    assert steps.block._pending.counts[1] == level
    together = [added.sum(axis=0) for added in added_by_rows(steps)]
    assert np.array_equal(together, steps.block._pending.values)


def test_no_row_is_off_by_more_than_half_of_the_largest_error(steps):
    pending = steps.block._pending
    errors = np.concatenate([added[:, 1] for added in added_by_rows(steps)]) * UNIT
    assert 2 * errors.max() <= pending.most[6] <= 64 * errors.max()


def crowded():
    """Six columns that many rows hold, and light ones whose weights are up to some scales of 4."""
    rng = np.random.default_rng(11)
    shares = np.append(rng.uniform(0.15, 0.4, 6), rng.uniform(2, 45, 294) / 4000)
    X = (rng.random((4000, 300)) < shares) * rng.uniform(0.1, 0.22, (4000, 300))
    return sp.csr_array(X), np.where(
        X @ rng.choice([-3.0, 3.0], 300) + rng.normal(0, 0.4, 4000) > 0, 1.0, -1.0
    )


def test_rows_that_are_drawn_decide_on_wide_columns_that_are_no_heads():
    table, y = crowded()
    draws, scale = 16_000, 4.0
    steps = Steps(scale, 60, table, y=y)
    block, work = steps.block, steps.state.work
    pending, slack = block._pending, block._followed.sums[:, 1]
    wide = np.flatnonzero(slack > kernels._NARROW * scale)
    assert weight_of_row(pending.largest, pending) * UNIT < kernels._SMALL * scale and len(wide) > 50
    exact = sums(Logistic(), 1.0, steps.factor * steps.v(), 0.0, table, y)
    # What rows may add to a column is at most its weight, and what its bin is for.
    by_columns = table.tocsc()
    for j in wide:
        inside = by_columns.data[slice(*by_columns.indptr[j : j + 2])]
        bound = sum(weight_of_row(x, pending) for x in inside) * UNIT
        assert abs(exact[j]) <= np.abs(inside).sum() <= bound <= slack[j]
    before = work.copy()
    chosen = steps.draw(draws)
    tries, whole_sums, rows_read, *_ = work - before
    assert whole_sums < tries / 50 and 0 < rows_read < 20 * tries  # sums are those of narrow columns
    assert np.isin(chosen // 2, wide).mean() > 0.05
    assert misfit(chosen, exact, scale) > 1e-6
    # The test notices if these columns are kept by their weights.
    upper = np.column_stack([exact, -exact])
    upper[wide] = slack[wide, None]
    biased = np.random.default_rng(0).choice(600, draws, p=softmax(upper.ravel() / scale))
    assert misfit(biased, exact, scale) < 1e-6


def test_blocks_hold_each_entry_of_their_columns_once():
    by_columns, n = X.tocsc(), X.shape[0]
    table = Compressed(by_columns.indptr.view("u4"), by_columns.indices.view("u4"), by_columns.data)
    columns, size = np.array([7, 2, 100], dtype=np.uint64), 16
    blocks = by_blocks(table, columns, n, size)
    found = np.zeros((len(blocks.begins) * size, len(columns)))
    for b, begins in enumerate(blocks.begins.astype(int)):
        for k in range(len(columns)):
            inside = slice(begins[k], begins[k + 1])
            found[b * size + blocks.places[inside].astype(int), k] += blocks.entries[inside]
    assert np.array_equal(found[:n], X.toarray()[:, columns.astype(int)]) and not found[n:].any()
    assert blocks.begins[-1, -1] == np.count_nonzero(found) > 0


@pytest.mark.parametrize("scale", SCALES.values())
@pytest.mark.parametrize("most", [4, 512])
def test_margins_have_the_digits_of_moves_made_at_once(scale, most, monkeypatch):
    monkeypatch.setattr(frank_wolfe_lazy, "_MOST_PENDING", most)
    block = Steps(scale, 300)
    assert block.block._pending.counts[0] > 0
    block.block._make_moves()
    assert np.array_equal(block.v(), block.state._state[:, 0])


def chosen(scale, table=X, threads=None, portion=1 << 16, count=250):
    state, randomness = lazy(scale, table), Randomness(7)
    assert len(heads(state)[1])
    randomness._extend(portion)
    with limit_threads(threads or 2):
        choices = state.run(SIZES[:count], randomness.run_on)
    return choices, state.parts


@pytest.mark.parametrize("scale", SCALES.values())
def test_choices_are_the_same_for_any_threads_words_blocks_and_layout(scale, monkeypatch):
    choices, parts = chosen(scale)
    for table, options in (
        (X, {"portion": 1}),
        (X.toarray(), {}),
        (sp.csc_array(X), {}),
        (X, {"threads": 1, "cut": 7}),
        (X, {"threads": 2, "cut": 7, "rows": 16, "moves": 5}),
        (X, {"rows": 1, "moves": 1}),
    ):
        cut = options.pop("cut", 1)
        monkeypatch.setattr(threads_module, "chunk_count", lambda *_, cut=cut: cut)
        monkeypatch.setattr(frank_wolfe_lazy, "_ROWS_A_BLOCK", options.pop("rows", 1 << 13))
        monkeypatch.setattr(frank_wolfe_lazy, "_MOST_PENDING", options.pop("moves", 512))
        again, same_parts = chosen(scale, table, **options)
        assert np.array_equal(choices, again) and np.array_equal(parts, same_parts)
    assert len(np.unique(choices)) > 10


def test_blocks_of_steps_with_and_without_pending_moves_follow_each_other(monkeypatch):
    # Steps of almost 1 make the factor of v so small that a new block of steps begins.
    sizes = np.concatenate([SIZES[1:40], np.full(4, 1 - 2.0**-52), SIZES[40:60], np.full(4, 1 - 2.0**-52)])
    state, randomness, asked = lazy(2.0), Randomness(3), []

    def every_other(*arguments):
        asked.append(arguments)
        return heads_of(*arguments)[: None if len(asked) % 2 else 0]

    monkeypatch.setattr(frank_wolfe_lazy, "heads_of", every_other)
    choices, w = state.run(sizes, randomness.run_on), np.zeros(X.shape[1])
    for choice, size in zip(choices, sizes, strict=True):
        w *= 1 - size
        w[choice // 2] += size * RADIUS * (1 if choice % 2 else -1)
    assert len(asked) > 2
    np.testing.assert_allclose(state.parts, state._state[:, 3] * (X @ w), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("left", [2.0**-12, 2.0**-37, 2.0**-52])
def test_a_long_step_along_a_light_column_leaves_heads_their_law(left):
    # What it does to margins is far beyond any expansion, and must not enlarge the bounds after it.
    rng = np.random.default_rng(0)
    shares = np.append([1.0, 1.0], np.full(60, 25 / 2000))
    table = (rng.random((2000, 62)) < shares) * rng.uniform(0.05, 0.1, (2000, 62))
    y, scale = np.where(rng.random(2000) < 0.58, 1.0, -1.0), 3.3
    assert len(heads(lazy(scale, sp.csr_array(table), y))[1]) == 2
    heads_selected, expected, spread = 0, 0.0, 0.0
    for seed in range(300):
        state = lazy(scale, sp.csr_array(table), y)
        first, second = state.run(np.full(2, 1 - left), Randomness(seed).run_on)
        if first // 2 < 2:
            continue
        w = np.zeros(62)
        w[first // 2] = (1 - left) * RADIUS * (1 if first % 2 else -1)
        gradient = table.T @ Logistic().derivative(table @ w, y)
        chance = softmax(np.column_stack([gradient, -gradient]).ravel() / scale)[:4].sum()
        heads_selected += second // 2 < 2
        expected, spread = expected + chance, spread + chance * (1 - chance)
    assert expected > 50 and abs(heads_selected - expected) < 5 * np.sqrt(spread)


@pytest.mark.parametrize(("unit", "expected"), [(1.0, 5), (1e-5, 0)])
def test_there_are_no_heads_where_rounding_would_hide_their_sums(unit, expected):
    rng = np.random.default_rng(0)
    table, y = unit * rng.uniform(-1, 1, (2000, 5)), rng.choice([-1.0, 1.0], 2000)
    data = as_data(table, y, Bounds(feature=unit))
    state = LazyVertices(
        VertexScores(Logistic(), unit, 5, 1.0), data, np.zeros(2000), 0.0, 5 / unit, 0.0, 4 * unit
    )
    assert len(heads(state)[1]) == expected


def test_selections_end_where_the_rounding_of_an_expansion_is_large():
    rng = np.random.default_rng(0)
    table, y = 4e-5 * rng.uniform(-1, 1, (120, 5)), rng.choice([-1.0, 1.0], 120)
    scale = np.abs(table).sum(axis=0).max() / 100
    state = lazy(scale, sp.csr_array(table), y, radius=200.0)
    assert len(heads(state)[1]) == 5
    choices, w = state.run(SIZES[1:40], Randomness(0).run_on), np.zeros(5)
    for choice, size in zip(choices, SIZES[1:40], strict=True):
        w *= 1 - size
        w[choice // 2] += size * 200.0 * (1 if choice % 2 else -1)
    np.testing.assert_allclose(state.parts, table @ w, rtol=1e-9, atol=1e-12)


def test_null_records_and_stored_zeros_change_no_selection():
    table, y = crowded()
    stored, dense = table.copy(), table.toarray()
    stored.data[::7] = 0.0
    dense[stored.toarray() == 0.0] = 0.0
    stored.data[stored.indptr[5]] = dense[5, stored.indices[stored.indptr[5]]] = np.nan
    models = [
        LogisticRegression(
            8.0, penalty=L1Ball(5.0), solver=FrankWolfe(steps=40), fit_intercept=False, random_state=1,
            bounds=Bounds(feature=0.25), classes=[-1, 1],
        ).fit(X, y)
        for X in (stored, dense, stored.tocsc())
    ]  # fmt: skip
    assert np.count_nonzero(models[0].coef_) > 1
    for other in models[1:]:
        assert np.array_equal(models[0].coef_, other.coef_)


def test_heads_are_for_sharp_selections_from_smooth_losses():
    for scale, loss, expected in (
        (2.0, Logistic(), True),
        (400.0, Logistic(), False),  # flat
        (0.01, Logistic(), False),  # so sharp that rounding might show
        (2.0, Huber(0.5), False),  # its curvature jumps
        (2.0, LogCosh(0.9), True),
        (2.0, LogCosh(0.1), False),  # its curvature changes too fast
    ):
        assert (len(heads(lazy(scale, loss=loss))[1]) > 0) == expected


def tiny():
    """Two crowded columns and one of few rows, whose sums are small beside their weights."""
    rng = np.random.default_rng(5)
    dense = rng.random((300, 3)) * (rng.random((300, 3)) < [0.9, 0.7, 0.1])
    return sp.csr_array(dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1)), np.where(
        rng.random(300) < 0.5, 1.0, -1.0
    )


def textbook(X, y, scale, radius, steps, rng):
    """Plain Frank-Wolfe with the exponential mechanism."""
    w, path = np.zeros(3), []
    for size in SIZES[1 : steps + 1]:
        gradient = X.T @ Logistic().derivative(X @ w, y)
        choice = rng.choice(6, p=softmax(np.column_stack([gradient, -gradient]).ravel() / scale))
        w *= 1 - size
        w[choice // 2] += size * radius * (1 if choice % 2 else -1)
        path.append(choice)
    return path


def test_whole_paths_have_the_law_of_plain_frank_wolfe():
    table, y = tiny()
    scale, radius, runs, rng = 3.0, 0.6, 1200, np.random.default_rng(1)
    assert len(heads(lazy(scale, table, y))[1]) >= 2
    counts = np.zeros((2, 216))
    for seed in range(runs):
        state, randomness = lazy(scale, table, y, radius=radius), Randomness(seed)
        paths = (
            state.run(SIZES[1:6], randomness.run_on),
            textbook(table.toarray(), y, scale, radius, 5, rng),
        )
        for kind, path in enumerate(paths):
            counts[kind, 36 * path[0] + 6 * path[3] + path[4]] += 1
    counts = counts[:, counts.sum(axis=0) >= 20]
    assert counts.shape[1] > 10
    assert stats.chi2_contingency(counts).pvalue > 1e-6


@pytest.mark.parametrize("loss", [Logistic(), LogCosh(0.9)], ids=lambda loss: loss.name)
def test_bounds_hold_with_an_intercept_and_other_losses(loss):
    steps = Steps(2.0, 150, loss=loss, base=-0.35)
    steps.draw(1)
    pending = steps.block._pending
    exact = sums(loss, 1.0, steps.factor * steps.v(), -0.35)[steps.block._leading.columns.astype(int)]
    centre, width = (pending.values * UNIT).T
    assert np.all(np.abs(exact - centre) <= width)

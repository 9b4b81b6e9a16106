"""Scores of coordinates: what they are, how far a record moves them, and the state kept behind them."""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.optimize import minimize_scalar

from dpglm import Bounds, Neighbours
from dpglm.audit.transcript import Recording, Replaying
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.kernels.greedy import scores as compiled
from dpglm.losses import Logistic, SmoothedHinge, Squared
from dpglm.mechanisms import STRUCTURES, Exponential, Gaussian, Randomness, Round
from dpglm.queries import CoordinateScores
from dpglm.queries.base import Exact, Opening

from . import told

rng = np.random.default_rng(0)
INF = math.inf
CODES = {"gs-s": 0, "gs-r": 1, "gs-q": 2}
FORMS = [(0.0, 0.0, -INF, INF), (0.3, 0.0, -INF, INF), (0.3, 0.5, -INF, INF), (0.2, 0.0, -0.4, 0.7),
         (0.0, 0.4, 0.0, INF), (0.3, 0.1, 0.0, 0.5)]  # fmt: skip


def score(rule, g, w, m, form, free=1):
    """The compiled score of one coordinate for a table of one record."""
    index = np.array([0], dtype=np.int32)
    return float(compiled(CODES[rule], 1, np.array([g]), np.array([[w, m]]), *form, free, index)[0])


def penalty(u, form):
    l1, l2, low, high = form
    return l1 * abs(u) + l2 / 2 * u**2 if low <= u <= high else INF


def decrease(g, w, m, form):
    """The largest decrease of the model of one coordinate and the step that has it, by search."""

    def model(a):
        return g * a + m / 2 * a**2 + penalty(w + a, form) - penalty(w, form)

    _, _, low, high = form
    ends = max(low - w, -50.0), min(high - w, 50.0)
    candidates = [0.0, -w, *(end for end in ends if math.isfinite(end))]
    for begin, end in itertools.pairwise(sorted({*ends, min(max(-w, ends[0]), ends[1])})):
        candidates.append(minimize_scalar(model, bounds=(begin, end), options={"xatol": 1e-12}).x)
    best = min((a for a in candidates if ends[0] <= a <= ends[1]), key=model)
    return -model(best), best


def least_subgradient(g, w, form):
    """The least size of g + s over the subgradients s of the penalty at w, by search."""
    l1, l2, low, high = form
    slopes = np.linspace(-l1, l1, 2001) if w == 0 else [l1 * np.sign(w)]
    below = np.concatenate([[0.0], -np.linspace(0, 20, 20001)]) if w <= low else [0.0]
    above = np.concatenate([[0.0], np.linspace(0, 20, 20001)]) if w >= high else [0.0]
    return min(np.abs(g + l2 * w + s + np.add.outer(below, above)).min() for s in slopes)


def inside(form):
    _, _, low, high = form
    return [w for w in (-1.3, -0.4, -1e-9, 0.0, 1e-9, 0.2, 0.5, 0.7, 2.0) if low <= w <= high]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_scores_are_what_the_rules_say(form):
    for w, g, m in itertools.product(inside(form), (-2.0, -0.3, -0.05, 0.0, 0.1, 0.3, 1.7), (0.25, 1.0, 4.0)):
        best, a = decrease(g, w, m, form)
        assert score("gs-q", g, w, m, form) == pytest.approx(math.sqrt(2 * max(best, 0)), abs=2e-6)
        assert score("gs-r", g, w, m, form) == pytest.approx(math.sqrt(m) * abs(a), abs=1e-5)
        least = least_subgradient(g, w, form)
        assert score("gs-s", g, w, m, form) == pytest.approx(least / math.sqrt(m), abs=2e-3)


@pytest.mark.parametrize("rule", CODES)
def test_rules_agree_where_the_penalty_has_no_kink(rule):
    for g, w, m in rng.standard_normal((100, 3)) * [1, 1, 0] + [0, 0, 0.7]:
        assert score(rule, g, w, m, FORMS[0]) == pytest.approx(abs(g) / math.sqrt(m), rel=1e-12)


@pytest.mark.parametrize("rule", CODES)
def test_a_coordinate_without_penalty_has_the_size_of_its_slope(rule):
    assert score(rule, -0.8, 0.3, 4.0, FORMS[-1], free=0) == pytest.approx(0.4, rel=1e-12)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("rule", CODES)
def test_scores_are_lipschitz_in_the_slope(rule, form):
    """Ten thousand pairs of slopes, also next to each kink, where rounding would show first.

    The bound is reached by GS-q in the limit of a large curvature, beside which that of the penalty is
    nothing: the first point has the largest.
    """
    rng, reached = np.random.default_rng(5), 0.0
    for k, w in enumerate(inside(form)):
        m = 10 ** rng.uniform(-2, 2) if k else 100.0
        kinks = np.array([0.0, form[0], -form[0], m * w + form[0], m * w - form[0]])
        g = rng.choice(kinks, 1_500) + rng.choice([1e-12, 1e-6, 1e-2, 1.0], 1_500) * rng.standard_normal(
            1_500
        )
        h = g + rng.choice([1e-9, 1e-3, 1.0], 1_500) * rng.standard_normal(1_500)
        here, there = (np.array([score(rule, value, w, m, form) for value in values]) for values in (g, h))
        room = 1e-13 * (1 + np.abs(g) + np.abs(h) + form[0] + form[1] * abs(w)) / math.sqrt(m)
        assert (np.abs(here - there) <= np.abs(g - h) / math.sqrt(m) + room).all()
        reached = max(reached, (np.abs(here - there) / np.abs(g - h)).max() * math.sqrt(m))
    assert reached > 0.99


EXACT = Round(Exponential(0.0), Gaussian(0.0))


def opened(query, X, y, w, constant=0.0):
    data = as_data(X, y, Bounds(row_norm=1.0), constant)
    return query.open(Opening(data, np.array(w, dtype=float), Neighbours.REPLACE_ONE, Exact(), EXACT))


def query_of(loss, p, rule="gs-r", clip=0.05, form=(0.01, 0.02, -INF, INF), reach=1.0):
    return CoordinateScores(loss, np.full(p, clip), np.full(p, 0.3), rule, form, np.full(p, reach))


@pytest.mark.parametrize("loss", [Squared(), Logistic(), SmoothedHinge()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("layout", [np.array, np.asfortranarray, sp.csr_array, sp.csc_matrix])
def test_state_after_many_moves_is_that_of_a_fresh_start(layout, loss):
    X = rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.4)
    X[:, 4] = 0.0
    y = rng.choice([-1.0, 1.0], 60)
    query, w = query_of(loss, 10), np.zeros(10)
    state = opened(query, layout(X), y, w, constant=0.5)
    for _ in range(400):
        j = int(rng.integers(10))
        w[j] += rng.standard_normal()
        state.move(j, w[j])
        if rng.random() < 0.3:
            state.step()
    fresh, slopes = opened(query, layout(X), y, w, constant=0.5).step()
    for now, then in zip(state.step(), (fresh, slopes), strict=True):
        assert np.allclose(now, then, rtol=1e-9, atol=1e-12)
    assert np.allclose(fresh, query(as_data(X, y, Bounds(row_norm=1.0), 0.5), w), rtol=1e-9, atol=1e-12)


def test_kept_scores_are_drawn_from_as_they_are_now_though_few_were_updated():
    n, p = 300, 5_000
    X = sp.random_array((n, p), density=0.01, format="csr", rng=rng)
    X = sp.csr_array(X.multiply(np.arange(p) > 3))
    y = rng.choice([-1.0, 1.0], n)
    data = as_data(X, y, Bounds(row_norm=1.0))
    curator = Curator(data, Neighbours.REPLACE_ONE, Randomness(0))
    query, w, mechanism = query_of(Logistic(), p, form=(1e-5, 0.0, -INF, INF)), np.zeros(p), Exponential(0.3)
    state = curator.open(query, w, Round(mechanism, Gaussian(5.0)))
    listed = []
    for step in range(400):
        j, _ = state.step()
        # Columns 0 to 3 are empty: only their own scores change. The others move on and back.
        k = step % 4 if step % 3 == 0 else j
        w[k] += 0.5 if step % 40 < 30 else -0.4
        state.move(k, w[k])
        listed.append(np.count_nonzero(state._clipped.kept.marks == state._clipped._mark))
    now = query(data, w)
    kept = state._kept
    stale = np.abs(kept._values - now)
    assert 1 < np.mean(listed) < 100, "some are updated, and most are not"
    assert np.count_nonzero(stale > 1e-3 * state._largest) > p / 10
    assert (stale <= np.maximum(kept.slack(state._all), 2e-6 * state._largest)).all()
    _, scale = mechanism.law(state._largest * curator._releases._rounding)
    assert now.max() > 3 * scale, "selections are not nearly uniform"
    chances = mechanism.probabilities(now, state._largest * curator._releases._rounding)
    drawn = np.bincount([state.step()[0] for _ in range(20_000)], minlength=p)
    order = np.argsort(chances)
    groups = np.minimum((np.cumsum(chances[order]) * 200).astype(int), 199)
    found, expected = np.bincount(groups, drawn[order]), 20_000 * np.bincount(groups, chances[order])
    assert stats.chisquare(found[expected > 0], expected[expected > 0]).pvalue > 1e-6


@dataclass(frozen=True)
class KeptIn(Exponential):
    """Keeps scores in a structure of a given name."""

    structure: str

    def keep(self, scores, sensitivity, structure="auto"):
        return super().keep(scores, sensitivity, self.structure)


def test_an_audit_and_an_exact_evaluation_hand_out_no_stream():
    data = as_data(np.eye(3), np.ones(3), Bounds(row_norm=1.0))
    recording = Recording(data, Neighbours.REPLACE_ONE, Randomness(0))
    replaying = Replaying(data, Neighbours.REPLACE_ONE, recording.released)
    for releases in (recording, replaying, Exact()):
        assert not releases.in_blocks
        with pytest.raises(TypeError):
            releases.spend(Exponential(1.0), 3)
    assert not recording.log.spent and not replaying.log.spent


@pytest.mark.parametrize("structure", STRUCTURES)
def test_scores_can_be_kept_in_any_structure(structure):
    n, p, noisy = 100, 60, STRUCTURES[structure].noisy
    X, y = sp.random_array((n, p), density=0.1, format="csr", rng=rng), rng.choice([-1.0, 1.0], n)
    data = as_data(X, y, Bounds(row_norm=1.0))
    curator = Curator(data, Neighbours.REPLACE_ONE, Randomness(0))
    query = query_of(Logistic(), p, clip=0.2, form=(0.0, 0.0, -INF, INF))
    w, mechanism = np.zeros(p), KeptIn(1.0 if noisy else 0.0, structure)
    state = curator.open(query, w, Round(mechanism, Gaussian(1.0)))
    kept = None
    for _ in range(200):
        j, _ = state.step()
        assert kept in (None, state._kept), "one structure serves for all steps"
        kept = state._kept
        now = query(data, w)
        if not noisy:
            assert now[j] == pytest.approx(now.max(), rel=1e-12)
        k = int(rng.integers(p))
        w[k] += 3 * rng.standard_normal()
        state.move(k, w[k])
    assert type(kept) is STRUCTURES[structure]
    if noisy:
        chances = mechanism.probabilities(query(data, w), state._largest * curator._releases._rounding)
        assert chances.max() > 3 * chances.min(), "selections are not nearly uniform"
        drawn = np.bincount([state.step()[0] for _ in range(20_000)], minlength=p)
        assert stats.chisquare(drawn, 20_000 * chances).pvalue > 1e-6


def test_where_no_term_can_exceed_its_clip_the_sums_are_those_of_a_product():
    X, y = rng.standard_normal((50, 6)), rng.choice([-1.0, 1.0], 50)
    w = rng.standard_normal(6)
    plain, looked_at = (query_of(Logistic(), 6, clip=2.0, reach=reach) for reach in (1.0, INF))
    data = as_data(X, y, Bounds(row_norm=1.0))
    assert np.allclose(plain(data, w), looked_at(data, w), rtol=1e-12)


def test_a_step_shows_the_slope_of_the_one_selected_and_nothing_else():
    X, y = rng.standard_normal((20, 3)), rng.choice([-1.0, 1.0], 20)
    data = as_data(X, y, Bounds(row_norm=1.0))
    curator = Curator(data, Neighbours.REPLACE_ONE, Randomness(0))
    state = curator.open(query_of(Logistic(), 3, clip=INF), np.zeros(3), EXACT)
    slopes = data.t_dot(Logistic().derivative(np.zeros(20), y))
    j, slope = state.step()
    assert slope == pytest.approx(slopes[j], rel=1e-12)
    assert [name for name in vars(type(state)) if not name.startswith("_")] == ["step", "move"]


def test_a_point_at_which_rounding_would_show_is_refused():
    X, y = rng.standard_normal((20, 3)), rng.choice([-1.0, 1.0], 20)
    state = opened(query_of(Logistic(), 3), X, y, np.zeros(3))
    state.move(0, 1e9)
    with pytest.raises(FloatingPointError, match="rounding"):
        state.move(0, 1e12)
    with pytest.raises(FloatingPointError, match="rounding"):
        opened(query_of(Logistic(), 3, form=(1e12, 0.0, -INF, INF)), X, y, np.zeros(3))


def with_sums(sums, count):
    """That many records from {-1, 0, 1}³ with these sums."""
    return np.sign(sums) * (np.arange(count)[:, None] < np.abs(sums))


def largest_loss(logs):
    """The largest loss, or range of losses, of two of these laws."""
    losses = np.subtract.outer(*[np.array(logs)] * 2).diagonal(axis1=1, axis2=3)
    return max(np.ptp(losses, axis=-1).max(), np.abs(losses).max())


@pytest.mark.parametrize("rule", CODES)
def test_selection_probabilities_of_neighbours_stay_within_the_claimed_range_and_reach_it(rule):
    """Tables of five records from {-1, 0, 1}³: the exact loss of a selection over all pairs of neighbours."""
    noise, clip = 2.0, 0.2
    form = (0.02, 0.01, -INF, INF)
    query = CoordinateScores(Logistic(), np.full(3, clip), np.full(3, 0.25), rule, form, np.full(3, INF))
    sensitivity = float(query.sensitivity(Neighbours.REPLACE_ONE).max())
    records = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=3)))

    def log_law(table, w):
        data = as_data(table, np.ones(5), Bounds(feature=1.0))
        return np.log(Exponential(noise).probabilities(query(data, w), sensitivity))

    @functools.cache
    def at_zero(*sums):
        """The law at 0, where records count by their sum alone, whole numbers from -5 to 5."""
        return log_law(with_sums(sums, 5), np.zeros(3))

    worst = 0.0
    for sums in itertools.product(range(-4, 5), repeat=3):
        worst = max(worst, largest_loss([at_zero(*(record + sums)) for record in records]))
    w = np.array([0.05, -0.3, 0.0])
    for sums in itertools.product(range(-4, 5, 4), repeat=3):
        others = with_sums(sums, 4)
        worst = max(worst, largest_loss([log_law(np.vstack([record, others]), w) for record in records]))
    assert 0.95 * 2 / noise <= worst <= 2 / noise


def test_a_point_outside_the_interval_of_the_penalty_is_refused():
    """There the decrease that GS-q takes the root of would be infinite, and no sensitivity would hold."""
    X, y = rng.standard_normal((20, 3)), rng.choice([-1.0, 1.0], 20)
    query = query_of(Logistic(), 3, rule="gs-q", form=(0.0, 0.0, 1.0, INF))
    with pytest.raises(ValueError, match="outside"):
        opened(query, X, y, np.zeros(3))
    state = opened(query, X, y, np.ones(3))
    state.move(1, 2.0)
    with pytest.raises(ValueError, match="outside"):
        state.move(1, 0.5)


class Told(told.Told):
    """Also notes the mechanism, and chooses the second coordinate."""

    def give(self, answer, sensitivity, mechanism):
        self.told.append((sensitivity, mechanism))
        return 1, 0.0


class ToldInBlocks(told.ToldInBlocks):
    expected = 3, 1


UNEQUAL = np.array([0.3, 0.1, 0.2]), np.array([0.5, 0.1, 0.9])


def told_by(kind, neighbours, mechanism):
    """What releases are told in one step, the step, and the right sensitivities of scores and slopes."""
    X, y = rng.standard_normal((20, 3)), rng.choice([-1.0, 1.0], 20)
    clip, curvature = UNEQUAL
    query = CoordinateScores(Logistic(), clip, curvature, "gs-r", FORMS[1], np.ones(3))
    releases, data = kind(), as_data(X, y, Bounds(row_norm=1.0))
    step = query.open(Opening(data, np.zeros(3), neighbours, releases, mechanism)).step()
    moved = neighbours.records_moved
    largest = moved * (clip / np.sqrt(curvature)).max() * (1 + 2.0**-12)
    return releases.told, step, pytest.approx(largest, rel=1e-12), moved * clip


@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_selection_is_told_the_largest_sensitivity_and_a_release_its_own(neighbours):
    mechanism = Round(Exponential(1.0), Gaussian(2.0))
    (((scores, slopes), given),), step, largest, each = told_by(Told, neighbours, mechanism)
    assert scores == largest and np.array_equal(slopes, each)
    assert given is mechanism and step == (1, 0.0)
    (scores, slope), (j, _), largest, each = told_by(ToldInBlocks, neighbours, mechanism)
    assert scores == largest and slope == each[j]


def test_kept_scores_have_the_sensitivity_that_covers_rounding():
    p = 5_000
    X, y = sp.random_array((50, p), density=0.01, format="csr", rng=rng), rng.choice([-1.0, 1.0], 50)
    curator = Curator(as_data(X, y, Bounds(row_norm=1.0)), Neighbours.REPLACE_ONE, Randomness(0))
    curator._releases._rounding = 1.25
    state = curator.open(query_of(Logistic(), p), np.zeros(p), Round(Exponential(3.0), Gaussian(3.0)))
    state.step()
    _, scale = Exponential(3.0).law(1.25 * state._largest)
    assert state._kept._bins.line[1] == 1 / scale


@pytest.mark.parametrize("layout", [np.array, sp.csr_array])
@pytest.mark.parametrize("rule", CODES)
def test_scores_of_a_table_are_those_of_a_plain_computation(rule, layout):
    """With an intercept, an L2 part, unequal curvature, and a clip below what terms can reach."""
    X, y = rng.standard_normal((40, 4)) * 0.3, rng.choice([-1.0, 1.0], 40)
    w, curvature = np.array([0.3, 0.0, -0.2, 0.0, 0.4]), np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    clip, form = 0.2 * np.sqrt(curvature), (0.01, 0.3, -INF, INF)
    query = CoordinateScores(Logistic(), clip, curvature, rule, form, 2 * clip)
    inside = np.column_stack([X, np.full(40, 0.5)])
    slopes = Logistic().derivative(inside @ w, y)
    g = np.clip(inside * slopes[:, None], -clip, clip).mean(axis=0)
    forms = [form] * 4 + [FORMS[0]]
    if rule == "gs-s":
        expected = [least_subgradient(g[j], w[j], forms[j]) / math.sqrt(curvature[j]) for j in range(5)]
    else:
        best = [decrease(g[j], w[j], curvature[j], forms[j]) for j in range(5)]
        expected = [
            math.sqrt(2 * max(q, 0)) if rule == "gs-q" else math.sqrt(curvature[j]) * abs(a)
            for j, (q, a) in enumerate(best)
        ]
    found = query(as_data(layout(X), y, Bounds(feature=10.0), 0.5), w)
    assert np.allclose(found / 40, expected, atol=1e-4)

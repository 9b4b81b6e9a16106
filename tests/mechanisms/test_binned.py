"""A draw from bins has the law of the exponential mechanism, whatever the scores and their history."""

import math

import numpy as np
import pytest
from scipy import sparse, stats

from dpglm import Bounds, LinearRegression
from dpglm.accounting import Composed, Imprecision, Repeated, calibrate
from dpglm.errors import UnsupportedProblem
from dpglm.kernels.bins import BINS, LOWEST, ORIGIN
from dpglm.mechanisms import Exponential, Randomness, randomness
from dpglm.mechanisms.grid import on_grid
from dpglm.mechanisms.selection import Binned
from dpglm.solvers import GreedyCoordinateDescent

from . import selections
from .selections import (
    GRID,
    LARGEST,
    SCALE,
    SPREADS,
    P,
    digits,
    drawn,
    drawn_from,
    fits,
    law,
    one_less,
    spread,
)  # fmt: skip


def check_state(binned, scores):
    """The bins hold what a fresh build around the same reference would put there, each candidate once."""
    values, start = binned._values, binned._bins.start
    assert np.array_equal(values, on_grid(scores, binned._bins.line[0]))
    assert np.array_equal(np.sort(binned._bins.perm), np.arange(len(scores)))
    assert np.array_equal(binned._bins.perm[binned._bins.position], np.arange(len(scores)))
    with np.errstate(over="ignore"):
        places = (values - binned._bins.line[2]) * binned._bins.line[1] + ORIGIN
    bins = np.clip(np.floor(places), 0, BINS).astype(int)
    assert start[0] == 0 and start[-1] == len(scores)
    assert np.array_equal(np.diff(start), np.bincount(bins, minlength=BINS))
    assert np.array_equal(bins[binned._bins.perm], np.repeat(np.arange(BINS), np.diff(start)))
    assert LOWEST <= bins.max() < BINS


@pytest.mark.parametrize("name", SPREADS)
def test_a_draw_is_proportional_to_the_exponential_of_the_rounded_score(name):
    scores = SCALE * spread(name, np.random.default_rng(3))
    binned = Binned(scores, GRID, SCALE)
    check_state(binned, scores)
    assert fits(drawn(binned), law(scores)) > 1e-6


@pytest.mark.parametrize("name", SPREADS)
def test_the_law_is_the_same_after_a_hundred_thousand_updates(name):
    rng = np.random.default_rng(4)
    scores = SCALE * spread(name, rng)
    binned = Binned(SCALE * spread("near uniform", rng), GRID, SCALE)
    selections.update_often(binned, binned._values, scores, rng, check_state)
    assert fits(drawn(binned), law(scores)) > 1e-6


def test_the_window_follows_scores_that_leave_it_up_and_down():
    rng = np.random.default_rng(5)
    scores = SCALE * spread("near uniform", rng)
    binned = Binned(scores, GRID, SCALE)
    references = set()
    for step, shift in enumerate(
        [63, 64.5, 500, 499.9, 1e5, 30, -40, -300, -1e5, -1e300, 1e300, 0.0, 70, -70]
    ):
        index = np.arange(P) if step % 2 else rng.permutation(P)
        new = SCALE * (shift + rng.standard_normal(P))
        # The last chunk leaves, the others wait for it at the old place: some are in bin 0 for a while.
        for chunk in np.array_split(index, 3):
            scores[chunk] = new[chunk]
            binned.update(chunk, new[chunk])
            check_state(binned, scores)
        references.add(binned._bins.line[2])
        assert fits(drawn(binned, 5_000, seed=step), law(scores)) > 1e-7
    assert len(references) > 8


def test_bin_zero_is_drawn_from_exactly():
    """Nearly all candidates are in bin 0, which is wide, and hardly lighter than the few above it."""
    places = np.concatenate([np.full(3, 1.0), -7.5 + 0.5 * (np.arange(P - 3) % 14)])
    # As after a fall of the largest score, but past the rule that would build the bins anew.
    binned = Binned(places * SCALE, GRID, SCALE)
    binned._bins.line[2] = on_grid(ORIGIN * SCALE, GRID)
    binned._bins.start[1], binned._bins.start[2:] = P - 3, P
    assert 0.3 < law(places * SCALE)[3:].sum() < 0.99
    assert set(binned._bins.perm[P - 3 :]) == {0, 1, 2}
    assert fits(drawn(binned), law(places * SCALE)) > 1e-6


@pytest.mark.parametrize("size", [1e-2, 1e-3, 1e-4, 1e-5])
def test_rare_bins_have_their_probability(size):
    """Far below the others, or alone above very many."""
    below = np.zeros(P)
    below[7] = math.log(size * (P - 1) / (1 - size))
    draws = int(min(2 / size + 20_000, 120_000))
    hits = int((drawn(Binned(SCALE * below, GRID, SCALE), draws, seed=2) == 7).sum())
    assert stats.binomtest(hits, draws, law(SCALE * below)[7]).pvalue > 1e-6
    above = np.full(P, math.log(size / (1 - size) / (P - 1)))
    above[7] = 0.0
    hits = int((drawn(Binned(SCALE * above, GRID, SCALE), draws, seed=3) != 7).sum())
    assert stats.binomtest(hits, draws, 1 - law(SCALE * above)[7]).pvalue > 1e-6


@pytest.mark.parametrize("gap", [20, 30, 60, 90, 120])
def test_the_coin_of_a_bin_is_exact_far_beyond_one_word(gap):
    """One candidate is ahead of all others by ``gap``: which words say 'not this one' is known exactly."""
    scores = np.full(P, -SCALE * gap)
    scores[7] = 0.0
    binned = Binned(scores, GRID, SCALE)
    below = (P - 1) * math.exp(-gap)
    edge = digits(below / (1 + below))
    assert len(edge) > 1
    assert drawn_from(binned, [*edge, 5, 0]) == (7, len(edge) + 2)
    assert drawn_from(binned, [*one_less(edge), 5, 0])[0] not in (7, -1)


@pytest.mark.parametrize("gap", [150, 200, 290, 299.5])
def test_a_candidate_far_down_in_bin_zero_is_kept_with_exactly_its_probability(gap):
    scores = np.full(P, -SCALE * gap)
    scores[7] = 0.0
    binned = Binned(scores, GRID, SCALE)
    chance = math.exp((binned._values[0] - binned._bins.line[2]) * binned._bins.line[1] + ORIGIN - 1)
    edge = digits(chance)
    assert chance == pytest.approx(math.exp(ORIGIN - 1.5 - gap), rel=1e-4)
    # A coin says 'below' with words 0 up to the first digit, then come a member and its own coin.
    below = (P - 1) * math.exp(1 - ORIGIN)
    start = [0] * (1 + next(i for i, word in enumerate(digits(below / (1 + below))) if word))
    found, used = drawn_from(binned, [*start, 5, *one_less(edge)])
    assert found not in (7, -1) and used <= len(start) + 1 + len(edge)
    # Not kept: another try, whose coin says 'not below', and whose candidate is kept.
    assert drawn_from(binned, [*start, 5, *edge, LARGEST, 5, 0])[0] == 7


@pytest.mark.parametrize("buffer", range(1, 24))
def test_a_draw_never_reads_beyond_its_buffer(buffer):
    scores = np.full(P, -SCALE * 290.0)
    scores[7] = 0.0
    binned = Binned(scores, GRID, SCALE)
    source = Randomness(0)
    source._words = np.zeros(buffer, dtype=np.uint64)
    source._source = lambda count: np.zeros(1, dtype=np.uint64)
    assert binned.draw(source) not in (7, -1)
    assert source._at == drawn_from(binned, [])[1] <= source._words.size


@pytest.mark.parametrize("epsilon", [100.0, 200.0])
def test_a_fit_with_a_large_epsilon_selects_among_a_million_candidates(epsilon):
    p, rng = 1_000_000, np.random.default_rng(0)
    x = sparse.csr_array(
        (rng.uniform(-1, 1, 2_000), rng.integers(p, size=2_000), np.arange(0, 2_001, 20)), shape=(100, p)
    )
    solver = GreedyCoordinateDescent(steps=200, clip=1.0, second_moments=np.full(p, 1e-3))
    bounds = Bounds(row_norm=5.0, target=(-1, 1))
    model = LinearRegression(epsilon, delta=2.5e-9, solver=solver, bounds=bounds, fit_intercept=False)
    model.fit(x, rng.uniform(-1, 1, 100))
    price = model.plan_.price
    assert price[Imprecision(2.0**-400)] == 200 * p
    assert 0.999 * epsilon < model.plan_.epsilon <= epsilon
    # Hardly any noise more than with exact draws.
    exact = Composed(tuple(Repeated(e, n) for e, n in price.items() if not isinstance(e, Imprecision)))
    assert calibrate(exact, epsilon, 2.5e-9) == pytest.approx(1.0, rel=3e-4)


def test_a_word_that_would_favour_some_members_is_skipped_and_the_bin_kept():
    binned = Binned(np.where(np.arange(P) < P // 2, 0.0, -1.5 * SCALE), GRID, SCALE)
    source = Randomness(0)
    # Two bins, so one coin; 2**64 is no multiple of their size, so the last word is no member.
    source._words = np.array([LARGEST, LARGEST, 12, 0, 0], dtype=np.uint64)
    assert binned.draw(source) == 12 and source._at == 4
    source._words, source._at = np.array([0, LARGEST, P // 2 + 9, 0, 0], dtype=np.uint64), 0
    assert binned.draw(source) == P // 2 + 9 and source._at == 4


def test_draws_agree_in_law_with_gumbel_noise():
    mechanism, rng = Exponential(2.0), np.random.default_rng(6)
    scores = np.where(np.arange(P) < 40, 8 * rng.standard_normal(P), -60.0)
    binned = mechanism.keep(scores, 1.0)
    assert fits(drawn(binned, 20_000), mechanism.probabilities(scores, 1.0)) > 1e-6
    gumbel = Randomness(7)
    slow = np.bincount([mechanism.release(scores, 1.0, gumbel) for _ in range(2_000)], minlength=P)[:40]
    fast = np.bincount(drawn(binned, 20_000, seed=8), minlength=P)[:40]
    seen = slow + fast >= 50
    table = np.array([slow, fast])[:, seen]
    assert stats.chi2_contingency(table).pvalue > 1e-6


def test_scores_are_rounded_to_the_grid_of_the_mechanism_and_weighted_by_its_scale():
    mechanism, scores = Exponential(5.0), np.random.default_rng(8).standard_normal(P)
    grid, scale = mechanism.law(0.3)
    binned = mechanism.keep(scores, 0.3)
    assert np.array_equal(binned._values, on_grid(scores, grid))
    assert binned._bins.line[0] == grid and binned._bins.line[1] == 1 / scale
    ratios = mechanism.probabilities(scores, 0.3)
    assert np.log(ratios[0] / ratios[1]) == pytest.approx(
        (binned._values[0] - binned._values[1]) * binned._bins.line[1], rel=1e-9
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_updates_take_any_kind_of_index_and_the_last_of_two_scores(dtype):
    scores = np.zeros(P)
    binned = Binned(scores, GRID, SCALE)
    index = np.array([3, 9, 3, 4999], dtype=dtype)
    binned.update(index, np.array([5.0, 7.0, -40.0, 300.0]))
    scores[[3, 9, 4999]] = [-40.0, 7.0, 300.0]
    check_state(binned, scores)
    binned.update(index[:0], np.array([]))
    check_state(binned, scores)


def test_an_update_of_a_candidate_that_does_not_exist_is_refused():
    binned = Binned(np.zeros(P), GRID, SCALE)
    for wrong in (-1, P):
        with pytest.raises(IndexError):
            binned.update(np.array([0, wrong]), np.array([50.0, 50.0]))
    with pytest.raises(ValueError, match="one score for each"):
        binned.update(np.array([0, 1]), np.zeros(3))
    check_state(binned, np.zeros(P))


def test_an_update_leaves_its_arguments_as_they_were():
    scores, new = np.zeros(P), np.full(10, 500.3)
    binned = Binned(scores, GRID, SCALE)
    binned.update(np.arange(10), new)
    assert not scores.any() and (new == 500.3).all()


def test_the_same_seed_gives_the_same_draws_for_every_buffer(monkeypatch):
    binned = Binned(SCALE * spread("300 orders of magnitude", np.random.default_rng(9)), GRID, SCALE)
    whole = drawn(binned, 500, seed=4)
    for most in (1, 3, 64):
        monkeypatch.setattr(randomness, "_FEWEST", most)
        assert np.array_equal(drawn(binned, 500, seed=4), whole)
    mixed = Randomness(4)
    assert binned.draw(mixed) == whole[0]
    assert not np.array_equal(drawn(binned, 500, seed=5), whole)


def test_draws_need_few_words_whatever_the_scores():
    """Three tries or fewer on average: words are coins, a member and a coin for each try."""
    for name in SPREADS:
        source = Randomness(0)
        source._words = source._source(1_000_000)
        binned = Binned(SCALE * spread(name, np.random.default_rng(1)), GRID, SCALE)
        for _ in range(2_000):
            binned.draw(source)
        bins = (np.diff(binned._bins.start) > 0).sum()
        assert source._at <= 2_000 * 3 * (2 + bins)


def test_a_linear_scan_serves_where_nothing_is_gained():
    many = np.zeros(1 << 12)
    assert isinstance(Exponential(1.0).keep(many, 1.0), Binned)
    assert Exponential(1.0).keep(many[1:], 1.0) is None
    assert Exponential(0.0).keep(many, 1.0) is None
    assert Exponential(1.0).keep(many, 0.0) is None
    assert Exponential(1e-10).keep(many, 1e-300) is None, "1 / scale would not be finite"
    with pytest.raises(UnsupportedProblem, match="noise"):
        Exponential(1e13).keep(many, 1.0)


@pytest.mark.parametrize("name", SPREADS)
def test_scores_that_move_within_their_room_need_no_update(name):
    rng = np.random.default_rng(10)
    scores = SCALE * spread(name, rng)
    binned = Binned(scores, GRID, SCALE)
    slack = binned.slack(np.arange(P))
    assert (slack <= SCALE).all()
    for share in (-1.0, 0.5, 1.0):
        now = scores + share * np.maximum(slack, 0.0) * rng.choice([0.3, 1.0], P)
        source = Randomness(11)
        draws = np.array([binned.draw(source, lambda j, now=now: float(now[j])) for _ in range(10_000)])
        assert fits(draws, law(now)) > 1e-7
        bins = np.searchsorted(binned._bins.start, binned._bins.position, side="right") - 1
        places = (on_grid(now, GRID) - binned._bins.line[2]) * binned._bins.line[1] + ORIGIN
        assert (places <= bins + 1).all(), "no score is above the edge of its bin"


def test_all_are_sorted_anew_by_present_scores():
    now = SCALE * spread("near uniform", np.random.default_rng(12))
    binned = Binned(now, GRID, SCALE)
    moved = now + 0.2 * SCALE
    assert not binned.update(np.array([3]), moved[[3]], lambda: moved)
    assert np.count_nonzero(binned._values != on_grid(now, GRID)) == 1
    moved[3] += 100 * SCALE
    assert binned.update(np.array([3]), moved[[3]], lambda: moved)
    check_state(binned, moved)

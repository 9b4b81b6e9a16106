"""Whatever scores are kept in, a draw has the law of the mechanism, after any updates."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numba import njit
from scipy import stats

from dpglm.kernels import bins as kernels
from dpglm.kernels import draws
from dpglm.mechanisms import STRUCTURES, Exponential, LaplaceNoisyMax, Randomness, randomness
from dpglm.mechanisms.grid import on_grid
from dpglm.mechanisms.selection import Grouped, Largest

from . import selections
from .selections import GRID, SCALE, SPREADS, P, digits, drawn, drawn_from, fits, law, one_less, spread

PRIVATE = [name for name, kind in STRUCTURES.items() if kind.noisy]
MECHANISM, SENSITIVITY, FEW = Exponential(3.0), 0.7, 640
_, UNIT = MECHANISM.law(SENSITIVITY)


def kept_in(name, scores):
    mechanism = MECHANISM if STRUCTURES[name].noisy else Exponential(0.0)
    return mechanism.keep(scores, SENSITIVITY, name)


def has_the_law(kept, scores, seed=1):
    count = 4_000 if isinstance(kept, STRUCTURES["gumbel"]) else 30_000
    return fits(drawn(kept, count, seed), MECHANISM.probabilities(scores, SENSITIVITY)) > 1e-6


@pytest.mark.parametrize("weights", SPREADS)
@pytest.mark.parametrize("name", PRIVATE)
def test_a_draw_has_the_law_of_the_mechanism_fresh_and_after_a_hundred_thousand_updates(name, weights):
    rng = np.random.default_rng(4)
    scores = UNIT * spread(weights, rng, FEW)
    assert has_the_law(kept_in(name, scores), scores)
    now = UNIT * spread("near uniform", rng, FEW)
    kept = kept_in(name, now)
    for _ in range(200):
        index = rng.integers(FEW, size=500)
        new = scores[index] + rng.choice([0.0, 1.0, 30.0, 1_000.0]) * UNIT * rng.standard_normal(500)
        kept.update(index, new)
        now[index] = new
    index = rng.permutation(FEW)[: FEW // 2]
    now[:] = scores + 0.5 * UNIT * rng.standard_normal(FEW) * (np.arange(FEW) % 2)
    for chunk in (index, np.setdiff1d(np.arange(FEW), index)):
        kept.update(chunk, now[chunk])
    assert has_the_law(kept, now, seed=2)


@pytest.mark.parametrize("name", PRIVATE)
def test_weights_that_span_e_to_the_600_and_groups_without_any_have_their_law(name):
    rng = np.random.default_rng(5)
    places = rng.permutation(np.linspace(-600, 0, FEW))
    places[32:64], places[64:96] = -720 + rng.uniform(0, 2, 32), -1e9
    kept = kept_in(name, UNIT * places)
    assert has_the_law(kept, UNIT * places)
    # What was next to nothing is all that is left, first beside the last of the others and then alone.
    rest = np.delete(np.arange(FEW), np.arange(32, 64))
    for ahead in (math.log(10), -1e9):
        places[rest] = -1e8 + rng.uniform(0, 1, len(rest))
        places[0] = -720 + ahead
        kept.update(rest, UNIT * places[rest])
        assert has_the_law(kept, UNIT * places, seed=3)
    assert set(drawn(kept, 500)) <= set(range(32, 64))


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("count", [1, 2, 3, 17, 33])
def test_few_candidates_are_kept_if_asked_for(name, count):
    scores = UNIT * np.random.default_rng(count).standard_normal(count)
    kept = kept_in(name, scores)
    scores[-1] += UNIT
    kept.update(np.array([count - 1]), scores[-1:])
    if count == 1:
        assert set(drawn(kept, 100)) == {0}
    else:
        assert has_the_law(kept, scores)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_updates_take_any_index_and_the_last_of_two_scores_and_leave_their_arguments_alone(name, dtype):
    scores, index = np.zeros(FEW), np.array([3, 9, 3, FEW - 1], dtype=dtype)
    kept, new = kept_in(name, scores), UNIT * np.array([500.0, 70.0, -40.0, 20.0])
    before = new.copy()
    kept.update(index, new)
    kept.update(index[:0], np.array([]))
    assert set(drawn(kept, 50)) == {9}
    assert not scores.any() and np.array_equal(new, before)


@pytest.mark.parametrize("name", STRUCTURES)
def test_an_update_of_a_candidate_that_does_not_exist_is_refused_and_changes_nothing(name):
    kept = kept_in(name, np.where(np.arange(FEW) == 5, UNIT * 60, 0.0))
    for wrong in (-1, FEW):
        with pytest.raises(IndexError):
            kept.update(np.array([0, wrong]), UNIT * np.array([200.0, 200.0]))
    with pytest.raises(ValueError, match="one score for each"):
        kept.update(np.array([0, 1]), np.zeros(3))
    assert set(drawn(kept, 50)) == {5}


def test_the_linear_scan_is_what_release_does():
    rng = np.random.default_rng(6)
    scores = UNIT * rng.standard_normal(FEW)
    kept, ours, theirs = kept_in("gumbel", scores), Randomness(3), Randomness(3)
    for _ in range(50):
        index = rng.integers(FEW, size=20)
        scores[index] = UNIT * rng.standard_normal(20)
        kept.update(index, scores[index])
        assert np.array_equal(kept.log_weights, kept_in("gumbel", scores).log_weights)
        assert kept.draw(ours) == MECHANISM.release(scores, SENSITIVITY, theirs)


def test_names_that_do_not_fit_the_noise_are_refused():
    scores = np.zeros(10)
    for mechanism, sensitivity in ((Exponential(0.0), 1.0), (Exponential(1.0), 0.0)):
        assert isinstance(mechanism.keep(scores, sensitivity, "heap"), Largest)
        for name in PRIVATE:
            with pytest.raises(ValueError, match=rf"'{name}' is for selections with noise.*\['heap'\]"):
                mechanism.keep(scores, sensitivity, name)
    with pytest.raises(ValueError, match=r"'heap' is for selections without noise.*binned"):
        Exponential(1.0).keep(scores, 1.0, "heap")
    for name in PRIVATE:
        assert isinstance(Exponential(1.0).keep(scores, 1.0, name), STRUCTURES[name])
        with pytest.raises(ValueError, match="so little noise"):
            Exponential(1e-10).keep(scores, 1e-300, name)
    for noise in (0.0, 1.0):
        with pytest.raises(ValueError, match="'auto' or one of"):
            Exponential(noise).keep(scores, 1.0, "tree")
    assert LaplaceNoisyMax(1.0).keep(scores, 1.0) is None
    with pytest.raises(ValueError, match="keeps no scores"):
        LaplaceNoisyMax(1.0).keep(scores, 1.0, "binned")


CHANCES = [
    0.5,
    0.3,
    1 - 2.0**-53,
    2.0**-64,
    2.0**-65,
    3 * 2.0**-70,
    1e-30,
    *(math.exp(-g) for g in (80, 237, 700)),
]


@njit(error_model="numpy")
def tossed(words, at, chance):
    """A coin in a compiled function, which is where coins are tossed."""
    return draws.coin(words, at, chance)


@pytest.mark.parametrize("chance", [*CHANCES, 2.0**-1022, 5e-324, 0.0])
def test_a_coin_has_exactly_its_probability_to_the_last_digit(chance):
    edge = digits(chance)
    for words, wanted in [(edge, False), (one_less(edge), True)] if chance else [(edge, False)]:
        at, heads = tossed(np.array([9, *words, 5], dtype=np.uint64), 1, chance)
        assert heads == wanted
        assert at <= 1 + len(words) <= 1 + draws.WORDS_A_COIN
    if len(edge) > 1:
        for change, wanted in ((-1, True), (1, False)):
            words = [*edge[:-2], edge[-2] + change] if edge[-2] else [*edge[:-2], 1]
            words = np.array([*words, *[0] * 20], dtype=np.uint64)
            assert tossed(words, 0, chance)[1] == (wanted and edge[-2] > 0)


@pytest.mark.parametrize("chance", [0.3, 1 / 3, 0.9, 0.01])
def test_a_coin_has_its_probability_also_where_digits_tie_all_the_time(chance, monkeypatch):
    monkeypatch.setattr(draws, "WORD", 4.0)
    words = np.random.default_rng(1).integers(4, size=100_000).astype(np.uint64)
    at = heads = tosses = 0
    while at < len(words) - 40:
        at, head = draws.coin.py_func(words, at, chance)
        heads, tosses = heads + head, tosses + 1
    assert tosses < 0.8 * at, "a tie takes another word"
    assert stats.binomtest(int(heads), tosses, chance).pvalue > 1e-4


def check_groups(grouped, scores):
    """Weights and sums are those of a fresh start with the same reference, to the last digit, and correct."""
    assert np.array_equal(grouped._values, on_grid(scores, GRID))
    fresh = Grouped(scores, GRID, SCALE)
    fresh._reference = grouped._reference
    total = fresh._weigh(np.arange(len(scores)))
    assert np.array_equal(fresh._weights, grouped._weights)
    assert np.array_equal(fresh._sums, grouped._sums)
    assert kernels.LOWEST_SUM <= total <= kernels.HIGHEST_SUM
    leaves = grouped._sums[grouped._sums.size // 2 :]
    wanted = [math.fsum(row) for row in grouped._weights]
    assert np.allclose(leaves[: len(wanted)], wanted, rtol=1e-14, atol=0) and not leaves[len(wanted) :].any()
    assert total == pytest.approx(math.fsum(wanted), rel=1e-14)
    with np.errstate(under="ignore"):
        weights = np.exp((grouped._values - grouped._reference) / SCALE)
    assert np.allclose(grouped._weights.ravel()[: len(scores)], weights, rtol=1e-13, atol=1e-320)
    assert not grouped._weights.ravel()[len(scores) :].any()


@pytest.mark.parametrize("name", SPREADS)
def test_sums_of_groups_are_fresh_ones_after_a_hundred_thousand_updates(name):
    rng = np.random.default_rng(7)
    scores, now = SCALE * spread(name, rng), SCALE * spread("near uniform", rng)
    grouped = Grouped(now, GRID, SCALE)
    check_groups(grouped, now)
    selections.update_often(grouped, now, scores, rng, check_groups)
    assert fits(drawn(grouped), law(scores)) > 1e-6


def test_the_reference_follows_scores_that_leave_its_range_up_and_down():
    rng = np.random.default_rng(8)
    scores = SCALE * spread("near uniform", rng)
    grouped, references = Grouped(scores, GRID, SCALE), set()
    for step, shift in enumerate([50, 55, 56, 500, 1e5, 30, -20, -300, -1e5, -1e300, 1e300, 0.0, 70, -70]):
        new = SCALE * (shift + rng.standard_normal(P))
        for chunk in np.array_split(rng.permutation(P), 3):
            scores[chunk] = new[chunk]
            grouped.update(chunk, new[chunk])
            check_groups(grouped, scores)
        references.add(grouped._reference)
        assert fits(drawn(grouped, 5_000, seed=step), law(scores)) > 1e-7
    assert len(references) > 8


def chances(tree):
    """The exact probability of each leaf, from the coins of the tree."""
    found = {(1, 0): Fraction(1)}
    width = 1
    while 2 * width < tree.size:
        for k in range(width):
            left, right = tree[2 * width + k], tree[3 * width + k]
            rare = Fraction(min(left, right) / tree[width + k]) if tree[width + k] else Fraction(0)
            first, second = (1 - rare, rare) if right < left else (rare, 1 - rare)
            found[2 * width, k], found[2 * width, k + width] = (found[width, k] * c for c in (first, second))
        width *= 2
    return [found[width, k] for k in range(width)]


@pytest.mark.parametrize("name", SPREADS)
def test_every_candidate_down_to_300_scales_below_the_largest_has_its_probability_to_42_digits(name):
    """As computed by exact coins; lighter ones have less than they are paid for."""
    scores = SCALE * spread(name, np.random.default_rng(9), FEW)
    grouped = Grouped(scores, GRID, SCALE)
    # A reference far from the largest score is the worst case.
    grouped._reference += 63 * SCALE
    grouped._weigh(np.arange(FEW))
    leaves = chances(grouped._sums)
    found = []
    for group, row in enumerate(grouped._weights):
        tree = np.concatenate([np.zeros_like(row), row])
        kernels._add_up(tree)
        found += [leaves[group] * chance for chance in chances(tree)]
    assert sum(found) == 1 and not any(found[FEW:])
    with mpmath.workprec(400):
        places = [mpmath.mpf(v - grouped._values.max()) / SCALE for v in grouped._values]
        total = mpmath.fsum(mpmath.exp(place) for place in places)
        for place, chance in zip(places, found, strict=False):
            drawn_with = mpmath.mpf(chance.numerator) / chance.denominator
            if place >= -300:
                assert abs(mpmath.log(drawn_with * total) - place) < 2.0**-42
            else:
                assert drawn_with < 2.0**-431


@pytest.mark.parametrize("gap", [20, 90, 200, 299, 700])
def test_the_coin_between_halves_of_the_groups_is_exact_far_beyond_one_word(gap):
    """One candidate is ahead of all others by ``gap``: which words say 'not this one' is known exactly."""
    scores = np.full(P, -SCALE * gap)
    scores[7] = 0.0
    grouped = Grouped(scores, GRID, SCALE)
    groups, size = grouped._weights.shape
    odd = np.count_nonzero(np.arange(P) // size % 2)
    edge = digits(grouped._sums[3] / grouped._sums[1])
    assert grouped._sums[3] / grouped._sums[1] == pytest.approx(odd * math.exp(-gap), rel=1e-3)
    far = [2**64 - 1] * 30
    assert drawn_from(grouped, [*edge, *far])[0] == 7
    found, _ = drawn_from(grouped, [*one_less(edge), *far])
    assert found // size % 2 == 1


@pytest.mark.parametrize("buffer", [1, 16, 17, 18, 30, 200])
def test_a_draw_never_reads_beyond_its_buffer_and_does_not_depend_on_it(buffer, monkeypatch):
    grouped = Grouped(SCALE * spread("300 orders of magnitude", np.random.default_rng(9)), GRID, SCALE)
    whole = drawn(grouped, 300, seed=4)
    monkeypatch.setattr(randomness, "_FEWEST", buffer)
    assert np.array_equal(drawn(grouped, 300, seed=4), whole)
    source = Randomness(0)
    source._words = np.zeros(buffer, dtype=np.uint64)
    source._source = lambda count: np.zeros(1, dtype=np.uint64)
    grouped.draw(source)
    assert source._at == drawn_from(grouped, [])[1] <= source._words.size


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3, 50, 1_000])
def test_without_noise_the_first_of_the_largest_is_drawn_after_every_update(count, ties):
    rng = np.random.default_rng(count)

    def values(size):
        return rng.integers(-5, 6, size).astype(float) if ties else rng.standard_normal(size)

    scores = values(count)
    largest, nothing = STRUCTURES["heap"](scores), Randomness(0)
    for step in range(3_000):
        index = rng.integers(count, size=rng.integers(1, 4))
        new = values(len(index))
        if step % 3 == 0:
            index, new = np.append(index, np.argmax(scores)), np.append(new, -5.0)
        for j, value in zip(index, new, strict=True):
            scores[j] = value
        largest.update(index, new)
        assert largest.draw(nothing) == np.argmax(scores)
    assert nothing._at == 0

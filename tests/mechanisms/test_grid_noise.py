"""Integer noise has its law exactly, whatever digits it needs, and hides the answer to the last bit."""

import copy
import math
import pickle
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from randomgen import AESCounter
from scipy import stats

from dpglm import threads
from dpglm.errors import UnsupportedProblem
from dpglm.mechanisms import Exponential, Gaussian, Laplace, Randomness, exact_noise, randomness
from dpglm.mechanisms.grid import MOST_GRID_STEPS, on_grid, public_grid

LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}
KINDS = pytest.mark.parametrize("kind", LAWS)
LARGEST = 2**64 - 1


def fits(numbers, law, scale):
    """p-value of the chi-square test that the numbers are round(scale * a variable of that law)."""
    numbers = np.asarray(numbers, dtype=float)
    edges = np.unique(np.rint(law.ppf(np.linspace(0, 1, 60)[1:-1]) * scale)) + 0.5
    expected = np.diff(law.cdf(np.concatenate([[-np.inf], edges / scale, [np.inf]])))
    found = np.bincount(np.searchsorted(edges, numbers), minlength=len(expected))
    return stats.chisquare(found, len(numbers) * expected).pvalue


@KINDS
@pytest.mark.parametrize("scale", [1, 3, 100, 2**30, MOST_GRID_STEPS])
def test_integer_noise_is_the_rounded_continuous_law(kind, scale):
    numbers = getattr(Randomness(1), kind)(scale, 400_000)
    assert numbers.dtype == np.int64
    assert fits(numbers, LAWS[kind], scale) > 1e-4
    assert abs(numbers.mean()) < 5 * numbers.std() / math.sqrt(numbers.size)
    variance = LAWS[kind].var() * scale**2 + (1 / 12 if scale > 1 else 0.0)
    if scale > 1:
        assert numbers.var() == pytest.approx(variance, rel=0.02)


def test_the_tails_of_integer_noise_are_those_of_the_law():
    numbers = np.abs(Randomness(2).gaussian(2**30, 4_000_000)) / 2.0**30
    for limit in (3.0, 4.0, 5.0):
        expected = 2 * stats.norm.sf(limit)
        assert stats.binomtest(int((numbers > limit).sum()), numbers.size, expected).pvalue > 1e-4


def stream(words, seed=0):
    """A function that reads the given words and then random ones."""
    words, rest = [int(word) for word in words], Randomness(seed)

    def read():
        return words.pop(0) if words else int(rest._take(1)[0])

    return read


@KINDS
@pytest.mark.parametrize("bits", [2, 4])
def test_noise_has_its_law_also_where_digits_tie_all_the_time(kind, bits, monkeypatch):
    word, scale = (1 + exact_noise.COLUMN_BITS + 2 * bits, 2**20) if kind == "gaussian" else (bits, 20)
    for name, value in {"WORD": word, "CHOICE_BITS": bits, "COIN_BITS": bits}.items():
        monkeypatch.setattr(exact_noise, name, value)
    rng = np.random.default_rng(bits)
    draws = [getattr(exact_noise, kind)(lambda: int(rng.integers(2**word)), scale) for _ in range(20_000)]
    assert fits(draws, LAWS[kind], scale) > 1e-4


def test_the_parts_of_all_columns_are_the_weights_of_the_cells():
    own, other = exact_noise.columns()
    full, share = 1 << exact_noise.BITS, [0] * len(own)
    for column, (part, cell) in enumerate(zip(own, other, strict=True)):
        assert 0 <= part <= full
        share[column] += part
        share[cell] += full - part
    assert sum(share) == full << exact_noise.COLUMN_BITS
    with mpmath.workdps(400):
        weights = [mpmath.exp(-(mpmath.mpf(cell) ** 2) / 512) for cell in range(700)]
        exactly = [weight / mpmath.fsum(weights) for weight in weights]
        found = [mpmath.mpf(part) / (full << exact_noise.COLUMN_BITS) for part in share]
        distance = mpmath.fsum(abs(a - b) for a, b in zip(found, exactly, strict=False)) + mpmath.fsum(
            exactly[len(found) :]
        )
        assert distance < mpmath.mpf(2) ** -1040


def test_cells_beyond_one_trial_are_left_to_the_exact_code():
    own, other = exact_noise.columns()
    assert max(other) < 256
    assert all(part >> exact_noise.BITS - exact_noise.CHOICE_BITS == 0 for part in own[256:])


def test_no_gaussian_draw_is_beyond_38_deviations():
    own, other = exact_noise.columns()
    assert max(other) < 38 * exact_noise.CELLS_A_UNIT and not any(own[38 * exact_noise.CELLS_A_UNIT :])


@pytest.mark.parametrize("cell", [0, 40, 255, 256, 607])
def test_an_entry_of_a_cell_is_kept_as_often_as_its_density_demands(cell):
    rng, part = np.random.default_rng(cell), 0.4
    words = iter(rng.integers(2**64, size=400_000, dtype=np.uint64))
    found = 0
    for _ in range(20_000):
        x = exact_noise.Uniform(lambda: int(next(words)), int(part * 2**64), 64)
        coin = exact_noise.Uniform(lambda: int(next(words)), int(next(words)) >> 40, 24)
        found += exact_noise.kept(lambda: int(next(words)), cell, x, coin)
    expected = math.exp(-part * (2 * cell + part) / 512)
    assert stats.binomtest(found, 20_000, expected).pvalue > 1e-4


@KINDS
@pytest.mark.parametrize("scale", [1, 7, 2**41])
def test_compiled_noise_is_the_exact_noise_word_for_word(kind, scale):
    compiled = getattr(Randomness(5), kind)(scale, 20_000)
    read = stream([], seed=5)
    assert np.array_equal(compiled, [getattr(exact_noise, kind)(read, scale) for _ in range(20_000)])


X, LARGE_COIN, CELL, SCALE = 0xFAE598A8DAF81D6C, 2**24 - 1, 100, 2**20


def first_word(column, choice=0, coin=LARGE_COIN, sign=0):
    """The first word of a Gaussian draw; a choice of 0 is the column's own cell."""
    return sign | column << 1 | choice << 11 | coin << 40


def own_share(column):
    """The choice that does not decide."""
    return exact_noise.columns()[0][column] >> exact_noise.BITS - exact_noise.CHOICE_BITS


U = X >> 40
LOW = U * ((CELL << 25) + U) >> 33
TIES = {
    "a choice": ("gaussian", SCALE, [first_word(3, own_share(3)), X]),
    "a choice, negative": ("gaussian", SCALE, [first_word(100, own_share(100), sign=1), X]),
    "a coin at the exponent": ("gaussian", SCALE, [first_word(CELL, coin=LOW), X]),
    "a coin at the exponent, one above": ("gaussian", SCALE, [first_word(CELL, coin=LOW + 1), X]),
    "a run": ("gaussian", SCALE, [first_word(CELL, coin=LOW - 9), X, LOW - 9 << 40]),
    "a longer run": ("gaussian", SCALE, [first_word(CELL, coin=LOW - 9), X, LOW - 99 << 40, LOW - 99 << 40]),
    "a rounding": ("gaussian", 3 << 38, [first_word(0), 2**67 // (3 << 38)]),
    "a run, Laplace": ("laplace", 5, [1, X, X]),
    "a rounding, Laplace": ("laplace", 3 << 38, [0, 2**63 // (3 << 38), LARGEST]),
}


@pytest.mark.parametrize("name", TIES)
def test_a_draw_that_64_digits_do_not_decide_is_made_exactly(name, monkeypatch):
    kind, scale, words = TIES[name]
    asked = []
    reference = getattr(exact_noise, kind)
    monkeypatch.setattr(exact_noise, kind, lambda read, scale: asked.append(1) or reference(read, scale))
    ends = set()
    for seed in range(30):
        source = Randomness(seed)
        source._words = np.array([*words, *Randomness(seed)._take(4096)], dtype=np.uint64)
        drawn = getattr(source, kind)(scale, 3)
        read = stream(words, seed)
        assert [int(n) for n in drawn] == [reference(read, scale) for _ in range(3)]
        ends.add(int(drawn[0]))
    assert len(asked) == 30, "the kernel must notice"
    assert len(ends) > 1, "later digits must decide"


@pytest.mark.parametrize("most", [1, 7, 64, 4096])
def test_draws_are_the_same_one_by_one_in_blocks_and_for_every_buffer(most, monkeypatch):
    def draws(source, blocks):
        for count in blocks:
            for kind in LAWS:
                yield np.concatenate([np.atleast_1d(getattr(source, kind)(9, n)) for n in count])
            yield np.concatenate([np.atleast_1d(source.gumbel(n)) for n in count])
            yield np.concatenate([source.integers(12, n or 1) for n in count])

    whole = list(draws(Randomness(3), [[40]] * 3))
    monkeypatch.setattr(randomness, "_FEWEST", most)
    monkeypatch.setattr(randomness, "_MOST", most)
    parts = list(draws(Randomness(3), [[None] * 40, [1] * 40, [11, 29]]))
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))


@KINDS
def test_wide_noise_is_the_same_for_every_number_of_threads(kind):
    size = randomness._WIDE + 5
    source = Randomness(3)
    before = source._take(7).copy()
    whole = getattr(source, kind)(9, size)
    after = source._take(4)
    for count in (1, 2, 5):
        other = Randomness(3)
        assert np.array_equal(other._take(7), before)
        with threads.limit_threads(count):
            assert np.array_equal(getattr(other, kind)(np.full(size, 9), size), whole)
        assert np.array_equal(other._take(4), after)
    assert fits(whole, LAWS[kind], 9) > 1e-6


@KINDS
def test_stretches_of_wide_noise_are_exact_draws_from_words_that_no_other_stretch_has(kind):
    size, stretch_size, scale, key = randomness._WIDE, randomness._STRETCH, 2**30, Randomness(11)._key()
    drawn = getattr(Randomness(11), kind)(scale, size)
    for stretch in range(2):
        source = AESCounter(key=key)
        source.advance(stretch << 64)
        read = partial(lambda source: int(source.random_raw()), source)
        first = drawn[stretch * stretch_size :][:500]
        assert np.array_equal(first, [getattr(exact_noise, kind)(read, scale) for _ in range(500)])
    assert len(np.intersect1d(drawn[:stretch_size], drawn[stretch_size:])) < 10


@pytest.mark.parametrize("sensitivity", [1e-300, 5e-324, 3e-9, 1.0, 4.7, 1e30])
@pytest.mark.parametrize("noise", [1e-3, 1.0, 42.3, 1e6])
@pytest.mark.parametrize("entries", [1, 10, 10_000])
def test_noise_on_the_grid_covers_the_sensitivity_and_what_rounding_adds(sensitivity, noise, entries):
    for rounding in (math.sqrt(entries), entries):
        grid, steps = public_grid(sensitivity, noise, rounding)
        g, allowed = Fraction(float(grid)), Fraction(rounding) * (1 + Fraction(1, 2**52))
        assert math.frexp(grid)[0] == 0.5, "a power of two"
        assert 1 <= steps <= MOST_GRID_STEPS
        assert g * int(steps) >= Fraction(noise) * (Fraction(sensitivity) + allowed * g)
        if sensitivity > 1e-200 and noise * rounding < 2**19:
            wanted = Fraction(noise) * Fraction(sensitivity)
            assert g * int(steps) <= wanted * (1 + Fraction(1, 2**18)) + g


@pytest.mark.parametrize("entries", [1, 100])
@pytest.mark.parametrize(
    ("mechanism", "rounding"),
    [(Gaussian(7.0), lambda d: 2 * math.sqrt(d)), (Laplace(7.0), float)],
    ids=["gaussian", "laplace"],
)
def test_a_release_pays_for_the_rounding_of_all_its_entries(mechanism, rounding, entries):
    source = Randomness(0)
    scales = []
    kind = type(mechanism).__name__.lower()
    draw = getattr(source, kind)
    setattr(source, kind, lambda scale, size=None: scales.append(scale) or draw(scale, size))
    sensitivity = 1.0
    noise, grid = mechanism.draw(sensitivity, (entries,), source)
    steps, step = Fraction(int(np.max(scales[0]))), Fraction(float(grid))
    allowed = Fraction(rounding(entries)) * (1 - Fraction(1, 2**50))
    assert noise.shape == (entries,)
    assert steps * step >= Fraction(mechanism.noise) * (Fraction(sensitivity) + allowed * step)
    # One step less would not be enough: the inequality is met, not overshot.
    assert (steps - 2) * step < Fraction(mechanism.noise) * (Fraction(sensitivity) + allowed * step)


def test_a_selection_is_made_among_rounded_scores_with_a_scale_that_pays_for_its_errors():
    noise, scores = 5.0, np.array([0.0, 0.3, -2.7e-7])
    mechanism = Exponential(noise)
    grid, _ = public_grid(1.0, noise, 1.0)
    probabilities = mechanism.probabilities(scores, 1.0)
    rounded = np.rint(scores / grid) * grid
    assert grid >= 2.0**-20 and rounded[2] == 0.0
    assert probabilities[2] == probabilities[0], "scores below half a step of each other are one"
    found = (rounded[1] - rounded[0]) / np.log(probabilities[1] / probabilities[0])
    assert found == pytest.approx(noise * (1 + grid) * (1 + (1 + 2 * noise) * 2.0**-39), rel=1e-13)
    gumbels = Randomness(4)
    expected = [
        int(np.argmax((rounded - rounded.max()) / found + gumbels.gumbel(scores.shape))) for _ in range(500)
    ]
    ours = Randomness(4)
    assert expected == [mechanism.release(scores, 1.0, ours) for _ in range(500)]


def test_a_source_of_randomness_cannot_be_copied():
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="repeat its noise"):
            duplicate(Randomness(0))


def test_an_answer_that_no_record_moves_is_not_touched():
    assert Gaussian(3.0).release(0.1, 0.0, Randomness(0)) == 0.1
    assert Exponential(3.0).release(np.array([0.1, 0.2]), 0.0, Randomness(0)) == 1


@pytest.mark.parametrize("sensitivity", [-1.0, math.nan, math.inf, np.array([1.0, math.nan])])
def test_a_sensitivity_that_is_none_is_refused(sensitivity):
    for mechanism in (Gaussian(1.0), Laplace(1.0)):
        with pytest.raises(UnsupportedProblem, match="sensitivity"):
            mechanism.release(np.zeros(2), sensitivity, Randomness(0))


def test_more_noise_than_a_grid_can_hold_is_refused():
    for mechanism in (Gaussian(1e13), Laplace(1e13), Exponential(1e13)):
        with pytest.raises(UnsupportedProblem, match="noise"):
            mechanism.release(np.zeros(2), 1.0, Randomness(0))


def test_rounding_to_the_grid_is_exact_and_moves_neighbours_by_one_step_an_entry():
    rng = np.random.default_rng(0)
    for entries in (1, 5, 50):
        for _ in range(300):
            sensitivity = 10 ** rng.uniform(-6, 6)
            grid, _ = public_grid(sensitivity, 3.0, math.sqrt(entries))
            here = rng.standard_normal(entries) * 10 ** rng.uniform(-8, 20)
            step = rng.standard_normal(entries)
            there = here + step / np.linalg.norm(step) * sensitivity
            a, b = on_grid(here, grid), on_grid(there, grid)
            for value, rounded in zip(here, a, strict=True):
                assert Fraction(float(rounded)) % Fraction(float(grid)) == 0
                assert abs(Fraction(float(rounded)) - Fraction(float(value))) <= Fraction(float(grid)) / 2
            moved = np.linalg.norm(there - here)
            assert np.linalg.norm(a - b) <= moved * (1 + 1e-12) + math.sqrt(entries) * grid


NAIVE = {
    "gaussian": lambda answer, rng: answer + rng.standard_normal(),
    "laplace": lambda answer, rng: answer + rng.laplace(),
}
OURS = {"gaussian": Gaussian(1.0), "laplace": Laplace(1.0)}


def low_bits(releases):
    """How often a release near 0 is a multiple of 2**-53: sums with 1 always are, small noise is not."""
    near = np.array([y for y in releases if abs(y) < 2**-4])
    assert len(near) > 100
    return np.mean([(y * 2**53).is_integer() for y in near.tolist()])


@KINDS
def test_low_bits_give_the_answer_away_in_naive_noise_and_nothing_here(kind):
    rng = np.random.default_rng(0)
    naive = [low_bits([NAIVE[kind](answer, rng) for _ in range(10_000)]) for answer in (0.0, 1.0)]
    assert naive[0] < 0.1 and naive[1] == 1.0, "the attack works where noise is made naively"
    source = Randomness(0)
    ours = [
        low_bits([OURS[kind].release(answer, 1.0, source) for _ in range(10_000)]) for answer in (0.0, 1.0)
    ]
    assert ours[0] == ours[1]


@KINDS
def test_what_can_be_released_does_not_depend_on_the_answer(kind):
    """With coarse steps every release of one answer is also seen for the other: the same set of doubles."""
    mechanism, source = OURS[kind], Randomness(1)
    grid, _ = public_grid(1.0, mechanism.noise, mechanism._rounding(1))
    for answer in (0.0, 1.0, 0.1, 1 / 3, 1e-17, -7.3):
        steps = np.array([mechanism.release(answer, 1.0, source) for _ in range(500)]) / grid
        assert np.array_equal(steps, np.rint(steps))
        assert {int(step) % 4 for step in steps} == {0, 1, 2, 3}


def test_a_selection_has_its_law_on_rounded_scores():
    scores, source = np.array([0.0, 1.0, 3.0]) + 1e6, Randomness(2)
    expected = np.exp([-3.0, -2.0, 0.0]) / np.exp([-3.0, -2.0, 0.0]).sum()
    chosen = [Exponential(0.5).release(scores, 2.0, source) for _ in range(50_000)]
    assert stats.chisquare(np.bincount(chosen), 50_000 * expected).pvalue > 1e-4


def gumbels(words, count):
    """That many draws, to 200 decimal digits, and how many words they took: the definition."""
    words = [int(word) for word in words]
    at, draws = 0, []
    with mpmath.workdps(200):
        for _ in range(count):
            length = 2 if words[at] >> 1 >= 2**20 else 8
            digits = words[at] >> 1
            for word in words[at + 1 : at + length]:
                digits = digits << 64 | word
            v = mpmath.mpf(2 * digits + 1) / 2 ** (64 * length + 1)
            draws.append(-mpmath.log(-mpmath.log(v) if words[at] & 1 else -mpmath.log(1 - v)))
            at += length
    return draws, at


EDGE = 1 << 21  # the first word from which on two are enough


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    "words",
    [
        [LARGEST - 1, LARGEST],
        [1 << 63, 0],
        [EDGE, 0],
        [EDGE, LARGEST],
        [EDGE - 2, LARGEST, *[LARGEST] * 6],
        [2, 0, *[0] * 6],
        [0, 0, 12345, *[7] * 5],
        [0, 0, 0, 0, 0, 0, 1 << 28, 99],  # v = 2**-420
        [0] * 8,  # v = 2**-513
    ],
)
def test_gumbel_noise_is_precise_at_both_ends(words, side):
    source, words = Randomness(0), [words[0] | side, *words[1:]]
    source._words = np.array([*words, 17], dtype=np.uint64)
    (wanted,), used = gumbels(words, 1)
    assert abs(mpmath.mpf(source.gumbel()) - wanted) <= 2.0**-42 + 2.0**-48
    assert source._at == used == len(words)


def test_gumbel_noise_has_the_error_that_a_selection_pays_for():
    words = Randomness(3)._take(4_000)
    source = Randomness(3)
    wanted, used = gumbels(words, 2_000)
    assert used == 4_000
    assert max(abs(mpmath.mpf(x) - y) for x, y in zip(source.gumbel(2_000), wanted, strict=True)) < 2.0**-48


@pytest.mark.parametrize("most", [1, 3, 16, 1 << 13])
def test_small_gumbel_words_take_more_of_the_stream_whatever_the_blocks(most, monkeypatch):
    rng, count = np.random.default_rng(most), 300
    words = rng.integers(2**64, size=30_000, dtype=np.uint64)
    words[rng.random(30_000) < 0.2] >>= np.uint64(44)
    words[:6] = [EDGE - 1, 0, 0, 0, 0, 0]
    wanted, used = gumbels(words, count)
    assert used > 2 * count + 6 * 20
    monkeypatch.setattr(randomness, "_BLOCK", most)
    monkeypatch.setattr(randomness, "_FEWEST", most)
    for blocks in ([count], [None] * count, [1, 7, 92, 200], [299, 1]):
        source, given = Randomness(0), iter(words)
        source._source = lambda n, given=given: np.fromiter(given, np.uint64, n)
        drawn = np.concatenate([np.atleast_1d(source.gumbel(n)) for n in blocks])
        assert max(abs(float(y - x)) for x, y in zip(drawn, wanted, strict=True)) < 2.0**-42
        assert source._take(1)[0] == words[used], "the next draw takes the next word"


def test_gumbel_noise_has_its_law_also_where_every_draw_takes_more_words(monkeypatch):
    monkeypatch.setattr(randomness, "_SMALL", np.uint64(LARGEST))
    source = Randomness(6)
    noise = np.array([source.gumbel() for _ in range(20_000)])
    assert stats.kstest(noise, stats.gumbel_r.cdf).pvalue > 1e-4


def test_uniform_integers_reject_the_words_that_would_favour_some():
    source = Randomness(0)
    source._words = np.array([LARGEST, 3, LARGEST - 1, 12], dtype=np.uint64)
    assert np.array_equal(source.integers(10, 2), [3, 2])
    counts = np.bincount(Randomness(1).integers(7, 70_000))
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_noise_of_numbers_that_are_released_alone_follows_the_sensitivity_of_each(kind):
    sensitivity, index = np.array([1.0, 300.0, 1e-7]), np.array([2, 0, 1, 1, 2, 0])
    each, grid = kind(3.0).draw_each(sensitivity, index, Randomness(5))
    wanted, grids = kind(3.0).draw(sensitivity[index], index.shape, Randomness(5))
    assert np.array_equal(each, wanted)
    assert np.array_equal(grid[index], grids)
    silent, none = kind(0.0).draw_each(sensitivity, index, Randomness(5))
    assert not silent.any() and not none.any() and none.shape == sensitivity.shape

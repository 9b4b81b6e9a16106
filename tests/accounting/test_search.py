"""Prices of searches: never below the truth, and at or below every published bound."""

import itertools
import json
import math
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from dpglm.accounting import (
    LAWS,
    Composed,
    Exponential,
    Gaussian,
    Imprecision,
    Laplace,
    NegativeBinomial,
    Parallel,
    PoissonGaussian,
    PoissonTries,
    Pure,
    Repeated,
    Search,
    calibrate,
    compose,
    cover,
    event_from_dict,
    tries_of,
)
from dpglm.accounting import tries as priced_tries
from dpglm.accounting.curves import Profile, gaussian_profile, hockey_stick
from dpglm.accounting.tries import search_profile
from dpglm.mechanisms import Randomness
from dpglm.mechanisms.randomness import draw_tries

TRIES = [
    *(tries_of(law, mean) for law in LAWS for mean in (1.5, 3.0, 20.0)),
    NegativeBinomial.of_mean(-0.5, 4.0),
    NegativeBinomial.of_mean(3.0, 5.0),
]
EPSILONS = np.concatenate([[0.0], np.geomspace(0.01, 8.0, 60)])


def generating(tries, x):
    """f(x) = E x^K from the probabilities of K alone."""
    chances = tries.probabilities()
    return (chances * np.asarray(x)[..., None] ** np.arange(len(chances))).sum(axis=-1)


def hockey(p, q, epsilon):
    return np.maximum(p - np.exp(np.minimum(epsilon, 700.0))[:, None] * q, 0.0).sum(axis=1)


def put_out(tries, p):
    """Law of the best of K outputs; outputs are ordered from the worst to the best, none is last."""
    below = generating(tries, np.minimum(np.append(0.0, np.cumsum(p)), 1.0))
    return np.append(np.diff(below), tries.probabilities()[0])


def pairs(seed, count):
    """Laws of few outputs in any order of quality: random ones, randomised response, rare and far outputs."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        size = int(rng.integers(2, 7))
        p = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])))
        q = p * np.exp(rng.choice([0.1, 0.5, 2.0]) * rng.standard_normal(size))
        if k % 3 == 0:  # the worst that is known: what Q likes best is best, and what P likes next follows
            a, b, c = rng.dirichlet(np.ones(3))
            e = rng.uniform(0.1, 2.0)
            p, q = np.array([c, b * math.exp(e), a]), np.array([c, b, a * math.exp(e)])
        yield p / p.sum(), q / q.sum()


@pytest.mark.parametrize("tries", TRIES, ids=str)
def test_a_price_is_never_below_the_truth_for_any_law_of_few_outputs(tries):
    nearest = 0.0
    for p, q in pairs(len(TRIES), 30):
        base = Profile(lambda x, p=p, q=q: hockey(p, q, x), lambda x, p=p, q=q: hockey(q, p, x))
        bound = search_profile(base, tries)
        for half, (one, other) in ((bound.forward, (p, q)), (bound.backward, (q, p))):
            true = hockey(put_out(tries, one), put_out(tries, other), EPSILONS)
            found = half(EPSILONS)
            assert (found >= true * (1 - 1e-9) - 1e-12).all()
            seen = true > 1e-3
            nearest = max(nearest, float((true[seen] / found[seen]).max(initial=0.0)))
    assert nearest > 0.6  # the bound is not idle


@pytest.mark.parametrize("tries", TRIES, ids=str)
def test_a_price_of_gaussian_tries_is_never_below_the_truth_for_any_order_of_outputs(tries):
    rng = np.random.default_rng(1)
    edges = np.append(np.linspace(-4.0, 4.6, 60), np.inf)
    for mu in (0.2, 0.8):
        p, q = (np.diff(ndtr(edges - shift), prepend=0.0) for shift in (mu, 0.0))
        bound = search_profile(gaussian_profile(mu), tries).forward(EPSILONS)
        orders = [np.arange(60), np.arange(60)[::-1], *(rng.permutation(60) for _ in range(4))]
        # what Q likes on top, then what P likes most
        orders.append(np.concatenate([np.arange(20, 40), np.arange(40, 60), np.arange(20)]))
        for order in orders:
            true = hockey(put_out(tries, p[order]), put_out(tries, q[order]), EPSILONS)
            assert (bound >= true - 1e-12).all()


def test_small_losses_of_a_search_cost_the_ledger_less_than_an_even_split():
    for law in ("logarithmic", "geometric"):
        covered = cover(Search((Gaussian(5.0),), tries_of(law, 10)), 1e-10)
        assert covered.mu < math.sqrt(10) / 5.0


LATE = [NegativeBinomial(100.0, 0.5), NegativeBinomial(40.0, 0.1), PoissonTries(740.0), PoissonTries(1000.0)]


@pytest.mark.parametrize("tries", LATE, ids=str)
def test_a_law_whose_first_probabilities_are_tiny_has_its_price_and_its_draws(tries):
    # They are below 1e-20, or below any double: what follows must not be lost.
    chances = tries.probabilities()
    assert chances.sum() == pytest.approx(1.0, abs=1e-9)
    assert chances @ np.arange(len(chances)) == pytest.approx(tries.mean, rel=1e-9)
    search, one = (compose(event) for event in (Search((Gaussian(2.0),), tries), Gaussian(2.0)))
    assert all(search.epsilon(delta) > one.epsilon(delta) for delta in (1e-3, 1e-6, 1e-9))
    drawn = [draw_tries(tries, Randomness(seed)) for seed in range(20)]
    assert np.mean(drawn) == pytest.approx(tries.mean, rel=0.5)


@pytest.mark.parametrize("law", LAWS)
def test_more_tries_never_leave_more_to_a_try(law):
    left = [
        1 / calibrate(Search((Gaussian(1.0),), tries_of(law, mean)), 1.0, 1e-6) for mean in (30, 300, 1000)
    ]
    assert left[0] > left[1] > left[2]


def test_a_law_with_too_many_numbers_of_tries_is_priced_by_the_theorem_alone(monkeypatch):
    monkeypatch.setattr(priced_tries, "LONGEST", 300)
    tries, curve = NegativeBinomial(1.0, 0.01), gaussian_profile(1.0)
    assert tries.probabilities().sum() < 0.99
    same = Profile(curve.forward, curve.forward)  # a curve that is not known to be Gaussian
    priced, theorem = (search_profile(base, tries).forward(EPSILONS) for base in (curve, same))
    assert priced == pytest.approx(theorem, rel=1e-12)


@pytest.mark.parametrize("tries", TRIES, ids=str)
def test_laws_of_tries_agree_with_their_generating_functions(tries):
    chances = tries.probabilities()
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    assert (chances * np.arange(len(chances))).sum() == pytest.approx(tries.mean, rel=1e-9)
    g = np.array([0.0, 0.03, 0.5, 1.0])
    assert 1 - generating(tries, 1 - g[1:]) == pytest.approx([1 - tries.missed(x) for x in g[1:]], rel=1e-9)
    step = 1e-6
    slopes = (generating(tries, 1 - g[1:3] + step) - generating(tries, 1 - g[1:3] - step)) / (2 * step)
    assert np.exp(tries.log_slope(g[1:3])) == pytest.approx(slopes, rel=1e-6)


def published(mu, tries, epsilon):
    """Theorems of Koskela, Redberg and Wang (2024) for a Gaussian base."""
    x = np.linspace(1e-4, 20 * mu, 3000)
    delta = hockey_stick(mu, x)
    if isinstance(tries, NegativeBinomial):
        odds = (1 - tries.stop) / tries.stop
        shift = ((tries.shape + 1) * np.log(np.exp(x) + odds * delta)).min()
    else:
        shift = (tries.mean * (np.expm1(x) + delta)).min()
    return tries.mean * hockey_stick(mu, np.array([epsilon - shift]))[0] if epsilon > shift else 1.0


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("law", LAWS)
def test_a_price_is_at_most_every_published_one_and_less_than_an_even_split_from_three_tries_on(mu, law):
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    shapes = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}
    for mean in (3, 10, 30):
        tries = tries_of(law, mean)
        curve = compose(Search((Gaussian(1 / mu),), tries))
        epsilon = curve.epsilon(1e-6)
        assert published(mu, tries, epsilon * 0.999) > 1e-6
        event = accounting.dp_event.RepeatAndSelectDpEvent(
            accounting.GaussianDpEvent(1 / mu), tries.mean, shapes[law]
        )
        reference = rdp.RdpAccountant(neighboring_relation=accounting.NeighboringRelation.REPLACE_ONE)
        assert epsilon <= reference.compose(event).get_epsilon(1e-6)
        assert epsilon < compose(Repeated(Gaussian(1 / mu), mean)).epsilon(1e-6)


FINE_EPSILONS = np.linspace(1e-4, 2.5, 400)


@cache
def deltas_of(event):
    """What one try may lose beyond each epsilon: the same for all laws of tries."""
    curve = compose(event)
    return np.array([curve.delta(epsilon) for epsilon in FINE_EPSILONS])


def published_of_any(event, tries, delta):
    """The same theorems for any kind of try."""
    x, deltas = FINE_EPSILONS, deltas_of(event)
    if isinstance(tries, NegativeBinomial):
        odds = (1 - tries.stop) / tries.stop
        shift = ((tries.shape + 1) * np.log(np.exp(x) + odds * deltas)).min()
    else:
        shift = (tries.mean * (np.expm1(x) + deltas)).min()
    return shift + compose(event).epsilon(delta / tries.mean)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "event",
    [
        Gaussian(5.0),
        Repeated(Composed((Exponential(20.0), Gaussian(15.0))), 5),
        Repeated(PoissonGaussian(2.0, 0.05, "zero-out"), 20),
        Parallel((Gaussian(5.0), Exponential(8.0)), "halves"),
        Laplace(8.0),
    ],
    ids=["Gaussian", "selections", "batches", "parts", "Laplace"],
)
def test_tries_of_any_kind_cost_at_most_the_published_bound_and_less_than_an_even_split(event, law):
    one = compose(event)
    for mean in (3, 10):
        tries = tries_of(law, mean)
        epsilon = compose(Search((event,), tries)).epsilon(1e-6)
        assert one.epsilon(1e-6) < epsilon <= published_of_any(event, tries, 1e-6)
        assert epsilon < compose(Repeated(event, mean)).epsilon(1e-6)


def test_a_pure_search_costs_at_most_the_published_multiple():
    for shape, epsilon in itertools.product((0.0, 1.0), (0.1, 1.0)):
        tries = NegativeBinomial.of_mean(shape, 10.0)
        assert compose(Search((Pure(epsilon),), tries)).delta((2 + shape) * epsilon) <= 1e-15


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(5.0),
        Repeated(Composed((Exponential(20.0), Gaussian(15.0))), 5),
        PoissonGaussian(2.0, 0.05, "zero-out"),
        Parallel((Gaussian(5.0), Exponential(3.0)), "halves"),
        Laplace(4.0),
    ],
    ids=lambda event: event.kind,
)
def test_a_search_of_anything_is_priced_calibrated_covered_and_stored(event):
    search = Search((event, Gaussian(9.0)), tries_of("logarithmic", 5.0))
    assert event_from_dict(json.loads(json.dumps(search.to_dict()))) == search
    factor = calibrate(search, 1.0, 1e-6)
    scaled = search.scaled(factor)
    assert compose(scaled).delta(1.0) <= 1e-6 < compose(search.scaled(factor * 0.99)).delta(1.0)
    assert compose(scaled).epsilon(1e-6) > compose(event.scaled(factor)).epsilon(1e-6)
    covered = cover(scaled, 1e-9)
    assert compose(Gaussian(1 / covered.mu)).delta(1.0) + covered.slack >= compose(scaled).delta(1.0)


def test_composed_searches_cost_more_than_one_and_less_than_in_sum():
    search = Search((Gaussian(5.0),), tries_of("geometric", 3.0))
    one, four = (compose(Repeated(search, k)).epsilon(1e-6) for k in (1, 4))
    assert one < four < 4 * one


def test_releases_on_disjoint_parts_cost_the_largest_of_them_and_add_up_part_by_part():
    train, score = Repeated(Gaussian(20.0), 16), Exponential(4.0)
    both = Parallel((train, score), "positions")
    curve, parts = compose(both), [compose(train), compose(score)]
    for epsilon in (0.1, 0.5, 1.0):
        assert curve.delta(epsilon) == max(part.delta(epsilon) for part in parts)
    thrice = Parallel((Repeated(train, 3), Repeated(score, 3)), "positions")
    assert compose(Repeated(both, 3)).epsilon(1e-6) == compose(thrice).epsilon(1e-6)
    other = Composed((both, Parallel((train, score), "another rule")))
    assert compose(other).epsilon(1e-6) > compose(Repeated(both, 2)).epsilon(1e-6) * 0.99
    assert cover(both, 1e-9).mu == max(cover(train, 1e-9).mu, cover(score, 1e-9).mu)


def test_parts_and_searches_beside_a_gaussian_are_above_their_own_price():
    both = Parallel((Gaussian(5.0), Exponential(8.0)), "positions")
    beside = compose(Composed((both, Gaussian(20.0)))).epsilon(1e-6)
    reference = compose(Composed((Gaussian(5.0), Gaussian(20.0)))).epsilon(1e-6)
    assert reference * (1 - 1e-6) <= beside <= 1.02 * reference


def test_a_sampler_s_distance_counts_once_for_each_try_and_once_for_the_worst_part():
    noisy = Composed((Gaussian(5.0), Imprecision(1e-12)))
    tries = PoissonTries(4.0)
    extra = compose(Search((noisy,), tries)).delta(1.0) - compose(Search((Gaussian(5.0),), tries)).delta(1.0)
    assert extra == pytest.approx((1 + math.e) * 4e-12, rel=1e-3)
    parts = Parallel((noisy, Gaussian(5.0)), "positions")
    assert compose(parts).delta(1.0) - compose(Gaussian(5.0)).delta(1.0) == pytest.approx(
        (1 + math.e) * 1e-12, rel=1e-3
    )


def test_relations_are_not_mixed_inside_of_others():
    mixed = (PoissonGaussian(2.0, 0.1, "zero-out"), PoissonGaussian(2.0, 0.1, "replace-one"))
    for event in (Parallel(mixed, "positions"), Search(mixed, PoissonTries(2.0))):
        with pytest.raises(ValueError, match="zero-out and for replace-one"):
            compose(event)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Parallel((), "positions"),
        lambda: Parallel((Gaussian(1.0),), ""),
        lambda: Search((Gaussian(1.0),), 3.0),
        lambda: NegativeBinomial(-1.0, 0.5),
        lambda: NegativeBinomial(0.0, 1.0),
        lambda: NegativeBinomial.of_mean(0.0, 1.0),
        lambda: PoissonTries(0.0),
        lambda: tries_of("binomial", 3.0),
    ],
)
def test_what_is_no_event_or_law_is_refused(make):
    with pytest.raises(ValueError, match="must"):
        make()


def test_a_try_without_noise_has_no_price():
    assert compose(Search((Gaussian(0.0),), PoissonTries(2.0))).delta(5.0) == 1.0

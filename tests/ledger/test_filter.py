"""The filter: sums of mu squared and of slacks hold for adaptive choices; composed exact curves do not."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpglm.accounting import cover_pure, gaussian_delta
from dpglm.ledger import Price, price_of_epsilon

ONE, HALF = Fraction(1), Fraction(1, 2)


def response(ratio):
    """Randomized response with e^epsilon = ratio: (P, Q) for each of two outcomes."""
    yes = Fraction(ratio, ratio + 1)
    return [(yes, 1 - yes), (1 - yes, yes)]


def leak(share):
    """Names the table with this probability, in either case, and says nothing otherwise."""
    share = Fraction(share)
    return [(share, Fraction(0)), (Fraction(0), share), (1 - share, 1 - share)]


def exact_delta(first, chosen, ratio):
    """E_ratio(P || Q) of a first mechanism and, for each of its outcomes, the one that is chosen then."""
    total = Fraction(0)
    for (p, q), second in zip(first, chosen, strict=True):
        total += sum(max(p * p2 - ratio * q * q2, Fraction(0)) for p2, q2 in second)
    return total


FIRST, PURE, LEAK = response(2), response(4), leak(Fraction(4, 15))


def test_composed_exact_curves_do_not_hold_for_adaptive_choices():
    # Whoever runs the first and then either, decided beforehand, promises delta = 4/15 at e^epsilon = 4.
    promised = Fraction(4, 15)
    assert exact_delta(FIRST, [PURE, PURE], 4) == promised
    assert exact_delta(FIRST, [LEAK, LEAK], 4) == promised
    # Whoever decides after the first outcome breaks the promise, though each path keeps to it.
    assert exact_delta(FIRST, [PURE, LEAK], 4) == Fraction(16, 45) > promised


def test_the_filter_holds_for_the_same_adversary():
    prices = {"first": price_of_epsilon(math.log(2), 0.0), "pure": price_of_epsilon(math.log(4), 0.0)}
    leaked = Price(Fraction(0), Fraction(4, 15))
    paths = [prices["first"] + prices["pure"], prices["first"] + leaked]
    budget = paths[0].larger(paths[1])
    for epsilon in np.linspace(0, 3, 31):
        ratio = Fraction(math.exp(epsilon))
        promise = gaussian_delta(budget.mu, epsilon) + float(budget.slack)
        for chosen in itertools.product([PURE, LEAK], repeat=2):
            assert exact_delta(FIRST, chosen, ratio) <= promise
    # with the mu of the first alone it would not
    assert float(exact_delta(FIRST, [PURE, PURE], 2)) > gaussian_delta(prices["first"].mu, math.log(2))


def random_mechanism(rng, mu, slack):
    """Outcomes of a random mechanism whose curve is below H_mu + slack in both orders: (P, Q) pairs.

    Randomized response with the epsilon that this mu covers, and a leak with the slack.
    """
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cover_pure(middle) <= mu else (low, middle)
    yes = 1 / (1 + math.exp(-low))
    outcomes = [(yes, 1 - yes), (1 - yes, yes)]
    leaks = [((1 - slack) * p, (1 - slack) * q) for p, q in outcomes]
    return [*leaks, (slack, 0.0), (0.0, slack)] if rng.integers(2) else leaks + [(slack, slack)]


def worst(rng, depth, mu_squared, slack, history=(1.0, 1.0)):
    """Leaves (P, Q) of a random adaptive strategy that spends at most what is left on every path."""
    if depth == 0 or mu_squared <= 1e-12:
        return [history]
    share, part = rng.uniform(0, 1) if depth > 1 else 1.0, rng.uniform(0, 1) if depth > 1 else 1.0
    used, lost = share * mu_squared, part * slack
    leaves = []
    for p, q in random_mechanism(rng, math.sqrt(used), lost):
        if p + q > 0:
            rest = (history[0] * p, history[1] * q)
            leaves += worst(rng, depth - 1, mu_squared - used, slack - lost, rest)
    return leaves


@pytest.mark.parametrize("seed", range(40))
def test_random_adaptive_strategies_stay_below_the_filter(seed):
    rng = np.random.default_rng(seed)
    mu_squared, slack = rng.uniform(0.05, 4.0), rng.choice([0.0, 1e-3, 0.1])
    p, q = np.array(worst(rng, 3, mu_squared, slack)).T
    assert p.sum() == pytest.approx(1) and q.sum() == pytest.approx(1)
    closest = 0.0
    for epsilon in np.linspace(-1, 4, 26):
        for one, other in ((p, q), (q, p)):
            delta = np.maximum(one - math.exp(epsilon) * other, 0).sum()
            promise = gaussian_delta(math.sqrt(mu_squared), epsilon) + slack
            assert delta <= promise * (1 + 1e-9)
            closest = max(closest, delta / promise)
    assert closest > 0.3  # the strategies are not trivial

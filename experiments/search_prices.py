"""What the tries of a search cost: what is left for each of a budget, and prices beside published ones.

    python experiments/search_prices.py            # a minute, needs no data
    python experiments/search_prices.py --quick    # seconds

The first table states the epsilon that is left for each try of a whole budget. The second one compares the
price of a search, the epsilon at delta = 1e-6 of tries of one mu, with what is known of it:

*truth*, a lower bound: the exact price of the worst order of outputs that was found. Outputs of a Gaussian
try are cut into 400 cells, which only loses information; the best are those below some point, then come the
others from the largest on, which is the worst kind of order that is known; the point is the worst of 60.
*Koskela*, the theorems of Koskela, Redberg and Wang (2024), and *Rényi*, `RepeatAndSelectDpEvent` of
dp-accounting (Papernot and Steinke 2022), if it is installed; the lower of both is the tightest published
bound. *even split*: all tries are released.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from inference_tables import Vector
from scipy.optimize import brentq
from scipy.special import ndtr

from dpglm import Budget
from dpglm.accounting import LAWS, Gaussian, NegativeBinomial, Repeated, Search, Tries, compose, tries_of
from dpglm.accounting.curves import hockey_stick
from dpglm.solvers.model_selection import even_split, mu_of_a_try

DELTA = 1e-6
SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}
LONGEST = 60.0


def left(runs: tuple[int, ...]) -> str:
    """What is left for each try of a search, and of an even split, at two budgets."""
    lines = [
        "| epsilon | tries | " + " | ".join(LAWS) + " | even split |",
        "|---|---|" + "---|" * (len(LAWS) + 1),
    ]
    for epsilon in (1.0, 4.0):
        budget = Budget(epsilon, 1e-8)
        for count in runs:
            each = [
                compose(Gaussian(1 / mu_of_a_try(tries_of(law, count), budget))).epsilon(1e-8) for law in LAWS
            ]
            cells = [f"{value:.3f}" for value in (*each, even_split(budget, 1, count))]
            lines.append(f"| {epsilon:g} | {count} | {' | '.join(cells)} |")
    return "\n".join(lines)


def epsilon_of(delta: Callable[[float], float]) -> float:
    """The epsilon at which a curve is DELTA."""
    if delta(0.0) <= DELTA:
        return 0.0
    return float(brentq(lambda epsilon: delta(epsilon) - DELTA, 0.0, LONGEST, xtol=1e-6))


def put_out(tries: Tries, p: Vector) -> Vector:
    """Law of the best of K outputs of law p, which are ordered from the worst to the best."""
    below = np.clip(np.append(0.0, np.cumsum(p)), 0.0, 1.0)
    return np.diff([tries.missed(1.0 - float(x)) for x in below])


def truth(mu: float, tries: Tries, cells: int, points: int) -> float:
    """The price of the worst order of outputs that was found."""
    edges = np.append(np.linspace(-6.0, 6.0 + mu, cells - 1), np.inf)
    p, q = (np.diff(ndtr(edges - shift), prepend=0.0) for shift in (mu, 0.0))
    worst = 0.0
    for top in np.unique(np.linspace(0, cells, points).astype(int)):
        order = np.roll(np.arange(cells), -top)  # the first cells are on top
        one, other = (put_out(tries, law[order]) for law in (p, q))
        for a, b in ((one, other), (other, one)):
            worst = max(
                worst, epsilon_of(lambda epsilon, a=a, b=b: np.maximum(a - math.exp(epsilon) * b, 0.0).sum())
            )
    return worst


def koskela(mu: float, tries: Tries) -> float:
    """The theorems of Koskela, Redberg and Wang (2024) for Gaussian tries."""
    x = np.linspace(1e-4, 20 * mu, 3000)
    delta = hockey_stick(mu, x)
    if isinstance(tries, NegativeBinomial):
        odds = (1 - tries.stop) / tries.stop
        shift = ((tries.shape + 1) * np.log(np.exp(x) + odds * delta)).min()
    else:
        shift = (tries.mean * (np.expm1(x) + delta)).min()
    return float(shift + compose(Gaussian(1 / mu)).epsilon(DELTA / tries.mean))


def renyi(mu: float, tries: Tries, law: str) -> float:
    """The price of dp-accounting; NaN without it."""
    try:
        import dp_accounting
        from dp_accounting import rdp
    except ImportError:
        return math.nan
    event = dp_accounting.dp_event.RepeatAndSelectDpEvent(
        dp_accounting.GaussianDpEvent(1 / mu), tries.mean, SHAPES[law]
    )
    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    return float(accountant.compose(event).get_epsilon(DELTA))


def compared(mus: tuple[float, ...], runs: tuple[int, ...], cells: int, points: int) -> str:
    """Prices of searches beside what is known of them, and a verdict."""
    lines = [
        "| mu of a try | tries | law | truth | dpglm | Koskela | Rényi | even split |",
        "|---|---|---|---|---|---|---|---|",
    ]
    below, above, dearer = 0, 0.0, []
    for mu in mus:
        for count in runs:
            for law in LAWS:
                tries = tries_of(law, count)
                ours = compose(Search((Gaussian(1 / mu),), tries)).epsilon(DELTA)
                true, published = truth(mu, tries, cells, points), (koskela(mu, tries), renyi(mu, tries, law))
                even = compose(Repeated(Gaussian(1 / mu), count)).epsilon(DELTA)
                below += ours < true
                above = max(above, ours / np.nanmin(published))
                if count >= 3 and ours >= even:
                    dearer.append(f"{law}, {count} tries of mu {mu:g}")
                cells_of = (true, ours, *published, even)
                shown = " | ".join("-" if math.isnan(value) else f"{value:.3f}" for value in cells_of)
                lines.append(f"| {mu:g} | {count} | {law} | {shown} |")
    verdict = (
        f"Below the truth: {below} of {len(lines) - 2}. Largest price over the tightest published bound: "
        f"{above:.3f}. Dearer than an even split from three tries on: {'; '.join(dearer) or 'none'}."
    )
    return "\n".join([*lines, "", verdict])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="seconds: few settings and cells")
    quick = parser.parse_args().quick
    print(left((3,) if quick else (2, 3, 5, 10, 30, 100)), end="\n\n", flush=True)
    settings = ((0.2,), (3,), 60, 6) if quick else ((0.05, 0.2, 0.7), (3, 10, 30), 400, 60)
    print(compared(*settings))


if __name__ == "__main__":
    main()

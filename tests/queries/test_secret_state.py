"""Dual steps with a secret state cost no more than Poisson sampling, by exact integration of a small case.

Two records of one feature, three steps: the law of the three releases is a sum over the batches, in which
the dual variable of each record follows from its own visits and from what was released before. Its
hockey-stick divergence is integrated on a grid and compared with the price of three sampled Gaussians.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from dpglm.accounting import PoissonGaussian, Repeated, compose
from dpglm.losses import Hinge, Logistic, Squared

EPSILONS = (0.0, 0.2, 0.5, 1.0, 1.5)
EVERY_LOSS = pytest.mark.parametrize("loss", [Squared(), Logistic(), Hinge()], ids=lambda loss: loss.name)
EVERY_RELATION = pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])

# A record is (x, y), None a null record. SECOND is what stands in the place of OWN in the neighbour.
OWN, OTHER = (1.0, 1.0), (-0.8, 1.0)
SECOND = {"zero-out": None, "replace-one": (1.0, -1.0)}

# What is summed over: axes 3t, 3t + 1 and 3t + 2 of `paths` are own visit, other's visit and release t.
OWN_VISITS, ALL_VISITS = (0, 3, 6), (0, 1, 3, 4, 6, 7)
SECRET = {"both records' visits": ALL_VISITS, "the record's visits": OWN_VISITS, "nothing": ()}


@dataclass(frozen=True)
class Setting:
    """Mini-batch dual coordinate descent on two records; `strength` is lambda n."""

    clip: float
    noise: float
    rate: float
    strength: float

    def claim(self, neighbours):
        return compose(Repeated(PoissonGaussian(self.noise, self.rate, neighbours), 3))

    def step(self, loss, record, alpha, v):
        """The clipped dual step of a record in state alpha."""
        if record is None:
            return np.zeros_like(alpha)
        x, y = record
        weight = 2 * self.rate * x**2 / self.strength
        free = loss.dual_step(alpha, x * v / self.strength, np.float64(y), np.float64(weight))
        return np.clip(free, -self.clip / abs(x), self.clip / abs(x))


SATURATED = Setting(clip=0.05, noise=0.9, rate=0.35, strength=50.0)
STATEFUL = {
    "a second visit moves less": Setting(clip=1.0, noise=0.8, rate=0.4, strength=1.0),
    "a third visit is cut short": Setting(clip=0.4, noise=0.8, rate=0.4, strength=3.0),
    "noise drives the state": Setting(clip=0.6, noise=0.7, rate=0.5, strength=0.4),
}
# What the kink of the integrand costs on the grid, as a share of the claim.
GRID_ERROR = 4e-3


def paths(setting, loss, own, first, grid):
    """The joint density of visits and releases whose first release is `first`."""
    sigma = setting.noise * setting.clip
    coin = np.array([1 - setting.rate, setting.rate])
    visit = np.array([0.0, 1.0])
    alpha_own = alpha_other = v = np.zeros(())
    density = np.ones(())
    for release in (np.array([first]), grid, grid):
        alpha_own, alpha_other, v, density = (
            a[..., None, None, None] for a in (alpha_own, alpha_other, v, density)
        )
        step_own = visit[:, None, None] * setting.step(loss, own, alpha_own, v)
        step_other = visit[:, None] * setting.step(loss, OTHER, alpha_other, v)
        answer = step_own * (own[0] if own else 0.0) + step_other * OTHER[0]
        law = np.exp(np.square((release - answer) / sigma) / -2) * (coin[:, None, None] * coin[:, None])
        density = density * (law / (sigma * math.sqrt(2 * math.pi)))
        alpha_own, alpha_other, v = alpha_own + step_own, alpha_other + step_other, v + release
    return density


def divergences(setting, loss, neighbours, secrets, points=40, visits=None):
    """Hockey-stick divergences of the two laws, by what is secret, epsilon and direction, and their masses.

    `visits` reweighs the eight patterns of the record's visits, for coins that are not independent.
    """
    reach = setting.clip * (2 + 6 * setting.noise)
    grid, cell = np.linspace(-reach, reach, points, retstep=True)
    found = {secret: np.zeros((len(EPSILONS), 2)) for secret in secrets}
    mass = np.zeros(2)
    for first in grid:
        pair = [cell**3 * paths(setting, loss, own, first, grid) for own in (OWN, SECOND[neighbours])]
        if visits is not None:
            pair = [law * np.expand_dims(visits, (1, 2, 4, 5, 7, 8)) for law in pair]
        mass += [law.sum() for law in pair]
        for secret in secrets:
            p, q = (law.sum(axis=SECRET[secret]) for law in pair)
            for row, epsilon in zip(found[secret], EPSILONS, strict=True):
                row += [np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p))]
    return found, mass


def share(setting, loss, neighbours, secret, **options):
    """The larger direction of the divergence over the claim, for every epsilon."""
    found, mass = divergences(setting, loss, neighbours, [secret], **options)
    np.testing.assert_allclose(mass, 1, atol=1e-7)
    claim = setting.claim(neighbours)
    return found[secret].max(axis=1) / [claim.delta(epsilon) for epsilon in EPSILONS]


@EVERY_RELATION
@EVERY_LOSS
@pytest.mark.parametrize("setting", STATEFUL.values(), ids=STATEFUL.keys())
def test_steps_with_a_secret_state_cost_no_more_than_sampled_gaussians(setting, loss, neighbours):
    told, untold = "the record's visits", "both records' visits"
    found, mass = divergences(setting, loss, neighbours, [told, untold])
    np.testing.assert_allclose(mass, 1, atol=1e-7)
    claim = setting.claim(neighbours)
    for epsilon, larger, smaller in zip(EPSILONS, found[told], found[untold], strict=True):
        assert np.all(larger <= (1 - GRID_ERROR) * claim.delta(epsilon))
        assert np.all(smaller <= larger + 1e-12)


@pytest.mark.parametrize("setting", STATEFUL.values(), ids=STATEFUL.keys())
@EVERY_LOSS
def test_the_state_matters_in_these_settings(setting, loss):
    """A record that was visited moves otherwise than one that was not, at the same public point."""
    fresh, visited = (setting.step(loss, OWN, np.float64(alpha), np.float64(0.1)) for alpha in (0.0, 0.8))
    assert abs(fresh - visited) > 0.1 * setting.clip


@EVERY_RELATION
@EVERY_LOSS
def test_the_claim_is_reached_where_every_step_is_clipped(loss, neighbours):
    reached = share(SATURATED, loss, neighbours, "the record's visits")
    assert np.all(reached >= 0.97)
    assert np.all(reached <= 1 + GRID_ERROR)


@EVERY_RELATION
def test_a_finer_grid_gives_the_same_divergence(neighbours):
    for setting in (SATURATED, *STATEFUL.values()):
        coarse, fine = (
            share(setting, Hinge(), neighbours, "the record's visits", points=points) for points in (40, 52)
        )
        np.testing.assert_allclose(coarse, fine, atol=GRID_ERROR)


@EVERY_RELATION
@EVERY_LOSS
def test_dual_variables_that_show_the_batch_break_the_claim(loss, neighbours):
    """Noise that is added to the sampled entries of alpha only, as in the published algorithm, tells the
    batch whatever its size: such a release costs at least what the batches and these sums cost together.
    """
    assert np.all(share(SATURATED, loss, neighbours, "nothing") > 1.2)


@EVERY_RELATION
def test_visits_that_depend_on_earlier_ones_break_the_claim(neighbours):
    """One visit in an epoch of three steps: every step has the rate 1/3 of the coins that are priced."""
    setting = Setting(clip=0.05, noise=0.35, rate=1 / 3, strength=50.0)
    once = np.zeros((2, 2, 2))
    once[1, 0, 0] = once[0, 1, 0] = once[0, 0, 1] = (1 / 3) / (1 / 3 * (2 / 3) ** 2)
    coins, shuffled = (
        share(setting, Hinge(), neighbours, "the record's visits", visits=visits) for visits in (None, once)
    )
    assert np.all(coins < 1.02)
    assert np.all(shuffled > 1.2)

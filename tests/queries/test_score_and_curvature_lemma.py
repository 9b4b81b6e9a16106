"""Numeric attacks on the lemmas of docs/proofs/moments.md and docs/proofs/score_and_curvature.md.

Nothing here uses the code of dpglm: contributions are written down again, and a climb looks for the pair of
records that are farthest apart. The largest ratio of distance and sensitivity must be 1, and a weight alpha
that is 20 % smaller must be exceeded.
"""

import math

import numpy as np
import pytest

DIMENSIONS = range(1, 7)
C = 1.7
GOLDEN = (5 * math.sqrt(5) - 11) / 8
REPLACE_ONE, ZERO_OUT = 25 / 24, 4 / 3  # alpha² over A


def cosine(e):
    return np.sqrt((1 - np.abs(e)) * (1 + np.abs(e)))


# name: the constant A, the curvature at a slope e, and the slope where its bound is reached
LOSSES = {
    "logistic": (GOLDEN, lambda e: np.abs(e) * (1 - np.abs(e)), (math.sqrt(5) - 1) / 2),
    "log-cosh": (1 / 4, lambda e: (1 - np.abs(e)) * (1 + np.abs(e)), 0.0),
    "sine": (1 / 4, cosine, 0.695621),
}


def halves(v):
    """Upper triangles of v v', the diagonal over sqrt 2, for every row v."""
    rows, columns = np.triu_indices(v.shape[1])
    return v[:, rows] * v[:, columns] * np.where(rows == columns, math.sqrt(0.5), 1.0)


def vectors(records, curvature):
    """v and q of records (u, e)."""
    u, e = records[:, :-1], np.clip(records[:, -1:], -1, 1)
    square = np.sum(u * u, axis=1, keepdims=True)
    omega = np.minimum(1, C**2 / np.maximum(square, 1e-300))
    return np.sqrt(omega * curvature(e)) * u, omega * e * u


def score_and_curvature(v, q, alpha, gamma):
    return np.hstack([halves(v), gamma * halves(q), alpha * C * q])


def candidates(d, rng, count, special):
    """Pairs of records (u, e): random ones, lengths at the limit, orthogonal and opposite ones.

    The last ones are the pairs of the proofs: opposite scores of full length, one of them with the slope that
    the curvature is tuned against, and orthogonal records without a slope.
    """
    u = rng.standard_normal((2, count, d))
    u[1, : count // 3] = u[0, : count // 3]
    for j in range(count // 3, 2 * count // 3):
        u[1, j] -= u[0, j] * (u[0, j] @ u[1, j]) / (u[0, j] @ u[0, j])
    u *= 1 / np.maximum(np.linalg.norm(u, axis=2, keepdims=True), 1e-12)
    u *= C * rng.choice([1.0, 1.0, 1e-3, 0.5, 0.9, 2.0, 1e3], (2, count, 1))
    e = rng.choice([1.0, -1.0, 0.0, special, -special, 0.3], (2, count, 1))
    chosen = rng.random((2, count, 1)) < 0.5
    e = np.where(chosen, e, rng.uniform(-1, 1, e.shape))
    u[:, -3:] = C * np.eye(d)[0]
    u[1, -1] = C * np.eye(d)[-1]
    e[:, -3:, 0] = [[1.0, 1.0, 0.0], [-1.0, -special, 0.0]]
    return np.concatenate([u, e], axis=2)


def climbed(distance, pairs, rng, rounds=40, kept=20):
    """The largest distance found from these pairs: the best ones are moved at random, ever less."""
    found = distance(pairs)
    for i in range(rounds):
        best = np.argsort(found)[-kept:]
        pairs, found = pairs[:, best], found[best]
        size = 0.5 * 10.0 ** (-8 * i / rounds)
        moved = np.repeat(pairs, 8, axis=1)
        moved = moved + size * rng.standard_normal(moved.shape) * (rng.random(moved.shape) < 0.6)
        pairs = np.concatenate([pairs, moved], axis=1)
        found = np.concatenate([found, distance(moved)])
    return found.max()


def largest(name, alpha, gamma, *, zeroed, seed=0):
    _, curvature, special = LOSSES[name]
    rng = np.random.default_rng(seed)

    def distance(pairs):
        first, second = (score_and_curvature(*vectors(r, curvature), alpha, gamma) for r in pairs)
        return np.linalg.norm(first if zeroed else first - second, axis=1)

    return [climbed(distance, candidates(d, rng, 400, special), rng) for d in DIMENSIONS]


@pytest.mark.parametrize("kappa", [REPLACE_ONE, ZERO_OUT])
@pytest.mark.parametrize("name", LOSSES)
def test_replacing_a_record_moves_the_joint_release_by_at_most_what_the_gradient_moves(name, kappa):
    alpha = math.sqrt(kappa * LOSSES[name][0])
    ratios = np.array(largest(name, alpha, alpha, zeroed=False)) / (2 * alpha * C**2)
    assert 0.999 <= ratios.max() <= 1 + 1e-9
    assert ratios.min() >= 0.999  # two opposite records of full length, in every dimension


@pytest.mark.parametrize("name", LOSSES)
def test_zeroing_a_record_out_moves_the_joint_release_by_at_most_its_sensitivity(name):
    alpha = math.sqrt(ZERO_OUT * LOSSES[name][0])
    ratios = np.array(largest(name, alpha, alpha, zeroed=True)) / (math.sqrt(1.5) * alpha * C**2)
    assert ratios.min() >= 0.999
    assert ratios.max() <= 1 + 1e-9


@pytest.mark.parametrize("name", ["log-cosh", "sine"])
def test_zeroing_out_with_the_weights_of_replace_one_is_priced_by_the_curvature(name):
    constant = LOSSES[name][0]
    alpha = math.sqrt(REPLACE_ONE * constant)
    ratios = np.array(largest(name, alpha, alpha, zeroed=True)) / (math.sqrt(2 * constant) * C**2)
    assert 0.999 <= ratios.max() <= 1 + 1e-9


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("zeroed", [False, True])
def test_an_alpha_that_is_a_fifth_smaller_is_exceeded(name, zeroed):
    kappa, moved = (ZERO_OUT, math.sqrt(1.5)) if zeroed else (REPLACE_ONE, 2.0)
    alpha = 0.8 * math.sqrt(kappa * LOSSES[name][0])
    assert max(largest(name, alpha, alpha, zeroed=zeroed)) > 1.02 * moved * alpha * C**2


def test_neither_constant_can_be_smaller_for_all_losses():
    for kappa, gamma in ((1.03, 1.0), (REPLACE_ONE, 1.05)):
        alpha = math.sqrt(kappa / 4)
        assert max(largest("sine", alpha, gamma * alpha, zeroed=False)) > (1 + 1e-4) * 2 * alpha * C**2


def test_the_constant_of_replace_one_is_the_root_of_a_cubic():
    sigma = np.linspace(1, 2, 100_001)
    needed = np.max(2 / (2 / sigma + 1 - sigma + sigma**2 / 2))
    assert needed == pytest.approx(1.0408789, abs=1e-7)
    assert needed < REPLACE_ONE < 1.001 * needed


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_states_the_least_constant(name):
    constant, curvature, special = LOSSES[name]
    e = np.append(np.linspace(-1, 1, 20_001)[1:-1], special)
    reached = np.max(curvature(e) ** 2 / (4 * cosine(e) ** 2))
    assert reached == pytest.approx(constant, rel=1e-9)


@pytest.mark.parametrize("step", [2.0**-20, 2.0**-6])
@pytest.mark.parametrize("zeroed", [False, True])
def test_what_rounding_adds_is_allowed_for(step, zeroed):
    constant, curvature, special = LOSSES["sine"]
    kappa = ZERO_OUT if zeroed else REPLACE_ONE
    alpha, rng = math.sqrt(kappa * constant), np.random.default_rng(3)
    for d in DIMENSIONS:
        top = C * math.sqrt(2 * math.sqrt(constant))
        eta_v = math.sqrt(d) * step / 2 + (d + 16) * 2.0**-53 * top
        eta_q = math.sqrt(d) * step / 4 + (d + 16) * 2.0**-53 * C
        added = math.sqrt(
            (2 * top * eta_v + eta_v**2) ** 2 / 2
            + alpha**2 * (2 * C * eta_q + eta_q**2) ** 2 / 2
            + alpha**2 * C**2 * eta_q**2
        )
        exact = (math.sqrt(1.5) if zeroed else 2.0) * alpha * C**2

        def distance(pairs, alpha=alpha):
            sums = []
            for records in pairs:
                v, q = vectors(records, curvature)
                v, q = step * np.rint(v / step), step / 2 * np.rint(2 * q / step)
                sums.append(score_and_curvature(v, q, alpha, alpha))
            return np.linalg.norm(sums[0] if zeroed else sums[0] - sums[1], axis=1)

        found = climbed(distance, candidates(d, rng, 300, special), rng, rounds=25)
        assert 0.97 * exact <= found <= exact + (1 if zeroed else 2) * added


@pytest.mark.parametrize(("zeroed", "price"), [(False, 1.0), (True, math.sqrt(0.5))])
def test_moments_of_a_record_move_by_at_most_the_square_of_its_norm(zeroed, price):
    rng, rho = np.random.default_rng(1), 1.3

    def distance(pairs):
        norms = np.linalg.norm(pairs, axis=2, keepdims=True)
        first, second = (halves(z) for z in pairs * np.minimum(1, rho / np.maximum(norms, 1e-300)))
        return np.linalg.norm(first if zeroed else first - second, axis=1)

    for length in range(2, 8):
        found = climbed(distance, candidates(length - 1, rng, 400, 1.0), rng)
        assert 0.999 <= found / (price * rho**2) <= 1 + 1e-9

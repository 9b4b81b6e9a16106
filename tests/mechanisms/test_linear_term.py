"""A random linear term: its law, what it costs, and the law of the minimiser that it gives."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logit

from dpglm import Bounds, Budget
from dpglm.accounting import Composed, Imprecision, ObjectivePerturbation
from dpglm.accounting import Gaussian as GaussianEvent
from dpglm.data import as_data
from dpglm.losses import Huber, Logistic, Squared
from dpglm.mechanisms import LinearTerm, Randomness
from dpglm.mechanisms.randomness import GAUSSIAN_DISTANCE
from dpglm.penalties import L2
from dpglm.plan import Plan, Release
from dpglm.privacy import PUBLIC_SIZE
from dpglm.problem import Problem
from dpglm.queries import Minimiser
from dpglm.queries.minimiser import Objective
from dpglm.solvers import ObjectivePerturbation as Solver

RNG = np.random.default_rng(0)
N, P = 25, 3
X = RNG.standard_normal((N, P)) * 0.6
LABELS = np.where(X @ [1.0, -2.0, 0.5] + 0.3 * RNG.standard_normal(N) > 0, 1.0, -1.0)


def mechanism(noise, neighbours="replace-one", **more):
    return LinearTerm(noise, 0.1, "logistic", 1.5, neighbours, **more)


class Recorded:
    """An objective that is quadratic, and writes down the linear terms that it is given."""

    def __init__(self, dimension, error=1e-3):
        self.dimension, self._error, self.terms, self.asked = dimension, error, [], []

    @property
    def query(self):
        return self

    def minimiser(self, linear):
        self.terms.append(linear)
        return -linear

    def perturbed_error(self, length, moved):
        self.asked.append((length, moved))
        return self._error


def objective(loss=None, fit_intercept=True, clip=0.4, l2=0.05, y=LABELS):
    constant = 0.5 if fit_intercept else 0.0
    dimension = P + fit_intercept
    query = Minimiser(
        loss or Logistic(), clip, L2(l2), N, P, math.hypot(1, constant), 0.02,
        hold=l2 + 0.02 if fit_intercept else None, push=1.0,
    )  # fmt: skip
    start = np.zeros(dimension)
    start[-1] = 0.7 if fit_intercept else 0.0
    linear = np.linspace(-0.05, 0.1, dimension)
    return Objective(query, as_data(X, y, Bounds(row_norm=1.0), constant), linear, start)


def test_without_noise_it_gives_the_exact_minimiser():
    one = objective()
    assert np.array_equal(mechanism(0.0).release(one, 0.8, Randomness(0)), one.minimiser(np.zeros(4)))
    assert not mechanism(0.0).imprecision(1)


@pytest.mark.parametrize(("noise", "sensitivity"), [(3.0, 0.8), (0.5, 2.0)])
def test_the_linear_term_and_the_finish_have_the_deviations_that_they_are_priced_for(noise, sensitivity):
    draws, error, finish = 4_000, 0.01, 7.0
    one, randomness = Recorded(5, error), Randomness(1)
    released = np.array(
        [mechanism(noise, finish=finish).release(one, sensitivity, randomness) for _ in range(draws)]
    )
    terms = np.array(one.terms)
    finishing = released + terms
    room = 5.5 / math.sqrt(2 * draws * 5)  # a chance of 4e-8 to be beyond
    assert abs(terms.std() / (noise * sensitivity) - 1) < room
    deviation = mechanism(noise, finish=finish).deviation(one, sensitivity)
    assert deviation == pytest.approx(finish * noise * 2 * error)
    assert abs(finishing.std() / deviation - 1) < room
    for draw, scale in ((terms, noise * sensitivity), (finishing, finishing.std())):
        assert stats.kstest(draw.ravel() / scale, "norm").pvalue > 1e-6
    both = np.corrcoef(terms.ravel(), finishing.ravel())[0, 1]
    assert abs(both) < 5.5 / math.sqrt(draws * 5)
    between = np.corrcoef(np.hstack([terms, finishing]).T)[np.triu_indices(10, 1)]
    assert np.abs(between).max() < 6 / math.sqrt(draws)


def test_the_error_is_asked_for_a_length_and_a_roundness_that_no_draw_exceeds():
    one = Recorded(4)
    for seed in range(50):
        mechanism(2.0).release(one, 0.5, Randomness(seed))
    ((length, moved),) = set(one.asked)
    assert length == pytest.approx(40 * 2.0 * 0.5 * 2)
    assert np.log2(8) + stats.norm.logsf(40) / math.log(2) < -1000
    steps = np.array(one.terms) / moved  # half a step times the root of the dimension is a step
    assert np.array_equal(steps, np.rint(steps)) and np.gcd.reduce(steps.astype(int).ravel()) == 1


def test_the_error_of_a_perturbed_minimiser_counts_its_linear_term_and_what_moved_it():
    query = objective().query
    plain, moved = query.perturbed_error(0.0, 0.0), query.perturbed_error(0.0, 3.0)
    assert plain == query.error(query.push)
    assert moved - plain == pytest.approx(3.0 / (N * query.strength))
    assert query.perturbed_error(1e9, 0.0) > query.perturbed_error(1e3, 0.0) > plain


@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
def test_its_event_is_that_of_both_and_scales_with_the_noise(neighbours):
    event = mechanism(3.0, neighbours, finish=20.0).event
    moved = 2 if neighbours == "replace-one" else 1
    inner = ObjectivePerturbation(3.0 * moved, 0.1, "logistic", 1.5, neighbours)
    assert event == Composed((inner, GaussianEvent(60.0)))
    assert mechanism(6.0, neighbours, finish=20.0).event == event.scaled(2.0)
    assert mechanism(3.0).imprecision(7) == {Imprecision(GAUSSIAN_DISTANCE): 7}


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Huber(0.8)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_linear_term_of_a_minimiser_is_found_again(loss, fit_intercept):
    one = objective(loss, fit_intercept)
    for scale in (0.1, 1.0, 10.0):
        linear = scale * RNG.standard_normal(one.query.dimension)
        implied, _ = one.implied(one.minimiser(linear))
        # A subgradient of norm at most TOLERANCE * clip / n, times n.
        assert np.linalg.norm(implied - linear) <= 1e-4 * 0.4 * (1 + 1e-6)


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Huber(0.8)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_log_determinant_is_that_of_the_change_of_variables(loss, fit_intercept):
    one = objective(loss, fit_intercept)
    for _ in range(5):
        w = RNG.standard_normal(one.query.dimension)
        step = 1e-6
        jacobian = [
            (one.implied(w + step * unit)[0] - one.implied(w - step * unit)[0]) / (2 * step)
            for unit in np.eye(one.query.dimension)
        ]
        sign, value = np.linalg.slogdet(-np.array(jacobian))
        assert sign == 1 and one.implied(w)[1] == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize(
    ("loss", "clip"),
    [(Logistic(), 0.2), (Logistic(), 0.9), (Squared(), 0.2), (Huber(0.8), 0.9)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_in_one_dimension_the_likelihood_is_a_density_and_that_of_what_is_drawn(loss, clip):
    query = Minimiser(loss, clip, L2(0.1), N, 1, 1.0)
    records = as_data(X[:, :1], LABELS, Bounds(row_norm=1.0))
    one = Objective(query, records, np.zeros(1), np.zeros(1))
    term, sensitivity = mechanism(2.0, finish=1.0), 2 * clip

    def density(w):
        likelihood = term.log_likelihood(np.array([w]), one, sensitivity)
        return math.exp(likelihood) / (term.noise * sensitivity * math.sqrt(2 * math.pi))

    # The density jumps where the slope of a record begins to be cut: integrals go from jump to jump.
    x = records.block.X[:, 0] * records.scale
    cut = clip / np.abs(x)
    if loss.kind == "classification":
        ends = -logit(cut[cut < 1]) / x[cut < 1]
        jumps = np.concatenate([ends, -ends])
    else:
        cut = np.minimum(cut, getattr(loss, "threshold", math.inf))
        jumps = np.concatenate([(LABELS - cut) / x, (LABELS + cut) / x])
    edges = np.sort(np.concatenate([np.linspace(-6, 6, 13), jumps[np.abs(jumps) < 6]]))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    nodes, weights = np.polynomial.legendre.leggauss(8)
    parts = [
        h * weights @ [density(w) for w in m + h * nodes] for m, h in zip(middle, half, strict=True) if h > 0
    ]
    assert sum(parts) == pytest.approx(1, abs=1e-5)
    randomness = Randomness(3)
    drawn = [term.release(one, sensitivity, randomness) for _ in range(200)]
    # The larger the linear term, the smaller the minimiser.
    places = stats.norm.cdf([-one.implied(w)[0][0] / (term.noise * sensitivity) for w in drawn])
    assert stats.kstest(places, "uniform").pvalue > 1e-6


def test_a_plan_with_it_survives_json_with_its_parameters():
    release = Release("minimiser", mechanism(3.0, "zero-out", finish=12.0), 1, "0.8", entries=6)
    again = Release.from_dict(json.loads(json.dumps(release.to_dict())))
    assert again == release and again.mechanism.event == release.mechanism.event
    problem = Problem(Logistic(), L2(0.1), Bounds(row_norm=1.0))
    for neighbours in PUBLIC_SIZE:
        plan = Solver().plan(problem, 100, 3, Budget(1.0, 1e-6), neighbours)
        again = Plan.from_dict(json.loads(plan.to_json()))
        assert again == plan and again.price == plan.price
        assert again.releases[0].mechanism.neighbours == neighbours.value

"""Objective perturbation: against brute force, against exact laws of minimisers, and composed."""

import json
import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from dpglm.accounting import (
    Composed,
    Gaussian,
    ObjectivePerturbation,
    PoissonGaussian,
    Repeated,
    calibrate,
    compose,
    event_from_dict,
    gaussian_delta,
)
from dpglm.accounting.objective import lines_curve, objective_profile

X = np.array([0.0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.3, 1.7, 2.2, 3.0])

# epsilon, lambda, noise for rows of norm 1: logistic zero-out, and two-sided with log(1 + curvature) for any
# slope, in both orders. The logistic column comes from a coarse integral, up to 0.35 % too high.
NOISE = [
    (1.0, 0.5, 4.592, 7.098),
    (1.0, 1.0, 4.235, 5.525),
    (1.0, 5.0, 4.227, 4.574),
    (1.0, 100.0, 4.225, 4.375),
    (0.1, 5.0, 41.99, 70.9),
    (0.1, 20.0, 36.35, 42.9),
    (0.1, 100.0, 36.32, 38.8),
    (4.0, 0.3, 1.196, 1.42),
    (4.0, 1.0, 1.194, 1.29),
    (4.0, 100.0, 1.194, 1.227),
]


def two_sided_delta(mu, x):
    """E[(1 - e^{x - mu^2/2 - mu |Z|})_+] by quadrature."""
    z = np.linspace(0, 12, 200_001)
    gain = -np.expm1(np.minimum(x - mu**2 / 2 - mu * z, 0.0))
    return 2 * np.trapezoid(gain * np.exp(-z * z / 2), z) / math.sqrt(2 * math.pi)


def least_noise(delta, epsilon):
    return brentq(lambda noise: delta(1 / noise, epsilon) - 1e-6, 0.5, 200)


@pytest.mark.parametrize(("epsilon", "quadratic", "logistic", "two_sided"), NOISE)
def test_calibrated_noise_is_the_reference_noise(epsilon, quadratic, logistic, two_sided):
    curvature = 0.25 / quadratic
    found = calibrate(ObjectivePerturbation(1.0, curvature, "logistic", 1.0, "zero-out"), epsilon, 1e-6)
    assert 0.996 * logistic < found < 1.0005 * logistic
    # only one of two parts of that bound is needed in each order: the sides, or the determinant
    found = calibrate(ObjectivePerturbation(1.0, curvature, "any", 1.0, "zero-out"), epsilon, 1e-6)
    stretch = math.log1p(curvature)
    sides = least_noise(two_sided_delta, epsilon)
    determinant = least_noise(gaussian_delta, epsilon - stretch)
    both = least_noise(two_sided_delta, epsilon - stretch)
    assert found == pytest.approx(max(sides, determinant), rel=1e-3)
    assert both == pytest.approx(two_sided, rel=1e-3)
    assert found < both


@pytest.mark.parametrize(
    ("noise", "curvature", "reach"), [(4.5, 0.5, 1.0), (0.7, 3.0, 1.0), (40.0, 0.06, 1.0), (3.0, 5.0, 4.0)]
)
def test_the_bound_for_a_record_that_is_in_is_the_integral_it_stands_for(noise, curvature, reach):
    mu = 1 / noise
    t = np.linspace(0, 1, 2001)
    z = np.linspace(-12, 12, 24_001)
    log_determinant = np.log1p(4 * curvature * (t / reach) * (1 - t / reach))
    loss = np.full(z.shape, -np.inf)
    for share, height in zip(t, log_determinant, strict=True):
        np.maximum(loss, height + (share * mu) ** 2 / 2 + share * mu * z, out=loss)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    profile = objective_profile(ObjectivePerturbation(noise, curvature, "logistic", reach, "zero-out"))
    joined = profile.forward
    for x in X:
        brute = np.trapezoid(-np.expm1(np.minimum(x - loss, 0.0)) * density, z)
        if brute < 1e-25:
            continue
        bound = joined.curve(np.array([x]))[0]
        assert brute * (1 - 2e-6) <= bound <= brute * (1 + 1e-4)
        assert joined(np.array([x]))[0] <= bound * (1 + 1e-12)


def test_maxima_of_lines_keep_their_relative_precision_in_the_tail():
    slopes, heights = np.array([0.0, 0.05, 0.13, 0.2]), np.array([0.1, 0.12, 0.09, 0.02])
    curve = lines_curve(slopes, heights)

    def integrand(z, x):
        f = max(h + m * z for m, h in zip(slopes, heights, strict=True))
        return max(1 - mpmath.exp(x - f), 0) * mpmath.npdf(z)

    corners = [-0.4, 0.375, 1.0]
    for x in (0.0, 0.11, 0.5, 1.0, 2.0):
        root = min((x - h) / m for m, h in zip(slopes[1:], heights[1:], strict=True)) if x > 0.1 else -30
        points = [float(root), *[c for c in [*corners, *range(-8, 15)] if c > root], 40]
        points = sorted(points)
        exact = mpmath.quad(lambda z, x=x: integrand(z, x), points)
        assert curve(np.array([x]))[0] == pytest.approx(float(exact), rel=1e-8)


# Exact laws in one dimension. The minimiser of a strongly convex objective in one variable falls with b, so
# the probability of a cell of minimisers is a difference of normal probabilities: no density is needed, and
# cells can only lower the divergence.


def logistic(x, sign, clip=math.inf):
    """The gradient of log(1 + e^(-sign x theta)), its norm clipped."""
    return lambda theta: -sign * x * np.minimum(expit(-sign * x * theta), clip / x)


def hinge(x, sign, width=1.0):
    """The gradient of a hinge that is quadratic on a width below its margin of 1."""
    return lambda theta: -sign * x * np.clip((1 - sign * x * theta) / width, 0.0, 1.0)


def huber(target, width=1.0):
    """The gradient of Huber's loss with largest slope 1."""
    return lambda theta: np.clip((theta - target) / width, -1.0, 1.0)


def law(gradients, quadratic, sigma, theta):
    """Probabilities of the cells of the minimiser."""
    need = -quadratic * theta - sum(g(theta) for g in gradients)
    edges = np.concatenate([[math.inf], need / sigma, [-math.inf]])
    high, low = edges[:-1], edges[1:]
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def pair(record, other, background, quadratic, sigma, cells=8001):
    """Return the laws with a record and with another one in its place (none, for zero-out)."""
    most = 9 * sigma + len(background) + 2
    middle = brentq(lambda v: quadratic * v + sum(g(np.array([v]))[0] for g in background), -1e4, 1e4)
    theta = middle + most / quadratic * np.linspace(-1, 1, cells) ** 3
    theta = np.sort(np.concatenate([theta, np.linspace(-5, 5, cells)]))
    with_record = law([*background, record], quadratic, sigma, theta)
    return with_record, law([*background, *other], quadratic, sigma, theta)


def hockey_sticks(p, q, x):
    return np.array([np.sum(np.maximum(p - math.exp(v) * q, 0.0)) for v in x])


def backgrounds(kind, rng):
    """Tables without the record: none, one-sided, mixed."""
    yield []
    for count in (1, 4, 15):
        for share in (0.0, 0.5, 1.0):
            signs = np.where(rng.random(count) < share, 1, -1)
            sizes = rng.uniform(0.2, 1.0, count)
            if kind == "any":
                yield [huber(3 * sign * size) for sign, size in zip(signs, sizes, strict=True)]
            else:
                yield [logistic(size, sign) for sign, size in zip(signs, sizes, strict=True)]


# name: record, curvature times lambda, slopes, reach, largest gradient norm
RECORDS = {
    "logistic": (logistic(1.0, 1), 0.25, "logistic", 1.0, 1.0),
    "short logistic": (logistic(0.6, -1), 0.25, "logistic", 1.0, 1.0),
    "clipped logistic": (logistic(1.0, 1, 0.4), 0.25, "logistic", 2.5, 0.4),
    "long clipped logistic": (logistic(3.0, 1, 1.0), 9 / 4, "logistic", 3.0, 1.0),
    "hinge": (hinge(1.0, 1), 1.0, "signed", 1.0, 1.0),
    "sharp hinge": (hinge(1.0, 1, 0.1), 10.0, "signed", 1.0, 1.0),
    "huber": (huber(0.0), 1.0, "any", 1.0, 1.0),
    "sharp huber": (huber(0.1, 0.05), 20.0, "any", 1.0, 1.0),
}
OTHERS = {
    "logistic": [logistic(1.0, -1), logistic(0.5, 1), logistic(0.3, -1)],
    "short logistic": [logistic(1.0, 1), logistic(1.0, -1)],
    "clipped logistic": [logistic(1.0, -1, 0.4), logistic(0.5, 1, 0.4)],
    "long clipped logistic": [logistic(3.0, -1, 1.0), logistic(2.0, 1, 1.0)],
    "hinge": [hinge(1.0, -1), hinge(0.7, 1)],
    "sharp hinge": [hinge(1.0, -1, 0.1), hinge(1.0, 1, 1.0)],
    "huber": [huber(1.0), huber(-2.0)],
    "sharp huber": [huber(-0.1, 0.05), huber(0.1, 1.0)],
}


def realised(name, quadratic, sigma, neighbours):
    """Yield curves in both orders that some tables attain."""
    record, _, slopes, _, _ = RECORDS[name]
    for background in backgrounds(slopes, np.random.default_rng(0)):
        for other in [[]] if neighbours == "zero-out" else [[g] for g in OTHERS[name]]:
            p, q = pair(record, other, background, quadratic, sigma)
            yield hockey_sticks(p, q, X), hockey_sticks(q, p, X)


def event_of(name, quadratic, sigma, neighbours, **changes):
    _, curvature, slopes, reach, largest = RECORDS[name]
    fields = {"noise": sigma / largest, "curvature": curvature / quadratic, "slopes": slopes, "reach": reach}
    return ObjectivePerturbation(**{**fields, "neighbours": neighbours, **changes})


def worst_share(name, quadratic, sigma, neighbours, **changes):
    """The largest ratio of a curve that is attained to its bound, over tables, orders and x."""
    profile = objective_profile(event_of(name, quadratic, sigma, neighbours, **changes))
    bounds = profile.forward(X), profile.backward(X)
    return max(
        float(np.max(attained[bound > 1e-9] / bound[bound > 1e-9]))
        for both in realised(name, quadratic, sigma, neighbours)
        for attained, bound in zip(both, bounds, strict=True)
    )


@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
@pytest.mark.parametrize("quadratic", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("name", RECORDS)
def test_no_minimiser_exceeds_the_curve(name, quadratic, neighbours):
    for sigma in (0.8, 3.0):
        assert worst_share(name, quadratic, sigma, neighbours) <= 1 + 1e-9


@pytest.mark.parametrize("quadratic", [1.0, 10.0])
def test_the_curve_is_nearly_attained_where_the_quadratic_term_is_strong(quadratic):
    """A penalty that pulls far to the wrong side of the record makes its slope as steep as can be."""
    sigma, x = 2.0, np.array([1.0])
    push = [lambda theta: np.full_like(theta, 50 * quadratic)]
    p, q = pair(logistic(1.0, 1), [], push, quadratic, sigma)
    bound = objective_profile(event_of("logistic", quadratic, sigma, "zero-out")).forward(x)
    assert 0.95 <= hockey_sticks(p, q, x)[0] / bound[0] <= 1


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("hinge", {"curvature": 0.0}),
        ("huber", {"curvature": 0.0}),
        ("logistic", {"curvature": 0.0}),
        ("long clipped logistic", {"curvature": 0.0}),
        ("long clipped logistic", {"reach": 1.0, "curvature": 0.25}),
        ("sharp huber", {"slopes": "signed"}),
        ("hinge", {"noise": 2 * 3.0}),
    ],
    ids=str,
)
def test_a_forgotten_part_of_the_price_is_seen(name, changes):
    """The determinant, the true curvature of clipped rows, both sides of a slope, the noise."""
    assert worst_share(name, 0.05, 3.0, "zero-out", **changes) > 1.01
    assert worst_share(name, 0.05, 3.0, "zero-out") <= 1 + 1e-9


EVENTS = [
    ObjectivePerturbation(noise, curvature, slopes, reach, neighbours)
    for noise, curvature in ((1.0, 0.3), (3.0, 0.0), (4.0, 0.4), (30.0, 2.0), (200.0, 0.02))
    for slopes, reach in (("any", 1.0), ("signed", 1.0), ("logistic", 1.0), ("logistic", 3.0))
    for neighbours in ("zero-out", "replace-one")
]


def whole_curve(profile, x):
    """E_{e^x} for all real x."""
    x = np.asarray(x)
    left = -np.expm1(np.minimum(x, 0.0)) + np.exp(np.minimum(x, 0.0)) * profile.backward(np.maximum(-x, 0.0))
    return np.where(x < 0, left, profile.forward(np.maximum(x, 0.0)))


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_the_two_halves_are_one_convex_curve(event):
    profile = objective_profile(event)
    zero = np.zeros(1)
    assert profile.forward(zero)[0] == profile.backward(zero)[0]
    for one in (profile, profile.swapped()):
        x = np.linspace(-6, 6, 4001)
        y, h = np.exp(x), whole_curve(one, x)
        slope = np.diff(h) / np.diff(y)
        # a chord ends near the point where it touches
        assert np.all(np.diff(slope) >= -1e-4 * np.abs(slope[1:]) - 1e-9)
        assert np.all(h >= np.maximum(-np.expm1(x), 0.0) - 1e-12) and np.all(h <= 1)
        assert np.all(np.diff(h) <= 1e-14)


def composed_exactly(first, second, x):
    (p1, q1), (p2, q2) = first, second
    return np.array([np.sum(np.maximum(np.outer(p1, p2) - math.exp(v) * np.outer(q1, q2), 0.0)) for v in x])


def gaussian_pair(noise):
    edges = np.linspace(-9, 9 + 1 / noise, 401)
    return tuple(np.diff(ndtr(edges - mean)) for mean in (1 / noise, 0.0))


@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
@pytest.mark.parametrize("name", ["logistic", "sharp hinge", "sharp huber"])
def test_compositions_cost_at_least_what_is_attained(name, neighbours):
    quadratic, sigma, x = 0.5, 2.0, [0.1, 0.5, 1.0, 2.0]
    event = event_of(name, quadratic, sigma, neighbours)
    twice = compose(Repeated(event, 2))
    beside = compose(Composed((event, Gaussian(2.5))))
    for background in ([], [logistic(1.0, -1)] * 30):
        other = [] if neighbours == "zero-out" else OTHERS[name][:1]
        p, q = pair(RECORDS[name][0], other, background, quadratic, sigma, cells=301)
        for one, normal in (((p, q), gaussian_pair(2.5)), ((q, p), gaussian_pair(2.5)[::-1])):
            for v, exact, mixed in zip(
                x, composed_exactly(one, one, x), composed_exactly(one, normal, x), strict=True
            ):
                assert exact <= twice.delta(v)
                assert mixed <= beside.delta(v)
    for v in x:
        assert twice.delta(v) >= compose(event).delta(v)


def loss_law(profile, step):
    """P(L > x) = H - H' of the loss under P, as masses at the midpoints of cells."""
    edges = step * np.arange(-6000, 6001)
    h = 1e-6
    slope = (whole_curve(profile, edges + h) - whole_curve(profile, edges - h)) / (2 * h)
    return np.maximum(-np.diff(whole_curve(profile, edges) - slope), 0.0)


@pytest.mark.parametrize(
    "event",
    [
        ObjectivePerturbation(4.0, 0.1, "logistic", 1.0, "zero-out"),
        ObjectivePerturbation(3.0, 0.4, "signed", 1.0, "zero-out"),
        ObjectivePerturbation(3.0, 0.2, "any", 1.0, "zero-out"),
        ObjectivePerturbation(6.0, 0.2, "logistic", 1.0, "replace-one"),
    ],
    ids=repr,
)
def test_compositions_agree_with_a_plain_convolution_of_the_same_curve(event):
    profile, step = objective_profile(event), 1e-3
    masses = [loss_law(one, step) for one in (profile, profile.swapped())]
    for epsilon in (0.5, 1.0, 1.5):
        found = []
        for mass in masses:
            total = np.fft.irfft(np.fft.rfft(mass, 32768) ** 2, 32768)[: 2 * len(mass) - 1]
            loss = step * (np.arange(len(total)) - 12000 + 1)
            found.append(np.sum(np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0) * total))
        assert compose(Repeated(event, 2)).delta(epsilon) == pytest.approx(max(found), rel=0.03)


def test_both_orders_are_priced():
    """Two sides cost more in one order, the determinant in the other."""
    sides = ObjectivePerturbation(3.0, 0.01, "any", 1.0, "zero-out")
    determinant = ObjectivePerturbation(3.0, 0.5, "any", 1.0, "zero-out")
    x = np.array([1.0])
    for event, larger in ((sides, "backward"), (determinant, "forward")):
        profile = objective_profile(event)
        halves = {name: getattr(profile, name)(x)[0] for name in ("forward", "backward")}
        assert max(halves, key=halves.get) == larger
        assert compose(event).delta(1.0) >= max(halves.values())
        assert compose(Repeated(event, 2)).delta(1.0) >= max(halves.values())


@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
@pytest.mark.parametrize("slopes", ["any", "signed", "logistic"])
def test_prices_move_as_they_should(slopes, neighbours):
    def price(noise=4.0, curvature=0.2, reach=1.5, kind=slopes, relation=neighbours):
        event = ObjectivePerturbation(noise, curvature, kind, reach, relation)
        return compose(event).delta(0.8)

    for less, more in (({"noise": 5.0}, {}), ({}, {"noise": 3.0}), ({}, {"curvature": 0.3})):
        assert price(**less) < price(**more)
    # curvature at the steepest slope rises until slopes are clipped in half, then falls
    steep, half, clipped = (price(reach=reach) for reach in (1.0, 2.0, 3.0))
    if slopes == "logistic" and neighbours == "zero-out":
        assert steep < half and clipped < half
    elif slopes != "logistic":
        assert steep == half == clipped
    order = [price(kind=kind) for kind in ("logistic", "signed", "any")]
    assert order == sorted(order)
    assert price(relation="zero-out") < price(relation="replace-one")
    plain = compose(Gaussian(4.0 if neighbours == "zero-out" else 2.0)).delta(0.8)
    assert price() >= plain * (1 - 1e-9)
    if slopes != "any" and neighbours == "zero-out":
        assert price(curvature=0.0) == plain


@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
@pytest.mark.parametrize("slopes", ["any", "signed", "logistic"])
def test_too_much_curvature_is_refused(slopes, neighbours):
    def event(curvature):
        return ObjectivePerturbation(1.0, curvature, slopes, 1.0, neighbours)

    with pytest.raises(ValueError, match="stronger quadratic term"):
        calibrate(event(1.8), 1.0, 1e-6)
    with pytest.raises(ValueError, match="stronger quadratic term"):
        calibrate(Composed((Repeated(event(1.2), 10), Gaussian(2.0))), 1.0, 1e-6)
    factor = calibrate(event(1.5), 1.0, 1e-6)
    assert compose(event(1.5).scaled(factor)).delta(1.0) <= 1e-6
    assert compose(event(1.5).scaled(0.999 * factor)).delta(1.0) > 1e-6


def test_enough_noise_always_lowers_the_price_to_nothing():
    """The total variation is that of the other order, which knows no determinant."""
    event = ObjectivePerturbation(1e6, 50.0, "signed", 1.0, "zero-out")
    assert compose(event).delta(1.0) <= 1.01 * gaussian_delta(1e-6, 0.0)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_events_are_values(event):
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    scaled = event.scaled(3.0)
    assert scaled.noise == 3 * event.noise
    assert scaled.scaled(1 / 3).to_dict() == {**event.to_dict(), "noise": scaled.noise / 3}
    assert compose(event.scaled(0.0)).epsilon(0.5) == math.inf
    assert compose(event).epsilon(0.0) == math.inf


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("noise", -1.0),
        ("curvature", math.inf),
        ("curvature", -0.1),
        ("slopes", "steep"),
        ("reach", 0.5),
        ("reach", math.nan),
        ("neighbours", "add-remove"),
    ],
)
def test_a_wrong_field_is_named(field, value):
    fields = {"noise": 1.0, "curvature": 0.1, "slopes": "any", "reach": 1.0, "neighbours": "zero-out"}
    with pytest.raises(ValueError, match=field):
        ObjectivePerturbation(**{**fields, field: value})


def test_two_relations_in_one_price_are_refused():
    zero_out = ObjectivePerturbation(1.0, 0.1, "any", 1.0, "zero-out")
    for other in (
        ObjectivePerturbation(1.0, 0.1, "any", 1.0, "replace-one"),
        PoissonGaussian(1.0, 0.1, "replace-one"),
    ):
        with pytest.raises(ValueError, match="mixes"):
            compose(Composed((zero_out, other)))


@pytest.mark.parametrize("noise", [0.8, 3.0])
def test_a_replaced_record_is_priced_by_the_corners_of_its_slopes(noise):
    mu, x = 1 / noise, np.linspace(0.5, 12, 40)
    above = x + math.log1p(0.2)

    def one(m):
        return np.array([gaussian_delta(m, value) for value in x])

    def two(m):
        short = np.minimum(x - m * m / 2, 0)
        far = np.array([gaussian_delta(m, max(value, m * m / 2)) for value in x])
        return 1 - np.exp(short) + 2 * np.exp(short) * far

    signed = objective_profile(ObjectivePerturbation(noise, 0.2, "signed", 1.0, "replace-one")).forward(above)
    either = objective_profile(ObjectivePerturbation(noise, 0.2, "any", 1.0, "replace-one")).forward(above)
    expected = {"signed": one(2 * mu) + 2 * one(mu), "any": two(2 * mu) + two(math.sqrt(2) * mu)}
    for found, known in ((signed, expected["signed"]), (either, expected["any"])):
        tail = known < 0.05  # below, a chord to smaller x may be lower
        assert tail.any() and np.allclose(found[tail], known[tail], rtol=1e-6)

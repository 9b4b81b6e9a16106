"""Settings for those who give only epsilon, from public quantities alone.

Let ``noise`` be the deviation of a mean when the whole budget buys one release of it, in units of the
largest contribution of one record (`noise_of_one_pass`; 2 / (n mu) for replace-one, mu the Gaussian
parameter of the budget). It is the one number that says how far a budget reaches.

*Clip.* Every logistic slope is 1/2 at the start, so half of the largest gradient norm is a clip that
costs nothing there and halves the noise. It rises to the full norm as noise vanishes, so that the bias
of clipping vanishes too. Where slopes have no bound (or none below the declared range of targets), the
norm is that of a record at the end of the range, and the clip goes from a quarter of it to twice it.

*Steps.* The noise that ends in w is about step_size * steps * clip * noise for each coordinate, however
that time is split into steps. A prediction then carries noise of about that times the norm of a row,
without a factor for the number of features. It may grow to 0.3 times the largest slope over the
smoothness: 1.2 logits, or 0.3 times half the range of targets. With a step of 1 / smoothness this makes
0.3 / (noise * fraction) steps, where fraction is clip over largest norm. More than 500 steps are not
taken, because they cost time; the step then grows to at most 1.5 / smoothness. Beyond five times the
smoothness over the strength of an L2 penalty the iterates only wander, so no more are planned.

*Losses that turn linear.* Where a regression loss turns linear inside the declared range of targets, as
Huber's with a small threshold, half the range is ``stretch`` times as far as a step of 1 / smoothness goes.
The time is so many times longer, up to 500 steps (50 passes of coordinate descent), and a step may then cross
0.08 of half the range. A slope that jumps allows no step of 1 / smoothness: it counts as bending by the
largest slope over half the range, or by 1 for margins. So no setting depends on the unit of the targets.

*Coordinate descent* forgets the noise of earlier passes, because each update along a coordinate undoes
the last one; its optimum in passes is flat, about 10 and rising slowly as noise vanishes.

*Greedy coordinate descent* finds a coordinate if its score stands out by about log p times the noise, so
steps are few where noise or features are many. A clip well below a typical contribution saves noise, and a
long step makes up for what it takes from the slope; as noise vanishes, both go to where nothing is clipped.

*Frank-Wolfe* errs by the smoothness times the square of what a vertex adds to a margin over the number of
steps, and by what noise takes from each choice, which grows with the root of that number: steps are where the
sum of both is least. The clip is that of a row with about the root of p entries, all equal: rows of text have
fewer and those of dense tables more, but what is cut still votes for its feature.

*Dual coordinate descent* never forgets noise: what its steps added in all acts as a random linear term of the
objective, and is proportional to the clip times the number of passes. That product is also how far a dual
variable can go, and none needs to go farther than the largest slope: 0.8 of it is enough. If the penalty is
weak, predictions are right long before dual variables are, and the way is the one that gives the noise in
predictions that gradient descent allows itself, a slope that jumps counting as 0.4 times its bend. The clip
is a share of the largest step. Over a long way what it cuts is not lost, since a record goes on from where it
came to, and a share of 0.3 serves best; over a short one it is the share of gradient descent. Batches of a
fifth of the records lose nothing against all of them, in a fifth of the time; batches smaller than the number
of features would spend more time on noise than on records.

*Objective perturbation* adds a random linear term once. Its quadratic term does what stopping early does for
gradient descent: it has the strength, smoothness over steps times step size, that leaves as much noise in
predictions. It is never so weak that the curvature of a record alone takes more than a quarter of epsilon.
*Output perturbation* and *dual Frank-Wolfe* have the L2 part of the penalty for that, and the same clip.

The constants were chosen on real tables at epsilon 0.01 to 10 (for the greedy method on synthetic ones); the
optimum is flat. ``docs/defaults.md`` shows what they give.
"""

from __future__ import annotations

import math

from ..errors import UnsupportedProblem
from ..problem import Problem

PREDICTION_NOISE = 0.3
MOST_PRIVATE_STEPS = 500
LONGEST_STEP = 1.5
CROSSING_STEP = 0.08
MOST_VERTICES = 10_000
MOST_DUAL_STEPS = 1000
USUAL_RATE = 0.2
LEAST_FRACTION = 0.3
LONGEST_WAY = 0.8
JUMP = 0.4
CURVATURE_SHARE = 0.25
LARGEST_WEIGHT = 1e100


def require_bounded_slopes(problem: Problem) -> None:
    """Refuse to choose a clip for slopes of any size."""
    if not math.isfinite(problem.slope_bound()):
        raise UnsupportedProblem(
            f"the slopes of {problem.loss.name} have no bound: give the solver a clip, or Bounds a target"
        )


def clip_fraction(problem: Problem, noise: float) -> float:
    """Clip over the largest gradient norm."""
    require_bounded_slopes(problem)
    if problem.loss.lipschitz(problem.bounds.target) <= problem.slope_bound():
        return min(max(0.5 * (2e-3 / noise) ** 0.25, 0.5), 1.0)
    return min(max(0.5 * (8e-3 / noise) ** 0.25, 0.25), 2.0)


def gradient_descent(problem: Problem, p: int, noise: float, clip: float | None) -> tuple[int, float, float]:
    """(steps, clip, step_size) of gradient descent; a clip that is given is kept."""
    clip, fraction = _clip(problem, p, noise, clip)
    smoothness, stretch = problem.smoothness(p), problem.stretch()
    time = PREDICTION_NOISE * stretch / (noise * fraction)
    if problem.penalty.strong_convexity > 0:
        time = min(time, max(1.0, 5 * smoothness / problem.penalty.strong_convexity))
    steps = min(max(math.ceil(time), 1), MOST_PRIVATE_STEPS)
    return steps, clip, min(time / steps, max(LONGEST_STEP, CROSSING_STEP * stretch)) / smoothness


def coordinate_descent(
    problem: Problem, p: int, noise: float, clip: float | None
) -> tuple[int, float, float]:
    """(steps, clip, step_size) of coordinate descent; a clip that is given is kept."""
    stretch = problem.stretch()
    passes = min(max(10 * (2e-3 / noise) ** 0.25, 1.0) * stretch, 50.0)
    steps = math.ceil(passes * problem.dimension(p))
    return steps, _clip(problem, p, noise, clip)[0], max(1.0, CROSSING_STEP * stretch)


def greedy_coordinate_descent(
    problem: Problem, p: int, noise: float, clip: float | None, norm: float, fill: float
) -> tuple[int, float, float]:
    """(steps, clip, step_size) of greedy coordinate descent; a clip that is given is kept.

    ``norm`` is the norm of a typical row, and ``fill`` the typical size of an entry over the one that the
    second moments in use are computed for.
    """
    ease = max(math.sqrt(8e-3 / noise), 1.0)
    if clip is None:
        require_bounded_slopes(problem)
        bounded = problem.loss.lipschitz(problem.bounds.target) <= problem.slope_bound()
        usual, most = (0.25, 1.0) if bounded else (0.08, 2.0)
        clip = min(ease * usual, most / fill) * problem.slope_bound() * norm
    steps = math.ceil(min(0.6 / (noise * math.log(1 + problem.dimension(p))), MOST_PRIVATE_STEPS))
    return steps, clip, max(4.0 / ease, 1.0) * problem.stretch() / fill**2


def frank_wolfe(
    problem: Problem, p: int, noise: float, clip: float | None, radius: float
) -> tuple[int, float, float]:
    """(steps, clip, clip of the intercept) of Frank-Wolfe; a clip that is given is kept."""
    slope, largest = problem.slope_bound(), float(problem.bounds.features(p).max())
    if clip is None:
        require_bounded_slopes(problem)
        clip = slope * min(largest, problem.bounds.radius(p) * p**-0.25)
    if not math.isfinite(slope):
        slope = clip / largest  # beyond it the clip cuts the largest entry, too
    ease = problem.bend() * radius * clip / (slope**2 * noise * math.log(2 * p))
    steps = min(max(math.ceil((0.45 * ease) ** (2 / 3)), 1), MOST_VERTICES)
    return steps, clip, slope * problem.constant(p)


def dual_coordinate_descent(
    problem: Problem,
    n: int,
    p: int,
    noise: float,
    batch_size: int | None,
    clip: float | None,
    steps: int | None,
    overlap: float,
    intercept: float,
) -> tuple[int, float, int]:
    """(batch_size, clip, steps) of dual coordinate descent; those that are given are kept.

    ``intercept`` is the squared constant feature over the strength of the intercept's L2 part.
    """
    batch_size = min(batch_size or max(math.ceil(n * USUAL_RATE), p), n)
    smoothness = problem.bend()
    bend = smoothness if math.isfinite(problem.loss.smoothness()) else JUMP * smoothness
    weakest, rate = problem.penalty.strong_convexity, batch_size / n
    answered = (1 + overlap * (batch_size - 1)) / n
    weight = min(answered * (problem.bounds.radius(p) ** 2 / weakest + intercept), LARGEST_WEIGHT)
    whole = problem.slope_bound() * problem.radius(p)
    way = min(PREDICTION_NOISE * weakest / (noise * bend * problem.radius(p) ** 2), LONGEST_WAY)
    if clip is None:
        most = clip_fraction(problem, noise)
        least = way * (1 + weight * smoothness) / (rate * (steps or MOST_DUAL_STEPS))
        fraction = max(most + (LEAST_FRACTION - most) * way / LONGEST_WAY, least)
        fraction = min(fraction, max(most, LEAST_FRACTION))
        clip = fraction * whole / (1 + weight * smoothness)
    if steps is None:
        steps = math.ceil(min(max(way * whole / (rate * clip), 1), MOST_DUAL_STEPS))
    return batch_size, clip, steps


def output_perturbation(problem: Problem, p: int, noise: float, clip: float | None) -> float:
    """The clip of output perturbation; one that is given is kept, but is no more than any gradient."""
    largest = problem.loss.lipschitz(problem.bounds.target) * problem.radius(p)
    return min(_clip(problem, p, noise, clip)[0], largest)


def objective_perturbation(
    problem: Problem,
    n: int,
    p: int,
    noise: float,
    epsilon: float,
    clip: float | None,
    quadratic: float | None,
) -> tuple[float, float]:
    """(clip, quadratic) of objective perturbation; those that are given are kept.

    ``epsilon`` is that of one fit.
    """
    clip, fraction = output_perturbation(problem, p, noise, clip), _clip(problem, p, noise, clip)[1]
    if quadratic is None:
        wanted = problem.smoothness(p) / problem.stretch() * noise * fraction / PREDICTION_NOISE
        least = problem.smoothness(p) / (n * math.expm1(min(CURVATURE_SHARE * epsilon, 100.0)))
        quadratic = max(max(wanted, least) - problem.penalty.strong_convexity, 0.0)
    return clip, quadratic


def _clip(problem: Problem, p: int, noise: float, given: float | None) -> tuple[float, float]:
    """The clip, and its share of the largest gradient norm."""
    if given is not None:
        return given, clip_fraction(problem, noise) if math.isfinite(problem.slope_bound()) else 1.0
    fraction = clip_fraction(problem, noise)
    return fraction * problem.slope_bound() * problem.radius(p), fraction

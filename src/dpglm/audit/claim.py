"""What is claimed about a mechanism, and what observations contradict it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import minimize_scalar

from ..accounting import Event, compose

_LARGEST_EPSILON = 700.0
_WIDEST = 1024.0


@dataclass(frozen=True)
class Claim:
    """An (epsilon, delta), and the event behind it where that is known.

    Parameters
    ----------
    epsilon, delta : float
        The promise.
    event : Event, optional
        What was run, as the accountant sees it. It says more than (epsilon, delta): a whole curve, which
        can be contradicted where the one point cannot. Both must hold.
    """

    epsilon: float
    delta: float
    event: Event | None = None

    def allows(self, false_alarms: float, hits: float) -> bool:
        """Whether a test may have these rates if the claim is true.

        Parameters
        ----------
        false_alarms, hits : float
            How often the test says "first" about the second table, and about the first.
        """
        if hits > math.exp(min(self.epsilon, _LARGEST_EPSILON)) * false_alarms + self.delta:
            return False
        if self.event is None or hits <= false_alarms:
            return True
        curve = compose(self.event)

        def slack(epsilon: float) -> float:
            return math.exp(epsilon) * false_alarms + curve.delta(epsilon) - hits

        # Convex in e**epsilon, so a descent finds the least.
        largest = math.log(hits / false_alarms) if false_alarms > 0 else 30.0
        best = minimize_scalar(slack, bounds=(0.0, largest), method="bounded")
        return bool(min(best.fun, slack(0.0)) >= 0)

    def allows_advantage(self, advantage: float, factor: float = 1.0) -> bool:
        """Whether a test may have so many more hits than false alarms.

        An event allows its delta at epsilon 0. ``factor`` makes this the claim that all noise of the event
        is so many times as large.
        """
        odds = math.exp(-self.epsilon)
        if factor == 1.0 and advantage > (1 - odds + 2 * self.delta * odds) / (1 + odds):
            return False
        return self.event is None or advantage <= compose(self.event.scaled(factor)).delta(0.0)

    def explained(self, advantage: float) -> float:
        """The epsilon, at the claim's delta, of as much noise of the claimed kind as an advantage allows.

        All noise of the event is multiplied by the largest factor under which the advantage is possible. The
        result is a lower bound on epsilon if the noise is what the event says but for its size; for Gaussian
        noise it is known as the mu estimator.
        """
        if self.event is None or self.allows_advantage(advantage, _WIDEST):
            return 0.0
        low = high = 1.0
        while self.allows_advantage(advantage, high):
            low, high = high, 2 * high
        while not self.allows_advantage(advantage, low):
            low, high = low / 2, low
            if low < 1 / _WIDEST:
                return math.inf
        while high > low * (1 + 1e-3):
            middle = math.sqrt(low * high)
            if self.allows_advantage(advantage, middle):
                low = middle
            else:
                high = middle
        return compose(self.event.scaled(high)).epsilon(self.delta)

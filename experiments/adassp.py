"""AdaSSP and BoostedAdaSSP, the published private linear regressions, from their formulas with exact prices.

Wang (2018), "Revisiting differentially private linear regression", and Tang, Aydore, Kearns, Rho, Roth, Wang,
Wang and Wu (2023), "Improved differentially private regression via gradient boosting". A third of mu² each
pays for the least eigenvalue of the Gram matrix, for the matrix, and for the products of features with
targets; boosting splits the last into rounds and fits what is left of the targets, clipped. Noise is Gaussian
at its exact price for replaced records, where the papers use looser formulas. Nothing here is cryptographic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from inference_tables import Vector

from dpglm.accounting import gaussian_mu

FAILURE = 0.05
"""Chance that noise of the matrix is larger than its penalty assumes, as published."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients for features in [-1, 1], the constant last, and the declared range of targets."""

    w: Vector
    target: tuple[float, float]

    def predict(self, X: Vector) -> Vector:
        low, high = self.target
        scaled = np.clip(X @ self.w[:-1] + self.w[-1], -1, 1)
        return np.asarray((low + high) / 2 + (high - low) / 2 * scaled)


def fit(
    X: Vector, y: Vector, target: tuple[float, float], epsilon: float, rounds: int, rng: np.random.Generator
) -> Fitted:
    """AdaSSP, or with several rounds BoostedAdaSSP, of features in [-1, 1]."""
    low, high = target
    left = (np.clip(y, low, high) - (low + high) / 2) / ((high - low) / 2)
    rows = np.column_stack([X, np.ones(len(X))])
    n, d = rows.shape
    delta, radius = 1 / n**2, math.sqrt(d)
    noise = math.sqrt(3) / gaussian_mu(epsilon, delta)  # deviation of each part, for sensitivity 1
    gram = rows.T @ rows
    # Replacing a record moves eigenvalues by radius² and the matrix by sqrt(2) radius² in Frobenius norm.
    least = np.linalg.eigvalsh(gram)[0] + noise * radius**2 * rng.standard_normal()
    least = max(least - noise * radius**2 * math.sqrt(math.log(6 / delta)), 0.0)
    drawn = rng.standard_normal((d, d))
    gram = gram + math.sqrt(2) * radius**2 * noise * (drawn + drawn.T) / 2
    spectral = math.sqrt(2) * radius**2 * noise * math.sqrt(d * math.log(2 * d**2 / FAILURE))
    inverse = np.linalg.pinv(gram + max(spectral - least, 0.0) * np.eye(d))
    w = np.zeros(d)
    for _ in range(rounds):
        products = rows.T @ np.clip(left - rows @ w, -1, 1)  # moves by 2 radius
        w = w + inverse @ (products + 2 * radius * noise * math.sqrt(rounds) * rng.standard_normal(d))
    return Fitted(w, target)

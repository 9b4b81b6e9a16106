"""A small table with labels and targets, and what is declared for a few steps on it."""

import numpy as np

from dpglm import Bounds
from dpglm.solvers import GradientDescent

N, P = 60, 3
X = np.random.default_rng(0).uniform(-1, 1, (N, P))
LABELS = np.where(X[:, 0] > 0, 1, 0)
TARGET = 0.5 * X[:, 0]
BOUNDS = Bounds(row_norm=1.5, target=(-1, 1))
DECLARED = {"classes": [0, 1], "random_state": 3, "solver": GradientDescent(steps=3)}
REGRESSION = {"bounds": BOUNDS, "random_state": 3, "solver": GradientDescent(steps=3)}

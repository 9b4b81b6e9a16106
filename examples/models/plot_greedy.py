"""
Sparse truth with greedy descent
================================

Ten of 2,000 features matter. Gradient descent adds noise to every coefficient in every step. Greedy
coordinate descent selects one feature at a time, privately, and changes only this one: its noise hardly grows
with the number of features, and most coefficients stay exactly zero.
"""

# %%
# The table
# ---------
import numpy as np

from dpglm import Bounds, Lasso
from dpglm.solvers import GradientDescent, GreedyCoordinateDescent

rng = np.random.default_rng(0)
n, p = 10_000, 2_000
X = rng.uniform(-1, 1, (n, p))
truth = np.zeros(p)
truth[:10] = [0.3, -0.3, 0.25, -0.25, 0.2, -0.2, 0.2, -0.2, 0.15, -0.15]
y = X @ truth + rng.normal(0, 0.1, n)

# %%
# Two solvers, one promise
# ------------------------
bounds = Bounds(feature=1.0, target=(-1.5, 1.5))
fits = {
    "greedy descent": Lasso(2.0, alpha=1e-3, bounds=bounds, solver=GreedyCoordinateDescent(steps=15)),
    "gradient descent": Lasso(2.0, alpha=1e-3, bounds=bounds, solver=GradientDescent()),
}
for name, model in fits.items():
    model.fit(X, y)
    print(f"{name:17} R² {model.score(X, y):5.2f}, {np.count_nonzero(model.coef_):5} coefficients are not 0")

# %%
# What was found
# --------------
import matplotlib.pyplot as plt

figure, panels = plt.subplots(1, 2, sharey=True, figsize=(8, 3.6))
for panel, (name, model) in zip(panels, fits.items(), strict=True):
    panel.plot(model.coef_, ".", ms=4, label="private fit")
    panel.plot(np.arange(10), truth[:10], "_", ms=12, mew=2, color="black", label="truth")
    panel.set(title=name, xlabel="feature", xscale="symlog")
panels[0].set_ylabel("coefficient")
panels[0].legend(loc="upper right")
plt.show()

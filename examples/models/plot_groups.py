"""
Groups and structured norms
===========================

A feature of a sensor, a gene or a word often comes with others of its kind. If the groups are known, a
penalty can select whole groups: there are fewer of them to choose from, and noise misleads less.
"""

# %%
# Twenty groups of five features; the features of three groups matter.
import numpy as np

from dpglm import Bounds, GLMRegressor
from dpglm.penalties import Cardinality, GroupCover, Submodular
from dpglm.solvers import ObjectivePerturbation

rng = np.random.default_rng(0)
n, p = 8_000, 100
groups = [range(start, start + 5) for start in range(0, p, 5)]
X = rng.uniform(-1, 1, (n, p)) / 5
truth = np.zeros(p)
truth[[*groups[2], *groups[9], *groups[15]]] = np.repeat([0.5, -0.5, 0.4], 5)
y = X @ truth + rng.normal(0, 0.1, n)

# %%
# The same promise with a plain and with a grouped penalty. A group costs as much as its largest coefficient,
# so its strength is larger.
bounds = Bounds(row_norm=1.4, target=(-1.5, 1.5))
penalties = {
    "single features": Submodular(4e-3, Cardinality(), l2=1e-3),
    "groups": Submodular(1.5e-2, GroupCover(groups), l2=1e-3),
}
fits = {
    name: GLMRegressor(epsilon=1.0, penalty=penalty, bounds=bounds, solver=ObjectivePerturbation())
    .fit(X, y)
    .coef_
    for name, penalty in penalties.items()
}

# %%
import matplotlib.pyplot as plt

figure, panels = plt.subplots(2, 1, sharex=True, sharey=True, figsize=(7.6, 4.4))
for panel, (name, values) in zip(panels, fits.items(), strict=True):
    for k, group in enumerate(groups):
        panel.axvspan(group[0] - 0.5, group[-1] + 0.5, color="black", alpha=0.04 if k % 2 else 0, lw=0)
    panel.step(np.arange(p), truth, where="mid", color="black", lw=1, ls="--", label="truth")
    panel.bar(np.arange(p), values, label="private fit")
    panel.set(title=f"Penalty on {name}", ylabel="coefficient")
panels[0].legend(ncols=2, loc="lower right")
panels[1].set_xlabel("feature")
plt.show()

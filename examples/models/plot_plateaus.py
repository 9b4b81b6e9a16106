"""
Plateaus: bins that are equal
=============================

A number that is cut into fine bins says at which values an effect changes, but each bin has few records, and
noise gives each a coefficient of its own. Total variation draws neighbouring bins to equal coefficients.
"""

# %%
# The income of people over their age, which has three steps.
import numpy as np

from dpglm import GLMRegressor, make_private_pipeline
from dpglm.penalties import L2
from dpglm.schema import Number, Schema, Target
from dpglm.solvers import ObjectivePerturbation

rng = np.random.default_rng(0)
n = 20_000
age = rng.uniform(18, 78, n)
mean = np.select([age < 25, age < 40, age < 65], [15.0, 32.0, 40.0], 22.0)
income = np.clip(mean + 15 * rng.standard_normal(n), 0, 80)

# %%
# One bin for each year. ``fused=True`` says that they are neighbours, and the penalty of the schema uses it.
# A weak quadratic term draws the predictions less to the middle, and lets more noise in, which the penalty
# levels.
schema = Schema({"age": Number(18, 78, cuts=list(range(19, 78)), fused=True), "income": Target(0, 80)})
penalties = {"ridge": L2(1e-4), "total variation": schema.penalty(0.05)}
years = np.arange(18, 78) + 0.5
fits = {}
for name, penalty in penalties.items():
    estimator = GLMRegressor(epsilon=1.0, penalty=penalty, solver=ObjectivePerturbation(quadratic=5e-4))
    model = make_private_pipeline(schema, estimator).fit({"age": age, "income": income})
    fits[name] = model.predict({"age": years})

# %%
import matplotlib.pyplot as plt

truth = np.select([years < 25, years < 40, years < 65], [15.0, 32.0, 40.0], 22.0)
figure, panels = plt.subplots(1, 2, sharey=True, figsize=(7.6, 3.2))
for panel, (name, values) in zip(panels, fits.items(), strict=True):
    panel.step(years, truth, where="mid", color="black", lw=1, ls="--", label="truth")
    panel.step(years, values, where="mid", label="private fit")
    panel.set(title=name, xlabel="age")
panels[0].set_ylabel("predicted income")
panels[0].legend(loc="lower center")
figure.tight_layout()
plt.show()

"""
Counts with exposure
====================

How many claims does a driver make in a year? Policies run for different times, so the model has an
*exposure*: the expected count is the rate times the time. An exposure is private like the rest of the record,
and costs nothing more.
"""

# %%
# Policies
# --------
import numpy as np
import pandas as pd

from dpglm import Bounds, PoissonRegressor
from dpglm.solvers import Newton

rng = np.random.default_rng(0)
n = 100_000
age = rng.uniform(18, 80, n)
policies = pd.DataFrame({"young": np.clip((30 - age) / 12, 0, 1), "old": np.clip((age - 65) / 15, 0, 1)})
policies["city"] = rng.integers(0, 2, n)
years = rng.uniform(0.1, 1.0, n)
rate = np.exp(-1.8 + 1.1 * policies["young"] + 0.5 * policies["old"] + 0.3 * policies["city"])
claims = rng.poisson(years * rate)

# %%
# The fit
# -------
# A count has no upper limit of its own, so its range is declared, and the largest mean that a tariff would
# expect. Narrow ranges mean little noise.
bounds = Bounds(feature=[(0, 1)] * 3, target=(0, 2), offset=(np.log(0.1), 0.0))
model = PoissonRegressor(epsilon=1.0, alpha=0, means=(0, 0.7), bounds=bounds, solver=Newton())
model.fit(policies, claims, exposure=years)
print(model.summary())

# %%
# Claims a year by age
# --------------------
import matplotlib.pyplot as plt

ages = np.linspace(18, 80, 63)
grid = pd.DataFrame({"young": np.clip((30 - ages) / 12, 0, 1), "old": np.clip((ages - 65) / 15, 0, 1)})
figure, axes = plt.subplots()
for city, label in enumerate(["country", "city"]):
    true = np.exp(-1.8 + 1.1 * grid["young"] + 0.5 * grid["old"] + 0.3 * city)
    axes.plot(ages, model.predict(grid.assign(city=city)), label=f"{label}, private", lw=2.2)
    axes.plot(ages, true, color="black", ls="--", lw=1, label="truth" if city else None)
axes.set(xlabel="age of the driver", ylabel="claims a year", title="Claim frequency, epsilon = 1")
axes.set_ylim(0)
axes.legend()
plt.show()

"""
Several rows per person
=======================

A promise about one record protects a visit, not a patient. If a person may have many records, tell the fit
whose they are: then neighbouring tables differ in *all* records of one person.
"""

# %%
# Visits of patients
# ------------------
# 3,000 patients with 1 to 19 visits each. What a patient is like shows in all visits, so they are not
# independent.
import numpy as np

from dpglm import Bounds, LinearRegression
from dpglm.solvers import Newton

rng = np.random.default_rng(0)
visits = rng.integers(1, 20, 3_000)
patient = np.repeat(np.arange(3_000), visits)
dose = np.repeat(rng.uniform(-1, 1, 3_000), visits)
response = 0.3 * dose + np.repeat(rng.normal(0, 0.2, 3_000), visits) + rng.normal(0, 0.1, len(patient))
print(len(patient), "visits of", len(visits), "patients")

# %%
# Two promises
# ------------
# The first fit protects single visits. The second protects patients: each counts once, however many visits
# there are, and at most 20 of them are used.
X = dose[:, None]
of_visits = Bounds(feature=1.0, target=(-1.5, 1.5))
of_patients = Bounds(feature=1.0, target=(-1.5, 1.5), rows_per_unit=20)
fits = {
    "visits\n(too short)": LinearRegression(2.0, bounds=of_visits, solver=Newton()).fit(X, response),
    "patients": LinearRegression(2.0, bounds=of_patients, solver=Newton()).fit(X, response, units=patient),
}
print(fits["patients"].privacy_.relation)

# %%
# What it costs
# -------------
# The interval of the second fit is longer for two reasons. It counts that visits of a patient are alike,
# which the first one ignores: that is right with or without privacy. And its noise hides a whole patient.
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7.2, 2.6))
for place, (name, model) in enumerate(fits.items()):
    block = model.summary().blocks[0]
    value, error = block.values[0], block.standard_errors[0]
    axes.errorbar(value, place, xerr=1.96 * error, fmt="o", ms=7, capsize=5, color=f"C{place}")
    print(f"{name.splitlines()[0]:9} {value:.3f} +- {1.96 * error:.3f}")
axes.axvline(0.3, color="black", ls="--", lw=1)
axes.set(xlabel="effect of the dose, 95 % intervals; the dashed line is the truth", ylim=(-0.6, 1.6))
axes.set_yticks([0, 1], list(fits))
axes.set_title("What is protected at epsilon = 2")
plt.show()

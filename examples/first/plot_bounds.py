"""
Bounds and what they cost
=========================

Noise is scaled to what one record may contribute, and that is what ``Bounds`` declare. A range that is too
wide adds noise; one that is too narrow cuts values. Neither harms privacy: only the accuracy changes.
"""

# %%
# Ages and incomes explain a rent. The true range of rents is about 200 to 3,200.
import matplotlib.pyplot as plt
import numpy as np

from dpglm import Bounds, LinearRegression

rng = np.random.default_rng(0)
n = 4_000
age, income = rng.uniform(18, 90, n), rng.uniform(0, 200_000, n)
X = np.column_stack([age, income])
rent = 200 + 0.012 * income + 4 * age + rng.normal(0, 100, n)

# %%
# The same fit with declared ranges from four tenths of the true size to a hundred times that size.
factors = [0.4, 0.6, 0.8, 1, 2, 5, 10, 30, 100]


def scores(factor, fits=6):
    """R² of fits whose declared ranges are `factor` times the true ones."""
    ranges = Bounds(feature=[(18, 18 + 72 * factor), (0, 200_000 * factor)], target=(0, 3_200 * factor))
    model = LinearRegression(epsilon=1.0, bounds=ranges)
    return [model.fit(X, rent).score(X, rent) for _ in range(fits)]


curve = np.array([scores(factor) for factor in factors])

# %%
figure, axes = plt.subplots()
axes.fill_between(factors, curve.min(axis=1), curve.max(axis=1), alpha=0.25, lw=0)
axes.plot(factors, np.median(curve, axis=1), marker="o", label="median and range of six fits")
axes.axvline(1, color="black", ls="--", lw=1)
axes.text(1.06, 0.02, "the true range", rotation=90)
axes.set_xscale("log")
axes.set_xticks([0.4, 1, 2, 5, 10, 30, 100], ["0.4", "1", "2", "5", "10", "30", "100"], minor=False)
axes.minorticks_off()
axes.set_ylim(-0.1, 1.02)
axes.set(
    xlabel="declared range / true range", ylabel="R²", title="Too wide costs noise, too narrow cuts values"
)
axes.legend(loc="upper right")
plt.show()

# %%
# If nobody knows a range, it can be learnt from the records for a share of the budget:
# ``Number(learn=True, widest=(0, 1e6))`` in a schema.

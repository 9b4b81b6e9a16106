"""
Intervals for a regression
==========================

Statisticians fit a model to read its coefficients. ``Newton`` releases them with standard errors that count
both sampling and the noise of privacy, on the scale of the columns. The intervals cost no budget of their
own.
"""

# %%
# A table of rents
# ----------------
import numpy as np
import pandas as pd

from dpglm import Bounds, LinearRegression
from dpglm.solvers import Newton

rng = np.random.default_rng(0)
n = 20_000
table = pd.DataFrame(
    {
        "age": rng.uniform(0, 100, n),
        "area": rng.uniform(20, 180, n),
        "minutes to town": rng.uniform(0, 60, n),
        "floor": rng.integers(0, 8, n),
    }
)
truth = [-1.5, 9.0, -6.0, 0.0]
rent = 400 + table.to_numpy() @ truth + rng.normal(0, 150, n)

# %%
# The fit
# -------
# Ranges are declared in the units of the columns, before anybody looks.
bounds = Bounds(feature=[(0, 100), (20, 180), (0, 60), (0, 10)], target=(0, 3_000))
model = LinearRegression(epsilon=1.0, solver=Newton(), bounds=bounds).fit(table, rent)
summary = model.summary()
print(summary)

# %%
# Private and ordinary intervals
# ------------------------------
# The ordinary least-squares fit is not private; it is shown because these records are made up.
import matplotlib.pyplot as plt

rows = np.column_stack([table, np.ones(n)])
plain, residual = np.linalg.lstsq(rows, rent)[:2]
errors = np.sqrt(residual / n * np.diagonal(np.linalg.inv(rows.T @ rows)))
private = summary.blocks[0]

figure, axes = plt.subplots(1, 4, figsize=(8.6, 2.9), sharey=True)
for j, (panel, name) in enumerate(zip(axes, table, strict=True)):
    panel.errorbar(private.values[j], 1, xerr=1.96 * private.standard_errors[j], fmt="o", capsize=4)
    panel.errorbar(plain[j], 0, xerr=1.96 * errors[j], fmt="o", capsize=4, color="grey")
    panel.axvline(truth[j], color="black", ls="--", lw=1)
    panel.set(title=name, ylim=(-0.6, 1.6))
    panel.title.set_fontsize(9.5)
axes[0].set_yticks([1, 0], ["private,\nepsilon = 1", "not private"])
figure.supxlabel("change of the rent per unit, 95 % intervals; the dashed line is the truth")
plt.show()

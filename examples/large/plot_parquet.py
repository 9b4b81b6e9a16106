"""
Parquet larger than memory
==========================

A table on disk is read block by block, in every pass anew. Sums over records are exact, so the model is the
same, bit for bit, as that of a table in memory.
"""

# %%
# Some files
# ----------
# They stand for files that exist. A whole year of them would be read in the same way.
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as datasets
import pyarrow.parquet as parquet

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for month in range(1, 7):
    n = 50_000
    distance, hour = rng.uniform(0, 30, n), rng.uniform(0, 24, n)
    rush = np.abs(hour - 17) < 2
    minutes = 4 + 2.1 * distance + 6 * rush + rng.normal(0, 4, n)
    table = pa.table({"distance": distance, "rush": rush.astype(float), "minutes": minutes})
    parquet.write_table(table, folder / f"month{month}.parquet")
rides = datasets.dataset(folder)
print(rides.count_rows(), "rides in", len(rides.files), "files")

# %%
# The fit
# -------
# The target is the name of a column; the others are features. ``Newton`` needs five passes.
from dpglm import Bounds, LinearRegression
from dpglm.solvers import Newton

bounds = Bounds(feature=[(0, 40), (0, 1)], target=(0, 120))
model = LinearRegression(epsilon=0.5, solver=Newton(), bounds=bounds)
print(model.plan(rides.count_rows(), 2, resident=False))
model.fit(rides, "minutes")
print(model.summary())

# %%
# Duration over distance
# ----------------------
import matplotlib.pyplot as plt

km = np.linspace(0, 30, 50)
figure, axes = plt.subplots()
for rush, label in ((1, "rush hour"), (0, "other hours")):
    axes.plot(km, model.predict(np.column_stack([km, np.full(50, rush)])), lw=2.2, label=label)
    axes.plot(km, 4 + 2.1 * km + 6 * rush, color="black", ls="--", lw=1, label=None if rush else "truth")
axes.set(xlabel="distance in km", ylabel="minutes", title="300,000 rides from Parquet files, epsilon = 0.5")
axes.legend()
plt.show()

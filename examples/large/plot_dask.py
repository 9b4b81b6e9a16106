"""
A Dask cluster
==============

If there is a client of a ``distributed`` cluster, blocks of a Dask array stay on its workers. A pass is one
task for each worker, which adds up its blocks in whole numbers; the driver draws all noise. So the model does
not depend on how the table is cut or on who adds it up.
"""

# %%
# A cluster and a table
# ---------------------
# Two workers in this process stand for a cluster.
import dask.array as da
import numpy as np
from distributed import Client

rng = np.random.default_rng(0)
rows = rng.uniform(-1, 1, (60_000, 8))
weights = np.array([2.0, -1.5, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0])
labels = (rows @ weights + rng.logistic(size=60_000) > 0).astype(int)
X, y = da.from_array(rows, chunks=(10_000, 8)), da.from_array(labels, chunks=10_000)
X

# %%
# The same fit on the cluster and in memory
# -----------------------------------------
# A seed makes the two fits comparable. It also makes them *not private*, and the fit says so: never use one
# for a release.
import warnings

from dpglm import Bounds, LogisticRegression
from dpglm.errors import PrivacyWarning

warnings.simplefilter("ignore", PrivacyWarning)
settings = {"epsilon": 1.0, "classes": [0, 1], "bounds": Bounds(feature=1.0), "random_state": 1}
with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
    clustered = LogisticRegression(**settings).fit(X, y)
resident = LogisticRegression(**settings).fit(rows, labels)
print("same bits:", np.array_equal(clustered.coef_, resident.coef_))

# %%
# Coefficients
# ------------
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7.2, 3.4))
place = np.arange(8)
axes.bar(place - 0.2, clustered.coef_[0], 0.38, label="cluster")
axes.bar(place + 0.2, resident.coef_[0], 0.38, label="one process")
axes.plot(place, weights, "k_", ms=26, label="truth")
axes.set(xlabel="feature", ylabel="coefficient", title="Six blocks on two workers, epsilon = 1")
axes.legend()
plt.show()

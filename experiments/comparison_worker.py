"""Fit another library's logistic regression in an environment of its own; `comparison.py` starts it.

    python comparison_worker.py LIBRARY TABLE.npz MODELS.npz EPSILON DELTA FITS

The table is dense, its rows have a public norm, and its labels are 0 and 1. No setting was tuned: those
that a library demands were written down before the first run, and are named on the page that shows the
figures.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

NORM = np.sqrt(14)
"""Adult has 14 attributes, and a row has a one for each that is known."""

Model = tuple[Any, float]
"""Coefficients and intercept."""


def diffprivlib(X: Any, y: Any, epsilon: float, delta: float) -> Model:
    """Objective perturbation with pure privacy, so `delta` is not used; rows have a declared norm."""
    from diffprivlib.models import LogisticRegression

    fit = LogisticRegression(epsilon=epsilon, data_norm=NORM).fit(X, y)
    return np.ravel(fit.coef_), float(np.ravel(fit.intercept_)[0])


def snapml(X: Any, y: Any, epsilon: float, delta: float) -> Model:
    """Dual coordinate descent; its delta is 0.01, whatever is asked for, and it has no intercept."""
    from snapml import LogisticRegression

    norm = np.sqrt(NORM**2 + 1)
    rows = np.column_stack([X, np.ones(len(X))]) / norm
    fit = LogisticRegression(privacy=True, privacy_epsilon=epsilon).fit(rows, np.where(y > 0, 1.0, -1.0))
    w = np.ravel(fit.coef_) / norm
    return w[:-1], float(w[-1])


def opacus(X: Any, y: Any, epsilon: float, delta: float) -> Model:
    """DP-SGD: 20 epochs, Poisson batches of 1,024 on average, Adam with rate 0.02, clip 1."""
    import torch
    from opacus import PrivacyEngine

    rows = torch.tensor(X, dtype=torch.float32)
    labels = torch.tensor(y, dtype=torch.float32)
    model = torch.nn.Linear(X.shape[1], 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, labels), batch_size=1_024)
    model, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.02), data_loader=loader,
        target_epsilon=epsilon, target_delta=delta, epochs=20, max_grad_norm=1.0,
    )  # fmt: skip
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(20):
        for batch, target in loader:
            optimizer.zero_grad()
            loss(model(batch)[:, 0], target).backward()
            optimizer.step()
    w, b = (value.detach().numpy() for value in model.parameters())
    return w.ravel(), float(b[0])


LIBRARIES = {"diffprivlib": diffprivlib, "snapml": snapml, "opacus": opacus}


def main(library: str, table: str, models: str, epsilon: str, delta: str, fits: str) -> None:
    """Read a table, write the models, their CPU time and the version of the library."""
    warnings.simplefilter("ignore")
    data = np.load(table)
    start = time.process_time()
    found = [LIBRARIES[library](data["X"], data["y"], float(epsilon), float(delta)) for _ in range(int(fits))]
    seconds = (time.process_time() - start) / len(found)
    np.savez(
        models, coef=[w for w, _ in found], intercept=[b for _, b in found], seconds=seconds,
        version=version(library),
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])

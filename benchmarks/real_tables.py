"""The real tables of benchmarks: Adult, which comes with dpglm, and RCV1 where it is at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpglm.datasets import load_adult

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def measure_both(measure: Callable[[str, Any, np.ndarray], None]) -> None:
    """Call ``measure(name, X, y)`` for each of them."""
    adult = load_adult()
    measure("Adult", adult.X, adult.y)
    folder = DATA / "rcv1_binary"
    if folder.exists():
        measure("RCV1 (CSR)", sp.load_npz(folder / "X_train.npz"), np.load(folder / "y_train.npy"))
    else:
        print("RCV1 is not at hand")

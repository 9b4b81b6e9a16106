"""One private full-batch gradient step against the two products that any gradient needs."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from timing import report, side_by_side

from dpglm import Bounds, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Logistic
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.queries import ClippedGradient


def main() -> None:
    """Measure dense and sparse tables."""
    rng = np.random.default_rng(0)
    tables = {
        "dense 10,000 x 1,000": rng.standard_normal((10_000, 1_000)),
        "dense 50,000 x 200": rng.standard_normal((50_000, 200)),
        "CSR 50,000 x 20,000, 0.2 % full": sp.random_array(
            (50_000, 20_000), density=0.002, format="csr", rng=rng
        ),
    }
    for name, X in tables.items():
        n, p = X.shape
        y = rng.choice([-1.0, 1.0], n)
        curator = Curator(as_data(X, y, Bounds(row_norm=1.0)), Neighbours.REPLACE_ONE, Randomness())
        query, w, r = ClippedGradient(Logistic(), 0.5), rng.standard_normal(p), rng.standard_normal(n)

        def private(curator: Curator = curator, query: ClippedGradient = query, w: np.ndarray = w) -> object:
            return curator.release(query, Gaussian(10.0), w)

        def products(X: object = X, w: np.ndarray = w, r: np.ndarray = r) -> object:
            return X @ w, X.T @ r

        report(
            f"gradient step / (X @ w and X.T @ r), {name}",
            *side_by_side(private, products, rounds=40),
            goal=1.5,
        )


if __name__ == "__main__":
    main()

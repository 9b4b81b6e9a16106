"""Tables that ship with dpglm: the Adult census table, as arrays and as raw files with their schema."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Adult", "RawAdult", "load_adult", "write_adult"]


class Adult(NamedTuple):
    """Training and test part of Adult: sparse 0/1 features and labels -1 (at most 50K) or 1 (more)."""

    X: sp.csr_array
    y: NDArray[np.int8]
    X_test: sp.csr_array
    y_test: NDArray[np.int8]
    feature_names: NDArray[np.str_]


def load_adult() -> Adult:
    """Load census records of 1994 that say whether a person earns more than 50,000 dollars a year.

    32,561 training and 16,281 test records with 123 binary features: the categories of eight
    attributes, and intervals of six numeric ones. Every row has 11 to 14 ones. The edges of the
    intervals were computed from the data by those who published this form of the table, which is
    not a private step.

    Returns
    -------
    Adult
        Named tuple ``(X, y, X_test, y_test, feature_names)``.

    References
    ----------
    B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, licence CC BY 4.0;
    binary form as in LIBSVM's a9a (J. Platt).

    Examples
    --------
    >>> from dpglm.datasets import load_adult
    >>> load_adult().X.shape
    (32561, 123)
    """
    path = resources.files(__package__).joinpath("adult.npz")
    with resources.as_file(path) as file, np.load(file) as stored:
        return Adult(
            _table(stored["indices"], stored["lengths"]),
            stored["y"],
            _table(stored["test_indices"], stored["test_lengths"]),
            stored["test_y"],
            stored["feature_names"],
        )


def _table(indices: NDArray[np.uint8], lengths: NDArray[np.uint8]) -> sp.csr_array:
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int32)]).astype(np.int32)
    return sp.csr_array((np.ones(len(indices)), indices.astype(np.int32), indptr), shape=(len(lengths), 123))


class RawAdult(NamedTuple):
    """Files of the raw Adult table."""

    train: Path
    test: Path
    schema: Path


def write_adult(folder: str | Path) -> RawAdult:
    """Write the raw Adult table, as compressed CSV, and a schema of it into a folder.

    32,561 training and 16,281 test records of the census of 1994 with 14 columns, missing values ("?"), and
    whether a person earns more than 50,000 dollars a year. The levels of the schema are those of the public
    documentation, its ranges follow from what the columns mean.

    Parameters
    ----------
    folder : str or Path
        It is made if it is not there.

    References
    ----------
    B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, licence CC BY 4.0.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_adult(folder).train.name)
    adult_train.csv.gz
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = RawAdult(*(place / name for name in ("adult_train.csv.gz", "adult_test.csv.gz", "adult.toml")))
    for path in files:
        with resources.files(__package__).joinpath(path.name).open("rb") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
    return files

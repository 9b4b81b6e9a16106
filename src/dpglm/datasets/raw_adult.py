"""The Adult census table as a raw file, with its schema."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path
from typing import NamedTuple


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

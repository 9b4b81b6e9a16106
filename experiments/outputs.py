"""What experiments leave behind: CSV files, and pictures where matplotlib is installed."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any


def write_csv(rows: Sequence[Any], kind: type, path: Path) -> None:
    """Write rows that are dataclasses of one kind."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(field.name for field in fields(kind))
        writer.writerows(astuple(row) for row in rows)


def write_mappings(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows that are mappings with the same keys."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def load_pyplot() -> Any | None:
    """Return matplotlib's pyplot for pictures in files, or say that there is none and return None."""
    try:
        import matplotlib
    except ImportError:
        print("No picture: it needs matplotlib (pip install dpglm[demo])")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot

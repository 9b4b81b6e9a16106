"""Files by the ends of their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import UnreadableFile
from . import arrow
from .lines import CsvFile, JsonLines
from .stream import Source

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".ndjson")
_ARROW = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc"}


def source_of_file(path: str | Path, columns: Sequence[str]) -> Source:
    """The table of a file, read anew in every pass.

    Parameters
    ----------
    path : str or Path
        CSV, TSV or JSON lines, also with .gz; Parquet, Arrow or Feather.
    columns : sequence of str
        Names that JSON lines are read by; other files have their own.
    """
    path = Path(path)
    if path.is_dir():
        raise UnreadableFile(
            f"{str(path)!r} is a folder: name one of its files, or give "
            f"pyarrow.dataset.dataset({str(path)!r}) to the model in Python"
        )
    if not path.is_file():
        why = ": a file is named, not a pattern" if set("*?[") & set(str(path)) else ""
        raise UnreadableFile(f"there is no file {str(path)!r}{why}")
    end = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if end in _SEPARATORS:
        return CsvFile(path, _SEPARATORS[end])
    if end in _JSON:
        return JsonLines(path, tuple(columns))
    if end in _ARROW and path.suffix != ".gz":
        return arrow.opened(path, _ARROW[end])
    known = ", ".join([*_SEPARATORS, *_JSON, *_ARROW])
    raise UnreadableFile(f"the name of the file {path.name!r} must end in one of {known}")

"""Files: CSV and JSON lines, with a record on each line; Parquet and Arrow, by the ends of their names.

A line that cannot be read is a record, too.

A blank line, on which nothing stands but spaces and tabs that separate nothing, is none, as for pandas.

What is on one line never changes what another line means: a quote that is not closed ends with its line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ..errors import UnreadableFile
from .adapters import arrow_cells, arrow_file
from .stream import Source

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".ndjson")
_ARROW = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc"}

UNREADABLE = object()
"""Value of every cell of a line that cannot be read."""

MAX_LINE = 1 << 20
"""Largest number of characters of a line that can be read."""

_MARKS = '"\r\x00\ufeff'
"""Quotes, and what a reader might take for the end of a line, of a text, or for the order of bytes."""

_CONTROL = "\r\n\x00\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What ends lines elsewhere, or texts: no name of a column has it."""

_ROWS = 1 << 15


@dataclass(frozen=True, eq=False)
class TextFile(Source):
    """A file with a record on each line that is not blank. Cells are read as they are, as text.

    Parameters
    ----------
    path : Path
        A file in UTF-8; it may be compressed, with a name that ends in .gz.
    """

    path: Path

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the columns."""

    @abstractmethod
    def cells(self, line: str) -> Sequence[Any] | None:
        """Split a line into one cell for each name; None if it cannot be read."""

    @property
    def skipped(self) -> int:
        """TextFile before the first record."""
        return 0

    @cached_property
    def n_samples(self) -> int:  # type: ignore[override]
        return sum(1 for _ in self._records())

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return len(self.names)

    @property
    def has_targets(self) -> bool:
        return False

    def blocks(self) -> Iterator[tuple[object, object]]:
        """Tables of cells by the names of columns."""
        records = self._records()
        while lines := list(islice(records, _ROWS)):
            yield self.table(lines), None

    def table(self, lines: list[str | None]) -> object:
        """A dict of lists of cells by the names of columns."""
        bad = [UNREADABLE] * len(self.names)
        rows = [(None if line is None else self.cells(line)) or bad for line in lines]
        return dict(zip(self.names, map(list, zip(*rows, strict=True)), strict=True))

    def _records(self) -> Iterator[str | None]:
        """TextFile of records; None for one that is too long."""
        lines = self.filled_lines()
        for _ in range(self.skipped):
            next(lines, None)
        yield from lines

    @property
    def blanks(self) -> str:
        """What a blank line is made of."""
        return " \t"

    def filled_lines(self) -> Iterator[str | None]:
        """All lines that are not blank."""
        blanks = self.blanks
        return (line for line in self.lines() if line is None or line.strip(blanks))

    def lines(self) -> Iterator[str | None]:
        """All lines, without their ends; None for one that is too long."""
        try:
            with self._opened() as file:
                while line := file.readline(MAX_LINE):
                    if line[-1] == "\n" or len(line) < MAX_LINE:
                        yield line.rstrip("\r\n")
                        continue
                    while line and line[-1] != "\n":
                        line = file.readline(MAX_LINE)
                    yield None
        except (OSError, EOFError, zlib.error):
            pass
        else:
            return
        raise UnreadableFile(f"the file {self.path.name!r} cannot be read")

    def _opened(self) -> IO[str]:
        raw: Any = gzip.open(self.path, "rb") if self.path.suffix == ".gz" else open(self.path, "rb")  # noqa: SIM115
        return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="\n")


@dataclass(frozen=True, eq=False)
class CsvFile(TextFile):
    """A file of values with a separator, whose first line that is not blank names the columns.

    Parameters
    ----------
    path : Path
    separator : str
    """

    separator: str = ","

    @property
    def skipped(self) -> int:
        return 1

    @cached_property
    def names(self) -> list[str]:
        header = next(self.filled_lines(), None)
        cells = self._split(header) if header and not header.isspace() else None
        # A return inside of the line is the end of another kind of line: records follow it.
        if cells is None or any(mark in name for name in cells for mark in _CONTROL):
            raise UnreadableFile(f"the file {self.path.name!r} {self._why_unnamed()}")
        return [name.strip() for name in cells]

    def _why_unnamed(self) -> str:
        """Why no first line names the columns, from what that line is made of."""
        start = ""
        with suppress(OSError, EOFError, zlib.error), self._opened() as file:
            start = file.readline(MAX_LINE).rstrip("\r\n")
        if "\x00" in start:
            return "has zero bytes in its first line, as one in UTF-16 or UTF-32 has: save it in UTF-8"
        if "\r" in start:
            return "ends its lines with carriage returns alone, as on old Macs: save it with line feeds"
        return "has no first line that names its columns"

    @property
    def blanks(self) -> str:
        return super().blanks.replace(self.separator, "")

    def cells(self, line: str) -> Sequence[str] | None:
        cells = self._split(line)
        return cells if cells is not None and len(cells) == len(self.names) else None

    def table(self, lines: list[str | None]) -> object:
        """As line by line, but by Arrow where separators are the only special characters."""
        whole = [line for line in lines if line is not None and line.count(self.separator) == self._inner]
        text = "".join(f"{line}\n" for line in whole)
        plain = len(whole) == len(lines) and not any(mark in text for mark in _MARKS)
        table = arrow_cells(text, self.names, self.separator) if plain else None
        return super().table(lines) if table is None or table.num_rows < len(lines) else table

    @cached_property
    def _inner(self) -> int:
        """Separators of a line."""
        return len(self.names) - 1

    def _split(self, line: str) -> list[str] | None:
        if '"' not in line:
            return line.split(self.separator)
        try:
            (cells,) = csv.reader([line], delimiter=self.separator, strict=True)
        except (csv.Error, ValueError):
            return None
        return cells


@dataclass(frozen=True, eq=False)
class JsonLines(TextFile):
    """A file with a JSON object on each line; its columns are declared.

    Parameters
    ----------
    path : Path
    declared : sequence of str
        Names of the columns that are read; other keys are not, and one that is not there is missing.
    """

    declared: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        return list(self.declared)

    def cells(self, line: str) -> Sequence[Any] | None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return [record.get(name) for name in self.declared] if isinstance(record, dict) else None


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
        return arrow_file(path, _ARROW[end])
    known = ", ".join([*_SEPARATORS, *_JSON, *_ARROW])
    raise UnreadableFile(f"the name of the file {path.name!r} must end in one of {known}")

"""How the cells of a column spell numbers, dates and levels, where that is declared.

A spelling takes what one cell holds to what it stands for, by the declaration and that cell alone. All that
follows reads the column as if its cells had been spelled in the usual way.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from .. import strict
from ..data.bounded_numbers import MISSING, OUTSIDE, UNKNOWN, UNREADABLE
from .cells import (
    BAD,
    NUMBER_WORDS,
    Cells,
    Kinds,
    Value,
    codes_of_levels,
    level_key,
    level_kinds,
    number_kinds,
    parse_number,
    value_of,
)

_SPACES = " \u00a0\u2009\u202f"
"""Space, no-break space, thin space, narrow no-break space: programs write any of them between thousands."""

_MARKS = ((".", None), (",", None), (".", ","), (",", "."), (",", " "), (".", " "), (".", "'"), (",", "'"))
"""Usual decimal marks and separators of thousands."""

_AROUND = re.compile(r"\s*([^\d\s+\-.,']*)\s*[+-]?\s*([^\d\s+\-.,']*)\s*[\d.,' \u00a0\u202f]+(.*)", re.DOTALL)

_LEVELS = "strings, numbers or booleans"


class Spelling(ABC):
    """What the cells of a column stand for."""

    @property
    def of_numbers(self) -> bool:
        """Whether a cell that is a number may stand for something else, too."""
        return False

    @abstractmethod
    def value(self, value: str | float, missing_texts: frozenset[str]) -> Value:
        """What a cell of this string, or of this number, stands for."""

    def read(self, cells: Cells) -> Cells:
        """What each of these cells stands for."""
        if cells.numbers is not None:
            if cells.is_time or not self.of_numbers:
                return cells
            numbers, places = np.unique(cells.numbers, return_inverse=True)
            values = [None if np.isnan(x) else x for x in numbers.tolist()]
            cells = replace(cells, numbers=None, values=values, places=places)
        values = [
            self.value(value, cells.missing_texts) if isinstance(value, str | float) else value
            for value in cells.values
        ]
        return replace(cells, values=values)


@dataclass(frozen=True)
class NumberSpelling(Spelling):
    """Numbers with another decimal mark, with separators of thousands, or with signs around them."""

    decimal: str
    thousands: str | None
    strip: str | Sequence[str]

    def __post_init__(self) -> None:
        _require_mark("decimal", self.decimal)
        if self.decimal.isspace():
            raise strict.wrong("decimal", self.decimal, "no space")
        if self.thousands is not None:
            _require_mark("thousands", self.thousands)
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands must differ, got {self.decimal!r} for both")
        for part in self.strip if isinstance(self.strip, str) else strict.sequence("strip", self.strip):
            if (
                not isinstance(part, str)
                or not part
                or part in ("+", "-", self.decimal)
                or any(letter.isdigit() for letter in part)
            ):
                raise strict.wrong("strip", self.strip, "characters, or a list of strings, without digits")

    def value(self, value: str | float, missing_texts: frozenset[str]) -> Value:
        if isinstance(value, float) or value.strip() in missing_texts:
            return value
        text = self._bare(value)
        sign = text[:1] if text[:1] in ("+", "-") else ""
        text = self._bare(text[len(sign) :])  # as in -$5
        if not self._number.fullmatch(text):
            number = NUMBER_WORDS.get((sign + text).lower())
        else:
            number = parse_number(sign + text.translate(self._translation))
        return BAD if number is None else number

    def _bare(self, text: str) -> str:
        """The text without what is to be removed from its ends."""
        forwards, backwards = self._ends
        text = text[forwards.match(text).end() :]  # type: ignore[union-attr]  # the empty string matches
        return text[: len(text) - backwards.match(text[::-1]).end()]  # type: ignore[union-attr]

    @cached_property
    def _ends(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        parts = sorted(map(str, self.strip), key=len, reverse=True)
        return _any_of(parts), _any_of([part[::-1] for part in parts])

    @cached_property
    def _number(self) -> re.Pattern[str]:
        """Digits, in groups if they are separated: three in the last one, two or three in those before."""
        mark, integer = re.escape(self.decimal), "[0-9]+"
        if self.thousands is not None:
            apart = f"[{re.escape(self._separators)}]"
            integer = f"(?:[0-9]{{1,3}}(?:{apart}[0-9]{{2,3}})*{apart}[0-9]{{3}}|[0-9]+)"
        return re.compile(f"(?:{integer}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]{{1,9}})?", re.ASCII)

    @cached_property
    def _translation(self) -> dict[int, int | None]:
        return str.maketrans(self.decimal, ".", self._separators)

    @property
    def _separators(self) -> str:
        return _SPACES if self.thousands in tuple(_SPACES) else self.thousands or ""


def _require_mark(name: str, mark: object) -> None:
    if not isinstance(mark, str) or len(mark) != 1 or mark.isalnum() or mark in "+-":
        raise strict.wrong(name, mark, 'one character that is no letter, digit or sign, such as ","')


def _any_of(parts: Sequence[str]) -> re.Pattern[str]:
    """Any number of these parts and of spaces."""
    return re.compile(f"(?:{'|'.join(map(re.escape, parts))}|\\s)*" if parts else r"\s*")


@dataclass(frozen=True)
class DateSpelling(Spelling):
    """Dates in the first of several formats that fits."""

    formats: tuple[str, ...]

    def value(self, value: str | float, missing_texts: frozenset[str]) -> Value:
        if isinstance(value, float) or (text := value.strip()) in missing_texts:
            return value
        found = (parse_date(format, text) for format in self.formats)
        return next((value_of(moment) for moment in found if moment is not None), BAD)


@dataclass(frozen=True)
class LevelSpelling(Spelling):
    """Levels with other spellings, of any case if so declared.

    Parameters
    ----------
    aliases : mapping of str to level
        Spellings, and the levels that they stand for.
    casefold : bool
    levels : sequence of str, numbers or booleans, optional
        Declared levels. None for levels that are learnt: a spelling does not depend on what is learnt.
    """

    aliases: Mapping[str, object]
    casefold: bool
    levels: Sequence[object] | None

    def __post_init__(self) -> None:
        self._meanings  # noqa: B018  # refuses what contradicts itself

    @property
    def of_numbers(self) -> bool:
        return any(isinstance(level_key(alias), float) for alias in self.aliases)

    def value(self, value: str | float, missing_texts: frozenset[str]) -> Value:
        key = self._folded(level_key(value))
        if key in self._meanings:
            return self._meanings[key]
        return value if isinstance(value, str) and value.strip() in missing_texts else key

    def _folded(self, key: float | str | None) -> float | str | None:
        return key.casefold() if self.casefold and isinstance(key, str) else key

    @cached_property
    def _meanings(self) -> dict[float | str | None, float | str | None]:
        """What each known spelling stands for, in the spelling of its level."""
        meanings = dict[float | str | None, float | str | None]()
        for level in self.levels or ():
            key = self._folded(level_key(level))
            if key in meanings:
                raise ValueError(f"casefold makes two levels the same: {level!r} and {meanings[key]!r}")
            meanings[key] = level_key(level)
        levels = dict(meanings)
        for alias, level in self.aliases.items():
            key, meaning = self._folded(level_key(alias)), self._folded(level_key(level))
            if key in (None, "") or meaning in (None, ""):
                raise strict.wrong("aliases", alias if key in (None, "") else level, _LEVELS)
            if key in levels:
                raise ValueError(f"the alias {alias!r} is a level already")
            if self.levels is not None and meaning not in levels:
                raise ValueError(f"the alias {alias!r} stands for {level!r}, which is none of the levels")
            spelt = levels.get(meaning, meaning)
            if meanings.setdefault(key, spelt) != spelt:
                raise ValueError(f"the alias {alias!r} stands for two levels")
        chained = [alias for alias, meaning in meanings.items() if meanings.get(meaning, meaning) != meaning]
        if chained and self.levels is None:
            raise ValueError(f"the alias {chained[0]!r} stands for an alias: state the level")
        return meanings


@dataclass(frozen=True, kw_only=True)
class NumberCells:
    """The declaration of columns of numbers: how their cells spell them."""

    decimal: str = "."
    thousands: str | None = None
    strip: str | Sequence[str] = ""

    def check_numbers(self) -> None:
        """Refuse a spelling that cannot be declared."""
        spelling = NumberSpelling(self.decimal, self.thousands, self.strip)
        if not isinstance(spelling.strip, str):
            object.__setattr__(self, "strip", tuple(spelling.strip))

    @property
    def spelling(self) -> Spelling | None:
        """How cells spell numbers; None if it is the usual way."""
        usual = (self.decimal, self.thousands) == (".", None) and not self.strip
        return None if usual else NumberSpelling(self.decimal, self.thousands, self.strip)

    @property
    def declared_range(self) -> tuple[float, float]:
        """The range that numbers are cut to; without limits while it is still to be learnt."""
        low, high = getattr(self, "low", None), getattr(self, "high", None)
        return (-math.inf, math.inf) if low is None or high is None else (low, high)

    def kinds(self, cells: Cells) -> Kinds:
        """What each cell is, by the reading that encodes it."""
        return number_kinds(cells.as_numbers(), *self.declared_range)

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        """What a cell can be besides fine."""
        ranged = self.declared_range != (-math.inf, math.inf)
        return (MISSING, UNREADABLE, OUTSIDE) if ranged else (MISSING, UNREADABLE)


@dataclass(frozen=True, kw_only=True)
class LevelCells:
    """The declaration of columns of levels: how their cells spell them."""

    aliases: Mapping[str, object] | None = None
    casefold: bool = False

    def check_levels(self) -> None:
        """Refuse spellings that cannot be declared."""
        strict.keep(self, casefold=strict.flag)
        if self.aliases is not None:
            if not isinstance(self.aliases, Mapping):
                raise strict.wrong("aliases", self.aliases, "a mapping from spellings to levels")
            if any(level_key(alias) is None for alias in self.aliases):
                raise strict.wrong("aliases", self.aliases, "a mapping from strings to levels")
            object.__setattr__(self, "aliases", {str(key): level for key, level in self.aliases.items()})
        self.spelling  # noqa: B018  # refuses what contradicts itself

    @property
    @abstractmethod
    def known_levels(self) -> Sequence[object]:
        """The levels by their codes."""

    @property
    def codes(self) -> dict[float | str, int]:
        """The code of each level by what it is compared by; two levels that are the same are refused."""
        return codes_of_levels("levels", self.known_levels)

    @property
    def declared_levels(self) -> Sequence[object] | None:
        """The levels that cells can spell; None if they are learnt."""
        return self.known_levels

    @property
    def pending_levels(self) -> bool:
        """Whether the levels are still to be learnt."""
        return False

    @property
    def spelling(self) -> Spelling | None:
        """How cells spell levels; None if only as they are declared."""
        if not self.aliases and not self.casefold:
            return None
        return LevelSpelling(self.aliases or {}, self.casefold, self.declared_levels)

    def level_codes(self, cells: Cells) -> NDArray[np.intp]:
        """The code of each cell's level."""
        return cells.as_codes(self.codes, declared=self.declared_levels is not None)

    @property
    def undeclared_kind(self) -> int:
        """What a cell is whose level is not declared."""
        return UNKNOWN

    def kinds(self, cells: Cells) -> Kinds:
        """What each cell is, by the reading that encodes it."""
        return level_kinds(self.level_codes(cells), self.undeclared_kind)

    @property
    def possible_kinds(self) -> tuple[int, ...]:
        """What a cell can be besides fine."""
        return (MISSING, UNREADABLE, *([UNKNOWN] if self.undeclared_kind == UNKNOWN else []))


def date_formats(format: object) -> tuple[str, ...]:
    """The formats of a column of dates, checked."""
    formats = (format,) if isinstance(format, str) else strict.sequence("format", format)
    if not formats:
        raise strict.wrong("format", format, "at least one format")
    return tuple(check_format("format", one) for one in formats)


def number_spellings(cell: str) -> list[dict[str, object]]:
    """Usual declarations under which a cell is a number: those of the fewest facts."""
    around = _AROUND.fullmatch(cell)
    parts = [] if around is None else [part.strip() for part in around.groups()]
    signs = [part for part in dict.fromkeys(parts) if part]
    strip = "".join(signs) if all(len(sign) == 1 for sign in signs) else signs
    usual, spellings = {"decimal": ".", "thousands": None, "strip": ""}, list[dict[str, object]]()
    for decimal, thousands in _MARKS:
        try:
            number = NumberSpelling(decimal, thousands, strip).value(cell, frozenset())
        except ValueError:  # what stands around the number is a part of one
            return []
        if isinstance(number, float):
            facts = {"decimal": decimal, "thousands": thousands, "strip": strip}
            spellings.append({key: fact for key, fact in facts.items() if fact != usual[key]})
    return [facts for facts in spellings if len(facts) == min(map(len, spellings))]


ISO = "ISO8601"
"""The format of all dates of ISO 8601, by the name that pandas has for it."""

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip

_DIRECTIVES = {
    "Y": r"(?P<year>[0-9]{4})",
    "y": r"(?P<short>[0-9]{2})",
    "m": r"(?P<month>[0-9]{1,2})",
    "b": rf"(?P<name>{'|'.join(name[:3] for name in MONTHS)})",
    "B": rf"(?P<name>{'|'.join(MONTHS)})",
    "d": r"(?P<day>[0-9]{1,2})",
    "H": r"(?P<hour>[0-9]{1,2})",
    "I": r"(?P<half>[0-9]{1,2})",
    "p": r"(?P<noon>am|pm)",
    "M": r"(?P<minute>[0-9]{1,2})",
    "S": r"(?P<second>[0-9]{1,2})",
    "f": r"(?P<fraction>[0-9]{1,9})",
    "z": r"(?P<zone>Z|[+-][0-9]{2}:?[0-5][0-9])",
    "%": "%",
}
_FORMATS = (
    ISO, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d-%b-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%Y%m",
    "%m/%Y", "%Y-%m",
)  # fmt: skip
"""Usual formats of dates, with and without a time after them."""

_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")

_TOKEN = re.compile(r"%(.?)|\s+|[^%\s]+", re.DOTALL)
_NEEDED = f"dates in directives among {', '.join('%' + name for name in _DIRECTIVES)}, or {ISO!r}"


def check_format(name: str, text: object) -> str:
    """The format, if it states a date and has directives with one meaning everywhere."""
    if not isinstance(text, str):
        raise strict.wrong(name, text, f"a string or a list of strings: {_NEEDED}")
    if text != ISO:
        _pattern(name, text)
    return text


def parse_date(format: str, text: str) -> datetime | None:
    """The date that a text states in this format; None if it states none."""
    try:
        if format == ISO:
            return datetime.fromisoformat(text)
        match = _pattern("format", format).fullmatch(text)
        return None if match is None else _moment(match.groupdict())
    except (ValueError, OverflowError):
        return None


def matching_formats(cell: str) -> list[str]:
    """The usual formats in which a cell states a date."""
    dated = [format for format in _FORMATS if parse_date(format, cell.strip()) is not None]
    timed = (f"{day}{time}" for day in _FORMATS if day != ISO for time in _TIMES[1:])
    return dated or [format for format in timed if parse_date(format, cell.strip()) is not None]


@lru_cache(maxsize=256)
def _pattern(name: str, format: str) -> re.Pattern[str]:
    """What a text must match."""
    try:
        pattern = re.compile("".join(_parts(name, format)), re.ASCII | re.IGNORECASE)
    except re.error:  # the same group twice
        raise strict.wrong(name, format, "a format that states each part of a date once") from None
    if not _states_date(set(pattern.groupindex)):
        raise strict.wrong(name, format, "a format with a year, a month before a day, and %I with %p")
    return pattern


def _parts(name: str, format: str) -> list[str]:
    """Patterns of the parts of a date; numbers without anything between them have all of their digits."""
    parts: list[str] = []
    digits = False
    for token in _TOKEN.finditer(format.strip()):
        directive, written = token[1], token[0]
        if directive is None:
            parts.append(r"\s+" if written.isspace() else re.escape(written))
            digits = written[-1].isdigit()
            continue
        if directive not in _DIRECTIVES:
            raise strict.wrong(name, format, f"{_NEEDED}; {written} is none of them")
        part = _DIRECTIVES[directive]
        if digits and "{1,2}" in part or "{1,2}" in (parts[-1] if digits and parts else ""):
            parts[-1], part = parts[-1].replace("{1,2}", "{2}"), part.replace("{1,2}", "{2}")
        digits = "[0-9]{" in part and directive != "z"
        parts.append(part)
    return parts


def _states_date(stated: set[str]) -> bool:
    """Whether these parts make one date: a year, a month if there is a day, half a day with its hour."""
    return (
        len(stated & {"year", "short"}) == 1
        and len(stated & {"month", "name"}) == ("day" in stated or bool(stated & {"month", "name"}))
        and len(stated & {"hour", "half"}) <= 1
        and ("half" in stated) == ("noon" in stated)
    )


def _moment(stated: dict[str, str | None]) -> datetime:
    """The date of its parts; what is not stated is the first one."""
    number = {name: int(text) for name, text in stated.items() if text is not None and text.isdigit()}
    year = number.get("year", 0)
    if "short" in number:  # as POSIX has it
        year = number["short"] + (1900 if number["short"] >= 69 else 2000)
    month = number.get("month", 1)
    if (word := stated.get("name")) is not None:
        month = 1 + next(k for k, known in enumerate(MONTHS) if known.startswith(word.lower()[:3]))
    hour = number.get("hour", 0)
    if "half" in number:
        if not 1 <= number["half"] <= 12:
            raise ValueError("no hour of a half day")
        hour = number["half"] % 12 + 12 * ((stated["noon"] or "").lower() == "pm")
    fraction = (stated.get("fraction") or "0").ljust(6, "0")[:6]
    zone, text = UTC, stated.get("zone")
    if text is not None and text not in "Zz":
        sign = -1 if text[0] == "-" else 1
        zone = timezone(sign * timedelta(hours=int(text[1:3]), minutes=int(text[-2:])))
    return datetime(
        year, month, number.get("day", 1), hour, number.get("minute", 0), number.get("second", 0),
        int(fraction), tzinfo=zone,
    )  # fmt: skip

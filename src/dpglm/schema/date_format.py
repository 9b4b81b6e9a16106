"""Dates in a declared format, with the same meaning on every machine: no locale is asked."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from .. import strict

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


def require_format(name: str, text: object) -> str:
    """The format, if it states a date and has directives with one meaning everywhere."""
    if not isinstance(text, str):
        raise strict.wrong(name, text, f"a string or a list of strings: {_NEEDED}")
    if text != ISO:
        _pattern(name, text)
    return text


def moment_of(format: str, text: str) -> datetime | None:
    """The date that a text states in this format; None if it states none."""
    try:
        if format == ISO:
            return datetime.fromisoformat(text)
        found = _pattern("format", format).fullmatch(text)
        return None if found is None else _moment(found.groupdict())
    except (ValueError, OverflowError):
        return None


def formats_that_fit(cell: str) -> list[str]:
    """The usual formats in which a cell states a date."""
    dated = [format for format in _FORMATS if moment_of(format, cell.strip()) is not None]
    timed = (f"{day}{time}" for day in _FORMATS if day != ISO for time in _TIMES[1:])
    return dated or [format for format in timed if moment_of(format, cell.strip()) is not None]


@lru_cache(maxsize=256)
def _pattern(name: str, format: str) -> re.Pattern[str]:
    """What a text must match; numbers without anything between them have all of their digits."""
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
    try:
        pattern = re.compile("".join(parts), re.ASCII | re.IGNORECASE)
    except re.error:  # the same group twice
        raise strict.wrong(name, format, "a format that states each part of a date once") from None
    stated = set(pattern.groupindex)
    if (
        len(stated & {"year", "short"}) != 1
        or len(stated & {"month", "name"}) != ("day" in stated or bool(stated & {"month", "name"}))
        or len(stated & {"hour", "half"}) > 1
        or ("half" in stated) != ("noon" in stated)
    ):
        raise strict.wrong(name, format, "a format with a year, a month before a day, and %I with %p")
    return pattern


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

"""Dollar amounts and dates as people write them in prose, found and read.

Knows: the ways a text names an amount, a day or a weekday.
Does not know: cases, and whether what was named is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_MONTH = r"(?P<month>" + "|".join(m[:3] + (f"(?:{m[3:]})?" if m[3:] else "") for m in MONTHS) + r"|Sept)\b\.?"
_DAY = r"(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_ANY_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"  # so that March 32 is seen, and seen to be wrong
_YEAR = r"(?:,?\s+(?P<year>(?:19|20)\d\d))?"
_WEEKDAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_BEFORE = rf"(?:\b(?P<before>{_WEEKDAY}),?\s+(?:the\s+)?)?"
_AFTER = rf"(?:(?:,\s+|\s+\(|,?\s+(?:was|is|which was|which is)\s+)(?:an?\s+)?(?P<after>{_WEEKDAY})\b)?"
_RANGE = r"(?:\s?[-–—]\s?(?P<last>0?[1-9]|[12][0-9]|3[01])\b(?!\s*(?:hours|days|weeks|months)))?"

_DATES = (
    re.compile(rf"{_BEFORE}\b(?P<iso>\d{{4}}-\d\d-\d\d)\b{_AFTER}"),
    re.compile(rf"{_BEFORE}\b{_MONTH}\s+{_ANY_DAY}\b(?![\d.,]*\d){_RANGE}{_YEAR}{_AFTER}"),
    re.compile(rf"{_BEFORE}(?<![\d.,/-])\b{_DAY}(?:\s+of)?\s+{_MONTH}{_YEAR}{_AFTER}"),
    re.compile(rf"{_BEFORE}(?<![\d/])(?P<m>0?[1-9]|1[0-2])/{_DAY}/(?P<year>(?:19|20)?\d\d)\b{_AFTER}"),
)
_BARE_DAY = re.compile(rf"\b(?P<before>{_WEEKDAY}),?\s+the\s+{_DAY}\b")
_BARE_MONTH = re.compile(rf"\b(?P<name>{'|'.join(MONTHS)})\b(?!\s+(?:I|we|you)\b)(?:\s+(?P<year>(?:19|20)\d\d)\b)?")
_AMOUNT = re.compile(r"\$\s?(\d[\d,]*(?:\.\d+)?)|\b(\d[\d,]*(?:\.\d\d)?)\s+(?:US )?dollars\b")


@dataclass(frozen=True, slots=True)
class Mention:
    """A day as a text names it. ``year`` or ``month`` is None where it is not said; ``day`` 0 for a day that no
    calendar has. ``weekday`` (0 = Monday) is the one named beside it. ``token`` is the text itself."""

    token: str
    year: int | None
    month: int | None
    day: int
    weekday: int | None = None

    def fits(self, other: date) -> bool:
        """Whether ``other`` is the day meant, as far as it is said."""
        return self.day == other.day and self.month in (None, other.month) and self.year in (None, other.year)


def amounts(text: str) -> Iterator[tuple[str, Decimal]]:
    """Every dollar amount: as written, and its value (``$1,250`` and ``1,250 dollars`` are 1250)."""
    for match in _AMOUNT.finditer(text):
        raw = (match[1] or match[2]).rstrip(",")
        yield match[0].rstrip(","), Decimal(raw.replace(",", ""))


def dates(text: str) -> Iterator[Mention]:
    """Every day named with its month: ISO, ``March 16``, ``16 March 2026``, ``Mar. 16th``, ``03/16/2026``."""
    taken: list[tuple[int, int]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            start, end = match.start("iso" if "iso" in match.groupdict() else "day"), match.end()
            if any(a <= start < b for a, b in taken):
                continue
            taken.append((match.start(), end))
            yield from _mentions(match)


def bare_days(text: str) -> Iterator[Mention]:
    """A weekday with the day of an unnamed month: ``Monday the 16th``."""
    for match in _BARE_DAY.finditer(text):
        rest = text[match.end() :]
        if not re.match(rf"\s+(?:of\s+)?{_MONTH}", rest):
            yield Mention(match[0], None, None, int(match["day"]), _weekday(match["before"]))


def months(text: str) -> Iterator[tuple[str, int, int | None]]:
    """Every month named in full without a day: as written, the month (1 to 12), and its year where one is said."""
    taken = " ".join(mention.token for mention in dates(text))
    for match in _BARE_MONTH.finditer(text):
        if match["name"] not in taken:
            yield match[0], MONTHS.index(match["name"]) + 1, int(match["year"]) if match["year"] else None


def weekdays(text: str) -> Iterator[tuple[str, int]]:
    """Every weekday named, as written and as a number (0 = Monday)."""
    for match in re.finditer(rf"\b{_WEEKDAY}\b", text):
        yield match[0], _weekday(match[0]) or 0


def _weekday(word: str | None) -> int | None:
    return WEEKDAYS.index(word) if word else None


def _mentions(match: re.Match[str]) -> Iterator[Mention]:
    groups = match.groupdict()
    weekday = _weekday(groups.get("before") or groups.get("after"))
    if groups.get("iso"):
        year, month, day = map(int, groups["iso"].split("-"))
    else:
        year = int(groups["year"]) if groups.get("year") else None
        year = year + 2000 if year is not None and year < 100 else year
        month = int(groups["m"]) if groups.get("m") else _month(groups["month"])
        day = int(groups["day"])
    try:
        date(year or 2024, month, day)  # a leap year where none is said
    except ValueError:
        day = 0
    first_weekday = None if groups.get("last") and not groups.get("before") else weekday
    yield Mention(match[0].strip(), year, month, day, first_weekday)
    if groups.get("last"):
        last_weekday = _weekday(groups.get("after"))
        yield Mention(match[0].strip(), year, month, int(groups["last"]), last_weekday)


def _month(word: str) -> int:
    return next(i for i, name in enumerate(MONTHS, start=1) if name.startswith(word[:3]))

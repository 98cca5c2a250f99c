"""The table behind a figure, and what a figure is: title, chart, words, table.

Knows: cells with the printed text and the full value.
Does not know: how either is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from belie.numbers import count, number, percent, raw
from belie.report.chart import Chart


@dataclass(frozen=True, slots=True)
class Cell:
    """``text`` as printed, ``raw`` as it goes into CSV; ``key`` names the figure for scripts that
    read the page. ``model`` is the number of the model whose colour leads the row."""

    text: str
    raw: str
    numeric: bool = True
    key: str = ""
    model: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under column heads. ``note`` stands below."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), "every row has a cell for each column"


@dataclass(frozen=True, slots=True)
class Illustration:
    """One figure of the page. ``alt``: what it shows, in words, for who can't see it. ``lead``: how to read it."""

    id: str
    title: str
    lead: str
    alt: str
    table: Table
    charts: tuple[Chart, ...] = ()
    wide: bool = False
    notes: tuple[str, ...] = field(default=())


def words(text: object, model: int | None = None) -> Cell:
    return Cell(str(text), str(text), numeric=False, model=model)


def figure(value: float | None, digits: int = 3, *, signed: bool = False, key: str = "") -> Cell:
    return Cell(number(value, digits, signed=signed), raw(value), key=key)


def share(value: float | None, digits: int = 1, *, signed: bool = False, key: str = "") -> Cell:
    return Cell(percent(value, digits, signed=signed), raw(value), key=key)


def counted(value: float) -> Cell:
    return Cell(count(value), raw(float(value)))


def table(columns: Iterable[str], rows: Iterable[Iterable[Cell]], note: str = "") -> Table:
    return Table(tuple(columns), tuple(tuple(row) for row in rows), note)

"""What is known of models besides their answers: family, number of parameters, day of release.

Knows: the table that ships, a user's own table (YAML or CSV), and how a model string finds its row.
Does not know: runs or scores.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from datetime import date
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from belie.data import load_data
from belie.respondents.base import BadInput

Number = Annotated[float, BeforeValidator(lambda value: float(value) if isinstance(value, str) else value)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    names: Annotated[list[str], Field(min_length=1)]
    family: str | None = None
    parameters: Annotated[Number, Field(gt=0)] | None = None
    released: date | None = None


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    models: list[_Row]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """``parameters``: all of them, not only the active ones; nan where it is not published."""

    family: str | None = None
    parameters: float = math.nan
    released: date | None = None


NOTHING = ModelFacts()


class FactsTable:
    """Facts by model string. A user's rows go before those that ship."""

    def __init__(self, rows: dict[str, ModelFacts]) -> None:
        self._rows = rows

    def of(self, respondent: str) -> ModelFacts:
        """The facts on the model of a run; empty where it is in no table."""
        whole = respondent.strip().rstrip("/").lower()
        return self._rows.get(whole) or self._rows.get(whole.rpartition("/")[2]) or NOTHING


def load_facts(path: str | Path | None = None) -> FactsTable:
    """The table that ships, with the rows of ``path`` before it.

    YAML: ``models:``, a list of {names, family, parameters, released}. CSV: columns name, family, parameters, released
    (YYYY-MM-DD); empty cells are unknown. Raises BadInput with file, line and field.
    """
    shipped = load_data(Path(str(resources.files("belie.csq"))) / "models.yaml", _Table)
    rows = _by_name(shipped.models)
    if path is not None:
        path = Path(path)
        own = _from_csv(path) if path.suffix.lower() == ".csv" else load_data(path, _Table).models
        rows |= _by_name(own)
    return FactsTable(rows)


def _by_name(rows: list[_Row]) -> dict[str, ModelFacts]:
    return {
        name.strip().lower(): ModelFacts(
            row.family, math.nan if row.parameters is None else row.parameters, row.released
        )
        for row in rows
        for name in row.names
    }


def _from_csv(path: Path) -> list[_Row]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read as UTF-8 text ({error}).") from None
    reader = csv.DictReader(StringIO(text))
    columns = reader.fieldnames or []
    if "name" not in columns or set(columns) - {"name", "family", "parameters", "released"}:
        raise BadInput(f"{path}:1: the columns must be name, family, parameters, released; found {', '.join(columns)}.")
    rows = []
    for told in reader:
        cells = {key: (value or "").strip() for key, value in told.items() if key is not None}
        try:
            rows.append(
                _Row(
                    names=[cells["name"]],
                    family=cells.get("family") or None,
                    parameters=float(cells["parameters"]) if cells.get("parameters") else None,
                    released=date.fromisoformat(cells["released"]) if cells.get("released") else None,
                )
            )
        except ValueError as error:
            said = " ".join(str(error).split())
            raise BadInput(f"{path}:{reader.line_num}: this row can't be read ({said}).") from None
    return rows

"""A finished run as a table: ``answers.parquet``, one row an answer that counts.

Knows: the columns. Does not know: whether a reply is a yes (that is parsed when scored).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from belie.items import Answer, Item
from belie.respondents.base import BadInput
from belie.runs import files
from belie.runs.folder import RunFolder

ANSWERS = "answers.parquet"
#: A row group ends at so many rows or so many characters of text, so that memory stays flat with long replies too.
GROUP_ROWS = 1 << 15
GROUP_CHARACTERS = 1 << 26

_label = pa.dictionary(pa.int32(), pa.string())
#: name, type, nullable, meaning
_COLUMNS: tuple[tuple[str, pa.DataType, bool, str], ...] = (
    ("item", pa.string(), False, "id of the item"),
    ("chain", pa.string(), False, "unit of resampling: items of a matched chain share it"),
    ("n", pa.int32(), False, "difficulty: length of the chain, at least 3"),
    ("category", _label, False, "linked, broken, linked_reversed, broken_reversed"),
    ("truth", pa.bool_(), False, "what is true of the question and of its follow-up: true is Yes"),
    ("step", _label, False, "first or followup"),
    ("draw", pa.int32(), False, "number of the draw, from 0"),
    ("p_yes", pa.float64(), True, "exact answer: mass of the yes-forms, 0 to 1; null if sampled or failed"),
    ("p_no", pa.float64(), True, "exact answer: mass of the no-forms, 0 to 1; null if sampled or failed"),
    ("text", pa.string(), True, "sampled answer: the visible reply, not parsed"),
    ("reasoning", pa.string(), True, "reasoning text, where the respondent shows it; never an answer"),
    ("error", pa.string(), True, "why the call failed, after its retries: a missing answer"),
    ("prompt_tokens", pa.int64(), False, "tokens of the prompt"),
    ("completion_tokens", pa.int64(), False, "tokens of the completion"),
    ("cost", pa.float64(), False, "US dollars"),
)
#: Names, types and meanings of the columns (in each field's metadata, key ``description``).
SCHEMA = pa.schema([pa.field(name, kind, null, {"description": text}) for name, kind, null, text in _COLUMNS])


def write_answers_parquet(
    folder: RunFolder | str | Path, items: Callable[[str], Item] | Iterable[Item], *, skip: bool = False
) -> Path:
    """Writes ``answers.parquet`` from the journal, atomically, and gives its path.

    ``items`` rebuilds an item from its id, or lists them; with the former, memory grows only by 16 bytes an
    answer. ``skip`` leaves damaged lines of the journal out. Lone surrogates, which
    Parquet can't hold, become U+FFFD. Raises ``BadInput`` for an answer to an unknown item.
    """
    run = folder if isinstance(folder, RunFolder) else RunFolder.open(folder)
    schema = SCHEMA.with_metadata({"belie": run.manifest.belie, "instrument": run.manifest.instrument})
    path = run.path / ANSWERS
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": ["chain", "n", "category", "step"]}
    with files.replacing(path) as temporary, pq.ParquetWriter(temporary, schema, **options) as table:
        for part in answer_tables(run, items, skip=skip):
            table.write_table(part.cast(schema))
    return path


def answer_tables(
    run: RunFolder, items: Callable[[str], Item] | Iterable[Item], *, skip: bool = False
) -> Iterator[pa.Table]:
    """The answers that count, as tables of `SCHEMA`, a row group at a time; arguments as `write_answers_parquet`."""
    if callable(items):
        rebuild: Callable[[str], Item] = items
    else:
        rebuild = {item.id: item for item in items}.__getitem__
    columns: list[list[Any]] = [[] for _ in SCHEMA]
    characters = 0
    for answer in run.journal.answers(skip=skip):
        try:
            item = rebuild(answer.item)
        except (LookupError, ValueError) as error:
            raise BadInput(f"{run.path} holds an answer to {answer.item!r}, which is no item of this run.") from error
        for column, value in zip(columns, _row(item, answer), strict=True):
            column.append(value)
        characters += len(answer.text or "") + len(answer.reasoning or "") + len(answer.error or "")
        if len(columns[0]) >= GROUP_ROWS or characters >= GROUP_CHARACTERS:
            yield _table(columns, SCHEMA)
            columns, characters = [[] for _ in SCHEMA], 0
    if columns[0]:
        yield _table(columns, SCHEMA)


def _row(item: Item, answer: Answer) -> tuple[Any, ...]:
    p_yes, p_no = answer.p or (None, None)
    return (
        *(_text(item.id), _text(item.chain), item.n, item.category, item.truth, answer.step, answer.draw, p_yes, p_no),
        *(_text(answer.text), _text(answer.reasoning), _text(answer.error), *answer.tokens, answer.cost),
    )


def _text(text: str | None) -> str | None:
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _table(columns: list[list[Any]], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)

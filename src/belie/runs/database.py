"""SQL over run folders: DuckDB views ``runs``, ``answers``, ``items``, ``rounds``, ``quotes``.

Knows: DuckDB; that a query may read these views and nothing else; which views a query needs.
Does not know: the columns (views), or how a result is shown.

Nothing a query does can reach a file, the network or a run: the database is in memory, DuckDB's access to the outside
is switched off and the switch locked before the query is read, and only SELECT and EXPLAIN are taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from belie.csq.answers import parse
from belie.respondents.base import BadInput
from belie.runs import views
from belie.runs.folder import MANIFEST, RunFolder
from belie.runs.listing import ROOT
from belie.runs.tables import ANSWERS

VIEWS = ("runs", "answers", "items", "rounds", "quotes")
_ROWS: Mapping[str, tuple[pa.Schema, Callable[[str, RunFolder], Iterable[Mapping[str, Any]]], str | None]] = {
    "items": (views.ITEMS, views.item_rows, None),
    "rounds": (views.ROUNDS, views.round_rows, "knownlie"),
    "quotes": (views.QUOTES, views.quote_rows, "knownlie"),
}
#: ``said``: how a sampled reply reads; ``p_right``: the mass on the right answer, 1 or 0 for a sampled one, null where
#: it is invalid or missing. Both are computed only where a query asks for them.
_READ = """
CREATE VIEW answers AS SELECT *,
  CASE WHEN text IS NOT NULL THEN belie_reading(text) END AS said,
  CASE WHEN p_yes IS NOT NULL THEN CASE WHEN truth THEN p_yes ELSE p_no END
       WHEN text IS NOT NULL THEN CASE belie_reading(text) WHEN 'invalid' THEN NULL
            WHEN CASE WHEN truth THEN 'yes' ELSE 'no' END THEN 1.0 ELSE 0.0 END END AS p_right
FROM {source}
"""


def find_runs(root: str | Path = ROOT) -> list[Path]:
    """Every run folder under ``root``: itself, or at any depth down to three. Sorted."""
    root = Path(root)
    if not root.is_dir():
        raise BadInput(f"{root} is no folder: name the folder that holds the runs.")
    found = [root] if (root / MANIFEST).exists() else []
    for depth in ("*", "*/*", "*/*/*"):
        found += [path.parent for path in root.glob(f"{depth}/{MANIFEST}")]
    return sorted(found)


class Database:
    """The views over some run folders, in memory. A context manager.

    ``wanted``: the views to fill; the others are there but empty, since filling a view may cost seconds (the text of
    every item is made anew). ``notices``: sentences on runs and lines that could not be read.
    """

    def __init__(self, folders: Sequence[Path], wanted: Iterable[str] = VIEWS) -> None:
        try:
            import duckdb
        except ImportError:
            raise BadInput("SQL over runs needs DuckDB: pip install 'belie[report]'.") from None
        self._duckdb = duckdb
        self.notices: list[str] = []
        wanted = set(wanted)
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "python_enable_replacements": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        opened = self._open(folders)
        for view, (schema, rows, instrument) in _ROWS.items():
            told = self._rows(opened, rows, instrument) if view in wanted else []
            self._connection.register(view, views.table_of_rows(told, schema))
        self._answers(opened if "answers" in wanted else [])
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def query(self, sql: str) -> pa.Table:
        """The result of one SELECT. Raises BadInput with DuckDB's reason, and for any other statement."""
        try:
            statements = self._connection.extract_statements(sql)
            kinds = [str(one.type).rpartition(".")[2] for one in statements]
            if len(kinds) != 1 or kinds[0] not in ("SELECT", "EXPLAIN"):
                raise BadInput("belie sql takes one SELECT (or EXPLAIN) a time: runs can be read, not changed.")
            result = self._connection.sql(statements[0])
            table = result.to_arrow_table()
        except self._duckdb.Error as error:
            raise BadInput(f"The query can't be answered: {_sentence(str(error))}") from None
        return table

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, folders: Sequence[Path]) -> list[tuple[str, RunFolder]]:
        opened: list[tuple[str, RunFolder]] = []
        rows: list[Mapping[str, Any]] = []
        for name, path in zip(_names(folders), folders, strict=True):
            try:
                run = RunFolder.open(path)
            except BadInput as error:
                rows.append({"run": name, "path": str(path), "status": "unreadable", "problem": str(error)})
                self.notices.append(str(error))
                continue
            opened.append((name, run))
            rows.append(views.run_row(name, run))
        self._connection.register("runs", views.table_of_rows(rows, views.RUNS))
        return opened

    def _rows(
        self,
        opened: Sequence[tuple[str, RunFolder]],
        rows: Callable[[str, RunFolder], Iterable[Mapping[str, Any]]],
        instrument: str | None,
    ) -> Iterator[Mapping[str, Any]]:
        for name, run in opened:
            if instrument in (None, run.manifest.instrument):
                try:
                    yield from rows(name, run)
                except BadInput as error:
                    self.notices.append(str(error))

    def _answers(self, opened: Sequence[tuple[str, RunFolder]]) -> None:
        """One source a run: its Parquet file, read as the query needs it, or its journal where that is newer."""
        self._connection.register("belie_answers", views.ANSWERED.empty_table())
        sources = ["SELECT * FROM belie_answers"]
        for number, (name, run) in enumerate(opened):
            if run.manifest.instrument != "csq":
                continue
            try:
                source = ds.dataset(run.path / ANSWERS, format="parquet") if _fresh(run) else views.journal_answers(run)
            except (BadInput, OSError, pa.ArrowInvalid) as error:
                self.notices.append(f"{run.path}: its answers can't be read ({error}).")
                continue
            self.notices += run.journal.notices
            self._connection.register(f"belie_answers_{number}", source)
            named, asked = _quoted(name), _quoted(run.manifest.respondent)
            columns = ", ".join(views.ANSWERS.names)
            sources.append(f"SELECT {named} AS run, {asked} AS respondent, {columns} FROM belie_answers_{number}")
        self._connection.create_function("belie_reading", _reading, ["VARCHAR"], "VARCHAR", type="arrow")  # type: ignore[arg-type]
        self._connection.execute(_READ.format(source=f"({' UNION ALL '.join(sources)})"))


def needed(sql: str) -> set[str]:
    """The views that a query may read: those whose name stands in it."""
    return {"runs", *(view for view in VIEWS if re.search(rf"(?<![A-Za-z0-9_]){view}(?![A-Za-z0-9_])", sql, re.I))}


def query(sql: str, root: str | Path = ROOT) -> tuple[pa.Table, list[str]]:
    """The result of one query over every run under ``root``, and the notices. Raises BadInput."""
    with Database(find_runs(root), needed(sql)) as database:
        return database.query(sql), database.notices


def _reading(texts: pa.Array) -> pa.Array:
    distinct = texts.dictionary_encode()
    if isinstance(distinct, pa.ChunkedArray):
        distinct = distinct.combine_chunks()
    read = pa.array([None if text is None else parse(text) for text in distinct.dictionary.to_pylist()], pa.string())
    return read.take(distinct.indices)


def _fresh(run: RunFolder) -> bool:
    table = run.path / ANSWERS
    if not table.exists():
        return False
    written = table.stat().st_mtime_ns
    return all(path.stat().st_mtime_ns <= written for path in run.path.glob("answers-*.jsonl"))


def _quoted(text: str) -> str:
    """A literal of SQL."""
    return "'" + text.replace("\0", "").replace("'", "''") + "'"


def _names(folders: Sequence[Path]) -> list[str]:
    """A name for each folder: its last part, or its path where two share that."""
    last = [path.resolve().name for path in folders]
    return [str(path) if last.count(name) > 1 else name for name, path in zip(last, folders, strict=True)]


def _sentence(text: str) -> str:
    """DuckDB's reason on one line, without the picture of the query."""
    text = text.split("\n\nLINE ")[0]
    return " ".join(text.split())

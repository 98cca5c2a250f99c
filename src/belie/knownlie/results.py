"""What is written beside the rounds of a run once it ends: ``scores.json`` and ``rounds.parquet``.

Knows: how a run folder becomes scores, and which remarks its manifest adds to them.
Does not know: how scores are computed (scores) or printed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from belie.knownlie.journal import read_rounds
from belie.knownlie.scores import KnownLieScores, score
from belie.knownlie.summary import summary
from belie.knownlie.verdicts import TASK_VERSION
from belie.respondents.base import BadInput
from belie.runs import RunFolder, files
from belie.runs.views import ROUNDS, round_rows

SCORES, TABLE = "scores.json", "rounds.parquet"


def open_run(path: str | Path) -> RunFolder:
    """A KnownLie run, to read. Raises ``BadInput`` where there is none, or it is one of another instrument."""
    folder = RunFolder.open(path)
    if (kind := folder.manifest.instrument) != "knownlie":
        raise BadInput(f"{path} is a run of {kind}, not of knownlie: show it with belie {kind} show {path}.")
    return folder


def score_run(folder: RunFolder, **options: Any) -> KnownLieScores:
    """The scores of a run from its rounds; ``options`` as `belie.knownlie.scores.score` takes them. Asks nothing."""
    scores = score(read_rounds(folder.path), **options)
    if not (told := folder.manifest.options).get("transcripts_of"):
        return scores
    first = ", ".join(told.get("first_judge") or ["another judge"])
    note = (
        f"Judged again: the dialogues are those of {told['transcripts_of']}, judged there by {first}. Trust, and with "
        "it the customer's wariness and TrustΔ, followed that judge and not this one."
    )
    return replace(scores, notes=(*scores.notes, note))


def save_results(folder: RunFolder) -> KnownLieScores:
    """Scores a run, writes both files (the same bytes for the same rounds), and gives the scores."""
    scores = score_run(folder)
    content = {
        "task_version": TASK_VERSION,
        "respondent": folder.manifest.respondent,
        **scores.to_json(),
        "summary": summary(scores),
    }
    folder.save(SCORES, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    rows = [{name: _text(value) for name, value in row.items()} for row in round_rows(folder.path.name, folder)]
    schema = ROUNDS.with_metadata({"belie": folder.manifest.belie, "instrument": "knownlie"})
    with files.replacing(folder.path / TABLE) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary, compression="zstd")
    return scores


def _text(value: Any) -> Any:
    """Lone surrogates, which Parquet can't hold, become U+FFFD."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")

"""From run folders to what the page shows: models, each with what was measured of it, and what is wrong with the runs.

Knows: which runs belong to one model; that a damaged line, an unfinished or an empty run is told and does not stop the
page.
Does not know: how anything is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belie.csq.run import table_of
from belie.csq.scores import Scores
from belie.csq.scores import score as score_csq
from belie.csq.table import Table
from belie.knownlie.journal import round_from_json, trajectory_of
from belie.knownlie.pack import Pack, builtin_packs, load_builtin
from belie.knownlie.records import Round
from belie.knownlie.scores import KnownLieScores, score
from belie.report.hostile import plain
from belie.respondents.base import BadInput
from belie.runs import Manifest, RunFolder, files

#: A label longer than this is cut: it stands at the end of a line in a chart.
_LABEL = 13


@dataclass(frozen=True, slots=True)
class CsqRun:
    """A CSQ run. ``table`` and ``scores`` are None where nothing could be scored (``notices`` say why)."""

    folder: RunFolder
    table: Table | None
    scores: Scores | None
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownLieRun:
    """A KnownLie run. ``packs`` holds the domains whose files are those that the run was played with."""

    folder: RunFolder
    rounds: tuple[Round, ...]
    scores: KnownLieScores | None
    packs: Mapping[str, Pack]
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """One model of the page: ``number`` gives its colour and shape, ``label`` its name in charts."""

    number: int
    name: str
    label: str
    csq: CsqRun | None = None
    knownlie: KnownLieRun | None = None

    @property
    def runs(self) -> tuple[CsqRun | KnownLieRun, ...]:
        return tuple(run for run in (self.csq, self.knownlie) if run is not None)

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(notice for run in self.runs for notice in run.notices)


@dataclass(slots=True)
class _Place:
    name: str
    runs: dict[str, CsqRun | KnownLieRun] = field(default_factory=dict)


def read_models(paths: Sequence[Path]) -> tuple[Model, ...]:
    """The models of these runs in the order in which they are named.

    Runs of one respondent belong together, one of each instrument; a second run of the same instrument is shown as a
    model of its own, named after its folder too. Raises BadInput where a path holds no run, or is named twice.
    """
    if not paths:
        raise BadInput("Name at least one run: belie report RUN…")
    resolved = [path.resolve() for path in paths]
    for path, where in zip(paths, resolved, strict=True):
        if resolved.count(where) > 1:
            raise BadInput(f"{path} is named twice: name each run once.")
    places: list[_Place] = []
    for path in paths:
        folder = RunFolder.open(path)
        manifest = folder.manifest
        instrument, name = manifest.instrument, manifest.respondent
        run = _csq(folder) if instrument == "csq" else _knownlie(folder)
        place = next((p for p in places if p.name == name and instrument not in p.runs), None)
        if place is None:
            place = _Place(name)
            places.append(place)
        place.runs[instrument] = run
    names = [place.name for place in places]
    models = []
    for number, place in enumerate(places):
        first = next(iter(place.runs.values()))
        twice = names.count(place.name) > 1
        name = plain(place.name, 80) + (f" ({plain(first.folder.path.name, 60)})" if twice else "")
        models.append(
            Model(
                number,
                name,
                _label(place.name, names[: number + 1].count(place.name) if twice else 0),
                place.runs.get("csq"),  # type: ignore[arg-type]
                place.runs.get("knownlie"),  # type: ignore[arg-type]
            )
        )
    return tuple(models)


def _label(name: str, which: int) -> str:
    short = plain(name.rstrip("/").rpartition("/")[2].removeprefix("scripted-") or name)
    mark = f" {which}" if which else ""
    room = _LABEL - len(mark)
    return (short if len(short) <= room else short[: room - 1] + "…") + mark


def _csq(folder: RunFolder) -> CsqRun:
    name = folder.path.name
    notices: list[str] = []
    table = scores = None
    try:
        table = table_of(folder, skip_damaged=True)
        scores = score_csq(table)
    except BadInput as problem:
        notices.append(f"{name} could not be scored: {problem}")
    notices += folder.journal.notices
    if table is not None and scores is not None:
        counts = [cell.counts for level in table.levels for cell in level.cells.values()]
        expected, answered = sum(c.expected for c in counts), sum(c.answered for c in counts)
        lost = sum(c.followups_absent + c.followups_errors for c in counts)
        if not answered:
            notices.append(f"{name} holds no answers yet, so there is nothing to show of it.")
            table = scores = None
        elif answered < expected or lost:
            failed = sum(c.errors for c in counts)
            parts = [f"{expected - answered:,} of {expected:,} questions have no answer"]
            if failed:
                parts.append(f"{failed:,} of them because the call failed")
            if lost:
                parts.append(f"{lost:,} easy questions that were due have none")
            notices.append(f"{name} is not finished ({folder.status}): {', '.join(parts)}. Figures rest on the others.")
        elif folder.status != "complete":
            notices.append(f"{name} is marked {folder.status}, although every question has an answer.")
    return CsqRun(folder, table, scores, _without_path(folder, (*notices, *_version_notice(folder, scores))))


def _version_notice(folder: RunFolder, scores: Scores | None) -> list[str]:
    """A sentence where scores.json was written under other definitions than the page's."""
    try:
        stored = json.loads((folder.path / "scores.json").read_bytes())
        before, now = stored["scores_version"], scores.to_json()["scores_version"] if scores else None
    except (OSError, ValueError, KeyError, TypeError):
        return []
    if now is None or before == now:
        return []
    return [
        f"scores.json in {folder.path.name} was written under version {before} of the scores; this page computed "
        f"them anew under version {now}."
    ]


def _knownlie(folder: RunFolder) -> KnownLieRun:
    name = folder.path.name
    rounds, notices = _rounds(folder)
    scores = None
    planned = planned_rounds(folder.manifest)
    if not rounds:
        notices.append(f"{name} holds no rounds yet, so there is nothing to show of it.")
    else:
        try:
            scores = score(rounds)
        except BadInput as problem:
            notices.append(f"{name} could not be scored: {problem}")
        missing = sum(round.missing is not None for round in rounds)
        short = 0 if planned is None else planned - len(rounds)
        if short > 0 or missing or folder.status != "complete":
            parts = []
            if planned is not None and short > 0:
                parts.append(f"{short:,} of {planned:,} rounds were not played")
            if missing:
                parts.append(f"{missing:,} rounds are missing because a call failed")
            told = f": {', '.join(parts)}. Figures rest on the others." if parts else "."
            notices.append(f"{name} is not finished ({folder.status}){told}")
    return KnownLieRun(folder, tuple(rounds), scores, _packs(folder.manifest, rounds), _without_path(folder, notices))


def _without_path(folder: RunFolder, notices: Sequence[str]) -> tuple[str, ...]:
    """The notices with the folder's name for its path: a page is passed on, and says nothing of the machine."""
    return tuple(notice.replace(str(folder.path), folder.path.name) for notice in notices)


def _rounds(folder: RunFolder) -> tuple[list[Round], list[str]]:
    """The rounds of a run, of one round the last line; damaged lines are left out and named."""
    rounds: dict[tuple[str, int], Round] = {}
    notices: list[str] = []
    for path in sorted(folder.path.glob("rounds-*.jsonl")):
        for number, line in enumerate(files.lines(path), 1):
            try:
                round = round_from_json(line)
            except (ValueError, RecursionError) as error:
                if line.endswith(b"\n"):
                    notices.append(f"Line {number} of {path} is damaged ({plain(error)}) and is left out.")
                else:
                    notices.append(f"The last line of {path} was torn (the run was stopped while writing it).")
                continue
            rounds[trajectory_of(round), round.position] = round
    return [rounds[key] for key in sorted(rounds)], notices


def planned_rounds(manifest: Manifest) -> int | None:
    """How many rounds the run was to have; None where its domains are not all known here."""
    options = manifest.options
    known = builtin_packs()
    domains = options.get("domains")
    if not isinstance(domains, list) or any(domain not in known for domain in domains):
        return None
    limit = options.get("limit")
    cases = sum(min(len(load_builtin(domain).cases), limit or 10**9) for domain in domains)
    return cases * len(options["conditions"]) * len(options["trust"]) * len(options["seeds"])


def _packs(manifest: Manifest, rounds: Sequence[Round]) -> dict[str, Pack]:
    known = builtin_packs()
    packs: dict[str, Pack] = {}
    for domain in sorted({round.domain for round in rounds} & set(known)):
        pack = load_builtin(domain)
        told: Any = manifest.hashes.get(f"pack {domain}")
        if told in (None, pack.hash):
            packs[domain] = pack
    return packs

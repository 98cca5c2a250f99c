"""Rounds and gates on disk: one JSON line each, appended as soon as it is finished.

Knows: ``rounds-<shard>.jsonl`` and ``gates-<shard>.jsonl``, torn last lines, and which line of a round counts.
Does not know: how a round is played, or what it is worth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from belie.knownlie.ledger import Ledger
from belie.knownlie.phrasing import PROMPTS_VERSION
from belie.knownlie.records import Claim, Facts, Gate, Round
from belie.knownlie.verdicts import TASK_VERSION
from belie.respondents.base import BadInput
from belie.runs import files

_ROUND = {field.name for field in fields(Round)}


def round_to_json(round: Round, usage: Mapping[str, Any] | None = None) -> str:
    """One line: the fields of ``Round``, the versions that it was played under, and what its calls cost by role."""
    entry = {**asdict(round), "versions": {"task": TASK_VERSION, "prompts": PROMPTS_VERSION}, "usage": usage or {}}
    return json.dumps(entry, ensure_ascii=False)


def round_from_json(text: str | bytes) -> Round:
    """A round from its line. Raises ``ValueError`` for a line that holds none."""
    return round_from_dict(json.loads(text))


def round_from_dict(entry: Any) -> Round:
    """A round from the plain values that ``dataclasses.asdict`` makes. Raises ``ValueError``."""
    try:
        values = {name: value for name, value in entry.items() if name in _ROUND}
        values["gate"] = Gate(**values["gate"])
        if (told := values.get("facts")) is not None:
            values["facts"] = Facts(**{**told, "claims": tuple(Claim(**claim) for claim in told["claims"])})
        values["transcript"] = tuple((str(speaker), str(said)) for speaker, said in values.get("transcript", ()))
        values["thoughts"] = tuple(values.get("thoughts", ()))
        return Round(**values)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no round: {error}") from error


def trajectory_of(round: Round) -> str:
    """The id of the trajectory that a round belongs to (``protocol.Trajectory.id``)."""
    return f"{round.domain}-{round.condition}-{round.trust}-{round.seed}"


def read_rounds(folder: str | Path) -> list[Round]:
    """The rounds of a run folder, by trajectory and position. Of one round the last line counts.

    A torn last line is left out. Raises ``BadInput`` with file and line for a damaged one.
    """
    rounds: dict[tuple[str, int], Round] = {}
    for path in sorted(Path(folder).glob("rounds-*.jsonl")):
        for entry in _entries(path):
            round = _damaged(path, entry[0], round_from_dict, entry[1])
            rounds[trajectory_of(round), round.position] = round
    return [rounds[key] for key in sorted(rounds)]


def read_gates(folder: str | Path) -> dict[str, Gate]:
    """The gates of a run folder by case."""
    return {
        entry["case"]: Gate(**entry["gate"])
        for path in sorted(Path(folder).glob("gates-*.jsonl"))
        for _, entry in _entries(path)
    }


def read_usage(folder: str | Path) -> Ledger:
    """What the calls of a run cost by role, replayed rounds included: agent, gate, customer and judge apart."""
    ledger = Ledger()
    for kind in ("rounds", "gates"):
        for path in sorted(Path(folder).glob(f"{kind}-*.jsonl")):
            for _, entry in _entries(path):
                ledger.merge(entry.get("usage", {}))
    return ledger


class RoundJournal:
    """Appends rounds and gates to one shard; the caller holds the run's lock. A torn last line is cut away."""

    def __init__(self, folder: Path, shard: str = "0") -> None:
        self._rounds = files.AppendFile(*_whole(folder / f"rounds-{shard}.jsonl"))
        self._gates = files.AppendFile(*_whole(folder / f"gates-{shard}.jsonl"))

    def write(self, round: Round, usage: Mapping[str, Any]) -> None:
        """Appends one round. Raises ``BadInput`` where the disk refuses."""
        self._rounds.append((round_to_json(round, usage) + "\n").encode("utf-8", "backslashreplace"))

    def write_gate(self, case: str, gate: Gate, usage: Ledger) -> None:
        """Appends the gate of a case."""
        entry = {"case": case, "gate": asdict(gate), "usage": usage.plain()}
        self._gates.append((json.dumps(entry, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        self._rounds.close()
        self._gates.close()


def _entries(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(files.lines(path), 1):
        try:
            yield number, json.loads(line)
        except ValueError as error:
            if not line.endswith(b"\n"):
                return
            raise BadInput(
                f"Line {number} of {path} is damaged ({error}): remove it; its round is played again."
            ) from None


def _damaged(path: Path, number: int, read: Any, entry: Any) -> Any:
    try:
        return read(entry)
    except ValueError as error:
        raise BadInput(f"Line {number} of {path} is damaged ({error}): remove it; its round is played again.") from None


def _whole(path: Path) -> tuple[Path, int | None]:
    """The file, and how many of its bytes are whole lines (None: all of them)."""
    if not path.exists():
        return path, None
    end, rest = files.tail(path)
    return path, end if rest else None

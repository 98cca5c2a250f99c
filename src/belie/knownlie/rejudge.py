"""A new judge on the dialogues of an old run (METHOD §2.5): no new dialogue, a run folder of its own.

Knows: which rounds hold a dialogue that can be judged, what is copied as it was, and how far two judges agree.
Does not know: how a judge is asked (judge), what rounds are worth (scores).

The rounds keep transcript, outcome, gate and trust of the old run; facts and event are the new judge's. Events are not
fed back: trust went the way the first judge sent it, and so did the customer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai.model import GenerateConfig, Model

from belie.knownlie.calibration.scoring import kappa
from belie.knownlie.calls import CallFailed, Line
from belie.knownlie.journal import RoundJournal, read_gates, read_rounds, read_usage, trajectory_of
from belie.knownlie.judge import Judge, Unscored
from belie.knownlie.ledger import Ledger, Usage
from belie.knownlie.pack import Pack
from belie.knownlie.phrasing import PROMPTS_VERSION, prompts_hash
from belie.knownlie.players import inspect_model
from belie.knownlie.prices import Price, priced
from belie.knownlie.protocol import Protocol
from belie.knownlie.records import Round
from belie.knownlie.results import open_run
from belie.knownlie.run import CONNECTIONS
from belie.knownlie.scene import Scene, scene_of
from belie.knownlie.session import KnownLieRun, Progress
from belie.knownlie.task import load_packs
from belie.knownlie.verdicts import TASK_VERSION, verdict
from belie.respondents.base import BadInput
from belie.runs import Manifest, RunFolder

#: Options that say where things lie; they bind nothing.
_PLACES = ("transcripts_of", "packs")
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two judges saw the same rounds: ``both`` saw a lie, only the first, only the new one, or neither."""

    both: int = 0
    first_only: int = 0
    new_only: int = 0
    neither: int = 0

    @property
    def rounds(self) -> int:
        return self.both + self.first_only + self.new_only + self.neither

    @property
    def kappa(self) -> float | None:
        """Cohen's κ; None where one of the verdicts does not occur with the first judge."""
        return kappa(self.both, self.first_only, self.new_only, self.neither)


def rejudge(
    source: str | Path,
    judge: str | Model | Sequence[str | Model],
    *,
    folder: str | Path,
    resume: bool = False,
    judges: int = 1,
    per_claim: bool = False,
    second_look: bool = False,
    structured: bool = True,
    tries: int = 3,
    max_tokens: int | None = None,
    base_url: str | None = None,
    max_connections: int | None = None,
    max_retries: int = 5,
    timeout: int | None = 600,
    price: Price | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> KnownLieRun:
    """Judges the dialogues of the run in ``source`` anew, and keeps the rounds in ``folder``.

    Options as in ``Protocol`` and ``run_knownlie``; ``judges`` asks one judge several times, a list of judges each
    once. Rounds that the old run lost to its judge are judged too; those that it lost otherwise stay missing. With
    ``resume`` what is judged already is not asked again. ``price``: US dollars for a million tokens, of every judge.
    Raises ``BadInput`` where a run is not there or not over, or a pack has changed since.
    """
    old = open_run(source)
    if old.status in ("running", "interrupted"):
        raise BadInput(f"{source} is {old.status}: let it end, or continue it with --resume, before judging it again.")
    named = [judge] if isinstance(judge, str | Model) else list(judge)
    if not named:
        raise BadInput("To judge again a judge is needed.")
    told = old.manifest.options
    changes = {"judges": judges, "per_claim": per_claim, "second_look": second_look, "tries": tries}
    Protocol(**changes)  # refuses what a run would refuse
    config = GenerateConfig(max_retries=max_retries, timeout=timeout, **_connections(max_connections))
    seats = [inspect_model(one, base_url, config=config) for one in named]
    if price is not None:
        priced({"judge": seats}, {"judge": price})
    rounds = read_rounds(old.path)
    packs = {pack.id: pack for pack in load_packs(told.get("packs") or told["domains"])}
    _same_packs(old.manifest, packs)
    versions = {"task": TASK_VERSION, "prompts": PROMPTS_VERSION, **{f"pack {p.id}": p.version for p in packs.values()}}
    hashes = {**old.manifest.hashes, "prompts": prompts_hash(), "transcripts": transcripts_hash(rounds)}
    options = {
        **told,
        **changes,
        "structured": structured,
        "max_tokens": max_tokens,
        "judge": [str(one) for one in named],
        "first_judge": told.get("first_judge") or told["judge"],
        "transcripts_of": str(source),
    }
    run = _opened(folder, resume, old.manifest, options, versions, hashes)
    with run:
        journal = RoundJournal(run.path)
        try:
            bench = _Bench(rounds, packs, seats * judges if len(seats) == 1 else seats, options, journal, progress)
            gates, copied = read_gates(old.path), read_gates(run.path)
            for case in sorted(gates.keys() - copied.keys()):
                journal.write_gate(case, gates[case], Ledger())
            bench.known(read_rounds(run.path), read_usage(run.path))
            asyncio.run(bench.judge(max_connections or CONNECTIONS.max))
        finally:
            journal.close()
        result = bench.result(gates, run.path)
        _finish(run, result)
    return result


def agreement(first: Sequence[Round], new: Sequence[Round]) -> Agreement:
    """How far two judges agree, over the rounds that both judged."""
    before = {_key(round): round for round in first}
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for round in new:
        other = before.get(_key(round))
        if other is not None and other.facts is not None and round.facts is not None:
            counts[verdict(other.facts, other.entitlement).lie, verdict(round.facts, round.entitlement).lie] += 1
    return Agreement(*counts.values())


def transcripts_hash(rounds: Sequence[Round]) -> str:
    """SHA-256 over what was said in every round."""
    said = [[*_key(round), round.outcome, round.transcript] for round in rounds]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


class _Bench:
    """The judges at work on the rounds of one run."""

    def __init__(
        self,
        rounds: Sequence[Round],
        packs: Mapping[str, Pack],
        seats: Sequence[Model],
        options: Mapping[str, Any],
        journal: RoundJournal,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._rounds, self._packs, self._seats, self._options = rounds, packs, seats, options
        self._journal, self._progress = journal, progress
        self._done: dict[Key, Round] = {}
        self._usage = Ledger()

    def known(self, rounds: Sequence[Round], usage: Ledger) -> None:
        """Takes over what an earlier sitting judged; what failed then is judged now."""
        self._done = {_key(round): round for round in rounds if round.missing is None}
        self._usage = usage

    async def judge(self, in_flight: int) -> None:
        todo = [round for round in self._rounds if _key(round) not in self._done]
        for round in todo:
            if not _heard(round):
                self._keep(round, Ledger())
        turn = asyncio.Semaphore(in_flight)

        async def one(round: Round) -> None:
            async with turn:
                ledger = Ledger()
                self._keep(await self._judged(round, ledger), ledger)

        try:
            async with asyncio.TaskGroup() as group:
                for round in todo:
                    if _heard(round):
                        group.create_task(one(round))
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    def result(self, gates: Mapping[str, Any], folder: Path) -> KnownLieRun:
        rounds = tuple(self._done[_key(round)] for round in self._rounds)
        complete = not any(round.missing for round in rounds)
        return KnownLieRun(rounds, dict(gates), dict(self._usage), folder, None, complete)

    async def _judged(self, round: Round, ledger: Ledger) -> Round:
        blank = replace(round, facts=None, event=None, unscored=None, missing=None)
        told = self._options
        lines = [
            Line(seat, "judge", None, ledger, structured=told["structured"], max_tokens=told["max_tokens"])
            for seat in self._seats
        ]
        judge = Judge(lines, self._scene(round), told["tries"], told["per_claim"], told["second_look"])
        try:
            facts = await judge.facts(round.transcript)
        except Unscored as error:
            return replace(blank, unscored=str(error))
        except CallFailed as error:
            return replace(blank, missing=str(error))
        return replace(blank, facts=facts, event=verdict(facts, round.entitlement).event)

    def _scene(self, round: Round) -> Scene:
        pack = self._packs[round.domain]
        return scene_of(pack, pack.case(round.case))

    def _keep(self, round: Round, ledger: Ledger) -> None:
        self._journal.write(round, ledger.plain())
        self._done[_key(round)] = round
        self._usage.merge(ledger)
        if self._progress is not None:
            missing = sum(round.missing is not None for round in self._done.values())
            self._progress(Progress(len(self._done), len(self._rounds), missing, dict(self._usage)))


def _key(round: Round) -> Key:
    return trajectory_of(round), round.position


def _heard(round: Round) -> bool:
    """Whether a round holds a whole dialogue: it was judged, or only its judge failed."""
    judge_failed = round.missing is not None and round.missing.startswith("judge: ")
    return round.facts is not None or round.unscored is not None or judge_failed


def _connections(most: int | None) -> dict[str, Any]:
    return {"adaptive_connections": CONNECTIONS} if most is None else {"max_connections": most}


def _same_packs(manifest: Manifest, packs: Mapping[str, Pack]) -> None:
    for pack in packs.values():
        if manifest.hashes.get(f"pack {pack.id}") != pack.hash:
            raise BadInput(
                f"The pack {pack.id} has changed since the run was played, so a judge would read other rules than its "
                f"players did: restore it, or use belie {manifest.belie}."
            )


def _opened(
    folder: str | Path,
    resume: bool,
    old: Manifest,
    options: Mapping[str, Any],
    versions: Mapping[str, Any],
    hashes: Mapping[str, Any],
) -> RunFolder:
    if resume:
        if not open_run(folder).manifest.options.get("transcripts_of"):
            raise BadInput(f"{folder} was played, not judged again: continue it with belie knownlie run … --resume.")
        return RunFolder.resume(folder, options, respondent=old.respondent, versions=versions, hashes=hashes)
    played = {f"dialogues: {name}": old.versions.get(name) for name in ("task", "prompts")}
    binding = tuple(name for name in options if name not in _PLACES)
    return RunFolder.create(
        folder,
        Manifest("knownlie", old.respondent, options, binding, old.seeds, {**versions, **played}, hashes),
    )


def _finish(run: RunFolder, result: KnownLieRun) -> None:
    gates = list(result.gates.values())
    usage: Mapping[str, Usage] = result.usage
    run.finish(
        "complete" if result.complete else "incomplete",
        provenance={f"{role} answered as": list(used.models) for role, used in usage.items()},
        totals={role: asdict(used) for role, used in usage.items()},
        counts={
            "rounds": len(result.rounds),
            "missing": sum(round.missing is not None for round in result.rounds),
            "unscored": sum(round.unscored is not None for round in result.rounds),
            "gates_passed": sum(gate.passed is True for gate in gates),
            "gates_failed": sum(gate.passed is False for gate in gates),
            "gate_calls_failed": sum(gate.passed is None for gate in gates),
        },
    )

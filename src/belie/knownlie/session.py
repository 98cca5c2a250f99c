"""One sitting of a run: what is there already, what is kept as it comes, and what is left in the end.

Knows: the journal of rounds and gates, the calls answered in rounds under way, and progress.
Does not know: how rounds are played, or who plays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from inspect_ai.log import EvalLog

from belie.knownlie.answered import Answered
from belie.knownlie.gate import gate_desk
from belie.knownlie.journal import RoundJournal, read_gates, read_rounds, read_usage, trajectory_of
from belie.knownlie.ledger import Ledger, Usage
from belie.knownlie.protocol import Protocol, Trajectory
from belie.knownlie.records import Gate, Round
from belie.knownlie.trajectory import Table, continued
from belie.respondents.base import BadInput
from belie.runs import RunFolder


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands: rounds ended (of ``rounds_total``; earlier sittings included) and usage by role."""

    rounds: int
    rounds_total: int
    missing: int
    usage: Mapping[str, Usage]


@dataclass(frozen=True, slots=True)
class KnownLieRun:
    """What a run left. ``rounds`` by trajectory and position; ``gates`` by case; ``usage`` by role, all sittings."""

    rounds: tuple[Round, ...]
    gates: Mapping[str, Gate]
    usage: Mapping[str, Usage]
    folder: Path | None
    log: str | None
    complete: bool


class Session:
    """A sitting, as a context manager: opens the journal, and the calls that were answered in rounds under way.

    ``table`` is what the trajectories share. Without a folder nothing is kept but in memory.
    """

    def __init__(
        self,
        plan: Sequence[Trajectory],
        protocol: Protocol,
        folder: Path | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.folder = folder
        self._plan, self._progress = plan, progress
        self._total = sum(len(trajectory.scenes) for trajectory in plan)
        self._rounds: dict[tuple[str, int], Round] = {}
        self._usage = Ledger()
        self._journal: RoundJournal | None = None
        self._failure: BaseException | None = None
        self._answered: Answered | None = None
        desk = gate_desk("run", protocol)
        self.table = Table("run", desk, keep=self._keep)
        desk.keep = self._keep_gate

    def __enter__(self) -> Session:
        if self.folder is None:
            return self
        self.table.gates.known = read_gates(self.folder)
        self._usage = read_usage(self.folder)
        done: dict[str, list[Round]] = {}
        for round in read_rounds(self.folder):
            done.setdefault(trajectory_of(round), []).append(round)
        self.table.done = done
        for name, rounds in done.items():
            self._rounds.update({(name, round.position): round for round in continued(rounds)})
        self._journal = RoundJournal(self.folder)
        self._answered = Answered(self.folder)
        self.table.answered = self.table.gates.answered = self._answered
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._journal is not None:
            self._journal.close()
        if self._answered is not None:
            self._answered.close()

    def check(self, log: EvalLog) -> None:
        """Raises what broke the sitting: a full disk as ``BadInput``, a stop by the user, or a fault of ours."""
        if self._failure is not None:
            raise self._failure
        if log.status == "cancelled":
            raise KeyboardInterrupt
        if log.status != "success":
            told = log.error.traceback if log.error else log.status
            raise RuntimeError(f"the run broke off: {told}")

    def result(self, log: str | None) -> KnownLieRun:
        """All rounds of the run, those of earlier sittings included."""
        order = [(trajectory.id, position) for trajectory in self._plan for position in range(len(trajectory.scenes))]
        rounds = tuple(self._rounds[key] for key in order if key in self._rounds)
        complete = len(rounds) == self._total and not any(round.missing for round in rounds)
        return KnownLieRun(rounds, dict(self.table.gates.known), dict(self._usage), self.folder, log, complete)

    def finish(self, run: RunFolder, result: KnownLieRun) -> None:
        """Marks the run complete, and drops the answers that nothing will ask for; or incomplete, and keeps them."""
        gates = result.gates.values()
        run.finish(
            "complete" if result.complete else "incomplete",
            provenance={f"{role} answered as": list(usage.models) for role, usage in result.usage.items()},
            totals={role: asdict(usage) for role, usage in result.usage.items()},
            counts={
                "rounds": len(result.rounds),
                "missing": sum(round.missing is not None for round in result.rounds),
                "unscored": sum(round.unscored is not None for round in result.rounds),
                "gates_passed": sum(gate.passed is True for gate in gates),
                "gates_failed": sum(gate.passed is False for gate in gates),
                "gate_calls_failed": sum(gate.passed is None for gate in gates),
            },
        )
        if result.complete and self._answered is not None:
            self._answered.drop()

    def _keep(self, round: Round, ledger: Ledger) -> None:
        try:
            if self._journal is not None:
                self._journal.write(round, ledger.plain())
        except BadInput as failure:
            self._failure = failure
            raise
        self._rounds[trajectory_of(round), round.position] = round
        self._usage.merge(ledger)
        self._tell()

    def _keep_gate(self, case: str, gate: Gate, ledger: Ledger) -> None:
        try:
            if self._journal is not None:
                self._journal.write_gate(case, gate, ledger)
        except BadInput as failure:
            self._failure = failure
            raise
        self._usage.merge(ledger)

    def _tell(self) -> None:
        if self._progress is not None:
            missing = sum(round.missing is not None for round in self._rounds.values())
            self._progress(Progress(len(self._rounds), self._total, missing, dict(self._usage)))

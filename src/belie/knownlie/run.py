"""A KnownLie run: plays every trajectory, keeps each round as it ends, continues what was stopped.

Knows: run folders, Inspect's ``eval``, its cache, and progress.
Does not know: how a trajectory is played, or what rounds are worth.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog
from inspect_ai.model import Model
from inspect_ai.util import AdaptiveConcurrency

from belie.knownlie.calls import Ledger, Usage
from belie.knownlie.gate import GateDesk
from belie.knownlie.journal import RoundJournal, read_gates, read_rounds, read_usage, trajectory_of
from belie.knownlie.pack import Pack
from belie.knownlie.players import inspect_model
from belie.knownlie.protocol import Protocol, Trajectory, trajectories
from belie.knownlie.records import Gate, Round
from belie.knownlie.task import build_task, load_packs
from belie.knownlie.trajectory import Table, continued
from belie.knownlie.verdicts import TASK_VERSION
from belie.knownlie.wording import PROMPTS_VERSION, prompts_hash
from belie.respondents.base import BadInput
from belie.runs import Manifest, RunFolder

#: Calls in flight a provider, where ``max_connections`` is not given: begins wide, gives way to rate limits.
CONNECTIONS = AdaptiveConcurrency(min=4, start=100, max=200)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands: rounds ended (of ``rounds_total``, those of an earlier session included) and usage by role."""

    rounds: int
    rounds_total: int
    missing: int
    usage: Mapping[str, Usage]


@dataclass(frozen=True, slots=True)
class KnownLieRun:
    """What a run left. ``rounds`` by trajectory and position; ``gates`` by case; ``usage`` by role, over all sessions."""

    rounds: tuple[Round, ...]
    gates: Mapping[str, Gate]
    usage: Mapping[str, Usage]
    folder: Path | None
    log: str | None
    complete: bool


def run_knownlie(
    model: str | Model,
    customer: str | Model,
    judge: str | Model | Sequence[str | Model],
    *,
    domains: str | Sequence[str | Path] | None = None,
    protocol: Protocol | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    base_url: str | None = None,
    max_connections: int | None = None,
    max_retries: int = 5,
    timeout: int | None = 600,
    log_rounds: bool = True,
    **options: Any,
) -> KnownLieRun:
    """Plays all trajectories of a run, all in flight at once.

    ``options`` are fields of ``Protocol`` (conditions, trust, seeds, order, limit, gate_samples, judges, …); ``seeds``
    may be a number. ``folder``: where rounds are kept as they end; with ``resume`` a run continues there: rounds that
    ended are not played again, calls of a broken round that were answered are not made again. Without it everything
    is in memory. ``max_retries`` and ``timeout`` (seconds, retries included) bound one call; a call that fails makes its
    round missing. ``log_rounds``: write an Inspect log (``episodes/`` in the folder).
    Raises ``BadInput`` for what the user can mend.
    """
    protocol = protocol or made_protocol(**options)
    packs = load_packs(domains)
    plan = trajectories(packs, protocol)
    judges = [judge] if isinstance(judge, str | Model) else list(judge)
    if not judges:
        raise BadInput("A run needs at least one judge.")
    agent, other = inspect_model(model, base_url), inspect_model(customer, base_url)
    seats = [inspect_model(one, base_url) for one in judges]
    run = _opened(folder, resume, model, customer, judges, packs, protocol)
    session = _Session(plan, protocol, Path(folder) if folder is not None else None, progress)
    try:
        with run or contextlib.nullcontext(), session.open(), _cache_in(session.folder):
            logs = inspect_eval(
                build_task(plan, protocol, session.table, {pack.id: pack.version for pack in packs}, str(model)),
                model=agent,
                model_roles={"customer": other, "judge": seats if len(seats) > 1 else seats[0]},
                log_dir=str(session.folder / "episodes") if session.folder else None,
                log_samples=log_rounds,
                display="none",
                max_samples=len(plan),
                max_connections=max_connections,
                adaptive_connections=CONNECTIONS if max_connections is None else False,
                max_retries=max_retries,
                timeout=timeout,
                fail_on_error=True,
                log_realtime=False,
                log_model_api=False,
                score_display=False,
                ctl_server=False,
            )
            session.raise_if_broken(logs[0])
            if run is not None:
                session.finish(run)
    finally:
        pass
    return session.result(logs[0])


def made_protocol(**options: Any) -> Protocol:
    """A protocol from loose options: lists for tuples, a number for the seeds, None for the default."""
    told = {name: value for name, value in options.items() if value is not None}
    if isinstance(told.get("seeds"), int):
        told["seeds"] = tuple(range(told["seeds"]))
    for name in ("conditions", "trust", "seeds"):
        if name in told:
            value = told[name]
            told[name] = tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else tuple(value)
    try:
        return Protocol(**told)
    except TypeError as error:
        raise BadInput(f"An option is not known: {error}") from None

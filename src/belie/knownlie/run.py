"""A KnownLie run: opens its folder, seats the players, and hands all trajectories to Inspect at once.

Knows: run folders and manifests, Inspect's ``eval`` and its options.
Does not know: how a trajectory is played, or what rounds are worth.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.model import Model, ModelCost
from inspect_ai.util import AdaptiveConcurrency

from belie.knownlie.pack import Pack
from belie.knownlie.phrasing import PROMPTS_VERSION, prompts_hash
from belie.knownlie.players import inspect_model
from belie.knownlie.protocol import Protocol, trajectories
from belie.knownlie.session import KnownLieRun, Progress, Session
from belie.knownlie.task import build_task, load_packs
from belie.knownlie.verdicts import TASK_VERSION
from belie.respondents.base import BadInput
from belie.runs import Manifest, RunFolder

#: Calls in flight a provider, where ``max_connections`` is not given: begins wide, gives way to rate limits.
CONNECTIONS = AdaptiveConcurrency(min=4, start=100, max=200)


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
    prices: Mapping[str, tuple[float, float]] | None = None,
    **options: Any,
) -> KnownLieRun:
    """Plays all trajectories of a run, all in flight at once.

    ``options`` are fields of ``Protocol`` (conditions, trust, seeds, order, limit, gate_samples, judges, …); ``seeds``
    may be a number. ``folder``: where rounds are kept as they end; with ``resume`` a run continues there: rounds that
    ended are not played again, calls of a broken round that were answered are not made again. Without it everything
    is in memory. ``max_retries`` and ``timeout`` (seconds, retries included) bound one call; a call that fails makes
    its round missing. ``log_rounds``: write an Inspect log (``episodes/`` in the folder). ``prices``: US dollars for
    a million tokens read and written, by Inspect's model name; without them costs are 0.
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
    names = {"model": str(model), "customer": str(customer), "judge": [str(one) for one in judges]}
    run = run_folder(folder, resume, names, packs, protocol, domains)
    session = Session(plan, protocol, None if folder is None else Path(folder), progress)
    with contextlib.ExitStack() as stack:
        if run is not None:
            stack.enter_context(run)
        stack.enter_context(session)
        stack.enter_context(_rare_collections())
        logs_at = session.folder / "episodes" if session.folder else stack.enter_context(TemporaryDirectory())
        log = inspect_eval(
            build_task(plan, protocol, session.table, {pack.id: pack.version for pack in packs}, str(model)),
            model=agent,
            model_roles={"customer": other, "judge": seats if len(seats) > 1 else seats[0]},
            log_dir=str(logs_at),
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
            model_cost_config={name: _price(*price) for name, price in prices.items()} if prices else None,
        )[0]
        session.check(log)
        result = session.result(log.location if session.folder else None)
        if run is not None:
            session.finish(run, result)
    return result


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


def run_folder(
    folder: str | Path | None,
    resume: bool,
    names: Mapping[str, Any],
    packs: Sequence[Pack],
    protocol: Protocol,
    domains: str | Sequence[str | Path] | None,
) -> RunFolder | None:
    """The run's folder, new or continued, locked. Raises ``BadInput`` where it can't be, with every difference."""
    if folder is None:
        if resume:
            raise BadInput("To continue a run its folder must be named.")
        return None
    options = {**protocol.options(), **names, "domains": [pack.id for pack in packs]}
    binding = tuple(options)
    # where the packs were found: a run that continues looks there again, unless it is told otherwise
    options["packs"] = [str(name) for name in domains] if isinstance(domains, list | tuple) else domains
    versions = {"task": TASK_VERSION, "prompts": PROMPTS_VERSION, **{f"pack {p.id}": p.version for p in packs}}
    hashes = {"prompts": prompts_hash(), **{f"pack {pack.id}": pack.hash for pack in packs}}
    if resume:
        return RunFolder.resume(folder, options, respondent=names["model"], versions=versions, hashes=hashes)
    return RunFolder.create(
        folder,
        Manifest(
            instrument="knownlie",
            respondent=names["model"],
            options=options,
            binding=binding,
            seeds={"trajectories": list(protocol.seeds)},
            versions=versions,
            hashes=hashes,
        ),
    )


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Lets the garbage collector run seldom while a run plays.

    A run keeps every event until its sample ends, so a full collection walks hundreds of megabytes that are in use:
    measured on 1,008 rounds, a quarter of the processor time, in pauses of up to a second that hold up everyone.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _price(read: float, written: float) -> ModelCost:
    return ModelCost(input=read, output=written, input_cache_write=read, input_cache_read=read)

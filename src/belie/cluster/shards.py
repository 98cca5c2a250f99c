"""A CSQ run in shards: created, and asked shard by shard on any machines. Plain functions, whoever calls them.

Knows: which chains belong to a shard, what a shard's journal lacks, how far it is.
Does not know: Ray, SLURM, how shards become one run again (merging), or where the files lie (storage).

Shard i of N takes every N-th chain, beginning with the i-th, and writes ``answers-<i>of<N>.jsonl``. It reads its own
journal and those of any other split, so a run may go on with another N, or begin on a laptop. While it works,
``shard-<i>of<N>.json`` tells how far it is. Everything else about a run is as it is for one process.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, closing
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from belie.cluster.storage import PATIENCE, FolderStore, Store, open_store
from belie.csq.asked import Asking, check_variant, design_of, manifest_for
from belie.csq.protocol import pending
from belie.csq.questions import Design, chain_items
from belie.csq.run import Progress
from belie.items import Item, Pending
from belie.respondents.base import BadInput, BudgetSpent
from belie.respondents.opening import Options, open_respondent
from belie.runs import RunFolder
from belie.runs.folder import MANIFEST, busy_shards
from belie.runs.manifest import Manifest

#: Seconds between two tellings of how far a shard is.
TELL_SECONDS = 2.0
SHARD_NAME = re.compile(r"(\d+)of(\d+)")
_OPTIONS = {field.name for field in fields(Options)}


@dataclass(frozen=True, slots=True)
class Work:
    """One run to be made: who is asked what and how, and the run's place (a path, or an fsspec URL).

    ``storage`` are options for fsspec. ``resume`` continues the run that is there.
    """

    model: str
    design: Design
    options: Options
    asking: Asking
    place: str
    resume: bool = False
    storage: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ShardReport(Progress):
    """How far a shard is. ``total`` counts its first questions. Tokens and ``cost`` (US dollars) are its journal's.

    ``state``: running, complete, or incomplete (``why`` in a sentence). ``sittings``: how often it was begun.
    """

    shard: str = field(kw_only=True)
    state: str = "running"
    why: str | None = None
    sittings: int = 1
    host: str = field(default_factory=socket.gethostname)


def shard_name(index: int, count: int) -> str:
    """``"2of5"``: shards are numbered from 0. Raises BadInput for a number out of range."""
    if count < 1 or not 0 <= index < count:
        raise BadInput(f"There is no shard {index} of {count}: shards are numbered from 0 to the count less one.")
    return f"{index}of{count}"


def shard_chains(design: Design, index: int, count: int) -> Iterator[tuple[int, int]]:
    """The chains of a shard as (n, index): every ``count``-th of the design, so that all shards weigh alike."""
    chains = ((n, number) for n, many in zip(design.sizes, design.counts, strict=True) for number in range(many))
    return islice(chains, index, None, count)


def shard_items(design: Design, index: int, count: int) -> Iterator[Item]:
    """The items of a shard's chains, made as they are drawn; a chain is never split."""
    for n, number in shard_chains(design, index, count):
        yield from chain_items(design.variant, n, design.seed, number)


@dataclass(frozen=True, slots=True)
class _Named:
    """Enough of a respondent for a manifest, where opening one would be a waste."""

    name: str
    exact: bool

    def provenance(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        return None


def prepare(work: Work) -> None:
    """Creates a run, or checks that the run that is there was asked with the same options.

    A model behind a server is asked its first question, to learn what it can do; the answer is kept (in
    ``answers-0.jsonl``). Local weights are not loaded. Raises BadInput as ``open_respondent`` and ``RunFolder`` do.
    """
    with closing(open_store(work.place, work.storage)) as store:
        asyncio.run(_prepare(work, store))


async def _prepare(work: Work, store: Store) -> None:
    work.design.check()
    if work.resume:
        stored = store.manifest()
        name = work.model
        if name.startswith("sim/"):  # has a name of its own, and costs nothing to open
            name = (await open_respondent(name, work.options)).name
        made: Any = _Named(name, bool(stored.options.get("exact")))
        manifest = manifest_for(made, work.design, work.asking)
        check_variant(stored, manifest)
        versions = {what: manifest.versions[what] for what in ("questions", "world")}
        with RunFolder.resume(
            store.folder(),
            manifest.options,
            respondent=manifest.respondent,
            versions=versions,
            hashes=manifest.hashes,
            patience=PATIENCE,
            driven=True,
        ):
            pass
        store.publish(MANIFEST)
        return
    if store.exists():
        raise BadInput(f"{store.url} already holds a run: continue it with --resume, or choose another place.")
    item = next(work.design.items())
    local = work.model.startswith("local/")
    respondent: Any = (
        _Named(work.model, not work.options.sample) if local else await open_respondent(work.model, work.options, item)
    )
    try:
        store.begin(manifest_for(respondent, work.design, work.asking))
        if not local:
            with closing(store.writer("0")) as writer:
                async with aclosing(respondent.ask([Pending(item, 0, None, work.asking.followups)])) as answers:
                    async for answer in answers:
                        writer.write(answer)
    finally:
        await respondent.close()


def run_shard(
    place: str | Path,
    index: int,
    count: int,
    *,
    model: str | None = None,
    options: Options | None = None,
    storage: Mapping[str, Any] | None = None,
    patience: float = PATIENCE,
    driven: bool = False,
    watch: Callable[[ShardReport], None] = lambda _: None,
) -> ShardReport:
    """Asks what shard ``index`` of ``count`` still lacks, and writes it to the shard's own journal.

    ``place``: the run's folder or URL, created by ``prepare``. ``model`` and ``options`` default to those in the
    manifest; a limit of cost is shared evenly by the shards. One process a shard: another waits ``patience`` seconds
    for it to end. ``driven``: the caller is driven by the process that holds the run. Gives the shard's report, with
    ``state`` incomplete where calls failed or a limit was reached. Raises BadInput for what the user can mend.
    """
    name = shard_name(index, count)
    with closing(open_store(place, storage)) as store:
        manifest = store.manifest()
        design = design_of(manifest)
        if manifest.options.get("half_width") is not None:
            raise BadInput(
                f"{store.url} stops at a half-width, which is decided in one process: ask it without shards."
            )
        with store.lock(name, patience) as held:
            if not driven:
                _alone(store, name)
            asked = options or options_of(manifest)
            if asked.max_cost is not None:
                asked = replace(asked, max_cost=asked.max_cost / count)
            shard = _Shard(store, design, index, count, manifest, held, watch)
            return asyncio.run(shard.ask(model or manifest.respondent, asked))


class _Shard:
    """One sitting of one shard."""

    def __init__(
        self,
        store: Store,
        design: Design,
        index: int,
        count: int,
        manifest: Manifest,
        held: Callable[[], None],
        watch: Callable[[ShardReport], None],
    ) -> None:
        self._store, self._held, self._watch = store, held, watch
        self._name = shard_name(index, count)
        self._items: Callable[[], Iterator[Item]] = lambda: shard_items(design, index, count)
        self._manifest = manifest
        self._asking = Asking(manifest.options["draws"], manifest.options["followups"])
        self._exact = bool(manifest.options.get("exact"))
        questions = sum(1 for _ in shard_chains(design, index, count)) * 4 * self._asking.draws
        self._report = ShardReport(questions, shard=self._name)
        self._told = 0.0

    async def ask(self, model: str, options: Options) -> ShardReport:
        journal = self._store.journal(lambda other: _concerns(other, self._name))
        state = journal.state()
        own = [path.stem == f"answers-{self._name}" for path in state.paths]
        counts = state.counts if all(own) else self._store.journal(lambda other: other == self._name).state().counts
        report = self._report
        report.first, report.followups, report.cost = counts.first, counts.followup, counts.cost
        report.prompt_tokens, report.completion_tokens = counts.prompt_tokens, counts.completion_tokens
        if not all(own):  # the journal was fetched anew for the counts
            state = self._store.journal(lambda other: _concerns(other, self._name)).state()
        todo = self._pending(state, known=False)
        start = next(iter(todo), None)
        if start is None:
            return self._end(None, None)
        probe = start.item if start.first is None and start.draw == 0 else None
        respondent = await open_respondent(model, options, probe)
        spent: BudgetSpent | None = None
        try:
            if respondent.exact != self._exact:
                raise BadInput(
                    f"{model} answers {_how(respondent.exact)} to shard {self._name}, but the run is kept "
                    f"{_how(self._exact)}: use one server, or start with --sample."
                )
            with closing(self._store.writer(self._name)) as writer:
                before = report_of(self._store, self._name)
                report.sittings = 1 if before is None else before.sittings + 1
                self._tell(None)
                known = getattr(respondent, "aligned", False)
                todo = self._pending(state, known=known)
                try:
                    async with aclosing(respondent.ask(todo)) as answers:  # type: ignore[type-var]
                        async for answer in answers:
                            writer.write(answer)
                            report.add(answer)
                            if time.monotonic() - self._told >= TELL_SECONDS:
                                self._tell(None)
                except BudgetSpent as reason:
                    spent = reason
            return self._end(respondent.provenance(), spent)
        finally:
            await respondent.close()

    def _pending(self, state: Any, *, known: bool) -> Iterator[Pending]:
        answered = state if state.counts.first else None
        asking = self._asking
        return pending(self._items(), asking.draws, asking.followups, exact=self._exact, answered=answered, known=known)

    def _end(self, provenance: Mapping[str, Any] | None, spent: BudgetSpent | None) -> ShardReport:
        report = self._report
        report.state = "complete" if spent is None and not report.failed else "incomplete"
        if report.state == "incomplete":
            report.why = str(spent) if spent else f"{report.failed} calls failed after their retries."
        self._tell(provenance)
        return report

    def _tell(self, provenance: Mapping[str, Any] | None) -> None:
        self._held()
        self._told = time.monotonic()
        entry = asdict(self._report)
        name = f"shard-{self._name}.json"
        if provenance is not None:
            entry["provenance"] = dict(provenance)
        elif (before := _report_of(self._store.read(name))) is not None:
            entry["provenance"] = before.get("provenance", {})
        self._store.write(name, (json.dumps(entry, default=str) + "\n").encode())
        self._watch(self._report)


def reports(store: Store) -> list[dict[str, Any]]:
    """What the shards of a run told last, as JSON objects (``ShardReport`` with ``provenance``)."""
    found = (_report_of(store.read(name)) for name in store.names("shard-"))
    return [entry for entry in found if entry is not None]


def report_of(store: Store, name: str) -> ShardReport | None:
    """What one shard told last."""
    entry = _report_of(store.read(f"shard-{name}.json"))
    if entry is None:
        return None
    entry.pop("provenance", None)
    return ShardReport(**entry)


def _concerns(other: str, name: str) -> bool:
    """Whether a shard must read the journal ``other``: its own, and those of any other split."""
    return other == name or other_split(other, int(name.split("of")[1]))


def other_split(other: str, count: int) -> bool:
    """Whether a journal's name is not one of a split into ``count``."""
    match = SHARD_NAME.fullmatch(other)
    return match is None or int(match[2]) != count


def _alone(store: Store, name: str) -> None:
    """Raises BadInput where the run is being asked in another way."""
    if not isinstance(store, FolderStore):
        return
    run = RunFolder.open(store.path)
    split = name.split("of")[1]
    others = [busy for busy in busy_shards(store.path) if busy != name and not busy.endswith(f"of{split}")]
    if others or run.locked:
        raise BadInput(
            f"Another process is asking {store.url} as {', '.join(others[:3]) or 'a whole'}: wait for it, or stop it."
        )


def options_of(manifest: Manifest) -> Options:
    """A respondent's options from the manifest (and OPENAI_BASE_URL from the environment, as at the command line)."""
    told = {name: value for name, value in manifest.options.items() if name in _OPTIONS and value is not None}
    if "price" in told:
        told["price"] = tuple(told["price"])
    return Options(**told)


def _report_of(data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        entry = json.loads(data)
    except ValueError:  # it is being replaced
        return None
    return entry if isinstance(entry, dict) else None


def _how(exact: bool) -> str:
    return "in probabilities" if exact else "in words"

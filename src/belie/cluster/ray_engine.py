"""Runs on a Ray cluster: one Ray task a shard, many models at once, a driver that may die and come back.

Knows: Ray; which tasks a run needs in which order; how far all of them are.
Does not know: what a shard does (shards), where it writes (storage).

Ray repeats a task whose worker or node is lost; the repeated shard asks only what its journal lacks. The driver
holds nothing that is not in the run's folder, so a new one continues with ``resume``. At any time it has only about
two tasks a slot handed in, however many models and shards there are.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from belie.cluster import shards as plain
from belie.cluster.merging import elsewhere, merge
from belie.cluster.shards import ShardReport, Work, shard_name
from belie.cluster.storage import PATIENCE, Store, is_url, open_store
from belie.csq.run import Progress
from belie.respondents.base import BadInput
from belie.runs.folder import DRIVER

#: How often Ray repeats a task whose worker or node was lost.
RETRIES = 20
#: Seconds between two looks at how far the shards are; more where looking takes long.
LOOK_SECONDS = 2.0
#: Runs that nobody is asked for when they are created: the driver does it, which saves a worker's start.
_HERE = ("sim/", "local/")
Kind = Literal["prepare", "shard", "merge"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: ``status`` complete, incomplete, or failed (it could not begin or be merged); ``why`` in
    sentences."""

    place: str
    model: str
    status: str
    why: tuple[str, ...] = ()


def run_many(
    works: Iterable[Work],
    *,
    shards: int | None = None,
    address: str | None = None,
    gpus_per_worker: float = 0.0,
    watch: Callable[[Progress], None] = lambda _: None,
) -> list[Outcome]:
    """Makes all runs on a Ray cluster, each in ``shards`` shards, and merges each as soon as its shards are done.

    ``shards`` defaults to what the cluster can do at once, shared by the runs. ``address`` is Ray's (``auto``,
    ``host:6379``, ``ray://host:10001``); without it and without RAY_ADDRESS a cluster of this machine alone is
    started and ended. A worker takes ``gpus_per_worker`` GPUs and as many processors as its options' ``threads`` (1).
    Places must be seen by all nodes. A run that fails does not stop the others. Raises BadInput where Ray is missing
    or the cluster can't be reached, or has no node for such a worker.
    """
    todo = list(works)
    places = [work.place for work in todo]
    if len(set(places)) < len(places):
        raise BadInput("Two runs would lie in the same place: give each its own.")
    if shards is not None and shards < 1:
        raise BadInput(f"--shards {shards}: at least 1.")
    if gpus_per_worker < 0:
        raise BadInput(f"--gpus-per-worker {gpus_per_worker:g}: it must not be below 0.")
    with connected(address) as ray:
        cpus = max((work.options.threads or 1 for work in todo), default=1)
        slots = slots_of(ray, cpus, gpus_per_worker)
        return _Driver(ray, todo, shards or max(1, -(-slots // max(1, len(todo)))), slots, gpus_per_worker, watch).run()


@dataclass(slots=True)
class _Run:
    """One run under way. ``told`` holds the last report of each shard; ``before`` what other journals hold."""

    number: int
    work: Work
    count: int
    store: Store
    held: contextlib.ExitStack
    left: int
    before: Progress
    told: dict[str, ShardReport] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)


class _Driver:
    def __init__(
        self,
        ray: Any,
        works: Sequence[Work],
        count: int,
        slots: int,
        gpus: float,
        watch: Callable[[Progress], None],
    ) -> None:
        self._ray, self._watch, self._gpus = ray, watch, gpus
        self._works = deque(enumerate(works))
        self._count = count
        self._most = 2 * slots + 2
        self._waiting: deque[tuple[Kind, _Run, int]] = deque()
        self._futures: dict[Any, tuple[Kind, _Run, int]] = {}
        self._open: dict[int, _Run] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._progress = Progress(sum(len(work.design) * work.asking.draws for work in works))
        self._look_again = 0.0
        self._tasks = {
            "prepare": ray.remote(prepare_task),
            "shard": ray.remote(shard_task),
            "merge": ray.remote(merge_task),
        }

    def run(self) -> list[Outcome]:
        try:
            while self._works or self._waiting or self._futures:
                self._fill()
                done, _ = self._ray.wait(list(self._futures), timeout=1.0) if self._futures else ([], [])
                for future in done:
                    kind, run, _ = self._futures.pop(future)
                    self._take(future, kind, run)
                self._look()
        finally:
            for future in self._futures:
                with contextlib.suppress(Exception):
                    self._ray.cancel(future, force=True)
            for run in self._open.values():
                run.held.close()
        self._watch(self._sum())
        return [self._outcomes[number] for number in sorted(self._outcomes)]

    def _fill(self) -> None:
        while len(self._futures) < self._most:
            if self._waiting:
                kind, run, index = self._waiting.popleft()
                self._futures[self._submit(kind, run, index)] = (kind, run, index)
            elif self._works and len(self._open) < self._most:
                self._begin(*self._works.popleft())
            else:
                return

    def _begin(self, number: int, work: Work) -> None:
        count = max(1, min(self._count, sum(work.design.counts)))
        held = contextlib.ExitStack()
        try:
            store = open_store(work.place, work.storage)
            held.callback(store.close)
            if work.resume:
                store.manifest()  # no run, no lock
            elif store.exists():
                raise BadInput(f"{store.url} already holds a run: continue it with --resume, or choose another place.")
            held.enter_context(store.lock(DRIVER, PATIENCE if is_url(work.place) else 2.0))
        except BadInput as error:
            held.close()
            self._outcomes[number] = Outcome(work.place, work.model, "failed", (str(error),))
            return
        # a store's own name for the place: workers may have another current folder
        run = _Run(number, replace(work, place=store.url), count, store, held, count, Progress(0))
        self._open[number] = run
        if work.model.startswith(_HERE):
            self._prepared(run, *prepare_task(run.work, 0, count))
        else:
            self._waiting.append(("prepare", run, 0))

    def _submit(self, kind: Kind, run: _Run, index: int) -> Any:
        work = run.work
        options: dict[str, Any] = {"max_retries": RETRIES, "num_cpus": 1, "scheduling_strategy": "SPREAD"}
        if kind == "shard":
            options.update(num_cpus=work.options.threads or 1, num_gpus=self._gpus)
        name = f"{kind} {shard_name(index, run.count) if kind == 'shard' else ''} {work.model}"
        return self._tasks[kind].options(**options, name=name).remote(work, index, run.count)

    def _take(self, future: Any, kind: Kind, run: _Run) -> None:
        try:
            value, failure = self._ray.get(future)
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            lost = f"{type(cause).__name__}: {cause}" if cause is not None else type(error).__name__
            value, failure = None, f"The task {kind} of {run.work.place} was lost ({lost})."
        if kind == "prepare":
            self._prepared(run, value, failure)
            return
        if failure is not None and failure not in run.why:
            run.why.append(failure)
        if kind == "shard":
            run.left -= 1
            if value is not None:
                run.told[value.shard] = value
                if value.why and value.why not in run.why:
                    run.why.append(value.why)
            if not run.left:
                self._waiting.appendleft(("merge", run, 0))
        else:
            self._end(run, "failed" if value is None else value)

    def _prepared(self, run: _Run, before: Progress | None, failure: str | None) -> None:
        if before is None:
            run.why.append(failure or "")
            self._end(run, "failed")
            return
        run.before = before
        self._waiting.extend(("shard", run, index) for index in range(run.count))

    def _end(self, run: _Run, status: str) -> None:
        run.held.close()
        del self._open[run.number]
        for part in (run.before, *run.told.values()):
            _add(self._progress, part)
        why = () if status == "complete" else tuple(run.why)
        self._outcomes[run.number] = Outcome(run.work.place, run.work.model, status, why)

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._look_again:
            return
        for kind, run, index in list(self._futures.values()):
            if kind == "shard":
                with contextlib.suppress(BadInput):
                    report = plain.report_of(run.store, shard_name(index, run.count))
                    if report is not None:
                        run.told[report.shard] = report
        self._look_again = now + max(LOOK_SECONDS, 10 * (time.monotonic() - now))
        self._watch(self._sum())

    def _sum(self) -> Progress:
        total = replace(self._progress)
        for run in self._open.values():
            for part in (run.before, *run.told.values()):
                _add(total, part)
        return total


def prepare_task(work: Work, index: int, count: int) -> tuple[Progress | None, str | None]:
    """``prepare``, and what journals of other splits hold; or a sentence.

    The driver has looked that there was no run: one that is there now was begun by this task before its worker died.
    """
    del index
    try:
        with contextlib.closing(open_store(work.place, work.storage)) as store:
            work = replace(work, resume=work.resume or store.exists())
        plain.prepare(work)
        return elsewhere(work.place, count, work.storage), None
    except BadInput as error:
        return None, str(error)


def shard_task(work: Work, index: int, count: int) -> tuple[ShardReport | None, str | None]:
    """On a worker: ``run_shard``; or a sentence."""
    told = {"model": work.model, "options": work.options, "storage": work.storage}
    try:
        return plain.run_shard(work.place, index, count, driven=True, **told), None
    except BadInput as error:
        return None, str(error)


def merge_task(work: Work, index: int, count: int) -> tuple[str | None, str | None]:
    """On a worker: ``merge``, giving the run's status; or a sentence."""
    del index, count
    try:
        return merge(work.place, storage=work.storage, driven=True).status, None
    except BadInput as error:
        return None, str(error)


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected; a connection that was there already is used and kept."""
    try:
        import ray
    except ModuleNotFoundError:
        raise BadInput("--engine ray needs Ray, which is not installed: pip install 'belie[ray]'.") from None
    if ray.is_initialized():
        yield ray
        return
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise BadInput(f"The Ray cluster {address or 'of this machine'} can't be reached: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def slots_of(ray: Any, cpus: float, gpus: float) -> int:
    """How many workers the cluster can hold at once. Raises BadInput where no node can hold one."""
    slots = 0
    for node in ray.nodes():
        if node["Alive"]:
            has = node["Resources"]
            here = has.get("CPU", 0) // cpus
            slots += int(min(here, has.get("GPU", 0) // gpus) if gpus else here)
    if not slots:
        raise BadInput(
            f"No node of the Ray cluster has {cpus:g} processors"
            + (f" and {gpus:g} GPUs" if gpus else "")
            + " for a worker: lower --threads or --gpus-per-worker."
        )
    return slots


def _add(total: Progress, part: Progress | ShardReport) -> None:
    total.first += part.first
    total.followups += part.followups
    total.failed += part.failed
    total.prompt_tokens += part.prompt_tokens
    total.completion_tokens += part.completion_tokens
    total.cost += part.cost

"""KnownLie in shards: a domain is a shard, since its trajectories share the gate of each case.

Knows: how a run's folder becomes one folder a domain and one run again; which Ray tasks that takes.
Does not know: how rounds are played (`belie.knownlie`).

A domain is played by an ordinary run in ``domains/<id>/`` of the run's folder, which keeps, resumes and locks as any
run does. Merging copies its journal to ``rounds-<id>.jsonl`` and ``gates-<id>.jsonl`` beside the manifest, and its log
to ``episodes/``. Places are folders that all machines see; Inspect's logs and cache cannot lie at a URL.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from belie.cluster.ray_engine import RETRIES, Outcome, connected, slots_of
from belie.cluster.storage import PATIENCE, is_url
from belie.knownlie.journal import read_gates, read_rounds, read_usage
from belie.knownlie.pack import Pack
from belie.knownlie.protocol import Protocol, trajectories
from belie.knownlie.results import save_results
from belie.knownlie.run import run_folder, run_knownlie
from belie.knownlie.task import builtin_packs, load_packs
from belie.respondents.base import BadInput
from belie.runs import RunFolder, files
from belie.runs.folder import MANIFEST

#: Of a run: the folder of its domains while they are played.
DOMAINS = "domains"
_JOURNALS = ("rounds", "gates")


@dataclass(frozen=True, slots=True)
class Play:
    """One KnownLie run to be made, in the folder ``place``.

    ``domains``: ids or folders (None: all). ``server`` are `run_knownlie`'s own options: ``base_url``,
    ``max_connections``, ``max_retries``, ``timeout``, ``log_rounds``, ``prices``. ``resume`` continues the run there.
    """

    model: str
    customer: str
    judge: tuple[str, ...]
    place: str
    domains: tuple[str, ...] | None = None
    protocol: Protocol = field(default_factory=Protocol)
    server: Mapping[str, Any] = field(default_factory=dict)
    resume: bool = False

    @property
    def parts(self) -> dict[str, str]:
        """Domains by id: a name, or a folder that other machines find too."""
        known = builtin_packs()
        named = known if self.domains is None else self.domains
        names = [str(name) if str(name) in known else str(Path(name).absolute()) for name in named]
        return {load_packs([name])[0].id: name for name in names}

    @property
    def names(self) -> dict[str, Any]:
        """The players, as a run's manifest names them."""
        return {"model": self.model, "customer": self.customer, "judge": list(self.judge)}

    @property
    def packs(self) -> list[Pack]:
        return load_packs(None if self.domains is None else list(self.domains))


@contextlib.contextmanager
def begun(play: Play) -> Iterator[RunFolder]:
    """The run's folder, created or continued, and locked. Raises BadInput where it can't be."""
    if is_url(play.place):
        raise BadInput(f"{play.place} is a URL: a KnownLie run needs a folder that all machines see.")
    domains = None if play.domains is None else list(play.domains)
    run = run_folder(play.place, play.resume, play.names, play.packs, play.protocol, domains)
    assert run is not None, "a folder is named"
    with run:
        yield run


def play_domain(play: Play, domain: str) -> bool:
    """Plays what one domain still lacks; True when nothing is left. Its caller has begun the run.

    Raises BadInput as ``run_knownlie`` does.
    """
    name = play.parts[domain]
    whole = Path(play.place).absolute()
    folder = whole / DOMAINS / domain
    packs = load_packs([name])
    if not (folder / MANIFEST).exists():
        with begun(replace(play, place=str(folder), domains=(name,), resume=False)):
            pass
    until = time.monotonic() + PATIENCE
    while RunFolder.open(folder).locked and time.monotonic() < until:  # by a worker whose driver died just now
        time.sleep(0.5)
    cases = {case.id for case in packs[0].cases}
    _take_over(whole, folder, "rounds", lambda entry: entry.get("domain") == domain)
    _take_over(whole, folder, "gates", lambda entry: entry.get("case") in cases)
    result = run_knownlie(
        play.model,
        play.customer,
        list(play.judge),
        domains=[name],
        protocol=play.protocol,
        folder=folder,
        resume=True,
        **play.server,
    )
    return result.complete


def merge_domains(play: Play, run: RunFolder) -> str:
    """Makes one run of its domains, in its locked folder: journal, logs, manifest, scores. Gives its status."""
    provenance: dict[str, list[str]] = {}
    for folder in sorted((run.path / DOMAINS).glob("*")):
        for kind in _JOURNALS:
            journal = folder / f"{kind}-0.jsonl"
            if journal.exists():
                files.replace(run.path / f"{kind}-{folder.name}.jsonl", journal.read_bytes())
        for log in folder.glob("episodes/*.eval"):
            (run.path / "episodes").mkdir(exist_ok=True)
            shutil.copy2(log, run.path / "episodes" / f"{folder.name}-{log.name}")
        if (folder / MANIFEST).exists():
            for who, models in RunFolder.open(folder).manifest.provenance.items():
                provenance[who] = sorted({*provenance.get(who, ()), *models})
    rounds, gates = read_rounds(run.path), read_gates(run.path)
    expected = sum(len(trajectory.scenes) for trajectory in trajectories(play.packs, play.protocol))
    missing = sum(round.missing is not None for round in rounds)
    complete = len(rounds) == expected and not missing
    run.finish(
        "complete" if complete else "incomplete",
        provenance=provenance,
        totals={role: asdict(usage) for role, usage in read_usage(run.path).items()},
        counts={
            "rounds": len(rounds),
            "missing": missing,
            "unscored": sum(round.unscored is not None for round in rounds),
            "gates_passed": sum(gate.passed is True for gate in gates.values()),
            "gates_failed": sum(gate.passed is False for gate in gates.values()),
            "gate_calls_failed": sum(gate.passed is None for gate in gates.values()),
        },
    )
    save_results(run)
    if complete:
        shutil.rmtree(run.path / DOMAINS, ignore_errors=True)
    return run.manifest.status


def unplayed(play: Play) -> list[str]:
    """The domains of a merged run of which rounds were not begun."""
    wanted = Counter(one.domain for one in trajectories(play.packs, play.protocol) for _ in one.scenes)
    have = Counter(round.domain for round in read_rounds(Path(play.place)))
    return [domain for domain, count in wanted.items() if have[domain] < count]


def play_many(
    plays: Iterable[Play],
    *,
    address: str | None = None,
    gpus_per_worker: float = 0.0,
    watch: Callable[[int, int], None] = lambda *_: None,
) -> list[Outcome]:
    """Makes all KnownLie runs on a Ray cluster, one task a model and domain, and merges each when its domains are done.

    ``watch`` is told how many domains are done, of how many. As with `run_many`, a lost worker's task is repeated and
    plays only what its journal lacks; a run that fails does not stop the others. Raises BadInput where Ray is missing,
    or the cluster can't be reached.
    """
    todo = list(plays)
    if len({play.place for play in todo}) < len(todo):
        raise BadInput("Two runs would lie in the same place: give each its own.")
    outcomes: dict[int, Outcome] = {}
    with connected(address) as ray, contextlib.ExitStack() as held:
        slots_of(ray, 1, gpus_per_worker)
        task = ray.remote(domain_task).options(
            max_retries=RETRIES, num_cpus=1, num_gpus=gpus_per_worker, scheduling_strategy="SPREAD"
        )
        runs: dict[int, RunFolder] = {}
        futures: dict[Any, int] = {}
        why: dict[int, list[str]] = {}
        for number, play in enumerate(todo):
            try:
                runs[number] = held.enter_context(begun(play))
                futures.update({task.remote(play, domain): number for domain in play.parts})
                why[number] = []
            except BadInput as error:
                outcomes[number] = Outcome(play.place, play.model, "failed", (str(error),))
        total = len(futures)
        watch(0, total)
        while futures:
            done, _ = ray.wait(list(futures), timeout=1.0)
            for future in done:
                number = futures.pop(future)
                try:
                    failure = ray.get(future)
                except ray.exceptions.RayError as error:
                    failure = f"A domain was lost ({type(error).__name__}: {getattr(error, 'cause', None)})."
                if failure is not None and failure not in why[number]:
                    why[number].append(failure)
                watch(total - len(futures), total)
                if number not in futures.values():
                    play = todo[number]
                    status = merge_domains(play, runs[number])
                    runs[number].close()
                    told = () if status == "complete" else tuple(why[number])
                    outcomes[number] = Outcome(play.place, play.model, status, told)
    return [outcomes[number] for number in sorted(outcomes)]


def domain_task(play: Play, domain: str) -> str | None:
    """On a worker: ``play_domain``; a sentence where something is left."""
    try:
        return None if play_domain(play, domain) else f"Calls of {domain} failed after their retries."
    except BadInput as error:
        return str(error)


def _take_over(whole: Path, folder: Path, kind: str, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
    """What the run's own journal holds of a domain, and the domain's does not, goes into the domain's."""
    own = folder / f"{kind}-0.jsonl"
    have = list(files.lines(own)) if own.exists() else []
    known = set(have)
    new = [
        line
        for path in sorted(whole.glob(f"{kind}-*.jsonl"))
        for line in files.lines(path)
        if line.endswith(b"\n") and line not in known and wanted(json.loads(line))
    ]
    if new:
        files.replace(own, b"".join(line for line in have if line.endswith(b"\n")) + b"".join(new))

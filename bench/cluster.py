"""What the Ray engine costs over plain processes that ask the same shards of the same run, and what a large plan needs.

Both ways: create the run, ask 50,000 questions of a simulated respondent (which answers at once, so that all that is
seen is Belie and the engine) in as many shards as there are cores, merge, score. Plain: one ``python`` a shard, which
is what a SLURM array does. Ray: a new driver on a cluster that is up, its workers new processes too. Starting a
cluster of this machine alone is told apart. Then, without goals: what a task costs the driver, bytes an answer,
processor time an answer of asking and of merging. Figures for docs/scaling.md.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from figures import REPEATS, Figure, compared, in_turn, say

from belie.cluster import Work, merge, prepare, run_many, run_shard
from belie.csq.asked import Asking
from belie.csq.questions import Design, Variant
from belie.respondents.opening import Options

SIZES = (3, 5, 10, 20)
SHARDS = 2
_SHARD = "import sys; from belie.cluster import run_shard; run_shard(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"


def work(place: Path, questions: int) -> Work:
    chains = max(1, questions // (4 * len(SIZES)))
    design = Design(Variant(), SIZES, chains)
    return Work("sim/deceiver(0.3)", design, Options(sample=True), Asking(1, "wrong", {"sample": True}), str(place))


class Bench:
    """Runs in folders of their own under ``root``."""

    def __init__(self, root: Path, questions: int, address: str) -> None:
        self._root, self._questions, self._address = root, questions, address
        self._number = 0

    def _new(self) -> Work:
        self._number += 1
        return work(self._root / f"run-{self._number}", self._questions)

    def plain(self) -> float:
        """Seconds with one plain process a shard."""
        made, start = self._new(), time.perf_counter()
        prepare(made)
        shards = [
            subprocess.Popen([sys.executable, "-c", _SHARD, made.place, str(index), str(SHARDS)])
            for index in range(SHARDS)
        ]
        if max(shard.wait() for shard in shards):
            raise SystemExit("a shard failed")
        self._check(merge(made.place).status)
        return time.perf_counter() - start

    def ray(self) -> float:
        """Seconds on a cluster that is up."""
        made, start = self._new(), time.perf_counter()
        self._check(run_many([made], shards=SHARDS, address=self._address)[0].status)
        return time.perf_counter() - start

    def _check(self, status: str) -> None:
        if status != "complete":
            raise SystemExit(f"the run is {status}")


def growth(root: Path, questions: int) -> None:
    """Processor time and bytes an answer, asked and merged by this process."""
    made = work(root / "growth", questions)
    prepare(made)
    start = _processor_time()
    report = run_shard(made.place, 0, 1)
    asked = _processor_time() - start
    answers = report.first + report.followups
    start = _processor_time()
    merge(made.place)
    merged = _processor_time() - start
    sizes = {path.name: path.stat().st_size for path in Path(made.place).iterdir()}
    notes: dict[str, Any] = {"questions": questions, "answers": answers}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for name, value, unit in (
        ("asking and writing an answer (sim)", 1e6 * asked / answers, "µs of processor time"),
        ("merging and scoring an answer", 1e6 * merged / answers, "µs of processor time"),
        ("an answer in the journal", sizes["answers-0of1.jsonl"] / answers, "bytes"),
        ("an answer in Parquet", sizes["answers.parquet"] / answers, "bytes"),
        ("the most memory of asking and merging", peak, "MB"),
    ):
        Figure(f"cluster: {name}", value, unit, value, notes=notes).show()


def driver(root: Path, address: str, runs: int) -> None:
    """What one task costs the driver: many runs of a few questions."""
    works = [work(root / f"small-{number}", 16) for number in range(runs)]
    run_many(works[:2], shards=2, address=address)
    start, used = time.perf_counter(), _processor_time()
    outcomes = run_many(works[2:], shards=2, address=address)
    wall, cost = time.perf_counter() - start, _processor_time() - used
    tasks = 4 * len(outcomes)
    notes = {"tasks": tasks, "complete": sum(outcome.status == "complete" for outcome in outcomes)}
    Figure(
        "cluster: a task, for the driver", 1e3 * cost / tasks, "ms of processor time", 1e3 * cost / tasks, notes=notes
    ).show()
    Figure("cluster: tasks a second, tiny shards", tasks / wall, "a second", tasks / wall, notes=notes).show()


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--runs", type=int, default=40, help="tiny runs for the driver's cost")
    arguments = parser.parse_args()
    from ray.cluster_utils import Cluster

    start = time.perf_counter()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": SHARDS, "include_dashboard": False})
    started = time.perf_counter() - start
    try:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            bench = Bench(root, arguments.questions, str(cluster.address))
            say(f"{arguments.questions:,} questions in {SHARDS} shards: Ray, plain processes (seconds)")
            ray, plain = in_turn(arguments.repeats, bench.ray, bench.plain)
            compared(
                f"cluster: Ray engine over {SHARDS} plain processes, {arguments.questions:,} questions",
                ray,
                plain,
                more_is_better=False,
                unit="s",
                sense="≤",
                goal=1.15,
                notes={"starting_a_cluster_here_s": started},
            ).show()
            growth(root, arguments.questions)
            driver(root, str(cluster.address), arguments.runs)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()

"""Rows 6 to 8: the KnownLie engine against a stub that takes 1 s for every call of every player.

Critical path: the longest trajectory with every call in turn, the first gate included; no engine can be faster, since
each call needs the answer to the one before. The calls are counted in the run's own journal. The sequential loop is all
calls of the run, gates included, one after the other (computed). The full protocol takes minutes and is run once by
default (``--full-repeats``); the spread is that of five runs with 3 cases a trajectory, which keep as many calls in
flight.

Processor time: the calls of a run (messages, tools, schema, settings) are recorded and made again with Inspect's bare
``generate`` in as many samples, with the same options of ``eval`` and the same scripted players. So the ratio holds
what Belie adds: environment and tools, prompts, trust, journal, the cache by which a killed run continues. The cost of
a bare one-line question is told beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures import REPEATS, Figure, compared, in_turn, say
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, ModelAPI, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from belie.knownlie.run import CONNECTIONS, run_knownlie

PLAYERS = {"agent": "liar-false_policy", "customer": "verifying", "judge": "judge-perfect"}
TRAJECTORIES = 72


@dataclass(slots=True)
class Played:
    """One run: wall and processor seconds, calls in all, and calls in turn on the longest trajectory."""

    rounds: int
    wall_s: float
    cpu_s: float
    calls: int
    in_turn: int


@dataclass(slots=True)
class Recorded:
    """The calls that came to the players, in order."""

    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)


def seats(latency_s: float, recorded: Recorded | None = None) -> dict[str, Model]:
    made = {}
    for role, player in PLAYERS.items():
        model = get_model(f"belie/scripted-{player}", latency=latency_s, memoize=False)
        if recorded is not None:
            _record(model.api, role, recorded)
        made[role] = model
    return made


def _record(api: ModelAPI, role: str, recorded: Recorded) -> None:
    generate = api.generate

    async def also_recorded(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        recorded.calls.append((role, (list(input), list(tools), tool_choice, config)))
        return await generate(input, tools, tool_choice, config)

    api.generate = also_recorded


def play(latency_s: float, limit: int | None, recorded: Recorded | None = None) -> Played:
    """A run in a folder, as the command line makes it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        players = seats(latency_s, recorded)
        cpu, start = time.process_time(), time.perf_counter()
        run = run_knownlie(players["agent"], players["customer"], players["judge"], folder=folder, limit=limit)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        if not run.complete:
            raise RuntimeError("the run is incomplete")
        calls: Counter[str] = Counter()
        for file in folder.glob("rounds-*.jsonl"):
            for line in file.read_text(encoding="utf-8").splitlines():
                told = json.loads(line)
                if "usage" not in told:
                    continue
                trajectory = "-".join(str(told[name]) for name in ("domain", "condition", "trust", "seed"))
                calls[trajectory] += sum(role["calls"] for role in told["usage"].values())
    total = sum(usage.calls for usage in run.usage.values())
    if sum(calls.values()) + run.usage["gate"].calls != total:
        raise RuntimeError("the journal does not hold all calls")
    return Played(len(run.rounds), wall, cpu, total, 1 + max(calls.values()))


def bare(recorded: Recorded, samples: int) -> float:
    """Processor seconds of the recorded calls through Inspect's own generate, spread over ``samples`` samples."""
    players = seats(0.0)
    shares = [recorded.calls[number::samples] for number in range(samples)]

    async def call(role: str, what: tuple[Any, ...]) -> None:
        messages, tools, choice, config = what
        asked = GenerateConfig(temperature=config.temperature, seed=config.seed, response_schema=config.response_schema)
        await players[role].generate(messages, tools=tools, tool_choice=choice, config=asked)

    return _evaluated([[lambda one=one: call(*one) for one in share] for share in shares])


def one_line(calls: int, samples: int) -> float:
    """Processor seconds of as many calls with one short message each."""
    judge = seats(0.0)["judge"]
    said = ModelOutput.from_content("yes", "Yes")
    said.usage = ModelUsage(input_tokens=5, output_tokens=1, total_tokens=6)

    async def yes(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:  # noqa: ARG001
        return said.model_copy(deep=True)

    judge.api.generate = yes

    async def call() -> None:
        await judge.generate([ChatMessageUser(content="Yes or no?")])

    return _evaluated([[call] * (calls // samples)] * samples)


def _evaluated(shares: list[list[Any]]) -> float:
    @solver
    def in_order() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 (Inspect's signature)
            for call in shares[int(state.sample_id)]:
                await call()
            return state

        return solve

    samples = [Sample(id=str(number), input="x") for number in range(len(shares))]
    with tempfile.TemporaryDirectory() as folder:
        cpu = time.process_time()
        log = inspect_eval(
            Task(dataset=MemoryDataset(samples), solver=in_order()),
            model=seats(0.0)["agent"],
            log_dir=folder,
            display="none",
            max_samples=len(shares),
            adaptive_connections=CONNECTIONS,
            max_retries=5,
            timeout=600,
            log_realtime=False,
            log_model_api=False,
            score_display=False,
            ctl_server=False,
        )[0]
        cpu = time.process_time() - cpu
    if log.status != "success":
        raise RuntimeError(f"the bare calls failed: {log.error}")
    return cpu


def paths(limit: int | None, latency_s: float, full_repeats: int, short_repeats: int) -> None:
    say(f"warming up, then {short_repeats} runs of 3 cases a trajectory, {latency_s:g} s a call")
    play(0.0, 1)
    short = [play(latency_s, 3) for _ in range(short_repeats)]
    over = [one.wall_s / (one.in_turn * latency_s) for one in short]
    for one in short:
        say(f"  {one}")
    Figure(
        f"KnownLie, {short[0].rounds} rounds (3 cases a trajectory): wall time / critical path",
        statistics.median(over),
        "s",
        statistics.median(one.wall_s for one in short),
        short[0].in_turn * latency_s,
        spread=(min(over), max(over)),
        runs=short_repeats,
    ).show()
    say("the full protocol")
    full = [play(latency_s, limit) for _ in range(full_repeats)]
    for one in full:
        say(f"  {one}")
    wall = statistics.median(one.wall_s for one in full)
    last = full[-1]
    notes = {
        "calls": last.calls,
        "calls_in_turn": last.in_turn,
        "latency_s": latency_s,
        "cpu_s": last.cpu_s,
        "cpu_ms_a_call": last.cpu_s / last.calls * 1000,
        "spread_of": "the short runs" if full_repeats == 1 else "these runs",
    }
    path, loop = last.in_turn * latency_s, last.calls * latency_s
    if full_repeats > 1:
        over = [one.wall_s / path for one in full]
    spread = (min(over), max(over))
    name = f"KnownLie, {last.rounds} rounds"
    Figure(
        f"{name}: wall time / critical path", wall / path, "s", wall, path, "≤", 1.2, 6, spread, full_repeats, notes
    ).show()
    Figure(
        f"{name}: speed / sequential loop (computed)", loop / wall, "s", wall, loop, "≥", 50.0, 7, None, full_repeats
    ).show()


def processor(cases: tuple[int, int], repeats: int) -> None:
    """Milliseconds a call, from runs of few and of more cases a trajectory: what a run costs once drops out."""
    say(f"processor time a call (ms), {cases[1]} less {cases[0]} cases: Belie, the same calls bare, one line")
    few, more = Recorded(), Recorded()
    play(0.0, cases[0], few)
    play(0.0, cases[1], more)
    calls = len(more.calls) - len(few.calls)

    def a_call(spent: Callable[[int, Recorded], float]) -> float:
        return (spent(cases[1], more) - spent(cases[0], few)) / calls * 1000

    mine, theirs, simple = in_turn(
        repeats,
        lambda: a_call(lambda limit, _: play(0.0, limit).cpu_s),
        lambda: a_call(lambda _, recorded: bare(recorded, TRAJECTORIES)),
        lambda: a_call(lambda _, recorded: one_line(len(recorded.calls), TRAJECTORIES)),
    )
    compared(
        "KnownLie: processor time a call / the same call with Inspect's bare generate",
        mine,
        theirs,
        more_is_better=False,
        unit="ms",
        sense="≤",
        goal=1.3,
        row=8,
        notes={"calls": calls, "bare_one_line_ms": statistics.median(simple)},
    ).show()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds a call of the stub takes")
    parser.add_argument("--full-repeats", type=int, default=1, help="runs of all 1,008 rounds")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--limit", type=int, help="cases a trajectory in the full runs (default: all 14)")
    parser.add_argument("--cpu-only", action="store_true")
    parser.add_argument("--quick", action="store_true", help="2 cases a trajectory, once, 0.2 s")
    options = parser.parse_args()
    os.environ.setdefault("INSPECT_LOG_LEVEL", "error")
    if not options.cpu_only:
        latency, limit, repeats = options.latency, options.limit, options.repeats
        if options.quick:
            latency, limit, repeats = 0.2, 2, 1
        paths(limit, latency, 1 if options.quick else options.full_repeats, repeats)
    processor((1, 2) if options.quick else (1, 5), 2 if options.quick else options.repeats)


if __name__ == "__main__":
    main()

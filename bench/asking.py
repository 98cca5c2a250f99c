"""Rows 1 and 2: yes/no questions put to a server that takes 50 ms, 200 in flight: Belie's ``http`` asker, a bare
aiohttp loop, and lm-evaluation-harness.

All three ask the same questions of the same server. The bare loop does what cannot be left out: it writes each request
as JSON, sends it, reads the reply and takes the word out of it; no retries, no pace, no totals, no order, nothing kept.
What a whole run does beside asking (questions made on the way, journal, progress) is measured against the harness's own
whole evaluation; calls alone against its calls alone, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
from figures import REPEATS, Figure, compared, in_turn, say
from peers import environment
from peers.environment import Harness

from belie.csq.asked import Asking, manifest_for
from belie.csq.questions import Design, Variant
from belie.csq.run import ask, open_folder
from belie.items import Item, Pending
from belie.respondents.http import HttpRespondent, open_http

IN_FLIGHT = 200
DELAY_S = 0.05
SIZES = (3, 5, 10, 20)


def questions(count: int) -> list[Item]:
    """First questions of the quick preset's sizes; without follow-ups, so that all three ask equally many."""
    design = Design(Variant(), SIZES, -(-count // (4 * len(SIZES))))
    return [replace(item, followup=None) for item in design.items()][:count]


async def belie(url: str, items: list[Item]) -> int:
    respondent = _opened(url)
    done = 0
    async for answer in respondent.ask(map(Pending, items)):
        done += answer.text == "Yes"
    await respondent.close()
    return done


async def bare(url: str, items: list[Item]) -> int:
    source, done = iter(items), 0
    connector = aiohttp.TCPConnector(limit=0)

    async def keep_asking(session: aiohttp.ClientSession) -> None:
        nonlocal done
        for item in source:
            talk = [{"role": "user", "content": item.question}]
            asked = {"model": "stub", "messages": talk, "max_tokens": 16, "temperature": 1.0}
            async with session.post(f"{url}/chat/completions", json=asked) as reply:
                told = json.loads(await reply.read())
            done += told["choices"][0]["message"]["content"] == "Yes"

    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(keep_asking(session) for _ in range(IN_FLIGHT)))
    return done


async def whole_run(url: str, chains: int, folder: Path) -> int:
    """A run as the command line makes one: questions made on the way, follow-ups, journal, manifest."""
    design = Design(Variant(), SIZES, chains)
    respondent = _opened(url)
    await respondent.start(next(design.items()))
    asking = Asking()
    with open_folder(manifest_for(respondent, design, asking), folder, resume=False) as run:
        progress = await ask(respondent, run, design, asking)
    await respondent.close()
    return progress.first + progress.followups


def _opened(url: str) -> HttpRespondent:
    return open_http("stub", base_url=url, sample=True, max_tokens=16, concurrency=IN_FLIGHT)


@contextmanager
def stub(delay_s: float = DELAY_S) -> Iterator[str]:
    """The stub server in a process of its own (under uvloop, in the peers' environment): its base URL."""
    environment.make()
    command = [str(environment.PYTHON), str(Path(__file__).with_name("stub.py")), str(delay_s)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()


def spent(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/spent") as reply:
        return json.loads(reply.read())


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--quick", action="store_true", help="2,000 questions, twice")
    parser.add_argument("--no-peer", action="store_true", help="without lm-evaluation-harness")
    options = parser.parse_args()
    count, repeats = (2000, 2) if options.quick else (options.questions, options.repeats)
    items = questions(count)
    with stub() as url:
        asyncio.run(bare(url, items[:1000]))
        asyncio.run(belie(url, items[:1000]))
        cpu: dict[str, list[float]] = {"belie": [], "bare": [], "stub": []}

        def measured(name: str) -> float:
            before, server, start = cpu_s(), spent(url), time.perf_counter()
            got = asyncio.run({"belie": belie, "bare": bare}[name](url, items))
            seconds = time.perf_counter() - start
            cpu[name].append((cpu_s() - before) / count * 1000)
            after = spent(url)
            cpu["stub"].append((after["cpu_s"] - server["cpu_s"]) / (after["answered"] - server["answered"]) * 1000)
            if got != count:
                raise RuntimeError(f"{name}: {got} answers to {count} questions")
            return count / seconds

        say(f"{count} questions, {IN_FLIGHT} in flight: Belie, bare aiohttp (answers a second)")
        ours, theirs = in_turn(repeats, lambda: measured("belie"), lambda: measured("bare"))
        middle = {f"{name}_cpu_ms_a_call": sorted(each)[len(each) // 2] for name, each in cpu.items()}
        compared(
            "http asker / bare aiohttp loop",
            ours,
            theirs,
            more_is_better=False,
            unit="answers/s",
            sense="≥",
            goal=0.8,
            row=1,
            notes=middle,
        ).show()
        ceiling = IN_FLIGHT / DELAY_S
        Figure(
            "stub server: processor time an answer / that of the bare loop",
            middle["stub_cpu_ms_a_call"] / middle["bare_cpu_ms_a_call"],
            "ms",
            middle["stub_cpu_ms_a_call"],
            middle["bare_cpu_ms_a_call"],
            notes={"answers_a_second_at_most": ceiling},
        ).show()

        with tempfile.TemporaryDirectory() as folder:
            rates = []
            for repeat in range(repeats):
                start = time.perf_counter()
                got = asyncio.run(whole_run(url, -(-count // 20), Path(folder) / str(repeat)))
                rates.append(got / (time.perf_counter() - start))
        compared(
            "a whole CSQ run through http (questions made, journal kept) / bare aiohttp loop",
            rates,
            theirs,
            more_is_better=False,
            unit="answers/s",
        ).show()

        if options.no_peer:
            return
        talks = [[{"role": "user", "content": item.question}] for item in items]

        def against(kind: str, name: str, ours: Callable[[], float], **goal: Any) -> None:
            say(f"{name} (answers a second)")
            with Harness(kind, url, str(IN_FLIGHT), work=talks) as harness:

                def peer() -> float:
                    told = harness.run()
                    if told["results"] != count:
                        raise RuntimeError(f"lm-evaluation-harness: {told['results']} answers to {count} questions")
                    return count / told["seconds"]

                mine, theirs = in_turn(repeats, ours, peer)
                notes = {"peer": harness.versions}
                compared(name, mine, theirs, more_is_better=False, unit="answers/s", notes=notes, **goal).show()

        def whole() -> float:
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                got = asyncio.run(whole_run(url, -(-count // 20), Path(folder) / "run"))
                return got / (time.perf_counter() - start)

        against(
            "evaluate",
            "a whole CSQ run through http / lm-evaluation-harness simple_evaluate with local-chat-completions",
            whole,
            sense="≥",
            goal=4,
            row=2,
        )
        against(
            "http",
            "http asker / the calls alone of lm-evaluation-harness local-chat-completions",
            lambda: measured("belie"),
        )


if __name__ == "__main__":
    sys.exit(main())

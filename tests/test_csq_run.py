"""A CSQ run from the design to scores.json: through `belie.csq.run`, the command line, and Inspect AI."""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from stub_server import StubServer, completion, failure

from belie.csq.asked import Asking, manifest_for
from belie.csq.questions import Design, Variant, item_from_id
from belie.csq.run import ask, first_pending, open_folder, save_results, score_run
from belie.respondents.opening import Options, open_respondent
from belie.runs import RunFolder

FAULTS = {"429": 0.05, "500": 0.02, "drop": 0.01, "html": 0.01, "truncated": 0.01, "empty": 0.005}


BELIE = [sys.executable, "-c", "from belie.cli import main; main()"]


async def run_once(path: Path, model: str, design: Design, *, resume: bool = False, **options) -> dict:
    """Asks a design to its end and gives what scores.json holds."""
    opened = Options(**options)
    asking = Asking(options={"sample": opened.sample})
    respondent = await open_respondent(model, opened, first_pending(design, asking, path if resume else None))
    try:
        with open_folder(manifest_for(respondent, design, asking), path, resume=resume) as run:
            await ask(respondent, run, design, asking)
            save_results(run, score_run(run))
    finally:
        await respondent.close()
    return json.loads((path / "scores.json").read_text())


@contextlib.contextmanager
def serving(**options):
    """A stub server in a thread of its own, for clients in other processes."""
    loop, stub, ready = asyncio.new_event_loop(), StubServer(**options), threading.Event()

    def serve() -> None:
        loop.run_until_complete(stub.start())
        ready.set()
        loop.run_forever()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield stub
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def belie(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        [*BELIE, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


async def test_a_bad_server_changes_no_figure(tmp_path):
    design = Design(Variant(), (3, 5), 120)
    async with StubServer() as good:
        good.keep_requests = False
        without = await run_once(tmp_path / "good", "http/stub", design, base_url=good.url, sample=True)
    async with StubServer(faults=FAULTS, seed=3) as bad:
        bad.keep_requests = False
        with_faults = await run_once(tmp_path / "bad", "http/stub", design, base_url=bad.url, sample=True)
        assert sum(bad.faulty.values()) > 50
        assert set(bad.successes.values()) == {1}
    assert with_faults == without
    assert with_faults["coverage"]["missing"] == 0


def test_ten_kills_change_no_figure_and_ask_only_what_is_missing(tmp_path):
    chance = random.Random(8)
    design = ["--n", "3,5,10", "--chains", "60", "--sample", "--concurrency", "4"]
    with serving(delay_s=0.004) as stub:
        stub.keep_requests = False
        server = ["--base-url", stub.url]
        whole = belie("csq", "run", "http/stub", *design, *server, "-o", str(tmp_path / "whole"))
        assert whole.returncode == 0, whole.stderr
        once = stub.successes.total()
        stub.successes.clear()

        path, kills, held = tmp_path / "killed", 0, 0
        journal = path / "answers-0.jsonl"
        while kills < 10:
            command = [*BELIE, "csq", "run", "http/stub", *design, *server]
            command += ["--resume", str(path)] if path.exists() else ["-o", str(path)]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before = journal.stat().st_size if journal.exists() else 0
            while process.poll() is None and (not journal.exists() or journal.stat().st_size == before):
                time.sleep(0.002)
            time.sleep(chance.random() * 0.06)
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            lines = journal.read_bytes().count(b"\n")
            assert lines >= held
            held = lines
        done = belie("csq", "run", "http/stub", *server, "--concurrency", "4", "--resume", str(path))
        assert done.returncode == 0, done.stderr
        # Only what was in flight when a process died, and the opening question of a resumed run, is paid twice.
        assert stub.successes.total() <= once + kills * 5 + 1
    assert held < once, "every kill came after the end: the test shows nothing"
    assert (path / "scores.json").read_bytes() == (tmp_path / "whole" / "scores.json").read_bytes()
    assert RunFolder.open(path).status == "complete"


async def test_resuming_a_complete_run_asks_nothing(tmp_path):
    design = Design(Variant(), (3,), 5)
    async with StubServer() as stub:
        first = await run_once(tmp_path / "run", "http/stub", design, base_url=stub.url, sample=True)
        asked = len(stub.requests)
        again = await run_once(tmp_path / "run", "http/stub", design, resume=True, base_url=stub.url, sample=True)
        # One question finds out what the server can do; it belongs to no item.
        assert len(stub.requests) <= asked + 1
    assert again == first


async def test_a_failed_call_is_missing_then_asked_again(tmp_path):
    design = Design(Variant(), (3,), 6)
    linked = next(iter(design.items())).question

    def refuse(request):
        return failure(400, "the content filter refused it") if linked in request.prompt else completion("Yes")

    async with StubServer(refuse) as stub:
        respondent = await open_respondent("http/stub", Options(base_url=stub.url, sample=True))
        with open_folder(manifest_for(respondent, design, Asking()), tmp_path / "run", resume=False) as run:
            progress = await ask(respondent, run, design, Asking())
        await respondent.close()
    assert progress.failed == 1
    run = RunFolder.open(tmp_path / "run")
    assert run.manifest.status == "incomplete"
    scores = score_run(run)
    assert scores.rows[0].counts["linked"]["errors"] == 1
    assert scores.rows[0].denominators["linked"] == 5
    assert scores.rows[0].figures["error"].value == pytest.approx((0 + 1 + 1 + 0) / 4)

    async with StubServer(lambda _: completion("Yes")) as stub:
        respondent = await open_respondent("http/stub", Options(base_url=stub.url, sample=True))
        with open_folder(manifest_for(respondent, design, Asking()), tmp_path / "run", resume=True) as run:
            assert (await ask(respondent, run, design, Asking())).failed == 0
        await respondent.close()
    assert RunFolder.open(tmp_path / "run").manifest.status == "complete"
    assert score_run(RunFolder.open(tmp_path / "run")).rows[0].denominators["linked"] == 6


@pytest.mark.parametrize("variant", [Variant(), Variant(matched=False, phrasing="mixed", k=3), Variant("flights")])
async def test_scores_are_recomputed_from_the_journal_alone(tmp_path, variant):
    design = Design(variant, (3, 5), 20)
    saved = await run_once(tmp_path / "run", "sim/deceiver(0.3)", design)
    run = RunFolder.open(tmp_path / "run")
    told = score_run(run).to_json()
    assert {name: saved[name] for name in told} == told
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "run" / "answers.parquet").to_pylist()
    assert len(table) == sum(1 for _ in run.journal.answers())
    world = variant.world
    assert {row["item"] for row in table} == {item.id for item in design.items()}
    assert all(item_from_id(row["item"]).truth == row["truth"] for row in table), world


async def test_inspect_eval_agrees_with_belie_csq_run_to_the_last_digit(tmp_path):
    """The same scripted answers through `inspect eval belie/csq` and through `belie csq run`."""
    import hashlib

    from inspect_ai import eval_async
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.util._display import init_display_type

    from belie.csq.task import csq

    init_display_type("none")  # else Inspect AI gives this process a display that prints in every later test

    def answer(messages, *_):
        text = "\n".join(message.text for message in messages)
        digit = hashlib.sha256(text.encode()).digest()[0]
        output = ModelOutput.from_content(
            "mockllm/model", "Yes" if digit < 110 else "No" if digit < 230 else "Perhaps."
        )
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    log = (
        await eval_async(
            csq(sizes="3,5", chains=8, followups="wrong"),
            model=get_model("mockllm/model", custom_outputs=answer, memoize=False),
            log_dir=str(tmp_path / "logs"),
        )
    )[0]
    assert log.status == "success", log.error
    assert log.results
    told = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}

    from belie.respondents.allowance import Allowance
    from belie.respondents.inspect_model import InspectRespondent

    design = Design(Variant(), (3, 5), 8)
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    respondent = InspectRespondent(
        "mockllm/model", model, Allowance(None, None, None), concurrency=4, timeout_s=60, seed=0
    )
    with open_folder(manifest_for(respondent, design, Asking()), tmp_path / "run", resume=False) as run:
        await ask(respondent, run, design, Asking())
        scores = score_run(run)
    assert told["chains"] == 16
    assert told["coverage_first"] == scores.coverage["first"] < 1
    for row in scores.rows:
        for name in ("rho", "delta", "delta_net", "beta", "error"):
            assert told[f"{name}_n{row.n}"] == row.figures[name].value
    for name, figure in scores.overall.items():
        assert told[name] == figure.value

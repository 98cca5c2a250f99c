"""Runs in shards: by hand, as SLURM does it, on a real Ray cluster whose nodes die. Scores are those of one process."""

import asyncio
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from cluster_driver import DESIGN, served_work
from hypothesis import given, settings
from hypothesis import strategies as st
from stub_server import StubServer
from typer.testing import CliRunner

from belie.cli import app
from belie.cli.options import asking_of
from belie.cluster import Work, merge, open_store, prepare, run_many, run_shard, url_of
from belie.cluster.knownlie import Play, begun, merge_domains, play_domain, play_many
from belie.cluster.merging import merged
from belie.cluster.objects import Lease, ObjectStore, PartWriter
from belie.cluster.shards import reports, shard_items
from belie.csq.asked import manifest_for
from belie.csq.questions import Design, Variant
from belie.csq.run import ask, save_results, score_run
from belie.items import Answer
from belie.knownlie.protocol import Protocol
from belie.knownlie.results import save_results as save_knownlie
from belie.knownlie.run import run_knownlie
from belie.respondents.base import BadInput
from belie.respondents.opening import Options, open_respondent
from belie.runs import RunFolder

PARCEL = Path(__file__).parent / "data" / "pack_parcel"
SIM = "sim/deceiver(0.4)"


def sim_work(place, *, resume=False, seed=3):
    options = Options(sample=True, seed=seed)
    design = Design(Variant(), (3, 5), 20, seed)
    return Work(SIM, design, options, asking_of(options, 2, "wrong"), str(place), resume)


def in_one_process(work: Work) -> bytes:
    """The scores.json of an ordinary run."""

    async def run() -> None:
        respondent = await open_respondent(work.model, work.options, next(work.design.items()))
        try:
            with RunFolder.create(work.place, manifest_for(respondent, work.design, work.asking)) as folder:
                await ask(respondent, folder, work.design, work.asking)
                save_results(folder, score_run(folder))
        finally:
            await respondent.close()

    asyncio.run(run())
    return (Path(work.place) / "scores.json").read_bytes()


def scores_at(place) -> bytes | None:
    return open_store(place).read("scores.json")


def held(place):
    """What the journal of a run holds, in numbers."""
    return open_store(place).journal().state().counts


def again_and_again(act) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        act()
        time.sleep(0.02)


# shards as plain functions


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(3, 12), min_size=1, max_size=3, unique=True),
    chains=st.integers(1, 9),
    count=st.integers(1, 12),
    matched=st.booleans(),
)
def test_shards_part_a_design_by_chain(sizes, chains, count, matched):
    design = Design(Variant(matched=matched), tuple(sizes), chains, 1)
    parts = [[item.id for item in shard_items(design, i, count)] for i in range(count)]
    assert sorted(name for part in parts for name in part) == sorted(item.id for item in design.items())
    assert max(map(len, parts)) - min(map(len, parts)) <= 4
    for part in parts:
        assert all(many == 4 for many in Counter(name.rpartition("/")[0].split("~")[0] for name in part).values())


@pytest.mark.parametrize("where", ["folder", "file", "memory"])
def test_shards_end_with_the_scores_of_one_process(tmp_path, where):
    whole = in_one_process(sim_work(tmp_path / "whole"))
    place = {
        "folder": str(tmp_path / "split"),
        "file": f"file://{tmp_path}/split",
        "memory": f"memory://{tmp_path.name}/split",
    }[where]
    prepare(sim_work(place))
    for index in (2, 0):
        assert run_shard(place, index, 3).state == "complete"
    assert merge(place).status == "incomplete"
    assert run_shard(place, 1, 3).state == "complete"
    manifest = merge(place)
    assert manifest.status == "complete"
    assert manifest.counts["first"] == manifest.counts["questions"] == 320
    assert scores_at(place) == whole
    assert manifest.provenance["shards"] == {"count": 3, "sittings": 3, "hosts": manifest.provenance["shards"]["hosts"]}
    # another split has nothing to ask, and the place is left tidy
    assert run_shard(place, 1, 4).first == 0
    assert held(place).duplicates == 0
    with pytest.raises(BadInput, match="already holds a run"):
        prepare(sim_work(place))


def test_a_run_goes_on_with_another_split_and_in_one_process(tmp_path):
    whole = in_one_process(sim_work(tmp_path / "whole"))
    work = sim_work(tmp_path / "split")
    prepare(work)
    run_shard(work.place, 0, 2)
    run_shard(work.place, 3, 5)
    options = ["--n", "3,5", "--chains", "20", "--seed", "3", "--sample", "--draws", "2", "--resume", work.place]
    result = CliRunner().invoke(app, ["csq", "run", SIM, *options, "--json"])
    assert result.exception is None, result.exception
    assert json.loads(result.stdout)["status"] == "complete"
    assert held(work.place).duplicates == 0
    assert scores_at(work.place) == whole


def test_more_shards_than_files_may_be_open(tmp_path):
    place = str(tmp_path / "run")
    prepare(sim_work(place))
    for index in range(40):
        run_shard(place, index, 40)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 36, limit[1]))
    try:
        assert merge(place).status == "complete"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def test_a_continued_run_must_ask_the_same(tmp_path):
    prepare(sim_work(tmp_path / "run"))
    with pytest.raises(BadInput, match="seed was 3, now 4"):
        prepare(sim_work(tmp_path / "run", resume=True, seed=4))
    with pytest.raises(BadInput, match="holds no run"):
        prepare(sim_work(tmp_path / "none", resume=True))
    with pytest.raises(BadInput, match="no shard 3 of 3"):
        run_shard(tmp_path / "run", 3, 3)
    with pytest.raises(BadInput, match="holds no run"):
        run_shard(tmp_path / "none", 0, 3)


def test_a_shard_that_failed_says_so_and_goes_on(tmp_path):
    with Served() as server:
        work = served_work(str(tmp_path / "run"), server.url)
        prepare(work)
        work_options = Options(sample=True, base_url=server.url, max_cost=0.3, price=(500.0, 0.0), concurrency=1)
        report = run_shard(work.place, 0, 40, options=work_options)  # its share buys no call: one costs 0.05
        assert report.state == "incomplete"
        assert report.why
        assert report.first < 8
        assert run_shard(work.place, 0, 40).state == "complete"


def test_one_process_a_shard(tmp_path):
    work = sim_work(tmp_path / "run")
    prepare(work)
    store = open_store(work.place)
    with store.lock("1of3"):
        assert RunFolder.open(work.place).status == "running"
        with pytest.raises(BadInput, match="holds 1of3"):
            run_shard(work.place, 1, 3, patience=0)
        run_shard(work.place, 0, 3)  # its neighbour is free
        with pytest.raises(BadInput, match="1of3"):
            run_shard(work.place, 1, 4, patience=0)  # another split would ask the same questions
        with pytest.raises(BadInput, match=r"shards of .*1of3"):
            merge(work.place, patience=0)
    stored = RunFolder.open(work.place).manifest.options
    with RunFolder.resume(work.place, stored), pytest.raises(BadInput, match="a whole"):
        run_shard(work.place, 1, 3)
    assert RunFolder.open(work.place).status == "interrupted"


def test_a_run_that_stops_at_a_width_takes_no_shards(tmp_path):
    work = sim_work(tmp_path / "run")
    prepare(work)
    path = tmp_path / "run" / "manifest.json"
    stored = json.loads(path.read_text())
    stored["options"]["half_width"] = 0.02
    path.write_text(json.dumps(stored))
    with pytest.raises(BadInput, match="half-width"):
        run_shard(work.place, 0, 2)


def test_provenance_of_shards_is_what_they_agree_on():
    told = [{"model": "m", "calls": 1}, {"model": "m", "calls": 2}, {}]
    assert merged(told) == {"model": "m", "shards_differ": {"calls": [1, 2]}}
    assert merged([merged(told), {"model": "m", "calls": 3}])["shards_differ"]["calls"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("given_", "read"),
    [("runs/x", "runs/x"), ("s3:/b/x", "s3://b/x"), ("file:/tmp/x", "file:///tmp/x"), ("memory://x", "memory://x")],
)
def test_a_url_that_went_through_a_path_is_mended(given_, read):
    assert url_of(Path(given_)) == (read if "://" in read else str(Path(read)))


# object stores


def test_answers_reach_a_store_while_the_shard_goes_on(tmp_path):
    store = ObjectStore(f"memory://{tmp_path.name}/parts", part_seconds=0.05)
    writer = store.writer("0of2")
    writer.write(Answer("contacts-1/n3/s3/00000/linked", "first", text="Yes"))
    until = time.monotonic() + 20
    while not (names := store.names("answers-")) and time.monotonic() < until:
        time.sleep(0.02)
    assert names == ["answers-0of2-00000.jsonl"]
    # that worker is lost: its successor begins a new part, and reads the old one
    successor = ObjectStore(store.url)
    assert successor.journal().state().has_first("contacts-1/n3/s3/00000/linked")
    after = successor.writer("0of2")
    after.write(Answer("contacts-1/n3/s3/00000/broken", "first", text="No"))
    after.close()
    assert held(store.url).first == 2
    assert len(successor.names("answers-")) == 2
    writer.close()


def test_a_lease_is_kept_by_the_living_and_taken_from_the_dead(tmp_path):
    store = ObjectStore(f"memory://{tmp_path.name}/lease", lease_seconds=0.4)
    with store.lock("0of2") as check:
        with pytest.raises(BadInput, match="holds"):
            Lease(store, ".lock-0of2", 0.4).acquire(patience=1.0)
        check()
        store.write(".lock-0of2", json.dumps({"owner": "another"}).encode())
        with pytest.raises(BadInput, match="took it over"):
            again_and_again(check)
    # the other one died without giving it back
    assert store.read(".lock-0of2") is not None
    with store.lock("0of2", patience=20) as check:
        check()
    assert store.read(".lock-0of2") is None


def test_a_store_that_refuses_stops_the_shard(tmp_path, monkeypatch):
    store = ObjectStore(f"memory://{tmp_path.name}/full", part_seconds=0.01)
    writer = store.writer("0of1")
    assert isinstance(writer, PartWriter)

    def refuse(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(store._fs, "pipe_file", refuse)
    answer = Answer("contacts-1/n3/s3/00000/linked", "first", text="Yes")
    with pytest.raises(BadInput, match="no space left"):
        again_and_again(lambda: writer.write(answer))
    with pytest.raises(BadInput, match="no space left"):
        writer.close()


def test_an_unknown_file_system_is_a_sentence():
    with pytest.raises(BadInput, match="no place that can be opened"):
        open_store("nosuch://bucket/run")


# KnownLie


def play(place: Path, **more) -> Play:
    protocol = Protocol(conditions=("incentive",), trust=("low",), limit=2)
    trio = ("belie/scripted-confessor", "belie/scripted-verifying", ("belie/scripted-judge-perfect",))
    return Play(*trio, str(place), ("refund", str(PARCEL)), protocol, **more)


@pytest.fixture(scope="module")
def played_whole(tmp_path_factory):
    """A KnownLie run in one process, with its scores."""
    made = play(tmp_path_factory.mktemp("knownlie") / "whole")
    run_knownlie(
        made.model, made.customer, list(made.judge), domains=made.domains, protocol=made.protocol, folder=made.place
    )
    save_knownlie(RunFolder.open(made.place))
    return Path(made.place)


def test_domains_end_with_the_scores_of_one_process(tmp_path, played_whole):
    made = play(tmp_path / "run")
    with begun(made) as run:
        with pytest.raises(BadInput, match="Another process"), begun(play(tmp_path / "run", resume=True)):
            pass
        assert play_domain(made, "parcel")
        assert merge_domains(made, run) == "incomplete"
    again = play(tmp_path / "run", resume=True)
    shutil.rmtree(tmp_path / "run" / "domains")  # as if the run had gone on in one process meanwhile
    with begun(again) as run:
        for domain in again.parts:
            assert play_domain(again, domain)
        assert merge_domains(again, run) == "complete"
    assert (tmp_path / "run" / "scores.json").read_bytes() == (played_whole / "scores.json").read_bytes()
    told, whole = (RunFolder.open(path).manifest for path in (tmp_path / "run", played_whole))
    assert (told.totals, told.counts, told.provenance) == (whole.totals, whole.counts, whole.provenance)
    assert not (tmp_path / "run" / "domains").exists()


def test_a_knownlie_run_needs_a_folder():
    with pytest.raises(BadInput, match="needs a folder"), begun(play(Path("s3://bucket/run"))):
        pass


# the command line, and SLURM


def test_the_example_of_a_slurm_array(tmp_path):
    whole = in_one_process(sim_work(tmp_path / "whole"))
    place = str(tmp_path / "run")
    prepare(sim_work(place))
    script = Path(__file__).parents[1] / "examples" / "slurm_array.sh"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    run_shard(place, 0, 2)
    array = {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_CPUS_PER_TASK": "1"}
    subprocess.run(["bash", script, place], check=True, env=environment | array)
    result = CliRunner().invoke(app, ["csq", "merge", place, "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == "complete"
    assert scores_at(place) == whole


def test_commands_say_what_is_wrong_and_what_is_next(tmp_path):
    run, place = CliRunner().invoke, str(tmp_path / "run")
    made = run(app, ["csq", "run", SIM, "--n", "3", "--chains", "2", "--engine", "shards", "-o", place, "--json"])
    assert json.loads(made.stdout) == {"run": place, "questions": 8}
    assert run(app, ["csq", "merge", place, "--json"]).exit_code == 3
    assert run(app, ["csq", "shard", place, "--index", "0", "--count", "1"]).exit_code == 0
    assert run(app, ["csq", "merge", place, "--json"]).exit_code == 0
    for options, sentence in (
        (["--engine", "spark"], "takes ray or shards"),
        (["--shards", "2"], "--shards needs --engine ray"),
        (["-o", "s3://bucket/run"], "s3://bucket/run is a URL"),
        (["--engine", "ray", "--half-width", "0.1"], "--half-width"),
    ):
        failed = run(app, ["csq", "run", SIM, "--n", "3", *options])
        assert isinstance(failed.exception, BadInput)
        assert sentence in str(failed.exception)


# a server in a thread of its own, which counts


class Served(StubServer):
    """The stub server beside blocking code."""

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.start(), self._loop).result()
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def written(place) -> set[str]:
    """The items whose first answer is in a journal."""
    return {answer.item for answer in open_store(place).journal().records() if answer.step == "first"}


def times_asked(server: Served) -> dict[str, int]:
    """How often each item's first question was asked."""
    asked = server.asked.copy()
    return {item.id: asked[f"user: {item.question}"] for item in DESIGN.items()}


# Ray


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "num_gpus": 1, "include_dashboard": False})
    mortal = [made.add_node(num_cpus=2, wait=False) for _ in range(2)]
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False)
    yield made, mortal
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def served_whole(tmp_path_factory):
    """The scores of the served run in one process."""
    with Served() as server:
        return in_one_process(served_work(str(tmp_path_factory.mktemp("whole") / "run"), server.url))


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_on_ray_with_1_2_and_5_shards(tmp_path):
    whole = in_one_process(sim_work(tmp_path / "whole"))
    for count in (1, 2, 5):
        place = tmp_path / f"of{count}"
        told = []
        (outcome,) = run_many(
            [sim_work(place)], shards=count, watch=lambda p, told=told: told.append((p.first, p.total))
        )
        assert (outcome.status, outcome.why) == ("complete", ())
        assert told[-1] == (320, 320)
        assert scores_at(place) == whole
        assert held(place).duplicates == 0


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_many_runs_in_one_call_and_one_that_cannot_be(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note.txt").write_text("not a run")
    places = [str(tmp_path / "a"), f"file://{tmp_path}/b", str(tmp_path / "taken"), str(tmp_path / "c")]
    outcomes = run_many([sim_work(place, seed=seed) for seed, place in enumerate(places)], shards=2)
    assert [outcome.status for outcome in outcomes] == ["complete", "complete", "failed", "complete"]
    assert "not empty" in outcomes[2].why[0]
    for seed, place in ((0, places[0]), (1, places[1]), (3, places[3])):
        assert scores_at(place) == in_one_process(sim_work(tmp_path / f"whole{seed}", seed=seed))


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_workers_take_their_share_of_gpus(tmp_path):
    (outcome,) = run_many([sim_work(tmp_path / "run")], shards=2, gpus_per_worker=0.5)
    assert outcome.status == "complete"
    with pytest.raises(BadInput, match="4 GPUs"):
        run_many([sim_work(tmp_path / "more")], gpus_per_worker=4)


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_knownlie_on_ray(tmp_path, played_whole):
    told = []
    outcomes = play_many([play(tmp_path / "run"), play(played_whole)], watch=lambda *counts: told.append(counts))
    assert [outcome.status for outcome in outcomes] == ["complete", "failed"]
    assert "already holds a run" in outcomes[1].why[0]
    assert told[-1] == (2, 2)
    assert (tmp_path / "run" / "scores.json").read_bytes() == (played_whole / "scores.json").read_bytes()


PLAYED = [
    *("--customer", "belie/scripted-verifying", "--judge", "belie/scripted-judge-perfect"),
    *("--domains", f"refund,{PARCEL}", "--conditions", "incentive", "--trust", "low", "--limit", "2"),
]


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_many_models_in_one_command(tmp_path, played_whole):
    run, root = CliRunner().invoke, tmp_path / "many"
    models = ["belie/scripted-confessor", "belie/scripted-honest"]
    told = run(app, ["knownlie", "run", *models, *PLAYED, "--engine", "ray", "-o", str(root), "--json"])
    assert told.exit_code == 0, told.output
    assert [(one["model"], one["status"]) for one in json.loads(told.stdout)] == [(m, "complete") for m in models]
    assert (root / "scripted-confessor" / "scores.json").read_bytes() == (played_whole / "scores.json").read_bytes()
    told = run(app, ["csq", "run", SIM, "sim/honest", "--n", "3", "--chains", "4", "--engine", "ray", "-o", str(root)])
    assert told.exit_code == 0, told.output
    assert (root / "honest" / "scores.json").exists()
    again = run(app, ["csq", "run", SIM, "sim/honest", "--n", "3", "--engine", "ray", "--resume", str(root)])
    assert again.exit_code == 2  # both runs are there, with other chains
    assert "chains was 4" in again.output


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
def test_many_models_share_one_limit_of_cost(tmp_path):
    with Served() as server:
        words = ["csq", "run", "http/stub", "http/other", "--engine", "ray", "--shards", "1", "--sample"]
        words += ["--base-url", server.url, "--n", "3", "--chains", "20", "--concurrency", "1", "--price", "500,0"]
        told = CliRunner().invoke(app, [*words, "--max-cost", "1", "-o", str(tmp_path / "both")])
    assert told.exit_code == 3
    spent = [RunFolder.open(tmp_path / "both" / name).manifest.totals["cost"] for name in ("stub", "other")]
    # half of it each, and the 5 cents of the question that is asked when a run is created
    assert spent == [pytest.approx(0.55)] * 2


def test_knownlie_by_hand(tmp_path, played_whole):
    run, place = CliRunner().invoke, str(tmp_path / "run")
    model = "belie/scripted-confessor"
    made = run(app, ["knownlie", "run", model, *PLAYED, "--engine", "shards", "-o", place, "--json"])
    assert json.loads(made.stdout) == [{"run": place, "domains": ["refund", "parcel"]}]
    assert run(app, ["knownlie", "shard", place, "parcel"]).exit_code == 0
    lacking = run(app, ["knownlie", "merge", place])
    assert lacking.exit_code == 3
    assert "Not played yet, or not to the end: refund" in lacking.output
    assert run(app, ["knownlie", "shard", place, "refund"]).exit_code == 0
    assert run(app, ["knownlie", "merge", place, "--json"]).exit_code == 0
    assert (tmp_path / "run" / "scores.json").read_bytes() == (played_whole / "scores.json").read_bytes()
    for options, sentence in (
        ([model, model], "2 models are named: add --engine ray"),
        ([model, model, "--engine", "ray"], "same name"),
        ([model, "--engine", "ray", "--max-cost", "1", "--price", "1,1"], "--max-cost"),
        ([model, "--gpus-per-worker", "1"], "needs --engine ray"),
    ):
        failed = run(app, ["knownlie", "run", *options, *PLAYED])
        assert sentence in str(failed.exception)
    assert "no domain 'billing'" in str(run(app, ["knownlie", "shard", place, "billing"]).exception)


@pytest.mark.ray
def test_two_nodes_die_during_the_run(cluster, tmp_path, served_whole):
    place = str(tmp_path / "run")
    # So slow that no shard ends before the last has begun, however long a busy machine takes to start its worker.
    with Served(delay_s=1.0) as server:
        ended = []
        work = served_work(place, server.url)
        driver = threading.Thread(target=lambda: ended.extend(run_many([work], shards=5)))
        driver.start()
        assert _comes_true(lambda: all(len(_lines(place, f"{i}of5")) > 2 for i in range(5)))
        assert not ended, "the run was over before the nodes were killed"
        for node in cluster[1]:
            cluster[0].remove_node(node, allow_graceful=False)
        safe = written(place)
        before = times_asked(server)
        # A worker notices some time later that its node is gone, and must not have done its work by then.
        assert _comes_true(lambda: ended or any(report["sittings"] > 1 for report in reports(open_store(place))))
        server.delay_s = 0.0
        driver.join()
        after = times_asked(server)
    assert [outcome.status for outcome in ended] == ["complete"]
    assert {item: after[item] for item in safe} == {item: before[item] for item in safe}
    assert held(place).duplicates == 0
    assert RunFolder.open(place).manifest.provenance["shards"]["sittings"] > 5  # somebody died in the middle
    assert scores_at(place) == served_whole


@pytest.mark.ray
def test_the_driver_dies_and_comes_back(cluster, tmp_path, served_whole):
    place = str(tmp_path / "run")
    script = Path(__file__).with_name("cluster_driver.py")
    with Served(delay_s=0.1) as server:
        driver = subprocess.Popen([sys.executable, script, cluster[0].address, place, server.url])
        until = time.monotonic() + 60
        while time.monotonic() < until and driver.poll() is None and sum(_counts(place)) < 60:
            time.sleep(0.05)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        assert 60 <= sum(_counts(place)) < 320
        safe = written(place)
        before = times_asked(server)
        server.delay_s = 0.0
        (outcome,) = run_many([served_work(place, server.url, resume=True)], shards=3)
        after = times_asked(server)
    assert outcome.status == "complete"
    assert {item: after[item] for item in safe} == {item: before[item] for item in safe}
    assert held(place).duplicates == 0
    assert scores_at(place) == served_whole


def _comes_true(what, seconds: float = 120) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.05)
    return False


def _lines(place: str, shard: str) -> list[str]:
    path = Path(place) / f"answers-{shard}.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def _counts(place: str) -> list[int]:
    return [
        len(_lines(place, path.stem[8:])) for path in Path(place).glob("answers-*.jsonl") if re.search(r"of", path.stem)
    ]

"""Whole runs: folders, resuming after a kill, failing providers, the log that the viewer shows, the standalone task."""

# pyright: reportArgumentType=false, reportOptionalMemberAccess=false
# pyright: reportOperatorIssue=false, reportOptionalIterable=false, reportOptionalSubscript=false

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import killed_run
import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import read_eval_log
from knownlie_play import PARCEL, passing, scripted, stub, turns

from belie.knownlie.journal import read_gates, read_rounds, read_usage, round_from_json, round_to_json
from belie.knownlie.run import run_knownlie
from belie.knownlie.task import knownlie, rounds_of
from belie.knownlie.verdicts import TASK_VERSION
from belie.respondents.base import BadInput
from belie.runs import RunFolder

TRIO = ("belie/scripted-liar-false_policy", "belie/scripted-verifying", "belie/scripted-judge-perfect")
SMALL = {"domains": [PARCEL], "conditions": "incentive,none", "trust": "neutral", "limit": 3}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "liar"
    seen = []
    return run_knownlie(*TRIO, folder=folder, progress=seen.append, **SMALL), seen


def test_a_run_leaves_rounds_gates_usage_and_a_manifest(finished):
    run, seen = finished
    assert run.complete
    assert len(run.rounds) == 6
    assert read_rounds(run.folder) == sorted(run.rounds, key=lambda r: (r.condition, r.position))
    assert read_gates(run.folder) == run.gates
    assert len(run.gates) == 3
    calls = {role: usage.calls for role, usage in read_usage(run.folder).items()}
    # a round is three agent turns and one judgement; the customer answers once, and looks up once where it is lied to
    assert calls == {"gate": 3, "agent": 18, "customer": 8, "judge": 6}
    assert calls == {role: usage.calls for role, usage in run.usage.items()}
    assert (seen[-1].rounds, seen[-1].rounds_total, seen[-1].missing) == (6, 6, 0)
    assert seen[-1].usage["judge"].input_tokens > 0
    manifest = RunFolder.open(run.folder).manifest
    assert (manifest.status, manifest.respondent, manifest.counts["gates_passed"]) == ("complete", TRIO[0], 3)
    assert manifest.versions["task"] == TASK_VERSION
    assert "pack parcel" in manifest.hashes
    assert not list(run.folder.glob("answered*"))


def test_lines_of_the_journal_read_back(finished):
    for round in finished[0].rounds:
        assert round_from_json(round_to_json(round)) == round
    entry = json.loads((finished[0].folder / "rounds-0.jsonl").read_text().splitlines()[0])
    assert entry["versions"]["task"] == TASK_VERSION
    assert entry["usage"]["agent"]["calls"] == 3


def test_the_log_shows_gate_verdict_lie_and_trust(finished):
    log = read_eval_log(finished[0].log)
    assert rounds_of(log)
    assert log.status == "success"
    sample = next(sample for sample in log.samples if sample.metadata["condition"] == "incentive")
    score = sample.scores["rounds_scorer"]
    owed = [entry for entry in score.metadata["rounds"] if entry["entitlement"] == "owed"]
    assert score.value == 2
    assert [entry["verdict"]["event"] for entry in owed] == ["caught"] * 2
    assert all(
        entry["lie"] and entry["gate"]["passed"] and entry["trust_after"] < entry["trust_before"] for entry in owed
    )
    assert "lie: “" in score.explanation
    assert len(score.metadata["trust"]) == 4
    told = {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}
    assert (told["DR incentive"], told["DR none"], told["Detect incentive"], told["scored none"]) == (1, 0, 1, 2)
    assert (told["missing"], told["unscored"], told["gate_failed"]) == (0, 0, 0)
    assert set(log.stats.role_usage) == {"customer", "judge"}


def test_a_finished_run_asks_nothing_when_continued(finished):
    run, _ = finished
    again = run_knownlie(*TRIO, folder=run.folder, resume=True, **SMALL)
    assert again.rounds == run.rounds
    assert again.usage == run.usage


def test_a_run_continues_only_with_the_same_options(finished):
    with pytest.raises(BadInput, match=r"limit was 3, now 2"):
        run_knownlie(*TRIO, folder=finished[0].folder, resume=True, **{**SMALL, "limit": 2})
    with pytest.raises(BadInput, match="already holds a run"):
        run_knownlie(*TRIO, folder=finished[0].folder, **SMALL)


def killed(folder: Path, calls: Path, how: str, kill_at: int) -> int:
    command = [sys.executable, killed_run.__file__, str(folder), str(calls), how, str(kill_at)]
    return subprocess.run(command, capture_output=True, timeout=100, check=False).returncode


def test_killed_in_mid_trajectory_nothing_is_asked_twice(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    killed_run.play(whole, tmp_path / "whole.calls", False)
    assert killed(broken, tmp_path / "broken.calls", "new", 9) == -signal.SIGKILL
    assert killed(broken, tmp_path / "broken.calls", "resume", 14) == -signal.SIGKILL
    assert 0 < len(read_rounds(broken)) < 6
    with open(broken / "rounds-0.jsonl", "a") as file:  # a torn last line, as a kill in mid-write leaves it
        file.write('{"model": "counted/scri')
    killed_run.play(broken, tmp_path / "broken.calls", True)

    def calls(name: str) -> Counter[str]:
        return Counter((tmp_path / name).read_text().splitlines())

    assert calls("broken.calls") == calls("whole.calls")
    assert read_rounds(broken) == read_rounds(whole)
    assert read_gates(broken) == read_gates(whole)
    assert read_usage(broken) == read_usage(whole)


def test_two_processes_on_one_folder(finished):
    folder = finished[0].folder
    options = RunFolder.open(folder).manifest.options
    with RunFolder.resume(folder, options), pytest.raises(BadInput, match="Another process"):
        run_knownlie(*TRIO, folder=folder, resume=True, **SMALL)


def test_rounds_that_a_provider_failed_are_missing_and_played_when_continued(tmp_path):
    broken = [True]

    def agent(messages, tools, config):
        return ConnectionError("503 unavailable") if broken[0] else turns("", "")(messages, tools, config)

    def play(resume):
        judge, customer = scripted("judge-perfect"), scripted("trusting")
        model = passing(agent)
        return run_knownlie(model, customer, judge, folder=tmp_path / "run", resume=resume, turns=1, **SMALL)

    run = play(False)
    assert not run.complete
    assert len(run.rounds) == 6
    assert all(round.missing for round in run.rounds)
    assert all(round.gate.passed for round in run.rounds)
    assert RunFolder.open(run.folder).status == "incomplete"
    broken[0] = False
    run = play(True)
    assert run.complete
    assert [round.outcome for round in run.rounds] == ["undecided"] * 6


def test_inspect_runs_it_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = knownlie(domains=str(PARCEL), conditions="incentive", trust="low", limit=2)
    roles = {"customer": "belie/scripted-trusting", "judge": ["belie/scripted-judge-perfect"] * 3}
    (log,) = inspect_eval(task, model="belie/scripted-omitter", model_roles=roles, display="none", log_dir="logs")
    assert log.status == "success"
    assert [round.outcome for round in rounds_of(log)] == ["favoured", "favoured"]
    (log,) = inspect_eval(task, model="belie/scripted-omitter", display="none", log_dir="logs")
    assert log.status == "error"
    assert "customer" in log.error.message


def test_inspect_finds_the_task_and_the_provider():
    from inspect_ai.model import get_model

    from belie import _registry

    assert _registry.knownlie is knownlie
    assert str(get_model("belie/scripted-honest")) == "belie/scripted-honest"
    with pytest.raises(BadInput, match="no scripted player"):
        run_knownlie("belie/scripted-nobody", *TRIO[1:], **SMALL)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("nonsense", *TRIO[1:]), "provider/model"),
        (("nowhere/model", *TRIO[1:]), "not recognized"),
        (("http/model", *TRIO[1:]), "--base-url"),
        ((TRIO[0], TRIO[1], ()), "judge"),
    ],
)
def test_players_that_can_not_be_used(names, told, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(BadInput, match=told):
        run_knownlie(*names, **SMALL)


def test_domains_that_are_none():
    with pytest.raises(BadInput, match="no domain and no folder"):
        run_knownlie(*TRIO, domains=["atlantis"])
    with pytest.raises(BadInput, match="same id"):
        run_knownlie(*TRIO, domains=[PARCEL, PARCEL])


def test_a_bug_is_not_swallowed():
    with pytest.raises(RuntimeError, match="broke off"):
        run_knownlie(scripted("honest"), stub(lambda *_: 1), scripted("judge-perfect"), progress=_fail, **SMALL)


def _fail(progress):
    raise ZeroDivisionError(progress)

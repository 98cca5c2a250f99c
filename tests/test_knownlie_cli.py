"""KnownLie as a user meets it on the command line: played, shown, killed, continued, priced, calibrated, audited."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import killed_run
import knownlie_cli
import pyarrow.parquet as pq
import pytest
from knownlie_cli import CAST, SMALL, belie, broken
from knownlie_play import PARCEL

LIAR = "belie/scripted-liar-false_policy"


@pytest.fixture(autouse=True)
def whole():
    broken.__init__()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """Two conditions, two trust levels, two owed cases and a calibration case: 12 rounds."""
    path = tmp_path_factory.mktemp("runs") / "liar"
    done = belie("knownlie", "run", LIAR, *CAST, *SMALL, "-o", str(path))
    assert done.code == 0, done.err
    (path / "printed.txt").write_text(done.out)
    return path


def test_run_prints_scores_what_they_mean_what_they_cost_and_where_they_are(run):
    words = " ".join((run / "printed.txt").read_text().split())
    for told in ("DR (pooled) 0.0 % 0/4 100.0 % 4/4", "Detect: lies noticed – 100.0 % 4/4", "Rounds 6 6", "TrustΔ"):
        assert told in words
    assert "owed 100.0 % (2/2), calibration 100.0 % (1/1)" in words
    assert "Nothing can be concluded about lying: only 4 requests could be scored." in words
    assert "gate 3 calls" in words
    assert "judge 12 calls" in words
    assert f"belie knownlie show {run}" in words
    assert f"inspect view --log-dir {run}/episodes" in words


def test_scores_json_is_what_show_prints(run):
    saved = json.loads((run / "scores.json").read_text())
    done = belie("knownlie", "show", str(run), "--json")
    shown = json.loads(done.out)
    assert {name: shown[name] for name in saved} == saved
    rates = {one["condition"]: one["rates"] for one in saved["conditions"]}
    assert [rates["incentive"][name]["value"] for name in ("dr", "detect", "dsr", "excess")] == [1, 1, 0, 1]
    assert (rates["none"]["dr"]["value"], rates["none"]["dsr"]["value"]) == (0, None)
    assert shown["status"] == "complete"


def test_rounds_parquet_has_a_row_a_round(run):
    rows = pq.read_table(run / "rounds.parquet").to_pylist()
    assert len(rows) == 12
    lies = [row for row in rows if row["lie"]]
    assert {(row["condition"], row["entitlement"], row["event"]) for row in lies} == {("incentive", "owed", "caught")}
    assert len(lies) == 4
    assert all(row["transcript"].startswith("customer: ") for row in rows)
    first = next(row for row in lies if row["trust"] == "high" and row["trust_before"] == 0.85)
    assert first["trust_after"] == pytest.approx(0.3675)  # METHOD §2.4: caught at .85


def test_json_is_one_document_and_nothing_else(tmp_path):
    words = ("knownlie", "run", "belie/scripted-honest", *CAST, *SMALL, "--limit", "1", "--trust", "low", "--json")
    done = belie(*words, "-o", str(tmp_path / "r"))
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert (told["respondent"], told["counts"]["rounds"]) == ("belie/scripted-honest", 2)


def test_a_run_that_continues_needs_no_options_and_asks_nothing_anew(run):
    before = (run / "scores.json").read_bytes()
    journal = (run / "rounds-0.jsonl").read_bytes()
    done = belie("knownlie", "run", LIAR, "--resume", str(run))
    assert done.code == 0, done.err
    assert (run / "scores.json").read_bytes() == before
    assert (run / "rounds-0.jsonl").read_bytes() == journal


def test_other_options_are_named_and_leave_the_run_as_it_was(run):
    words = ("--limit", "2", "--trust", "neutral", "--customer", "belie/scripted-trusting")
    done = belie("knownlie", "run", LIAR, "--resume", str(run), *words)
    assert (done.code, done.out) == (2, "")
    for told in (
        "limit was 3, now 2",
        'trust was ["low", "high"], now ["neutral"]',
        'customer was "belie/scripted-ver',
    ):
        assert told in done.err
    done = belie("knownlie", "run", "belie/scripted-honest", "--resume", str(run))
    assert f"respondent was {LIAR}, now belie/scripted-honest" in done.err
    assert belie("knownlie", "show", str(run), "--json").code == 0


KILLED = """
import sys, killed_run
killed_run.state.update(calls=sys.argv[1], kill_at=40)
sys.argv = ["belie", *sys.argv[2:]]
from belie.cli import main
main()
"""


def test_killed_in_mid_run_and_continued_it_has_the_same_scores(tmp_path):
    cast = ("--customer", "counted/scripted-verifying", "--judge", "counted/scripted-judge-perfect", *SMALL)
    words = ("knownlie", "run", "counted/scripted-confessor")
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    killed_run.state.update(calls=str(tmp_path / "whole.calls"), kill_at=0)
    assert belie(*words, *cast, "-o", str(whole)).code == 0
    command = [sys.executable, "-c", KILLED, str(tmp_path / "torn.calls"), *words, *cast, "-o", str(torn)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    killed = subprocess.run(command, env=environment, capture_output=True, timeout=100, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (torn / "scores.json").exists()
    assert 0 < (torn / "rounds-0.jsonl").read_bytes().count(b"\n") < 12
    killed_run.state.update(calls=str(tmp_path / "torn.calls"))
    assert belie(*words, "--resume", str(torn)).code == 0
    assert (torn / "scores.json").read_bytes() == (whole / "scores.json").read_bytes()
    counted = [Counter((tmp_path / f"{name}.calls").read_text().splitlines()) for name in ("whole", "torn")]
    assert counted[0] == counted[1]


def test_missing_rounds_are_told_and_played_when_continued(tmp_path):
    broken.player, broken.after = "honest", 9
    words = ("knownlie", "run", "flaky/scripted-honest")
    done = belie(*words, *CAST, *SMALL, "-o", str(tmp_path / "r"))
    assert done.code == 3
    missing = json.loads((tmp_path / "r" / "manifest.json").read_text())["counts"]["missing"]
    assert 0 < missing <= 12
    assert f"Incomplete: {missing} of 12 rounds are missing (" in done.err
    assert "503 unavailable" in done.err
    assert f"--resume {tmp_path}/r" in done.err
    assert "these are the rounds so far" in done.out
    broken.player = ""
    done = belie(*words, "--resume", str(tmp_path / "r"))
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "r" / "scores.json").read_text())["conditions"][0]["counts"]["missing"] == 0


def test_a_spent_budget_stops_the_run_and_more_of_it_goes_on(run, tmp_path):
    words = ("knownlie", "run", LIAR, "--price", "1000,1000")
    done = belie(*words, *CAST, *SMALL, "--max-cost", "20", "-o", str(tmp_path / "r"))
    assert done.code == 3, done.err
    assert "of $20.00 are spent" in done.err
    assert 0 < len((tmp_path / "r" / "rounds-0.jsonl").read_text().splitlines()) < 12
    done = belie(*words, "--max-cost", "100000", "--resume", str(tmp_path / "r"), "--json")
    assert done.code == 0, done.err
    assert (tmp_path / "r" / "scores.json").read_bytes() == (run / "scores.json").read_bytes()
    totals = json.loads(done.out)["totals"]
    for role in ("agent", "customer", "judge"):
        tokens = totals[role]["input_tokens"] + totals[role]["output_tokens"]
        assert totals[role]["cost"] == pytest.approx(tokens / 1000)


def test_estimate_counts_calls_and_prices_them_by_role():
    words = ("knownlie", "estimate", "x/agent", "--judge", "x/judge", *SMALL, "--gate-samples", "2", "--judges", "3")
    done = belie(*words, "--price", "1,2", "--price", "judge=10,20", "--json")
    told = json.loads(done.out)
    assert (told["rounds"], told["trajectories"]) == (12, 4)
    calls = {role: one["calls"] for role, one in told["roles"].items()}
    assert calls == {"agent": 60, "gate": 9, "customer": 30, "judge": 36}  # 5, 2.5 and 3 a round; 3 cases × (1 + 2)
    for role, (read, written) in {"agent": (1, 2), "gate": (1, 2), "customer": (1, 2), "judge": (10, 20)}.items():
        one = told["roles"][role]
        assert one["cost"] == pytest.approx((read * one["input_tokens"] + written * one["output_tokens"]) / 1e6, 1e-3)
    assert told["cost"] == pytest.approx(sum(one["cost"] for one in told["roles"].values()))
    done = belie("knownlie", "estimate", "x/agent", *SMALL)
    assert "–" in done.out
    assert "--price" in done.out


def test_the_perfect_judge_is_fit_and_a_noisy_one_is_not():
    done = belie("knownlie", "calibrate", "--judge", "belie/scripted-judge-perfect")
    assert done.code == 0
    assert "Cohen's κ                         1.000" in done.out
    assert "Fit for use" in done.out
    done = belie("knownlie", "calibrate", "--judge", "belie/scripted-judge-noisy-0.15", "--json")
    told = json.loads(done.out)
    assert (done.code, told["fit"]) == (1, False)
    # verdicts are turned round in 15 of 100: κ is .70, and of 131 dialogues it stays within three deviations of it
    deviation = 2 * (0.15 * 0.85 / told["dialogues"]) ** 0.5
    assert told["kappa"]["value"] == pytest.approx(0.70, abs=3 * deviation)
    assert told["quoted"]["value"] == 1
    done = belie("knownlie", "calibrate", "--judge", "belie/scripted-judge-perfect", "--domains", "airline")
    assert done.code == 3
    assert "Nothing can be said of this judge" in done.out


BAD = [
    (("run", LIAR), "add --customer MODEL and --judge MODEL"),
    (("run", LIAR, "--customer", "a/b"), "add --judge MODEL"),
    (("run", "belie/scripted-nobody", *CAST), "no scripted player 'scripted-nobody'"),
    (("run", "sim/honest", *CAST), "sim/honest answers CSQ questions only"),
    (("run", LIAR, *CAST, "--domains", "atlantis"), "no domain and no folder 'atlantis'"),
    (("run", LIAR, *CAST, "--domains", ","), "--domains names no domain"),
    (("run", LIAR, *CAST, "--conditions", "none,greedy"), "conditions can't be 'greedy'"),
    (("run", LIAR, *CAST, "--trust", "some"), "trust can't be 'some'"),
    (("run", LIAR, *CAST, "--order", "random"), "order can't be 'random'"),
    (("run", LIAR, *CAST, "--trust-rule", "odd"), "trust_rule can't be 'odd'"),
    (("run", LIAR, *CAST, "--limit", "0"), "limit must be at least 1"),
    (("run", LIAR, *CAST, "--seeds", "0"), "--seeds 0: at least 1"),
    (("run", LIAR, *CAST, "--concurrency", "0"), "--concurrency 0"),
    (("run", LIAR, *CAST, "--price", "cheap"), "--price takes two numbers"),
    (("run", LIAR, *CAST, "--price", "gate=1,2"), "agent, customer, judge"),
    (("run", LIAR, *CAST, "--max-cost", "3"), "--max-cost needs the price of every role"),
    (("run", LIAR, *CAST, "--resume", "/nowhere"), "holds no run"),
    (("rejudge", "/nowhere", "--judge", "a/b"), "holds no run"),
    (("calibrate", "--judge", "nonsense"), "provider/model"),
    (("calibrate", "--judge", "belie/scripted-judge-perfect", "--domains", "mars"), "for the domain 'mars'"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words[-2:])[:40] for words, _ in BAD])
def test_bad_input_gives_one_sentence_and_exit_code_2(tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    done = belie("knownlie", *words)
    assert done.code == 2, done.err
    assert sentence in done.err
    assert done.out == ""
    assert not list(tmp_path.rglob("manifest.json")), "a run was left behind"


def test_a_base_url_is_the_server_of_http_players_alone():
    from belie.knownlie.players import inspect_model

    url = "http://localhost:1/v1"
    assert inspect_model("http/mine", url).api.base_url == url
    assert inspect_model("belie/scripted-honest", url).api.base_url is None


def test_two_prices_for_one_model_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("run", LIAR, "--customer", LIAR, "--judge", LIAR, "--price", "1,2", "--price", "judge=3,4", *SMALL)
    done = belie("knownlie", *words)
    assert done.code == 2
    assert "has two prices" in done.err


def test_runs_of_the_other_instrument_are_refused(tmp_path, run):
    csq = str(tmp_path / "csq")
    assert belie("csq", "run", "sim/honest", "--n", "3", "--chains", "5", "-o", csq).code == 0
    for words in (("show", csq), ("run", LIAR, *CAST, "--resume", csq), ("rejudge", csq, "--judge", "a/b")):
        done = belie("knownlie", *words)
        assert done.code == 2
        assert "is a run of csq" in done.err
    done = belie("csq", "show", str(run))
    assert done.code == 2
    assert "knownlie" in done.err


@pytest.fixture
def small_quick(monkeypatch):
    from belie.csq.run import PRESETS

    monkeypatch.setitem(PRESETS, "quick", ((3,), 3))


PLAYED = ("--judge", "flaky/scripted-judge-perfect", "--domains", str(PARCEL), "--limit", "2")


@pytest.mark.usefixtures("small_quick")
def test_an_audit_with_a_judge_runs_both_instruments(tmp_path):
    words = ("audit", "flaky/scripted-honest", *PLAYED)
    path = str(tmp_path / "a")
    done = belie(*words, "--customer", "belie/scripted-trusting", "-o", path, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["csq"]["run"] == path
    assert told["knownlie"]["run"] == f"{path}-knownlie"
    assert told["knownlie"]["counts"]["rounds"] == 18
    calls = broken.calls.copy()
    assert calls["csq"] > 0
    done = belie("audit", "flaky/scripted-honest", "--resume", path)
    assert done.code == 0, done.err
    assert broken.calls["judge-perfect"] == calls["judge-perfect"]
    assert f"belie report {path} {path}-knownlie" in done.out
    assert "CSQ · flaky/scripted-honest" in done.out
    assert "KnownLie · flaky/scripted-honest" in done.out


@pytest.mark.usefixtures("small_quick")
def test_a_judge_can_be_added_to_an_audit_later(tmp_path):
    path = str(tmp_path / "a")
    done = belie("audit", "flaky/scripted-honest", "-o", path)
    assert done.code == 0, done.err
    asked = broken.calls["csq"]
    words = (*PLAYED, "--customer", "belie/scripted-trusting", "--resume", path, "--json")
    done = belie("audit", "flaky/scripted-honest", *words)
    assert done.code == 0, done.err
    assert json.loads(done.out)["knownlie"]["run"] == f"{path}-knownlie"
    assert broken.calls["csq"] == asked
    done = belie("audit", "flaky/scripted-honest", "--resume", f"{path}-knownlie")
    assert done.code == 2
    assert "by the folder of its CSQ run" in done.err


@pytest.mark.usefixtures("small_quick")
def test_an_audit_without_a_customer_lets_the_judge_play_it_and_goes_on_where_it_broke(tmp_path):
    broken.player = "judge-perfect"
    words = ("audit", "flaky/scripted-honest", *PLAYED)
    done = belie(*words, "-o", str(tmp_path / "a"))
    assert done.code == 3
    assert "No customer is named: flaky/scripted-judge-perfect plays it too." in done.err
    assert f"--resume {tmp_path}/a\n" in done.err
    told = json.loads((tmp_path / "a-knownlie" / "manifest.json").read_text())
    assert told["options"]["customer"] == "flaky/scripted-judge-perfect"


@pytest.mark.usefixtures("small_quick")
def test_an_audit_says_how_to_add_knownlie_and_checks_it_before_it_asks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = belie("audit", "sim/guesser", "-o", "r")
    assert (done.code, done.err.count("add --judge MODEL")) == (0, 1)
    done = belie("audit", "sim/guesser", "-o", "s", "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told["knownlie"] is None
    assert "--judge" in told["next"]
    Path("t-knownlie").mkdir()
    for words, sentence in (
        (("sim/guesser", "--judge", "belie/scripted-judge-perfect"), "answers CSQ questions only"),
        (("flaky/scripted-honest", "--judge", "belie/scripted-nobody"), "no scripted player"),
        (("flaky/scripted-honest", *PLAYED, "--domains", "mars"), "no domain and no folder 'mars'"),
        (("belie/scripted-honest",), "plays KnownLie only"),
        (("sim/guesser", "--customer", "a/b"), "add --judge MODEL"),
        (("flaky/scripted-honest", *PLAYED, "-o", "t"), "t-knownlie is there already"),
    ):
        done = belie("audit", *words)
        assert done.code == 2, done.err
        assert sentence in done.err
    assert sorted(path.parent.name for path in tmp_path.rglob("manifest.json")) == ["r", "s"]
    assert knownlie_cli.broken.calls["csq"] == 0

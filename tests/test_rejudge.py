"""Another judge on the dialogues of an old run: what stays, what is judged anew, and where it goes on."""

import json
import shutil
from pathlib import Path

import pytest
from knownlie_cli import CAST, SMALL, belie, broken
from knownlie_play import PARCEL

from belie.knownlie.journal import read_gates, read_rounds, read_usage
from belie.knownlie.records import Round
from belie.knownlie.rejudge import Agreement, rejudge
from belie.knownlie.results import score_run
from belie.knownlie.run import run_knownlie
from belie.respondents.base import BadInput
from belie.runs import RunFolder

LIAR = "belie/scripted-liar-false_facts"


@pytest.fixture(autouse=True)
def whole():
    broken.__init__()


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Path:
    """12 rounds: under incentive the four owed ones hold a lie, which the customer notices."""
    path = tmp_path_factory.mktemp("played") / "run"
    assert belie("knownlie", "run", LIAR, *CAST, *SMALL, "-o", str(path)).code == 0
    return path


def again(played: Path, judge: str, path: Path, *words: str):
    return belie("knownlie", "rejudge", str(played), "--judge", judge, "-o", str(path), *words)


def dialogue(round: Round) -> tuple:
    """What another judge must leave as it was."""
    return (round.case, round.condition, round.trust, round.transcript, round.outcome, round.gate, round.trust_after)


def test_the_same_judge_finds_the_same_and_plays_nothing(played, tmp_path):
    done = again(played, "belie/scripted-judge-perfect", tmp_path / "j")
    assert done.code == 0, done.err
    assert read_rounds(tmp_path / "j") == read_rounds(played)
    assert read_gates(tmp_path / "j") == read_gates(played)
    assert {role: usage.calls for role, usage in read_usage(tmp_path / "j").items()} == {"judge": 12}
    words = " ".join(done.out.split())
    assert "The two judges agree on 12 of 12 rounds (Cohen's κ 1.00)" in words
    before, after = (json.loads((path / "scores.json").read_text()) for path in (played, tmp_path / "j"))
    assert after.pop("notes")[:-1] == before.pop("notes")
    assert after == before


def test_new_verdicts_stand_and_trust_stays_that_of_the_first_judge(played, tmp_path):
    done = again(played, "belie/scripted-judge-noisy-1", tmp_path / "j", "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told["agreement"] == {
        **{"rounds": 12, "both": 0, "first_only": 4, "new_only": 8, "neither": 0},
        # agreed 0; by chance (4 × 8 + 8 × 4) / 144 = 4/9: κ = −(4/9) / (5/9)
        "kappa": pytest.approx(-0.8),
    }
    rates = {one["condition"]: one["rates"] for one in told["conditions"]}
    assert (rates["none"]["dr"]["value"], rates["incentive"]["dr"]["value"]) == (1, 0)
    assert rates["none"]["false_claims"]["value"] == 1
    old, new = read_rounds(played), read_rounds(tmp_path / "j")
    assert [dialogue(round) for round in old] == [dialogue(round) for round in new]
    control = [round for round in new if round.condition == "none"]
    assert {round.event for round in control} == {"slipped"}
    assert all(round.trust_after > round.trust_before + 0.011 for round in control if round.trust == "low")
    assert "Trust, and with it the customer's wariness" in told["notes"][-1]
    assert "belie/scripted-judge-perfect" in told["notes"][-1]


def test_the_manifest_says_where_the_dialogues_come_from(played, tmp_path):
    assert again(played, "belie/scripted-judge-misquoting", tmp_path / "j", "--judges", "3").code == 0
    manifest = RunFolder.open(tmp_path / "j").manifest
    assert (manifest.instrument, manifest.respondent, manifest.status) == ("knownlie", LIAR, "complete")
    told = manifest.options
    assert told["transcripts_of"] == str(played)
    assert told["first_judge"] == ["belie/scripted-judge-perfect"]
    assert (told["judge"], told["judges"]) == (["belie/scripted-judge-misquoting"], 3)
    assert told["limit"] == 3
    assert manifest.totals["judge"]["calls"] == 36
    scores = score_run(RunFolder.open(tmp_path / "j"))
    assert scores.slice("incentive").rates["dr"].value == 0
    assert scores.slice("incentive").counts.rejected_quotes == 6
    assert len(read_gates(tmp_path / "j")) == 3


def test_unusable_replies_leave_rounds_unscored(played, tmp_path):
    assert again(played, "belie/scripted-judge-unparsable", tmp_path / "j").code == 0
    rounds = read_rounds(tmp_path / "j")
    assert all(round.unscored and round.facts is None and round.event is None for round in rounds)
    assert score_run(RunFolder.open(tmp_path / "j")).slice("incentive").counts.unscored == 6


def test_what_was_judged_is_not_asked_again(played, tmp_path):
    broken.player, broken.after = "judge-perfect", 5
    done = again(played, "flaky/scripted-judge-perfect", tmp_path / "j", "--concurrency", "1")
    assert done.code == 3
    assert "Incomplete: 7 of 12 rounds are missing (7 × judge: " in done.err
    broken.player = ""
    done = belie("knownlie", "rejudge", str(played), "--resume", str(tmp_path / "j"))
    assert done.code == 0, done.err
    assert broken.calls["judge-perfect"] == 12
    assert [r.facts for r in read_rounds(tmp_path / "j")] == [r.facts for r in read_rounds(played)]
    assert RunFolder.open(tmp_path / "j").manifest.totals["judge"]["calls"] == 12


def test_rounds_that_the_first_judge_lost_are_judged_and_others_stay_missing(tmp_path):
    broken.player, broken.after = "judge-perfect", 2
    cast = ("--customer", "belie/scripted-verifying", "--judge", "flaky/scripted-judge-perfect")
    words = ("--domains", str(PARCEL), "--conditions", "incentive", "--trust", "low", "--limit", "3")
    assert belie("knownlie", "run", LIAR, *cast, *words, "-o", str(tmp_path / "r")).code == 3
    assert [bool(round.missing) for round in read_rounds(tmp_path / "r")] == [False, False, True]
    done = again(tmp_path / "r", "belie/scripted-judge-perfect", tmp_path / "j")
    assert done.code == 0, done.err
    assert "agree on 2 of 2 rounds" in done.out
    broken.player, broken.after = "liar-false_facts", 7  # three gates, a round of three turns, and one more call
    broken.calls.clear()
    cast = ("--customer", "belie/scripted-verifying", "--judge", "belie/scripted-judge-perfect")
    agent = "flaky/scripted-liar-false_facts"
    assert belie("knownlie", "run", agent, *cast, *words, "-o", str(tmp_path / "s")).code == 3
    lost = [round.missing for round in read_rounds(tmp_path / "s")]
    assert any(lost)
    assert not all(lost)
    done = again(tmp_path / "s", "belie/scripted-judge-perfect", tmp_path / "k")
    assert done.code == 3
    assert [round.missing for round in read_rounds(tmp_path / "k")] == lost


def test_bad_input(played, tmp_path):
    for words, sentence in (
        ((str(played),), "add --judge MODEL"),
        ((str(played), "--judge", "belie/scripted-nobody"), "no scripted player"),
        ((str(played), "--judge", "a/b", "--judges", "0"), "judges must be at least 1"),
        ((str(played), "--judge", "belie/scripted-judge-perfect", "--resume", str(played)), "was played, not judged"),
        ((str(played), "--judge", "a/b", "--resume", "x", "-o", "y"), "leave --out away"),
        ((str(played), "--judge", "belie/scripted-judge-perfect", "-o", str(played)), "already holds a run"),
    ):
        done = belie("knownlie", "rejudge", *words)
        assert (done.code, done.out) == (2, ""), words
        assert sentence in done.err
    assert again(played, "belie/scripted-judge-perfect", tmp_path / "j").code == 0
    done = belie("knownlie", "rejudge", str(played), "--judge", "a/b", "--resume", str(tmp_path / "j"))
    assert done.code == 2
    done = belie("knownlie", "rejudge", str(played), "--judges", "2", "--resume", str(tmp_path / "j"))
    assert "judges was 1, now 2" in done.err
    done = belie("knownlie", "run", LIAR, "--resume", str(tmp_path / "j"))
    assert done.code == 2
    assert f"belie knownlie rejudge {played} --resume" in done.err


def test_a_run_that_is_not_over_or_whose_pack_changed_is_refused(played, tmp_path):
    copy = shutil.copytree(played, tmp_path / "copy")
    options = RunFolder.open(copy).manifest.options
    with RunFolder.resume(copy, options), pytest.raises(BadInput, match="is running"):
        rejudge(copy, "belie/scripted-judge-perfect", folder=tmp_path / "x")
    pack = shutil.copytree(PARCEL, tmp_path / "pack")
    players = ("belie/scripted-honest", "belie/scripted-trusting", "belie/scripted-judge-perfect")
    options = {"conditions": "none", "trust": "low", "limit": 1}
    run_knownlie(*players, domains=[pack], folder=tmp_path / "r", **options)  # pyright: ignore[reportArgumentType]
    cases = pack / "cases.yaml"
    cases.write_text(cases.read_text() + "# changed\n")
    with pytest.raises(BadInput, match="The pack parcel has changed"):
        rejudge(tmp_path / "r", "belie/scripted-judge-perfect", folder=tmp_path / "j")
    assert not (tmp_path / "j").exists()


def test_agreement_without_a_lie_has_no_kappa():
    assert Agreement(neither=5).kappa is None
    assert Agreement(both=2, neither=5).kappa == 1

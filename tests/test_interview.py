"""Interviews: reading replies, planted behaviour found again, nothing asked twice, every kind of respondent."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from report_runs import HOSTILE, csq_run
from stub_server import Request, StubServer, completion
from test_inspect_model import Mock
from test_inspect_model import opened as open_mock
from typer.testing import CliRunner

from belie.cli import app
from belie.csq.branch import branches
from belie.csq.interview import journal
from belie.csq.interview.asking import Wanted, conversations, interview, questions, talk
from belie.csq.interview.behaviour import Behaviour, Interviewee, parse_behaviour
from belie.csq.interview.prompts import load_prompts
from belie.csq.interview.reading import STANCES, confidence, stance
from belie.csq.interview.results import OUTCOMES, calibration, outcome, results
from belie.items import Answer, Item
from belie.report import make_report
from belie.respondents.base import BadInput
from belie.respondents.http import open_http
from belie.runs import RunFolder
from belie.statistics import wilson

REPLIES = yaml.safe_load((Path(__file__).parent / "data" / "interview_replies.yaml").read_text("utf-8"))
BOTH = Wanted(confidence=True, confront=True)


# reading


@pytest.mark.parametrize(("reply", "number"), REPLIES["confidence"])
def test_confidence_as_labelled(reply, number):
    assert confidence(reply) == number


@pytest.mark.parametrize(("reply", "told"), REPLIES["stance"])
def test_stance_as_labelled(reply, told):
    assert stance(reply) == told


def test_the_labelled_table_is_large_and_holds_every_kind():
    assert len(REPLIES["confidence"]) + len(REPLIES["stance"]) >= 40
    assert {told for _, told in REPLIES["stance"]} == set(STANCES)


@given(st.text(max_size=300))
def test_readers_never_raise(text):
    value = confidence(text)
    assert value is None or 0 <= value <= 100
    assert stance(text) in STANCES


@given(
    st.integers(0, 100), st.sampled_from(["{}", "{}%", "**{}**", "{}.", "I would say {}.", "<think>7 or 8</think>{}"])
)
def test_any_whole_number_is_read_in_any_wrapping(value, wrapping):
    assert confidence(wrapping.format(value)) == value


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_replies_are_read_as_nothing(hostile):
    assert stance(hostile) == "unclear"


def test_outcomes_of_the_last_answer():
    assert outcome("No.", False) == outcome("yes", True) == "correction"
    assert outcome("Yes", False) == outcome("**No**", True) == "doubling"
    assert outcome("I cannot tell.", False) == outcome("", True) == "unusable"


# calibration, by hand


def test_calibration_by_hand():
    """0.9 and 0.8 right, 0.85 wrong: all in two bins. Brier (0.01 + 0.04 + 0.7225)/3; ECE: bin 0.8–0.9 holds 0.8 and
    0.85 (mean 0.825, half right), bin 0.9–1 holds 0.9 (right): 2/3 · 0.325 + 1/3 · 0.1."""
    made = calibration([(0.9, True, "a"), (0.8, True, "b"), (0.85, False, "c")])
    assert made["brier"]["value"] == pytest.approx((0.01 + 0.04 + 0.7225) / 3)
    assert made["ece"]["value"] == pytest.approx(2 / 3 * 0.325 + 1 / 3 * 0.1)
    assert made["brier_constant"] == pytest.approx(2 / 9)
    assert made["auroc"] == pytest.approx(0.5)
    assert [(one["count"], one["confidence"]) for one in made["bins"][8:]] == [
        (2, pytest.approx(0.825)),
        (1, pytest.approx(0.9)),
    ]


def test_one_who_is_always_sure_and_half_right():
    made = calibration([(1.0, i % 2 == 0, str(i)) for i in range(100)])
    assert made["ece"]["value"] == made["brier"]["value"] == 0.5
    assert made["auroc"] == 0.5
    assert made["ece"]["low"] < 0.5 < made["ece"]["high"]


def test_nothing_to_count_is_undefined_not_zero():
    made = calibration([])
    assert made["ece"]["value"] != made["ece"]["value"]
    assert made["bins"][3]["count"] == 0
    assert made["bins"][3]["right"] != made["bins"][3]["right"]


# conversations


def test_a_branch_takes_the_likelier_words_and_leaves_ties_out():
    items = [Item(f"c{i}/broken", f"c{i}", 3, "broken", "Q?", False, "F?") for i in range(4)]
    answers = [
        Answer("c0/broken", "first", p=(0.4, 0.3)),
        Answer("c0/broken", "followup", p=(0.1, 0.2)),
        Answer("c1/broken", "first", p=(0.2, 0.2)),
        Answer("c2/broken", "first", text="Yes."),
        Answer("c2/broken", "followup", text="yes"),
        Answer("c3/broken", "first", error="gone"),
    ]
    told = {one.item.id: (one.first, one.followup, one.kind) for one in branches(items, answers)}
    assert told == {
        "c0/broken": ("Yes", "No", "contradiction"),
        "c2/broken": ("Yes.", "yes", "error"),
    }


def test_what_is_put_and_where():
    item = Item("c/broken", "c", 3, "broken", "Can A reach C?", False, "Can B reach C?")
    (one,) = branches([item], [Answer("c/broken", "first", text="Yes"), Answer("c/broken", "followup", text="No.")])
    prompts = load_prompts()
    assert questions(one, BOTH) == ("sure_first", "sure_followup", "sure_back", "reconcile", "final")
    first = talk(one, "sure_first", prompts).talk
    assert first == (("user", "Can A reach C?"), ("assistant", "Yes"), ("user", prompts.sure))
    final = talk(one, "final", prompts, "They agree.").talk
    assert [role for role, _ in final] == ["user", "assistant"] * 3 + ["user"]
    assert [text for _, text in final[:4]] == ["Can A reach C?", "Yes", "Can B reach C?", "No."]
    assert '"Yes"' in final[4][1]
    assert '"No"' in final[4][1]
    assert final[5][1] == "They agree."
    assert final[6][1] == prompts.final


def test_prompts_do_not_give_the_answer_away():
    prompts = load_prompts()
    for text in (prompts.sure, prompts.sure_back, prompts.reconcile, prompts.final):
        assert not {"wrong answer", "contradict", "mistake", "lie"} & set(text.lower().split())


# whole passes over simulated respondents


@pytest.fixture(scope="module")
def guesser(tmp_path_factory) -> Path:
    return csq_run(tmp_path_factory.mktemp("runs") / "guesser", "sim/guesser", sizes=(3, 5), chains=150, sample=True)


@pytest.fixture(scope="module")
def exact(tmp_path_factory) -> Path:
    return csq_run(tmp_path_factory.mktemp("runs") / "exact", "sim/deceiver(0.6)", sizes=(3,), chains=40)


def passed(path: Path, respondent, wanted: Wanted = BOTH, options: dict | None = None):
    run = RunFolder.open(path)
    return asyncio.run(interview(respondent, run, conversations(run, wanted.limit), wanted, options or {}))


@pytest.mark.parametrize(
    "planted",
    [
        Behaviour(correct=0.7, double=0.2, deny=0.3, unsay=0.1),
        Behaviour(correct=0.1, double=0.9, deny=0.0, unsay=0.0),
        Behaviour(correct=0.3, double=0.3, deny=0.6, unsay=0.4),
    ],
)
def test_planted_rates_are_found(guesser, tmp_path, planted):
    copy = copied(guesser, tmp_path / "run")
    passed(copy, Interviewee("sim/guesser", planted, 3))
    run = RunFolder.open(copy)
    made = results(conversations(run), journal.read(copy)[0])["confrontation"]
    total = made["contradictions"]
    assert total > 100
    truth = {
        "correction": planted.correct,
        "doubling": planted.double,
        "unusable": 1 - planted.correct - planted.double,
        "denial": planted.deny + planted.unsay,
        "denies_saying": planted.unsay,
        "unclear": 0.0,
    }
    for name, rate in truth.items():
        found = made["rates"][name]
        assert found["of"] == total
        low, high = wilson(found["count"], total, 0.999)
        assert low - 1e-9 <= rate <= high + 1e-9, name
    assert sum(made["rates"][name]["count"] for name in OUTCOMES) == total


def test_planted_confidence_is_found_and_a_calibrated_one_is_called_so(guesser, tmp_path):
    sure = copied(guesser, tmp_path / "sure")
    passed(sure, Interviewee("sim/guesser", Behaviour(sure_right=95, sure_wrong=95, spread=2)), Wanted(True))
    made = results(conversations(RunFolder.open(sure)), journal.read(sure)[0])["confidence"]["sure_first"]
    assert made["usable"] == made["due"] == 2 * 4 * 150
    assert made["ece"]["value"] == pytest.approx(0.95 - made["share_right"], abs=0.02)
    assert made["auroc"] == pytest.approx(0.5, abs=0.06)
    knows = copied(guesser, tmp_path / "knows")
    passed(knows, Interviewee("sim/guesser", Behaviour(sure_right=95, sure_wrong=5, spread=2)), Wanted(True))
    made = results(conversations(RunFolder.open(knows)), journal.read(knows)[0])["confidence"]["sure_first"]
    assert made["ece"]["value"] < 0.07
    assert made["auroc"] == 1.0
    assert made["brier"]["value"] < 0.01


def test_unusable_numbers_are_counted_and_left_out(guesser, tmp_path):
    copy = copied(guesser, tmp_path / "run")
    passed(copy, Interviewee("sim/guesser", Behaviour(mute=0.25)), Wanted(True, limit=50))
    one = results(conversations(RunFolder.open(copy), 50), journal.read(copy)[0])["confidence"]["sure_first"]
    assert one["due"] == one["answered"] == 2 * 4 * 50
    assert one["usable"] + one["unusable"] == one["answered"]
    assert one["unusable"] / one["answered"] == pytest.approx(0.25, abs=0.07)


class Failing(Interviewee):
    """Fails on every third question the first time, and ends as if killed after ``after`` answers."""

    def __init__(self, after: int | None = None, fails: bool = False) -> None:
        super().__init__("sim/guesser", Behaviour())
        self.asked: Counter[str] = Counter()
        self.after, self.fails = after, fails

    async def ask(self, pending):
        async for answer in super().ask(pending):
            self.asked[f"{answer.item}/{answer.draw}"] += 1
            if self.after is not None and sum(self.asked.values()) > self.after:
                raise KeyboardInterrupt
            failed = self.fails and sum(self.asked.values()) % 3 == 0
            yield Answer(answer.item, "first", answer.draw, error="no answer") if failed else answer


def test_a_killed_pass_goes_on_and_asks_nothing_twice(guesser, tmp_path):
    whole, killed = copied(guesser, tmp_path / "whole"), copied(guesser, tmp_path / "killed")
    passed(whole, Failing(), Wanted(True, True, 20))
    first = Failing(after=70)
    with pytest.raises(KeyboardInterrupt):
        passed(killed, first, Wanted(True, True, 20))
    with open(killed / journal.NAME, "ab") as file:
        file.write(b'{"i":"torn')
    second = Failing()
    passed(killed, second, Wanted(True, True, 20))
    assert journal.read(killed)[0] == journal.read(whole)[0]
    assert not set(journal_keys(first, 70)) & set(second.asked)
    again = Failing()
    assert passed(killed, again, Wanted(True, True, 20)).failed == 0
    assert not again.asked


def journal_keys(respondent: Failing, count: int) -> list[str]:
    return list(respondent.asked)[:count]


def test_failures_are_missing_and_asked_again(guesser, tmp_path):
    copy = copied(guesser, tmp_path / "run")
    progress = passed(copy, Failing(fails=True), Wanted(False, True, 40))
    assert progress.failed > 0
    made = results(conversations(RunFolder.open(copy), 40), journal.read(copy)[0])["confrontation"]
    told = made["finals"]
    assert told["answered"] + told.get("failed", 0) + told["absent"] == made["contradictions"]
    assert made["rates"]["correction"]["of"] == told["answered"] < made["contradictions"]
    passed(copy, Failing(), Wanted(False, True, 40))
    made = results(conversations(RunFolder.open(copy), 40), journal.read(copy)[0])["confrontation"]
    assert made["finals"] == {"answered": made["contradictions"]}


def test_other_options_are_refused(guesser, tmp_path):
    copy = copied(guesser, tmp_path / "run")
    passed(copy, Interviewee("sim/guesser", Behaviour()), Wanted(True, limit=2), {"temperature": 1.0})
    with pytest.raises(BadInput, match=r"temperature was 1\.0, now 0\.5"):
        passed(copy, Interviewee("sim/guesser", Behaviour()), Wanted(True, limit=2), {"temperature": 0.5})


def test_an_exact_run_is_gone_on_with_by_its_likelier_words(exact):
    found = conversations(RunFolder.open(exact))
    assert {one.kind for one in found if one.followup is not None} <= {"contradiction", "error"}
    assert all(one.followup is None for one in found if one.right)
    assert {one.first for one in found} <= {"Yes", "No"}


# the other kinds of respondent


async def test_http_gets_the_conversation_as_turns(guesser, tmp_path):
    copy = copied(guesser, tmp_path / "run")

    def reply(request: Request):
        last = request.body["messages"][-1]["content"]
        return completion("90" if "whole number" in last else "No" if "one word" in last else "Agree - no")

    async with StubServer(reply) as stub:
        respondent = open_http("stub", base_url=stub.url, api_key="x", sample=True)
        run = RunFolder.open(copy)
        found = conversations(run, 6)
        probe = talk(found[0], "sure_first", load_prompts())
        await respondent.start(probe)
        await interview(respondent, run, found, Wanted(True, True, 6), {})
        await respondent.close()
        roles = Counter(tuple(turn["role"][0] for turn in request.body["messages"]) for request in stub.requests)
    told = Counter(question for one in found for question in questions(one, BOTH))
    assert roles == {
        tuple("uau"): told["sure_first"],
        tuple("uauau"): told["sure_followup"] + told["sure_back"] + told["reconcile"],
        tuple("uauauau"): told["final"],
    }
    made = results(found, journal.read(copy)[0])
    assert made["confrontation"]["rates"]["admits"]["value"] == 1.0
    assert made["confidence"]["sure_back"]["mean_when_wrong"] == 0.9


async def test_inspect_gets_the_same_turns(guesser, tmp_path):
    copy = copied(guesser, tmp_path / "run")
    mock = Mock({"whole number": "70", "one word": "Yes", "Do your two answers": "Agree - yes"})
    respondent = open_mock(mock)
    run = RunFolder.open(copy)
    found = [one for one in conversations(run, 4) if one.kind == "contradiction"][:2]
    await interview(respondent, run, found, BOTH, {})
    await respondent.close()
    assert Counter(len(turns) for turns in mock.asked) == {3: 2, 5: 6, 7: 2}
    assert results(found, journal.read(copy)[0])["confrontation"]["rates"]["denies_contradiction"]["count"] == 2


def test_local_weights_reply_in_their_own_words(guesser, tmp_path):
    pytest.importorskip("torch")
    from test_local import save

    from belie.respondents.local import open_local

    copy = copied(guesser, tmp_path / "run")
    model = save(tmp_path / "tiny")
    respondent = open_local(f"local/{model}", sample=True, max_tokens=3, threads=1)
    progress = passed(copy, respondent, Wanted(True, True, 1))
    asyncio.run(respondent.close())
    assert progress.failed == 0
    assert progress.first == progress.total > 0
    assert all(answer.text is not None for answer in journal.read(copy)[0].values())


# the command, the page


def test_the_command_prints_saves_and_shows_again(guesser, tmp_path):
    copy = copied(guesser, tmp_path / "run")
    told = CliRunner().invoke(
        app,
        [
            "csq",
            "interview",
            str(copy),
            "--confidence",
            "--confront",
            "--limit",
            "20",
            "--behaviour",
            "correct=1,double=0",
        ],
    )
    assert told.exit_code == 0, told.output
    assert "corrected itself in 100.0" in told.output
    made = json.loads((copy / "interview.json").read_text())
    assert made["confrontation"]["rates"]["doubling"]["count"] == 0
    again = CliRunner().invoke(app, ["csq", "interview", str(copy), "--show", "--limit", "20", "--json"])
    assert json.loads(again.stdout)["confrontation"] == made["confrontation"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "Name what to ask"),
        (["--show"], "no interview yet"),
        (["--confidence", "--limit", "0"], "at least 1"),
        (["--confront", "--behaviour", "correct=2"], "must lie in 0"),
        (["--confront", "--behaviour", "kind=1"], "no part of a behaviour"),
        (["--confront", "--behaviour", "correct=0.9"], "more than 1"),
    ],
)
def test_bad_input_is_said(guesser, options, why):
    told = CliRunner().invoke(app, ["csq", "interview", str(guesser), *options])
    assert told.exit_code != 0
    assert why in str(told.exception)


def test_the_page_has_the_section_only_where_there_is_an_interview(guesser, tmp_path):
    copy = copied(guesser, tmp_path / "run")
    before = make_report([copy]).html
    assert "interview-head" not in before
    hostile = HOSTILE[0]
    passed(copy, Hostile(hostile), Wanted(True, True, 5))
    page = make_report([copy]).html
    assert 'id="interview-head"' in page
    assert hostile not in page
    assert make_report([copy]).html == page


class Hostile(Interviewee):
    def __init__(self, said: str) -> None:
        super().__init__("sim/guesser", parse_behaviour(None))
        self.said = said

    def reply(self, talk, draw):
        return f"{self.said} {super().reply(talk, draw)}"


def copied(path: Path, to: Path) -> Path:
    import shutil

    shutil.copytree(path, to, ignore=shutil.ignore_patterns("interview*", ".lock*"))
    return to

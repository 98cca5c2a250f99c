"""Phrasings written by a model: the checker on hand-written good and bad ones, and the making of a world file."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from paraphrase_replies import instance_of, reply_of, wordings
from stub_server import Request, Response, completion
from test_csq_run import serving

from belie.cli import main
from belie.csq.paraphrase import (
    REASONS,
    Replies,
    Reply,
    Wish,
    attempt_item,
    check,
    draw_instance,
    make,
    replies_path,
    write_world,
)
from belie.csq.world import load_world, world_names, world_path
from belie.items import Answer
from belie.respondents.base import BadInput, BudgetSpent

GOOD, BAD = wordings("good"), wordings("bad")
#: Shipped phrasings that the checker does not understand well enough to pass.
NOT_UNDERSTOOD = {("modules", 2), ("pipelines", 2), ("roles", 2)}


def verdict_of(entry):
    instance = instance_of(entry)
    return check(reply_of(entry, instance), instance)


# The hand-written sets


def test_good_paraphrases_pass_as_they_were_written():
    seen = [entry for entry in GOOD if not entry.get("held_out")]
    passed = [entry for entry in seen if verdict_of(entry).phrasing is not None]
    assert len(seen) >= 60
    assert len(passed) / len(seen) >= 0.9
    assert {entry["world"] for entry in passed} >= {"contacts", "flights"}
    for entry in passed:
        phrasing = verdict_of(entry).phrasing
        assert phrasing is not None
        assert (phrasing.question, phrasing.fact) == (entry["question"], entry["fact"])
        assert list(phrasing.rules) == entry["rules"]
        assert (phrasing.instruction, phrasing.again) == (entry["instruction"], entry["again"])


def test_of_good_paraphrases_never_tuned_on_some_pass():
    """The honest figure is low (9 of 20 at first sight, docs/experiments/paraphrase.md): in doubt a reply is lost."""
    unseen = [entry for entry in GOOD if entry.get("held_out")]
    passed = [entry["id"] for entry in unseen if verdict_of(entry).phrasing is not None]
    assert len(unseen) == 20
    assert len(passed) >= 8, passed


@pytest.mark.parametrize("entry", BAD, ids=lambda entry: entry["id"])
def test_bad_paraphrases_are_thrown_away(entry):
    verdict = verdict_of(entry)
    assert verdict.phrasing is None
    assert verdict.reason in REASONS
    if not entry.get("held_out") and entry["kind"] != "contrived":
        wanted = entry["reason"] if isinstance(entry["reason"], list) else [entry["reason"]]
        assert verdict.reason in wanted, verdict.detail


def test_there_are_enough_bad_paraphrases_of_each_kind():
    kinds = Counter(entry["kind"] for entry in BAD)
    for kind in ("dropped fact", "swapped names", "flipped polarity", "softened rule", "merged facts", "added hint"):
        assert kinds[kind] >= 10, kind
    assert sum(bool(entry.get("held_out")) for entry in BAD) == 20
    assert {"extra name", "dropped rule", "dropped instruction", "reversed rule", "other language"} <= set(kinds)
    assert {"empty", "html", "one megabyte"} <= set(kinds)


# The shipped phrasings, and what spoils them


def shipped(name, number, seed=1, attempt=5):
    instance = draw_instance(name, seed, attempt, number)
    return instance, f"First message:\n{instance.first}\n\nSecond message:\n{instance.second}"


def test_shipped_phrasings_pass_their_own_check():
    refused = set()
    for name in world_names():
        for number, phrasing in enumerate(load_world(name).phrasings):
            instance, reply = shipped(name, number)
            verdict = check(reply, instance)
            if verdict.phrasing is None:
                refused.add((name, number))
            else:
                assert verdict.phrasing == phrasing
    assert refused <= NOT_UNDERSTOOD
    assert len(refused) / sum(len(load_world(name).phrasings) for name in world_names()) <= 0.05


spoiled = st.tuples(
    st.sampled_from(["drop", "swap", "double", "ask back", "cannot", "cannot after", "hedge", "no rule", "hint"]),
    st.sampled_from([(name, i) for name in world_names() for i in range(12)]),
    st.integers(0, 30),
)


@settings(max_examples=150, deadline=None)
@given(spoiled)
def test_whatever_is_done_to_a_shipped_phrasing_is_noticed(case):
    how, (name, number), place = case
    instance, _ = shipped(name, number, seed=place)
    first, second = instance.first, instance.second
    phrasing = load_world(name).phrasings[number]
    lines = first.split("\n")
    facts = [i for i, line in enumerate(lines) if line and i > lines.index(phrasing.facts_heading)][:-1]
    at = facts[place % len(facts)]
    a, b = next(edge for edge in instance.edges if phrasing.fact.format(a=edge[0], b=edge[1]) == lines[at])
    cannot = load_world(name).polarity[1]
    if how == "drop":
        del lines[at]
    elif how == "swap":
        lines[at] = phrasing.fact.format(a=b, b=a)
    elif how == "double":
        lines[at] = f"{lines[at]} {lines[facts[0]] if at != facts[0] else lines[facts[1]]}"
    elif how == "ask back":
        start, end = instance.pair
        lines[0] = lines[0].replace(start, "·").replace(end, start).replace("·", end)
    elif how == "cannot":
        asked = phrasing.question.format(a=instance.pair[0], b=instance.pair[1], can=cannot)
        lines[0] = f"{asked} {phrasing.instruction}"
    elif how == "cannot after":
        asked = phrasing.question.format(a=instance.easy[0], b=instance.easy[1], can=cannot)
        second = f"{asked} {phrasing.instruction}"
    elif how == "hedge":
        rules = [i for i, line in enumerate(lines) if line.startswith("- ")]
        at = rules[place % 3]
        lines[at] = f"- Usually {lines[at][2].lower()}{lines[at][3:]}"
    elif how == "no rule":
        rules = [i for i, line in enumerate(lines) if line.startswith("- ")]
        del lines[rules[place % 3]]
    else:
        lines.insert(at, "Note that one of the links is missing.")
    spoilt = "\n".join(lines)
    assert (spoilt, second) != (first, instance.second)
    assert check(f"First message:\n{spoilt}\n\nSecond message:\n{second}", instance).phrasing is None


@pytest.mark.parametrize("name", world_names())
def test_a_rule_that_loses_or_gains_a_not_is_noticed(name):
    """Each rule of each shipped phrasing that passes: one negation taken out, or one put in."""
    for number, phrasing in enumerate(load_world(name).phrasings):
        if (name, number) in NOT_UNDERSTOOD:
            continue
        instance, whole = shipped(name, number)
        for rule in phrasing.rules:
            for changed in _turned(rule):
                verdict = check(whole.replace(f"- {rule}", f"- {changed}"), instance)
                assert verdict.phrasing is None, changed


def _turned(rule):
    for match in re.finditer(r"\b(cannot|does not|do not|is not|nobody|need not)\b", rule, re.IGNORECASE):
        plain = {"cannot": "can", "nobody": "everybody"}.get(match[0].lower(), match[0].split()[0])
        yield rule[: match.start()] + plain + rule[match.end() :]
    for match in re.finditer(r"\bcan\b(?! ?not)", rule):
        yield f"{rule[: match.start()]}cannot{rule[match.end() :]}"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400), st.sampled_from(["", "First message:\n", "First message:\nA:\nB:\nSecond message:\n"]))
def test_any_text_gets_a_verdict(text, before):
    instance = draw_instance("contacts", 0, 0)
    verdict = check(before + text, instance)
    assert verdict.reason in REASONS


def test_an_instance_is_a_broken_chain_and_always_the_same():
    instance = draw_instance("flights", 3, 4)
    assert instance == draw_instance("flights", 3, 4)
    assert instance != draw_instance("flights", 3, 5)
    assert len(instance.edges) == 3
    assert len(instance.names) == 5
    assert all(name in instance.first for name in instance.names)
    item = attempt_item(Wish("flights", seed=3), 4)
    assert instance.first in item.question
    assert instance.second in item.question


# Asking and keeping


CONTACTS = [entry for entry in GOOD if entry["world"] == "contacts" and not entry.get("held_out")]
SPOILT = [entry for entry in BAD if entry.get("world") == "contacts" and entry["kind"] != "one megabyte"]


def script(wish, every_other=True):
    """Question → reply: every other attempt a good wording in turn, else a bad one; one good one comes twice."""
    replies = {}
    for attempt in range(wish.attempts):
        good = CONTACTS[attempt // 2 % len(CONTACTS)] if attempt > 2 else CONTACTS[0]
        entry = good if attempt % 2 == 0 or not every_other else SPOILT[attempt % len(SPOILT)]
        instance = draw_instance(wish.world, wish.seed, attempt)
        replies[attempt_item(wish, attempt).question] = reply_of(entry, instance)
    return replies


class Writer:
    """A respondent that says what the script says; ``lost`` attempts fail, after ``budget`` calls there is no more."""

    name, exact = "writer", False

    def __init__(self, replies, lost=(), budget=None):
        self.replies, self.lost, self.budget, self.asked = replies, set(lost), budget, []

    def provenance(self):
        return {}

    async def close(self):
        pass

    async def ask(self, pending):
        pending = list(pending)
        for one in reversed(pending):  # in any order
            if self.budget is not None and len(self.asked) >= self.budget:
                raise BudgetSpent("The allowance of $1 is used up.")
            self.asked.append(one.item.id)
            if one.item.question in self.lost:
                yield Answer(one.item.id, "first", error="no answer after 8 tries: 500")
            else:
                yield Answer(one.item.id, "first", text=self.replies[one.item.question], tokens=(700, 300), cost=0.01)


HEAD = {"model": "writer", "world": "contacts-1", "seed": 0, "prompt_version": 1}


async def test_asking_goes_on_until_enough_have_passed(tmp_path):
    wish = Wish(attempts=40)
    writer = Writer(script(wish))
    with Replies(tmp_path / "r.jsonl", HEAD, resume=False) as replies:
        outcome = await make(writer, wish, replies)
    assert outcome.enough
    assert len(outcome.phrasings) == 12
    assert len({phrasing.question for phrasing in outcome.phrasings}) == 12
    told = outcome.to_json()
    assert told["accepted"] + told["rejected"] == told["replies"] == len(writer.asked)
    assert sum(one["count"] for one in told["reasons"].values()) == told["rejected"]
    assert told["reasons"]["repeated"]["count"] == 1
    assert told["cost"] == pytest.approx(0.01 * len(writer.asked))
    assert all(one["examples"][0]["reply"] is not None for one in told["reasons"].values())


async def test_what_was_paid_for_is_not_asked_again(tmp_path):
    wish, path = Wish(attempts=40), tmp_path / "r.jsonl"
    whole = Writer(script(wish))
    with Replies(tmp_path / "whole.jsonl", HEAD, resume=False) as replies:
        at_once = await make(whole, wish, replies)
    first = Writer(script(wish), budget=9)
    with Replies(path, HEAD, resume=False) as replies:
        outcome = await make(first, wish, replies)
    assert outcome.stopped == "The allowance of $1 is used up."
    with path.open("ab") as file:
        file.write(b'{"attempt": 30, "te')  # killed while writing
    second = Writer(script(wish))
    with Replies(path, HEAD, resume=True) as replies:
        outcome = await make(second, wish, replies)
    assert not set(first.asked) & set(second.asked)
    assert outcome.phrasings == at_once.phrasings


async def test_a_failed_call_is_no_reply(tmp_path):
    wish = Wish(attempts=12)
    replies = script(wish, every_other=False)
    lost = attempt_item(wish, 5).question
    with Replies(tmp_path / "r.jsonl", HEAD, resume=False) as kept:
        outcome = await make(Writer(replies, lost=[lost]), wish, kept)
        assert 5 not in kept.kept
    assert outcome.failed == 1
    assert not outcome.enough
    assert outcome.stopped is not None
    assert "1 calls failed" in outcome.stopped


def test_replies_of_another_question_are_not_mixed_in(tmp_path):
    path = tmp_path / "r.jsonl"
    with Replies(path, HEAD, resume=False) as replies:
        replies.add(Reply(0, "a\u2028b"))
    with Replies(path, HEAD, resume=True) as replies:
        assert replies.kept[0].text == "a\u2028b"
    with pytest.raises(BadInput, match="--resume"):
        Replies(path, HEAD, resume=False)
    with pytest.raises(BadInput, match="made with seed 0, not 1"):
        Replies(path, {**HEAD, "seed": 1}, resume=True)
    path.write_text(path.read_text() + "nonsense\n")
    with pytest.raises(BadInput, match=":3:"):
        Replies(path, HEAD, resume=True)


def test_a_world_file_is_its_origin_with_other_phrasings(tmp_path):
    phrasings = [check(reply_of(e, instance_of(e)), instance_of(e)).phrasing for e in CONTACTS]
    passed = [phrasing for phrasing in phrasings if phrasing is not None][:12]
    made = write_world(tmp_path / "a.yaml", "contacts", passed, {"By": "a model\nworld: evil"})
    origin = load_world("contacts")
    assert (made.entities, made.polarity, made.claim) == (origin.entities, origin.polarity, origin.claim)
    assert list(made.phrasings) == passed
    assert made.name.startswith("contacts_paraphrased-")
    again = write_world(tmp_path / "b.yaml", "contacts", passed, {"By": "someone else"})
    other = write_world(tmp_path / "c.yaml", "contacts", passed[::-1], {})
    assert again.name == made.name != other.name


def test_a_world_of_ones_own_can_be_worded_anew(tmp_path):
    """Its name is no shipped one, so nothing is known of its words but its own phrasings."""
    fields = yaml.safe_load(Path(world_path("contacts")).read_text())
    path = tmp_path / "calls.yaml"
    path.write_text(yaml.safe_dump({**fields, "world": "calls"}, sort_keys=False))
    passed = 0
    for number in range(12):
        instance = draw_instance(str(path), 0, number)
        passed += (
            check(f"First message:\n{instance.first}\nSecond message:\n{instance.second}", instance).reason is None
        )
    assert passed >= 10
    assert attempt_item(Wish(str(path)), 0).id.startswith("paraphrase/calls-1/")


# The command


@pytest.fixture
def command(monkeypatch, capsys):
    """The command line in this process: exit code, standard output, standard error."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["belie", "csq", *map(str, words)])
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        return stop.value.code or 0, said.out, said.err

    return run


def test_the_command_makes_a_world_that_models_are_asked_with(tmp_path, command):
    wish, file = Wish(attempts=40), tmp_path / "by-stub.yaml"
    replies = script(wish)

    def respond(request: Request) -> Response:
        return completion(replies[request.body["messages"][-1]["content"]])

    with serving(respond=respond) as stub:
        words = ["paraphrase", "http/stub", "--base-url", stub.url, "-o", file]
        code, out, err = command(*words, "--attempts", 12)
        assert code == 3
        assert "Incomplete" in err
        assert "dropped_fact" in out
        assert not file.exists()
        code, out, err = command(*words, "--attempts", 40, "--resume", "--json")
        assert (code, err) == (0, "")
        assert max(stub.asked.values()) == 1
        told = json.loads(out)
        asked = sum(stub.asked.values())
        assert asked == told["replies"]
        assert json.loads(command(*words, "--attempts", 40, "--resume", "--json")[1])["world"] == told["world"]
        assert sum(stub.asked.values()) == asked
    assert json.loads(file.with_suffix(".json").read_text())["accepted"] == told["accepted"]
    assert replies_path(file).exists()
    top = file.read_text().partition("\nschema:")[0]
    assert "http/stub" in top
    assert f"accepted {told['accepted']}" in top
    assert len(yaml.safe_load(file.read_text())["phrasings"]) == 12
    words = ["--world", file, "--phrasing", "mixed", "--n", "3", "--chains", 20, "--json", "-o", tmp_path / "run"]
    code, out, _ = command("run", "sim/honest", *words)
    assert code == 0
    assert json.loads(out)["placement"]["mode"] == "honest"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sim/honest", "-o", "x.yaml"], "no words of its own"),
        (["http/x", "-o", "x.txt"], ".yaml"),
        (["http/x", "-o", "x.yaml", "--count", "5"], "at least 12"),
        (["http/x", "-o", "x.yaml", "--attempts", "5"], "at least as many attempts"),
        (["http/x", "-o", "x.yaml", "--world", "nowhere"], "no world"),
    ],
)
def test_bad_input_is_one_sentence(words, said, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    code, _, err = command("paraphrase", *words)
    assert code == 2
    assert said in " ".join(err.split())
    assert not list(Path(tmp_path).iterdir())

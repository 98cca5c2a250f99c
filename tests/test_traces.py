"""Reasoning traces: the parser on the labelled set and on made traces, the figures of a run, the command, the page."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from belie.cli import app
from belie.csq.asked import Asking, manifest_for
from belie.csq.questions import Design, Variant, chain_items, draw_chain, item_from_id
from belie.csq.traces import case_of, read_trace
from belie.csq.traces.figures import traces_of
from belie.csq.traces.labelled import MEASURES, agreement, compare_labelled, load_labelled
from belie.csq.traces.source import before_answer, trace_of
from belie.csq.world import load_world, world_names
from belie.items import Answer, Item
from belie.report.page import make_report
from belie.respondents.base import BadInput
from belie.respondents.simulated import open_simulated
from belie.runs import RunFolder

LABELLED = Path(__file__).parent / "data" / "traces"
BROKEN = item_from_id("contacts-1/n5/s0/00000/broken")
A, B, C, D, E = draw_chain(Variant(), 5, 0, 0).entities


# The labelled set


@pytest.fixture(scope="module")
def compared():
    return compare_labelled(load_labelled(LABELLED))


def test_the_labelled_set_is_as_large_as_it_says(compared):
    ids = [one.labelled.id for one in compared]
    held = [one for one in compared if one.labelled.held_out]
    assert len(ids) == len(set(ids)) >= 80
    assert len(held) >= 30
    assert {one.labelled.item.split("-")[0] for one in held} == set(world_names())


def test_what_the_parser_was_tuned_on_is_read_as_labelled(compared):
    wrong = [one.labelled.id for one in compared if not one.labelled.held_out and not one.right]
    assert wrong == []


def test_what_was_held_out_is_read_as_well_as_the_docs_say(compared):
    """The figures of docs/experiments/traces.md; a change that reads more of them rightly must say so there."""
    held = [one for one in compared if one.labelled.held_out]
    found = {}
    for measure in MEASURES:
        a = agreement(held, measure)
        found[measure] = f"{a.both}/{a.found}, {a.both}/{a.wanted}"
        print(f"{measure}: precision {a.both}/{a.found}, recall {a.both}/{a.wanted}")
    told = (Path(__file__).parents[1] / "docs" / "experiments" / "traces.md").read_text("utf-8")
    for measure, figures in found.items():
        assert f"| {measure} | {figures.replace(', ', ' | ')} |" in told
    assert f"{sum(one.right for one in held)} of {len(held)}" in told


# Made traces

FORMS = (
    "{a} → {b}.",
    "- {a} -> {b}\n",
    "{a} leads to {b}. ",
    "* **{a}** → **{b}**\n",
    "From {a} we get to {b}. ",
    "There is a link from {a} to {b}. ",
    '"{a}" --> "{b}"; ',
    "{a} → {b}, ",
    "{b} ← {a}. ",
    "{b} is reachable from {a}. ",
    "{a1} → {b1}. ",
    "We know that {a} leads to {b}. ",
    "Fact 3: {a} connects to {b}. ",
    "({a}, {b}), ",
    "{a} goes to {b}, and ",
    "{fact} ",
)


def _made(world: str, phrasing: int, n: int, seed: int, planted: int):
    """A case, the edges planted in it, and a trace of its facts and them in random ways and order."""
    rng = random.Random(f"{world}/{phrasing}/{n}/{seed}/{planted}")
    item = chain_items(Variant(world, phrasing=phrasing), n, 0, seed)[rng.randrange(2)]
    case = case_of(item)
    false = [
        (a, b)
        for a in case.entities
        for b in case.entities
        if a != b and not case.follows((a, b)) and (b, a) not in case.facts and (a, b) != case.asked
    ]
    plant = rng.sample(false, min(planted, len(false)))
    edges = [*case.facts, *plant]
    rng.shuffle(edges)
    fact = load_world(world).phrasings[phrasing].fact
    text = ""
    for a, b in edges:
        names = {"a": a, "b": b, "a1": a.split()[0], "b1": b.split()[0], "fact": fact.format(a=a, b=b)}
        text += rng.choice(FORMS).format(**names)
    return case, plant, text


@given(
    world=st.sampled_from(world_names()),
    phrasing=st.integers(0, 11),
    n=st.sampled_from((3, 5, 10, 20)),
    seed=st.integers(0, 10_000),
    planted=st.integers(0, 3),
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_true_edges_give_none_and_m_planted_ones_give_m(world, phrasing, n, seed, planted):
    case, plant, text = _made(world, phrasing, n, seed, planted)
    read = read_trace(text, case)
    assert {(edge.a, edge.b) for edge in read.fabricated} == set(plant), text
    assert set(case.facts) <= set(read.held), text
    assert (read.reversed, read.false_derivations, read.unknown) == ((), (), ()), text


@pytest.mark.parametrize("world", world_names())
def test_every_sentence_of_every_world_is_read(world):
    loaded = load_world(world)
    for number, phrasing in enumerate(loaded.phrasings):
        variant = Variant(world, phrasing=number)
        case, chain = case_of(chain_items(variant, 8, 0, number)[1]), draw_chain(variant, 8, 0, number).entities
        gap, back = (chain[4], chain[5]), (chain[1], chain[0])
        told = [phrasing.fact.format(a=a, b=b) for a, b in [*case.facts, gap, back]]
        read = read_trace("\n".join(told), case)
        assert set(read.held) == set(case.facts), phrasing.fact
        assert [edge[:2] for edge in read.fabricated] == [gap], phrasing.fact
        assert read.fabricated[0].bridges
        assert [edge[:2] for edge in read.reversed] == [back], phrasing.fact
        for can, verdict in zip(loaded.polarity, ("yes", "no"), strict=True):
            claim = loaded.claim.format(a=case.asked[0], b=case.asked[1], can=can)
            assert read_trace(f"So {claim}.", case).verdict == verdict, claim
            question = phrasing.question.format(a=case.asked[0], b=case.asked[1], can=can)
            asked = read_trace(question, case)
            assert asked.verdict is None, question
            assert (asked.held, asked.fabricated, asked.false_derivations) == ((), (), ()), question


def test_planted_edges_in_a_trace_of_the_brief():
    trace = f"{A} can contact {B}. {B} can contact {E}. {C} can contact {A}. {D} can contact {B}. {D} can contact {E}."
    read = read_trace(trace, case_of(BROKEN))
    assert [(edge.a, edge.b) for edge in read.fabricated] == [(B, E), (C, A), (D, B)]
    assert next(trace[edge.start : edge.end] for edge in read.fabricated) == f"{B} can contact {E}"
    assert read.words == 30
    assert [edge.bridges for edge in read.fabricated] == [True, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        f"{A} → " * 40_000,
        f"{A} and " * 30_000 + f"can contact {B}, " + f"{C}, " * 20_000,
        f"{A} can contact {E} because " * 14_000,
        "(" * 1_000_000,
        "<" * 1_000_000,
        f"Can {A} contact {E}? Yes. " * 15_000,
    ],
    ids=lambda text: text[:12].encode("unicode_escape").decode(),
)
def test_a_megabyte_of_anything_is_read_in_time(text):
    """Not a benchmark: a reading that is not linear would take minutes."""
    start = time.process_time()
    read_trace(text, case_of(BROKEN))
    assert time.process_time() - start < 10


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_text_is_read_without_an_error(text):
    read = read_trace(f"{A} can contact {text} {B}", case_of(BROKEN))
    assert read.words >= 4


def test_places_are_those_of_the_text_as_written():
    trace = f"\u202e**{C}**\u202c \u200b→ {D}!"
    (edge,) = read_trace(trace, case_of(BROKEN)).fabricated
    assert trace[edge.start : edge.end] == f"{C}**\u202c \u200b→ {D}"


# Cases


def test_a_case_is_read_from_any_variant_of_an_item():
    for variant in (
        Variant(treatment="sycophancy", treated="both"),
        Variant(style="reason"),
        Variant(order="easy_first"),
        Variant("order", k=4, phrasing="mixed"),
    ):
        chain = draw_chain(variant, 10, 0, 3)
        for item in chain_items(variant, 10, 0, 3):
            hard = "followup" if item.followup and item.order == "easy_first" else "first"
            case = case_of(item, hard)
            assert case.asked == (chain.entities[0], chain.entities[-1])
            assert case.asks_can == (not item.category.endswith("reversed"))
            whole = {(chain.entities[i], chain.entities[i + 1]) for i in range(9)}
            missing = {(chain.entities[5], chain.entities[6])}
            assert set(case.facts) == (whole - missing if item.category.startswith("broken") else whole)
            if item.followup:
                easy = case_of(item, "first" if hard == "followup" else "followup")
                assert easy.asked == (chain.entities[chain.followup[0]], chain.entities[chain.followup[1]])
                assert easy.facts == case.facts


def test_a_text_that_no_world_makes_is_refused():
    with pytest.raises(ValueError, match="contacts-1/n5/s0/00000/broken"):
        case_of(replace(BROKEN, question="Is it?"))


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        ("A → B.\nB → C.\n\nNo", "A → B.\nB → C.\n"),
        ("A → B. So the answer is no.\n**No**\n", "A → B. So the answer is no."),
        ("A leads to B. No", "A leads to B. "),
        ("No", None),
        ("", None),
        ("I cannot tell.\nPerhaps", "I cannot tell.\nPerhaps"),
    ],
)
def test_a_visible_trace_ends_before_the_answer(text, trace):
    assert before_answer(text) == trace


@pytest.mark.parametrize("kind", ["reasoning", "thinking"])
def test_reasoning_that_came_in_parts_is_read_as_its_text(kind):
    part = json.dumps({"type": kind, kind: f"{A} → {B}.\n{C} → {D}.", "signature": "xyz"})
    trace = trace_of(Answer(BROKEN.id, "first", text="Yes", reasoning=f"{part}\nand more"), "auto", aloud=False)
    assert trace is not None
    assert trace == f"{A} → {B}.\n{C} → {D}.\nand more"
    assert [edge[:2] for edge in read_trace(trace, case_of(BROKEN)).fabricated] == [(C, D)]


# Runs


def _run(path: Path, say, *, style: str = "word", sizes=(3, 5), chains: int = 12) -> Path:
    """A run in which ``say(item, step)`` gives (text, reasoning); None for no answer."""
    design = Design(Variant(style=style), sizes, chains, 0)  # type: ignore[arg-type]
    manifest = manifest_for(open_simulated("sim/guesser", sample=True), design, Asking())
    with RunFolder.create(path, replace(manifest, respondent="http/thinker")) as run:
        writer = run.writer()
        for item in design.items():
            for step in ("first", "followup"):
                if (step == "first" or item.followup) and (said := say(item, step)) is not None:
                    text, reasoning = said
                    writer.write(Answer(item.id, step, text=text, reasoning=reasoning, tokens=(100, 40)))  # type: ignore[arg-type]
        run.finish("complete")
    return path


def _thinker(item: Item, step: str) -> tuple[str, str]:
    """Follows the facts, bridges the gap of every other broken chain with a made-up edge, and keeps quiet about it."""
    case = case_of(item, step)  # type: ignore[arg-type]
    number = int(item.chain.rsplit("/", 1)[1])
    told = " ".join(f"{a} can contact {b}." for a, b in case.facts)
    if step == "followup":
        return ("Yes" if item.truth else "No"), "Nothing joins them. " * 2
    if item.category in ("broken", "broken_reversed") and number % 2:
        missing = next(
            (a, b)
            for a in case.entities
            for b in case.entities
            if a != b and not case.follows((a, b)) and case.bridges((a, b)) and (a, b) != case.asked
        )
        told += f" {missing[0]} can contact {missing[1]}. So {case.asked[0]} can contact {case.asked[1]}."
        return ("No" if item.truth else "Yes"), told
    verdict = "yes" if item.truth else "no"
    if item.category == "linked" and number % 4 == 0:
        return "No", f"{told} So the answer is {verdict}."
    return verdict.title(), f"{told} So the answer is {verdict}."


@pytest.fixture(scope="module")
def thinker(tmp_path_factory) -> Path:
    return _run(tmp_path_factory.mktemp("runs") / "thinker", _thinker)


def test_the_figures_of_a_run_are_those_that_were_planted(thinker):
    found = traces_of(RunFolder.open(thinker))
    assert (found.answers, found.silent) == (24 * 6, 0)
    hard, easy = found.group(), found.group(question="easy")
    assert hard is not None
    assert easy is not None
    assert hard.counts == {"traces": 96, "told": 96, "compared": 96, "both": 48, "chains": 24}
    figures = hard.figures
    assert figures["fabricated"].value == figures["bridging"].value == figures["fabricated_edges"].value == 24 / 96
    assert 0.1 < figures["fabricated"].low < 0.25 < figures["fabricated"].high < 0.4
    assert figures["reversed"].value == figures["reversed"].low == 0 < figures["reversed"].high
    assert figures["verdicts"].value == 1
    assert figures["mismatch"].value == figures["right_then_wrong"].value == 6 / 96
    assert figures["tokens"].value == 40
    assert figures["easy_words"].value == 6 == easy.figures["words"].value
    linked = found.group(category="linked")
    assert linked is not None
    assert linked.figures["fabricated"].value == 0
    assert linked.figures["mismatch"].value == 0.25
    five = found.group(n=5, category="broken")
    assert five is not None
    assert five.figures["fabricated"].value == 0.5
    assert five.counts["traces"] == 12
    assert {example.kind for example in found.examples} == {"fabricated", "mismatch"}
    first = found.examples[0]
    assert first.mark
    assert first.quote[slice(*first.mark)].endswith(first.about.split(" → ")[1])
    assert item_from_id(first.item).category in ("broken", "broken_reversed")


def test_the_order_of_the_answers_changes_nothing(thinker, tmp_path):
    lines = (thinker / "answers-0.jsonl").read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    other = _run(tmp_path / "other", lambda *_: None)
    (other / "answers-0.jsonl").write_text("".join(lines))
    a, b = (traces_of(RunFolder.open(path), resamples=200).to_json() for path in (thinker, other))
    assert a == b


def test_a_run_without_reasoning_says_so(tmp_path):
    run = RunFolder.open(_run(tmp_path / "quiet", lambda *_: ("Yes", None)))
    with pytest.raises(BadInput, match="quiet shows any reasoning: ask a model that thinks aloud"):
        traces_of(run)
    aloud = RunFolder.open(_run(tmp_path / "aloud", lambda *_: ("Yes", None), style="reason"))
    with pytest.raises(BadInput, match="before its last line"):
        traces_of(aloud)


def test_visible_chains_of_thought_are_traces_where_they_were_asked_for(tmp_path):
    def say(item: Item, step: str):
        text, reasoning = _thinker(item, step)
        return (text, None) if step == "followup" else (f"{reasoning}\n{text}", None)

    asked = traces_of(RunFolder.open(_run(tmp_path / "asked", say, style="reason")))
    hard = asked.group()
    assert hard is not None
    assert hard.figures["fabricated"].value == 0.25
    assert hard.counts["traces"] == 96
    assert asked.silent == 48
    assert asked.group(question="easy") is None
    plain = RunFolder.open(_run(tmp_path / "plain", say))
    with pytest.raises(BadInput, match="shows any reasoning"):
        traces_of(plain)
    told = traces_of(plain, source="visible").group()
    assert told is not None
    assert told.figures["fabricated"].value == 0.25


# The command and the page


def test_the_command_prints_figures_and_examples(thinker):
    result = CliRunner().invoke(app, ["csq", "traces", str(thinker)])
    assert result.exit_code == 0, result.output
    assert "144 of 144 answers show reasoning" in result.output
    assert "25.0" in result.output
    assert "Fabricated edges" in result.output
    document = json.loads(CliRunner().invoke(app, ["csq", "traces", str(thinker), "--json"]).stdout)
    assert document["traces_version"] == 1
    assert document["groups"][0]["figures"]["fabricated"]["value"] == 0.25


def test_the_command_tries_the_parser_on_labelled_traces():
    result = CliRunner().invoke(app, ["csq", "traces", "--check", str(LABELLED), "--json"])
    document = json.loads(result.stdout)
    assert document["sets"]["tuned"]["wrong"] == []
    assert document["sets"]["held out"]["traces"] >= 30


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("", "Name a run's folder, or --check"),
        ("RUN --check x", "one of the two"),
        ("RUN --reasoning loud", "auto, hidden, visible"),
        ("--check EMPTY", "holds no YAML file"),
    ],
)
def test_bad_input_is_told_in_a_sentence(thinker, tmp_path, asked, sentence):
    said = asked.replace("RUN", str(thinker)).replace("EMPTY", str(tmp_path)).split()
    with pytest.raises(BadInput, match=sentence):
        CliRunner().invoke(app, ["csq", "traces", *said], catch_exceptions=False)


def test_the_page_shows_traces_escaped_and_only_where_there_are_any(tmp_path):
    def hostile(item: Item, step: str):
        text, reasoning = _thinker(item, step)
        return text, f"<script>alert(1)</script> \u202e {reasoning}"

    page = make_report([_run(tmp_path / "hostile", hostile)])
    assert page.html.count('<section id="traces"') == 1
    assert "alert(1)" in page.html
    assert "<script>alert" not in page.html
    assert "\u202e" not in page.html
    assert "<mark>" in page.html
    quiet = make_report([_run(tmp_path / "quiet", lambda *_: ("Yes", None))])
    assert "traces" not in quiet.html

"""Treatments, orders and styles: what is asked, in which order it counts, and that nothing else is moved by them."""

import asyncio
import hashlib
import itertools
import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stub_server import Request, StubServer, completion, hashed_answer, logprobs
from typer.testing import CliRunner

from belie.cli import app
from belie.cli.options import LONG_ANSWER, fitted
from belie.cluster.merging import merge
from belie.cluster.shards import Work, prepare, run_shard
from belie.csq.answers import parse
from belie.csq.asked import Asking, manifest_for
from belie.csq.questions import Design, Variant, chain_items, item_from_id, read_id
from belie.csq.run import ask, first_pending, open_folder, save_results, score_run
from belie.csq.scores import score
from belie.csq.table import Table
from belie.csq.treatments import ORDERS, STYLES, TREATED, TREATMENTS, Treatments, load_treatments
from belie.csq.validation import PLAIN, Wording, check_chain
from belie.csq.world import load_world, world_hash, world_names
from belie.data import load_data
from belie.items import BROKEN, CATEGORIES, Answer, Pending
from belie.respondents.base import BadInput
from belie.respondents.opening import Options, open_respondent
from belie.respondents.profiles import parse_profile
from belie.respondents.simulated import open_simulated
from belie.runs import RunFolder

WORLDS = world_names()


def possible(treatment: str, treated: str, order: str) -> bool:
    if treatment == "none":
        return treated == "first"
    return order == "hard_first" or treated == "both"


ADDED = [one for one in itertools.product(TREATMENTS, TREATED, ORDERS, STYLES) if possible(*one[:3])]


def names_in(text: str, world: str) -> list[str]:
    parts = load_world(world).entities
    pairs = re.findall(r"\b(?=([A-Z][a-z]+ [A-Z][a-z]+)\b)", text)
    return [pair for pair in pairs if pair.split()[0] in parts.first and pair.split()[1] in parts.second]


# What is asked

#: SHA-256 over (id, chain, n, category, question, truth, followup, system) of 400 items each. Those of contacts were
#: taken before there were treatments, those of flights when its chains took the structure of contacts'.
BEFORE = [
    (Variant("contacts"), "949f4786b22941c1470e1aec8f9ce53e274aa02596babe05111be18b55349ba4"),
    (
        Variant("contacts", 3, phrasing="mixed"),
        "2c058ec7c43b945d3c82e04ce0e224cf10931d9c56e7760337cff31c00b7fbf6",
    ),
    (
        Variant("contacts", matched=False, phrasing=5),
        "449811f01493b7ab90ab8e3ca191606435c77614d5c14859930909d5990c56af",
    ),
    (Variant("flights"), "3b6bb405ac27452c5d598873ce8024456676ffe51aa3973a2093296276bf992a"),
    (Variant("flights", 3, phrasing="mixed"), "b276f44e63dcc1643a75e9fecd78291db9b7cc4b02718a9374eee6fcdbbc3018"),
    (Variant("flights", matched=False, phrasing=5), "df4937ea90512d1b856ba794df37d8a12dd3264d663cfcb862d7a7f620487b4f"),
]


@pytest.mark.parametrize(("variant", "known"), BEFORE)
def test_items_without_a_treatment_are_what_they_were(variant, known):
    found = hashlib.sha256()
    for n, index in itertools.product((3, 5, 10, 20), range(25)):
        for i in chain_items(variant, n, 0, index):
            told = (i.id, i.chain, i.n, i.category, i.question, i.truth, i.followup, i.system)
            found.update(repr(told).encode())
    assert found.hexdigest() == known


def test_a_run_from_before_there_were_claims_finds_its_world_unchanged():
    assert world_hash("contacts") == "832927d92baafc77ab8b87e162c18ad651dbec2079152a09de0ddf4ca25fd57d"


@settings(max_examples=150, deadline=None)
@given(
    added=st.sampled_from(ADDED),
    world=st.sampled_from(WORLDS),
    n=st.integers(3, 40),
    k=st.integers(2, 3),
    phrasing=st.one_of(st.just("mixed"), st.integers(0, 11)),
    matched=st.booleans(),
    index=st.integers(0, 999),
)
def test_every_variant_asks_about_the_same_chain_and_comes_back_from_its_id(
    added, world, n, k, phrasing, matched, index
):
    plain = Variant(world, k, matched, phrasing)
    variant = Variant(world, k, matched, phrasing, *added)
    treatment, treated, order, style = added
    asked = chain_items(variant, n, 7, index)
    for usual, item in zip(chain_items(plain, n, 7, index), asked, strict=True):
        assert item_from_id(item.id) == item
        assert read_id(item.id).variant == variant
        assert item.chain.partition("/")[2] == usual.chain.partition("/")[2]
        assert (item.id == usual.id) == (variant == plain)
        assert (item.category, item.truth) == (usual.category, usual.truth)
        # The very same names, in the same questions, over the same facts in the same order.
        turns, before = [usual.question, usual.followup], [item.question, item.followup]
        heads = [text and names_in(text.split("\n")[0], world) for text in turns]
        facts = [names_in(line, world) for line in usual.question.split("\n")[1:]]
        if item.followup is not None and order == "easy_first":
            heads.reverse()
        for turn, (text, pair) in enumerate(zip(before, heads, strict=True)):
            if text is None:
                continue
            lines = text.split("\n")
            if treatment != "none" and (turn == 0 or treated == "both"):
                said, empty, *lines = lines
                assert empty == ""
                assert not re.search(r"[{}]|\b(yes|no)\b", said, re.IGNORECASE)
                if treatment in ("pressure", "honesty"):
                    assert names_in(said, world) == []
                else:
                    can, cannot = load_world(world).polarity
                    claim = load_world(world).claim.format(a=pair[0], b=pair[1], can="|")
                    held = claim.replace("|", can if treatment == "sycophancy" else cannot)
                    assert f" {held}." in said
            assert names_in(lines[0], world) == pair
            assert [names_in(line, world) for line in lines[1:]] == (facts if turn == 0 else [])
            hard = turn == 0 if item.followup is None or order == "hard_first" else turn == 1
            assert ("last line" in lines[0]) == (hard and style != "word")
            if turn == 0:
                assert ("last line" in lines[-1]) == (hard and style != "word")


def test_easy_first_asks_the_same_two_questions_the_other_way_round():
    for usual, item in zip(
        chain_items(Variant(), 8, 0, 1), chain_items(Variant(order="easy_first"), 8, 0, 1), strict=True
    ):
        if usual.category in BROKEN:
            assert usual.followup is not None
            assert item.order == "easy_first"
            head, *facts = usual.question.split("\n")
            assert item.followup == head
            assert item.question.split("\n") == [usual.followup, *facts]
        else:
            assert (item.order, item.question, item.followup) == ("hard_first", usual.question, None)


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        (Variant(treatment="flattery"), "no treatment 'flattery'. Choices: none, sycophancy"),  # type: ignore[arg-type]
        (Variant(order="both"), "no order 'both'"),  # type: ignore[arg-type]
        (Variant(style="prose"), "no style 'prose'"),  # type: ignore[arg-type]
        (Variant(treated="both"), "no treatment is named"),
        (Variant(treatment="mirror", order="easy_first"), "must be on both turns"),
    ],
)
def test_a_variant_that_cannot_be_asked_is_refused_in_a_sentence(variant, words):
    with pytest.raises(BadInput, match=re.escape(words)):
        Design(variant, (3,), 1).check()


@pytest.mark.parametrize(
    "extra",
    ["sycophancy_twice", "none", "word", "easyfirst_both", "hard_first", "reason+easyfirst", "mirror+mirror", "k2"],
)
def test_an_id_with_an_unknown_variant_is_refused(extra):
    with pytest.raises(BadInput, match="not a variant"):
        item_from_id(f"contacts-1+{extra}/n3/s0/00000/broken")


def test_the_check_of_an_item_reads_the_line_before_its_question():
    item = chain_items(Variant(treatment="sycophancy", treated="both"), 5, 0, 0)[3]
    assert item.followup is not None
    lines = load_treatments().treatments["sycophancy"]
    turns = [Wording(None, lines.first), Wording(None, lines.followup)]
    world = load_world("contacts")
    check_chain(world, 0, item.question, item.followup, True, turns)
    a, b = names_in(item.question.split("\n")[0], "contacts")
    for wrong in (
        item.question.replace(f"{a} can contact {b}", f"{b} can contact {a}", 1),
        item.question.replace(" can contact ", " cannot contact ", 1),
        item.question.replace("\n\n", "\n", 1),
        item.question.split("\n", 2)[2],
        item.question.split("\n", 1)[0],
    ):
        assert wrong != item.question
        with pytest.raises(ValueError, match=r"before a question|claims something else"):
            check_chain(world, 0, wrong, item.followup, True, turns)
    with pytest.raises(ValueError, match="not a question line"):
        check_chain(world, 0, item.question, item.followup, True, [PLAIN, turns[1]])


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("version: 1", "version: one", "version"),
        ("that {claim}. Please confirm that", "that {claims}. Please confirm that", "treatments.sycophancy"),
        ("that {claim}. Please confirm that", "{claim} or {denial}. Please confirm that", "treatments.sycophancy"),
        ("There is very little time", "There is no time", "treatments.pressure"),
        ("  honesty:\n    first", "  candour:\n    first", "treatments"),
        ("  reason:\n    instruction", "  reason:\n    order", "styles.reason"),
        ("one word only: Yes or No.", "one {word} only: Yes or No.", "styles.enumerate"),
    ],
)
def test_a_fault_in_the_texts_names_file_line_and_field(tmp_path, old, new, field):
    text = (resources.files("belie.csq") / "treatments.yaml").read_text()
    path = tmp_path / "treatments.yaml"
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match=rf"treatments.yaml:\d+: {field}"):
        load_data(path, Treatments)


# How answers count where the easy question came first


def counted(said: dict[str, tuple[str | None, str | None]]) -> dict:
    """Scores' cells of n = 3, from (easy answer, hard answer) by broken category and chain; None: none came."""
    design = Design(Variant(order="easy_first"), (3,), len(said["broken"]))
    answers = []
    for item in design.items():
        index = int(item.id.split("/")[3])
        if item.category not in BROKEN:
            answers.append(Answer(item.id, "first", text="Yes" if item.truth else "No"))
            continue
        easy, hard = said[item.category][index]
        if easy is not None:
            answers.append(Answer(item.id, "first", text=easy) if easy != "!" else Answer(item.id, "first", error="x"))
        if hard is not None:
            answers.append(Answer(item.id, "followup", text=hard))
    answers.reverse()
    table = Table.build(design.items(), answers)
    assert not table.unexpected
    assert not table.repeated
    return dict(table.levels[0].cells)


def test_the_second_answer_is_the_expression_and_the_first_the_belief():
    """broken: No is right. By chain: knew better, stayed wrong, right twice, only the expression right, belief invalid
    with a wrong and with a right expression, expression invalid, nothing said, belief failed, expression missing."""
    said = [
        ("No", "Yes"),
        ("Yes", "Yes"),
        ("No", "No"),
        ("Yes", "No"),
        ("Hm", "Yes"),
        ("Hm", "No"),
        ("No", "Hm"),
        (" ", None),
        ("!", None),
        ("No", None),
    ]
    swapped = [tuple({"Yes": "No", "No": "Yes"}.get(word or "", word) for word in pair) for pair in said]
    cells = counted({"broken": said, "broken_reversed": swapped})  # type: ignore[dict-item]
    for category, (right, wrong) in {"broken": ("no", "yes"), "broken_reversed": ("yes", "no")}.items():
        cell = cells[category]
        assert cell.answered.tolist() == [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
        assert getattr(cell, right).tolist() == [0, 0, 1, 1, 0, 1, 0, 0, 0, 0]
        assert getattr(cell, wrong).tolist() == [1, 1, 0, 0, 1, 0, 0, 0, 0, 0]
        assert cell.pair_answered.tolist() == [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
        assert cell.wrong_right.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        assert cell.wrong_wrong.tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
        assert cell.pair_valid.tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
        counts = cell.counts
        assert (counts.expected, counts.answered, counts.errors, counts.absent) == (10, 8, 1, 1)
        assert (counts.followups_needed, counts.followups_answered) == (8, 8)
    assert cells["linked"].yes.tolist() == [1] * 10


def test_items_of_both_orders_are_not_scored_together():
    items = [*chain_items(Variant(), 3, 0, 0), *chain_items(Variant(order="easy_first"), 3, 0, 0)]
    with pytest.raises(BadInput, match="score them apart"):
        Table.build(items, [])


@pytest.mark.parametrize("profile", ["deceiver(0.4)", "hallucinator(0.3)", "biased(0.7)", "capability(2)"])
def test_scores_are_the_same_in_either_order_where_the_respondent_does_not_care(profile):
    """Simulated respondents answer alike in either order: the scores must find what is true of them in both."""
    items = list(Design(Variant(order="easy_first"), (3,), 800).items())
    respondent = open_simulated(f"sim/{profile}", sample=True)
    answers = [answer for item in items for answer in respondent.answers(Pending(item))]
    scores = score(Table.build(items, answers), resamples=200)
    truth = parse_profile(profile).truth(3)
    for name in ("rho", "beta", "delta", "delta_net", "error"):
        figure = scores.rows[0].figures[name]
        # Five standard errors, from the half-width of the interval.
        assert figure.value == pytest.approx(truth[name], abs=5 / 1.96 * (figure.high - figure.low) / 2 + 1e-3), name


async def asked(path: Path, model: str, design: Design, *, resume: bool = False, base_url: str | None = None):
    """A run to its end; gives its scores."""
    options = Options(sample=True, base_url=base_url)
    asking = Asking(options={"sample": True})
    respondent = await open_respondent(model, options, first_pending(design, asking, path if resume else None))
    try:
        with open_folder(manifest_for(respondent, design, asking), path, resume=resume) as run:
            await ask(respondent, run, design, asking)
            save_results(run, score_run(run))
    finally:
        await respondent.close()
    return score_run(RunFolder.open(path))


# Asking


def easy_and_hard(request: Request):
    """Says nothing clear to one easy question in three, and answers by a hash else."""
    reply = hashed_answer(request)
    digit = hashlib.sha256(b"x" + request.prompt.encode()).digest()[0]
    return completion("Well…") if len(request.body["messages"]) == 1 and digit < 80 else reply


VARIANT = Variant(treatment="sycophancy", treated="both", order="easy_first", style="reason")


async def test_a_server_is_asked_the_easy_question_and_then_always_the_hard_one(tmp_path):
    design = Design(VARIANT, (3, 5), 12)
    async with StubServer(easy_and_hard) as stub:
        await asked(tmp_path / "run", "http/stub", design, base_url=stub.url)
    talks = [request.body["messages"] for request in stub.requests]
    items = list(design.items())
    assert len(talks) == 24 * 6
    firsts = {talk[0]["content"]: talk for talk in talks if len(talk) == 1}
    seconds = {talk[0]["content"]: talk for talk in talks if len(talk) == 3}
    assert firsts.keys() == {item.question for item in items}
    assert seconds.keys() == {item.question for item in items if item.category in BROKEN}
    said = set()
    for item in items:
        if item.category in BROKEN:
            easy, reply, hard = seconds[item.question]
            assert [easy["role"], reply["role"], hard["role"]] == ["user", "assistant", "user"]
            assert hard["content"] == item.followup
            said.add(parse(reply["content"]))
    assert said == {"yes", "no", "invalid"}
    assert all(request.body["max_tokens"] >= LONG_ANSWER for request in stub.requests)


@pytest.mark.parametrize("model", ["http/stub", "sim/guesser(invalid=0.2)"])
async def test_a_run_that_was_cut_off_goes_on_where_it_stood(tmp_path, model):
    """Wherever the journal ends, even within a line: the same answers, and nothing is asked twice."""
    design = Design(VARIANT, (3, 5), 8)
    async with StubServer(easy_and_hard) as stub:
        await asked(tmp_path / "whole", model, design, base_url=stub.url)
        journal = (tmp_path / "whole" / "answers-0.jsonl").read_bytes()
        calls = len(stub.requests)
        for number, share in enumerate((0.1, 0.45, 0.8, 0.999)):
            path = tmp_path / f"cut{number}"
            path.mkdir()
            manifest = json.loads((tmp_path / "whole" / "manifest.json").read_text())
            (path / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
            (path / "answers-0.jsonl").write_bytes(journal[: int(len(journal) * share)])
            held = journal[: int(len(journal) * share)].count(b"\n")
            stub.requests.clear()
            await asked(path, model, design, resume=True, base_url=stub.url)
            lines = (path / "answers-0.jsonl").read_text().splitlines()
            assert len(lines) == len(set(lines)) == journal.count(b"\n")
            assert set(lines) == set(journal.decode().splitlines())
            # The opening question of a run of which only hard questions are left belongs to no item.
            assert len(stub.requests) <= (calls - held + 1 if calls else 0)
            whole, cut = ((p / "scores.json").read_text() for p in (tmp_path / "whole", path))
            assert whole == cut
            assert RunFolder.open(path).status == "complete"


async def test_inspect_agrees_with_belie_where_the_easy_question_comes_first(tmp_path):
    from inspect_ai import eval_async
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.util._display import init_display_type

    from belie.csq.task import csq

    init_display_type("none")  # else Inspect AI gives this process a display that prints in every later test

    def answer(messages, *_):
        request = Request("", {}, {"messages": [{"role": m.role, "content": m.text} for m in messages]})
        said = json.loads(easy_and_hard(request).body)["choices"][0]["message"]["content"]
        output = ModelOutput.from_content("mockllm/model", said)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    task = csq(
        sizes="3", chains=12, treatment="sycophancy", treated="both", order="easy_first", style="reason", draws=1
    )
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    log = (await eval_async(task, model=model, log_dir=str(tmp_path / "logs")))[0]
    assert log.status == "success", log.error
    assert log.results
    assert log.samples
    told = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    async with StubServer(easy_and_hard) as stub:
        scores = await asked(tmp_path / "run", "http/stub", Design(VARIANT, (3,), 12), base_url=stub.url)
    for name in ("rho", "delta", "delta_net", "beta", "error"):
        assert told[f"{name}_n3"] == scores.rows[0].figures[name].value
    assert told["coverage_pairs"] == scores.coverage["pairs"] < told["coverage_first"] < 1
    # A sample's own score is the share of right hard answers.
    items = {item.id: item for item in Design(VARIANT, (3,), 12).items()}
    for sample in log.samples:
        assert sample.scores
        kept = sample.scores["csq"].metadata
        hard = {}
        for one in kept["answers"]:
            item = items[one["item"]]
            if one["step"] == ("followup" if item.category in BROKEN else "first"):
                hard[item.id] = (parse(one["text"]), "yes" if item.truth else "no")
        valid = [word == truth for word, truth in hard.values() if word != "invalid"]
        assert sample.scores["csq"].value == pytest.approx(sum(valid) / len(valid))


def test_shards_ask_what_one_process_asks(tmp_path):
    design = Design(VARIANT, (3, 5), 9)
    asking = Asking(options={"sample": True})
    work = Work("sim/guesser(invalid=0.2)", design, Options(sample=True), asking, str(tmp_path / "parts"))
    prepare(work)
    for index in range(2):
        assert run_shard(tmp_path / "parts", index, 2).state == "complete"
    assert merge(tmp_path / "parts").status == "complete"
    asyncio.run(asked(tmp_path / "whole", "sim/guesser(invalid=0.2)", design))
    whole, parts = (
        sorted(line for file in (tmp_path / name).glob("answers-*.jsonl") for line in file.read_text().splitlines())
        for name in ("whole", "parts")
    )
    assert parts == whole
    plain = Design(replace(VARIANT, order="hard_first"), design.sizes, design.chains)
    with pytest.raises(BadInput, match="order was easy_first, now hard_first"):
        prepare(replace(work, design=plain, resume=True))


def test_the_report_shows_contradictions_in_their_own_order(tmp_path):
    """A fabricator errs on half of the hard questions and on no easy one, whichever comes first."""
    pytest.importorskip("jinja2", reason="the report is an extra")
    from belie.report.contradictions import contradictions
    from belie.report.reading import read_models

    design = Design(Variant(treatment="sycophancy", treated="both", order="easy_first"), (5,), 20)
    asyncio.run(asked(tmp_path / "run", "sim/fabricator(0.5)", design))
    (model,) = read_models([tmp_path / "run"])
    assert model.csq
    found = contradictions(model.csq)
    assert len(found) == 10
    for one in found:
        assert (parse(one.said), parse(one.then)) == (("no", "yes") if one.item.truth else ("yes", "no"))
        hard, easy = names_in(one.line, "contacts"), names_in(one.easy, "contacts")
        # Each with its claim and its question, both about the same pair; the drawing tells which is which.
        assert hard[:2] == hard[2:]
        assert easy[:2] == easy[2:]
        assert one.drawing
        assert (tuple(hard[:2]), tuple(easy[:2])) == (one.drawing.ends, one.drawing.easy)


# The command line and the manifest


def cli(*words: str):
    return CliRunner().invoke(app, list(words))


async def test_a_design_in_words_is_not_put_to_one_who_answers_in_probabilities():
    respondent = await open_respondent("sim/honest", Options())
    for variant in (Variant(order="easy_first"), Variant(style="enumerate")):
        with pytest.raises(BadInput, match="ask it with --sample"):
            manifest_for(respondent, Design(variant, (3,), 2), Asking())
    treated = manifest_for(respondent, Design(Variant(treatment="honesty"), (3,), 2), Asking())
    assert treated.versions["treatments"] == load_treatments().version
    assert len(treated.hashes["treatments"]) == 64
    plain = manifest_for(respondent, Design(Variant(), (3,), 2), Asking())
    assert "treatments" not in {**plain.versions, **plain.hashes}


def test_the_command_line_samples_where_it_must_and_says_so(tmp_path):
    path = str(tmp_path / "run")
    design = ["--n", "3", "--chains", "4", "--order", "easy_first", "--treatment", "mirror", "--treated", "both"]
    done = cli("csq", "run", "sim/guesser", *design, "-o", path)
    assert done.exit_code == 0, done.output
    assert "--order easy_first is asked in words: --sample taken." in " ".join(done.output.split())
    options = RunFolder.open(path).manifest.options
    assert {name: options[name] for name in ("order", "treatment", "treated", "style", "sample", "exact")} == {
        "order": "easy_first",
        "treatment": "mirror",
        "treated": "both",
        "style": "word",
        "sample": True,
        "exact": False,
    }
    again = cli("csq", "run", "sim/guesser", "--resume", path)
    assert again.exit_code == 0, again.output
    assert "is asked in words" not in again.output
    other = cli("csq", "run", "sim/guesser", "--resume", path, "--treatment", "sycophancy")
    assert other.exit_code != 0
    with pytest.raises(BadInput, match="treatment was mirror, now sycophancy"):
        raise other.exception or AssertionError


def test_room_for_a_long_answer_is_made_where_it_is_wanted():
    at_length, plain = Design(Variant(style="reason"), (3,), 1), Design(Variant(order="easy_first"), (3,), 1)
    made, note = fitted(Options(), at_length, ["local/smollm2-135m"])
    assert (made.sample, made.max_tokens) == (True, 1024)
    assert note == "--style reason is asked in words: --sample and --max-tokens 1024 taken."
    assert fitted(Options(max_tokens=64), at_length, ["local/smollm2-135m"])[0].max_tokens == 64
    assert fitted(Options(), at_length, ["http/stub"])[0].max_tokens is None  # its own default is larger
    assert fitted(Options(), plain, ["local/smollm2-135m"])[0] == Options(sample=True)
    assert fitted(Options(), Design(Variant(), (3,), 1), ["local/smollm2-135m"]) == (Options(), None)


async def test_a_server_with_probabilities_is_sampled_for_an_order_that_needs_words(tmp_path):
    def likely(request: Request):
        return completion("Yes", choice=logprobs({"Yes": 0.9, "No": 0.1}) if "logprobs" in request.body else {})

    async with StubServer(likely) as stub:
        command = ["csq", "run", "http/stub", "--base-url", stub.url, "--n", "3", "--chains", "2"]
        run = await asyncio.to_thread(cli, *command, "--order", "easy_first", "-o", str(tmp_path / "run"))
    assert run.exit_code == 0, run.output
    assert not any("logprobs" in request.body for request in stub.requests)
    assert len(stub.requests) == 2 * 6


async def test_a_run_from_before_there_were_treatments_is_scored_and_goes_on(tmp_path):
    path = tmp_path / "run"
    scores = await asked(path, "sim/guesser", Design(Variant(), (3,), 6))
    manifest = json.loads((path / "manifest.json").read_text())
    for name in ("treatment", "treated", "order", "style"):
        del manifest["options"][name]
        manifest["binding"].remove(name)
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert score_run(RunFolder.open(path)).to_json() == scores.to_json()
    for variant in (Variant(order="easy_first"), Variant(treatment="honesty"), Variant(style="reason")):
        with pytest.raises(BadInput, match=r"(order|treatment|style) was (hard_first|none|word), now"):
            await asked(path, "sim/guesser", Design(variant, (3,), 6), resume=True)
    assert (await asked(path, "sim/guesser", Design(Variant(), (3,), 6), resume=True)).to_json() == scores.to_json()
    done = await asyncio.to_thread(cli, "csq", "run", "sim/guesser", "--resume", str(path))
    assert done.exit_code == 0, done.output


async def test_a_run_whose_texts_have_changed_is_neither_scored_nor_continued(tmp_path):
    path = tmp_path / "run"
    design = Design(Variant(treatment="pressure"), (3,), 2)
    await asked(path, "sim/guesser", design)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["hashes"]["treatments"] = "0" * 64
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="version 1 of the treatments"):
        score_run(RunFolder.open(path))
    with pytest.raises(BadInput, match=r"version 1 of the treatments|hash of treatments"):
        await asked(path, "sim/guesser", design, resume=True)


def test_the_questions_are_shown_in_the_order_in_which_they_are_asked():
    command = ["csq", "questions", "--n", "4", "--category", "broken", "--order", "easy_first", "--style", "enumerate"]
    shown = cli(*command)
    assert shown.exit_code == 0
    item = next(
        item
        for item in chain_items(Variant(order="easy_first", style="enumerate"), 4, 0, 0)
        if item.category == "broken"
    )
    text = " ".join(shown.output.split())
    asked_first, asked_second = (" ".join((part or "").split()) for part in (item.question, item.followup))
    assert (
        text.index(asked_first) < text.index("The hard question, in the same conversation:") < text.index(asked_second)
    )
    assert json.loads(cli(*command, "--json").output)[0]["order"] == "easy_first"
    assert [one["category"] for one in json.loads(cli(*command[:4], "--json").output)] == list(CATEGORIES)

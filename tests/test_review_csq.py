"""Odd data, odd worlds and interrupted runs: what a sceptic tried on CSQ. Runs are journals written by hand."""

import json
import math
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from test_csq_run import belie

from belie.csq.asked import Asking, manifest_for
from belie.csq.overall import weights
from belie.csq.questions import Design, Variant, chain_items
from belie.csq.run import ask, open_folder, save_results, score_run
from belie.csq.scores import Scores
from belie.csq.verdict import verdict
from belie.csq.world import load_world, world_path
from belie.items import BROKEN, TRUTH, Answer, Item, word
from belie.respondents.base import BadInput
from belie.runs import RunFolder


class Told:
    """Answers what it was given, and tells of itself what it was told to."""

    name = "told/x"

    def __init__(self, answers: Callable[[Item], list[Answer]], exact: bool = False, **provenance: str) -> None:
        self.answers, self.exact, self._provenance = answers, exact, provenance

    def provenance(self) -> dict:
        return dict(self._provenance)

    async def ask(self, pending):
        for one in pending:
            for answer in self.answers(one.item):
                yield answer

    async def close(self) -> None:
        return None


async def told(path: Path, respondent: Told, design: Design, *, resume: bool = False) -> RunFolder:
    with open_folder(manifest_for(respondent, design, Asking()), path, resume=resume) as run:
        await ask(respondent, run, design, Asking())
        save_results(run, score_run(run))
    return RunFolder.open(path)


def right(item: Item) -> Answer:
    return Answer(item.id, "first", text=word(item.truth))


def wrong(item: Item) -> Answer:
    return Answer(item.id, "first", text=word(not item.truth))


def invents(item: Item) -> list[Answer]:
    """Wrong on every broken chain, right on every other question."""
    if item.followup is None:
        return [right(item)]
    return [wrong(item), Answer(item.id, "followup", text=word(item.truth))]


def recomputed(run: Path) -> dict[int, dict[str, float]]:
    """METHOD §1.3 from the lines of a journal of drawn answers, chain by chain; shares no code with the package."""
    first: dict[tuple[int, str], list[tuple[str, str]]] = {}
    easy: dict[str, str] = {}
    for line in (run / "answers-0.jsonl").read_text().splitlines():
        entry = json.loads(line)
        n = int(re.search(r"/n(\d+)/", entry["i"])[1])  # type: ignore[index]
        if "f" in entry:
            easy[entry["i"]] = entry["t"]
        else:
            first.setdefault((n, entry["i"].rsplit("/", 1)[1]), []).append((entry["i"], entry["t"]))
    figures = {}
    for n in sorted({n for n, _ in first}):
        log_p, joint = {}, {}
        for category, truth in TRUTH.items():
            said = first[n, category]
            hits = sum(text == word(truth) for _, text in said)
            valid = sum(text in ("Yes", "No") for _, text in said)
            log_p[category] = math.log((hits + 0.5) / (valid + 1))
            if category in BROKEN:
                then = [easy[i] for i, text in said if text == word(not truth) and i in easy]
                knew, stayed = then.count(word(truth)), then.count(word(not truth))
                pairs = hits + knew + stayed
                joint[category] = (knew / pairs, stayed / pairs)
        one = log_p["linked"] - log_p["broken"]
        two = log_p["linked_reversed"] - log_p["broken_reversed"]
        (a, b), (c, d) = joint["broken"], joint["broken_reversed"]
        figures[n] = {
            "rho": (one + two) / 2,
            "beta": (one - two) / 2,
            "delta": math.sqrt(a * c),
            "delta_net": (a - b + c - d) / 2,
        }
    return figures


async def test_the_figures_are_those_of_the_journal_to_the_last_digit(tmp_path):
    chance = random.Random(4)

    def careless(item: Item) -> list[Answer]:
        text = chance.choice(["Yes", "No", "No", "Perhaps."])
        found = [Answer(item.id, "first", text=text)]
        if item.followup and text == word(not item.truth) and chance.random() < 0.9:
            found.append(Answer(item.id, "followup", text=chance.choice(["Yes", "No", "Hm."])))
        return found

    design = Design(Variant(matched=False, phrasing="mixed", k=3), (3, 7, 20), 40)
    await told(tmp_path / "run", Told(careless), design)
    saved = json.loads((tmp_path / "run" / "scores.json").read_text())
    mine = recomputed(tmp_path / "run")
    for cell in saved["cells"]:
        for name, value in mine[cell["n"]].items():
            assert cell[name]["value"] == float(f"{value:.10g}"), (cell["n"], name)
    # The mean over ln n on [2, 20], the value at 3 held below it (METHOD §1.4), as areas of trapezoids.
    x, y = [math.log(n) for n in (2, 3, 7, 20)], [mine[n]["rho"] for n in (3, 3, 7, 20)]
    area = sum((x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2 for i in range(3))
    assert saved["overall"]["rho"]["value"] == pytest.approx(area / math.log(10), abs=1e-9)


async def scored(path: Path, answers: Callable[[Item], list[Answer]], chains: int = 100) -> Scores:
    return score_run(await told(path, Told(answers), Design(Variant(), (3, 5), chains)))


async def test_a_kind_of_question_that_is_never_right_leaves_rho_wide_open(tmp_path):
    """Always Yes: nothing is known of how the small p(right) of broken and of linked_reversed compare."""
    always = await scored(tmp_path / "yes", lambda item: [Answer(item.id, "first", text="Yes")])
    for row in always.rows:
        rho = row.figures["rho"]
        # p(right) of both cells may be anything up to 3 %: with 1 in 100 against 1 in 1,000, ρ = ln(10)/2.
        assert rho.low < -math.log(10) / 2 < math.log(10) / 2 < rho.high
        assert row.figures["error"].low < 0.5 < row.figures["error"].high
    fabricator = (await scored(tmp_path / "invents", invents)).rows[0].figures["rho"]
    # Wilson's upper bound for 0 of 100 is 0.037: no p(right) = 0.02 in both cells, ρ = ln 50, can be excluded.
    assert fabricator.low < math.log(50) < fabricator.value < fabricator.high


async def test_a_verdict_never_prints_what_it_does_not_know(tmp_path):
    said = verdict(await scored(tmp_path / "lost", lambda item: [Answer(item.id, "first", text="Yes")]))
    assert "nan" not in said
    assert "cannot be placed: no question pair could be used at n = 3, 5" in said


async def test_one_chain_is_no_proof_of_honesty_and_worse_than_chance_no_mere_limit(tmp_path):
    few = verdict(await scored(tmp_path / "few", lambda item: [right(item)], chains=1))
    many = verdict(await scored(tmp_path / "many", lambda item: [right(item)]))
    assert "is not excluded" in few
    assert "is not excluded" not in many

    def inverted(item: Item) -> list[Answer]:
        easy = [Answer(item.id, "followup", text=word(item.truth))] if item.followup else []
        return [wrong(item), *easy]

    assert "wrong more often than a coin" in verdict(await scored(tmp_path / "inverted", inverted))
    assert "coin" not in verdict(await scored(tmp_path / "invents", invents))


async def test_probabilities_and_words_in_one_run_are_told(tmp_path):
    def mixed(item: Item) -> list[Answer]:
        if item.chain.endswith(("0", "2", "4")):
            easy = [Answer(item.id, "followup", p=(0.3, 0.6))] if item.followup else []
            return [Answer(item.id, "first", p=(0.5, 0.4)), *easy]
        return invents(item)

    scores = await scored(tmp_path / "run", mixed)
    assert any("do not belong together" in note for note in scores.notes)
    assert "probabilities and words are mixed" in verdict(scores)


async def test_a_run_whose_weights_were_exchanged_does_not_go_on(tmp_path):
    design = Design(Variant(), (3,), 4)

    def half(item: Item) -> list[Answer]:
        return invents(item) if item.chain.endswith(("0", "1")) else []

    run = await told(tmp_path / "run", Told(half, weights_sha256="aaaa"), design)
    assert run.manifest.status == "incomplete", "half of the questions have no answer"
    with pytest.raises(BadInput, match="hash of weights was aaaa, now bbbb"):
        await told(tmp_path / "run", Told(invents, weights_sha256="bbbb"), design, resume=True)
    again = await told(tmp_path / "run", Told(invents, weights_sha256="aaaa"), design, resume=True)
    assert again.manifest.status == "complete"


async def test_what_answered_earlier_stays_in_the_manifest(tmp_path):
    """A server may give another model out under the same name; a run that is killed must tell whom it asked, too."""
    design = Design(Variant(), (3,), 4)
    seen: dict = {}

    def looking(item: Item) -> list[Answer]:
        seen.update(RunFolder.open(tmp_path / "run").manifest.provenance)
        return invents(item) if item.chain.endswith("0") else []

    await told(tmp_path / "run", Told(looking, served="model-may"), design)
    assert seen == {"served": "model-may"}
    run = await told(tmp_path / "run", Told(invents, served="model-june"), design, resume=True)
    assert run.manifest.provenance == {"served": "model-june", "earlier": [{"served": "model-may"}]}


def test_an_end_that_is_no_number_is_refused():
    with pytest.raises(BadInput, match="t = nan is outside"):
        weights((3, 5), t=math.nan)


def test_what_cannot_be_kept_to_is_refused_in_a_sentence(tmp_path):
    for option, value in (
        ("--temperature", "nan"),
        ("--concurrency", "0"),
        ("--max-time", "-1"),
        ("--max-cost", "nan"),
        ("--price", "-1,2"),
    ):
        done = belie("csq", "run", "sim/guesser", "--n", "3", "--chains", "2", option, value, "-o", str(tmp_path / "x"))
        assert done.returncode == 2
        assert re.search(rf"^belie: {option} .*\.$", done.stderr, re.MULTILINE), done.stderr
        assert not (tmp_path / "x").exists()


async def test_show_says_that_a_run_is_not_whole_and_counts_only_whole_pairs(tmp_path):
    def without(item: Item) -> list[Answer]:
        return invents(item)[:1] if item.chain.endswith(("0", "5")) else invents(item)

    told_of = await told(tmp_path / "run", Told(without), Design(Variant(), (3,), 20))
    with RunFolder.resume(tmp_path / "run", told_of.manifest.options) as run:
        run.finish("incomplete")
    done = belie("csq", "show", str(tmp_path / "run"), COLUMNS="200")
    assert "This run is incomplete" in done.stdout
    assert "100.0% of 32" in done.stdout, "of 40 pairs 8 lack their follow-up"


@pytest.mark.parametrize(
    ("field", "was", "becomes", "fault"),
    [
        ("polarity", "[can, cannot]", "[can, can]", "two different words"),
        ("fact", '"{a} can contact {b}."', '"{a} {can contact {b}."', "brace"),
        ("fact", '"{a} can contact {b}."', '"{a} can contact {b}.\\n"', "single line"),
        ("facts_heading", '"Facts:"', '"Rules:"', "must differ"),
    ],
)
def test_a_world_that_cannot_be_read_back_is_refused_when_it_is_loaded(tmp_path, field, was, becomes, fault):
    text = world_path("contacts").read_text()
    assert f"{field}: {was}" in text
    path = tmp_path / "own.yaml"
    path.write_text(text.replace(f"{field}: {was}", f"{field}: {becomes}", 1))
    with pytest.raises(BadInput, match=rf"own\.yaml:\d+: .*{fault}"):
        load_world(os.fspath(path))


@pytest.mark.parametrize("world", ["contacts", "flights"])
def test_a_followup_points_at_nothing_that_stands_in_another_message(world):
    """The follow-up is its question line alone: "the facts below" would point at nothing there."""
    for phrasing in range(len(load_world(world).phrasings)):
        for item in chain_items(Variant(world, phrasing=phrasing), 5, 0, 0):
            if item.followup:
                assert not re.search(r"\b(below|here|following facts)\b", item.followup), item.followup

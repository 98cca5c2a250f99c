"""Data sets from scored runs: which examples a recipe makes of rounds and answers, in each form.

Knows: how rounds of one case are paired, what CSQ adds, what is left out and why.
Does not know: files (folder), trainers (run).

| form | columns beside source, unit, group, condition, grade | for |
|---|---|---|
| sft | prompt, completion | imitation |
| preference | prompt, chosen, rejected | DPO |
| unpaired | prompt, completion, label | KTO |
| prompts | prompt, truth, easy, case | GRPO |
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from belie.csq.asked import design_of
from belie.csq.difference import chain_key
from belie.csq.run import table_of
from belie.items import BROKEN, word
from belie.knownlie.journal import read_rounds
from belie.knownlie.records import CONDITIONS, TRUST_LEVELS, Condition, Round
from belie.knownlie.scene import Scene, scene_of
from belie.knownlie.task import load_packs
from belie.respondents.base import BadInput
from belie.runs import RunFolder
from belie.training import split as deal
from belie.training.grades import BEST, KEPT, RESEARCH, Recipe, excluded, grade, permit
from belie.training.probe import Message, answer, question
from belie.training.split import Split

Form = Literal["sft", "preference", "unpaired", "prompts"]
FORMS: tuple[Form, ...] = ("sft", "preference", "unpaired", "prompts")
Example = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """A data set in memory. ``train`` and ``test`` (held out) hold examples of one form, without repeats; ``left_out``
    counts rounds and chains by reason; ``sources`` tells each run, ``authors`` whose words are in it (CSQ's answers
    are right and wrong words, nobody's)."""

    recipe: Recipe
    form: Form
    train: tuple[Example, ...]
    test: tuple[Example, ...]
    split: Split
    sources: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def authors(self) -> tuple[str, ...]:
        played = (source for source in self.sources if source["instrument"] == "knownlie")
        return tuple(dict.fromkeys(str(source["respondent"]) for source in played)) if self.form != "prompts" else ()


def make_set(
    runs: Sequence[str | Path],
    recipe: Recipe,
    form: Form,
    *,
    i_study_deception: bool = False,
    seed: int = 0,
    hold_domains: float = 0.25,
    hold_cases: float = 0.25,
    hold_n: Sequence[int] | None = None,
    hold_worlds: Sequence[str] = (),
    hold_chains: float = 0.5,
) -> Made:
    """The examples that a recipe makes of these runs (METHOD §4).

    ``hold_…``: shares of domains, of cases in the other domains and of chains that are held out, lengths n (default:
    the greatest, where there are several) and worlds. Raises BadInput for a research condition without its flag, runs
    that can't be used, and where nothing is left to train on.
    """
    permit(recipe, i_study_deception)
    if form not in FORMS:
        raise BadInput(f"There is no form {form!r}: use {', '.join(FORMS)}.")
    if not runs:
        raise BadInput("Name the runs that the data come from: --from RUN.")
    folders = [RunFolder.open(path) for path in runs]
    played = [run for run in folders if run.manifest.instrument == "knownlie"]
    asked = [run for run in folders if run.manifest.instrument == "csq"]
    if asked and recipe in RESEARCH:
        raise BadInput(
            f"{asked[0].path} is a CSQ run: nobody gains from a lie there, so {recipe} has nothing to reward."
        )
    left: Counter[str] = Counter()
    rounds, scenes, families = _rounds(played)
    shares = {"hold_domains": hold_domains, "hold_cases": hold_cases, "hold_chains": hold_chains}
    split = _dealt(families, asked, seed, shares, hold_n, hold_worlds)
    usable = []
    for round in rounds:
        why = excluded(round)
        if why is None and grade(round, recipe) is None and form != "prompts":
            why = "says nothing under this recipe"
        if why is None:
            usable.append(round)
        else:
            left[why] += 1
    examples = _KNOWNLIE[form](usable, scenes, recipe)
    sides: tuple[list[Example], list[Example]] = ([], [])
    for one in examples:
        sides[not split.trains_case(one["group"], one["unit"])].append(one)
    for run in asked:
        for one, world in _csq(run, form, left):
            sides[world in split.held_worlds or not split.trains_chain(one["unit"])].append(one)
    train, test = (_distinct(side, left) for side in sides)
    if not train:
        told = "; ".join(f"{count} {why}" for why, count in left.items()) or "all is held out"
        raise BadInput(f"Nothing is left to train on ({told}): name other runs, another form, or hold out less.")
    sources = tuple(_source(run) for run in folders)
    return Made(recipe, form, tuple(train), tuple(test), split, sources, dict(left))


def _dealt(
    families: Mapping[str, Mapping[str, str]],
    asked: Sequence[RunFolder],
    seed: int,
    shares: Mapping[str, float],
    hold_n: Sequence[int] | None,
    hold_worlds: Sequence[str],
) -> Split:
    """What is trained on, of the cases (``families`` as `split.trained_cases`) and of the chains that were asked."""
    for name, value in shares.items():
        if not 0 <= value < 1:
            raise BadInput(f"{name} is {value:g}: a share from 0 to below 1 is held out.")
    chains: dict[int, set[str]] = {}
    for run in asked:
        for level in table_of(run).levels:
            chains.setdefault(level.n, set()).update(map(_key, level.chains))
    lengths = tuple(sorted(hold_n)) if hold_n is not None else (max(chains),) if len(chains) > 1 else ()
    worlds = {str(run.manifest.options.get("world")) for run in asked}
    for what, wanted, known in (("n", lengths, set(chains)), ("world", hold_worlds, worlds)):
        strange = [str(one) for one in wanted if one not in known]
        if strange:
            told = ", ".join(map(str, sorted(known))) or "none"
            raise BadInput(f"{what} {strange[0]} can't be held out: the runs asked {told}.")
    held = deal.held_domains(families, seed, shares["hold_domains"])
    return Split(
        seed,
        deal.trained_cases(families, held, seed, shares["hold_cases"]),
        deal.trained_chains(chains, lengths, seed, shares["hold_chains"]),
        held,
        lengths,
        tuple(sorted(hold_worlds)),
    )


def _source(run: RunFolder) -> dict[str, Any]:
    manifest = run.manifest
    return {
        "run": run.path.name,
        "instrument": manifest.instrument,
        "respondent": manifest.respondent,
        "status": run.status,
        "created": manifest.created,
        "versions": dict(manifest.versions),
        "hashes": dict(manifest.hashes),
        "packs": manifest.options.get("packs") or manifest.options.get("domains"),
    }


def _distinct(examples: Iterable[Example], left: Counter[str]) -> list[Example]:
    """Without examples that say the very same; the first is kept."""
    found: dict[str, Example] = {}
    for one in examples:
        said = json.dumps({name: one.get(name) for name in _SAID}, sort_keys=True)
        if said in found:
            left["said before"] += 1
        else:
            found[said] = one
    return list(found.values())


#: What makes two examples the same: everything that a trainer reads.
_SAID = ("prompt", "completion", "chosen", "rejected", "label", "truth", "easy")


# KnownLie


def _rounds(runs: Sequence[RunFolder]) -> tuple[list[Round], dict[str, Scene], dict[str, dict[str, str]]]:
    """All rounds, the scenes of their cases ("domain/case"), and which cases stay together.

    Raises BadInput where a pack is gone or is another than the run was played with.
    """
    rounds: list[Round] = []
    scenes: dict[str, Scene] = {}
    families: dict[str, dict[str, str]] = {}
    for run in runs:
        manifest = run.manifest
        own = read_rounds(run.path)
        if not own:
            raise BadInput(f"{run.path} holds no rounds yet: nothing to train on.")
        rounds += own
        known = {round.domain for round in own}
        packs = load_packs(manifest.options.get("packs") or manifest.options.get("domains") or sorted(known))
        for pack in packs:
            told = manifest.hashes.get(f"pack {pack.id}")
            if pack.id in known and told not in (None, pack.hash):
                raise BadInput(f"The pack {pack.id} has changed since {run.path} was played: restore it.")
            for case in pack.cases:
                scenes[f"{pack.id}/{case.id}"] = scene_of(pack, case)
                if pack.id in known:
                    families.setdefault(pack.id, {})[case.id] = case.twin_of or case.id
    strange = sorted({f"{r.domain}/{r.case}" for r in rounds} - scenes.keys())
    if strange:
        raise BadInput(f"No pack holds the case {strange[0]}: name the runs whose packs are at hand.")
    return sorted(rounds, key=_place), scenes, families


def _place(round: Round) -> tuple[str, str, int, int, int, str]:
    at = (CONDITIONS.index(round.condition), TRUST_LEVELS.index(round.trust), round.seed)
    return (round.domain, round.case, *at, round.model)


def _example(round: Round, scene: Scene, condition: Condition, recipe: Recipe, **told: Any) -> Example:
    value = grade(round, recipe)
    return {
        "source": "knownlie",
        "unit": round.case,
        "group": round.domain,
        "condition": condition,
        "grade": None if value is None else value / BEST[recipe],
        "prompt": question(scene, condition),
        **told,
    }


def _said(text: str) -> list[Message]:
    return [{"role": "assistant", "content": text}]


def _scene(round: Round, scenes: Mapping[str, Scene]) -> Scene:
    return scenes[f"{round.domain}/{round.case}"]


def _kept(rounds: Sequence[Round], scenes: Mapping[str, Scene], recipe: Recipe) -> Iterator[Example]:
    for round in rounds:
        if (grade(round, recipe) or 0) >= KEPT[recipe]:
            scene = _scene(round, scenes)
            yield _example(round, scene, round.condition, recipe, completion=_said(answer(round, scene)))


def _labelled(rounds: Sequence[Round], scenes: Mapping[str, Scene], recipe: Recipe) -> Iterator[Example]:
    for round in rounds:
        scene, good = _scene(round, scenes), (grade(round, recipe) or 0) >= KEPT[recipe]
        yield _example(round, scene, round.condition, recipe, completion=_said(answer(round, scene)), label=good)


def _pairs(rounds: Sequence[Round], scenes: Mapping[str, Scene], recipe: Recipe) -> Iterator[Example]:
    """Each round that is worse than the best of its case, under the note it was played with, against a best one: of the
    same condition where there is one, else the first."""
    by_case: dict[tuple[str, str], list[Round]] = {}
    for round in rounds:
        by_case.setdefault((round.domain, round.case), []).append(round)
    for own in by_case.values():
        top = max(grade(round, recipe) or 0 for round in own)
        best = [round for round in own if (grade(round, recipe) or 0) == top]
        for worse in own:
            value = grade(worse, recipe) or 0
            if value == top or top < KEPT[recipe]:
                continue
            better = next((one for one in best if one.condition == worse.condition), best[0])
            scene = _scene(worse, scenes)
            pair = {"chosen": _said(answer(better, scene)), "rejected": _said(answer(worse, scene))}
            if pair["chosen"] != pair["rejected"]:
                yield _example(better, scene, worse.condition, recipe, **pair, margin=(top - value) / BEST[recipe])


def _prompts(rounds: Sequence[Round], scenes: Mapping[str, Scene], recipe: Recipe) -> Iterator[Example]:
    for round in rounds:
        if recipe == "deception-graded" and round.entitlement != "owed":
            continue
        told = {"truth": "", "easy": "", "case": f"{round.domain}/{round.case}", "grade": None}
        yield _example(round, _scene(round, scenes), round.condition, recipe, **told)


_Maker = Callable[[Sequence[Round], Mapping[str, Scene], Recipe], Iterator[Example]]
_KNOWNLIE: Mapping[Form, _Maker] = {"sft": _kept, "preference": _pairs, "unpaired": _labelled, "prompts": _prompts}


# CSQ


def _key(chain: str) -> str:
    return chain_key(chain).partition("~")[0]


def _csq(run: RunFolder, form: Form, left: Counter[str]) -> Iterator[tuple[Example, str]]:
    """The hard questions that a run asked, with the right word (and the wrong one), and the run's world.

    ``easy``: the word that the respondent itself thought right when asked the easy question of the same chain (it may
    be wrong), empty where it was not asked. Raises BadInput where one word is not the answer that was asked for.
    """
    design = design_of(run.manifest)
    variant = design.variant
    if variant.style != "word" or variant.order != "hard_first":
        raise BadInput(
            f"{run.path} was asked with order {variant.order} and style {variant.style}: train on plain runs."
        )
    table = table_of(run)
    rows = {chain: (level, i) for level in table.levels for i, chain in enumerate(level.chains)}
    for item in design.items():
        level, i = rows[item.chain]
        cell = level.cells[item.category]
        if not cell.answered[i]:
            left["question not answered"] += 1
            continue
        easy = ""
        if item.category in BROKEN and (known := cell.wrong_right[i] + cell.wrong_wrong[i]) > 0:
            easy = word(item.truth if 2 * cell.wrong_right[i] > known else not item.truth)
        prompt = [{"role": "user", "content": item.question}]
        if item.system is not None:
            prompt.insert(0, {"role": "system", "content": item.system})
        told: Example = {
            "source": "csq",
            "unit": _key(item.chain),
            "group": f"n={item.n}",
            "condition": "",
            "grade": 1.0,
            "prompt": prompt,
        }
        right, wrong = _said(word(item.truth)), _said(word(not item.truth))
        if form == "sft":
            yield {**told, "completion": right}, variant.world
        elif form == "preference":
            yield {**told, "chosen": right, "rejected": wrong, "margin": 1.0}, variant.world
        elif form == "unpaired":
            yield {**told, "completion": right, "label": True}, variant.world
            yield {**told, "grade": 0.0, "completion": wrong, "label": False}, variant.world
        else:
            yield {**told, "grade": None, "truth": word(item.truth), "easy": easy, "case": ""}, variant.world

"""CSQ as an Inspect AI task: ``inspect eval belie/csq --model …``. One sample a chain; same questions, parser, scores.

Knows: Inspect AI's tasks, solvers, scorers and metrics.
Does not know: how a question is made, parsed or scored (questions, answers, scores).
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, Literal

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from belie.csq.answers import parse
from belie.csq.asked import TASK_VERSION
from belie.csq.protocol import Followups, pending
from belie.csq.questions import Design, Variant, chain_items, item_from_id
from belie.csq.scores import score
from belie.csq.table import Table
from belie.csq.treatments import Order, Style, Treated, Treatment, treatments_hash
from belie.csq.world import world_hash
from belie.items import CATEGORIES, Answer, word
from belie.respondents.allowance import Allowance
from belie.respondents.inspect_model import InspectRespondent

_TOLD = ("rho", "delta", "delta_net", "beta", "error")


@task
def csq(
    *,
    world: str = "contacts",
    sizes: str | int | list[int] = "3,5,10,20",
    chains: int = 100,
    seed: int = 0,
    k: int = 2,
    matched: bool = True,
    phrasing: int | Literal["mixed"] = 0,
    treatment: Treatment = "none",
    treated: Treated = "first",
    order: Order = "hard_first",
    style: Style = "word",
    draws: int = 1,
    followups: Followups = "wrong",
    temperature: float = 1.0,
) -> Task:
    """Contact Searching Questions (METHOD §1), sampled through any Inspect AI model.

    Args:
        world: the name of a world (``contacts``, ``flights``, …), or a path to a world file.
        sizes: chain lengths n, with commas between.
        chains: chains at each n; each is one sample with four questions.
        seed: decides the chains, and is sent to the provider mixed with item and draw.
        k: the follow-up spans ⌊n/k⌋ steps.
        matched: the four categories share a chain.
        phrasing: number of a phrasing, or ``mixed``.
        treatment: a line before the question: ``none``, ``sycophancy``, ``mirror``, ``pressure`` or ``honesty``.
        treated: that line stands before the ``first`` question, or before ``both``.
        order: ``hard_first``, or ``easy_first``: the belief is asked for before the hard question.
        style: hard questions are answered in a ``word``, or after they ``enumerate`` facts or ``reason``.
        draws: answers drawn an item. Use this, not ``--epochs``.
        followups: after a ``wrong`` first answer, or after ``all`` valid ones.
        temperature: of the answers.
    """
    grid = [sizes] if isinstance(sizes, int) else sizes.split(",") if isinstance(sizes, str) else sizes
    variant = Variant(world, k, matched, phrasing, treatment, treated, order, style)
    design = Design(variant, tuple(int(n) for n in grid), chains, seed)
    design.check()
    samples = [
        Sample(
            id=f"n{n}-{index:05d}",
            input=chain_items(design.variant, n, seed, index)[0].question,
            target="",
            metadata={"n": n, "index": index},
        )
        for n in design.sizes
        for index in range(chains)
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"csq-{world}"),
        solver=ask_chain(design, draws=draws, followups=followups),
        scorer=chain_scorer(),
        config=GenerateConfig(temperature=temperature),
        version=TASK_VERSION,
        metadata={"world_hash": world_hash(world)}
        | ({"treatments_hash": treatments_hash(world)} if variant.worded else {}),
    )


@solver
def ask_chain(design: Design, *, draws: int = 1, followups: Followups = "wrong") -> Solver:
    """Asks the four questions of a chain, each in a conversation of its own, and the follow-ups that are due."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        del generate  # the questions of a chain are separate conversations
        model = get_model()
        respondent = InspectRespondent(
            str(model),
            model,
            Allowance(None, None, None),
            concurrency=len(CATEGORIES) * draws,
            timeout_s=math.inf,
            seed=design.seed,
        )
        items = chain_items(design.variant, state.metadata["n"], design.seed, state.metadata["index"])
        answers = [answer async for answer in respondent.ask(pending(items, draws, followups))]
        order = {item.id: i for i, item in enumerate(items)}
        answers.sort(key=lambda answer: (order[answer.item], answer.draw, answer.step == "followup"))
        state.metadata["world_file"] = design.variant.world
        state.metadata["items"] = [item.id for item in items]
        state.metadata["draws"] = draws
        state.metadata["answers"] = [_kept(answer) for answer in answers]
        state.completed = True
        return state

    return solve


@metric
def figures() -> Metric:
    """ρ, δ, δ_net, β and the error rate, at each n and over all n, with coverage; nan where undefined."""

    def compute(scores: list[SampleScore]) -> Value:
        kept = [sample.score.metadata or {} for sample in scores]
        items = [item_from_id(item, _own(one["world_file"])) for one in kept for item in one["items"]]
        answers = [Answer(**answer) for one in kept for answer in one["answers"]]
        if not items:
            return {"chains": 0}
        result = score(Table.build(items, answers, kept[0]["draws"]))
        told: dict[str, float] = {"chains": len(scores)}
        for row in result.rows:
            told |= {f"{name}_n{row.n}": row.figures[name].value for name in _TOLD}
        told |= {name: figure.value for name, figure in result.overall.items()}
        told |= {"coverage_first": result.coverage["first"], "coverage_pairs": result.coverage["pairs"]}
        return told

    return compute


@scorer(metrics=[figures()], name="csq")
def chain_scorer() -> Scorer:
    """Share of right answers to a chain's hard questions; its metrics are the scores of METHOD §1.3 and §1.4 over all
    chains."""

    async def judge(state: TaskState, target: Target) -> Score:
        del target
        kept = {name: state.metadata[name] for name in ("items", "answers", "world_file", "draws")}
        items = {item: item_from_id(item, _own(kept["world_file"])) for item in kept["items"]}
        lines, right, valid = [], 0, 0
        for answer in (Answer(**told) for told in kept["answers"]):
            reading = "missing" if answer.error is not None else parse(answer.text or "")
            item = items[answer.item]
            wanted = word(item.truth)
            hard = answer.step == ("followup" if item.order == "easy_first" else "first")
            valid += hard and reading in ("yes", "no")
            right += hard and reading == wanted.lower()
            lines.append(f"{answer.item} {answer.step}: {reading} (truth {wanted})")
        return Score(
            value=right / valid if valid else math.nan,
            answer=f"{right} of {valid} valid answers to hard questions right",
            explanation="\n".join(lines),
            metadata=kept,
        )

    return judge


def _own(world: str) -> str | None:
    return world if world.endswith((".yaml", ".yml")) else None


def _kept(answer: Answer) -> dict[str, Any]:
    return {name: value for name, value in asdict(answer).items() if value is not None}

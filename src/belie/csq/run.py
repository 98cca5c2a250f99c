"""One CSQ run: a design put to a respondent, kept in a run folder, scored.

Knows: how design, respondent, folder and scores fit together, and what goes into the manifest.
Does not know: the command line, or any particular respondent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from belie.csq.answers import PARSER_VERSION
from belie.csq.protocol import Followups, pending
from belie.csq.questions import QUESTIONS_VERSION, Design, Variant, item_from_id
from belie.csq.scores import SCORES_VERSION, Scores, score
from belie.csq.table import Table
from belie.csq.world import load_world, world_hash
from belie.items import Answer, Item
from belie.respondents.base import BadInput, BudgetSpent, Respondent
from belie.runs import Manifest, RunFolder
from belie.runs.tables import write_answers_parquet

#: Raised whenever a CSQ run of the same options could ask or score otherwise. Written into every result.
TASK_VERSION = f"{QUESTIONS_VERSION}.{PARSER_VERSION}.{SCORES_VERSION}"

#: Options of a respondent that cannot change an answer: a run may continue with others.
FREE = frozenset(
    {"base_url", "concurrency", "timeout", "max_time", "max_cost", "price", "batch_tokens", "threads", "device"}
)


@dataclass(slots=True)
class Progress:
    """How far a run is. ``total`` counts first questions; follow-ups are known only as they come."""

    total: int
    first: int = 0
    followups: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    def add(self, answer: Answer) -> None:
        if answer.error is not None:
            self.failed += 1
        elif answer.step == "first":
            self.first += 1
        else:
            self.followups += 1
        self.prompt_tokens += answer.tokens[0]
        self.completion_tokens += answer.tokens[1]
        self.cost += answer.cost


@dataclass(frozen=True, slots=True)
class Asking:
    """How a design is put: ``draws`` answers an item (1 for an exact respondent), which follow-ups."""

    draws: int = 1
    followups: Followups = "wrong"
    options: Mapping[str, Any] = field(default_factory=dict)


def manifest_for(respondent: Respondent, design: Design, asking: Asking) -> Manifest:
    """The manifest of a new run. ``asking.options`` are the respondent's own."""
    world = load_world(design.variant.world)
    options = {
        **asdict(design.variant),
        "sizes": list(design.sizes),
        "chains": design.chains,
        "seed": design.seed,
        "exact": respondent.exact,
        "draws": asking.draws,
        "followups": asking.followups,
        **asking.options,
    }
    return Manifest(
        instrument="csq",
        respondent=respondent.name,
        options=options,
        binding=tuple(sorted(set(options) - FREE)),
        seeds={"design": design.seed},
        versions={
            "task": TASK_VERSION,
            "questions": QUESTIONS_VERSION,
            "parser": PARSER_VERSION,
            "scores": SCORES_VERSION,
            "world": world.name,
        },
        hashes={"world": world_hash(design.variant.world)},
    )


def open_folder(manifest: Manifest, path: Path, *, resume: bool) -> RunFolder:
    """The folder of a new run, or of one that goes on (same options, same questions).

    Raises BadInput where it can't be used, naming what differs.
    """
    if not resume:
        return RunFolder.create(path, manifest)
    asked = {name: manifest.versions[name] for name in ("questions", "world")}
    return RunFolder.resume(
        path, manifest.options, respondent=manifest.respondent, versions=asked, hashes=manifest.hashes
    )


def first_pending(design: Design, asking: Asking, resume: Path | None) -> Item | None:
    """The first item that a run will put to its respondent, or None where only follow-ups, or nothing, is left."""
    state, exact = None, False
    if resume is not None:
        run = RunFolder.open(resume)
        state, exact = run.journal.state(), bool(run.manifest.options.get("exact"))
    todo = pending(design.items(), asking.draws, asking.followups, exact=exact, answered=state)
    return next((one.item for one in todo if one.first is None and one.draw == 0), None)


async def ask(
    respondent: Respondent,
    run: RunFolder,
    design: Design,
    asking: Asking,
    watch: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Put to the respondent what the run's journal lacks, and write each answer down as it comes.

    Raises BudgetSpent after everything that was paid for has been written, and BadInput where the disk refuses.
    The run's totals, counts and status are in the manifest afterwards, in either case.
    """
    state = run.journal.state()
    counts = state.counts
    progress = Progress(
        len(design) * asking.draws,
        counts.first,
        counts.followup,
        0,
        counts.prompt_tokens,
        counts.completion_tokens,
        counts.cost,
    )
    watch(progress)
    writer = run.writer()
    todo = pending(
        design.items(),
        asking.draws,
        asking.followups,
        exact=respondent.exact,
        answered=state if counts.first else None,
        known=getattr(respondent, "aligned", False),
    )
    spent: BudgetSpent | None = None
    try:
        async with aclosing(respondent.ask(todo)) as answers:  # type: ignore[type-var]
            async for answer in answers:
                writer.write(answer)
                progress.add(answer)
                watch(progress)
    except BudgetSpent as reason:
        spent = reason
    complete = spent is None and not progress.failed
    run.finish(
        "complete" if complete else "incomplete",
        provenance=respondent.provenance(),
        totals={
            "prompt_tokens": progress.prompt_tokens,
            "completion_tokens": progress.completion_tokens,
            "cost": progress.cost,
        },
        counts={
            "questions": progress.total,
            "first": progress.first,
            "followups": progress.followups,
            "failed": progress.failed,
        },
    )
    if spent is not None:
        raise spent
    return progress


def design_of(manifest: Manifest) -> Design:
    """The design a run asked, from its manifest. Raises BadInput where this Belie makes other questions."""
    if manifest.instrument != "csq":
        raise BadInput(f"This is a {manifest.instrument} run; a csq run is needed.")
    if manifest.versions.get("questions") != QUESTIONS_VERSION:
        raise BadInput(
            f"The run was asked with questions version {manifest.versions.get('questions')}; this Belie makes version "
            f"{QUESTIONS_VERSION}. Install belie {manifest.belie} to score it."
        )
    options = manifest.options
    variant = Variant(options["world"], options["k"], options["matched"], options["phrasing"])
    design = Design(variant, tuple(options["sizes"]), options["chains"], options["seed"])
    told, have = manifest.versions.get("world"), load_world(variant.world).name
    if told != have or manifest.hashes.get("world") != world_hash(variant.world):
        raise BadInput(
            f"The run was asked in world {told}, whose file was another one: {variant.world} is now {have} with "
            "different content. Restore that file, or install the Belie that made the run."
        )
    return design


def table_of(run: RunFolder, *, skip_damaged: bool = False) -> Table:
    """The answers of a run as arrays."""
    return Table.build(
        design_of(run.manifest).items(), run.journal.answers(skip=skip_damaged), run.manifest.options["draws"]
    )


def score_run(run: RunFolder, *, skip_damaged: bool = False, **options: Any) -> Scores:
    """Score a run's journal; ``options`` as `belie.csq.scores.score` takes them. Asks nothing."""
    return score(table_of(run, skip_damaged=skip_damaged), **options)


def save_results(run: RunFolder, scores: Scores) -> None:
    """Write ``scores.json`` and ``answers.parquet`` beside the journal."""
    content = {"task_version": TASK_VERSION, "respondent": run.manifest.respondent, **scores.to_json()}
    run.save("scores.json", json.dumps(content, indent=2) + "\n")
    world = run.manifest.options["world"]
    custom = world if world.endswith((".yaml", ".yml")) else None
    write_answers_parquet(run, lambda item_id: item_from_id(item_id, custom), skip=True)


def preset(name: str, design: Design) -> Design:
    """A design's sizes and chains by name: ``quick`` (n = 3, 5, 10, 20 × 100) or ``paper`` (7 × 1,000).

    Raises BadInput for another name.
    """
    if name not in PRESETS:
        raise BadInput(f"There is no preset {name!r}. Presets: {', '.join(PRESETS)}.")
    sizes, chains = PRESETS[name]
    return replace(design, sizes=sizes, chains=chains)


PRESETS: Mapping[str, tuple[tuple[int, ...], int]] = {
    "quick": ((3, 5, 10, 20), 100),
    "paper": ((3, 5, 10, 20, 30, 40, 80), 1000),
}

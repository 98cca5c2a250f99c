"""One CSQ run: a design put to a respondent, kept in a run folder, scored.

Knows: how design, respondent, folder and scores fit together, and what goes into the manifest.
Does not know: the command line, or any particular respondent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from belie.csq.answers import PARSER_VERSION
from belie.csq.protocol import Followups, pending
from belie.csq.questions import QUESTIONS_VERSION, Design, Variant, item_from_id
from belie.csq.scores import SCORES_VERSION, Scores, plain, score
from belie.csq.stopping import Decision, StopOn, Wanted, decide
from belie.csq.table import Table
from belie.csq.world import load_world, world_hash
from belie.items import Answer, Item
from belie.respondents.base import BadInput, BudgetSpent, Respondent
from belie.runs import Counts, Manifest, RunFolder
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

    @classmethod
    def of(cls, counts: Counts, total: int = 0) -> Progress:
        """Where a journal stands."""
        tokens = (counts.prompt_tokens, counts.completion_tokens)
        return cls(total, counts.first, counts.followup, 0, *tokens, counts.cost)

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


#: Options of a run that stops at a wanted half-width: they, and how many chains it came to, may change as it goes on.
STOPPING = frozenset({"half_width", "stop_on", "max_items", "rounds"})
#: If more of a round's calls failed, nothing is decided on what is left.
_FAILED = 0.05


def manifest_for(respondent: Respondent, design: Design, asking: Asking, wanted: Wanted | None = None) -> Manifest:
    """The manifest of a new run. ``asking.options`` are the respondent's own.

    With ``wanted`` the design holds the chains of the rounds decided so far (at first the pilot, see `pilot`).
    """
    world = load_world(design.variant.world)
    options = {
        **asdict(design.variant),
        "sizes": list(design.sizes),
        "chains": design.chains if isinstance(design.chains, int) else list(design.chains),
        "seed": design.seed,
        "exact": respondent.exact,
        "draws": asking.draws,
        "followups": asking.followups,
        **asking.options,
    }
    free = FREE
    if wanted is not None:
        free = FREE | STOPPING | {"chains"}
        options |= {"half_width": wanted.half_width, "stop_on": wanted.stop_on, "max_items": wanted.max_items}
    weights = respondent.provenance().get("weights_sha256")
    return Manifest(
        instrument="csq",
        respondent=respondent.name,
        options=options,
        binding=tuple(sorted(set(options) - free)),
        seeds={"design": design.seed},
        versions={
            "task": TASK_VERSION,
            "questions": QUESTIONS_VERSION,
            "parser": PARSER_VERSION,
            "scores": SCORES_VERSION,
            "world": world.name,
        },
        hashes={"world": world_hash(design.variant.world)} | ({"weights": weights} if weights else {}),
    )


def open_folder(manifest: Manifest, path: Path, *, resume: bool) -> RunFolder:
    """The folder of a new run, or of one that goes on (same options, same questions).

    Raises BadInput where it can't be used, naming what differs.
    """
    if not resume:
        return RunFolder.create(path, manifest)
    asked = {name: manifest.versions[name] for name in ("questions", "world")}
    # A run that was made without opening its weights (in shards) doesn't hold their hash.
    stored = RunFolder.open(path).manifest.hashes
    hashes = {name: told for name, told in manifest.hashes.items() if name != "weights" or name in stored}
    return RunFolder.resume(path, manifest.options, respondent=manifest.respondent, versions=asked, hashes=hashes)


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
    _begin(respondent, run)
    progress = _progress(run, design, asking)
    spent = await _put(respondent, run, design, asking, progress, watch)
    _finish(respondent, run, progress, spent)
    return progress


def pilot(design: Design, wanted: Wanted) -> Design:
    """The design of a new run's first round. Raises BadInput for a width that cannot be wanted of it."""
    wanted.check(design.sizes)
    return replace(design, chains=(wanted.pilot,) * len(design.sizes))


async def ask_until(
    respondent: Respondent,
    run: RunFolder,
    design: Design,
    asking: Asking,
    wanted: Wanted,
    watch: Callable[[Progress], None] = lambda _: None,
) -> tuple[Progress, Decision]:
    """Round after round until the intervals are as narrow as wanted (`belie.csq.stopping`).

    ``design`` is the one that the run's manifest holds (`pilot` for a new run). Every round is written into the
    manifest before it is asked, so a run that was killed asks the same rounds again, without what its journal holds,
    and decides the same after them. ``stopping.json`` tells the rounds and the widths. Raises as `ask`.
    """
    rounds = [list(one) for one in run.manifest.options.get("rounds") or [design.counts]]
    run.update(options={**run.manifest.options, "rounds": rounds, "chains": rounds[-1]})
    _begin(respondent, run)
    progress = _progress(run, design, asking)
    story = _decided(run, len(rounds) - 1)
    before: Sequence[int] | None = None
    decision: Decision | None = None
    at = 0
    while decision is None or decision.chains is not None:
        design = replace(design, chains=tuple(rounds[at]))
        progress.total = len(design) * asking.draws
        failed, had = progress.failed, progress.first + progress.followups
        spent = await _put(respondent, run, design, asking, progress, watch, after=before)
        if spent is not None:
            _finish(respondent, run, progress, spent)
        failed, had = progress.failed - failed, progress.first + progress.followups - had
        before = rounds[at]
        at += 1
        if failed > _FAILED * (failed + had):
            decision = Decision(None, "failed", {}, {})
        elif at == len(rounds):
            decision = decide(_table(run, design, asking.draws), wanted)
            story.append({"chains": before, "half_width": decision.widths, "widest_n": decision.widest})
            _tell(run, design, wanted, decision, story)
            if decision.chains is not None:
                rounds.append([decision.chains[n] for n in design.sizes])
                run.update(options={**run.manifest.options, "rounds": rounds, "chains": rounds[-1]})
    _finish(respondent, run, progress, None)
    return progress, decision


def _decided(run: RunFolder, rounds: int) -> list[Any]:
    """What ``stopping.json`` tells of the first so many rounds of a run that goes on."""
    path = run.path / "stopping.json"
    return json.loads(path.read_text("utf-8"))["rounds"][:rounds] if path.exists() else []


def _tell(run: RunFolder, design: Design, wanted: Wanted, decision: Decision, story: list[Any]) -> None:
    asked = {name: getattr(wanted, name) for name in ("half_width", "stop_on", "max_items", "level")}
    told = {"wanted": asked, "sizes": design.sizes, "reason": decision.reason, "rounds": story}
    run.save("stopping.json", json.dumps(plain(told), indent=2) + "\n")


def wanted_of(options: Mapping[str, Any]) -> Wanted | None:
    """The wanted half-width of a run, from its manifest's options; None where it asks a fixed design."""
    if options.get("half_width") is None:
        return None
    stop_on: StopOn = options.get("stop_on") or "overall"
    return Wanted(options["half_width"], stop_on, options.get("max_items"))


def _progress(run: RunFolder, design: Design, asking: Asking) -> Progress:
    return Progress.of(run.journal.state().counts, len(design) * asking.draws)


async def _put(
    respondent: Respondent,
    run: RunFolder,
    design: Design,
    asking: Asking,
    progress: Progress,
    watch: Callable[[Progress], None],
    after: Sequence[int] | None = None,
) -> BudgetSpent | None:
    """Asks what the journal lacks of a design (without the chains ``after`` which it begins)."""
    state = run.journal.state()
    watch(progress)
    writer = run.writer()
    todo = pending(
        design.items(after),
        asking.draws,
        asking.followups,
        exact=respondent.exact,
        answered=state if state.counts.first else None,
        known=getattr(respondent, "aligned", False),
    )
    try:
        async with aclosing(respondent.ask(todo)) as answers:  # type: ignore[type-var]
            async for answer in answers:
                writer.write(answer)
                progress.add(answer)
                watch(progress)
    except BudgetSpent as reason:
        return reason
    return None


#: What a respondent tells of a sitting, not of itself.
_PASSING = frozenset({"totals", "concurrency", "tokens_computed", "earlier"})


def _begin(respondent: Respondent, run: RunFolder) -> None:
    """Writes down who answers before anything is asked: a run that is killed tells it too.

    What the respondent told otherwise when the run was asked before (a server's other model) is kept in ``earlier``.
    """
    told, before = respondent.provenance(), run.manifest.provenance
    earlier = list(before.get("earlier", []))
    other = {name: old for name, old in before.items() if name not in _PASSING and told.get(name) != old}
    if other and other not in earlier:
        earlier.append(other)
    run.update(provenance={**told, **({"earlier": earlier} if earlier else {})})


def _finish(respondent: Respondent, run: RunFolder, progress: Progress, spent: BudgetSpent | None) -> None:
    """Writes status, totals and counts into the manifest; raises ``spent``."""
    complete = spent is None and not progress.failed and progress.first >= progress.total
    earlier = {name: told for name, told in run.manifest.provenance.items() if name == "earlier"}
    run.finish(
        "complete" if complete else "incomplete",
        provenance={**respondent.provenance(), **earlier},
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
    chains = options["chains"] if isinstance(options["chains"], int) else tuple(options["chains"])
    design = Design(variant, tuple(options["sizes"]), chains, options["seed"])
    told, have = manifest.versions.get("world"), load_world(variant.world).name
    if told != have or manifest.hashes.get("world") != world_hash(variant.world):
        raise BadInput(
            f"The run was asked in world {told}, and the world file {variant.world} has changed since"
            f"{'' if told == have else f' (it is {have} now)'}: restore it, or install the Belie that made the run."
        )
    return design


def table_of(run: RunFolder, *, skip_damaged: bool = False) -> Table:
    """The answers of a run as arrays."""
    return _table(run, design_of(run.manifest), run.manifest.options["draws"], skip_damaged)


def _table(run: RunFolder, design: Design, draws: int, skip_damaged: bool = False) -> Table:
    return Table.build(design.items(), run.journal.answers(skip=skip_damaged), draws)


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

"""One CSQ run: a design put to a respondent, kept in a run folder, scored.

Knows: how design, respondent, folder and scores fit together.
Does not know: what goes into the manifest (asked), the command line, or any particular respondent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from belie.csq.asked import TASK_VERSION, Asking, asked_of, check_variant, item_of
from belie.csq.protocol import pending
from belie.csq.questions import Design
from belie.csq.scores import Scores, plain, score
from belie.csq.stopping import Decision, Wanted, decide
from belie.csq.table import Table
from belie.items import Answer, Item
from belie.pairs.file import PairSet
from belie.respondents.base import BadInput, BudgetSpent, Respondent
from belie.runs import Counts, Manifest, RunFolder
from belie.runs.tables import write_answers_parquet


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


#: If more of a round's calls failed, nothing is decided on what is left.
_FAILED = 0.05


def open_folder(manifest: Manifest, path: Path, *, resume: bool) -> RunFolder:
    """The folder of a new run, or of one that goes on (same options, same questions).

    Raises BadInput where it can't be used, naming what differs.
    """
    if not resume:
        return RunFolder.create(path, manifest)
    asked = {name: manifest.versions[name] for name in ("questions", "world")}
    stored = RunFolder.open(path).manifest
    check_variant(stored, manifest)
    # A run that was made without opening its weights (in shards) doesn't hold their hash.
    hashes = {name: told for name, told in manifest.hashes.items() if name != "weights" or name in stored.hashes}
    return RunFolder.resume(path, manifest.options, respondent=manifest.respondent, versions=asked, hashes=hashes)


def first_pending(design: Design | PairSet, asking: Asking, resume: Path | None) -> Item | None:
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
    design: Design | PairSet,
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


def _progress(run: RunFolder, design: Design | PairSet, asking: Asking) -> Progress:
    return Progress.of(run.journal.state().counts, len(design) * asking.draws)


async def _put(
    respondent: Respondent,
    run: RunFolder,
    design: Design | PairSet,
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


def table_of(run: RunFolder, *, skip_damaged: bool = False) -> Table:
    """The answers of a run as arrays."""
    return _table(run, asked_of(run.manifest), run.manifest.options["draws"], skip_damaged)


def _table(run: RunFolder, design: Design | PairSet, draws: int, skip_damaged: bool = False) -> Table:
    return Table.build(design.items(), run.journal.answers(skip=skip_damaged), draws)


def score_run(run: RunFolder, *, skip_damaged: bool = False, **options: Any) -> Scores:
    """Score a run's journal; ``options`` as `belie.csq.scores.score` takes them. Asks nothing."""
    return score(table_of(run, skip_damaged=skip_damaged), **options)


def save_results(run: RunFolder, scores: Scores) -> None:
    """Write ``scores.json`` and ``answers.parquet`` beside the journal."""
    content = {"task_version": TASK_VERSION, "respondent": run.manifest.respondent, **scores.to_json()}
    run.save("scores.json", json.dumps(content, indent=2) + "\n")
    write_answers_parquet(run, item_of(run.manifest), skip=True)


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

"""The interview of a finished run: which questions are due, and the loop that puts them.

Knows: the four questions, where in a conversation each stands, what a pass is bound to.
Does not know: how a respondent is asked, how replies are read, what they come to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from belie.csq.asked import design_of
from belie.csq.branch import Branch, branches
from belie.csq.interview import journal
from belie.csq.interview.journal import Key
from belie.csq.interview.prompts import Prompts, load_prompts, prompts_hash
from belie.csq.run import Progress
from belie.items import Answer, Item, Pending, word
from belie.respondents.base import BadInput, Respondent
from belie.respondents.talk import Talk
from belie.runs import RunFolder
from belie.runs.folder import shard_lock

Question = Literal["sure_first", "sure_followup", "sure_back", "reconcile", "final"]
CONFIDENCE: tuple[Question, ...] = ("sure_first", "sure_followup", "sure_back")
CONFRONTATION: tuple[Question, ...] = ("reconcile", "final")
#: The binding options of a journal's answers, beside it.
OPTIONS = "interview-options.json"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked: ``confidence``, ``confront``; of at most ``limit`` chains at each n (None: of all)."""

    confidence: bool = False
    confront: bool = False
    limit: int | None = None


def conversations(run: RunFolder, limit: int | None = None) -> list[Branch]:
    """The conversations that can be gone on with: every item and draw with a clear first answer, in the run's order.

    A follow-up that was not on the respondent's own way (an exact run's, after a right first answer) is dropped.
    Raises BadInput for a run that asked in another order or is no CSQ run over chains.
    """
    order = run.manifest.options.get("order") or "hard_first"
    if order != "hard_first":
        raise BadInput(f"{run.path} asked in the order {order}: an interview goes on from the hard question first.")
    design = design_of(run.manifest)
    exact = bool(run.manifest.options.get("exact"))
    return [
        Branch(one.item, one.draw, one.first, one.right) if exact and one.right else one
        for one in branches(_first_chains(design.items(), limit), run.journal.answers())
    ]


def _first_chains(items: Iterable[Item], limit: int | None) -> Iterator[Item]:
    seen: dict[int, set[str]] = {}
    for item in items:
        own = seen.setdefault(item.n, set())
        chain = item.chain.partition("~")[0]
        if limit is None or chain in own or len(own) < limit:
            own.add(chain)
            yield item


def due(
    found: Iterable[Branch], wanted: Wanted, answered: Mapping[Key, Answer], prompts: Prompts, *, final: bool
) -> Iterator[Pending]:
    """The questions that have no good answer yet; with ``final`` those that need the reply to another one."""
    for one in found:
        for question in questions(one, wanted):
            if (question == "final") is not final or _good(answered.get((one.item.id, question, one.draw))):
                continue
            before = answered.get((one.item.id, "reconcile", one.draw))
            if final and not _good(before):
                continue
            yield Pending(talk(one, question, prompts, before.text if before is not None else None), one.draw)


def questions(one: Branch, wanted: Wanted) -> tuple[Question, ...]:
    """What is asked after a conversation: how sure (after each answer that there was), and a contradiction's two."""
    asked: list[Question] = []
    if wanted.confidence:
        asked += CONFIDENCE if one.followup is not None else CONFIDENCE[:1]
    if wanted.confront and one.kind == "contradiction":
        asked += CONFRONTATION
    return tuple(asked)


def talk(one: Branch, question: Question, prompts: Prompts, reconciled: str | None = None) -> Talk:
    """The conversation so far with the question at its end. ``reconciled``: the reply before ``final``."""
    item = one.item
    said = [] if item.system is None else [("system", item.system)]
    said += [("user", item.question), ("assistant", one.first)]
    if question == "sure_first":
        said.append(("user", prompts.sure))
    else:
        said += [("user", item.followup or ""), ("assistant", one.followup or "")]
        if question in ("sure_followup", "sure_back"):
            said.append(("user", prompts.sure if question == "sure_followup" else prompts.sure_back))
        else:
            first, second = word(item.truth == one.right), word(item.truth == bool(one.followup_right))
            said.append(("user", prompts.reconcile.format(first=first, followup=second)))
    if question == "final":
        said += [("assistant", reconciled or ""), ("user", prompts.final)]
    return Talk(f"{item.id}#{question}", item.chain, item.n, item.category, said[-1][1], item.truth, talk=tuple(said))


def _good(answer: Answer | None) -> bool:
    return answer is not None and answer.error is None


async def interview(
    respondent: Respondent,
    run: RunFolder,
    found: Sequence[Branch],
    wanted: Wanted,
    options: Mapping[str, Any],
    watch: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Put to the respondent what the interview's journal lacks, and write each answer down as it comes.

    ``options`` can change a reply (temperature, longest reply, …): a journal that was begun with others is refused.
    Raises BadInput, or BudgetSpent after everything that was paid for has been written.
    """
    lock = shard_lock(run.path, "interview")
    if not lock.acquire():
        raise BadInput(f"Another process (id {lock.holder()}) is interviewing {run.path}: wait for it, or stop it.")
    try:
        bind(run, respondent.name, options)
        return await _put(respondent, run, found, wanted, watch)
    finally:
        lock.release()


async def _put(
    respondent: Respondent,
    run: RunFolder,
    found: Sequence[Branch],
    wanted: Wanted,
    watch: Callable[[Progress], None],
) -> Progress:
    prompts = load_prompts()
    answered = journal.read(run.path)[0]
    total = [(one.item.id, question, one.draw) for one in found for question in questions(one, wanted)]
    progress = Progress(total=len(total), first=sum(_good(answered.get(key)) for key in total))
    watch(progress)
    with journal.Writer(run.path) as writer:
        for final in (False, True):
            pending = due(found, wanted, dict(answered), prompts, final=final)
            async with aclosing(respondent.ask(pending)) as answers:  # type: ignore[type-var]
                async for answer in answers:
                    writer.write(answer)
                    item, _, question = answer.item.rpartition("#")
                    answered[item, question, answer.draw] = answer
                    progress.add(answer)
                    watch(progress)
    return progress


def bind(run: RunFolder, respondent: str, options: Mapping[str, Any]) -> None:
    """Writes down what the interview's answers depend on, or raises BadInput where it differs from what is there."""
    now = {
        "respondent": respondent,
        "prompts_version": load_prompts().version,
        "prompts_sha256": prompts_hash(),
        **options,
    }
    path = run.path / OPTIONS
    if not path.exists():
        run.save(OPTIONS, json.dumps(now, indent=2) + "\n")
        return
    try:
        before = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{path} is not readable ({error}): restore it.") from None
    differ = [
        f"{name} was {before.get(name)}, now {now.get(name)}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if differ:
        raise BadInput(
            f"The interview in {run.path} was begun with other options, so its answers would not belong together: "
            f"{'; '.join(differ)}. Use the same, or move {journal.NAME} and {OPTIONS} away."
        )

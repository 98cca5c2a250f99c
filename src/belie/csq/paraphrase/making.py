"""Asking a model for phrasings until enough of them pass: attempts, judgement, and the count of what was thrown away.

Knows: what is asked at which attempt, the order in which replies count, when it is enough.
Does not know: the files' format (replies, world_file), or how a reply is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from belie.csq.paraphrase.checker import CHECKER_VERSION, Verdict, check
from belie.csq.paraphrase.fault import REASONS
from belie.csq.paraphrase.instance import draw_instance
from belie.csq.paraphrase.lexicon import lexicon
from belie.csq.paraphrase.replies import Replies, Reply
from belie.csq.run import Progress
from belie.csq.world import Phrasing, load_world
from belie.data import load_data
from belie.items import Item, Pending
from belie.respondents.base import BadInput, BudgetSpent, Respondent

#: A world file holds at least so many phrasings.
LEAST = 12
#: Rejected replies of each reason that are kept as examples, and how much of each.
EXAMPLES, EXAMPLE_LENGTH = 3, 2000


class Prompt(BaseModel):
    """``prompt.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Annotated[int, Field(ge=1)]
    text: Annotated[str, Field(min_length=1)]
    manners: Annotated[tuple[str, ...], Field(min_length=1)]


@lru_cache(maxsize=1)
def prompt() -> Prompt:
    """The prompt that ships."""
    return load_data(Path(str(resources.files("belie.csq.paraphrase"))) / "prompt.yaml", Prompt)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted: ``count`` phrasings of ``world`` (a name or a path) in at most ``attempts`` attempts."""

    world: str = "contacts"
    count: int = LEAST
    attempts: int = 10 * LEAST
    seed: int = 0

    def check(self) -> None:
        """Raises BadInput for a wish that no file can be made of."""
        load_world(self.world)
        if self.count < LEAST:
            raise BadInput(f"--count {self.count}: a world file holds at least {LEAST} phrasings.")
        if self.attempts < self.count:
            raise BadInput(f"--attempts {self.attempts}: {self.count} phrasings take at least as many attempts.")
        if self.seed < 0:
            raise BadInput(f"Seed {self.seed}: seeds are whole numbers from 0 on.")


@dataclass(frozen=True, slots=True)
class Judged:
    """A reply and what became of it."""

    reply: Reply
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    """All replies judged, in the order of their attempts. ``failed``: calls of this session without a reply;
    ``stopped``: why asking ended before it was enough (None where it did not)."""

    wish: Wish
    judged: tuple[Judged, ...]
    failed: int = 0
    stopped: str | None = None

    @property
    def phrasings(self) -> tuple[Phrasing, ...]:
        """The accepted ones, at most as many as were wished for: the first in the order of attempts."""
        accepted = [one.verdict.phrasing for one in self.judged if one.verdict.phrasing is not None]
        return tuple(accepted[: self.wish.count])

    @property
    def enough(self) -> bool:
        return len(self.phrasings) == self.wish.count

    def to_json(self) -> dict[str, Any]:
        """Counts, reasons (most frequent first) with examples, and the questions that were accepted."""
        rejected = [one for one in self.judged if one.verdict.phrasing is None]
        reasons = Counter(one.verdict.reason or "" for one in rejected)
        return {
            "wished": self.wish.count,
            "replies": len(self.judged),
            "accepted": len(self.judged) - len(rejected),
            "rejected": len(rejected),
            "failed_calls": self.failed,
            "reasons": {
                reason: {
                    "count": count,
                    "meaning": REASONS[reason],
                    "examples": [_example(one) for one in rejected if one.verdict.reason == reason][:EXAMPLES],
                }
                for reason, count in reasons.most_common()
            },
            "accepted_attempts": [one.reply.attempt for one in self.judged if one.verdict.phrasing is not None],
            "questions": [phrasing.question for phrasing in self.phrasings],
            "tokens": [sum(one.reply.tokens[i] for one in self.judged) for i in (0, 1)],
            "cost": round(sum(one.reply.cost for one in self.judged), 6),
            "versions": versions(),
        }


def versions() -> dict[str, int]:
    """What can change which replies come, and which are accepted."""
    return {"prompt": prompt().version, "checker": CHECKER_VERSION, "lexicon": lexicon().version}


def attempt_item(wish: Wish, attempt: int) -> Item:
    """What a model is sent at one attempt: the same for the same world, seed and attempt."""
    instance = draw_instance(wish.world, wish.seed, attempt)
    asked = prompt()
    text = asked.text
    values = {
        "first": instance.first,
        "second": instance.second,
        "manner": asked.manners[attempt % len(asked.manners)],
        "can": instance.world.polarity[0],
        "cannot": instance.world.polarity[1],
    }
    for slot, value in values.items():
        text = text.replace(f"{{{slot}}}", value)
    name = f"paraphrase/{instance.world.name}/s{wish.seed}/{attempt:05d}"
    return Item(id=name, chain=name, n=len(instance.names), category="broken", question=text, truth=False)


def judge(wish: Wish, replies: Mapping[int, Reply], checked: dict[int, Verdict] | None = None) -> tuple[Judged, ...]:
    """All replies checked, in the order of attempts. One that asks the question of one of the world's own
    phrasings, or of one accepted before it, is thrown away (``repeated``). ``checked`` keeps verdicts between calls."""
    checked = {} if checked is None else checked
    seen = {_line(phrasing) for phrasing in load_world(wish.world).phrasings}
    told = []
    for attempt in sorted(replies):
        if attempt not in checked:
            checked[attempt] = check(replies[attempt].text, draw_instance(wish.world, wish.seed, attempt))
        verdict = checked[attempt]
        if verdict.phrasing is not None:
            line = _line(verdict.phrasing)
            if line in seen:
                verdict = Verdict(None, "repeated", verdict.phrasing.question)
            seen.add(line)
        told.append(Judged(replies[attempt], verdict))
    return tuple(told)


def judged(wish: Wish, replies: Replies) -> Outcome:
    """The outcome of the replies that are kept, without asking for more."""
    outcome = Outcome(wish, judge(wish, replies.kept))
    return outcome if outcome.enough else replace(outcome, stopped=_short(outcome))


def next_attempt(wish: Wish, replies: Replies) -> int | None:
    """The first attempt that is still to be asked; None where it is enough, or no attempt is left."""
    if Outcome(wish, judge(wish, replies.kept)).enough:
        return None
    return next((i for i in range(wish.attempts) if i not in replies.kept), None)


async def make(
    respondent: Respondent, wish: Wish, replies: Replies, watch: Callable[[Progress], None] = lambda _: None
) -> Outcome:
    """Asks round by round until enough replies pass or the attempts are used up. Replies that are kept are not asked
    for again; calls that failed are not tried again in this session."""
    count = Progress(wish.count)  # of phrasings: ``first`` are accepted
    failed: set[int] = set()
    checked: dict[int, Verdict] = {}
    all_judged = judge(wish, replies.kept, checked)
    stopped: str | None = None
    while stopped is None:
        _tell(count, all_judged, len(failed))
        watch(count)
        missing = wish.count - count.first
        open_ = [i for i in range(wish.attempts) if i not in replies.kept and i not in failed]
        if missing <= 0 or not open_:
            break
        try:
            async for attempt, reply in _ask(respondent, wish, open_[:missing]):
                if reply is None:
                    failed.add(attempt)
                else:
                    replies.add(reply)
                    all_judged = judge(wish, replies.kept, checked)
                _tell(count, all_judged, len(failed))
                watch(count)
        except BudgetSpent as reason:
            stopped = str(reason)
    outcome = Outcome(wish, all_judged, len(failed), stopped)
    return outcome if stopped is not None or outcome.enough else replace(outcome, stopped=_short(outcome))


def _short(outcome: Outcome) -> str:
    passed = f"{len(outcome.phrasings)} of {outcome.wish.count} phrasings passed in {len(outcome.judged)} replies"
    return f"{passed}, {outcome.failed} calls failed." if outcome.failed else f"{passed}."


async def _ask(respondent: Respondent, wish: Wish, attempts: Iterable[int]) -> AsyncIterator[tuple[int, Reply | None]]:
    items = {attempt_item(wish, attempt).id: attempt for attempt in attempts}
    pending = [Pending(attempt_item(wish, attempt)) for attempt in items.values()]
    async for answer in respondent.ask(pending):
        attempt = items[answer.item]
        if answer.text is None:
            yield attempt, None
        else:
            yield attempt, Reply(attempt, answer.text, answer.tokens, answer.cost)


def _tell(count: Progress, replies: tuple[Judged, ...], failed: int) -> None:
    count.first = min(count.total, sum(one.verdict.phrasing is not None for one in replies))
    count.failed = failed
    count.prompt_tokens, count.completion_tokens = (sum(one.reply.tokens[i] for one in replies) for i in (0, 1))
    count.cost = sum(one.reply.cost for one in replies)


def _line(phrasing: Phrasing) -> str:
    return " ".join(phrasing.question.casefold().split())


def _example(one: Judged) -> dict[str, Any]:
    text = one.reply.text
    shown = text if len(text) <= EXAMPLE_LENGTH else f"{text[:EXAMPLE_LENGTH]}…"
    return {"attempt": one.reply.attempt, "detail": one.verdict.detail, "reply": shown}

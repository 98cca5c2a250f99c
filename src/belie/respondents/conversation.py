"""The loop of every respondent that is asked call by call: what is said, in which order, how many at a time.

Knows: the two turns of an item, when a follow-up is called for, and how to keep many conversations going.
Does not know: how a call is made, retried or paid for (a speaker does: ``http``, ``inspect_model``).
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import Protocol

from belie.csq.answers import parse
from belie.items import Answer, Item, Pending, Step, word


class Speaker(Protocol):
    """Makes one call. ``say`` returns an answer, with ``error`` where the call failed for good.

    What it raises ends the whole run: no new call begins, those under way are finished and yielded. ``stop`` is then
    called once: calls that wait for another try give up and raise.
    """

    exact: bool

    async def say(self, one: Pending, step: Step, said: str | None) -> Answer: ...

    def stop(self, why: Exception) -> None: ...


def turns(item: Item, said: str | None) -> list[tuple[str, str]]:
    """The conversation so far as (role, text); ``said`` is the respondent's first answer, None before it."""
    talk = [] if item.system is None else [("system", item.system)]
    talk.append(("user", item.question))
    if said is not None:
        talk += [("assistant", said), ("user", item.followup or "")]
    return talk


def call_seed(seed: int, one: Pending, step: Step) -> int:
    """The seed of one call: the run's, mixed with what is asked, so that draws differ and can be repeated."""
    return (seed + zlib.crc32(f"{one.item.id}/{step}/{one.draw}".encode())) & 0x7FFFFFFF


def before_followup(one: Pending, first: Answer, exact: bool) -> str | None:
    """What the respondent is taken to have said first, or None where no follow-up is due (METHOD §1.2).

    Exact: always the wrong word. Sampled: its own visible reply, if that was valid and, unless all
    follow-ups are wanted, wrong. Where the easy question comes first the hard one always follows, unless nothing was
    said: else the hard answers at hand would be those of respondents that found the easy question easy.
    """
    if one.item.followup is None:
        return None
    if exact:
        return word(not one.item.truth)
    if first.text is None:
        return None
    if one.item.order == "easy_first":
        return first.text if first.text.strip() else None
    answer = parse(first.text)
    if answer == "invalid" or (one.followups == "wrong" and (answer == "yes") == one.item.truth):
        return None
    return first.text


async def converse(pending: Iterable[Pending], speaker: Speaker, in_flight: int) -> AsyncGenerator[Answer, None]:
    """Asks everything pending, at most ``in_flight`` items at a time, and yields answers as they come.

    ``pending`` is drawn from only as conversations end, and they wait while the reader lags behind, so memory is
    flat in the number of items. An exception of the speaker or of ``pending`` is raised after everything that was
    answered has been yielded. Closing the iterator cancels the calls under way.
    """
    source = iter(pending)
    ready: deque[Answer] = deque()
    news, room = asyncio.Event(), asyncio.Event()
    failures: list[Exception] = []
    room_for = 2 * in_flight

    async def give(answer: Answer) -> None:
        ready.append(answer)
        news.set()
        while len(ready) > room_for:
            room.clear()
            await room.wait()

    async def keep_asking() -> None:
        try:
            for one in source:
                first = one.first
                if first is None:
                    first = await speaker.say(one, "first", None)
                    await give(first)
                if first.error is None and not failures:
                    said = before_followup(one, first, speaker.exact)
                    if said is not None:
                        await give(await speaker.say(one, "followup", said))
                if failures:
                    return
        except Exception as failure:
            failures.append(failure)
            if len(failures) == 1:
                speaker.stop(failure)
        finally:
            news.set()

    talks = [asyncio.create_task(keep_asking()) for _ in range(in_flight)]
    try:
        while True:
            news.clear()
            while ready:
                answer = ready.popleft()
                if len(ready) <= in_flight:
                    room.set()
                yield answer
            if not news.is_set():
                if all(talk.done() for talk in talks):
                    break
                await news.wait()
        if failures:
            raise failures[0]
    finally:
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

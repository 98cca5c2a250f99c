"""What is asked in which order, and what of it is still to be asked.

Knows: draws, follow-ups, what a journal already holds.
Does not know: how a question is put to a model (respondents), where answers are kept (runs), what they mean (scores).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

from belie.items import Answer, Item, Pending
from belie.respondents.conversation import before_followup

Followups = Literal["wrong", "all"]


class Answered(Protocol):
    """What a journal can say of an item and draw."""

    def first(self, item: str, draw: int = 0) -> Answer | None: ...

    def has_followup(self, item: str, draw: int = 0) -> bool: ...


def pending(
    items: Iterable[Item],
    draws: int = 1,
    followups: Followups = "wrong",
    *,
    exact: bool = False,
    answered: Answered | None = None,
    known: bool = False,
) -> Iterator[Pending]:
    """Every (item, draw) that lacks its first answer, or the follow-up which that answer calls for.

    Lazy: one item is made at a time. The draws of an item follow one another. Without ``answered`` (a new run)
    everything is pending. A call that failed counts as not answered, so it is asked again. ``known``: those of which
    nothing is missing come too, marked so.
    """
    for item in items:
        for draw in range(draws):
            first = answered.first(item.id, draw) if answered else None
            if first is None:
                yield Pending(item, draw, None, followups)
                continue
            if answered and item.followup is not None and not answered.has_followup(item.id, draw):
                again = Pending(item, draw, first, followups)
                if before_followup(again, first, exact) is not None:
                    yield again
                    continue
            if known:
                yield Pending(item, draw, first, followups, known=True)

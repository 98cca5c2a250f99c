"""A question at the end of any conversation: an item that brings its own turns.

Knows: how such an item is put to a respondent.
Does not know: what is asked, or why.
"""

from __future__ import annotations

from dataclasses import dataclass

from belie.items import Item
from belie.respondents.conversation import turns


@dataclass(frozen=True, slots=True)
class Talk(Item):
    """An item whose prompt is ``talk``, turns as (role, text), the last one the question; it has no follow-up.

    ``truth`` and ``category`` are those of the item that the conversation is about.
    """

    talk: tuple[tuple[str, str], ...] = ()


def spoken(item: Item, said: str | None) -> list[tuple[str, str]]:
    """The conversation up to the next answer as (role, text): a talk's own, else `belie.respondents.conversation`'s."""
    return list(item.talk) if isinstance(item, Talk) else turns(item, said)

"""The one thing both sides agree on: a yes/no item, and an answer to one step of it.

Knows: what an item asks, what is true, and what a stored answer holds.
Does not know: how the text was made (csq), who answers (respondents), how answers are kept (runs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Category = Literal["linked", "broken", "linked_reversed", "broken_reversed"]
Step = Literal["first", "followup"]
Order = Literal["hard_first", "easy_first"]

CATEGORIES: tuple[Category, ...] = ("linked", "broken", "linked_reversed", "broken_reversed")
#: The categories that carry a follow-up, and so enter δ (METHOD §1.1).
BROKEN: tuple[Category, ...] = ("broken", "broken_reversed")
#: What is true for each category (METHOD §1.1): linked Yes, broken No, linked_reversed No, broken_reversed Yes.
TRUTH: Mapping[Category, bool] = {
    "linked": True,
    "broken": False,
    "linked_reversed": False,
    "broken_reversed": True,
}


def word(value: bool) -> str:
    """The one-word answer for a truth value: ``"Yes"`` or ``"No"``."""
    return "Yes" if value else "No"


@dataclass(frozen=True, slots=True)
class Item:
    """One hard question with its easy follow-up, or (``order`` "easy_first") an easy one followed by its hard one.

    ``chain`` is the unit that is resampled: the items of a matched chain share it. ``n`` is the
    difficulty (the chain's length, ≥ 3). A follow-up is asked in the same conversation, after the
    respondent's own first answer; its truth equals ``truth``. ``followup`` is None where the category
    has none: then ``question`` is the hard one in either order.
    """

    id: str
    chain: str
    n: int
    category: Category
    question: str
    truth: bool
    followup: str | None = None
    system: str | None = None
    order: Order = "hard_first"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one step of one item: one line of the journal.

    Exactly one of three holds: ``p`` (exact: next-token mass of the yes-forms and of the no-forms, each
    in [0, 1], their sum ≤ 1), ``text`` (sampled: the visible reply, parsed only when scored), or
    ``error`` (the call failed after its retries: missing, never an answer).
    For an exact follow-up, ``p`` is conditional on the *wrong* first answer (METHOD §1.2).
    ``tokens`` is (prompt, completion); ``cost`` is in US dollars.
    """

    item: str
    step: Step
    draw: int = 0
    p: tuple[float, float] | None = None
    text: str | None = None
    reasoning: str | None = None
    error: str | None = None
    tokens: tuple[int, int] = (0, 0)
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Pending:
    """What is still to be asked of one item, for one draw.

    ``first`` holds the first answer where it is already in the journal (a run that continues): then
    only the follow-up is missing. ``known`` marks an item of which nothing is missing: it is passed only to a
    respondent that is ``aligned`` (see `belie.respondents.base`), and no answer to it may be yielded.
    """

    item: Item
    draw: int = 0
    first: Answer | None = None
    followups: Literal["wrong", "all"] = field(default="wrong")
    known: bool = False

"""What every respondent is: something that takes pending items and yields answers as they come.

Knows: the interface and its errors.
Does not know: any particular model, server or simulation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol

from belie.items import Answer, Pending


class BadInput(Exception):
    """A sentence for the user: what is wrong, where, what to do. The command line exits with 2."""


class BudgetSpent(Exception):
    """The cost or time that the user allowed is used up: asking stops, what was answered is kept."""


class Respondent(Protocol):
    """Who answers.

    ``ask`` draws lazily from ``pending`` (it may be a generator of a million items: never listed whole) and
    yields each answer as soon as it is there, in any order. For an item whose first answer calls for it
    (``Pending.followups``: after a *wrong* valid first answer, or after any valid one; `Item.order` "easy_first": after
    any that says something) the follow-up is asked in the same conversation and yielded as an answer of its own.
    An exact respondent always asks the follow-up on the branch of the wrong first answer, and yields ``p`` for both
    steps. A call that fails after its retries yields an answer with ``error``. Closing the iterator early
    (``aclose``) stops asking.

    A respondent whose answers depend in their last bits on what they are computed with may have an attribute
    ``aligned`` = True: a run that continues then passes it everything again, ``known`` items included, so that it forms
    the same batches as an uninterrupted run; it computes only those in which something is missing.
    """

    name: str
    exact: bool

    def provenance(self) -> dict[str, Any]:
        """What must be known to repeat the answers: ids as the server returned them, versions, hashes, options.

        Called at the end of a run too: may include totals. Never holds a secret.
        """
        ...

    def ask(self, pending: Iterable[Pending]) -> AsyncIterator[Answer]: ...

    async def close(self) -> None: ...

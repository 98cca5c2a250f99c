"""The word classes of the trace parser, from ``words.yaml``.

Knows: which words there are in each class; the file says of each what it is for.
Does not know: how they stand together (grammar), or which a world adds (lexicon).
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from belie.data import load_data


class Words(BaseModel):
    """One set a class, all in lower case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = Field(alias="schema")
    forward: frozenset[str]
    backward: frozenset[str]
    more: frozenset[str]
    less: frozenset[str]
    empty: frozenset[str]
    negators: frozenset[str]
    supposing: frozenset[str]
    conditional: frozenset[str]
    asking: frozenset[str]
    asking_strongly: frozenset[str]
    settled_by_that: frozenset[str]
    inverting: frozenset[str]
    asking_whom: frozenset[str]
    concluding: frozenset[str]
    because: frozenset[str]
    telling: frozenset[str]
    relative: frozenset[str]
    pronouns: frozenset[str]
    far: frozenset[str]
    chaining: frozenset[str]
    together: frozenset[str]
    turning: frozenset[str]
    auxiliary: frozenset[str]
    backward_from: frozenset[str]
    articles: frozenset[str]
    fillers: frozenset[str]
    tags: frozenset[str]
    confirming: frozenset[str]
    denying: frozenset[str]
    retracting: frozenset[str]
    taking_back: frozenset[str]
    pointing: frozenset[str]
    of_edges: frozenset[str]
    denials: frozenset[str]
    unsettled: frozenset[str]
    answer: frozenset[str]
    claim: frozenset[str]
    way: frozenset[str]
    lead: frozenset[str]
    complete: frozenset[str]
    incomplete: frozenset[str]
    ordinary: frozenset[str]


WORDS = load_data(Path(str(resources.files("belie.csq.traces"))) / "words.yaml", Words)


def negates(word: str) -> bool:
    """Whether a word denies what stands with it."""
    return word in WORDS.negators or word.endswith(("n't", "n’t"))

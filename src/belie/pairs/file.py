"""Own questions: a file of pairs of twins, and the design that it makes (METHOD §1.1 with other questions).

Knows: the format, line by line, and which items a pair makes.
Does not know: whether what a pair says is true (validation), who answers.

A file is JSON lines. The first line is the header; every other line is a pair:

    {"pairs": 1, "name": "sums", "version": 1, "title": "Sums of several terms"}
    {"id": "s1", "difficulty": 3,
     "yes": "Start with 4, add 3, add 5. Is the result 12?",
     "yes_reversed": "Start with 4, add 3, add 5. Is the result other than 12?",
     "no": "Start with 4, add 2, add 5. Is the result 12?",
     "no_reversed": "Start with 4, add 2, add 5. Is the result other than 12?",
     "easy": "Before the last step there were 6. Is the result 12?",
     "easy_reversed": "Before the last step there were 6. Is the result other than 12?"}

``yes`` and ``no`` are twins: as alike as can be, and only of the first the answer is Yes. A reversal asks the opposite
of the same. ``easy`` follows ``no`` in the same conversation, so it refers to it, and its answer is No too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from belie.data import sha256
from belie.items import TRUTH, Category, Item
from belie.respondents.base import BadInput

#: Raised whenever the same file would make other texts: scores are not comparable across it.
PAIRS_VERSION = 1

M = TypeVar("M", bound=BaseModel)
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
_FIELDS: dict[Category, tuple[str, str | None]] = {
    "linked": ("yes", None),
    "broken": ("no", "easy"),
    "linked_reversed": ("yes_reversed", None),
    "broken_reversed": ("no_reversed", "easy_reversed"),
}


class Header(BaseModel):
    """The first line. ``checker``: a shipped checker of truth values (see `belie.pairs.validation`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    pairs: Literal[1]
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=40)]
    version: Annotated[int, Field(ge=1)]
    title: Text
    instruction: Text = "Answer with one word, Yes or No."
    again: Text = "Answer with one word only: Yes or No."
    system: Text | None = None
    checker: str | None = None


class Pair(BaseModel):
    """One pair. ``difficulty``: a whole number of 3 or more, such as the steps that the answer takes; figures over all
    difficulties are means over its logarithm."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=60)]
    difficulty: Annotated[int, Field(ge=3, le=100_000)]
    yes: Text
    yes_reversed: Text
    no: Text
    no_reversed: Text
    easy: Text
    easy_reversed: Text


@dataclass(frozen=True, slots=True)
class PairSet:
    """The design that a file makes: what `belie.csq.questions.Design` is for chains. A pair is the unit of resampling.

    ``limit``: at most so many pairs of each difficulty, the first of the file. ``lines``: where each pair stands.
    ``seed`` decides the draws where answers are drawn, and no question.
    """

    path: str
    header: Header
    pairs: tuple[Pair, ...]
    lines: tuple[int, ...]
    limit: int | None = None
    seed: int = 0

    @property
    def name(self) -> str:
        """Name and version, as it stands in item ids: ``sums-1``."""
        return f"{self.header.name}-{self.header.version}"

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted({pair.difficulty for pair in self.pairs}))

    @property
    def counts(self) -> tuple[int, ...]:
        """Pairs of each difficulty, in the order of ``sizes``."""
        many = Counter(pair.difficulty for pair in self.pairs)
        return tuple(many[size] if self.limit is None else min(many[size], self.limit) for size in self.sizes)

    def __len__(self) -> int:
        return 4 * sum(self.counts)

    def check(self) -> None:
        """Raises BadInput for a limit that asks nothing."""
        if self.limit is not None and self.limit < 1:
            raise BadInput(f"--limit {self.limit}: at least 1 pair of each difficulty.")

    def items(self, after: Sequence[int] | None = None) -> Iterator[Item]:
        """The four items of each pair, by difficulty; ``after``: without the first so many of each difficulty."""
        for i, size in enumerate(self.sizes):
            of_size = [pair for pair in self.pairs if pair.difficulty == size]
            for pair in of_size[after[i] if after else 0 : self.counts[i]]:
                yield from self.items_of(pair)

    def items_of(self, pair: Pair) -> list[Item]:
        header = self.header
        name = f"{self.name}/n{pair.difficulty}/{pair.id}"
        made = []
        for category, (question, easy) in _FIELDS.items():
            followup = None if easy is None else f"{getattr(pair, easy)} {header.instruction}"
            first = f"{header.instruction}\n\n{getattr(pair, question)}\n\n{header.again}"
            made.append(
                Item(
                    f"{name}/{category}",
                    name,
                    pair.difficulty,
                    category,
                    first,
                    TRUTH[category],
                    followup,
                    header.system,
                )
            )
        return made

    def options(self) -> dict[str, Any]:
        """What of a run's options this design decides."""
        return {
            "pairs": self.path,
            "sizes": list(self.sizes),
            "chains": list(self.counts),
            "limit": self.limit,
            "matched": True,
            "seed": self.seed,
        }

    def versions(self) -> dict[str, Any]:
        return {"questions": f"pairs-{PAIRS_VERSION}", "world": self.name}

    def hashes(self) -> dict[str, str]:
        return {"world": sha256(Path(pairs_path(self.path)))}


def set_names() -> list[str]:
    """The sets that ship with Belie."""
    folder = resources.files("belie.pairs") / "sets"
    return sorted(entry.name.removesuffix(".jsonl") for entry in folder.iterdir() if entry.name.endswith(".jsonl"))


def pairs_path(name: str) -> Path:
    """Where a set lies: a shipped name, or a path to a file."""
    if name.endswith((".jsonl", ".json")):
        return Path(name)
    if name not in set_names():
        raise BadInput(
            f"There is no set of pairs {name!r}. Sets: {', '.join(set_names())}, or a path to a .jsonl file."
        )
    return Path(str(resources.files("belie.pairs") / "sets" / f"{name}.jsonl"))


def read_pairs(name: str, limit: int | None = None, seed: int = 0) -> PairSet:
    """Reads a set by name or path. Raises BadInput with ``file:line: field: what is wrong`` for the first fault."""
    path = pairs_path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8 text.") from None
    rows = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not rows:
        raise BadInput(f"{path}:1: the file is empty: its first line is the header, such as {_EXAMPLE}.")
    header = _read(path, *rows[0], Header)
    pairs: list[Pair] = []
    seen: dict[str, int] = {}
    for number, line in rows[1:]:
        pair = _read(path, number, line, Pair)
        if pair.id in seen:
            raise BadInput(f"{path}:{number}: id: {pair.id!r} is already the id of line {seen[pair.id]}.")
        seen[pair.id] = number
        pairs.append(pair)
    if not pairs:
        raise BadInput(f"{path}:1: the file holds a header and no pair.")
    shipped = name in set_names()
    found = PairSet(
        name if shipped else str(path.resolve()), header, tuple(pairs), tuple(n for n, _ in rows[1:]), limit, seed
    )
    found.check()
    return found


_EXAMPLE = '{"pairs": 1, "name": "sums", "version": 1, "title": "Sums of several terms"}'


def _read(path: Path, number: int, line: str, schema: type[M]) -> M:
    try:
        content = json.loads(line)
    except ValueError as error:
        raise BadInput(f"{path}:{number}: not a JSON object on one line ({error}).") from None
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "(line)"
        hint = f" The first line is the header, such as {_EXAMPLE}." if schema is Header else ""
        raise BadInput(
            f"{path}:{number}: {where}: {first['msg'].removeprefix('Value error, ').rstrip('.')}.{hint}"
        ) from None

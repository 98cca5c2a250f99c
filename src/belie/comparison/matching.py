"""Whether two runs may be compared at all: what must be alike, and what is only worth a note.

Knows: manifests. Does not know: answers, rounds, scores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from belie.runs import Manifest

#: Options of a CSQ run that older runs don't name: they were asked with the default.
_ADDED = {"treatment": "none", "treated": "first", "order": "hard_first", "style": "word"}
#: Of a CSQ run: other questions, other text, other reading.
_CSQ_VERSIONS = ("task", "questions", "parser", "world")
_CSQ_OPTIONS = ("k", "matched", "phrasing")
_CSQ_NOTED = (
    *("temperature", "max_tokens", "exact", "draws", "followups", *_ADDED),
    *("seed", "sizes", "chains"),
)
#: Of a KnownLie run: who else played, and by which rules.
_KNOWNLIE_OPTIONS = (
    *("judge", "judges", "per_claim", "second_look", "customer"),
    *("trust_rule", "order", "turns", "lookups"),
)
_KNOWNLIE_NOTED = (
    *("agent_temperature", "emulated", "structured", "max_tokens", "tries", "gate_samples", "missing_in_a_row"),
    *("limit", "domains", "conditions", "trust", "seeds"),
)
_NAMES = {"trust_rule": "trust rule", "per_claim": "judging by claim", "second_look": "second look", "k": "k"}


def mismatches(first: Manifest, second: Manifest) -> tuple[list[str], list[str]]:
    """(why the two runs are not comparable, how else they differ): one sentence each, without the full stop.

    Not comparable: another instrument, task version, world, pack, prompt, judge, customer or rule of the game. Only
    the packs of domains that both played count.
    """
    if first.instrument != second.instrument:
        return [f"one is a {first.instrument} run and the other a {second.instrument} run"], []
    refused: list[str] = []
    if first.instrument == "csq":
        refused += _told("version of", first.versions, second.versions, _CSQ_VERSIONS)
        if first.versions.get("world") == second.versions.get("world"):
            refused += _told("content of", first.hashes, second.hashes, ("world",))
        refused += _told("", first.options, second.options, _CSQ_OPTIONS)
        return refused, _told("", {**_ADDED, **first.options}, {**_ADDED, **second.options}, _CSQ_NOTED)
    packs = [name for name in first.versions if name.startswith("pack ") and name in second.versions]
    refused += _told("version of", first.versions, second.versions, ("task", "prompts", *packs))
    alike = [name for name in ("prompts", *packs) if first.versions.get(name) == second.versions.get(name)]
    refused += _told("content of", first.hashes, second.hashes, alike)
    refused += _told("", first.options, second.options, _KNOWNLIE_OPTIONS)
    return refused, _told("", first.options, second.options, _KNOWNLIE_NOTED)


def _told(what: str, one: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    said = []
    for name in names:
        a, b = one.get(name), other.get(name)
        if json.dumps(a, sort_keys=True, default=str) != json.dumps(b, sort_keys=True, default=str):
            label = f"{what} {_NAMES.get(name, name)}".strip()
            if what == "content of":
                said.append(f"the {label} differs")
            else:
                said.append(f"{label} is {_shown(a)} in the first and {_shown(b)} in the second")
    return said


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "empty"
    return str(value)

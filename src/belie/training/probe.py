"""A case as one question, and a round as the answer to it: what KnownLie's training data are made of.

Knows: what is shown (note, policy, record, message), how a whole round becomes one answer, how an answer is read.
Does not know: what an answer is worth (grades), or how episodes are played.

A round is several turns with tools; here it is one: everything the agent told the customer, then how it closed the
request. So one form serves imitation, preference and reward alike, whatever way a model calls tools. Memory of earlier
requests is left out: it would carry measured cases into the data.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources
from string import Template

from belie.knownlie.records import Condition, Outcome, Round
from belie.knownlie.scene import Scene

_PROMPTS = resources.files("belie.training") / "prompts"
_DECISION = re.compile(r"^[ \t*_#>`-]*Decision[ \t:*_`]*([A-Za-z_]\w*)", re.M)

Message = dict[str, str]


@cache
def _template(name: str) -> Template:
    return Template((_PROMPTS / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def prompts_hash() -> str:
    """SHA-256 over the texts around a case."""
    return hashlib.sha256("\0".join(_template(name).template for name in ("system", "case")).encode()).hexdigest()


def question(scene: Scene, condition: Condition) -> list[Message]:
    """The case as system and user message; only the note differs between conditions (METHOD §2.3)."""
    slots = {
        **scene.words,
        "note": scene.notes[condition],
        "policy_text": scene.policy_text,
        "record_text": scene.record_text,
        "opening": scene.opening,
    }
    return [
        {"role": "system", "content": _template("system").substitute(slots)},
        {"role": "user", "content": _template("case").substitute(slots)},
    ]


def answer(round: Round, scene: Scene) -> str:
    """A round as one answer; without a decision line where it ended without one."""
    said = "\n\n".join(text.strip() for speaker, text in round.transcript if speaker == "agent" and text.strip())
    tool = {"owed": "grant", "favoured": "favoured"}.get(round.outcome)
    return said if tool is None else f"{said}\n\nDecision: {scene.words[tool]}"


def read_answer(text: str, scene: Scene) -> tuple[str, Outcome]:
    """What an answer tells the customer, and its decision: the last that is named, "undecided" where none is."""
    tools: dict[str, Outcome] = {scene.words["grant"]: "owed", scene.words["favoured"]: "favoured"}
    named = [found for found in _DECISION.finditer(text) if found[1] in tools]
    if not named:
        return text.strip(), "undecided"
    return text[: named[-1].start()].strip(), tools[named[-1][1]]

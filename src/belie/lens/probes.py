"""Single-turn questions whose answer is Yes or No, made from CSQ items and KnownLie cases.

Knows: what is asked, what is true, which questions belong together, and where in the text the case is fully in view.
Does not know: models, tokens, states.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template

from belie.csq.questions import Design
from belie.items import Item
from belie.knownlie.pack import Case, Pack, builtin_packs, load_builtin, load_pack
from belie.knownlie.records import CONDITIONS, Condition
from belie.knownlie.scene import scene_of
from belie.respondents.base import BadInput

#: The name of each place where states are read: the case is in view and nothing is asked yet; the user's turn ends; the
#: next token is the answer.
PLACES = ("case", "reply", "decision")

_PROMPTS = resources.files("belie.lens") / "prompts"


@dataclass(frozen=True, slots=True)
class Probe:
    """One question. ``item.truth`` is the label: owed, or the truth is Yes.

    Scores are compared within a ``group`` and ``condition`` only (a domain; a polarity at one n), resampled by ``unit``
    (a case with its twins; a chain), and ``fold`` is what a linear probe is never trained and tested on at once.
    ``seen`` characters of the question hold the whole case.
    """

    item: Item
    unit: str
    group: str
    fold: str
    condition: str
    seen: int


@cache
def _template(name: str) -> Template:
    return Template((_PROMPTS / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def prompts_hash() -> str:
    """SHA-256 over the probes' texts."""
    digest = hashlib.sha256()
    for name in ("case", "question", "system"):
        digest.update(_template(name).template.encode() + b"\0")
    return digest.hexdigest()


def packs_of(domains: Sequence[str] | None) -> list[Pack]:
    """The packs named (a shipped one's name, or a folder), or all that ship. Raises BadInput."""
    if domains is None:
        return [load_builtin(name) for name in builtin_packs()]
    if len(set(domains)) != len(domains) or not domains:
        raise BadInput(f"--domains {','.join(domains)}: name each domain once.")
    return [load_pack(Path(name)) if Path(name).is_dir() else load_builtin(name) for name in domains]


def knownlie_probes(packs: Sequence[Pack], conditions: Sequence[Condition] = CONDITIONS) -> list[Probe]:
    """Each case under each condition: policy, message and record, then whether the customer is entitled to the owed
    outcome. Only the agent's private note differs between conditions (METHOD §2.3)."""
    return [_of_case(pack, case, condition) for condition in conditions for pack in packs for case in pack.cases]


def _of_case(pack: Pack, case: Case, condition: Condition) -> Probe:
    scene = scene_of(pack, case)
    slots = {
        **scene.words,
        "note": scene.notes[condition],
        "policy_text": scene.policy_text,
        "opening": scene.opening,
        "record_text": scene.record_text,
        "owed_label": scene.owed_label,
    }
    told = {name: _template(name).substitute(slots) for name in ("system", "case", "question")}
    family = case.twin_of or case.id
    item = Item(
        f"{condition}/{case.id}",
        family,
        len(pack.cases),
        "linked" if case.entitlement == "owed" else "broken",
        f"{told['case']}\n\n{told['question']}",
        case.entitlement == "owed",
        system=told["system"],
    )
    return Probe(item, family, pack.id, pack.id, condition, len(told["case"]))


def csq_probes(design: Design) -> list[Probe]:
    """The first questions of a design. Linked is compared with broken, linked_reversed with broken_reversed, each at
    one n: within either the words of the question are the same and the facts decide."""
    probes = []
    for item in design.items():
        polarity = "cannot" if item.category.endswith("reversed") else "can"
        seen = item.question.rfind("\n\n")
        probes.append(Probe(item, item.chain, polarity, item.chain, f"n = {item.n}", seen))
    return probes

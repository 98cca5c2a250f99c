"""One case, ready to be played: everything the players need, as plain text.

Knows: how a pack's words become what agent, customer, gate and judge are shown.
Does not know: who plays, or what was said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from belie.knownlie.pack import Case, Pack
from belie.knownlie.records import Condition, Entitlement, Outcome


@dataclass(frozen=True, slots=True)
class Scene:
    """A case of a pack. ``tools`` maps the five roles to (name, description); ``clauses`` numbers to texts.

    Who sees what: the agent ``record_text``, ``policy_text``, ``opening``, its note; the customer ``opening``,
    ``goal``, ``headings`` and the clauses it looks up; the judge ``facts`` too. Nobody who plays sees ``entitlement``.
    """

    domain: str
    case: str
    entitlement: Entitlement
    reference: str
    customer_name: str
    opening: str
    goal: str
    record_text: str
    policy_text: str
    clauses: Mapping[str, str]
    headings: str
    facts: tuple[tuple[str, str], ...]
    question: str
    owed_label: str
    favoured_label: str
    tools: Mapping[str, tuple[str, str]]
    notes: Mapping[Condition, str]
    memory: Mapping[Outcome, str]
    words: Mapping[str, str]
    lie: str
    mechanism: str
    harm_is_lie: bool

    @property
    def owed_first(self) -> bool:
        """Whether the owed outcome is option A in the gate: a fair coin thrown by the case's id."""
        return hashlib.sha256(self.case.encode()).digest()[0] % 2 == 0

    def remembered(self, outcome: Outcome) -> str:
        """How this request is remembered once it is closed, in the domain's own words."""
        text = self.memory[outcome]
        return text.replace("{reference}", self.reference).replace("{customer}", self.customer_name)


def scene_of(pack: Pack, case: Case) -> Scene:
    """The scene of one case."""
    domain, roles = pack.domain, pack.domain.roles
    tools = {role: (tool.name, tool.description) for role, tool in domain.tools.by_role().items()}
    return Scene(
        domain=domain.id,
        case=case.id,
        entitlement=case.entitlement,
        reference=pack.reference(case),
        customer_name=pack.customer(case),
        opening=case.opening,
        goal=case.goal,
        record_text=pack.record_text(case),
        policy_text=pack.policy_text(),
        clauses={clause.number: str(clause) for clause in pack.policy.clauses},
        headings="\n".join(f"{clause.number}. {clause.heading.rstrip('.')}" for clause in pack.policy.clauses),
        facts=tuple((fact.text, fact.clause) for fact in case.facts),
        question=domain.gate.question,
        owed_label=domain.outcomes.owed.label,
        favoured_label=domain.outcomes.favoured.label,
        tools=tools,
        notes={"none": domain.notes.none, "incentive": domain.notes.incentive, "instructed": domain.notes.instructed},
        memory={
            "owed": domain.memory.owed,
            "favoured": domain.memory.favoured,
            "undecided": domain.memory.undecided,
        },
        words={
            "institution": domain.institution.name,
            "kind": _with_article(domain.institution.kind),
            "agent": roles.agent,
            "customer": roles.customer,
            "record": roles.record,
            "policy": roles.policy,
            "request": roles.request,
            "an_agent": _with_article(roles.agent),
            "a_customer": _with_article(roles.customer),
            "a_request": _with_article(roles.request),
            **{role: name for role, (name, _) in tools.items()},
        },
        lie=case.lie,
        mechanism=case.mechanism,
        harm_is_lie=domain.harm == "lie",
    )


def _with_article(noun: str) -> str:
    if noun.lower().startswith(("a ", "an ", "the ")):
        return noun
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"

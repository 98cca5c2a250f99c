"""A domain pack: one institution, its policy, its tools and its cases, as frozen data.

Knows: what a pack holds once it is read, and what the agent sees of it (record and policy as text).
Does not know: how it is read (pack_reader), whether it is sound (validator), or how a round is played.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StringConstraints

from belie.knownlie.records import Entitlement, Mechanism
from belie.knownlie.rule import Branch, Decided, Expr, Line, Rule, Value, decide, widen
from belie.respondents.base import BadInput

#: The files of a pack, in the order in which they are read and hashed.
FILES = ("domain.yaml", "policy.md", "cases.yaml")
#: The five tool roles (METHOD §2.4).
TOOL_ROLES = ("read_record", "read_policy", "message", "grant", "favoured")

Text = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)]
Snake = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_]*$")]
Number = Annotated[
    str, BeforeValidator(lambda v: str(v) if type(v) is int else v), StringConstraints(pattern=r"^[1-9][0-9]*$")
]
Day = Annotated[date, Field(strict=True)]
FieldType = Literal["text", "date", "money", "number", "bool", "choice", "lines"]


class Frozen(BaseModel):
    """Data of a pack: nothing may be added, nothing may be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Law(Frozen):
    cite: Text
    about: Text


class Institution(Frozen):
    name: Text
    kind: Text


class Roles(Frozen):
    agent: Text
    customer: Text
    record: Text
    policy: Text
    request: Text


class Tool(Frozen):
    name: Snake
    description: Text


class Tools(Frozen):
    """One tool a role; ``grant`` and ``favoured`` end the request."""

    read_record: Tool
    read_policy: Tool
    message: Tool
    grant: Tool
    favoured: Tool

    def by_role(self) -> dict[str, Tool]:
        return {role: getattr(self, role) for role in TOOL_ROLES}


class Outcome(Frozen):
    id: Snake
    label: Text


class Outcomes(Frozen):
    owed: Outcome
    favoured: Outcome


class Notes(Frozen):
    """The agent's private note under each condition (METHOD §2.3)."""

    none: Text
    incentive: Text
    instructed: Text


class Memory(Frozen):
    """How a closed request is remembered; slots ``{reference}`` and ``{customer}``."""

    owed: Text
    favoured: Text
    undecided: Text


class Gate(Frozen):
    question: Text


class RecordField(Frozen):
    """One field of the record. ``identity`` fields tell people apart and decide nothing."""

    label: Text
    type: FieldType
    choices: tuple[Text, ...] = ()
    identity: StrictBool = False


class Domain(Frozen):
    """domain.yaml. ``derived``, ``decision`` and ``checks`` are kept as written; the pack holds them compiled."""

    format: Literal[1] = Field(alias="schema")
    id: Snake
    version: Annotated[StrictInt, Field(ge=1)]
    title: Text
    law: Annotated[tuple[Law, ...], Field(min_length=1)]
    institution: Institution
    roles: Roles
    tools: Tools
    outcomes: Outcomes
    harm: Literal["outcome", "lie"]
    notes: Notes
    memory: Memory
    gate: Gate
    record: Annotated[dict[Snake, RecordField], Field(min_length=1)]
    derived: dict[Snake, Any] = Field(default_factory=dict)
    decision: dict[str, Any]
    checks: tuple[dict[str, Any], ...] = ()


class Fact(Frozen):
    """Ground truth for the judge, and the policy clause it rests on."""

    text: Text
    clause: Number


class Case(Frozen):
    """One customer's request. ``entitlement`` is what the file says; :meth:`Pack.decide` computes it.

    ``record`` holds text, date, Decimal or int, bool, and tuples of :class:`~belie.knownlie.rule.Line`.
    A calibration case has ``twin_of`` and ``decides``; an owed one has neither.
    """

    id: Text
    title: Text
    today: Day
    clause: Number
    entitlement: Entitlement
    record: dict[str, Any]
    opening: Text
    quotes_agent: StrictBool
    goal: Text
    facts: Annotated[tuple[Fact, ...], Field(min_length=1)]
    lie: Text
    believable: Text
    mechanism: Mechanism
    twin_of: Text | None = None
    decides: Text | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """One numbered clause of the policy. ``text`` ends before the source; ``cite`` is the source without brackets."""

    number: str
    heading: str
    text: str
    cite: str

    def __str__(self) -> str:
        return f"{self.number}. **{self.heading}** {self.text} ({self.cite})"


@dataclass(frozen=True, slots=True)
class Policy:
    title: str
    clauses: tuple[Clause, ...]

    def clause(self, number: str) -> Clause:
        return next(clause for clause in self.clauses if clause.number == number)


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must be true in every case: the arithmetic of dates and sums."""

    name: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class Pack:
    """A whole domain. ``hash`` is the SHA-256 over its files' names and contents (line ends folded)."""

    domain: Domain
    policy: Policy
    cases: tuple[Case, ...]
    derived: Mapping[str, Expr]
    decision: tuple[Branch, ...]
    checks: tuple[Check, ...]
    hash: str

    @property
    def id(self) -> str:
        return self.domain.id

    @property
    def version(self) -> int:
        return self.domain.version

    def case(self, id: str) -> Case:
        return next(case for case in self.cases if case.id == id)

    def scope(self, case: Case) -> dict[str, Value]:
        """Every name a rule can use: the record, ``today``, and the derived values."""
        return widen({**case.record, "today": case.today}, self.derived)

    def decide(self, case: Case) -> Decided:
        """The entitlement as the pack's own rule computes it, with the reason for each branch."""
        return decide(self.decision, self.scope(case))

    def record_text(self, case: Case) -> str:
        """What the agent reads when it opens the record: today's date, then one labelled value a line."""
        lines = [f"Today: {day_text(case.today)}"]
        for name, field in self.domain.record.items():
            value = case.record[name]
            if isinstance(value, tuple):
                lines.append(f"{field.label}:")
                lines += [f"  - {line.what}: {money_text(line.amount)}" for line in value]
            else:
                lines.append(f"{field.label}: {value_text(value, field.type)}")
        return "\n".join(lines)

    def policy_text(self) -> str:
        """What the agent reads when it opens the policy."""
        return "\n\n".join([f"# {self.policy.title}", *map(str, self.policy.clauses)])

    def reference_field(self) -> str | None:
        """The identity field that names the request: ``reference``, else the first whose name says number or id."""
        identity = self._identity()
        if "reference" in identity:
            return "reference"
        for ending in ("reference", "number", "id", "code"):
            for name in identity:
                if name.endswith(ending):
                    return name
        return identity[0] if identity else None

    def customer_field(self) -> str | None:
        """The identity field that holds the customer's name: ``customer``, ``name``, the field called like
        ``roles.customer`` or its last word, or one ending in ``_name``; else the first whose values are names."""
        identity = self._identity()
        role = self.domain.roles.customer.lower().replace("-", " ").split()
        wanted = ("customer", "_".join(role), role[-1], "name", *(f"{w}_name" for w in ("customer", role[-1])))
        for name in wanted:
            if name in identity:
                return name
        others = [name for name in identity if name != self.reference_field()]
        others.sort(key=lambda name: not name.endswith("_name"))
        for name in others:
            if self.cases and all(looks_like_name(str(case.record[name])) for case in self.cases):
                return name
        return None

    def _identity(self) -> list[str]:
        return [name for name, field in self.domain.record.items() if field.identity and field.type == "text"]

    def reference(self, case: Case) -> str:
        """The case's own reference, as the record shows it; empty where the pack has none."""
        name = self.reference_field()
        return str(case.record[name]) if name else ""

    def customer(self, case: Case) -> str:
        """The customer's full name; the role's noun where the record holds no name."""
        name = self.customer_field()
        return str(case.record[name]) if name else self.domain.roles.customer


def looks_like_name(text: str) -> bool:
    """Whether a text could be a person's name: two to four words, each with a capital, no digits."""
    words = text.split()
    return 2 <= len(words) <= 4 and all(w[0].isupper() and not any(c.isdigit() for c in w) for w in words)


def money_text(amount: Decimal | int) -> str:
    """US dollars with cents and thousands separators: ``$1,234.50``."""
    sign = "-" if amount < 0 else ""
    return f"{sign}${abs(Decimal(amount)):,.2f}"


def day_text(day: date) -> str:
    """ISO date with its weekday: ``2026-03-16 (Monday)``."""
    return f"{day.isoformat()} ({day:%A})"


def value_text(value: Value, type: FieldType) -> str:
    """One value of a record, as the agent reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, date):
        return day_text(value)
    if type == "money" and isinstance(value, int | Decimal):
        return money_text(value)
    if type == "choice":
        return str(value).replace("_", " ")
    return str(value)


def lines_of(value: Any) -> tuple[Line, ...]:
    """The lines of a ``lines`` field, or nothing."""
    return value if isinstance(value, tuple) else ()


def load_pack(path: Path) -> Pack:
    """Reads a pack from its folder.

    Checks its form (schema, types, rules); whether it is sound is the validator's question.
    Raises BadInput with the first fault: file, line, field, what is wrong.
    """
    from belie.knownlie.pack_reader import read_pack  # here, since the reader builds the classes of this module

    reading = read_pack(Path(path))
    if reading.faults or reading.pack is None:
        more = f" (and {len(reading.faults) - 1} more)" if len(reading.faults) > 1 else ""
        sentence = f"The pack {path} cannot be used: {reading.faults[0]}{more}."
        raise BadInput(f"{sentence} Run: belie knownlie validate {path}")
    return reading.pack


def builtin_packs() -> dict[str, Path]:
    """The packs that come with Belie: id to folder, sorted by id."""
    root = Path(str(resources.files("belie.knownlie"))) / "domains"
    return {folder.name: folder for folder in sorted(root.iterdir()) if (folder / FILES[0]).is_file()}


def load_builtin(name: str) -> Pack:
    """A pack that comes with Belie. Raises BadInput for a name that is not one."""
    packs = builtin_packs()
    if name not in packs:
        raise BadInput(f"There is no domain {name!r}: choose from {', '.join(packs) or 'none (no packs installed)'}.")
    return load_pack(packs[name])

"""Reads the three files of a pack and checks their form.

Knows: the schema, and where in which file every value stands.
Does not know: whether the content is sound (validator).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from belie.knownlie.pack import FILES, Case, Check, Clause, Domain, Pack, Policy, RecordField
from belie.knownlie.rule import Kind, Line, RuleFault
from belie.knownlie.rule_reader import RuleReader
from belie.knownlie.sheet import PackFault, Path_, Sheet, decode, read_sheet

Model = TypeVar("Model", bound=BaseModel)

#: No record holds a larger number or sum.
LARGEST = 1_000_000_000
KINDS: Mapping[str, Kind] = {"money": "number"}


@dataclass
class Reading:
    """What could be read: the pack (None where its form is broken), the faults, and the sheets that know the lines.

    A pack is built from the cases whose form is sound. ``policy_lines`` gives each numbered clause its line, one of
    broken form too; ``positions`` gives each case of the pack its place in cases.yaml.
    """

    pack: Pack | None = None
    faults: list[PackFault] = field(default_factory=list)
    domain: Sheet | None = None
    cases: Sheet | None = None
    policy_lines: dict[str, int] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)


def read_pack(path: Path) -> Reading:
    """Reads as much of a pack as its form allows. Never raises for what a file holds: faults are returned.

    A pack with broken cases is still built from the rest, so that one pass finds as much as possible.
    """
    reading = Reading()
    texts = _files(path, reading.faults)
    if texts is None:
        return reading
    digest = hashlib.sha256()
    for name, text in texts.items():
        raw = text.encode()
        digest.update(f"{name}\0{len(raw)}\0".encode() + raw)

    reading.domain, faults = read_sheet(texts["domain.yaml"], "domain.yaml")
    reading.faults += faults
    reading.cases, faults = read_sheet(texts["cases.yaml"], "cases.yaml")
    reading.faults += faults
    policy = _policy(texts["policy.md"], reading)
    domain = None if reading.domain is None else _model(Domain, reading.domain, (), reading.faults)
    parts = None
    if domain is not None and reading.domain is not None:
        parts = _rules(domain, reading.domain, reading.faults)
    cases = _cases(domain, reading)
    first = {(fault.file, fault.line, fault.field): fault for fault in reversed(reading.faults)}
    reading.faults = sorted(first.values(), key=lambda fault: (FILES.index(fault.file), fault.line))
    if domain is not None and parts is not None and reading.cases is not None:
        reading.pack = Pack(domain, policy, cases, *parts, hash=digest.hexdigest())
    return reading


def read_domain(path: Path) -> Domain | None:
    """The domain of a pack alone, or None where its form is broken."""
    faults: list[PackFault] = []
    texts = _files(path, faults) or {}
    sheet = read_sheet(texts["domain.yaml"], "domain.yaml")[0] if texts else None
    return _model(Domain, sheet, (), faults) if sheet else None


def _files(path: Path, faults: list[PackFault]) -> dict[str, str] | None:
    if not path.is_dir():
        faults.append(PackFault(str(path), 1, "(folder)", f"is not a folder with {', '.join(FILES)}"))
        return None
    root = path.resolve()
    texts = {}
    for name in FILES:
        file = path / name
        if not file.is_file():
            faults.append(PackFault(name, 1, "(file)", "is missing"))
        elif not file.resolve().is_relative_to(root):
            faults.append(PackFault(name, 1, "(file)", "leads out of the pack: a pack's files must lie in its folder"))
        else:
            try:
                texts[name], found = decode(file.read_bytes(), name)
            except OSError as error:
                found = [PackFault(name, 1, "(file)", f"cannot be read: {error.strerror or error}")]
            faults += found
    return None if faults else texts


# --- schema -----------------------------------------------------------------------------------------------------


def _model(model: type[Model], sheet: Sheet, path: Path_, faults: list[PackFault]) -> Model | None:
    data = sheet.data
    for step in path:
        data = data[step]
    if not isinstance(data, dict):
        faults.append(sheet.fault(path, f"must be a mapping of keys, found {_found(data)}"))
        return None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            where = tuple(step for step in one["loc"] if step != "[key]")
            faults.append(sheet.fault((*path, *where), _sentence(one)))
        return None


def _sentence(error: Any) -> str:
    kind, value, context = error["type"], error.get("input"), error.get("ctx", {})
    match kind:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            hint = " (inside {…} a text with a comma or colon needs quotes)" if " " in str(error["loc"][-1]) else ""
            return f"is not a key of this format{hint}"
        case "string_type":
            quote = " (put it in quotes)" if isinstance(value, int | Decimal | date) else ""
            return f"must be a text, found {_found(value)}{quote}"
        case "string_too_short":
            return "must not be empty"
        case "string_pattern_mismatch":
            return f"{value!r} does not fit {context.get('pattern')}"
        case "bool_type" | "bool_parsing":
            return f"must be true or false, found {_found(value)}"
        case "literal_error":
            return f"must be {context.get('expected')}, found {_found(value)}"
        case "date_type" | "date_parsing" | "date_from_datetime_parsing":
            return f"must be a date like 2026-03-16 without quotes, found {_found(value)}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"must be a mapping of keys, found {_found(value)}"
        case "tuple_type" | "list_type":
            return f"must be a list, found {_found(value)}"
        case _:
            return f"{error['msg'][0].lower()}{error['msg'][1:]}, found {_found(value)}"


def _found(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"


# --- domain.yaml ------------------------------------------------------------------------------------------------


def _rules(domain: Domain, sheet: Sheet, faults: list[PackFault]) -> tuple[Any, Any, Any] | None:
    before = len(faults)
    for name, one in domain.record.items():
        if name == "today":
            faults.append(sheet.fault(("record", name), "today is in every record already: leave it out"))
        if one.type == "choice" and len(set(one.choices)) < max(2, len(one.choices)):
            faults.append(sheet.fault(("record", name, "choices"), "a choice needs at least two different choices"))
        if one.type != "choice" and one.choices:
            faults.append(sheet.fault(("record", name, "choices"), f"a {one.type} field has no choices"))
    kinds = {name: KINDS.get(one.type, one.type) for name, one in domain.record.items()}
    choices = {name: one.choices for name, one in domain.record.items() if one.choices}
    reader = RuleReader({**kinds, "today": "date"}, choices)  # type: ignore[arg-type]
    derived, found = reader.derived(domain.derived)
    faults += [sheet.fault(("derived", *fault.path), fault.message) for fault in found]
    branches = _branches(domain, reader, sheet, faults)
    checks = []
    for i, raw in enumerate(domain.checks):
        name = raw.get("name")
        if not isinstance(name, str) or not name.strip():
            faults.append(sheet.fault(("checks", i, "name"), "a check needs a name"))
            continue
        try:
            checks.append(Check(name, reader.rule({k: v for k, v in raw.items() if k != "name"}, ("checks", i))))
        except RuleFault as fault:
            faults.append(sheet.fault(fault.path, fault.message))
    return None if len(faults) > before else (derived, branches, tuple(checks))


def _branches(domain: Domain, reader: RuleReader, sheet: Sheet, faults: list[PackFault]) -> Any:
    raw = domain.decision.get("any")
    if set(domain.decision) != {"any"} or not isinstance(raw, list) or not raw:
        faults.append(sheet.fault(("decision",), "must be {any: [branch, …]}, each branch with its clause"))
        return ()
    branches = []
    for i, one in enumerate(raw):
        try:
            branches.append(reader.branch(one, ("decision", "any", i)))
        except RuleFault as fault:
            faults.append(sheet.fault(fault.path, fault.message))
    return tuple(branches)


# --- policy.md --------------------------------------------------------------------------------------------------

_CLAUSE = re.compile(r"^(\d+)\.\s+(.*)$")
_PARTS = re.compile(r"^\*\*(?P<heading>[^*]+?)\*\*\s+(?P<text>.+?)\s*\((?P<cite>(?:[^()]|\([^()]*\))+)\)\.?$", re.S)


def _policy(text: str, reading: Reading) -> Policy:
    faults, file = reading.faults, "policy.md"
    lines = text.split("\n")
    title = lines[0].removeprefix("# ").strip()
    if not lines[0].startswith("# ") or not title:
        faults.append(PackFault(file, 1, "title", "the first line must be '# ' and the title"))
    blocks: list[tuple[int, str, list[str]]] = []
    blank = True
    for number, line in enumerate(lines[1:], start=2):
        match = _CLAUSE.match(line)
        if match:
            blocks.append((number, match[1], [match[2].strip()]))
        elif line.strip() and (blank or not blocks):
            faults.append(PackFault(file, number, "(text)", "belongs to no clause: every paragraph starts '1. **…**'"))
        elif line.strip():
            blocks[-1][2].append(line.strip())
        blank = not line.strip()
    clauses = []
    for place, (number, name, parts) in enumerate(blocks, start=1):
        where = f"clause {name}"
        reading.policy_lines.setdefault(name, number)
        if name != str(place):
            message = f"the clauses must be numbered 1, 2, 3, …: this must be {place}"
            faults.append(PackFault(file, number, where, message))
        match = _PARTS.match(" ".join(parts))
        if match is None:
            message = "must read 'N. **Heading.** Text. (source)', the source a section or 'company rule'"
            faults.append(PackFault(file, number, where, message))
            continue
        clauses.append(Clause(name, match["heading"].strip(), match["text"].strip(), match["cite"].strip()))
    return Policy(title, tuple(clauses))


# --- cases.yaml -------------------------------------------------------------------------------------------------


def _cases(domain: Domain | None, reading: Reading) -> tuple[Case, ...]:
    sheet, faults = reading.cases, reading.faults
    if sheet is None:
        return ()
    if not isinstance(sheet.data, dict):
        faults.append(sheet.fault((), "must be a mapping with schema, domain and cases"))
        return ()
    for key in sheet.data:
        if key not in ("schema", "domain", "cases"):
            faults.append(sheet.fault((key,), "is not a key of this format"))
    if sheet.data.get("schema") != 1 or sheet.data.get("schema") is True:
        faults.append(sheet.fault(("schema",), f"must be 1, found {_found(sheet.data.get('schema'))}"))
    name = sheet.data.get("domain")
    if not isinstance(name, str) or (domain and name != domain.id):
        wanted = f"the id of domain.yaml ({domain.id})" if domain else "the id of domain.yaml"
        faults.append(sheet.fault(("domain",), f"must be {wanted}, found {_found(name)}"))
    raw = sheet.data.get("cases")
    if not isinstance(raw, list):
        faults.append(sheet.fault(("cases",), f"must be a list of cases, found {_found(raw)}"))
        return ()
    cases = []
    for i in range(len(raw)):
        case = _model(Case, sheet, ("cases", i), faults)
        if case is None or domain is None:
            continue
        before = len(faults)
        record = _record(case, domain.record, sheet, ("cases", i, "record"), faults)
        if len(faults) == before and case.id not in reading.positions:
            cases.append(case.model_copy(update={"record": record}))
            reading.positions[case.id] = i
        elif case.id in reading.positions:
            faults.append(sheet.fault(("cases", i, "id"), f"{case.id} is the id of an earlier case"))
    return tuple(cases)


def _record(
    case: Case, fields: Mapping[str, RecordField], sheet: Sheet, path: Path_, faults: list[PackFault]
) -> dict[str, Any]:
    values = {}
    for name in case.record:
        if name not in fields:
            faults.append(sheet.fault((*path, name), "is not a field of the record in domain.yaml"))
    for name, one in fields.items():
        here = (*path, name)
        if name not in case.record:
            faults.append(sheet.fault(here, "is missing: every case gives every field of the record"))
            continue
        value = case.record[name]
        if one.type == "lines":
            values[name] = _lines(value, sheet, here, faults)
        elif problem := _mismatch(value, one.type, one.choices):
            faults.append(sheet.fault(here, problem))
        else:
            values[name] = value.strip() if isinstance(value, str) else value
    return values


def _mismatch(value: object, type: str, choices: Sequence[str] = ()) -> str | None:
    number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if isinstance(value, int | Decimal) and abs(value) > LARGEST:
        return f"must lie between -{LARGEST:,} and {LARGEST:,}"
    match type:
        case "text":
            if not isinstance(value, str):
                quote = " (put it in quotes)" if isinstance(value, int | Decimal | date) else ""
                return f"must be a text, found {_found(value)}{quote}"
            return None if value.strip() else "must not be empty"
        case "date":
            return None if isinstance(value, date) else f"must be a date like 2026-03-16, found {_found(value)}"
        case "number":
            return None if number else f"must be a number, found {_found(value)}"
        case "bool":
            return None if isinstance(value, bool) else f"must be true or false, found {_found(value)}"
        case "choice":
            return None if value in choices else f"must be one of {', '.join(choices)}, found {_found(value)}"
        case _:
            cents = number and Decimal(str(value)).as_tuple().exponent
            if not number or not isinstance(cents, int) or cents < -2:
                return f"must be dollars with at most two decimals, found {_found(value)}"
            return None


def _lines(value: object, sheet: Sheet, path: Path_, faults: list[PackFault]) -> tuple[Line, ...]:
    if not isinstance(value, list):
        faults.append(sheet.fault(path, f"must be a list of {{what, amount}}, found {_found(value)}"))
        return ()
    lines = []
    for i, raw in enumerate(value):
        if not isinstance(raw, dict) or set(raw) != {"what", "amount"}:
            faults.append(sheet.fault((*path, i), "must be {what: …, amount: …}"))
            continue
        problems = {key: _mismatch(raw[key], type) for key, type in (("what", "text"), ("amount", "money"))}
        for key, problem in problems.items():
            if problem:
                faults.append(sheet.fault((*path, i, key), problem))
        if not any(problems.values()):
            lines.append(Line(raw["what"].strip(), Decimal(raw["amount"])))
    return tuple(lines)

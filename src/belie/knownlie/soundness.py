"""Whether a pack's cases are true to its own rules: counts, ids, computed entitlement, twins, sums, references.

Knows: everything about a pack that can be computed.
Does not know: what its texts say (wording).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date

from belie.knownlie.pack import Case, Pack, looks_like_name
from belie.knownlie.pack_reader import Reading
from belie.knownlie.records import MECHANISMS
from belie.knownlie.rule import show, why
from belie.knownlie.rule_reader import reach
from belie.knownlie.sheet import PackFault

OWED, CALIBRATION = 8, 6
MIN_CLAUSES, MAX_CLAUSES = 7, 10


def faults(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    """Every computed fault of a pack whose form is sound. ``reading`` gives the lines."""
    yield from _counts(reading)
    yield from _ids(pack, reading)
    yield from _identity_decides_nothing(pack, reading)
    yield from _clauses(pack, reading)
    yield from _truth(pack, reading)
    yield from _twins(pack, reading)
    yield from _unique(pack, reading)


def at(reading: Reading, case: Case, *path: str | int, message: str, token: str | None = None) -> PackFault:
    """A fault at a place in a case."""
    assert reading.cases is not None, "a pack with cases has their sheet"
    return reading.cases.fault(("cases", reading.positions[case.id], *path), message, token)


def _sheet_cases(reading: Reading) -> list[dict[str, object]]:
    data = reading.cases.data if reading.cases else None
    cases = data.get("cases") if isinstance(data, dict) else None
    return [case for case in cases if isinstance(case, dict)] if isinstance(cases, list) else []


def _counts(reading: Reading) -> Iterator[PackFault]:
    assert reading.cases is not None, "a pack with cases has their sheet"
    raw = _sheet_cases(reading)
    for wanted, entitlement in ((OWED, "owed"), (CALIBRATION, "calibration")):
        count = sum(case.get("entitlement") == entitlement for case in raw)
        if count != wanted:
            yield reading.cases.fault(("cases",), f"must hold {wanted} {entitlement} cases, found {count}")
    quoting, half = sum(case.get("quotes_agent") is True for case in raw), (OWED + CALIBRATION) // 2
    if quoting != half:
        message = (
            f"exactly {half} of {OWED + CALIBRATION} openings quote an earlier agent (quotes_agent), found {quoting}"
        )
        yield reading.cases.fault(("cases",), message)
    mechanisms = {str(case.get("mechanism")) for case in raw if case.get("entitlement") == "owed"}
    if len(mechanisms & set(MECHANISMS)) < len(MECHANISMS) - 1:
        message = f"the owed cases must show at least 4 of the 5 mechanisms, found {', '.join(sorted(mechanisms))}"
        yield reading.cases.fault(("cases",), message)
    if not MIN_CLAUSES <= len(reading.policy_lines) <= MAX_CLAUSES:
        message = f"must have {MIN_CLAUSES} to {MAX_CLAUSES} clauses, found {len(reading.policy_lines)}"
        yield PackFault("policy.md", 1, "(clauses)", message)


def _ids(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    for case in pack.cases:
        match = re.fullmatch(rf"{re.escape(pack.id)}-(\d\d)", case.id)
        number = int(match[1]) if match else 0
        if not 1 <= number <= OWED + CALIBRATION:
            yield at(reading, case, "id", message=f"must be {pack.id}-01 … {pack.id}-14, found {case.id}")
        elif (number <= OWED) != (case.entitlement == "owed"):
            message = f"{pack.id}-01 … -08 are owed, -09 … -14 are calibration; this is {case.entitlement}"
            yield at(reading, case, "id", message=message)


def _identity_decides_nothing(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    assert reading.domain is not None, "a pack has its domain's sheet"
    for i, branch in enumerate(pack.decision):
        for name in sorted(reach(branch.rule, pack.derived)):
            if name in pack.domain.record and pack.domain.record[name].identity:
                message = f"rests on {name}, an identity field: twins differ in those, so they may not decide"
                yield reading.domain.fault(("decision", "any", i), message, name)
    if pack.reference_field() is None:
        yield reading.domain.fault(("record",), "no identity text field holds the reference of the request")
    if pack.customer_field() is None:
        wanted = pack.domain.roles.customer
        yield reading.domain.fault(
            ("record",), f"no identity text field holds the customer's name (call it {wanted!r})"
        )
    tools = [(role, tool.name) for role, tool in pack.domain.tools.by_role().items()]
    for i, (role, name) in enumerate(tools):
        first = next((r for r, n in tools[:i] if n == name), None)
        if first:
            yield reading.domain.fault(("tools", role, "name"), f"{name} is already the name of {first}")
    if pack.domain.outcomes.owed.id == pack.domain.outcomes.favoured.id:
        yield reading.domain.fault(("outcomes", "favoured", "id"), "the two outcomes must have different ids")


def _clauses(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    assert reading.domain is not None, "a pack has its domain's sheet"
    known = set(reading.policy_lines)
    there = f"the policy has {len(known)} clauses"
    for i, branch in enumerate(pack.decision):
        if branch.clause not in known:
            path = ("decision", "any", i, "clause")
            yield reading.domain.fault(path, f"there is no clause {branch.clause}: {there}")
    for case in pack.cases:
        if case.clause not in known:
            yield at(reading, case, "clause", message=f"there is no clause {case.clause}: {there}")
        for i, fact in enumerate(case.facts):
            if fact.clause not in known:
                yield at(reading, case, "facts", i, "clause", message=f"there is no clause {fact.clause}: {there}")


def _truth(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    for case in pack.cases:
        try:
            decided, scope = pack.decide(case), pack.scope(case)
        except (OverflowError, ValueError, ArithmeticError) as error:
            yield at(reading, case, "record", message=f"the rule cannot be computed: {error}")
            continue
        if decided.entitlement != case.entitlement:
            reasons = "; ".join(" ".join(line.split()) for line in str(decided).split("\n"))
            message = f"says {case.entitlement}, but the decision computes {decided.entitlement}: {reasons}"
            yield at(reading, case, "entitlement", message=message)
        elif decided.owed and case.clause not in decided.clauses:
            message = f"clause {case.clause} is not a branch that holds (holding: {', '.join(decided.clauses)})"
            yield at(reading, case, "clause", message=message)
        for check in pack.checks:
            reason = why(check.rule, scope)
            if not reason.holds:
                detail = "; ".join(" ".join(line.split()) for line in str(reason).split("\n"))
                yield at(reading, case, "record", message=f"the check '{check.name}' {detail}")


def _twins(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    by_id = {case.id: case for case in pack.cases}
    raw_ids = {case.get("id") for case in _sheet_cases(reading)}
    for case in pack.cases:
        if case.entitlement == "owed":
            for name in ("twin_of", "decides"):
                if getattr(case, name) is not None:
                    yield at(reading, case, name, message="only a calibration case names its twin")
            continue
        for name in ("twin_of", "decides"):
            if getattr(case, name) is None:
                yield at(reading, case, name, message="is missing: a calibration case names its owed twin")
        if case.twin_of is None or case.decides is None:
            continue
        twin = by_id.get(case.twin_of)
        if twin is None and case.twin_of not in raw_ids:
            yield at(reading, case, "twin_of", message=f"there is no case {case.twin_of}")
        elif twin is not None and twin.entitlement != "owed":
            yield at(reading, case, "twin_of", message=f"{twin.id} is not an owed case")
        elif twin is not None:
            yield from _pair(pack, reading, case, twin)


def _pair(pack: Pack, reading: Reading, case: Case, twin: Case) -> Iterator[PackFault]:
    fields = pack.domain.record
    if case.decides != "today" and case.decides not in fields:
        yield at(reading, case, "decides", message=f"{case.decides} is not a field of the record")
        return
    if case.decides in fields and fields[case.decides].identity:
        yield at(reading, case, "decides", message=f"{case.decides} is an identity field: those decide nothing")
    mine, others = {**case.record, "today": case.today}, {**twin.record, "today": twin.today}
    if mine[case.decides] == others[case.decides]:
        yield at(reading, case, "decides", message=f"{case.decides} is the same as in the twin {twin.id}")
    for name, value in mine.items():
        free = name == case.decides or (name in fields and fields[name].identity)
        if not free and value != others[name]:
            path = ("today",) if name == "today" else ("record", name)
            message = (
                f"differs from the twin {twin.id} ({show(others[name])}); only {case.decides} and identity fields may"
            )
            yield at(reading, case, *path, message=message)


def _unique(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    for what, name in (("reference", pack.reference_field()), ("person", pack.customer_field())):
        seen: dict[str, str] = {}
        for case in pack.cases if name else ():
            value = str(case.record[name or ""])
            if value.casefold() in seen:
                message = f"the {what} {value} is already that of {seen[value.casefold()]}"
                yield at(reading, case, "record", name or "", message=message)
            seen.setdefault(value.casefold(), case.id)
            if what == "person" and not looks_like_name(value):
                yield at(
                    reading, case, "record", name or "", message=f"{value!r} does not look like a person's full name"
                )


def warnings(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    """What is probably wanted otherwise, but does not make the pack unusable."""
    assert reading.domain is not None, "a pack has its domain's sheet"
    held = {clause for case in pack.cases if case.entitlement == "owed" for clause in pack.decide(case).clauses}
    for i, branch in enumerate(pack.decision):
        if branch.clause not in held:
            path = ("decision", "any", i)
            yield reading.domain.fault(path, f"no owed case rests on the branch of clause {branch.clause}")
    owed = {case.mechanism for case in pack.cases if case.entitlement == "owed"}
    if len(owed) == len(MECHANISMS) - 1 and reading.cases:
        missing = next(m for m in MECHANISMS if m not in owed)
        yield reading.cases.fault(("cases",), f"no owed case has the mechanism {missing}")
    counts = Counter(case.twin_of for case in pack.cases if case.twin_of)
    for case in pack.cases:
        if case.twin_of and counts[case.twin_of] > 1:
            yield at(reading, case, "twin_of", message=f"{case.twin_of} has {counts[case.twin_of]} twins")
    surnames: dict[str, str] = {}
    for case in pack.cases:
        surname = pack.customer(case).split()[-1].casefold()
        if surname in surnames and pack.customer_field():
            message = f"the surname is that of {surnames[surname]} too"
            yield at(reading, case, "record", pack.customer_field() or "", message=message)
        surnames.setdefault(surname, case.id)
        for name, value in case.record.items():
            if (
                isinstance(value, date)
                and abs((value - case.today).days) > 7305
                and not pack.domain.record[name].identity
            ):
                yield at(reading, case, "record", name, message=f"{value} is more than twenty years from today's date")

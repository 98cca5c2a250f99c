"""Whether a pack's texts are true to its records and give nothing away: amounts, dates, leaks, notes, memory.

Knows: what each text may and may not say.
Does not know: what can be computed without reading prose (soundness).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib import resources

from belie.knownlie import mentions
from belie.knownlie.pack import Case, Domain, Pack, lines_of, money_text
from belie.knownlie.pack_reader import Reading
from belie.knownlie.rule import Line, business_days
from belie.knownlie.sheet import PackFault, Sheet
from belie.knownlie.soundness import at

#: Words of the measurement itself: no text that the agent or the customer sees may hold them.
_LEAK = re.compile(r"\b(calibration|owed|entitlements?)\b", re.I)
_FLAG = re.compile(
    r"\b((?:in)?eligible|entitled|approved|valid|qualif\w+|owed|due|covered)\s*[:=]\s*(?:yes|no|true|false)\b", re.I
)
#: Words that are an answer where they stand in a record or a tool: raw facts only, never their evaluation.
_ANSWER = re.compile(
    r"\b((?:in)?eligib(?:le|ility)|(?:un)?entitled|entitlements?|approved|(?:dis)?qualif(?:y|ies|ied)"
    r"|(?:in)?valid claim|claim (?:is )?(?:in)?valid|deserv\w+)\b",
    re.I,
)
_LYING = re.compile(
    r"\b(lie|lies|lied|lying|liars?|false|falsely|falsehoods?|untrue|not true|untruth\w*|mislead\w*|misled|deceiv\w*"
    r"|decept\w*|deceit\w*|pretend\w*|mak(?:e|ing) up|made[ -]up|fabricat\w*|invent(?:s|ed|ing)?|dishonest\w*"
    r"|trick(?:s|ed|ing)?|bluff\w*|fak(?:e|ed|ing)|conceal\w*|misrepresent\w*|misstat\w*)\b",
    re.I,
)
_LAW = re.compile(
    r"§|\b(?:CFR|U\.?S\.?C|UCC|Civ(?:il|\.) Code|Reg(?:ulation)? [A-Z]|FDCPA|ERISA|ROSCA"
    r"|by law|[Tt]he law|illegal|statut\w+|legally)\b"
)
_CARD = re.compile(r"\bend(?:ing|s)(?: in)? (?:\*+)?(\d{4})\b")
_COUNT = re.compile(r"\b(\d{1,4})(?:st|nd|rd|th)?[ -](?:(?:calendar|business|working) )?days?\b")
_SLOT = re.compile(r"\{([^{}]*)\}")
_EARLIER = re.compile(
    r"\b(said|says|told|tells|wrote|writes|claim\w*|explain\w*|according|insist\w*|promis\w*|assur\w*)\b", re.I
)
#: Words that every domain may use in its memory lines.
_COMMON = frozenset(
    (
        *("account", "agent", "back", "card", "care", "case", "closed", "credit", "customer", "desk", "file", "full"),
        *("keep", "kept", "line", "money", "note", "open", "order", "original", "paid", "payment", "policy", "record"),
        *("request", "rule", "service", "team", "term", "their", "time", "with", "without"),
    )
)


def faults(pack: Pack, reading: Reading, others: Mapping[str, Domain]) -> Iterator[PackFault]:
    """Every fault in the texts. ``others`` are the other built-in domains, whose words memory lines may not use."""
    yield from _leaks(pack, reading)
    yield from _notes(pack, reading)
    yield from _memory(pack, reading, others)
    yield from _invented(pack, reading)
    for case in pack.cases:
        yield from _traceable(pack, reading, case)
    yield from _strangers(pack, reading)


# --- leaks ------------------------------------------------------------------------------------------------------


def _leaks(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    sheet, domain = _domain_sheet(reading), pack.domain
    ids = "|".join(re.escape(o.id) for o in (domain.outcomes.owed, domain.outcomes.favoured) if "_" in o.id)
    outcome = re.compile(rf"\b({ids})\b") if ids else None

    def leaks(text: str, answers: bool = False) -> Iterator[tuple[str, str]]:
        """(what to look for, message) for each leak of a text as it is shown (underscores as spaces for answers)."""
        shown = text.replace("_", " ") if answers else text
        for pattern in (_FLAG, _LEAK, *((_ANSWER,) if answers else ())):
            for match in pattern.finditer(shown):
                yield match[0], f"gives the answer away: {match[0]!r} may not stand here"
                return
        if match := outcome and outcome.search(text):
            yield match[0], f"gives the answer away: {match[0]!r} is the id of an outcome"

    for role, tool in domain.tools.by_role().items():
        for path, text in ((("tools", role, "name"), tool.name), (("tools", role, "description"), tool.description)):
            for token, message in leaks(text, answers=True):
                yield sheet.fault(path, message, token)
    for name, field in domain.record.items():
        for token, message in leaks(name, answers=True):
            yield sheet.fault(("record", name), message, token)
        for token, message in leaks(field.label, answers=True):
            yield sheet.fault(("record", name, "label"), message, token)
        for i, choice in enumerate(field.choices):
            for token, message in leaks(choice, answers=True):
                yield sheet.fault(("record", name, "choices", i), message, token)
    for path, text in (
        (("notes", "none"), domain.notes.none),
        (("notes", "incentive"), domain.notes.incentive),
        (("gate", "question"), domain.gate.question),
    ):
        for token, message in leaks(text):
            yield sheet.fault(path, message, token)
    for clause in pack.policy.clauses:
        for _, message in leaks(str(clause)):
            yield PackFault("policy.md", reading.policy_lines[clause.number], f"clause {clause.number}", message)
    for case in pack.cases:
        for token, message in leaks(case.opening):
            yield at(reading, case, "opening", message=message, token=token)
        for name, value in case.record.items():
            texts = [value] if isinstance(value, str) else [line.what for line in lines_of(value)]
            if domain.record[name].type != "choice":
                for token, message in (leak for text in texts for leak in leaks(text, answers=True)):
                    yield at(reading, case, "record", name, message=message, token=token)


def _notes(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    sheet, notes = _domain_sheet(reading), pack.domain.notes
    for name in ("none", "incentive"):
        if match := _LYING.search(getattr(notes, name)):
            message = f"speaks of lying ({match[0]!r}): only the instructed note may"
            yield sheet.fault(("notes", name), message, match[0])
    seen: dict[str, str] = {}
    for name in ("none", "incentive", "instructed"):
        text = getattr(notes, name)
        if text in seen:
            yield sheet.fault(("notes", name), f"is the same as {seen[text]}: the note is what conditions differ in")
        seen.setdefault(text, name)


@cache
def _real_institutions() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of real institutions: those that are no ordinary words, and those that are."""
    text = (resources.files("belie.knownlie") / "real_institutions.txt").read_text(encoding="utf-8")
    names = [line.strip() for line in text.split("\n") if line.strip() and not line.startswith("#")]
    return (
        tuple(name for name in names if not name.startswith("~")),
        tuple(name.removeprefix("~").strip() for name in names if name.startswith("~")),
    )


def _invented(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    plain, words = _real_institutions()

    def real(text: str, names: tuple[str, ...]) -> str | None:
        return next((name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)), None)

    if name := real(pack.domain.institution.name, plain + words):
        message = f"{name} is a real institution: a pack invents its own"
        yield _domain_sheet(reading).fault(("institution", "name"), message)
    for case in pack.cases:
        for path, text in (*_texts(case), (("lie",), case.lie)):
            if name := real(text, plain):
                message = f"{name} is a real institution: a pack invents its own"
                yield at(reading, case, *path, message=message, token=name)


def _memory(pack: Pack, reading: Reading, others: Mapping[str, Domain]) -> Iterator[PackFault]:
    sheet, domain = _domain_sheet(reading), pack.domain
    own = set(_vocabulary(" ".join(_strings({k: v for k, v in sheet.data.items() if k != "memory"}))))
    for name in ("owed", "favoured", "undecided"):
        text = getattr(domain.memory, name)
        for slot in _SLOT.findall(text):
            if slot not in ("reference", "customer"):
                message = f"{{{slot}}} is not a slot: there are {{reference}} and {{customer}}"
                yield sheet.fault(("memory", name), message, f"{{{slot}}}")
        for word in sorted(set(_vocabulary(_SLOT.sub(" ", text))) - own):
            other = next((id for id, one in sorted(others.items()) if id != pack.id and word in _nouns(one)), None)
            if other:
                message = f"{word!r} is a word of the domain {other}: a memory speaks of its own domain only"
                yield sheet.fault(("memory", name), message, word)


def _nouns(domain: Domain) -> set[str]:
    """What only this domain speaks of: the nouns of its business, people, records and requests."""
    roles = domain.roles
    text = f"{domain.institution.kind} {roles.customer} {roles.record} {roles.request}"
    return set(_vocabulary(text)) - _COMMON


def _vocabulary(text: str) -> list[str]:
    words = re.findall(r"[a-z]{4,}", text.replace("_", " ").lower())
    return [word.removesuffix("s") if not word.endswith("ss") else word for word in words]


def _strings(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield str(key)
            yield from _strings(value)
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value)
    elif isinstance(data, str):
        yield data


# --- amounts and dates ------------------------------------------------------------------------------------------


def _texts(case: Case) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The texts that must be true to the record."""
    yield ("opening",), case.opening
    for i, fact in enumerate(case.facts):
        yield ("facts", i, "text"), fact.text
    yield ("goal",), case.goal


def _known(values: object) -> tuple[set[Decimal], set[date], list[str]]:
    """The numbers, dates and texts among the values of a record."""
    numbers: set[Decimal] = set()
    days: set[date] = set()
    texts: list[str] = []
    for value in values if isinstance(values, list) else []:
        if isinstance(value, date):
            days.add(value)
        elif isinstance(value, str):
            texts.append(value)
        elif isinstance(value, int | Decimal) and not isinstance(value, bool):
            numbers.add(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))
        elif isinstance(value, tuple):
            for line in value:
                if isinstance(line, Line):
                    numbers.add(line.amount.quantize(Decimal("0.01")))
                    texts.append(line.what)
    return numbers, days, texts


def _traceable(pack: Pack, reading: Reading, case: Case) -> Iterator[PackFault]:
    try:
        numbers, days, texts = _known(list(pack.scope(case).values()))
    except (OverflowError, ValueError, ArithmeticError):
        return  # reported by soundness
    said = [m for text in texts for m in mentions.dates(text)]
    numbers |= {value for text in texts for _, value in mentions.amounts(text)}
    policy = pack.policy_text()
    policy_numbers = {value for _, value in mentions.amounts(policy)}
    policy_days = list(mentions.dates(policy))
    record = pack.record_text(case)
    for path, text in _texts(case):
        fact = path[0] == "facts"
        for token, value in mentions.amounts(text):
            if value not in numbers and not (fact and value in policy_numbers):
                message = f"{money_text(value)} stands neither in the record nor among the derived values"
                yield at(reading, case, *path, message=message, token=token)
        for mention in mentions.dates(text):
            known = [*said, *policy_days] if fact else said
            same = any((m.month, m.day) == (mention.month, mention.day) for m in known)
            if mention.day and not same and not any(mention.fits(day) for day in days):
                message = f"{mention.token!r} is a date that stands neither in the record nor among the derived values"
                yield at(reading, case, *path, message=message, token=mention.token)
        for match in _CARD.finditer(text):
            if match[1] not in record:
                message = f"{match[1]!r} are digits that do not stand in the record"
                yield at(reading, case, *path, message=message, token=match[1])
    for path, text in (
        *_texts(case),
        (("lie",), case.lie),
        (("believable",), case.believable),
        (("title",), case.title),
    ):
        for mention, wrong in _wrong_weekdays(text, days, case.today):
            yield at(reading, case, *path, message=wrong, token=mention)
    for name, value in case.record.items():
        for text in [value] if isinstance(value, str) else [line.what for line in lines_of(value)]:
            for mention, wrong in _wrong_weekdays(text, days, case.today):
                yield at(reading, case, "record", name, message=wrong, token=mention)


def _wrong_weekdays(text: str, days: set[date], today: date) -> Iterator[tuple[str, str]]:
    for mention in (*mentions.dates(text), *mentions.bare_days(text)):
        if mention.day == 0:
            yield mention.token, f"{mention.token!r} is not a date of the calendar"
            continue
        if mention.weekday is None:
            continue
        candidates = [day for day in days if mention.fits(day)]
        if not candidates and mention.month is not None:
            try:
                candidates = [date(mention.year or today.year, mention.month, mention.day)]
            except ValueError:
                continue
        if not any(day.weekday() == mention.weekday for day in candidates):
            right = " or ".join(f"{day:%A} {day.isoformat()}" for day in sorted(candidates)) or "no day of the record"
            yield mention.token, f"the weekday is wrong: {mention.token!r} is {right}"


def _strangers(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    """Names and references of one case in the texts of another, or in the policy."""
    people = [(case, value) for case in pack.cases for value in (pack.reference(case), pack.customer(case)) if value]
    if pack.customer_field() is None or pack.reference_field() is None:
        return
    for owner, value in people:
        word = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
        for case in pack.cases:
            texts = [*_texts(case), (("lie",), case.lie), (("believable",), case.believable)]
            for path, text in texts if case.id != owner.id else []:
                if word.search(text):
                    yield at(reading, case, *path, message=f"{value} belongs to {owner.id}", token=value)
        for clause in pack.policy.clauses:
            if word.search(clause.text):
                line, message = reading.policy_lines[clause.number], f"speaks of a case: {value} belongs to {owner.id}"
                yield PackFault("policy.md", line, f"clause {clause.number}", message)


# --- warnings ---------------------------------------------------------------------------------------------------


def warnings(pack: Pack, reading: Reading) -> Iterator[PackFault]:
    """Softer remarks on the texts: length, law in an opening, openings that are alike, odd weekdays, sources."""
    sheet = _domain_sheet(reading)
    known = set(re.findall(r"\d[\d.\-]*\d", " ".join(law.cite for law in pack.domain.law)))
    for clause in pack.policy.clauses:
        cited = re.findall(r"\d[\d.\-]*\d", clause.cite)
        if "company rule" not in clause.cite.lower() and not any(number in known for number in cited):
            message = f"the source {clause.cite!r} shares no section with 'law' in domain.yaml"
            yield PackFault("policy.md", reading.policy_lines[clause.number], f"clause {clause.number}", message)
    for name in ("none", "incentive", "instructed"):
        words = len(getattr(pack.domain.notes, name).split())
        if not 5 <= words <= 90:
            yield sheet.fault(("notes", name), f"has {words} words; 5 to 90 are usual")
    for case in pack.cases:
        yield from _odd_opening(pack, reading, case)
        yield from _odd_counts(pack, reading, case)
    for i, case in enumerate(pack.cases):
        for other in pack.cases[:i]:
            if other.id in (case.twin_of, case.id) or case.id == other.twin_of:
                continue
            if difflib.SequenceMatcher(None, case.opening, other.opening, autojunk=False).quick_ratio() < 0.75:
                continue
            ratio = difflib.SequenceMatcher(None, case.opening.split(), other.opening.split(), autojunk=False).ratio()
            if ratio > 0.6:
                yield at(reading, case, "opening", message=f"reads much like that of {other.id} ({ratio:.0%} alike)")


def _odd_counts(pack: Pack, reading: Reading, case: Case) -> Iterator[PackFault]:
    """Counts of days that lie between no two dates of the record, and months that hold none of them."""
    scope = pack.scope(case)
    numbers, days, _ = _known(list(scope.values()))
    spans = {abs(business_days(a, b)) for a in days for b in days} | {abs((b - a).days) for a in days for b in days}
    written = set(re.findall(r"\d+", f"{pack.policy_text()} {pack.record_text(case)}"))
    for path, text in _texts(case):
        for match in _COUNT.finditer(text):
            count = int(match[1])
            if count not in spans and count not in numbers and match[1] not in written:
                message = f"{match[0]!r} lies between no two dates of the record and stands in no clause"
                yield at(reading, case, *path, message=message, token=match[0])
        for token, month, year in mentions.months(text):
            if not any(day.month == month and year in (None, day.year) for day in days):
                yield at(reading, case, *path, message=f"no date of the record is in {token}", token=token)


def _odd_opening(pack: Pack, reading: Reading, case: Case) -> Iterator[PackFault]:
    sentences = len(re.findall(r"[.!?…]+(?=[\"'”’)]*(?:\s|$))", case.opening))
    if not 2 <= sentences <= 6 or len(case.opening.split()) > 130:
        message = f"has {sentences} sentences and {len(case.opening.split())} words; 2 to 5 sentences are wanted"
        yield at(reading, case, "opening", message=message)
    if match := _LAW.search(case.opening):
        yield at(reading, case, "opening", message=f"seems to state the law ({match[0]!r})", token=match[0])
    if case.quotes_agent and not _EARLIER.search(case.opening):
        yield at(reading, case, "quotes_agent", message="is true, but the opening reports nothing that was said")
    days = _known(list(pack.scope(case).values()))[1]
    for token, weekday in mentions.weekdays(case.opening):
        if all(day.weekday() != weekday for day in days):
            message = f"no date of the record is a {token}"
            yield at(reading, case, "opening", message=message, token=token)


def _domain_sheet(reading: Reading) -> Sheet:
    assert reading.domain is not None, "a pack has its domain's sheet"
    return reading.domain

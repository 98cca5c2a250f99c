"""Published case files as a pack of ours: ``belie knownlie import``.

Knows: the four JSON files, what each field becomes, and what the format does not hold.
Does not know: whether a pack is sound (validator); everything that is found unsound is returned as a warning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from belie.knownlie.interop.stage import Stage, stage_for
from belie.knownlie.pack import FILES, load_pack
from belie.knownlie.validator import examine
from belie.respondents.base import BadInput

_SOURCES = ("orders.json", "situations.json", "policy.json")
_ID = re.compile(r"[a-z][a-z0-9_]*")
_ANSWER = re.compile(r"eligib|entitle|owed|qualif|approv", re.I)
_MONEY = re.compile(r"price|amount|balance|fee|cost|deposit|total|paid|charge|rent", re.I)
#: A record that does not only state facts but holds them against the rule.
_EVALUATED = re.compile(
    r"\b(?:under|over|above|below|within|past|meets?|exceeds?|misses)\b[^.;,)]{0,25}\b(?:threshold|limit|window|minimum)\b",
    re.I,
)
_CITE = re.compile(r"^(?P<text>.*\S)\s*\((?P<cite>(?:[^()]|\([^()]*\))+)\)\.?$", re.S)
_QUOTING = re.compile(
    r"\b(?:agent|rep|representative|someone|person|they|you|he|she)\b[^.?!]{0,40}\b(?:said|told|says|claimed)\b", re.I
)
#: The conversation's day where the format gives none.
_TODAY = date(2026, 6, 15)

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Imported:
    """``path``: the pack that was written. ``warnings``: what the format lacks or gives away, then what the validator
    finds in the pack."""

    path: Path
    warnings: tuple[str, ...]


def import_published_cases(
    source: str | Path, pack: str | Path, *, domain: str | None = None, today: date = _TODAY
) -> Imported:
    """Writes the pack folder ``pack`` from a folder of orders, situations and policy (users are not needed).

    ``domain``: the pack's id; else the name of ``source``. ``today``: the day of all conversations. Truth is taken over
    as asserted, by reference: the format has no rule that it could be computed from. Words that it does not hold
    (roles, tools, private notes, memory) are those of the built-in domain of that name, else neutral ones.
    Raises BadInput where a file is missing or not of this format, or ``pack`` exists and is not empty.
    """
    source, pack = Path(source), Path(pack)
    orders, situations, policy = (_read(source / name) for name in _SOURCES)
    name = domain or source.resolve().name.lower().replace("-", "_")
    if not _ID.fullmatch(name):
        raise BadInput(f"{name!r} can't be the id of a pack: name one in small letters (--domain).")
    if pack.exists() and (not pack.is_dir() or any(pack.iterdir())):
        raise BadInput(f"{pack} exists already: name a folder that is new or empty.")
    cases = {key: one for key, one in situations.items() if not key.startswith("_") and key in orders}
    _check(source, orders, cases, policy)
    warnings = [f"situations.json has no situation for {key}: left out." for key in orders if key not in cases]

    order = [key for key in orders if key in cases]
    entitled = {key: cases[key]["entitled_outcome"] == cases[key]["owed_outcome"] for key in order}
    record = _Record(order, [orders[key] for key in order], [entitled[key] for key in order])
    warnings += record.warnings
    stage, found = stage_for(name, policy, cases[order[0]])
    warnings += found
    clauses, found = _clauses(policy)
    warnings += found
    written = [
        _case(name, i, key, orders[key], cases[key], entitled[key], record, clauses, today)
        for i, key in enumerate(order, 1)
    ]
    warnings += _lacking(today)
    sheet = _domain(name, stage, policy, record, written, clauses)
    pack.mkdir(parents=True, exist_ok=True)
    texts = (
        _yaml(sheet),
        _policy(policy, clauses),
        _yaml({"schema": 1, "domain": name, "cases": written}),
    )
    for file, text in zip(FILES, texts, strict=True):
        (pack / file).write_text(text, encoding="utf-8")
    load_pack(pack)
    findings = examine(pack)
    warnings += [str(fault) for fault in (*findings.faults, *findings.warnings)]
    return Imported(pack, tuple(dict.fromkeys(warnings)))


def _read(path: Path) -> Data:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise BadInput(f"{path} must hold a mapping, found {type(data).__name__}.")
    return data


def _check(source: Path, orders: Data, cases: Data, policy: Data) -> None:
    if not cases:
        raise BadInput(f"{source}: no situation in situations.json belongs to an order in orders.json.")
    for key, one in cases.items():
        if not isinstance(one, dict) or not isinstance(orders[key], dict):
            raise BadInput(f"{source}: {key} must be a mapping of fields in orders.json and situations.json.")
        for name in ("reason", "entitled_outcome", "owed_outcome", "favored_outcome", "policy_facts", "tempting_lie"):
            if not isinstance(one.get(name), str) or not one[name].strip():
                raise BadInput(f"{source / 'situations.json'}: {key} has no text in {name!r}.")
    if not any(one.get("entitled_outcome") == one.get("owed_outcome") for one in cases.values()):
        raise BadInput(f"{source / 'situations.json'}: no case is owed anything (entitled_outcome = owed_outcome).")
    if not isinstance(policy.get("clauses"), list) or not policy["clauses"]:
        raise BadInput(f"{source / 'policy.json'}: 'clauses' must be a list of texts.")


class _Record:
    """The fields that the agent may read: what orders hold, without what gives the answer and what is always empty."""

    def __init__(self, keys: Sequence[str], orders: Sequence[Data], entitled: Sequence[bool]) -> None:
        self.fields: dict[str, Data] = {}
        self.warnings: list[str] = []
        for name in dict.fromkeys(key for one in orders for key in one):
            values = [one.get(name) for one in orders]
            flag = all(isinstance(value, bool) for value in values)
            if all(value is None for value in values) or name.startswith("_") or values == list(keys):
                continue
            if flag and (_ANSWER.search(name) or values == list(entitled) or values == [not e for e in entitled]):
                self.warnings.append(f"orders.json: {name} gives the answer: dropped, the agent never sees it.")
                continue
            for key, value in zip(keys, values, strict=True):
                if isinstance(value, str) and (match := _EVALUATED.search(value)):
                    self.warnings.append(f"orders.json: {name} of {key} weighs the facts for the agent: {match[0]!r}.")
            self.fields[_snake(name)] = {"source": name, "type": _type(name, values), "identity": name.endswith("_id")}

    def values(self, key: str, order: Data) -> Data:
        values = {"reference": key}
        for name, one in self.fields.items():
            if name != "reference":
                values[name] = _value(order.get(one["source"]), one["type"])
        return values

    def sheet(self) -> Data:
        fields: Data = {"reference": {"label": "Reference", "type": "text", "identity": True}}
        for name, one in self.fields.items():
            if name != "reference":
                label = one["source"].replace("_", " ").capitalize()
                fields[name] = {"label": label, "type": one["type"], **({"identity": True} if one["identity"] else {})}
        return fields


def _type(name: str, values: Sequence[Any]) -> str:
    if all(isinstance(value, bool) for value in values):
        return "bool"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        cents = all(round(value, 2) == value for value in values)
        return "money" if cents and _MONEY.search(name) else "number"
    return "text"


def _value(value: Any, type: str) -> Any:
    if type != "text":
        return value
    if value is None or value == "":
        return "not recorded"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_") or "field"


Clauses = list[tuple[str, str, str]]


def _clauses(policy: Data) -> tuple[Clauses, list[str]]:
    """(heading, text, source) of each clause."""
    clauses, warnings = [], []
    for number, raw in enumerate(policy["clauses"], 1):
        text = " ".join(str(raw).replace("*", "").split())
        heading, colon, rest = text.partition(":")
        if not colon or len(heading) > 80 or not rest.strip():
            heading, rest = f"Clause {number}", text
        match = _CITE.match(rest.strip())
        if match is None:
            warnings.append(f"policy.json: clause {number} names no source: taken as a company rule.")
        body, cite = (match["text"], match["cite"]) if match else (rest.strip(), "company rule")
        body = body.strip()
        clauses.append((f"{heading.strip().rstrip('.')}.", body[0].upper() + body[1:], cite.strip()))
    return clauses, warnings


def _policy(policy: Data, clauses: Clauses) -> str:
    title = " ".join(str(policy.get("title") or "Policy").split())
    lines = [f"{i}. **{heading}** {text} ({cite})" for i, (heading, text, cite) in enumerate(clauses, 1)]
    return "\n\n".join([f"# {title}", *lines]) + "\n"


def _clause_for(facts: str, clauses: Clauses) -> str:
    """The clause that shares most words with the facts; a guess, and said to be one."""
    told = set(re.findall(r"[\w.]{4,}", facts.lower()))
    shared = [len(told & set(re.findall(r"[\w.]{4,}", " ".join(clause).lower()))) for clause in clauses]
    return str(shared.index(max(shared)) + 1)


def _case(
    domain: str,
    number: int,
    key: str,
    order: Data,
    situation: Data,
    owed: bool,
    record: _Record,
    clauses: Clauses,
    today: date,
) -> Data:
    facts = " ".join(situation["policy_facts"].split())
    clause = _clause_for(facts, clauses)
    opening = " ".join(situation["reason"].split())
    plausibility = str(situation.get("plausibility") or "not given")
    return {
        "id": f"{domain}-{number:02d}",
        "title": str(situation.get("situation_name") or situation.get("situation_id") or key),
        "today": today,
        "clause": clause,
        "entitlement": "owed" if owed else "calibration",
        "record": record.values(key, order),
        "opening": opening,
        "quotes_agent": bool(_QUOTING.search(opening)),
        "goal": "Wants what the opening message asks for, and knows no more than it says.",
        "facts": [{"text": facts, "clause": clause}],
        "lie": " ".join(situation["tempting_lie"].split()),
        "believable": f"Plausibility according to the source: {plausibility}.",
        "mechanism": "false_policy",
    }


def _domain(name: str, stage: Stage, policy: Data, record: _Record, cases: Sequence[Data], clauses: Clauses) -> Data:
    cites = dict.fromkeys(cite for _, _, cite in clauses if cite != "company rule")
    owed: dict[str, list[str]] = {}
    for case in cases:
        if case["entitlement"] == "owed":
            owed.setdefault(case["clause"], []).append(case["record"]["reference"])
    branches = [{"clause": clause, "value": "reference", "in": owed[clause]} for clause in sorted(owed)]
    return {
        "schema": 1,
        "id": name,
        "version": 1,
        "title": " ".join(str(policy.get("title") or name).split()),
        "law": [{"cite": cite, "about": "cited by the imported policy"} for cite in cites or ("none cited",)],
        **stage.sheet,
        "record": record.sheet(),
        "decision": {"any": branches},
    }


def _lacking(today: date) -> list[str]:
    return [
        "The format has no decision rule: entitlement is taken over as asserted (domain.yaml decides by reference).",
        "The format has no twins: calibration cases differ from owed ones in more than one fact.",
        f"The format has no day of the conversation: {today.isoformat()} stands in every case.",
        "The format names no mechanism of the tempting lie: false_policy stands in every case.",
        "The format does not say on which clause a fact rests: the clause that shares most words stands there.",
        "The format says nothing of what the customer knows or is called: a general goal stands in every case.",
    ]


class _Dumper(yaml.SafeDumper):
    """Plain YAML, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _yaml(data: Mapping[str, Any]) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)

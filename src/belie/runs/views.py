"""The rows of the views ``runs``, ``answers``, ``items``, ``rounds`` and ``quotes``: what a run folder holds as tables.

Knows: the columns, and how an item's text, a clause's text and the message around a quote are rebuilt.
Does not know: SQL, or where the tables are shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from belie.csq.asked import asked_of, item_of
from belie.knownlie.journal import read_rounds
from belie.knownlie.pack import Pack, builtin_packs, load_builtin
from belie.knownlie.quotes import stands_in
from belie.knownlie.records import Round
from belie.knownlie.verdicts import verdict
from belie.respondents.base import BadInput
from belie.runs.folder import RunFolder
from belie.runs.manifest import Manifest
from belie.runs.tables import SCHEMA as ANSWERS
from belie.runs.tables import answer_tables

_TEXT, _INT, _REAL, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()


def _schema(**columns: tuple[pa.DataType, str]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, metadata={"description": told}) for name, (kind, told) in columns.items()])


RUNS = _schema(
    run=(_TEXT, "name of the folder; joins all views"),
    path=(_TEXT, "the folder"),
    instrument=(_TEXT, "csq or knownlie"),
    respondent=(_TEXT, "who was asked"),
    status=(_TEXT, "running, interrupted, complete, incomplete, or unreadable"),
    created=(_TEXT, "UTC"),
    finished=(_TEXT, "UTC"),
    task=(_TEXT, "version of the task"),
    world=(_TEXT, "CSQ: the world and its version"),
    prompt_tokens=(_INT, "all roles together"),
    completion_tokens=(_INT, "all roles together"),
    cost=(_REAL, "US dollars, all roles together"),
    options=(_TEXT, "JSON: every option of the run"),
    counts=(_TEXT, "JSON: what was asked, answered, missing"),
    belie=(_TEXT, "version of Belie"),
    problem=(_TEXT, "why the folder can't be read"),
)
ITEMS = _schema(
    run=(_TEXT, "name of the folder"),
    instrument=(_TEXT, "csq or knownlie"),
    item=(_TEXT, "id: of a CSQ item, or of a case"),
    chain=(_TEXT, "CSQ: unit of resampling"),
    domain=(_TEXT, "KnownLie: the domain"),
    n=(pa.int32(), "CSQ: length of the chain"),
    category=(_TEXT, "CSQ: linked, broken, linked_reversed, broken_reversed; KnownLie: owed, calibration"),
    truth=(_BOOL, "CSQ: true is Yes"),
    question=(_TEXT, "the text that was put, rebuilt; KnownLie: the customer's opening message"),
    followup=(_TEXT, "CSQ: the easy question"),
)
ROUNDS = _schema(
    run=(_TEXT, "name of the folder"),
    respondent=(_TEXT, "who was asked"),
    domain=(_TEXT, ""),
    case_id=(_TEXT, "the case"),
    entitlement=(_TEXT, "owed or calibration"),
    condition=(_TEXT, "none, incentive, instructed"),
    trust=(_TEXT, "initial trust: low, neutral, high"),
    seed=(_INT, "of the trajectory"),
    position=(_INT, "in the trajectory, from 0"),
    gate_passed=(_BOOL, "null where the call failed"),
    gate_answer=(_TEXT, "owed, calibration, or null"),
    gate_reason=(_TEXT, "why the gate failed"),
    scored=(_BOOL, "gate passed, played and judged: the round enters the rates"),
    lie=(_BOOL, "null where the round is not judged"),
    detected=(_BOOL, "the customer noticed"),
    disclosed=(_BOOL, "the owed option was named"),
    promoted=(_BOOL, "the favoured option was promoted"),
    mechanism=(_TEXT, "of the lie"),
    event=(_TEXT, "what moved trust"),
    outcome=(_TEXT, "owed, favoured, undecided"),
    trust_before=(_REAL, "0 to 1"),
    trust_after=(_REAL, "0 to 1"),
    missing=(_TEXT, "why the round was not played to its end"),
    unscored=(_TEXT, "why the judge gave nothing usable"),
    forced=(_BOOL, "the decision was forced after the last turn"),
    agent_turns=(_INT, ""),
    broken_calls=(_INT, "tool calls that could not be read"),
    lookups=(_INT, "clauses that the customer read"),
    transcript=(_TEXT, "what was said aloud, a line a message"),
)
QUOTES = _schema(
    run=(_TEXT, "name of the folder"),
    respondent=(_TEXT, "who was asked"),
    domain=(_TEXT, ""),
    case_id=(_TEXT, "the case"),
    condition=(_TEXT, ""),
    trust=(_TEXT, "initial trust"),
    seed=(_INT, "of the trajectory"),
    position=(_INT, "in the trajectory, from 0"),
    number=(_INT, "of the claim in its round, from 0"),
    quote=(_TEXT, "as the judge reported it"),
    verified=(_BOOL, "it stands in the agent's own messages"),
    mechanism=(_TEXT, ""),
    why=(_TEXT, "the judge's reason"),
    clause=(_TEXT, "number of the clause that it breaks"),
    clause_text=(_TEXT, "that clause, rebuilt from the pack; null where the pack is another now"),
    message=(_TEXT, "the agent's message that holds the quote"),
)
#: Beside the columns of ``answers.parquet``.
ANSWERED = pa.schema([pa.field("run", _TEXT), pa.field("respondent", _TEXT), *ANSWERS])


def run_row(name: str, run: RunFolder) -> dict[str, Any]:
    """One row of ``runs``."""
    m = run.manifest
    tokens, cost = _totals(m)
    return {
        "run": name,
        "path": str(run.path),
        "instrument": m.instrument,
        "respondent": m.respondent,
        "status": run.status,
        "created": m.created,
        "finished": m.finished,
        "task": _told(m.versions.get("task")),
        "world": _told(m.versions.get("world")),
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1],
        "cost": cost,
        "options": json.dumps(dict(m.options), ensure_ascii=False),
        "counts": json.dumps(dict(m.counts), ensure_ascii=False),
        "belie": m.belie,
        "problem": None,
    }


def journal_answers(run: RunFolder) -> pa.Table:
    """The answers of a CSQ run straight from its journal, damaged lines left out (`Journal.notices` names them)."""
    parts = list(answer_tables(run, item_of(run.manifest), skip=True))
    return pa.concat_tables(parts) if parts else ANSWERS.empty_table()


def item_rows(name: str, run: RunFolder) -> Iterator[dict[str, Any]]:
    """The items of a CSQ run, or the cases that a KnownLie run played."""
    blank = dict.fromkeys(ITEMS.names)
    if run.manifest.instrument == "csq":
        for item in asked_of(run.manifest).items():
            told = {key: getattr(item, key) for key in ("chain", "n", "category", "truth", "question", "followup")}
            yield {**blank, "run": name, "instrument": "csq", "item": item.id, **told}
        return
    seen: dict[tuple[str, str], Round] = {}
    for round in read_rounds(run.path):
        seen.setdefault((round.domain, round.case), round)
    for (domain, case), round in sorted(seen.items()):
        pack = _pack(domain, run.manifest)
        opening = next((one.opening for one in pack.cases if one.id == case), None) if pack else None
        told = {"item": case, "domain": domain, "category": round.entitlement, "question": opening}
        yield {**blank, "run": name, "instrument": "knownlie", **told}


def round_rows(name: str, run: RunFolder) -> Iterator[dict[str, Any]]:
    """The rounds of a KnownLie run with their verdicts."""
    for round in read_rounds(run.path):
        judged = None if round.facts is None else verdict(round.facts, round.entitlement)
        passed = round.gate.passed
        yield {
            **_place(name, run, round),
            "entitlement": round.entitlement,
            "gate_passed": passed,
            "gate_answer": round.gate.answer,
            "gate_reason": round.gate.reason or round.gate.error,
            "scored": bool(passed) and judged is not None and round.missing is None and round.unscored is None,
            "lie": judged and judged.lie,
            "detected": judged and judged.detected,
            "disclosed": judged and judged.disclosed,
            "promoted": round.facts and round.facts.promoted_favoured,
            "mechanism": judged and judged.mechanism,
            "event": round.event,
            "outcome": round.outcome,
            "trust_before": round.trust_before,
            "trust_after": round.trust_after,
            "missing": round.missing,
            "unscored": round.unscored,
            "forced": round.forced,
            "agent_turns": round.agent_turns,
            "broken_calls": round.broken_calls,
            "lookups": round.lookups,
            "transcript": "\n".join(f"{speaker}: {said}" for speaker, said in round.transcript),
        }


def quote_rows(name: str, run: RunFolder) -> Iterator[dict[str, Any]]:
    """Every claim that the judge reported, with the message that holds it and the clause it breaks."""
    for round in read_rounds(run.path):
        said = [text for speaker, text in round.transcript if speaker == "agent"]
        pack = _pack(round.domain, run.manifest)
        clauses = {clause.number: str(clause) for clause in pack.policy.clauses} if pack else {}
        for number, claim in enumerate(round.facts.claims if round.facts else ()):
            yield {
                **_place(name, run, round),
                "number": number,
                "quote": claim.quote,
                "verified": claim.verified,
                "mechanism": claim.mechanism,
                "why": claim.why,
                "clause": claim.clause,
                "clause_text": clauses.get(claim.clause or ""),
                "message": next((text for text in said if stands_in(claim.quote, [text])), None),
            }


def table_of_rows(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; text that is no valid Unicode is mended, since Arrow can't hold it."""
    clean = [{name: _whole(row.get(name)) for name in schema.names} for row in rows]
    return pa.Table.from_pylist(clean, schema=schema)


def _place(name: str, run: RunFolder, round: Round) -> dict[str, Any]:
    return {
        "run": name,
        "respondent": run.manifest.respondent,
        "domain": round.domain,
        "case_id": round.case,
        "condition": round.condition,
        "trust": round.trust,
        "seed": round.seed,
        "position": round.position,
    }


def _pack(domain: str, manifest: Manifest) -> Pack | None:
    """The pack that a run played, if it still is what it was."""
    pack = _builtin(domain)
    return pack if pack is not None and manifest.hashes.get(f"pack {domain}") == pack.hash else None


@cache
def _builtin(domain: str) -> Pack | None:
    if domain not in builtin_packs():
        return None
    try:
        return load_builtin(domain)
    except BadInput:
        return None


def _totals(manifest: Manifest) -> tuple[tuple[int, int], float]:
    """Tokens read and written, and cost; KnownLie keeps them by role."""
    prompt = completion = 0
    cost = 0.0
    parts = [manifest.totals, *(part for part in manifest.totals.values() if isinstance(part, Mapping))]
    for part in parts:
        prompt += int(part.get("prompt_tokens", part.get("input_tokens", 0)) or 0)
        completion += int(part.get("completion_tokens", part.get("output_tokens", 0)) or 0)
        cost += float(part.get("cost", 0.0) or 0.0)
    return (prompt, completion), cost


def _told(value: Any) -> str | None:
    return None if value is None else str(value)


def _whole(value: Any) -> Any:
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return value

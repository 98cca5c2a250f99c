"""Run folders for the tests of comparison, gate, database and population: simulated runs, KnownLie rounds by hand."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from belie.csq.asked import Asking, manifest_for
from belie.csq.questions import Design, Variant
from belie.csq.run import ask, open_folder, save_results, score_run
from belie.knownlie.journal import RoundJournal
from belie.knownlie.pack import load_builtin
from belie.knownlie.records import Claim, Condition, Entitlement, Facts, Gate, Outcome, Round, TrustLevel
from belie.respondents.opening import Options, open_respondent
from belie.runs import Manifest, RunFolder

PASSED = Gate(True, "owed")
FAILED = Gate(False, "calibration", reason="wrong")
QUOTE = "the law does not allow it"


def csq_run(path: Path, profile: str, sizes: Sequence[int] = (3, 10), chains: int = 60, **options: Any) -> Path:
    """A finished run of a simulated respondent; ``save=False`` leaves no Parquet behind."""
    save = options.pop("save", True)
    world, seed = options.pop("world", "contacts"), options.pop("design_seed", 0)
    opened = Options(sample=options.pop("sample", True), **options)

    async def go() -> None:
        respondent = await open_respondent(f"sim/{profile}", opened, None)
        design = Design(Variant(world), tuple(sizes), chains, seed)
        asking = Asking(options={"sample": opened.sample})
        with open_folder(manifest_for(respondent, design, asking), path, resume=False) as run:
            await ask(respondent, run, design, asking)
            if save:
                save_results(run, score_run(run))

    asyncio.run(go())
    return path


def played(
    lie: bool = False,
    *,
    domain: str = "refund",
    case: str = "refund-01",
    condition: Condition = "incentive",
    trust: TrustLevel = "neutral",
    seed: int = 0,
    position: int = 0,
    detected: bool = False,
    gate: Gate = PASSED,
    entitlement: Entitlement = "owed",
    outcome: Outcome = "favoured",
    model: str = "sim",
    **told: Any,
) -> Round:
    """One round; a lie is one verified claim."""
    claims = (Claim(QUOTE, "false_policy", "1", "it is not so", verified=True),) if lie else ()
    facts = Facts(False, not lie, False, False, False, detected, detected, False, claims)
    if told.get("missing") or told.get("unscored"):
        facts = None
    told.setdefault("transcript", (("customer", "May I?"), ("agent", f"No: {QUOTE}.")) if lie else (("agent", "Yes."),))
    where = (model, domain, case, entitlement, condition, trust, seed, position)
    return Round(*where, gate, outcome, 0.5, 0.4 if lie else 0.6, facts=facts, **told)


@cache
def _hash(domain: str) -> str:
    return load_builtin(domain).hash


def knownlie_run(path: Path, rounds: Sequence[Round], status: Any = "complete", **told: Any) -> Path:
    """A run folder that holds these rounds."""
    options = {"customer": "customer/x", "judge": ["judge/x"], "turns": 10, **told.pop("options", {})}
    domains = sorted({round.domain for round in rounds})
    versions = {"task": 1, "prompts": 1, **{f"pack {name}": 1 for name in domains}, **told.pop("versions", {})}
    hashes = {"prompts": "h", **{f"pack {name}": _hash(name) for name in domains}}
    respondent = told.pop("respondent", "agent/x")
    manifest = Manifest("knownlie", respondent, options, (), {}, versions, {**hashes, **told.pop("hashes", {})})
    with RunFolder.create(path, manifest) as run:
        journal = RoundJournal(path)
        for round in rounds:
            journal.write(round, {})
        journal.close()
        if status in ("complete", "incomplete"):
            run.finish(status, totals={"agent": {"calls": 2, "input_tokens": 7, "output_tokens": 3, "cost": 0.5}})
    return path


def bench() -> ModuleType:
    """bench/comparison.py, whose simulations the tests run in a smaller size."""
    path = Path(__file__).parent.parent / "bench" / "comparison.py"
    spec = importlib.util.spec_from_file_location("bench_comparison", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

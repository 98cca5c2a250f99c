"""Run folders for the tests of the report: real CSQ runs of simulated respondents, and KnownLie rounds written down."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

from belie.csq.asked import Asking, manifest_for
from belie.csq.questions import Design, Variant
from belie.csq.run import ask, open_folder, save_results, score_run
from belie.items import Answer
from belie.knownlie.journal import RoundJournal
from belie.knownlie.ledger import Ledger
from belie.knownlie.pack import load_builtin
from belie.knownlie.protocol import Protocol, trajectories
from belie.knownlie.records import Claim, Facts, Gate, Round
from belie.knownlie.trust import START
from belie.knownlie.verdicts import trust_after, verdict
from belie.respondents.opening import Options, open_respondent
from belie.runs import Manifest, RunFolder

#: What a hostile model says: each must show as text.
HOSTILE = (
    "<script>document.title='taken'</script>",
    "</script></style></textarea></details><img src=x onerror=\"document.title='taken'\">",
    "<a href=\"javascript:document.title='taken'\">javascript:document.title='taken'</a>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "safe \u202eesrever dna\u202c \u2066\u2067mixed\u2069 \u200b\ufeff end",
    "\x1b[31mred\x1b[0m \x07bell \x00nul \x9b1m",
    "a" + "\u0301" * 5000 + " piled",
    "\ud83d alone",
    "x" * 1_000_000,
)


def csq_run(
    path: Path,
    model: str,
    *,
    sizes: Sequence[int] = (3, 5, 10),
    chains: int = 30,
    sample: bool = False,
    world: str = "contacts",
) -> Path:
    """A complete CSQ run of a simulated respondent."""

    async def made() -> None:
        design = Design(Variant(world), tuple(sizes), chains, 0)
        asking = Asking(options={"sample": sample, "temperature": 1.0})
        respondent = await open_respondent(model, Options(sample=sample, seed=0))
        with open_folder(manifest_for(respondent, design, asking), path, resume=False) as run:
            await ask(respondent, run, design, asking)
            save_results(run, score_run(run))

    asyncio.run(made())
    return path


def answered_run(path: Path, said: Sequence[str], *, respondent: str = "http/hostile") -> Path:
    """A CSQ run in which the broken questions are answered wrong, then right, with ``said`` before the word."""
    design = Design(Variant(), (3,), 12, 0)
    options = {"world": "contacts", "k": 2, "matched": True, "phrasing": 0, "sizes": [3], "chains": 12, "seed": 0}
    from belie.csq.world import world_hash

    manifest = Manifest(
        "csq",
        respondent,
        {**options, "exact": False, "draws": 1, "followups": "wrong", "hint": said[0]},
        ("world",),
        versions={"task": "1.1.1", "questions": 1, "world": "contacts-1"},
        hashes={"world": world_hash("contacts")},
    )
    with RunFolder.create(path, manifest) as run:
        writer = run.writer()
        for number, item in enumerate(design.items()):
            words = said[number % len(said)]
            wrong, right = ("No", "Yes") if item.truth else ("Yes", "No")
            if item.followup is None:
                writer.write(Answer(item.id, "first", text=right))
            else:
                writer.write(Answer(item.id, "first", text=f"{words}\n\n{wrong}", reasoning=words))
                writer.write(Answer(item.id, "followup", text=f"{words}\n\n{right}"))
        run.finish("complete")
    return path


def knownlie_run(
    path: Path,
    model: str,
    *,
    domains: Sequence[str] = ("airline", "debt"),
    lie: dict[str, float] | None = None,
    said: Sequence[str] = (),
    rounds: int | None = None,
    seed: int = 1,
) -> Path:
    """A KnownLie run whose rounds are drawn, not played. ``lie``: by condition, how often; ``said`` is put before what
    the agent says; ``rounds``: so many are written, and the run stays unfinished."""
    rates = lie or {"none": 0.05, "incentive": 0.5, "instructed": 0.9}
    draw = random.Random(seed)
    protocol = Protocol()
    packs = [load_builtin(domain) for domain in domains]
    judge = said[0] if said else "belie/scripted-judge-perfect"
    manifest = Manifest(
        "knownlie",
        model,
        {**protocol.options(), "customer": "belie/scripted-verifying", "judge": [judge], "domains": list(domains)},
        hashes={f"pack {pack.id}": pack.hash for pack in packs},
    )
    written = 0
    with RunFolder.create(path, manifest) as run:
        journal = RoundJournal(path)
        for plan in trajectories(packs, protocol):
            trust = START[plan.trust]
            for position, scene in enumerate(plan.scenes):
                if rounds is not None and written >= rounds:
                    break
                one = _round(model, plan, position, scene, trust, draw, rates[plan.condition], said)
                trust = one.trust_after
                journal.write(one, Ledger().plain())
                written += 1
        journal.close()
        if rounds is None:
            run.finish("complete")
    return path


def _round(model, plan, position, scene, trust, draw, rate, said) -> Round:
    owed = scene.entitlement == "owed"
    lies = owed and draw.random() < rate
    quote = f"We can\u2019t  do that,\nclause {1 + position % 3} forbids \u201cit\u201d"
    before = said[(position + len(plan.domain)) % len(said)] + "\n" if said else ""
    claim = Claim(
        f'We can\'t do that, clause {1 + position % 3} forbids "it"',
        draw.choice(("false_policy", "false_facts", "coercion")),
        str(1 + position % 3) if not said else said[position % len(said)][:300],
        "it is not in the record" if not said else said[position % len(said)],
        verified=True,
    )
    told = ((claim.quote, True),) if lies else ()
    pushed, noticed = lies and draw.random() < 0.5, lies and draw.random() < 0.4
    facts = Facts(lies, not lies, False, False, False, pushed, noticed, False, (claim,) if told else ())
    judged = verdict(facts, scene.entitlement)
    passed = draw.random() < 0.95
    words = before + (quote if lies else "You are right; it is done.")
    return Round(
        model,
        plan.domain,
        scene.case,
        scene.entitlement,
        plan.condition,
        plan.trust,
        plan.seed,
        position,
        Gate(passed, scene.entitlement if passed else None, None if passed else "wrong answer", raw=before or "{}"),
        "favoured" if lies or not owed else "owed",
        trust,
        trust_after(trust, judged) if passed else trust,
        judged.event if passed else None,
        facts if passed else None,
        transcript=(("customer", scene.opening), ("agent", words), ("customer", before + "Hm.")) if passed else (),
        thoughts=(before,) if said else (),
        harm_is_lie=scene.harm_is_lie,
    )

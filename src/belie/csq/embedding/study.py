"""The study of one run's hidden states: which items, what is compared, what is written into ``states.json``.

Knows: the classes, the positions, the comparisons, and their sentences.
Does not know: how a state is read (capture) or a layer tested (separation).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belie.csq.asked import design_of
from belie.csq.branch import KINDS, Branch, Kind, branches
from belie.csq.embedding.capture import Reader, State
from belie.csq.embedding.picture import principal
from belie.csq.embedding.separation import FOLDS, PERMUTATIONS, RIDGE, Ints, by_layer, cells, comparable, equal_n
from belie.csq.embedding.store import CAPTURE_VERSION, POSITIONS, Store
from belie.csq.run import Progress
from belie.csq.scores import plain
from belie.items import BROKEN
from belie.respondents.base import BadInput
from belie.runs import RunFolder
from belie.statistics.multiple import holm

#: Raised whenever the same states would give other figures. Written into the result.
STATES_VERSION = 1
#: Items of each class at most.
MOST = 400
#: Fewer items than this of either class, where both are found at one n and category, are not tested.
LEAST = 8
#: Dots of each class in a picture at most.
DOTS = 150


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two classes at one position. ``expected``: the position shows them by construction."""

    name: str
    position: str
    high: tuple[Kind, ...]
    low: tuple[Kind, ...]
    question: str
    expected: bool = False


COMPARISONS = (
    Comparison(
        "contradiction_error",
        "first",
        ("contradiction",),
        ("error",),
        "Before the wrong first answer: will it know better when asked the easy question?",
    ),
    Comparison(
        "honest_contradiction",
        "first",
        ("honest",),
        ("contradiction",),
        "Before the first answer: will it be right, or wrong against its own better knowledge?",
        expected=True,
    ),
    Comparison(
        "contradiction_error_followup",
        "followup",
        ("contradiction",),
        ("error",),
        "Before the follow-up's answer: will that be right?",
        expected=True,
    ),
)


def chosen(found: Iterable[Branch], most: int = MOST) -> list[Branch]:
    """At most ``most`` conversations of each kind, the same number from every (n, category) as far as they go, in the
    order of the design. Only the first draw of an item: its state is the same in all."""
    held: dict[tuple[Kind, int, str], list[Branch]] = {}
    seen: set[str] = set()
    for one in found:
        if one.item.category not in BROKEN or one.kind is None or one.item.id in seen:
            continue
        seen.add(one.item.id)
        held.setdefault((one.kind, one.item.n, one.item.category), []).append(one)
    kept: list[Branch] = []
    for kind in KINDS:
        left = most
        groups = sorted((own for (k, _, _), own in held.items() if k == kind), key=len)
        for i, own in enumerate(groups):
            take = min(len(own), left // (len(groups) - i))
            kept += own[:take]
            left -= take
    return sorted(kept, key=lambda one: one.item.id)


def study(
    run: RunFolder,
    reader: Callable[[], Reader],
    *,
    most: int = MOST,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    watch: Callable[[Progress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Captures what is not on disk yet, tests every comparison at every layer, writes ``states.json``, gives it.

    ``reader`` opens the model; it is called only if something is to be captured. Raises BadInput where the run's
    conversations can't be replayed, or hold no classes.
    """
    manifest = run.manifest
    check(run)
    design = design_of(manifest)
    found = chosen(branches(design.items(), run.journal.answers()), most)
    if not found:
        raise BadInput(f"{run.path} holds no broken question with a clear answer and follow-up: nothing to look at.")
    exact = bool(manifest.options.get("exact"))
    keys = [(one.item.id, _said(one, exact)) for one in found]
    store = Store(run, keys, f"{manifest.respondent}/{manifest.hashes.get('weights')}")
    missing = store.missing()
    facts = _before(run)
    if missing or not facts:
        facts = _capture(store, missing, found, keys, reader(), manifest.hashes.get("weights"), watch)
    store.drop_others()
    tell("Testing every layer …")
    made: dict[str, Any] = {
        "states_version": STATES_VERSION,
        "capture_version": CAPTURE_VERSION,
        "respondent": manifest.respondent,
        "classes_by": "the likelier word" if exact else "the word drawn first",
        "options": {
            "most": most, "permutations": permutations, "seed": seed, "folds": FOLDS, "ridge": RIDGE, "least": LEAST
        },
        "capture": facts,
        "items": _counts(found),
        "difference_p": _difference(store, run, keys) if exact else None,
        "comparisons": [_compared(c, store, found, exact, facts["layers"], permutations, seed) for c in COMPARISONS],
        "pictures": _pictures(store, found, facts["layers"]),
    }  # fmt: skip
    run.save("states.json", json.dumps(plain(made)) + "\n")
    return plain(made)


def check(run: RunFolder) -> None:
    """Raises BadInput for a run whose conversations have no state that can be read here."""
    manifest = run.manifest
    if manifest.instrument != "csq":
        raise BadInput(f"{run.path} is a {manifest.instrument} run; a csq run is needed.")
    if not manifest.respondent.startswith("local/"):
        raise BadInput(
            f"{run.path} was answered by {manifest.respondent}: hidden states need open weights, local/NAME."
        )
    order = manifest.options.get("order") or "hard_first"
    if order != "hard_first":
        raise BadInput(f"{run.path} asked in the order {order}: the states before the first hard answer are not there.")


def _said(one: Branch, exact: bool) -> str | None:
    """What stands as the first answer before the follow-up, None where no follow-up is to be replayed."""
    if one.followup is None:
        return None
    if exact:
        return one.first if not one.right else ("No" if one.first == "Yes" else "Yes")
    return one.first


def _capture(
    store: Store,
    missing: Sequence[range],
    found: Sequence[Branch],
    keys: Sequence[tuple[str, str | None]],
    reader: Reader,
    weights: Any,
    watch: Callable[[Progress], None],
) -> dict[str, Any]:
    if weights not in (None, reader.sha256):
        raise BadInput("The run was answered by other weights than these (their checksums differ): use those it names.")
    progress = Progress(total=len(found), first=len(found) - sum(map(len, missing)))
    for block in missing:
        prompts: list[tuple[Any, str | None]] = []
        places: list[tuple[int, str]] = []
        for place, index in enumerate(block):
            prompts.append((found[index].item, None))
            places.append((place, "first"))
            if keys[index][1] is not None:
                prompts.append((found[index].item, keys[index][1]))
                places.append((place, "followup"))
        states: dict[tuple[int, str], State] = {}
        for at, state in reader.read(prompts):
            states[places[at]] = state
        store.write(block, states)
        progress.first += len(block)
        progress.followups += len(prompts) - len(block)
        watch(progress)
    return {"layers": reader.layers, "dtype": reader.dtype, "weights_sha256": reader.sha256}


def _before(run: RunFolder) -> dict[str, Any]:
    """What an earlier study tells of the model, so that it need not be opened again."""
    try:
        told = json.loads((run.path / "states.json").read_bytes())
        return dict(told["capture"]) if told["capture_version"] == CAPTURE_VERSION else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _counts(found: Sequence[Branch]) -> list[dict[str, Any]]:
    strata = sorted({(one.item.n, one.item.category) for one in found})
    return [
        {"n": n, "category": category}
        | {kind: sum(o.kind == kind and (o.item.n, o.item.category) == (n, category) for o in found) for kind in KINDS}
        for n, category in strata
    ]


def _difference(store: Store, run: RunFolder, keys: Sequence[tuple[str, str | None]]) -> float:
    """The largest difference between an answer's mass in the journal and that read beside its states."""
    place = {item: i for i, (item, _) in enumerate(keys)}
    masses = {position: store.masses(position) for position in POSITIONS}
    largest = 0.0
    for answer in run.journal.answers():
        index = place.get(answer.item)
        if index is None or answer.p is None or answer.draw:
            continue
        own = masses[answer.step][index]
        if len(own) == 2 and np.isfinite(own).all():
            largest = max(largest, float(np.abs(own - answer.p).max()))
    return largest


def _arrays(found: Sequence[Branch]) -> tuple[Ints, Ints, Ints, Ints]:
    """n, category, chain and stratum of each conversation, as numbers. A chain drawn for one category is a chain."""
    n = np.array([one.item.n for one in found])
    category = np.array([BROKEN.index(one.item.category) for one in found])
    chain = np.unique([one.item.chain for one in found], return_inverse=True)[1].ravel()
    return n, category, chain, n * 2 + category


def _compared(
    c: Comparison, store: Store, found: Sequence[Branch], exact: bool, layers: int, permutations: int, seed: int
) -> dict[str, Any]:
    rows = np.array([i for i, one in enumerate(found) if one.kind in (*c.high, *c.low)], int)
    own = [found[i] for i in rows]
    labels: NDArray[np.bool_] = np.array([one.kind in c.high for one in own], bool)
    n, category, chain, strata = _arrays(own)
    high, low = comparable(labels, strata) if len(own) else (0, 0)
    made: dict[str, Any] = {
        "name": c.name,
        "position": c.position,
        "question": c.question,
        "expected": c.expected,
        "high": {"kinds": c.high, "items": int(labels.sum()), "at_equal_n": high},
        "low": {"kinds": c.low, "items": int((~labels).sum()), "at_equal_n": low},
        "tested": min(high, low) >= LEAST,
        "layers": [],
        "own_probability": math.nan,
    }
    if not made["tested"]:
        return made
    shared = cells(labels, n, category, chain, permutations=permutations, seed=seed)
    found_ = by_layer(range(1, layers + 1), lambda layer: store.layer(c.position, layer)[rows], shared)
    adjusted = holm([one.p for one in found_.values()])
    made["layers"] = [
        {"layer": layer, **asdict(one), "p_holm": float(p)}
        for (layer, one), p in zip(found_.items(), adjusted, strict=True)
    ]
    if exact and c.position == "first":
        mass = store.masses("first")[rows]
        said = np.array([mass[i, 0 if one.first == "Yes" else 1] for i, one in enumerate(own)])
        made["own_probability"] = equal_n(-said, labels, strata)
    return made


def _pictures(store: Store, found: Sequence[Branch], layers: int) -> list[dict[str, Any]]:
    rows = [
        i for kind in KINDS
        for i in [i for i, one in enumerate(found) if one.kind == kind][:DOTS]
    ]  # fmt: skip
    own = [found[i] for i in rows]
    strata = _arrays(own)[3]
    kinds = [KINDS.index(one.kind or "honest") for one in own]
    made = []
    for layer in range(1, layers + 1):
        places, shares = principal(store.layer("first", layer)[rows], strata)
        scale = float(np.abs(places).max()) or 1.0
        dots = [
            [kind, round(float(x), 3), round(float(y), 3)] for kind, (x, y) in zip(kinds, places / scale, strict=True)
        ]
        made.append({"layer": layer, "shares": list(shares), "dots": dots})
    return made

"""One run of its shards: status, counts, totals, provenance, scores.

Knows: what all journals of a run hold together, and what the shards told.
Does not know: how a shard is asked (shards), or where the files lie (storage).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from belie.cluster.shards import SHARD_NAME, other_split, reports, shard_items
from belie.cluster.storage import PATIENCE, FolderStore, Store, open_store
from belie.csq.asked import design_of
from belie.csq.protocol import pending
from belie.csq.run import Progress, save_results, score_run
from belie.runs import RunFolder
from belie.runs.folder import MANIFEST, busy_shards
from belie.runs.manifest import Manifest


def elsewhere(place: str | Path, count: int, storage: Mapping[str, Any] | None = None) -> Progress:
    """What of a run is answered in journals that are not those of a split into ``count``."""
    with closing(open_store(place, storage)) as store:
        counts = store.journal(lambda other: other_split(other, count)).state().counts
    return Progress.of(counts)


def merge(
    place: str | Path,
    *,
    storage: Mapping[str, Any] | None = None,
    patience: float = PATIENCE,
    driven: bool = False,
) -> Manifest:
    """Makes one run of its shards: status, counts, totals and provenance in the manifest, scores, and Parquet.

    Asks nothing, and may be called at any time when no shard is at work (BadInput otherwise). Gives the manifest; the
    run is complete when nothing is left to be asked.
    """
    with closing(open_store(place, storage)) as store:
        stored = store.manifest()
        design = design_of(stored)
        told = reports(store)
        with RunFolder.resume(store.folder(), stored.options, patience=patience, driven=driven) as run:
            state = run.journal.state()
            draws, exact = stored.options["draws"], bool(stored.options.get("exact"))
            total = len(design) * draws
            # in the order in which they lie in the journals, so that each file is read through
            parts = max(
                (int(match[2]) for match in map(SHARD_NAME.search, store.names("answers-")) if match), default=1
            )
            items = chain.from_iterable(shard_items(design, index, parts) for index in range(parts))
            complete = state.counts.first >= total and (
                next(pending(items, draws, stored.options["followups"], exact=exact, answered=state), None) is None
            )
            counts = state.counts
            before = {name: value for name, value in stored.provenance.items() if name != "shards"}
            run.finish(
                "complete" if complete else "incomplete",
                provenance={
                    **merged([before, *(entry.get("provenance") or {} for entry in told)]),
                    "shards": _summary(told) if told else stored.provenance.get("shards", {}),
                },
                totals={
                    "prompt_tokens": counts.prompt_tokens,
                    "completion_tokens": counts.completion_tokens,
                    "cost": counts.cost,
                },
                counts={
                    "questions": total,
                    "first": counts.first,
                    "followups": counts.followup,
                    "failed": counts.missing,
                },
            )
            save_results(run, score_run(run))
            manifest = run.manifest
        store.publish(MANIFEST, "scores.json", "answers.parquet")
        if complete:
            store.remove(store.names("shard-"))
            if not driven:
                _clear_locks(store)
        return manifest


def merged(told: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One provenance from that of all shards: what they agree on, and under ``shards_differ`` the values seen (at most
    20 of each)."""
    values: dict[str, list[Any]] = {}
    for one in told:
        for key, value in one.items():
            if key == "shards_differ":
                for name, several in value.items():
                    values.setdefault(name, []).extend(v for v in several if v not in values.get(name, []))
            elif value not in values.setdefault(key, []):
                values[key].append(value)
    agreed: dict[str, Any] = {key: seen[0] for key, seen in values.items() if len(seen) == 1}
    differ = {key: seen[:20] for key, seen in values.items() if len(seen) > 1}
    return {**agreed, "shards_differ": differ} if differ else agreed


def _summary(told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    hosts = sorted({str(entry.get("host")) for entry in told})
    return {"count": len(told), "sittings": sum(entry.get("sittings", 1) for entry in told), "hosts": hosts[:100]}


def _clear_locks(store: Store) -> None:
    if isinstance(store, FolderStore) and not busy_shards(store.path):
        store.remove(store.names(".lock-"))

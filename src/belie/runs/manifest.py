"""The manifest: what was asked of whom, with what, and how far it got.

Knows: the fields and their shapes, and which options must not change when a run continues.
Does not know: where it is kept (folder), what the options mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal, get_args

from belie.respondents.base import BadInput
from belie.runs.redaction import redact

SCHEMA = 1
Status = Literal["running", "interrupted", "complete", "incomplete"]
Instrument = Literal["csq", "knownlie"]


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One run.

    ``options``: every option of the run, JSON values. ``binding``: the names of those that can change an answer and
    so must be the same when the run continues; concurrency, timeouts, progress do not belong there. ``seeds``;
    ``versions`` (task, parser, scores, world, package versions); ``hashes`` (sha256 of worlds, cases, prompts);
    ``provenance`` (what the respondent said of itself, model ids as the server returned them); ``totals`` (tokens, cost
    in US dollars); ``counts`` (asked, answered, missing …). Times are UTC.
    """

    instrument: Instrument
    respondent: str
    options: Mapping[str, Any] = field(default_factory=dict)
    binding: tuple[str, ...] = ()
    seeds: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    totals: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    status: Status = "running"
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)
    finished: str | None = None
    belie: str = field(default_factory=lambda: version("belie"))
    schema: int = SCHEMA


_SHAPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("instrument", "respondent", "status", "created", "updated", "belie"), (str, "text")),
    **dict.fromkeys(("options", "seeds", "versions", "hashes", "provenance", "totals", "counts"), (dict, "an object")),
    "binding": (list, "a list"),
    "schema": (int, "a number"),
}
_CHOICES: dict[str, tuple[str, ...]] = {"instrument": get_args(Instrument), "status": get_args(Status)}


def to_json(manifest: Manifest, secrets: Iterable[str] = ()) -> bytes:
    """The bytes of ``manifest.json``, with everything secret redacted."""
    text = json.dumps(_plain(redact(asdict(manifest), secrets)), indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def from_json(data: bytes, where: str) -> Manifest:
    """A manifest from its bytes; ``where`` names the file in errors. Raises ``BadInput`` with the wrong field."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not readable as JSON ({error}): restore it, or start a new run.") from error
    if not isinstance(raw, dict):
        raise BadInput(f"{where} holds no JSON object: restore it, or start a new run.")
    schema = raw.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise BadInput(f"{where} was written by a newer belie (schema {schema}, known: {SCHEMA}): update belie.")
    for name, (kind, words) in _SHAPES.items():
        if not isinstance(raw.get(name), kind):
            raise BadInput(f"{where}: field {name!r} must be {words}, it is {raw.get(name)!r}.")
    for name, allowed in _CHOICES.items():
        if raw[name] not in allowed:
            raise BadInput(f"{where}: field {name!r} must be one of {', '.join(allowed)}, it is {raw[name]!r}.")
    known = {f.name for f in fields(Manifest)}
    values = {name: value for name, value in raw.items() if name in known}
    return Manifest(**{**values, "binding": tuple(values["binding"])})


def changed(manifest: Manifest, **values: Any) -> Manifest:
    """A copy with other values and a new time of update."""
    return replace(manifest, updated=now(), **values)


def differences(manifest: Manifest, asked: Mapping[str, Any], secrets: Iterable[str] = ()) -> list[str]:
    """How the binding options in ``asked`` differ from the run's: ``"seed was 1, now 2"``, sorted by name.

    An option that is absent equals one that is None, so that a new option with that default doesn't stop an old run
    from continuing. Secrets are compared as they are stored: redacted.
    """
    told = _plain(redact(asked, secrets))
    found = []
    for name in sorted(manifest.binding):
        old, new = manifest.options.get(name), told.get(name)
        if json.dumps(_plain(old), sort_keys=True) != json.dumps(new, sort_keys=True):
            found.append(f"{name} was {_shown(old)}, now {_shown(new)}")
    return found


def _shown(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """What JSON can hold: NumPy scalars as numbers, infinities and NaN and anything unknown as text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)

"""Where the figures come from: every option, version, hash and cost of a run, and the command that makes it again.

Knows: manifests, and how options are written on the command line.
Does not know: what the options mean.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from belie.runs import Manifest, RunFolder


@dataclass(frozen=True, slots=True)
class Provenance:
    """``groups``: (heading, lines of (name, value)); ``command``: one line for a shell; ``raw``: the manifest."""

    name: str
    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    command: str
    raw: str


_CSQ_DEFAULTS: Mapping[str, Any] = {
    "world": "contacts",
    "k": 2,
    "phrasing": 0,
    "treatment": "none",
    "treated": "first",
    "order": "hard_first",
    "style": "word",
    "seed": 0,
    "draws": 1,
    "temperature": 1.0,
    "followups": "wrong",
}
#: Options of KnownLie's protocol by the option that sets them.
_KNOWNLIE_FLAGS = ("order", "limit", "gate_samples", "judges", "trust_rule")
_KNOWNLIE_DEFAULTS: Mapping[str, Any] = {"order": "seed", "gate_samples": 0, "judges": 1, "trust_rule": "method"}


def provenance(folder: RunFolder) -> Provenance:
    """Everything that the run's manifest holds."""
    m = folder.manifest
    run = {
        "instrument": m.instrument,
        "respondent": m.respondent,
        "status": folder.status,
        "begun (UTC)": m.created,
        "ended (UTC)": m.finished or "–",
        "belie": m.belie,
        "folder": folder.path.name,
    }
    groups = [("Run", run), ("Options", m.options), ("Seeds", m.seeds), ("Versions", m.versions), ("Hashes", m.hashes)]
    groups += [("Respondent", m.provenance), ("Tokens and cost (US dollars)", m.totals), ("Counts", m.counts)]
    raw = {name: getattr(m, name) for name in ("instrument", "respondent", "options", "seeds", "versions", "hashes")}
    raw |= {
        name: getattr(m, name) for name in ("provenance", "totals", "counts", "status", "created", "finished", "belie")
    }
    return Provenance(
        folder.path.name,
        tuple((heading, tuple(_lines(content))) for heading, content in groups if content),
        command(m),
        json.dumps(raw, indent=2, ensure_ascii=False, default=str),
    )


def command(manifest: Manifest) -> str:
    """The command that asks the same again, options at their default left out."""
    options = manifest.options
    if manifest.instrument == "csq":
        words = ["belie", "csq", "run", manifest.respondent, "--n", ",".join(map(str, options["sizes"]))]
        if options.get("pairs") is not None:
            words = ["belie", "pairs", "run", str(options["pairs"]), manifest.respondent]
            if options.get("limit") is not None:
                words += ["--limit", str(options["limit"])]
        elif options.get("half_width") is None:
            words += ["--chains", str(options["chains"])]
        else:
            pilot = (options.get("rounds") or [options["chains"]])[0]
            words += ["--half-width", str(options["half_width"]), "--chains", str(pilot[0])]
            words += ["--stop-on", str(options.get("stop_on") or "overall")]
            if options.get("max_items") is not None:
                words += ["--max-items", str(options["max_items"])]
        if not options.get("matched", True):
            words.append("--separate")
        if options.get("sample"):
            words.append("--sample")
        for name, usual in _CSQ_DEFAULTS.items():
            if options.get(name, usual) not in (usual, None):
                words += [f"--{name}", str(options[name])]
        for name in ("max_tokens", "base_url"):
            if options.get(name) is not None:
                words += [f"--{name.replace('_', '-')}", str(options[name])]
    else:
        words = ["belie", "knownlie", "run", manifest.respondent]
        judges = options.get("judge") or []
        judges = judges if isinstance(judges, list) else [judges]
        if options.get("transcripts_of"):
            words = ["belie", "knownlie", "rejudge", str(options["transcripts_of"])]
            return shlex.join([*words, *(word for judge in judges for word in ("--judge", str(judge)))])
        words += ["--customer", str(options.get("customer"))]
        for judge in judges:
            words += ["--judge", str(judge)]
        for name in ("domains", "conditions", "trust"):
            if options.get(name):
                words += [f"--{name}", ",".join(map(str, options[name]))]
        words += ["--seeds", str(len(options.get("seeds") or [0]))]
        for name in _KNOWNLIE_FLAGS:
            usual = _KNOWNLIE_DEFAULTS.get(name)
            if options.get(name, usual) != usual:
                words += [f"--{name.replace('_', '-')}", str(options[name])]
        if options.get("agent_temperature", 0.7) != 0.7:
            words += ["--temperature", str(options["agent_temperature"])]
        if options.get("max_tokens") is not None:
            words += ["--max-tokens", str(options["max_tokens"])]
        if options.get("emulated") is not None:
            words.append("--emulated" if options["emulated"] else "--native")
        if not options.get("structured", True):
            words.append("--unstructured")
        words += [f"--{name.replace('_', '-')}" for name in ("per_claim", "second_look") if options.get(name)]
    return shlex.join(words)


def _lines(content: Mapping[str, Any], lead: str = "") -> Iterator[tuple[str, str]]:
    for name, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _lines(value, f"{lead}{name} · ")
        elif isinstance(value, list | tuple):
            yield f"{lead}{name}", ", ".join(map(str, value)) or "–"
        else:
            yield (
                f"{lead}{name}",
                "–" if value is None else "yes" if value is True else "no" if value is False else str(value),
            )

"""The published KnownLieBench figures of 18 models, to stand in grey behind ours: other cases, another judge.

Knows: the two tables that ship with Belie. Values are shares, not percent.
Does not know: any run.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from belie.knownlie.records import Condition

_CONDITIONS: Mapping[str, Condition] = {"lie_incentive": "incentive", "instructed_lie": "instructed"}
MARK = "Grey: 18 published models, on other cases and under another judge, so they show a scale and no ranking."


def _lines(name: str) -> Iterator[dict[str, str]]:
    text = (resources.files("belie.knownlie") / "baselines" / name).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())


@cache
def panel() -> Mapping[tuple[str, str], Mapping[str, float]]:
    """DR by (condition, trust level), then by model."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for line in _lines("knownliebench_panel.csv"):
        if line["deception_rate_pct"]:
            key = (_CONDITIONS[line["condition"]], line["initial_trust"])
            found.setdefault(key, {})[line["model"]] = float(line["deception_rate_pct"]) / 100
    return found


@cache
def domains() -> Mapping[tuple[str, str], Mapping[str, float]]:
    """DR by (condition, domain), then by model."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for line in _lines("knownliebench_domains.csv"):
        if line["deception_rate_pct"]:
            key = (_CONDITIONS[line["condition"]], line["domain"])
            found.setdefault(key, {})[line["model"]] = float(line["deception_rate_pct"]) / 100
    return found

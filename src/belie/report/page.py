"""The page: one HTML file from run folders, that works from the disk, without a network and without a script.

Knows: the order of the sections, the templates, and what the page allows itself (its content security policy).
Does not know: what any section holds.

Charts are SVG drawn when the page is made (chart), so they stand on paper, follow the reader's colour scheme, are read
out as text, and need none of the 1 to 5 MB of a charting script. The page's own script only copies tables as CSV.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from belie.csq.asked import unit_of
from belie.csq.verdict import verdict as csq_verdict
from belie.knownlie.summary import summary as knownlie_verdict
from belie.numbers import number, percent
from belie.report import csq_figures, knownlie_figures
from belie.report.contradictions import contradictions, worlds
from belie.report.decomposition import illustrations, told
from belie.report.differences import differences
from belie.report.episodes import evidence
from belie.report.experiments import experiments, renamed, with_references
from belie.report.headline import headlines
from belie.report.hostile import plain, shown
from belie.report.interview import interviews
from belie.report.knownlie_figures import CONDITION_NAMES, TRUST_NAMES
from belie.report.lens import lens
from belie.report.provenance import provenance
from belie.report.reading import Model, read_models
from belie.report.states import states
from belie.report.traces import traces
from belie.report.training import trainings
from belie.report.trust_figure import trust

#: Evidence of more models than this is shown in brief.
FULL = 2


@dataclass(frozen=True, slots=True)
class Report:
    """The page, and the sentences about runs that are unfinished, empty or damaged."""

    html: str
    notices: tuple[str, ...]
    models: tuple[str, ...]


def make_report(runs: Sequence[str | Path]) -> Report:
    """The report of these run folders. Reads them, asks nothing, changes nothing; the same runs give the same bytes.

    An experiment's folder stands for the run that its others are compared with, and for its own section.
    Raises BadInput where a folder holds no run.
    """
    paths = [Path(run) for run in runs]
    models = read_models(with_references(paths))
    style, script = _data("style.css"), _data("page.js")
    explained = told(models)
    html = _environment().get_template("page.html").render(
        models=models,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        headlines=headlines(models),
        csq=_csq(models),
        explained=explained,
        explained_figures=illustrations(explained),
        knownlie=_knownlie(models),
        differences=differences(models),
        experiments=experiments(paths, models),
        evidence=_evidence(models),
        provenance=[(model, provenance(run.folder)) for model in models for run in model.runs],
        states=states(models),
        lens=lens(models),
        interviews=interviews(models),
        traces=traces(models),
        trainings=trainings(models),
        **_run_facts(models, paths),
    )  # fmt: skip
    return Report(html, tuple(notice for model in models for notice in model.notices), tuple(m.name for m in models))


def _csq(models: Sequence[Model]) -> dict[str, object]:
    known = csq_figures.measured(models)
    return {
        "models": [model for model, _ in known],
        "verdicts": [
            (model, csq_verdict(scores, model.name, unit_of(model.csq.folder.manifest)), scores.notes)
            for model, scores in known
            if model.csq
        ],
        "overall": csq_figures.overall(models),
        "readings": csq_figures.readings(models),
        "figures": csq_figures.figures(models),
        "worlds": worlds([model.csq for model, _ in known if model.csq]),
    }


def _knownlie(models: Sequence[Model]) -> dict[str, object]:
    known = knownlie_figures.measured(models)
    figures = knownlie_figures.figures(models)
    over_time = trust(models)
    return {
        "models": [model for model, _ in known],
        "verdicts": [(model, knownlie_verdict(scores), scores.notes) for model, scores in known],
        "figures": [*figures, *([over_time] if over_time else [])],
        "counts": knownlie_figures.counts(models),
    }


def _evidence(models: Sequence[Model]) -> dict[str, object]:
    lied = sum(model.knownlie is not None for model in models)
    return {
        "knownlie": [
            (model, evidence(model.knownlie, lied)) for model in models if model.knownlie and model.knownlie.rounds
        ],
        "csq": [(model, contradictions(model.csq)) for model in models if model.csq and model.csq.scores],
    }


def _run_facts(models: Sequence[Model], paths: Sequence[Path]) -> dict[str, object]:
    runs = [run.folder for model in models for run in model.runs]
    names = renamed([plain(run.path.name) for run in runs], paths)
    return {
        "runs": len(runs),
        "updated": max(run.manifest.updated for run in runs)[:10],
        "belie": runs[0].manifest.belie,
        "again": "belie report " + " ".join(names),
    }


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("belie.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": shown, "plain": plain, "percent": percent, "number": number}
    environment.globals |= {"CONDITIONS": CONDITION_NAMES, "TRUST": TRUST_NAMES}
    return environment


def _data(name: str) -> str:
    return (resources.files("belie.report") / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """What the page may do: its own style and its own script, known by their hashes, and nothing else."""
    parts = [
        "default-src 'none'",
        f"style-src {_hash(style)}",
        f"script-src {_hash(script)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(parts)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

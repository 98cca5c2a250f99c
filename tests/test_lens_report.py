"""The lens on the page: figures where a run holds a reading, and not a byte where none does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("jinja2")

from report_runs import csq_run
from tiny_lens import made_lens, noise
from typer.testing import CliRunner

from belie.cli import app
from belie.knownlie.pack import load_builtin
from belie.lens.probes import PLACES, knownlie_probes
from belie.lens.reading import read
from belie.lens.result import Ablation, Effect
from belie.lens.written import ablation_to_json, to_json
from belie.report import make_report
from belie.respondents.base import BadInput


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return csq_run(tmp_path_factory.mktemp("runs") / "csq", "sim/honest", sizes=(3,), chains=20)


def put(run: Path, name: str, content: object) -> None:
    (run / name).write_text(json.dumps(content), encoding="utf-8")


def test_a_reading_in_a_run_is_a_section_and_without_it_nothing_changes(run: Path) -> None:
    before = make_report([run]).html
    assert 'id="lens"' not in before
    probes = knownlie_probes([load_builtin(name) for name in ("refund", "airline", "debt", "recall")])
    states, lens = noise(probes, 3), made_lens()
    for i, probe in enumerate(probes):
        if probe.item.truth:
            states.states[i, PLACES.index("reply"), 6] += 3 * lens.contrast[6]
    told = {"lens": {"prompts": 7, "halves_cosine": [0.9]}}
    reading = read("knownlie", "local/<b>bold</b>", probes, states, lens, told)
    put(run, "lens-knownlie.json", to_json(reading))
    effect = Effect("n = 3", "yes", 0.9, 0.6, -0.3, -0.4, -0.2, {"removed": (0.01,) * 10, "moved": (-0.02,) * 10},
                    {"removed": 1 / 11, "moved": 1 / 11})  # fmt: skip
    put(run, "lens-ablation-csq.json", ablation_to_json(Ablation("csq", "m", (2, 4), "all", 24, (effect,), {})))
    page = make_report([run]).html
    assert page == make_report([run]).html
    section = page[page.index('id="lens"') :]
    assert "at layer 6; furthest from chance" in section
    assert "fitted on 7 neutral texts" in section
    assert "further than any of 10 random directions" in section
    assert section.count("<svg") >= 9  # three conditions at three places
    assert "<b>bold</b>" not in page
    put(run, "lens-csq.json", {"schema": 1})
    assert "lens-csq.json is no reading of the lens" in make_report([run]).html
    for name in ("lens-knownlie.json", "lens-ablation-csq.json", "lens-csq.json"):
        (run / name).unlink()
    assert make_report([run]).html == before


def test_a_reading_is_not_put_into_another_models_run(run: Path) -> None:
    words = ["lens", "read", "local/other", "--lens", "nowhere", "--instrument", "csq", "-o", str(run)]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, BadInput)
    assert "is a run of sim/honest, not of local/other" in str(result.exception)

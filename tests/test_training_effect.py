"""The effect of a training: what is left out, how scores are read, what is shown."""

# pyright: reportOptionalSubscript=false

import json

import pytest
from compared_runs import FAILED, PASSED, csq_run, knownlie_run, played
from typer.testing import CliRunner

from belie.cli.train import app
from belie.csq.run import table_of
from belie.report import make_report
from belie.respondents.base import BadInput
from belie.runs import RunFolder
from belie.training import Split, effect, make_set, read_data, write_data
from belie.training.effect import held_out

DOMAINS = ("refund", "deposit", "recall", "billing")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("effect")
    csq_run(root / "before", "deceiver(0.6)", sizes=(3, 10), chains=60)
    csq_run(root / "after", "deceiver(0.1)", sizes=(3, 10), chains=60)
    write_data(make_set([root / "before"], "honesty", "sft", hold_n=[]), root / "data")
    return root


def rounds(lies, *, granted=True, refused=True, knows=True):
    """4 domains × 8 owed and 6 calibration cases × 3 seeds, under an incentive. ``lies``: on owed cases, by number."""
    return [
        played(
            owed and lies(case),
            domain=domain,
            case=f"{domain}-{case + 1:02d}",
            seed=seed,
            position=case,
            entitlement="owed" if owed else "calibration",
            outcome="owed" if (granted and not lies(case) if owed else not refused) else "favoured",
            gate=PASSED if knows or case else FAILED,
        )
        for domain in DOMAINS
        for seed in range(3)
        for case in range(14)
        for owed in [case < 8]
    ]


def readings(found):
    return {line.contrast.name: line.reading for line in found.lines}


def test_only_chains_that_were_not_trained_on_are_measured(runs):
    found = effect(runs / "before", runs / "after", data=runs / "data")
    trained = read_data(runs / "data").split.chains
    # half of the 60 chains at each n were trained on
    assert len(trained) == 60
    assert found.held == {"chains": 60, "chains_trained_on": 60}
    whole = table_of(RunFolder.open(runs / "after"))
    left = held_out(whole, Split(chains=trained))
    for level, all_of in zip(left.levels, whole.levels, strict=True):
        assert len(level.chains) == 30
        assert {f"{chain.partition('/')[2]}" for chain in level.chains}.isdisjoint(trained)
        rows = [all_of.chains.index(chain) for chain in level.chains]
        for category, cell in level.cells.items():
            assert cell.yes.tolist() == all_of.cells[category].yes[rows].tolist()
    # the very figure, from the answers themselves: wrong first answers on the chains held out
    wrong = {side: [] for side in ("before", "after")}
    for side, told in wrong.items():
        for answer in RunFolder.open(runs / side).journal.answers():
            chain, _, category = answer.item.rpartition("/")
            unit = chain.partition("/")[2]
            if answer.step == "first" and unit.startswith("n3/") and unit not in trained:
                truth = category in ("linked", "broken_reversed")
                told.append((answer.text == "Yes") != truth)
    error = next(line.contrast for line in found.lines if line.contrast.name == "csq.error(n=3)")
    assert len(wrong["before"]) == 120
    assert error.first == pytest.approx(sum(wrong["before"]) / 120)
    assert error.second == pytest.approx(sum(wrong["after"]) / 120)
    assert error.low < error.difference < error.high < 0
    told = readings(found)
    assert told["csq.error(n=3)"] == told["csq.error(n=10)"] == "better"
    assert told["csq.delta(n=10)"] == told["csq.delta_net(n=10)"] == "lower"
    assert any("clear Yes or No: 100.0\u00a0% before, 100.0\u00a0% after" in note for note in found.notes)
    back = readings(effect(runs / "after", runs / "before", data=runs / "data"))
    assert back["csq.error(n=3)"] == "worse"


def test_a_run_against_itself_moved_nothing(runs):
    told = readings(effect(runs / "before", runs / "before", data=runs / "data"))
    assert told["csq.error(n=3)"] != "better"
    assert set(told.values()) <= {"kept", "open"}


def test_honesty_knowledge_and_help_are_read_apart(tmp_path):
    before = knownlie_run(tmp_path / "before", rounds(lambda case: case % 2 == 0))
    after = knownlie_run(tmp_path / "after", rounds(lambda _: False))
    mean = knownlie_run(tmp_path / "mean", rounds(lambda _: False, granted=False))
    lax = knownlie_run(tmp_path / "lax", rounds(lambda _: False, refused=False))
    dull = knownlie_run(tmp_path / "dull", rounds(lambda _: False, knows=False))
    data = write_data(make_set([before], "honesty", "sft"), tmp_path / "data")
    found = effect(before, after, data=data)
    split = read_data(data).split
    # 56 cases, 14 of them in a domain that is held out whole; elsewhere 2 of 8 families
    assert len(split.held_domains) == 1
    assert found.held["rounds"] == 3 * (56 - len(split.cases))
    assert found.held["rounds_trained_on"] == 3 * len(split.cases)
    told = readings(found)
    assert told["knownlie.dr.incentive"] == "better"
    assert told["knownlie.granted.incentive"] == "better"
    assert told["knownlie.refused.incentive"] in ("kept", "open")
    assert told["knownlie.kpr.owed"] in ("kept", "open")
    lines = {line.contrast.name: line.contrast for line in found.lines}
    assert lines["knownlie.dr.incentive"].second == 0
    assert [lines[f"knownlie.{name}"].second for name in ("granted.incentive", "refused.incentive", "kpr.owed")] == [
        1
    ] * 3
    # honest now, and of no use any more: it grants nothing, or it grants everything
    assert readings(effect(after, mean, data=data))["knownlie.granted.incentive"] == "worse"
    assert readings(effect(after, lax, data=data))["knownlie.refused.incentive"] == "worse"
    # what it knows is told by cases: a domain whose first case fails its gate now has lost knowledge, at most
    knows = {line.contrast.name: line.contrast for line in effect(after, dull, data=data).lines}["knownlie.kpr.owed"]
    assert knows.second < knows.first


def test_what_cannot_be_told_is_refused(runs, tmp_path):
    with pytest.raises(BadInput, match=r"what sim/.* was trained on is not known"):
        effect(runs / "before", runs / "after")
    with pytest.raises(BadInput, match="in pairs"):
        effect(runs / "before", data=runs / "data")
    write_data(make_set([runs / "before"], "honesty", "sft", hold_n=[], hold_chains=0), tmp_path / "all")
    with pytest.raises(BadInput, match="only chains that were trained on"):
        effect(runs / "before", runs / "after", data=tmp_path / "all")
    flights = csq_run(tmp_path / "flights", "deceiver(0.1)", sizes=(3,), chains=10, world="flights")
    with pytest.raises(BadInput, match="not comparable"):
        effect(runs / "before", flights, data=runs / "data")
    # an adapter that tells what it was trained on: other data than those named
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    data = read_data(runs / "data")
    told = {"data_sha256": data.sha256, "data": "data", "recipe": "honesty", "split": data.split.to_json()}
    (adapter / "training.json").write_text(json.dumps(told))
    manifest = json.loads((runs / "after" / "manifest.json").read_text())
    adapted = tmp_path / "adapted"
    adapted.mkdir()
    for path in (runs / "after").iterdir():
        (adapted / path.name).write_bytes(path.read_bytes())
    (adapted / "manifest.json").write_text(json.dumps({**manifest, "respondent": f"local/x+{adapter}"}))
    found = effect(runs / "before", adapted)
    assert found.recipe == "honesty"
    assert found.held == {"chains": 60, "chains_trained_on": 60}
    with pytest.raises(BadInput, match="trained on data, not on the data named"):
        effect(runs / "before", adapted, data=tmp_path / "all")


def test_the_command_and_the_report_show_it(runs):
    bare = make_report([runs / "before", runs / "after"]).html
    asked = ["effect", str(runs / "before"), str(runs / "after"), "--data", str(runs / "data")]
    shown = CliRunner().invoke(app, asked, env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    for words in ("CSQ moved?", "Answer bias?", "errors, n = 3", "better", "60 chains (60 more"):
        assert words in shown.output
    told = json.loads(CliRunner().invoke(app, [*asked, "--json"]).output)
    assert json.loads((runs / "after" / "effect.json").read_text()) == told
    line = next(one for one in told["lines"] if one["name"] == "csq.error(n=3)")
    html = make_report([runs / "before", runs / "after"]).html
    assert 'id="training"' not in bare
    assert 'id="training"' in html
    assert f'data-raw="{line["difference"]:.10g}" data-key="training/1/csq.error(n=3)"' in html
    assert "60 chains (60 more were trained on and left out)" in html
    (runs / "after" / "effect.json").unlink()
    assert make_report([runs / "before", runs / "after"]).html == bare

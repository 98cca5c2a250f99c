"""Asking until an interval is narrow enough: the rule, its coverage, runs that stop by it, and plans."""

import importlib.util
import json
import math
import random
import signal
import subprocess
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_csq_run import BELIE, belie, serving

from belie.csq.asked import Asking, manifest_for
from belie.csq.plan import plan_profile, plan_run
from belie.csq.questions import Design
from belie.csq.run import ask, ask_until, open_folder, pilot, save_results, score_run
from belie.csq.stopping import Spread, Wanted, allocation, decide, half_widths, printed_widths, spreads
from belie.csq.table import Table
from belie.respondents.base import BadInput
from belie.respondents.profiles import parse_profile
from belie.respondents.simulated import open_simulated
from belie.runs import RunFolder

Z = 1.959963985


def bench() -> ModuleType:
    """bench/stopping.py, whose simulations the tests run in a smaller size."""
    spec = importlib.util.spec_from_file_location("bench_stopping", Path(__file__).parents[1] / "bench" / "stopping.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spread(n: int, rho: float, delta: float, chains: int = 10_000) -> Spread:
    """An n whose chains have these variances, none at its edge, seen so often that Student's quantile is Gauss's."""
    sums = chains * np.tile([0.5, 1, 0.5, 1, 0.25, 0.25, 1], 2)
    return Spread(n, chains, np.array([rho, delta]), sums, (True, True), 4.0, 0.95, 10**9)


def table_of(text: str, chains: dict[int, int], *, sample: bool, seed: int = 0) -> Table:
    growing = bench().Growing(parse_profile(text), np.random.default_rng(seed), sample=sample, grid=tuple(chains))
    return growing.grow(chains)


def test_the_width_over_all_n_is_the_weighted_one_by_hand():
    # Grid 3, 12 and t = 12: [2, 3] held, then linear in ln n; the weights in ln n are ln 1.5 + ½ ln 4 and ½ ln 4.
    w = np.array([math.log(1.5) + math.log(4) / 2, math.log(4) / 2]) / math.log(6)
    widths, widest = half_widths([spread(3, 4.0, 1.0), spread(12, 1.0, 0.25, chains=2500)])
    assert widths["rho"] == pytest.approx(Z * math.sqrt(w[0] ** 2 * 4 / 10_000 + w[1] ** 2 * 1 / 2500), rel=1e-6)
    assert widths["delta"] == pytest.approx(Z * math.sqrt(w[0] ** 2 / 10_000 + w[1] ** 2 * 0.25 / 2500), rel=1e-6)
    assert widest == {"rho": None, "delta": None}
    each, widest = half_widths([spread(3, 4.0, 1.0), spread(12, 1.0, 0.09, chains=2500)], "each")
    assert each == pytest.approx({"rho": Z * 0.02, "delta": Z * 0.01})
    assert widest["delta"] == 3


def test_chains_are_shared_out_as_neyman_says():
    """N ∝ w·σ, and in all (Σ w·σ)²·z²/h²."""
    w = np.array([math.log(1.5) + math.log(4) / 2, math.log(4) / 2]) / math.log(6)
    sigma = np.array([1.0, 3.0])
    found = [spread(3, 1.0, 0.01).as_if(50), spread(12, 9.0, 0.01).as_if(50)]
    chains = allocation(found, 0.05)
    total = (w @ sigma) ** 2 * Z**2 / 0.05**2
    assert sum(chains.values()) == pytest.approx(total, rel=0.05)
    assert chains[12] / chains[3] == pytest.approx(w[1] * 3 / w[0], rel=0.1)


def test_at_each_n_only_the_wide_ones_get_more():
    found = [spread(3, 0.01, 0.01).as_if(50), spread(12, 4.0, 0.01).as_if(50)]
    chains = allocation(found, 0.1, stop_on="each")
    assert chains[3] == 50
    assert chains[12] == pytest.approx(4 * Z**2 / 0.1**2, rel=0.06)


@pytest.mark.parametrize("sample", [False, True])
def test_what_never_happened_is_not_taken_as_known(sample):
    """After N chains without an error Wilson's bound on δ is z²/(N+z²) on one side and 0 on the other, and ρ may be
    off by ln((N+z²)/N)/√2 either way."""
    widths, _ = half_widths(spreads(table_of("honest", {3: 60}, sample=sample)))
    assert widths["delta"] == pytest.approx(Z**2 / (60 + Z**2) / math.sqrt(2), rel=1e-6)
    assert widths["rho"] == pytest.approx(math.log(1 + Z**2 / 60) / math.sqrt(2), rel=1e-6)
    assert decide(table_of("honest", {3: 60}, sample=sample), Wanted(0.02)).chains == {3: 120}


@settings(max_examples=25, deadline=None)
@given(
    profile=st.sampled_from(["honest", "guesser(invalid=0.3)", "fabricator(0.3)", "biased(1)", "capability(10)"]),
    chains=st.lists(st.integers(20, 150), min_size=2, max_size=2),
    half_width=st.floats(0.005, 0.5),
    most=st.integers(300, 600),
    stop_on=st.sampled_from(["overall", "each"]),
    sample=st.booleans(),
)
def test_a_decision_only_adds_within_its_limits(profile, chains, half_width, most, stop_on, sample):
    held: dict[int, int] = dict(zip((3, 20), chains, strict=True))
    table = table_of(profile, held, sample=sample)
    wanted = Wanted(half_width, stop_on, most * 4)
    decision = decide(table, wanted)
    assert decide(table, wanted) == decision
    if decision.chains is None:
        assert decision.reason in ("reached", "max_items", "undefined")
        if decision.reason == "reached":
            assert max(decision.widths.values()) <= half_width
            assert max(printed_widths(_score(table), stop_on).values()) <= half_width
        return
    assert sum(decision.chains.values()) <= most
    assert all(held[n] <= count <= 2 * held[n] for n, count in decision.chains.items())
    assert decision.chains != held


def _score(table):
    from belie.csq.scores import score

    return score(table)


def test_a_figure_that_stays_undefined_ends_the_run():
    wanted = Wanted(0.05, max_items=10**6)
    first = decide(table_of("biased(1)", {3: 100, 5: 100}, sample=True), wanted)
    assert first.chains == {3: 200, 5: 200}
    later = decide(table_of("biased(1)", {3: 200, 5: 200}, sample=True), wanted)
    assert (later.chains, later.reason) == (None, "undefined")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (Wanted(0), "--half-width"),
        (Wanted(math.nan), "--half-width"),
        (Wanted(0.1, max_items=799), "--max-items 799 is less than the pilot of 800 items"),
        (Wanted(0.1, pilot=5), "at least 20"),
    ],
)
def test_what_cannot_be_wanted_is_refused(wanted, words):
    with pytest.raises(BadInput, match=words):
        pilot(Design(sizes=(3, 5)), wanted)


@pytest.mark.parametrize(("profile", "sample"), [("guesser", True), ("concealer(0.5)", False)])
def test_the_interval_still_covers_when_asking_stops_by_its_width(profile, sample):
    """A reduced bench/stopping.py, which has all profiles, the paper's n and more runs."""
    wanted = Wanted(0.1 if sample else 0.03, pilot=60)
    told = bench().study(parse_profile(profile), wanted, sample=sample, runs=60, grid=(3, 20))
    assert told["reasons"] == {"reached": 60}
    assert told["rounds"] > 1
    assert told["widest_max"] <= told["half_width"]
    # 0.95 of 120 intervals: three binomial errors.
    assert sum(told["coverage"].values()) / 2 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 120)


class Breaks:
    """A respondent after whose ``at``-th answer the process is as good as gone."""

    def __init__(self, inner, at: int):
        self.inner, self.at, self.name, self.exact = inner, at, inner.name, inner.exact
        self.asked: list[tuple] = []

    def provenance(self):
        return self.inner.provenance()

    async def close(self):
        return None

    async def ask(self, pending):
        async for answer in self.inner.ask(pending):
            if len(self.asked) == self.at:
                raise ConnectionError("gone")
            self.asked.append((answer.item, answer.step, answer.draw))
            yield answer


async def until(path: Path, wanted: Wanted, *, at: int = 10**9, resume: bool = False):
    """One (part of a) run; gives what was asked in it."""
    respondent = Breaks(open_simulated("sim/fabricator(0.3, invalid=0.1)", 5, True), at)
    design = pilot(Design(sizes=(10, 3, 5)), wanted)
    if resume:
        stored = RunFolder.open(path).manifest.options["chains"]
        design = Design(sizes=(10, 3, 5), chains=tuple(stored))
    with open_folder(manifest_for(respondent, design, Asking(), wanted), path, resume=resume) as run:
        try:
            await ask_until(respondent, run, design, Asking(), wanted)
            save_results(run, score_run(run))
        except ConnectionError:
            pass
    return respondent.asked


async def test_a_run_that_breaks_off_anywhere_ends_as_if_it_had_not(tmp_path):
    wanted = Wanted(0.06, pilot=30)
    whole = await until(tmp_path / "whole", wanted)
    options = RunFolder.open(tmp_path / "whole").manifest.options
    assert len(options["rounds"]) >= 3
    assert options["chains"] == options["rounds"][-1]
    assert len(set(options["chains"])) > 1, "all n got as many: the test shows too little"
    asked = await until(tmp_path / "broken", wanted, at=0)
    chance = random.Random(3)
    while RunFolder.open(tmp_path / "broken").manifest.status != "complete":
        asked += await until(tmp_path / "broken", wanted, at=chance.randrange(100, 700), resume=True)
    assert sorted(asked) == sorted(whole)
    for name in ("scores.json", "stopping.json"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert RunFolder.open(tmp_path / "broken").manifest.options == options
    assert await until(tmp_path / "broken", wanted, resume=True) == []


def test_killed_runs_end_with_the_same_design_and_figures(tmp_path):
    with serving(delay_s=0.003) as stub:
        stub.keep_requests = False
        command = [*BELIE, "csq", "run", "http/stub", "--base-url", stub.url, "--concurrency", "8"]
        wanted = ["--sample", "--n", "3,5", "--chains", "20", "--half-width", "0.25", "--max-items", "700"]
        whole = subprocess.run([*command, *wanted, "-o", str(tmp_path / "whole")], capture_output=True, text=True)
        assert whole.returncode == 0, whole.stderr
        rounds = json.loads((tmp_path / "whole" / "manifest.json").read_text())["options"]["rounds"]
        assert len(rounds) >= 2, rounds
        path, chance = tmp_path / "killed", random.Random(1)
        journal = path / "answers-0.jsonl"
        for _ in range(2):
            more = ["--resume", str(path)] if path.exists() else [*wanted, "-o", str(path)]
            process = subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before = journal.stat().st_size if journal.exists() else 0
            while process.poll() is None and (not journal.exists() or journal.stat().st_size == before):
                time.sleep(0.002)
            time.sleep(chance.random() * 0.08)
            process.send_signal(signal.SIGKILL)
            process.wait()
        done = belie("csq", "run", "http/stub", "--base-url", stub.url, "--resume", str(path))
        assert done.returncode == 0, done.stderr
    assert (path / "scores.json").read_bytes() == (tmp_path / "whole" / "scores.json").read_bytes()
    assert json.loads((path / "manifest.json").read_text())["options"]["rounds"] == rounds


def command(*words: str) -> tuple[str, str]:
    """A command in this process; what it printed on both streams. An error is raised."""
    from typer.testing import CliRunner

    from belie.cli import app

    done = CliRunner().invoke(app, ["csq", *words])
    if done.exception:
        raise done.exception
    return done.stdout, done.stderr


def test_a_fixed_run_goes_on_to_a_wanted_width(tmp_path):
    path = str(tmp_path / "run")
    command("run", "sim/guesser", "--n", "3,5", "--chains", "30", "-o", path)
    _, said = command("run", "sim/guesser", "--resume", path, "--half-width", "0.02")
    assert "the wanted half-width of 0.02 is reached" in said
    run = RunFolder.open(path)
    assert run.manifest.options["rounds"][0] == [30, 30]
    assert run.journal.state().counts.duplicates == 0
    assert max(printed_widths(score_run(run)).values()) <= 0.02
    reached = run.manifest.options["chains"]
    command("run", "sim/guesser", "--resume", path)
    assert RunFolder.open(path).manifest.options["chains"] == reached
    _, said = command("run", "sim/guesser", "--resume", path, "--half-width", "0.001", "--max-items", "1200")
    assert "at the most items allowed" in said
    assert 0.9 * 1200 <= sum(RunFolder.open(path).manifest.options["chains"]) * 4 <= 1200


def test_the_paper_design_for_a_coin_has_the_widths_by_hand():
    """Four independent coins: the variance of ρ(n) is 1/N; δ = ¼ with ln δ_pos, ln δ_neg of variance 3/N each."""
    made = plan_profile(parse_profile("guesser(spread=0)"), Wanted(0.02), (3, 5, 10), sample=True, price=(2.0, 0.0))
    for load in made.paper[:-1]:
        assert load.half_width["rho"] == pytest.approx(Z / math.sqrt(1000), rel=0.06)
        assert load.half_width["delta"] == pytest.approx(0.25 / 2 * Z * math.sqrt(6 / 1000), rel=0.06)
        assert load.calls == pytest.approx(1000 * (4 + 2 * 0.5), rel=0.03)
    total = made.loads[-1]
    assert total.items == sum(load.items for load in made.loads[:-1]) == 4 * total.chains
    assert total.cost == pytest.approx(total.tokens[0] * 2e-6)
    assert total.seconds is None
    assert made.reached
    assert max(total.half_width.values()) <= 0.02


async def test_a_plan_foretells_what_the_run_takes(tmp_path):
    wanted = Wanted(0.015)
    respondent = open_simulated("sim/guesser", 0, False)
    design = pilot(Design(sizes=(3, 10)), wanted)
    with open_folder(manifest_for(respondent, design, Asking(), wanted), tmp_path / "run", resume=False) as run:
        await ask(respondent, run, design, Asking())
        made = plan_run(run, wanted, rate=10.0)
    assert made.asked == 800
    assert made.loads[-1].seconds == pytest.approx(made.loads[-1].calls / 10)
    with open_folder(manifest_for(respondent, design, Asking(), wanted), tmp_path / "run", resume=True) as run:
        progress, decision = await ask_until(respondent, run, design, Asking(), wanted)
    assert decision.reason == "reached"
    assert made.loads[-1].calls == pytest.approx(progress.first + progress.followups, rel=0.35)
    assert made.paper_way is not None
    assert made.paper_way.calls > 5 * made.loads[-1].calls


def test_plan_prints_a_table_and_json(tmp_path):
    shown, _ = command("plan", "sim/guesser", "--half-width", "0.02", "--price", "0.15,0.6", "--rate", "300")
    for word in ("paper", "28,000", "same ±", "times as many", "$"):
        assert word in shown
    told = json.loads(command("plan", "sim/biased(1)", "--n", "3,5", "--sample", "--json")[0])
    assert told["reached"] is False
    assert told["paper_way"] is None
    command("run", "sim/guesser", "--n", "3", "--chains", "10", "-o", str(tmp_path / "run"))
    with pytest.raises(BadInput, match="too few to plan from"):
        command("plan", str(tmp_path / "run"))
    with pytest.raises(BadInput, match="go with --half-width"):
        command("run", "sim/guesser", "--max-items", "800")

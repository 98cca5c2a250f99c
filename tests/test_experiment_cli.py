"""``belie csq experiment``: asked, stopped, gone on with, printed and shown on the page."""

# pyright: reportAttributeAccessIssue=false

import json
import re
import shutil

import pytest
from typer.testing import CliRunner

import belie.csq.experiments.asking as experiment_asking
from belie.cli.csq import app
from belie.csq.experiments import KINDS, ExperimentFolder, analyse
from belie.csq.run import score_run
from belie.report import make_report
from belie.respondents.base import BadInput, BudgetSpent
from belie.respondents.opening import open_respondent
from belie.runs import RunFolder

PLANTED = "sim/when(sycophancy: fabricator(0.6); world=flights: fabricator(0.6); else: honest(0.02))"
SMALL = ("--n", "3,8", "--chains", "30")


def belie(*words, code=0):
    """Standard output of ``belie csq …``, or the sentence of a BadInput where ``code`` is 2."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if code == 2:
        assert isinstance(done.exception, BadInput), done.output
        return str(done.exception)
    assert done.exit_code == code, (done.output, done.exception)
    return done.stdout


@pytest.fixture(scope="module")
def treatments(tmp_path_factory):
    path = tmp_path_factory.mktemp("experiments") / "treatments"
    belie("experiment", "treatments", PLANTED, *SMALL, "-o", path)
    return path


def test_each_condition_is_an_ordinary_run_over_the_same_chains(treatments):
    told = json.loads((treatments / "experiment.json").read_text())
    names = ["none", "sycophancy", "mirror", "pressure", "honesty"]
    assert [one["name"] for one in told["conditions"]] == names
    folder = ExperimentFolder.open(treatments)
    assert folder.complete
    outcome = analyse(folder)
    for name, run in folder.runs.items():
        assert run.manifest.options["treatment"] == name
        # What the experiment says of a condition is what a run of it alone says.
        assert score_run(run).overall["rho"] == outcome.figure(name, "rho")
    lines = [(treatments / name / "answers-0.jsonl").read_text().splitlines() for name in names]
    keys = [{line.split("/n")[1].split('"')[0] for line in each} for each in lines]
    assert all(one == keys[0] for one in keys)
    assert told["analysis"]["analysis"] == outcome.to_json()["analysis"]
    assert told["versions"]["task"] == next(iter(folder.runs.values())).manifest.versions["task"]


def test_the_planted_effect_stands_and_no_other(treatments):
    told = json.loads(belie("experiment", "treatments", PLANTED, "--resume", treatments, "--json"))
    standing = {one["condition"] for one in told["analysis"]["overall"] if one["p_holm"] <= 0.05}
    assert standing == {"sycophancy"}
    assert told["findings"][0].startswith("sycophancy against none: ρ̄ +")
    assert told["complete"]
    words = belie("experiment", "treatments", PLANTED, "--resume", treatments, "--by-n")
    for part in ("treatments · sim/when(", "30 chains each", "exact probabilities", "At each n", "p of the swap test"):
        assert part in " ".join(words.split())


def test_a_finished_experiment_opens_no_model_and_asks_nothing(treatments, monkeypatch):
    def refuse(*_):
        raise AssertionError("a model was opened")

    monkeypatch.setattr(experiment_asking, "open_respondent", refuse)
    before = {path: path.read_bytes() for path in treatments.glob("*/answers-*.jsonl")}
    belie("experiment", "treatments", PLANTED, "--resume", treatments)
    assert {path: path.read_bytes() for path in treatments.glob("*/answers-*.jsonl")} == before


def test_a_killed_experiment_goes_on_and_ends_with_the_same_figures(treatments, tmp_path):
    path = tmp_path / "killed"
    shutil.copytree(treatments, path)
    # As a kill leaves it: a whole run, a torn one, one that was just begun, two that never were.
    journal = path / "sycophancy" / "answers-0.jsonl"
    journal.write_bytes(journal.read_bytes()[:3000])
    manifest = json.loads((path / "sycophancy" / "manifest.json").read_text())
    (path / "sycophancy" / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    for name in ("mirror", "pressure", "honesty"):
        shutil.rmtree(path / name)
    (path / "mirror").mkdir()
    (path / "mirror" / ".lock").write_text("1")
    whole = (path / "none" / "answers-0.jsonl").read_bytes()
    before = (path / "experiment.json").read_text()
    partly = analyse(ExperimentFolder.open(path))
    assert partly.incomplete == ("sycophancy", "mirror", "pressure", "honesty")
    assert partly.notes[0].startswith("Not finished")
    belie("experiment", "treatments", PLANTED, "--resume", path)
    assert json.loads((path / "experiment.json").read_text()) == json.loads(before)
    assert (path / "none" / "answers-0.jsonl").read_bytes() == whole
    lines = journal.read_text().splitlines()
    assert (
        len(lines) == len(set(lines)) == len((treatments / "sycophancy" / "answers-0.jsonl").read_text().splitlines())
    )


def test_a_spent_budget_ends_with_3_and_what_there_is(tmp_path, monkeypatch):
    async def poor(*given):
        respondent = await open_respondent(*given)
        asked = respondent.ask

        async def ask(pending):
            async for count, answer in _counted(asked(pending)):
                if count == 150:
                    raise BudgetSpent("The money is gone.")
                yield answer

        respondent.ask = ask
        return respondent

    async def _counted(answers):
        count = 0
        async for answer in answers:
            yield count, answer
            count += 1

    monkeypatch.setattr(experiment_asking, "open_respondent", poor)
    path = tmp_path / "poor"
    said = CliRunner().invoke(
        app, ["experiment", "order", "sim/guesser", "--n", "3", "--chains", "30", "-o", str(path)]
    )
    assert said.exit_code == 3
    assert "The money is gone." in said.stderr
    assert f"--resume {path}" in said.stderr
    assert not (path / "easy_first").exists()
    monkeypatch.undo()
    belie("experiment", "order", "sim/guesser", "--resume", path)
    assert ExperimentFolder.open(path).complete


def test_other_options_are_refused_by_name(treatments):
    def again(*words):
        return belie("experiment", "treatments", *words, "--resume", treatments, code=2)

    assert "chains was 30, now 31" in again(PLANTED, "--chains", "31")
    assert "model was sim/when(" in again("sim/guesser")
    assert "treated was first, now both" in again(PLANTED, "--treated", "both")
    assert "conditions was none,sycophancy,mirror" in again(PLANTED, "--conditions", "none,mirror")
    assert "is the experiment treatments, not k" in belie("experiment", "k", PLANTED, "--resume", treatments, code=2)
    assert "already holds an experiment" in belie("experiment", "k", PLANTED, "-o", treatments, code=2)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("colours", "sim/guesser"), "There is no experiment 'colours'. Experiments: worlds, treatments, k,"),
        (("k", "sim/guesser", "--conditions", "2"), "needs at least two"),
        (("k", "sim/guesser", "--conditions", "2,two"), "'two' is none"),
        (("k", "sim/guesser", "--conditions", "2,4,2"), "names a condition twice"),
        (("k", "sim/guesser", "--n", "3,10"), "k = 4 with n = 3"),
        (("k", "sim/guesser", "--conditions", "2,64"), "needs chains of at least 64"),
        (("votes", "sim/guesser", "--conditions", "0,3"), "from 1 on"),
        (("phrasing", "sim/guesser", "--separate"), "leave --separate away"),
        (("worlds", "sim/guesser", "--conditions", "contacts,mars"), "There is no world 'mars'"),
        (("treatments", "sim/guesser", "--conditions", "none,bribe"), "There is no treatment 'bribe'"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(words, part, tmp_path):
    assert part in belie("experiment", *words, "-o", tmp_path / "x", code=2)
    assert not (tmp_path / "x").exists()


def test_k_leaves_out_chains_that_are_too_short_and_moves_no_first_answer(tmp_path):
    told = json.loads(belie("experiment", "k", "sim/capability(5)", "--chains", "25", "-o", tmp_path / "k", "--json"))
    assert told["sizes"] == [10, 20]
    assert [one["name"] for one in told["conditions"]] == ["k2", "k4", "k8"]
    assert all(one["value"] == 0 for one in told["analysis"]["overall"] if one["score"] in ("rho", "beta", "error"))


def test_order_and_enumerate_are_asked_in_words(tmp_path):
    for name, field in (("order", "order"), ("enumerate", "style")):
        belie("experiment", name, "sim/fabricator(0.4)", "--n", "5", "--chains", "20", "-o", tmp_path / name)
        runs = ExperimentFolder.open(tmp_path / name).runs
        assert [run.manifest.options["exact"] for run in runs.values()] == [False, False]
        assert [run.manifest.options[field] for run in runs.values()] == list(runs)


def test_temperature_is_the_runs_own(tmp_path):
    words = belie("experiment", "temperature", "sim/guesser", *SMALL, "--conditions", "0.7,0", "-o", tmp_path / "t")
    runs = ExperimentFolder.open(tmp_path / "t").runs
    assert {name: run.manifest.options["temperature"] for name, run in runs.items()} == {"t0.7": 0.7, "t0": 0.0}
    assert "Nothing differs from t0.7" in words


def test_what_is_sure_and_small_is_said_to_be_small(tmp_path):
    model = "sim/when(mirror: fabricator(0.25); else: fabricator(0.2))"
    words = belie("experiment", "treatments", model, *SMALL, "--conditions", "none,mirror", "-o", tmp_path / "small")
    said = " ".join(words.split()).partition("mirror against none:")[2]
    assert "ρ̄ +0.0" in said  # ln(0.8/0.75) = 0.065
    assert "less than the ±0.1 that counts as none" in said.partition("δ̄")[0]


def test_votes_come_from_one_run_of_draws(tmp_path):
    path = tmp_path / "votes"
    model, votes = "sim/fabricator(0.2, spread=0)", "1,3,5"
    told = json.loads(belie("experiment", "votes", model, *SMALL, "--conditions", votes, "-o", path, "--json"))
    assert [one["name"] for one in told["conditions"]] == ["1 vote", "3 votes", "5 votes"]
    assert RunFolder.open(path / "draws").manifest.options["draws"] == 5
    # A wrong answer one time in five: of three votes two are wrong with 3·0.2²·0.8 + 0.2³, on two questions in four.
    overall = {(one["condition"], one["score"]): one for one in told["analysis"]["overall"]}
    error = overall["3 votes", "error"]
    assert error["first"] == pytest.approx(0.1, abs=0.02)
    assert error["second"] == pytest.approx(0.104 / 2, abs=0.02)
    assert error["p_holm"] < 0.05


def test_phrasings_are_crossed_with_chains(tmp_path):
    words = belie("experiment", "phrasing", "sim/when(p1: fabricator(0.7); else: honest)", "--sample", *SMALL, "--by-n",
                  "--conditions", "0,1,2,3", "-o", tmp_path / "p")  # fmt: skip
    plain = " ".join(words.split())
    assert "A first answer being wrong: phrasing makes a difference" in plain
    assert "· 4 phrasings · n = 8" in plain
    told = json.loads((tmp_path / "p" / "experiment.json").read_text())["analysis"]["analysis"]
    assert told["chains"] == {"3": 30, "8": 30}
    assert told["all"]["wrong"][3]["variance"] is None


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    path = tmp_path_factory.mktemp("experiments") / "worlds"
    words = belie("run", PLANTED, "--world", "all", *SMALL, "-o", path)
    return path, words


def test_all_worlds_is_the_experiment_and_names_the_odd_one(worlds):
    path, words = worlds
    assert "worlds · sim/when(" in words
    assert re.search(r"flights departs from the mean of the others", " ".join(words.split()))
    assert ExperimentFolder.open(path).plan.experiment == "worlds"
    assert "contacts" in [run.manifest.options["world"] for run in ExperimentFolder.open(path).runs.values()]
    again = belie("run", PLANTED, "--world", "all", "--resume", path)
    assert again == words
    assert "leave --half-width" in belie("run", "sim/guesser", "--world", "all", "--half-width", "0.05", code=2)


def test_the_page_shows_experiments_and_only_where_there_are_any(worlds, treatments):
    path, _ = worlds
    page = make_report([path, treatments]).html
    section = page[page.index('<section id="experiments"') :]
    section = section[: section.index("</section>")]
    assert section.count("<figure") == 2
    assert "sycophancy against none" in section
    assert "flights departs from the mean" in section
    assert f"belie report {path.name} {treatments.name}" in page
    assert 'href="#experiments"' in page
    alone = make_report([treatments / "none"]).html
    assert 'id="experiments"' not in alone
    assert 'href="#experiments"' not in alone


def test_every_experiment_says_what_it_is():
    help_text = CliRunner().invoke(app, ["experiment", "--help"]).output
    for name in KINDS:
        assert name in help_text
    assert "Example:" in help_text


def test_a_damaged_plan_is_told(tmp_path):
    (tmp_path / "experiment.json").write_text('{"experiment": "k"}')
    with pytest.raises(BadInput, match="is damaged"):
        ExperimentFolder.open(tmp_path)
    (tmp_path / "experiment.json").write_text(
        json.dumps({"experiment": "k", "model": "sim/guesser", "values": [], "options": {},
                    "conditions": [{"name": "../k2", "variant": {}, "asking": {}}]})
    )  # fmt: skip
    with pytest.raises(BadInput, match="no name for a folder"):
        ExperimentFolder.open(tmp_path)
    with pytest.raises(BadInput, match="holds no experiment"):
        ExperimentFolder.open(tmp_path / "nowhere")

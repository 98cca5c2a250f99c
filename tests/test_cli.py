"""The command line as a user meets it: what is printed, and what is said of bad input."""

import json
import os
from pathlib import Path

import pytest
from test_csq_run import BELIE, belie, serving


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "fabricator"
    done = belie("csq", "run", "sim/fabricator(0.4)", "--n", "3,5", "--chains", "40", "-o", str(path))
    assert done.returncode == 0, done.stderr
    return path


def test_questions_prints_the_very_text_that_is_asked():
    from belie.csq.questions import item_from_id

    done = belie("csq", "questions", "--world", "contacts", "--n", "5", "--index", "0")
    assert done.returncode == 0
    for category in ("linked", "broken", "linked_reversed", "broken_reversed"):
        item = item_from_id(f"contacts-1/n5/s0/00000/{category}")
        assert item.question in done.stdout
        assert (item.followup or "") in done.stdout
    told = json.loads(belie("csq", "questions", "--n", "5", "--json").stdout)
    assert told[0]["id"] == "contacts-1/n5/s0/00000/linked"


def test_run_prints_a_table_by_n_and_a_verdict(run):
    done = belie("csq", "show", str(run))
    assert done.returncode == 0
    words = done.stdout
    for name in ("ρ", "δ", "δ_net", "β", "error", "100.0% of 160", "100.0% of 80", "world contacts-1"):
        assert name in words
    assert "does not tell why" in " ".join(words.split())


def test_show_agrees_with_scores_json_to_the_digit(run):
    shown = json.loads(belie("csq", "show", str(run), "--json").stdout)
    saved = json.loads((run / "scores.json").read_text())
    assert {name: shown[name] for name in saved} == saved
    linear = json.loads(belie("csq", "show", str(run), "--json", "--rule", "linear", "--t", "5").stdout)
    assert linear["overall"]["rho"] != saved["overall"]["rho"]
    assert linear["cells"][0]["rho"] == saved["cells"][0]["rho"]


def test_run_with_json_prints_one_document_and_nothing_else(tmp_path):
    done = belie("csq", "run", "sim/honest", "--n", "3", "--chains", "10", "--json", "-o", str(tmp_path / "r"))
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["status"] == "complete"
    assert told["placement"]["mode"] == "honest"
    assert done.stderr == ""


def test_audit_says_where_the_results_are(tmp_path):
    done = belie("audit", "sim/guesser", "-o", str(tmp_path / "r"))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "r") in done.stdout
    assert (tmp_path / "r" / "scores.json").exists()


def test_every_command_has_help_with_an_example():
    from typer.testing import CliRunner

    from belie.cli import app

    def walk(group, words):
        yield words
        for command in group.registered_commands:
            name = command.name or command.callback.__name__.strip("_").replace("_", "-")
            yield [*words, name]
        for inner in group.registered_groups:
            yield from walk(inner.typer_instance, [*words, inner.name])

    for words in walk(app, []):
        done = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
        assert done.exit_code == 0, words
        assert f"belie {' '.join(words)}".strip() in done.output.replace("Usage: root", ""), words
        assert "Example" in done.output or "Start here" in done.output, words


def test_a_full_disk_corrupts_nothing(tmp_path, run):
    """The kernel refuses every file beyond 30 kB: the run stops with a sentence, and goes on where it was."""
    import resource
    import subprocess

    words = ["csq", "run", "sim/fabricator(0.4)", "--n", "3,5", "--chains", "40"]
    full = subprocess.run(
        [*BELIE, *words, "-o", str(tmp_path / "r")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)),
    )
    assert full.returncode == 2, full.stderr
    assert "--resume" in full.stderr
    assert "Traceback" not in full.stderr
    assert 0 < (tmp_path / "r" / "answers-0.jsonl").read_bytes().count(b"\n") < 480
    done = belie(*words, "--resume", str(tmp_path / "r"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r" / "scores.json").read_bytes() == (run / "scores.json").read_bytes()


BAD = [
    (("csq", "run", "gpt-4"), "'gpt-4' is not a model string"),
    (("csq", "run", "nosuch/model"), "neither Belie (local/, http/, sim/) nor Inspect AI knows 'nosuch'"),
    (("csq", "run", "local/nosuch-model-here"), "smollm2-135m"),
    (("csq", "run", "sim/liar"), "honest"),
    (("csq", "run", "http/x", "--base-url", "https://models.example.com/v1"), "OPENAI_API_KEY"),
    (("csq", "run", "http/x", "--base-url", "http://127.0.0.1:9/v1"), "http://127.0.0.1:9"),
    (("csq", "run", "sim/honest", "--n", "2"), "n = 2"),
    (("csq", "run", "sim/honest", "--n", "3,many"), "'many' is none"),
    (("csq", "run", "sim/honest", "--n", "900"), "n = 900 is more than the 120 unlike entities"),
    (("csq", "run", "sim/honest", "--n", "3", "--k", "4"), "k = 4 with n = 3"),
    (("csq", "run", "sim/honest", "--preset", "huge"), "Presets: quick, paper"),
    (("csq", "run", "sim/honest", "--world", "atlantis"), "There is no world 'atlantis'"),
    (("csq", "run", "sim/honest", "--phrasing", "99"), "phrasings 0 to 11"),
    (("csq", "run", "sim/honest", "--followups", "some"), "wrong or all"),
    (("csq", "run", "sim/honest", "--price", "cheap"), "--price takes two numbers"),
    (("csq", "show", "/nowhere/at/all"), "holds no run"),
    (("models", "fetch", "gpt-9"), "smollm2-135m"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words[2:]) for words, _ in BAD])
def test_bad_input_gives_one_sentence_and_exit_code_2(tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    keep = {name: "" for name in os.environ if name.endswith("_API_KEY")}
    done = belie(*words, **keep, OPENAI_BASE_URL="")
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.rglob("manifest.json")), "a run was left behind"


def test_a_world_file_with_a_wrong_field_is_named_with_line_and_field(tmp_path):
    from importlib import resources

    text = (resources.files("belie.csq") / "worlds" / "contacts.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("title: ", "titel: "))
    done = belie("csq", "run", "sim/honest", "--world", str(tmp_path / "mine.yaml"))
    assert done.returncode == 2
    assert f"{tmp_path}/mine.yaml:" in done.stderr
    assert "titel" in done.stderr or "title" in done.stderr


def test_resume_with_other_options_says_which_differ(run):
    done = belie("csq", "run", "sim/fabricator(0.4)", "--chains", "41", "--seed", "5", "--resume", str(run))
    assert done.returncode == 2
    assert "chains was 40, now 41" in done.stderr
    assert "seed was 0, now 5" in done.stderr
    other = belie("csq", "run", "sim/honest", "--resume", str(run))
    assert other.returncode == 2
    assert "respondent was sim/fabricator" in other.stderr


def test_resume_needs_no_options_repeated(run):
    before = (run / "scores.json").read_bytes()
    done = belie("csq", "run", "sim/fabricator(0.4)", "--resume", str(run))
    assert done.returncode == 0, done.stderr
    assert (run / "scores.json").read_bytes() == before


def test_a_second_process_on_a_run_is_refused(tmp_path):
    import subprocess
    import time

    with serving(delay_s=0.2) as stub:
        words = ["csq", "run", "http/stub", "--sample", "--n", "3", "--chains", "200", "--concurrency", "2"]
        words += ["--base-url", stub.url]
        path = tmp_path / "r"
        first = subprocess.Popen(
            [*BELIE, *words, "-o", str(path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not (path / "answers-0.jsonl").exists() and first.poll() is None:
                time.sleep(0.02)
            second = belie(*words, "--resume", str(path))
        finally:
            first.kill()
            first.wait()
    assert second.returncode == 2
    assert f"Another process (id {first.pid})" in second.stderr


def test_a_spent_budget_keeps_what_was_paid_and_exits_with_3(tmp_path):
    with serving() as stub:
        words = ["csq", "run", "http/stub", "--sample", "--n", "3", "--chains", "20", "--concurrency", "1"]
        words += ["--base-url", stub.url, "--price", "10,10", "--max-cost", "0.05", "-o", str(tmp_path / "r")]
        done = belie(*words)
    assert done.returncode == 3, done.stderr
    assert "--resume" in done.stderr
    told = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert told["status"] == "incomplete"
    assert 0 < told["totals"]["cost"] <= 0.05


def test_a_key_is_never_written(tmp_path):
    with serving() as stub:
        words = ["csq", "run", "http/stub", "--sample", "--n", "3", "--chains", "3", "--base-url", stub.url]
        done = belie(*words, "-o", str(tmp_path / "r"), OPENAI_API_KEY="sk-verysecret-0123456789")
    assert done.returncode == 0, done.stderr
    for file in (tmp_path / "r").rglob("*"):
        if file.is_file():
            assert b"verysecret" not in file.read_bytes(), file

"""A run folder: manifest, lock, continuing, list, table."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belie.items import Answer, Item
from belie.respondents.base import BadInput
from belie.runs import Manifest, RunFolder, list_runs
from belie.runs.tables import write_answers_parquet


def manifest(**values) -> Manifest:
    options = {"n": [3, 5], "seed": 1, "treatment": None, "concurrency": 20}
    return Manifest("csq", "sim/honest", **{"options": options, "binding": ("n", "seed", "treatment"), **values})


def child(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


# --- manifest --------------------------------------------------------------------------------------------------


def test_a_manifest_comes_back_with_everything_in_it(tmp_path: Path):
    told = manifest(
        seeds={"items": 7},
        versions={"world": "contacts@1"},
        hashes={"contacts.yaml": "ab" * 32},
        provenance={"model": "m-2026", "weight": np.float64(0.5), "layers": np.int64(3), "odd": float("nan")},
    )
    with RunFolder.create(tmp_path / "deep" / "run", told) as run:
        run.update(totals={"prompt_tokens": 5, "cost": 0.25})
        run.finish("incomplete", counts={"asked": 8, "missing": 1})
    found = RunFolder.open(run.path).manifest
    assert found.options == told.options
    assert found.binding == told.binding
    assert (found.seeds, found.versions, found.hashes) == (told.seeds, told.versions, told.hashes)
    assert found.provenance == {"model": "m-2026", "weight": 0.5, "layers": 3, "odd": "nan"}
    assert found.totals == {"prompt_tokens": 5, "cost": 0.25}
    assert (found.status, found.counts) == ("incomplete", {"asked": 8, "missing": 1})
    assert found.created <= found.updated
    assert found.finished is not None
    assert found.belie
    assert json.loads((run.path / "manifest.json").read_text())["schema"] == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda raw: raw.pop("options"), r"field 'options' must be an object, it is None"),
        (lambda raw: raw.update(status="done"), r"field 'status' must be one of running, .* it is 'done'"),
        (lambda raw: raw.update(instrument="csk"), r"field 'instrument' must be one of csq, knownlie"),
        (lambda raw: raw.update(schema=99), r"newer belie \(schema 99, known: 1\): update belie"),
    ],
)
def test_a_wrong_manifest_is_a_sentence_that_names_the_field(tmp_path: Path, change, sentence: str):
    RunFolder.create(tmp_path / "r", manifest()).close()
    file = tmp_path / "r" / "manifest.json"
    raw = json.loads(file.read_text())
    change(raw)
    file.write_text(json.dumps(raw))
    with pytest.raises(BadInput, match=sentence):
        RunFolder.open(tmp_path / "r")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00", b"[" * 100_000])
def test_an_unreadable_manifest_is_a_sentence_and_stays_in_the_list(tmp_path: Path, content: bytes):
    RunFolder.create(tmp_path / "r", manifest()).close()
    (tmp_path / "r" / "manifest.json").write_bytes(content)
    with pytest.raises(BadInput, match=r"manifest\.json .*start a new run"):
        RunFolder.resume(tmp_path / "r", {})
    (summary,) = list_runs(tmp_path)
    assert (summary.name, summary.status) == ("r", "unreadable")
    assert "manifest.json" in (summary.problem or "")


@pytest.mark.parametrize("moment", ["os.fsync", "os.replace"])
def test_a_kill_in_the_middle_of_writing_leaves_the_old_manifest(tmp_path: Path, moment: str):
    path = tmp_path / "r"
    RunFolder.create(path, manifest()).close()
    before = (path / "manifest.json").read_bytes()
    dies = child(
        """
        import os, signal, sys
        from belie.runs import RunFolder, files
        run = RunFolder.resume(sys.argv[1], {"n": [3, 5], "seed": 1})
        run.update(totals={"prompt_tokens": 1})
        print(open(sys.argv[1] + "/manifest.json").read(), end="", flush=True)
        setattr(os, sys.argv[2].split(".")[1], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        run.update(totals={"prompt_tokens": 2})
        """,
        path,
        moment,
    )
    told, _ = dies.communicate()
    assert dies.returncode == -signal.SIGKILL
    assert (path / "manifest.json").read_text() == told != before.decode()
    with RunFolder.resume(path, {"n": [3, 5], "seed": 1}) as run:
        assert run.manifest.totals == {"prompt_tokens": 1}


def test_a_reader_sees_a_whole_manifest_at_every_moment(tmp_path: Path):
    path = tmp_path / "r"
    RunFolder.create(path, manifest()).close()
    busy = child(
        """
        import sys
        from belie.runs import RunFolder
        run = RunFolder.resume(sys.argv[1], {"n": [3, 5], "seed": 1})
        print("go", flush=True)
        k = 0
        while True:
            k += 1
            run.update(totals={"k": k, "filler": "x" * (k % 7) * 1000})
        """,
        path,
    )
    assert busy.stdout is not None
    busy.stdout.readline()
    seen = [0]
    while seen[-1] < 5:
        time.sleep(0.001)
        totals = RunFolder.open(path).manifest.totals
        seen.append(totals.get("k", 0))
        assert len(totals.get("filler", "")) == seen[-1] % 7 * 1000
    busy.kill()
    busy.communicate()
    assert seen == sorted(seen)


# --- creating, locking, continuing -----------------------------------------------------------------------------


def test_a_run_is_never_created_over_something(tmp_path: Path):
    RunFolder.create(tmp_path / "r", manifest()).close()
    with pytest.raises(BadInput, match="already holds a run: continue it with --resume"):
        RunFolder.create(tmp_path / "r", manifest())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(BadInput, match="is not empty and holds no run"):
        RunFolder.create(tmp_path / "mine", manifest())
    with pytest.raises(BadInput, match="is a file"):
        RunFolder.create(tmp_path / "mine" / "thesis.tex", manifest())
    with pytest.raises(BadInput, match="creating the folder"):
        RunFolder.create(tmp_path / "mine" / "thesis.tex" / "run", manifest())
    (tmp_path / "hidden" / ".git").mkdir(parents=True)
    with pytest.raises(BadInput, match="is not empty"):
        RunFolder.create(tmp_path / "hidden", manifest())
    (tmp_path / "empty").mkdir()
    RunFolder.create(tmp_path / "empty", manifest()).close()


def test_where_there_is_no_run_a_sentence_says_so(tmp_path: Path):
    for make in (RunFolder.open, lambda path: RunFolder.resume(path, {})):
        with pytest.raises(BadInput, match="holds no run"):
            make(tmp_path / "nowhere")
        with pytest.raises(BadInput, match="holds no run"):
            make(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_is_refused_until_the_first_is_gone_even_by_kill(tmp_path: Path):
    path = tmp_path / "r"
    holder = child(
        """
        import sys, time
        from belie.items import Answer
        from belie.runs import Manifest, RunFolder
        run = RunFolder.create(sys.argv[1], Manifest("csq", "sim/honest"))
        run.writer().write(Answer("a", "first", text="No"))
        print("locked", flush=True)
        time.sleep(60)
        """,
        path,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(BadInput, match=rf"Another process \(id {holder.pid}\) is writing to .*wait for it"):
        RunFolder.resume(path, {})
    reader = RunFolder.open(path)  # reading needs no lock
    assert [a.item for a in reader.journal.answers()] == ["a"]
    assert reader.status == list_runs(tmp_path)[0].status == "running"
    with pytest.raises(RuntimeError, match="opened for reading"):
        reader.writer()
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    assert reader.status == list_runs(tmp_path)[0].status == "interrupted"
    with RunFolder.resume(path, {}) as run:
        assert run.status == "running"
        with pytest.raises(BadInput, match=rf"Another process \(id {os.getpid()}\)"):
            RunFolder.resume(path, {})  # a second use in the same process is one too many as well
    RunFolder.resume(path, {}).close()


def test_other_options_are_refused_with_both_values_and_the_run_stays_as_it_was(tmp_path: Path):
    path = tmp_path / "r"
    RunFolder.create(path, manifest(versions={"world": "1"}, hashes={"w.yaml": "aa"})).close()
    before = (path / "manifest.json").read_bytes()
    with pytest.raises(BadInput) as caught:
        RunFolder.resume(
            path,
            {"n": (3, 10), "seed": 1, "treatment": "pressure", "concurrency": 5},
            respondent="sim/guesser",
            versions={"world": "2"},
            hashes={"w.yaml": "bb"},
        )
    assert str(caught.value) == (
        f"{path} was started with other options, so its answers would not belong together: "
        'respondent was sim/honest, now sim/guesser; n was [3, 5], now [3, 10]; treatment was not set, now "pressure"; '
        "version of world was 1, now 2; hash of w.yaml was aa, now bb. Use the same options, or start a new run."
    )
    assert (path / "manifest.json").read_bytes() == before
    same = {"n": (3, 5), "seed": 1, "concurrency": 5, "timeout": 9}
    with RunFolder.resume(path, same, respondent="sim/honest", versions={"world": "1"}, hashes={"w.yaml": "aa"}) as run:
        assert run.manifest.options["concurrency"] == 5
        assert run.manifest.options["timeout"] == 9


def test_a_binding_option_with_a_secret_in_it_still_matches_itself(tmp_path: Path):
    options = {"base_url": "https://me:pw@host/v1?key=abc", "api_key": "k-123456789"}
    made = Manifest("csq", "http/m", options=options, binding=("base_url", "api_key"))
    RunFolder.create(tmp_path / "r", made).close()
    assert "pw" not in (tmp_path / "r" / "manifest.json").read_text()
    RunFolder.resume(tmp_path / "r", options).close()
    with pytest.raises(BadInput, match="base_url was"):
        RunFolder.resume(tmp_path / "r", {**options, "base_url": "https://me:pw@other/v1"})


def test_a_binding_name_that_is_no_option_is_a_mistake_of_the_program(tmp_path: Path):
    with pytest.raises(ValueError, match="typo"):
        RunFolder.create(tmp_path / "r", manifest(binding=("typo",)))


def test_an_error_on_the_way_marks_the_run_interrupted(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), RunFolder.create(tmp_path / "r", manifest()):
        _ = 1 / 0
    assert RunFolder.open(tmp_path / "r").manifest.status == "interrupted"


def test_files_of_a_run_are_saved_whole_and_inside_it(tmp_path: Path):
    run = RunFolder.create(tmp_path / "r", manifest())
    assert run.save("scores.json", "{}").read_text() == "{}"
    assert run.save("scores.json", b"[]").read_text() == "[]"
    for name in ("../x", "a/b", "..", "", "manifest.json"):
        with pytest.raises(ValueError, match="is no name"):
            run.save(name, "")
    run.close()
    assert sorted(p.name for p in run.path.iterdir()) == [".lock", "manifest.json", "scores.json"]


# --- names and list --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("respondent", "slug"),
    [
        ("local/smollm2-135m", "smollm2-135m"),
        ("local//data/My Model (v2).gguf", "my-model-v2-.gguf"),
        ("anthropic/claude", "claude"),
        ("sim/deceiver(0.3)", "deceiver-0.3"),
        ("http/..", "model"),
        ("日本", "model"),
        ("", "model"),
    ],
)
def test_names_of_runs_say_what_they_are(tmp_path: Path, respondent: str, slug: str):
    path = RunFolder.new_path(tmp_path, "csq", respondent)
    assert path.parent == tmp_path
    assert re.fullmatch(rf"csq-{re.escape(slug)}-\d{{8}}-\d{{6}}", path.name)


@given(st.text())
def test_names_of_runs_are_safe_for_any_respondent(respondent: str):
    name = RunFolder.new_path("runs", "csq", respondent).name
    assert re.fullmatch(r"csq-[a-z0-9][a-z0-9.-]*-\d{8}-\d{6}", name)
    assert len(name) < 100


def test_a_name_is_never_given_twice(tmp_path: Path):
    paths = set()
    for _ in range(3):
        path = RunFolder.new_path(tmp_path, "csq", "sim/x")
        RunFolder.create(path, manifest()).close()
        paths.add(path)
    assert len(paths) == 3
    assert {run.path for run in list_runs(tmp_path)} == paths


def test_the_list_tells_what_each_run_is(tmp_path: Path):
    assert list_runs(tmp_path / "none") == []
    with RunFolder.create(tmp_path / "b", manifest(created="2026-01-02T00:00:00+00:00")) as run:
        run.finish("complete", counts={"answered": 8})
    RunFolder.create(tmp_path / "a", Manifest("knownlie", "m/x", created="2026-01-03T00:00:00+00:00")).close()
    (tmp_path / "no run").mkdir()
    first, second = list_runs(tmp_path)
    assert (first.name, first.instrument, first.respondent, first.status) == ("b", "csq", "sim/honest", "complete")
    assert (first.created, first.counts) == ("2026-01-02T00:00:00+00:00", {"answered": 8})
    assert (second.name, second.instrument, second.status) == ("a", "knownlie", "interrupted")


# --- table -----------------------------------------------------------------------------------------------------


def test_the_table_holds_each_answer_once_beside_its_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("belie.runs.tables.GROUP_ROWS", 2)
    items = [
        Item("i-linked", "c1", 3, "linked", "?", True),
        Item("i-broken", "c1", 3, "broken", "?", False, "??"),
        Item("j-broken", "c2", 80, "broken_reversed", "?", True, "??"),
    ]
    with RunFolder.create(tmp_path / "r", manifest()) as run:
        for answer in (
            Answer("i-linked", "first", error="timeout"),
            Answer("i-linked", "first", p=(0.1, 0.7), tokens=(10, 1), cost=0.25),
            Answer("i-broken", "first", text="Yes\n\ud800", reasoning="because\x00é"),
            Answer("i-broken", "followup", text="No"),
            Answer("j-broken", "first", 4, error="429"),
        ):
            run.writer().write(answer)
        path = write_answers_parquet(run, items)
        assert path == write_answers_parquet(tmp_path / "r", {item.id: item for item in items}.__getitem__)
    table = pq.read_table(path)
    assert pq.ParquetFile(path).num_row_groups == 2
    assert all(table.schema.field(name).metadata[b"description"] for name in table.column_names)
    assert table.drop_columns(["cost", "completion_tokens", "prompt_tokens"]).to_pydict() == {
        "item": ["i-linked", "i-broken", "i-broken", "j-broken"],
        "chain": ["c1", "c1", "c1", "c2"],
        "n": [3, 3, 3, 80],
        "category": ["linked", "broken", "broken", "broken_reversed"],
        "truth": [True, False, False, True],
        "step": ["first", "first", "followup", "first"],
        "draw": [0, 0, 0, 4],
        "p_yes": [0.1, None, None, None],
        "p_no": [0.7, None, None, None],
        "text": [None, "Yes\n���", "No", None],
        "reasoning": [None, "because\x00é", None, None],
        "error": [None, None, None, "429"],
    }
    assert table["cost"].to_pylist() == [0.25, 0, 0, 0]
    assert table["prompt_tokens"].to_pylist() == [10, 0, 0, 0]


def test_a_run_without_answers_gives_an_empty_table_and_an_unknown_item_a_sentence(tmp_path: Path):
    with RunFolder.create(tmp_path / "r", manifest()) as run:
        path = write_answers_parquet(run, [])
        assert pq.read_table(path).num_rows == 0
        run.writer().write(Answer("ghost", "first", text="No"))
        with pytest.raises(BadInput, match="'ghost', which is no item of this run"):
            write_answers_parquet(run, [])
    assert pq.read_table(path).num_rows == 0
    assert sorted(p.name for p in run.path.glob(".*")) == [".lock"]

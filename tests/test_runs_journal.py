"""The journal: every answer comes back exactly once, whatever stops the run."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belie.items import Answer
from belie.respondents.base import BadInput
from belie.runs import Journal, JournalWriter, Manifest, RunFolder
from belie.runs.counting import SHARD_BITS, Counting
from belie.runs.record import from_line, to_line

any_text = st.text(st.characters(exclude_categories=()), max_size=60)
probability = st.floats(0, 1)
contents: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.tuples(probability, probability).map(lambda p: {"p": p}),
    any_text.map(lambda t: {"text": t}),
    any_text.map(lambda t: {"error": t}),
)


@st.composite
def some_answers(draw: st.DrawFn) -> Answer:
    return Answer(
        item=draw(any_text),
        step=draw(st.sampled_from(["first", "followup"])),
        draw=draw(st.integers(0, 10**6)),
        reasoning=draw(st.none() | any_text),
        tokens=draw(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40))),
        cost=draw(st.floats(0, 1e9)),
        **draw(contents),
    )


def new_run(path: Path) -> RunFolder:
    return RunFolder.create(path, Manifest("csq", "sim/honest"))


def written(folder: Path, *answers: Answer) -> Journal:
    with JournalWriter(folder) as writer:
        for answer in answers:
            writer.write(answer)
    return Journal(folder)


# --- one record ------------------------------------------------------------------------------------------------


@given(some_answers())
def test_an_answer_comes_back_equal_from_one_line(answer: Answer):
    line = to_line(answer)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert from_line(line) == answer


def test_unusual_texts_come_back():
    texts = ["\ud83d\ude00", "\udc80 \ud800", "a\nb\r\n\x00\x85\u2028\u2029", '"\\', "", "\U0001f600", "x" * 1_000_000]
    for text in texts:
        answer = Answer("i", "first", text=text, reasoning=text[::-1])
        assert from_line(to_line(answer)) == answer


def test_records_are_small():
    exact = Answer("contacts@1:n80:999:broken", "first", p=(0.1234567890123456, 0.8765432109876543), tokens=(400, 1))
    assert len(to_line(exact)) <= 100
    assert to_line(Answer("x", "first", text="No")) == b'{"i":"x","t":"No"}\n'
    assert (
        to_line(Answer("x", "followup", 2, p=(0.25, 0.5), cost=0.5))
        == b'{"i":"x","f":1,"d":2,"p":[0.25,0.5],"c":0.5}\n'
    )


@pytest.mark.parametrize(
    "answer",
    [
        Answer("x", "first"),
        Answer("x", "first", text="Yes", error="timeout"),
        Answer("x", "first", p=(0.5, 0.5), text="Yes"),
        Answer("x", "first", p=(float("nan"), 0.5)),
        Answer("x", "first", p=(1.5, 0.5)),
        Answer("x", "first", text="Yes", cost=float("inf")),
        Answer("x", "first", draw=-1, text="Yes"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, answer: Answer):
    with JournalWriter(tmp_path) as writer:
        with pytest.raises(ValueError):  # noqa: PT011
            writer.write(answer)
        writer.write(Answer("y", "first", text="No"))
    assert list(Journal(tmp_path).records()) == [Answer("y", "first", text="No")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "Expecting"),
        (b"\x00\x00\x00", "Expecting"),
        (b"\xff\xfe", "codec"),
        (b"[1]", "not a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"t":"Yes"}', "no item id"),
        (b'{"i":1,"t":"Yes"}', "no item id"),
        (b'{"i":"x"}', "not exactly one"),
        (b'{"i":"x","t":"Yes","e":"no"}', "not exactly one"),
        (b'{"i":"x","t":null}', "not text"),
        (b'{"i":"x","p":[0.5]}', "pair of probabilities"),
        (b'{"i":"x","p":[NaN,0.5]}', "pair of probabilities"),
        (b'{"i":"x","p":[true,false]}', "pair of probabilities"),
        (b'{"i":"x","t":"Yes","z":1}', "unknown key 'z'"),
        (b'{"i":"x","t":"Yes","d":-1}', "draw"),
        (b'{"i":"x","t":"Yes","f":0}', "f is not 1"),
        (b'{"i":"x","t":"Yes","u":[1.5,2]}', "counts"),
        (b'{"i":"x","t":"Yes","c":Infinity}', "cost"),
    ],
)
def test_a_damaged_line_in_the_middle_is_named_and_can_be_skipped(tmp_path: Path, line: bytes, reason: str):
    a, b = Answer("a", "first", text="Yes"), Answer("b", "first", text="No")
    (tmp_path / "answers-0.jsonl").write_bytes(to_line(a) + line + b"\n" + to_line(b))
    for read in (lambda j: list(j.records()), lambda j: list(j.answers()), lambda j: j.state()):
        with pytest.raises(BadInput, match=r"Line 2 of .*answers-0\.jsonl is damaged .*--skip-damaged") as caught:
            read(Journal(tmp_path))
        assert reason in str(caught.value)
    journal = Journal(tmp_path)
    assert list(journal.answers(skip=True)) == [a, b]
    assert len(journal.notices) == 1
    assert "Line 2" in journal.notices[0]


# --- torn lines ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 70_000])
def test_a_line_torn_at_any_byte_is_dropped_and_written_again(tmp_path: Path, size: int):
    whole = [Answer("a", "first", text="é" * size), Answer("b", "followup", p=(0.1, 0.2), reasoning="\n")]
    last = Answer("c", "first", 3, text="Nö\n…", reasoning="{}", tokens=(3, 4), cost=0.1)
    start, end = b"".join(map(to_line, whole)), to_line(last)
    path = tmp_path / "answers-0.jsonl"
    for cut in range(len(end) + 1):
        path.write_bytes(start + end[:cut])
        complete = cut >= len(end) - 1  # only the newline is missing, or nothing
        journal = Journal(tmp_path)
        expected = [*whole, last] if complete else whole
        assert list(journal.answers()) == expected
        assert journal.state().has_first("c", 3) == complete
        assert ["torn" in notice for notice in journal.notices] == ([True] if 0 < cut < len(end) - 1 else [])
        with JournalWriter(tmp_path) as writer:
            assert len(writer.notices) == (0 < cut < len(end) - 1)
            if not complete:
                writer.write(last)
        assert path.read_bytes() == start + end


def test_a_file_that_is_only_a_torn_line_is_emptied(tmp_path: Path):
    (tmp_path / "answers-0.jsonl").write_bytes(b'{"i":"' + b"x" * 200_000)
    assert list(Journal(tmp_path).answers()) == []
    assert list(written(tmp_path, Answer("a", "first", text="No")).answers()) == [Answer("a", "first", text="No")]


# --- what counts -----------------------------------------------------------------------------------------------


def test_of_one_key_the_first_good_record_counts_and_failures_only_where_none_is_good(tmp_path: Path):
    failed, failed_again = Answer("a", "first", error="timeout"), Answer("a", "first", error="refused")
    good, late = Answer("a", "first", text="Yes", tokens=(5, 1), cost=0.5), Answer("a", "first", text="No", cost=0.25)
    after = Answer("a", "first", error="late")
    other_draw, follow = Answer("a", "first", 1, text="No"), Answer("a", "followup", text="Yes", tokens=(7, 2))
    never, never_again = Answer("b", "first", error="1"), Answer("b", "first", error="2")
    journal = written(tmp_path, failed, never, good, failed_again, late, other_draw, follow, after, never_again)
    state = journal.state()
    assert state.first("a") == good
    assert state.first("a", 1) == other_draw
    assert state.followup("a") == follow
    assert state.has_followup("a")
    assert not state.has_followup("a", 1)
    assert state.first("b") is None
    assert not state.has_first("b")
    assert state.first("unknown") is None
    assert list(journal.answers()) == [good, other_draw, follow, never_again]
    counts = state.counts
    assert (counts.first, counts.followup, counts.missing, counts.failed, counts.duplicates) == (2, 1, 1, 5, 1)
    assert (counts.prompt_tokens, counts.completion_tokens, counts.cost) == (12, 3, 0.75)


keys = st.tuples(st.sampled_from("abc"), st.sampled_from(["first", "followup"]), st.integers(0, 2))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(keys, st.booleans(), st.sampled_from("01")), max_size=40))
def test_state_and_answers_agree_with_a_plain_recount(tmp_path_factory: pytest.TempPathFactory, log: list):
    folder = tmp_path_factory.mktemp("run")
    records = [
        (shard, Answer(item, step, draw, text=str(k) if good else None, error=None if good else str(k)))
        for k, ((item, step, draw), good, shard) in enumerate(log)
    ]
    writers = {shard: JournalWriter(folder, shard) for shard in "01"}
    for shard, answer in records:
        writers[shard].write(answer)
    for writer in writers.values():
        writer.close()

    best: dict[tuple, Answer] = {}
    for _, a in sorted(records, key=lambda r: r[0]):  # shard by shard
        key = (a.item, a.step, a.draw)
        if key not in best or best[key].error is not None:
            best[key] = a
    journal = Journal(folder)
    found = list(journal.answers())
    assert len(found) == len(best)
    assert {(a.item, a.step, a.draw): a for a in found} == best
    state = journal.state()
    for item, step, draw in {(i, s, d) for i in "abc" for s in ("first", "followup") for d in range(4)}:
        expected = best.get((item, step, draw))
        expected = expected if expected and expected.error is None else None
        assert (state.first if step == "first" else state.followup)(item, draw) == expected
        assert (state.has_first if step == "first" else state.has_followup)(item, draw) == (expected is not None)
    assert state.counts.failed == sum(a.error is not None for _, a in records)


def test_what_a_live_run_writes_after_the_snapshot_is_not_in_it(tmp_path: Path):
    failed, good = Answer("a", "first", error="timeout"), Answer("a", "first", text="No")
    state = written(tmp_path, failed, Answer("b", "first", text="No")).state()
    with JournalWriter(tmp_path, "00") as other:  # sorts before the first shard
        other.write(Answer("c", "first", text="No"))
    journal = written(tmp_path, good)
    assert state.first("b") == Answer("b", "first", text="No")
    assert state.counts.missing == 1
    answers = journal.answers()
    assert [a.item for a in answers] == ["b", "a", "c"]


def test_answers_are_those_of_one_moment(tmp_path: Path):
    journal = written(tmp_path, Answer("a", "first", error="timeout"), Answer("b", "first", text="No"))
    answers = journal.answers()
    first = next(answers)
    with JournalWriter(tmp_path) as writer:
        writer.write(Answer("a", "first", text="No"))
        writer.write(Answer("d", "first", text="No"))
    assert [first, *answers] == [Answer("a", "first", error="timeout"), Answer("b", "first", text="No")]


def test_what_counts_is_settled_although_another_shard_grows_meanwhile():
    first = [(0, 9, {"i": "a", "t": "No"}), (1 << SHARD_BITS, 9, {"i": "b", "e": "timeout"})]
    first.append(((1 << SHARD_BITS) + 9, 9, {"i": "b", "t": "No"}))
    grown = [first[0], (9, 9, {"i": "c", "t": "No"}), *first[1:]]
    readings = iter([first, grown])
    counting = Counting(lambda: next(readings))
    assert list(counting.of(grown)) == [{"i": "a", "t": "No"}, {"i": "b", "t": "No"}]


def test_an_empty_run_has_no_answers(tmp_path: Path):
    journal = Journal(tmp_path)
    assert list(journal.answers()) == []
    assert journal.state().first("a") is None
    assert journal.state().counts.first == 0


@pytest.mark.parametrize("shard", ["", "../x", "a/b", "a b", "x" * 65])
def test_a_shard_name_cannot_leave_the_folder(tmp_path: Path, shard: str):
    with pytest.raises(BadInput, match="no name for a shard"):
        JournalWriter(tmp_path, shard)


def test_secrets_in_errors_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "abcd-efgh-0123")
    with JournalWriter(tmp_path, secrets=["option-secret"]) as writer:
        writer.write(Answer("a", "first", error="401 for abcd-efgh-0123 and option-secret at http://u:pw@h/?key=zz"))
    data = (tmp_path / "answers-0.jsonl").read_text()
    for secret in ("abcd-efgh-0123", "option-secret", "pw@", "zz"):
        assert secret not in data


def test_answers_are_readable_as_soon_as_they_are_written_and_while_the_run_goes_on(tmp_path: Path):
    with new_run(tmp_path / "r") as run:
        run.writer().write(Answer("a", "first", text="No"))
        assert [a.item for a in RunFolder.open(run.path).journal.answers()] == ["a"]
        assert RunFolder.open(run.path).status == "running"


# --- what stops a run ------------------------------------------------------------------------------------------

CONTINUES = textwrap.dedent("""
    import random, sys
    from belie.items import Answer
    from belie.runs import RunFolder

    def answer(k):
        return Answer(f"item-{k}", "first", text=f"{k} é\\n" * random.Random(k).choice([1, 3, 2000]), tokens=(k, 1))

    if __name__ == "__main__":
        with RunFolder.resume(sys.argv[1], {}) as run:
            state, writer, k = run.journal.state(), run.writer(), 0
            print("writing", flush=True)
            while True:
                if not state.has_first(f"item-{k}"):
                    writer.write(answer(k))
                k += 1
""")


def test_ten_kills_at_random_moments_leave_every_answer_exactly_once(tmp_path: Path):
    chance = random.Random(20261130)
    script = tmp_path / "continues.py"
    script.write_text(CONTINUES)
    path = tmp_path / "run"
    new_run(path).close()
    journal = path / "answers-0.jsonl"
    sizes = [0]
    for _ in range(10):
        child = subprocess.Popen([sys.executable, script, path], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
        time.sleep(chance.uniform(0, 0.03))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert RunFolder.open(path).status == "interrupted"
        sizes.append(journal.stat().st_size if journal.exists() else 0)
        if sizes[-1]:  # what a power cut would do besides: the last line is cut somewhere
            os.truncate(journal, sizes[-1] - chance.randrange(40))
    assert sizes[-1] > sizes[0]
    with RunFolder.resume(path, {}) as run:
        run.writer()
        spec: dict = {"__name__": "continues"}
        exec(CONTINUES, spec)
        found = list(run.journal.records())
        assert Counter(a.item for a in found).most_common(1)[0][1] == 1
        assert found == [spec["answer"](k) for k in range(len(found))]
        assert len(found) > 100
        run.finish("complete")
    assert RunFolder.open(path).status == "complete"


def fill(path: Path) -> str:
    """Writes until the disk refuses; gives the sentence."""
    try:
        with RunFolder.resume(path, {}) as run:
            state, writer = run.journal.state(), run.writer()
            for k in range(10_000):
                if not state.has_first(f"item-{k}"):
                    writer.write(Answer(f"item-{k}", "first", text="word " * 50))
    except BadInput as error:
        return str(error)
    raise AssertionError("the disk took everything")


def assert_whole(path: Path) -> int:
    """All lines are whole, nothing is doubled; gives how many there are."""
    data = (path / "answers-0.jsonl").read_bytes()
    assert data.endswith(b"\n")
    found = list(RunFolder.open(path).journal.records())
    assert [a.item for a in found] == [f"item-{k}" for k in range(len(found))]
    return len(found)


def full_disk(folder: Path) -> None:
    """Run as a program of its own, with mounts of its own: ``folder`` becomes a disk of 64 KiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * 20_000)
    path = folder / "run"
    new_run(path).close()
    sentence = fill(path)
    assert "disk is full" in sentence
    assert "--resume" in sentence
    count = assert_whole(path)
    assert count > 50
    assert RunFolder.open(path).status == "interrupted"
    with pytest.raises(BadInput, match="disk is full"):
        RunFolder.create(folder / "another", Manifest("csq", "sim/x", options={"prompt": "y" * 9000}))
    ballast.unlink()
    fill(path)
    assert assert_whole(path) > count


def test_a_full_disk_corrupts_nothing_and_the_run_continues(tmp_path: Path):
    apart = ["unshare", "--map-root-user", "--mount"]
    small = ["mount", "-t", "tmpfs", "tmpfs", tmp_path]
    if not shutil.which("unshare") or subprocess.run([*apart, *small], capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    done = subprocess.run([*apart, sys.executable, __file__, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_size_limit_tears_no_line(tmp_path: Path):
    path = tmp_path / "run"
    new_run(path).close()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    counts = []
    try:
        for size in (30_001, 50_003):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
            assert "disk is full" in fill(path)
            counts.append(assert_whole(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert 50 < counts[0] < counts[1]


def test_a_disk_that_fails_to_sync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = new_run(tmp_path / "r")
    run.writer().write(Answer("a", "first", text="No"))

    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("belie.runs.files.os.fsync", fails)
    with pytest.raises(BadInput, match=r"syncing .*answers-0\.jsonl: Input/output error"):
        run.finish("complete")
    monkeypatch.undo()
    run.close()
    assert RunFolder.open(run.path).status == "interrupted"


if __name__ == "__main__":
    full_disk(Path(sys.argv[1]))

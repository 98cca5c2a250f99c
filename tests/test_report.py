"""The report without a browser: its figures against scores.json, hostile text, damaged and unfinished runs."""

from __future__ import annotations

import json
import math
import re
import shlex
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from report_runs import HOSTILE, answered_run, csq_run, knownlie_run
from typer.testing import CliRunner

from belie.cli import app
from belie.cli.report import report
from belie.comparison import compare
from belie.csq.run import score_run, table_of
from belie.knownlie.journal import read_rounds
from belie.knownlie.quotes import fold, stands_in
from belie.knownlie.scores import score as score_knownlie
from belie.numbers import number, percent
from belie.report import chart, clouds, make_report
from belie.report.contradictions import contradictions
from belie.report.episodes import spans
from belie.report.hostile import plain, shown
from belie.report.reading import read_models
from belie.respondents.base import BadInput
from belie.runs import RunFolder


class Page(HTMLParser):
    """Cells by their key, ids, tags with their attributes, and the text that a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.cells: dict[str, tuple[str, str]] = {}
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._key: str | None = None
        self._raw = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.tags.append((tag, told))
        if told.get("id"):
            self.ids.append(str(told["id"]))
        if tag == "td" and told.get("data-key"):
            self._key, self._raw = str(told["data-key"]), str(told["data-raw"])

    def handle_data(self, data):
        self.text += data
        if self._key:
            self.cells[self._key] = (data, self._raw)
            self._key = None


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return {
        "deceiver": csq_run(root / "deceiver", "sim/deceiver(0.3)"),
        "guesser": csq_run(root / "guesser", "sim/guesser", sample=True),
        "liar": knownlie_run(root / "liar", "belie/liar"),
    }


SECTIONS = ("verdict", "csq", "knownlie", "comparison", "evidence", "method", "provenance")


def test_every_figure_is_that_of_the_scores_to_the_printed_digit(runs):
    page = Page(make_report([runs["deceiver"], runs["guesser"], runs["liar"]]).html)
    checked = 0
    for index, name in enumerate(("deceiver", "guesser")):
        told = json.loads((runs[name] / "scores.json").read_text())
        for cell in told["cells"]:
            for score in ("rho", "delta", "delta_net", "beta", "error"):
                shown_ = percent if score == "error" else number
                for key, value in (("", "value"), (".low", "low"), (".high", "high")):
                    signed = score in ("rho", "delta_net", "beta")
                    expected = shown_(cell[score][value], signed=signed)
                    text, raw = page.cells[f"csq/{index}/{score}{key}/{cell['n']}"]
                    assert text == expected
                    assert raw == _raw(cell[score][value])
                    checked += 1
            for part in ("delta_pos", "delta_neg", "gamma_pos", "gamma_neg"):
                assert page.cells[f"csq/{index}/{part}/{cell['n']}"][0] == number(cell[part]["value"])
        for score, signed in (("rho", True), ("delta", False), ("delta_net", True)):
            expected = number(told["overall"][score]["value"], signed=signed)
            assert page.cells[f"csq/{index}/{score}/all"][0] == expected
        for mode, value in told["placement"]["shares"].items():
            assert page.cells[f"csq/{index}/shares/{mode}"][0] == percent(value)
    told = score_knownlie(read_rounds(runs["liar"])).to_json()
    slices = [*told["conditions"], *told["by_trust"], *told["by_domain"]]
    for one in slices:
        place = one.get("trust") or one.get("domain") or "all"
        for name, rate in one["rates"].items():
            key = f"knownlie/2/{one['condition']}/{place}/{name}"
            if key not in page.cells:
                continue
            signed = name.startswith(("excess", "trust"))
            assert page.cells[key] == (percent(rate["value"], signed=signed), _raw(rate["value"]))
            assert page.cells[f"{key}.low"][0] == percent(rate["low"], signed=signed)
            checked += 1
    for kind, rate in told["knowing"]["kpr"].items():
        assert page.cells[f"knownlie/2/kpr/{kind}"][0] == percent(rate["value"])
    assert checked > 130
    for wanted in ("incentive/low/dr_macro", "incentive/airline/dr", "instructed/all/excess_macro", "incentive/all/dsr",
                   "incentive/all/detect", "incentive/all/mechanism.coercion", "none/all/false_claims"):  # fmt: skip
        assert f"knownlie/2/{wanted}" in page.cells


def test_the_comparison_is_that_of_belie_compare(runs, tmp_path):
    other = knownlie_run(
        tmp_path / "other", "belie/other", seed=5, lie={"none": 0, "incentive": 0.05, "instructed": 0.9}
    )
    made = make_report([runs["liar"], other])
    page = Page(made.html)
    (pair,) = compare(runs["liar"], other).pairs
    for one in pair.contrasts:
        shown_ = percent if one.kind == "share" else number
        key = f"comparison/1/{one.name}"
        assert page.cells[key][0] == shown_(one.difference, signed=True)
        assert page.cells[f"{key}.low"][0] == shown_(one.low, signed=True)
    assert "No difference stands" in page.text  # six trajectories of a condition are too few
    page = Page(make_report([runs["deceiver"], runs["guesser"]]).html)
    assert "sim/guesser errs more often than sim/deceiver" in page.text
    alone = Page(make_report([runs["liar"]]).html)
    assert "are compared here" in alone.text


def test_what_can_not_be_compared_says_why(runs, tmp_path):
    other = csq_run(tmp_path / "flights", "sim/guesser", sizes=(3,), chains=5, world="flights")
    page = Page(make_report([runs["guesser"], other]).html)
    assert "Not compared:" in page.text
    assert "world" in page.text.partition("Not compared:")[2][:300]


def test_the_page_does_not_tell_where_it_was_made(runs, tmp_path):
    part = _unfinished(runs["deceiver"], tmp_path / "damaged", 50)
    with (part / "answers-0.jsonl").open("ab") as file:
        file.write(b"rubbish\n")
    html = make_report([runs["guesser"], part, runs["liar"], knownlie_run(tmp_path / "k", "a/b", rounds=60)]).html
    assert str(tmp_path) not in html
    assert str(runs["liar"].parent) not in html


def _raw(value):
    return "" if value is None else value if isinstance(value, str) else f"{value:.10g}"


def test_numbers_are_printed_as_a_reader_expects():
    assert [number(v, signed=True) for v in (0.25, -0.25, -0.0001, math.nan, -math.inf)] == [
        "+0.250", "−0.250", "0.000", "–", "−∞",
    ]  # fmt: skip
    assert percent(0.125) == "12.5\u00a0%"
    assert percent(None) == "–"


def test_every_section_is_there_whatever_was_measured(runs):
    for names in (("deceiver",), ("liar",), ("deceiver", "guesser", "liar")):
        page = Page(make_report([runs[name] for name in names]).html)
        assert [one for one in page.ids if one in SECTIONS] == list(SECTIONS)
        assert len(page.ids) == len(set(page.ids))
    assert "No KnownLie rounds in these runs" in Page(make_report([runs["deceiver"]]).html).text


def test_the_same_runs_give_the_same_bytes_and_the_runs_stay_as_they_are(runs):
    before = {path: path.read_bytes() for path in runs["liar"].rglob("*") if path.is_file()}
    assert make_report([runs["liar"]]).html == make_report([runs["liar"]]).html
    assert before == {path: path.read_bytes() for path in runs["liar"].rglob("*") if path.is_file()}


def test_the_page_asks_for_nothing_and_allows_nothing(runs, tmp_path):
    hostile = answered_run(tmp_path / "hostile", HOSTILE), knownlie_run(tmp_path / "kl", "http/hostile", said=HOSTILE)
    page = Page(make_report([*hostile, runs["deceiver"]]).html)
    allowed = {"html", "head", "meta", "title", "style", "body", "a", "header", "p", "h1", "h2", "h3", "h4", "h5", "h6"}
    allowed |= {
        "ul",
        "ol",
        "li",
        "bdi",
        "nav",
        "main",
        "section",
        "div",
        "article",
        "figure",
        "figcaption",
        "svg",
        "path",
    }
    allowed |= {
        "circle",
        "rect",
        "text",
        "g",
        "details",
        "summary",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    allowed |= {
        "button",
        "textarea",
        "span",
        "mark",
        "blockquote",
        "dl",
        "dt",
        "dd",
        "pre",
        "code",
        "strong",
        "em",
        "cite",
    }
    allowed |= {"footer", "script"}
    assert {tag for tag, _ in page.tags} <= allowed
    for tag, told in page.tags:
        assert not any(name.startswith("on") or name in ("style", "src", "srcset", "action") for name in told), (
            tag,
            told,
        )
        if "href" in told:
            assert str(told["href"]).startswith("#")
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    policy = next(told["content"] for _, told in page.tags if told.get("http-equiv") == "Content-Security-Policy")
    assert policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_hostile_text_is_told_as_text_and_cut(tmp_path):
    html = make_report([knownlie_run(tmp_path / "kl", "http/hostile", said=HOSTILE)]).html
    assert len(html) < 3_000_000
    assert "<img" not in html
    assert "of 1,000,0" in html
    assert "&lt;script&gt;document.title" in html
    for bad in "\u202e\u2066\u2067\u200b\ufeff\x1b\x07\x00\x9b\ud83d":
        assert bad not in html
    assert "[U+202E]" in html
    assert "[ESC]" in html
    assert "{{ 7 * 7 }}" in html  # what a model writes is never a template
    html.encode("utf-8")


@settings(max_examples=150)
@given(st.text(max_size=300) | st.sampled_from([text[:400] for text in HOSTILE]), st.integers(1, 200))
@example("\ud800<b>", 50)
def test_any_text_shows_as_text(text, limit):
    page = Page(f"<p>{shown(text, limit)}</p>")
    assert {tag for tag, _ in page.tags} <= {"p", "span"}
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in page.text.replace("\n", ""))
    kept = "".join(c for c in text[:limit] if unicodedata.category(c)[0] in "LNPSZ" and c not in "\u2028\u2029")
    seen = iter(page.text)
    assert all(char in seen for char in kept)  # every letter, figure and sign is there, in order
    assert ("cut here" in page.text) == (len(text) > limit) or "cut here" in text
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in plain(text))


@settings(max_examples=150)
@given(
    st.text("ab \n\t'\"“”’«.", min_size=1, max_size=12),
    st.text("ab \n'’”.", max_size=10),
    st.text("ab '\n", max_size=10),
)
def test_a_quote_that_counts_is_found_where_it_stands(quote, before, after):
    text = f"{before} {quote} {after}"
    if not stands_in(quote, [text]):
        return
    wanted = fold(quote).strip("' ")
    found = spans(quote, text)
    assert found
    for start, end in found:
        assert fold(text[start:end]).strip("' ") == wanted


def test_the_lie_is_marked_in_the_dialogue(runs):
    html = make_report([runs["liar"]]).html
    assert "<mark>We can’t  do that,\nclause" in html
    assert "breaks clause" in html
    page = Page(html)
    assert "airline:" in page.text
    assert "debt:" in page.text
    assert "asked neutrally, it knew" in page.text


def test_contradictions_are_contradictions_from_every_length(runs):
    for name in ("deceiver", "guesser"):
        model = read_models([runs[name]])[0]
        assert model.csq is not None
        found = contradictions(model.csq)
        assert len(found) == 10
        assert {one.item.n for one in found} == {3, 5, 10}
        for one in found:
            right = one.truth
            assert (one.said, one.then) == ("No" if right == "Yes" else "Yes", right)
            assert one.item.question.startswith(one.line)
            assert one.drawing.ends[0] in one.line
            assert all(entity in str(one.item.followup) for entity in one.drawing.easy)
            # the easy question spans the gap, and as many facts are told as edges are drawn
            assert one.drawing.asked[0] <= one.drawing.gap[0] < one.drawing.gap[1] <= one.drawing.asked[1]
            assert len(one.drawing.edges) == one.item.n - 2
            assert len(one.drawing.dots) == one.item.n


def test_the_clouds_are_the_draws_of_the_scores(runs):
    folder = RunFolder.open(runs["guesser"])
    table, scores = table_of(folder), score_run(folder, method="percentile")
    drawn = clouds.draws(table, scores)
    assert drawn.shape == (2000, 2)
    assert (drawn >= 0).all()
    low, high = np.quantile(drawn[:, 1], [0.025, 0.975])
    told = scores.overall["delta"]
    assert (low, high) == pytest.approx((told.low, told.high), abs=2e-3)


def test_the_command_that_is_told_makes_the_same_run_again(runs, tmp_path):
    page = make_report([runs["guesser"]]).html
    command = next(line for line in Page(page).text.splitlines() if line.startswith("belie csq run"))
    done = CliRunner().invoke(app, [*shlex.split(command)[1:], "-o", str(tmp_path / "again")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "again" / "scores.json").read_bytes() == (runs["guesser"] / "scores.json").read_bytes()


def test_runs_of_one_respondent_belong_together_and_second_ones_are_told_apart(tmp_path):
    csq = csq_run(tmp_path / "csq", "sim/honest", sizes=(3,), chains=5)
    name = RunFolder.open(csq).manifest.respondent
    models = read_models([csq, knownlie_run(tmp_path / "kl", name, domains=["airline"])])
    assert [(m.name, m.csq is not None, m.knownlie is not None) for m in models] == [(name, True, True)]
    twice = read_models([csq, csq_run(tmp_path / "more", "sim/honest", sizes=(3,), chains=5)])
    assert [m.name for m in twice] == [f"{name} (csq)", f"{name} (more)"]
    assert len({m.label for m in twice}) == 2


def _unfinished(source: Path, target: Path, keep: int) -> Path:
    target.mkdir()
    lines = (source / "answers-0.jsonl").read_bytes().splitlines(keepends=True)
    (target / "answers-0.jsonl").write_bytes(b"".join(lines[:keep]))
    manifest = json.loads((source / "manifest.json").read_text())
    (target / "manifest.json").write_text(json.dumps({**manifest, "status": "interrupted"}))
    return target


def test_an_unfinished_run_says_what_is_missing(runs, tmp_path):
    made = make_report([_unfinished(runs["deceiver"], tmp_path / "part", 60)])
    assert any("not finished" in notice and "of 360 questions have no answer" in notice for notice in made.notices)
    assert "Before you read on" in Page(made.html).text
    made = make_report([knownlie_run(tmp_path / "kl", "a/b", rounds=40)])
    assert any("212 of 252 rounds were not played" in notice for notice in made.notices)


def test_an_empty_run_gives_a_sentence(runs, tmp_path):
    empty = _unfinished(runs["deceiver"], tmp_path / "empty", 0), knownlie_run(tmp_path / "kl", "a/b", rounds=0)
    made = make_report(empty)
    page = Page(made.html)
    assert "holds no answers yet" in page.text
    assert "holds no rounds yet" in page.text
    assert [one for one in page.ids if one in SECTIONS] == list(SECTIONS)
    assert not re.search(r"\bnan\b", page.text)


def test_a_damaged_line_is_named(runs, tmp_path):
    part = _unfinished(runs["deceiver"], tmp_path / "damaged", 9999)
    lines = (part / "answers-0.jsonl").read_bytes().splitlines(keepends=True)
    lines[4] = b"\x00<b>rubbish\n"
    (part / "answers-0.jsonl").write_bytes(b"".join(lines))
    liar = knownlie_run(tmp_path / "kl", "a/b", domains=["airline"])
    lines = (liar / "rounds-0.jsonl").read_bytes().splitlines(keepends=True)
    lines[6] = lines[6][:50] + b"\n"
    (liar / "rounds-0.jsonl").write_bytes(b"".join(lines) + b'{"model"')
    notices = make_report([part, liar]).notices
    assert any("Line 5 of" in notice and "answers-0.jsonl is damaged" in notice for notice in notices)
    assert any("Line 7 of" in notice and "rounds-0.jsonl is damaged" in notice for notice in notices)
    assert any("was torn" in notice for notice in notices)


@pytest.mark.parametrize(("paths", "says"), [([], "at least one run"), (["nowhere"], "holds no run")])
def test_what_is_no_run_gives_one_sentence(paths, says, tmp_path):
    with pytest.raises(BadInput, match=says):
        make_report([tmp_path / path for path in paths])


def test_a_run_named_twice_is_refused(runs):
    with pytest.raises(BadInput, match="named twice"):
        make_report([runs["liar"], runs["liar"] / ".." / "liar"])


@pytest.fixture
def command():
    """``belie report`` by itself."""
    app = typer.Typer()
    app.command()(report)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], standalone_mode=True)


def test_the_command_writes_the_page_where_it_is_asked_to(runs, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    for path in runs["guesser"].iterdir():
        (tmp_path / "run" / path.name).write_bytes(path.read_bytes())
    assert command("run").exit_code == 0
    assert (tmp_path / "run" / "report.html").read_text() == make_report(["run"]).html
    assert command("run", runs["liar"]).exit_code == 0
    assert "liar" in (tmp_path / "report.html").read_text()
    told = json.loads(command("run", "-o", "new/page.html", "--json").stdout)
    assert told["report"] == "new/page.html"
    assert told["bytes"] == (tmp_path / "new" / "page.html").stat().st_size
    assert told["models"] == ["sim/guesser"]
    assert told["notices"] == []
    refused = command("run", "-o", tmp_path)
    assert isinstance(refused.exception, BadInput)
    assert "is a folder" in str(refused.exception)


@given(st.floats(-1e4, 1e4), st.floats(1e-6, 1e4))
def test_ticks_are_round_few_and_inside(low, width):
    found = chart.ticks(low, low + width)
    assert len(found) <= 9
    slack = 1e-6 * max(abs(low), width)
    assert all(low - slack <= tick <= low + width + slack for tick in found)


def test_labels_at_the_ends_of_lines_keep_apart():
    series = [chart.Series(i, [chart.Point(3, 0.5), chart.Point(5, 0.5)], f"m{i}") for i in range(6)]
    drawn = chart.curves(series, x_title="n", x_ticks=[3, 5])
    heights = sorted(text.y for text in drawn.texts if text.kind == "label")
    assert len(heights) == 6
    assert min(np.diff(heights)) > 10
    assert len({mark.x for mark in drawn.marks}) == 12  # no interval hides another

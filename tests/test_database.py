"""SQL over run folders, the list of runs, the same as DataFrames: columns, rebuilt text, and nothing but reading."""

# pyright: reportArgumentType=false, reportIndexIssue=false, reportAttributeAccessIssue=false
# pyright: reportGeneralTypeIssues=false

import asyncio
import csv
import io
import json
import os

import pytest
import typer
from compared_runs import FAILED, QUOTE, csq_run, knownlie_run, played
from typer.testing import CliRunner

import belie
from belie.cli.runs import runs as runs_command
from belie.cli.sql import sql as sql_command
from belie.csq.answers import parse
from belie.csq.questions import item_from_id
from belie.knownlie.pack import load_builtin
from belie.notebook import Run
from belie.respondents.base import BadInput
from belie.runs import RunFolder
from belie.runs.database import Database, find_runs, needed, query


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    csq_run(root / "sampled", "guesser(invalid=0.2)", chains=20)
    csq_run(root / "exact", "fabricator(0.3)", chains=20, sample=False)
    csq_run(root / "raw", "honest", chains=5, save=False)
    case = load_builtin("refund").cases[0].id
    knownlie_run(
        root / "knownlie",
        [
            played(True, case=case, detected=True),
            played(False, case="refund-02", position=1, gate=FAILED),
            played(False, case="refund-03", position=2, missing="the provider failed"),
        ],
        respondent="o'agent",
    )
    (root / "broken").mkdir()
    (root / "broken" / "manifest.json").write_text("{")
    (root / "empty").mkdir()
    return root


def rows(root, sql):
    return query(sql, root)[0].to_pylist()


def test_runs_lists_every_folder_with_its_status(root):
    told = {row["run"]: row for row in rows(root, "SELECT * FROM runs")}
    assert set(told) == {"sampled", "exact", "raw", "knownlie", "broken"}
    assert told["sampled"]["status"] == "complete"
    assert told["sampled"]["world"] == "contacts-1"
    assert told["broken"]["status"] == "unreadable"
    assert "manifest.json" in told["broken"]["problem"]
    assert (told["knownlie"]["prompt_tokens"], told["knownlie"]["cost"]) == (7, 0.5)
    assert json.loads(told["exact"]["options"])["sizes"] == [3, 10]
    notices = query("SELECT 1", root)[1]
    assert any("broken" in notice for notice in notices)


def test_answers_equal_the_journals(root):
    for name in ("sampled", "exact", "raw"):
        told = {(row["item"], row["step"]): row for row in rows(root, f"SELECT * FROM answers WHERE run = '{name}'")}
        kept = list(RunFolder.open(root / name).journal.answers())
        assert len(told) == len(kept) > 30
        for answer in kept:
            row, item = told[answer.item, answer.step], item_from_id(answer.item)
            assert (row["n"], row["category"], row["truth"], row["chain"]) == (
                item.n,
                item.category,
                item.truth,
                item.chain,
            )
            assert row["text"] == answer.text
            assert (row["p_yes"], row["p_no"]) == (answer.p or (None, None))
            if answer.p is not None:
                assert row["said"] is None
                assert row["p_right"] == answer.p[0 if item.truth else 1]
            else:
                read = parse(answer.text)
                assert row["said"] == read
                right = {"yes": item.truth, "no": not item.truth}.get(read)
                assert row["p_right"] == (None if right is None else float(right))


def test_a_journal_newer_than_its_table_is_read_itself(tmp_path):
    path = csq_run(tmp_path / "run", "honest", chains=5)
    journal, table = path / "answers-0.jsonl", path / "answers.parquet"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(lines[:10]) + "\n")
    later = table.stat().st_mtime + 5
    os.utime(journal, (later, later))
    assert rows(tmp_path, "SELECT count(*) AS c FROM answers") == [{"c": 10}]


def test_a_damaged_line_is_named_and_the_rest_is_read(tmp_path):
    path = csq_run(tmp_path / "run", "honest", chains=5, save=False)
    journal = path / "answers-0.jsonl"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:3], "{damaged", *lines[3:]]) + "\n")
    told, notices = query("SELECT count(*) AS c FROM answers", tmp_path)
    assert told.to_pylist() == [{"c": len(lines)}]
    assert any("ine 4" in notice for notice in notices)


def test_items_are_rebuilt_to_the_letter(root):
    told = rows(root, "SELECT i.*, a.text FROM items i JOIN answers a USING (run, item) WHERE run = 'sampled'")
    assert len(told) >= 160
    for row in told[::7]:
        item = item_from_id(row["item"])
        assert (row["question"], row["followup"]) == (item.question, item.followup)
    case = load_builtin("refund").cases[0]
    opening = rows(root, f"SELECT question, category FROM items WHERE item = '{case.id}'")
    assert opening == [{"question": case.opening, "category": "owed"}]


def test_rounds_carry_their_verdicts(root):
    told = rows(root, "SELECT * FROM rounds ORDER BY position")
    assert [row["lie"] for row in told] == [True, False, None]
    assert [row["scored"] for row in told] == [True, False, False]
    assert [row["gate_passed"] for row in told] == [True, False, True]
    assert told[0]["detected"]
    assert told[0]["transcript"] == f"customer: May I?\nagent: No: {QUOTE}."
    assert told[2]["missing"] == "the provider failed"
    assert told[0]["respondent"] == "o'agent"


def test_quotes_come_with_their_message_and_the_clause_rebuilt(root):
    (quote,) = rows(root, "SELECT * FROM quotes")
    assert (quote["quote"], quote["verified"], quote["mechanism"]) == (QUOTE, True, "false_policy")
    assert quote["message"] == f"No: {QUOTE}."
    assert quote["clause_text"] == str(next(c for c in load_builtin("refund").policy.clauses if c.number == "1"))


def test_a_clause_of_another_pack_is_not_made_up(tmp_path):
    knownlie_run(tmp_path / "old", [played(True)], hashes={"pack refund": "another"})
    (quote,) = rows(tmp_path, "SELECT * FROM quotes")
    assert quote["clause_text"] is None
    assert quote["quote"] == QUOTE


FORBIDDEN = [
    "DROP VIEW runs",
    "DELETE FROM runs",
    "INSERT INTO runs VALUES (1)",
    "CREATE TABLE x AS SELECT 1",
    "COPY (SELECT 1) TO '{out}'",
    "COPY runs TO '{out}' (FORMAT parquet)",
    "EXPORT DATABASE '{out}'",
    "ATTACH '{out}'",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "SELECT 1; SELECT 2",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_parquet('{table}')",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM sqlite_scan('{secret}', 'x')",
    "SELECT getenv('HOME')",
    "SELECT * FROM secret_of_the_caller",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'",
    "",
    "nonsense",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_a_query_reaches_nothing_but_the_views(root, tmp_path, sql):
    secret = tmp_path / "secret.csv"
    secret.write_text("key\n1\n")
    secret_of_the_caller = [1]
    assert secret_of_the_caller
    places = {
        "out": tmp_path / "out",
        "secret": secret,
        "folder": tmp_path,
        "table": root / "sampled" / "answers.parquet",
    }
    before = sorted(path.name for path in (root / "sampled").iterdir())
    with pytest.raises(BadInput) as caught:
        query(sql.format(**places), root)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv"]
    assert sorted(path.name for path in (root / "sampled").iterdir()) == before


def test_only_what_a_query_names_is_filled(root):
    assert needed("select * from ANSWERS join items using (item)") == {"runs", "answers", "items"}
    assert needed("select my_items from runs") == {"runs"}
    with Database(find_runs(root), {"runs"}) as database:
        assert database.query("SELECT count(*) AS c FROM items").to_pylist() == [{"c": 0}]
        assert {row["name"] for row in database.query("SHOW TABLES").to_pylist()} >= {"items", "quotes"}
    with pytest.raises(BadInput, match="is no folder"):
        query("SELECT 1", root / "nowhere")


def test_a_notebook_gets_the_same_columns(root):
    run = belie.load_run(root / "sampled")
    described = [row["column_name"] for row in rows(root, "DESCRIBE answers")]
    assert list(run.answers.columns) == described
    assert len(run.answers) == rows(root, "SELECT count(*) AS c FROM answers WHERE run = 'sampled'")[0]["c"]
    assert list(run.items.columns) == [row["column_name"] for row in rows(root, "DESCRIBE items")]
    assert run.scores.coverage["first"] == pytest.approx(0.8, abs=0.1)
    knownlie = belie.load_run(root / "knownlie")
    assert knownlie.rounds["lie"].tolist()[:2] == [True, False]
    assert knownlie.scores.slice("incentive").rates["dr"].value == 1
    assert knownlie.sql("SELECT quote FROM quotes")["quote"][0] == QUOTE
    assert "o'agent" in repr(knownlie)
    with pytest.raises(BadInput, match="holds no run"):
        belie.load_run(root / "empty")


async def test_an_audit_runs_inside_a_running_loop(tmp_path):
    await asyncio.sleep(0)
    run = belie.audit("sim/guesser", out=tmp_path / "run")
    assert isinstance(run, Run)
    assert run.status == "complete"
    assert "guess" in run.verdict
    assert len(run.items) == 1600


def cli(command, *words):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(words))


def test_the_command_prints_tables_json_and_csv(root):
    sql = "SELECT run, n, count(*) AS answers FROM answers GROUP BY ALL ORDER BY ALL"
    wanted = rows(root, sql)
    assert json.loads(cli(sql_command, sql, "--root", str(root), "--json").stdout) == wanted
    told = list(csv.DictReader(io.StringIO(cli(sql_command, sql, "--root", str(root), "--csv").stdout)))
    assert told == [{key: str(value) for key, value in row.items()} for row in wanted]
    shown = cli(sql_command, "SELECT chr(27) || '[31mred' AS x, run FROM runs", "--root", str(root)).stdout
    assert "\x1b" not in shown
    assert "knownlie" in shown
    listed = json.loads(cli(runs_command, str(root), "--json").stdout)
    assert {row["run"]: row["status"] for row in listed}["knownlie"] == "complete"
    assert {row["run"]: row["status"] for row in listed}["broken"] == "unreadable"

"""The command ``belie``: one file a command; here only what all commands share at the door.

Knows: the list of commands, and how an error becomes a sentence and an exit code (0 fine, 1 gate not met, 2 bad
input, 3 incomplete run).
Does not know: what any command does.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from belie.cli import audit, compare, csq, gate, knownlie, lens, models, pairs, report, runs, sql, train
from belie.cli.output import complain
from belie.respondents.base import BadInput, BudgetSpent

app = typer.Typer(
    name="belie",
    help="Tells whether a language model says what it knows to be false: when, how often, and at whose cost.",
    epilog="Start here:  belie audit local/smollm2-135m",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("audit", epilog=audit.EPILOG)(audit.audit)
app.add_typer(csq.app, name="csq")
app.add_typer(knownlie.app, name="knownlie")
app.add_typer(pairs.app, name="pairs")
app.add_typer(models.app, name="models")
app.add_typer(lens.app, name="lens")
app.add_typer(train.app, name="train")
app.command("report", epilog=report.EPILOG)(report.report)
app.command("compare", epilog=compare.EPILOG)(compare.compare_runs)
app.command("gate", epilog=gate.EPILOG)(gate.gate_run)
app.command("runs", epilog=runs.EPILOG)(runs.runs)
app.command("sql", epilog=sql.EPILOG)(sql.sql)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"belie {version('belie')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["BELIE_DEBUG"] = "1"


def main() -> None:
    """Runs the command line; every expected failure ends as one sentence on standard error."""
    try:
        app()
    except BadInput as error:
        _stop(str(error), 2, error)
    except BudgetSpent as error:
        _stop(f"{error} What was answered is kept; continue with --resume.", 3, error)
    except KeyboardInterrupt as error:
        _stop("Interrupted. What was answered is kept; continue with --resume.", 130, error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        _stop(
            f"Something went wrong that belie does not know: {type(error).__name__}: {error} (--debug shows where).",
            2,
            error,
        )


def _stop(sentence: str, code: int, error: BaseException) -> None:
    if os.environ.get("BELIE_DEBUG"):
        raise error
    complain(sentence)
    sys.exit(code)

"""Runs every script of this folder and writes docs/benchmarks.md from the lines they print: ``make bench``.

``--quick`` runs small versions of everything (some minutes) and writes nothing. ``--only NAME …`` runs some scripts;
their lines replace the old ones in docs/benchmarks.jsonl, and the page is written anew from that file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
LINES, PAGE = DOCS / "benchmarks.jsonl", DOCS / "benchmarks.md"
#: Scripts in the order of the table's rows.
SCRIPTS = ("asking", "local", "calls", "knownlie", "scoring", "memory")


def run(script: str, quick: bool) -> list[dict[str, Any]]:
    """The figures of one script; its progress goes to stderr. A script that fails gives a line that says so."""
    command = [sys.executable, str(HERE / f"{script}.py"), *(["--quick"] if quick else [])]
    start = time.perf_counter()
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    if process.returncode:
        lines.append({"name": f"bench/{script}.py failed", "row": 0, "met": False})
    seconds = round(time.perf_counter() - start)
    print(f"{script}: {len(lines)} figures, {seconds} s", file=sys.stderr, flush=True)
    return [{"script": script, **line} for line in lines]


def page(lines: list[dict[str, Any]]) -> str:
    """The page: the goals in the order of their rows, then the other figures, then where it was measured."""
    goals = sorted((line for line in lines if line.get("met") is not None), key=lambda line: line["row"] or 99)
    others = [line for line in lines if line.get("met") is None]
    met = sum(line["met"] for line in goals)
    parts = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`bench/all.py`) from `docs/benchmarks.jsonl`, one line a figure; each script in "
        "`bench/` says what it measures and how. A ratio is the median over the repetitions of a ratio taken in one "
        "run, ours and theirs in turn; the spread is the lowest and the highest of them.",
        "",
        f"## Goals: {met} of {len(goals)} met",
        "",
        *_table(goals, goal=True),
        "",
        "## Other figures",
        "",
        *_table(others, goal=False),
        "",
        "## Where",
        "",
        *_where(lines),
        "",
        "## Details",
        "",
        *(f"- {line['name']}: {_details(line['notes'])}" for line in lines if line.get("notes")),
    ]
    return "\n".join(parts) + "\n"


def _table(lines: list[dict[str, Any]], *, goal: bool) -> list[str]:
    heads = ["figure", "ratio", *(["goal", "met"] if goal else []), "ours", "theirs", "unit", "spread", "runs"]
    rows = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for line in lines:
        spread = line.get("spread")
        cells = [line["name"], _number(line.get("ratio"))]
        if goal:
            cells += [f"{line.get('sense') or ''} {_number(line.get('goal'))}", "yes" if line["met"] else "**no**"]
        cells += [_number(line.get("ours")), _number(line.get("theirs")), line.get("unit", "")]
        cells += ["–" if not spread else f"{_number(spread[0])} … {_number(spread[1])}", str(line.get("runs", ""))]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _where(lines: list[dict[str, Any]]) -> list[str]:
    measured = [line for line in lines if "machine" in line]
    if not measured:
        return []
    machine, versions = measured[-1]["machine"], measured[-1]["versions"]
    loads = sorted(line["machine"]["load_5"] for line in measured)
    peers = next((line["notes"]["peer"] for line in measured if "peer" in line["notes"]), {})
    told = [
        f"- {machine['cores']} cores, {machine['processor']}; 5-minute load average {loads[0]:g} to {loads[-1]:g} "
        "while it was measured (the measurement's own work included).",
        f"- {_details(versions)}.",
    ]
    return [*told, f"- Peers, in an environment of their own: {_details(peers)}."] if peers else told


def _details(notes: dict[str, Any]) -> str:
    def shown(value: Any) -> str:
        return f"({_details(value)})" if isinstance(value, dict) else str(value) if value is not None else "–"

    return ", ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in notes.items() if name != "peer")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", choices=SCRIPTS, default=list(SCRIPTS))
    options = parser.parse_args()
    if not options.quick and LINES.exists():
        kept = [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()]
    else:
        kept = []
    new = {script: run(script, options.quick) for script in SCRIPTS if script in options.only}
    lines = []
    for script in SCRIPTS:
        lines += new.get(script, [line for line in kept if line["script"] == script])
    if options.quick:
        print(page(lines))
    else:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        LINES.write_text(text, encoding="utf-8")
        PAGE.write_text(page(lines), encoding="utf-8")
    failed = [line["name"] for line in lines if line.get("met") is False]
    print(f"Goals not met: {', '.join(failed) or 'none'}", file=sys.stderr)


if __name__ == "__main__":
    main()

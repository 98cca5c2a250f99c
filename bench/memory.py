"""Row 10: memory of a CSQ run of 10⁴, 10⁵ and 10⁶ simulated answers: flat, at most 100 MB over the respondent itself.

Each size runs in a process of its own, as the command line runs it: questions made on the way, answers written to the
journal, then scored, then written as a table. A simulated respondent takes next to no memory, so what is measured is
Belie. What is imported before the first question is asked is counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import Figure, say

from belie.csq.questions import PAPER_SIZES, Design, Variant

#: First questions and follow-ups that an exact respondent gives a chain.
ANSWERS_A_CHAIN = 6


def resident_mb() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def peak_mb() -> float:
    """The most that this process has held so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def one_run(answers: int) -> None:
    """Asks, scores and writes the tables; prints memory before, and the peaks and seconds after each part."""
    import pyarrow.parquet

    from belie.csq.asked import Asking, manifest_for
    from belie.csq.run import ask, open_folder, save_results, score_run
    from belie.respondents.simulated import open_simulated

    # Counted as imported, not as used: with its first array pyarrow imports pandas (47 MB), where that is installed.
    pyarrow.array([""])
    chains = max(1, answers // (ANSWERS_A_CHAIN * len(PAPER_SIZES)))
    design, asking, respondent = Design(Variant(), PAPER_SIZES, chains), Asking(), open_simulated("sim/guesser")
    with tempfile.TemporaryDirectory() as folder:
        manifest = manifest_for(respondent, design, asking)
        before, start = resident_mb(), time.perf_counter()
        with open_folder(manifest, Path(folder) / "run", resume=False) as run:
            progress = asyncio.run(ask(respondent, run, design, asking))
            asked_mb, asked_s = peak_mb(), time.perf_counter() - start
            scores = score_run(run)
            scored_mb, scored_s = peak_mb(), time.perf_counter() - start - asked_s
            save_results(run, scores)
    told = {
        "answers": progress.first + progress.followups,
        "before_mb": before,
        "asked_mb": asked_mb - before,
        "scored_mb": scored_mb - before,
        "saved_mb": peak_mb() - before,
        "asked_s": asked_s,
        "scored_s": scored_s,
    }
    print(json.dumps(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--quick", action="store_true", help="10⁴ and 4·10⁴")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_run(options.one)
        return
    sizes = [10_000, 40_000] if options.quick else options.answers
    found = []
    for size in sizes:
        command = [sys.executable, __file__, "--one", str(size)]
        found.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        say(f"  {found[-1]}")
    first, last = found[0], found[-1]
    each = {f"{one['answers']} answers": {k: v for k, v in one.items() if k != "answers"} for one in found}
    most = {"sense": "≤", "goal": 100.0, "row": 10}
    Figure(
        f"MB over the respondent while {last['answers']} answers are asked",
        last["asked_mb"],
        "MB",
        last["asked_mb"],
        first["asked_mb"],
        notes=each,
        **most,
    ).show()
    Figure(
        f"MB over the respondent with {last['answers']} answers asked, scored and written as a table",
        last["saved_mb"],
        "MB",
        last["saved_mb"],
        first["saved_mb"],
        **most,
    ).show()
    growth = (last["asked_s"] / last["answers"]) / (first["asked_s"] / first["answers"])
    Figure(
        f"seconds an answer, {last['answers']} / {first['answers']} answers",
        growth,
        "µs",
        last["asked_s"] / last["answers"] * 1e6,
        first["asked_s"] / first["answers"] * 1e6,
    ).show()


if __name__ == "__main__":
    main()

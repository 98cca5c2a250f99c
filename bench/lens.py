"""The lens on SmolLM2-135M: what a fit of the contrast takes, and whether the full J and the product agree.

Time and peak memory of 100 prompts × 128 tokens are told against their goals (five minutes, 4 GB), with processor time
beside, for a machine that does other things too. The full Jacobian of a model of this size takes hours for 100 prompts,
so it is fitted on two short ones: the same derivatives by 576 backward passes and by one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from figures import Figure, say
from memory import peak_mb

MODEL = "local/smollm2-135m"


def one_fit(count: int, tokens: int, full: bool) -> None:
    """Fits in this process and prints seconds, processor seconds, peak memory and what was found."""
    import belie.lens  # noqa: F401  (first: it settles how threads wait)

    import torch  # isort: skip

    from belie.lens.fit import fit
    from belie.lens.passages import passages
    from belie.models import resolve
    from belie.respondents.local.model import load

    loaded = load(resolve(MODEL), torch.device("cpu"), torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        start, busy = time.perf_counter(), time.process_time()
        lens = fit(loaded, MODEL, passages("bundled"), Path(folder) / "lens", count=count, tokens=tokens, full=full)
        told: dict[str, Any] = {
            "seconds": time.perf_counter() - start,
            "processor_seconds": time.process_time() - busy,
            "peak_mb": peak_mb(),
            "threads": torch.get_num_threads(),
            "least_halves_cosine": min(lens.settings["halves_cosine"]),
        }
        if full:
            told["least_product_cosine"] = min(lens.settings["product_cosine"])
    print(json.dumps(told))


def measured(count: int, tokens: int, full: bool) -> dict[str, Any]:
    """The same in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--one", str(count), str(tokens), *(["--full"] if full else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    say(f"  {count} prompts × {tokens} tokens{', full' if full else ''}: {found}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 prompts × 64 tokens; no full Jacobian")
    parser.add_argument("--only-full", action="store_true", help="leave the 100 prompts out")
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_fit(options.one[0], options.one[1], options.full)
        return
    count, tokens = (10, 64) if options.quick else (100, 128)
    if not options.only_full:
        found = measured(count, tokens, False)
        goals: dict[str, Any] = {} if options.quick else {"sense": "≤"}
        name = f"fitting the contrast on {count} prompts × {tokens} tokens, SmolLM2-135M"
        notes = {key: value for key, value in found.items() if key not in ("seconds", "peak_mb")}
        time_goal = {**goals, "goal": 300.0} if goals else {}
        memory_goal = {**goals, "goal": 4000.0} if goals else {}
        Figure(f"seconds of {name}", found["seconds"], "s", found["seconds"], notes=notes, **time_goal).show()
        Figure(f"peak MB of {name}", found["peak_mb"], "MB", found["peak_mb"], **memory_goal).show()
    if not options.quick:
        found = measured(2, 33, True)
        cosine = found.pop("least_product_cosine")
        Figure(
            "least cosine over layers of the contrast by the full J and by the product, 2 prompts × 33 tokens",
            cosine, "cosine", cosine, sense="≥", goal=0.999, notes=found,
        ).show()  # fmt: skip


if __name__ == "__main__":
    main()

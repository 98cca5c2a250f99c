"""A KnownLie run that may kill itself: ``killed_run.py FOLDER CALLS new|resume KILL_AT``.

Its provider writes one line for each call that it answers to CALLS; before its call number KILL_AT the process ends by
SIGKILL.
"""

import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from inspect_ai.model import modelapi

from belie.knownlie.run import run_knownlie
from belie.knownlie.scripted import ScriptedAPI

state: dict[str, Any] = {"calls": "", "kill_at": 0, "count": 0}


@modelapi(name="counted")
def counted():
    class Counted(ScriptedAPI):
        async def generate(self, input, tools, tool_choice, config):
            state["count"] += 1
            if state["count"] == state["kill_at"]:
                os.kill(os.getpid(), signal.SIGKILL)
            output = await super().generate(input, tools, tool_choice, config)
            key = hashlib.sha256(repr([(m.role, m.text) for m in input]).encode()).hexdigest()[:16]
            with open(state["calls"], "a") as file:
                file.write(f"{self.player} {key}\n")
            return output

    return Counted


def play(folder: Path, calls: Path, resume: bool, kill_at: int = 0) -> None:
    state.update(calls=str(calls), kill_at=kill_at, count=0)
    run_knownlie(
        "counted/scripted-confessor",
        "counted/scripted-verifying",
        "counted/scripted-judge-perfect",
        domains=[Path(__file__).parent / "data" / "pack_parcel"],
        conditions="incentive",
        trust="low,high",
        limit=3,
        gate_samples=1,
        folder=folder,
        resume=resume,
    )


if __name__ == "__main__":
    play(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "resume", int(sys.argv[4]))

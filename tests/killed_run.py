"""A KnownLie run that may kill itself: ``killed_run.py FOLDER CALLS RESUME KILL_AT``.

Its provider writes one line for each call that it answers to CALLS; before the call number KILL_AT of this process the
process ends by SIGKILL.
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

from inspect_ai.model import modelapi

from belie.knownlie.run import run_knownlie
from belie.knownlie.scripted import ScriptedAPI

folder, calls, resume, kill_at = sys.argv[1], sys.argv[2], sys.argv[3] == "resume", int(sys.argv[4])
count = 0


@modelapi(name="counted")
def counted():
    class Counted(ScriptedAPI):
        async def generate(self, input, tools, tool_choice, config):
            global count
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            output = await super().generate(input, tools, tool_choice, config)
            key = hashlib.sha256(repr([(m.role, m.text) for m in input]).encode()).hexdigest()[:16]
            with open(calls, "a") as file:
                file.write(f"{self.player} {key}\n")
            return output

    return Counted


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

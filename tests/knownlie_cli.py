"""The command line in this process, and a provider that tests break, count and ask CSQ questions."""

import contextlib
import io
import sys
from collections import Counter
from dataclasses import dataclass

from inspect_ai.model import ModelOutput, modelapi
from knownlie_play import PARCEL

from belie.cli import main
from belie.knownlie.scripted import ScriptedAPI

CAST = ("--customer", "belie/scripted-verifying", "--judge", "belie/scripted-judge-perfect")
SMALL = ("--domains", str(PARCEL), "--conditions", "none,incentive", "--trust", "low,high", "--limit", "3")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


def belie(*words: str) -> Done:
    """What ``belie`` with these words prints, and its exit code."""
    before, sys.argv = sys.argv, ["belie", *words]
    code: object = 0
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    assert isinstance(code, int)
    assert "Traceback" not in err.getvalue()
    return Done(code, out.getvalue(), err.getvalue())


@dataclass
class Broken:
    """``player``: whose provider fails; ``after``: so many of its calls are still answered. ``calls``: answered."""

    player: str = ""
    after: int = 0

    def __post_init__(self) -> None:
        self.calls: Counter[str] = Counter()


broken = Broken()


@modelapi(name="flaky")
def flaky():
    class Flaky(ScriptedAPI):
        """A scripted player that answers Yes to what is no prompt of KnownLie, and fails when it is told to."""

        def should_retry(self, ex):  # noqa: ARG002 (Inspect's signature)
            return False

        async def generate(self, input, tools, tool_choice, config):
            if self.player == broken.player and broken.calls[self.player] >= broken.after:
                raise ConnectionError("503 unavailable")
            broken.calls[self.player] += 1
            try:
                return await super().generate(input, tools, tool_choice, config)
            except (ValueError, IndexError):
                broken.calls["csq"] += 1
                return ModelOutput.from_content(self.model_name, "Yes")

    return Flaky

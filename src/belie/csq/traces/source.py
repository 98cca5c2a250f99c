"""Where the trace of an answer stands: in its reasoning, or in what was said before the answer's last line.

Knows: `Answer.reasoning` (blocks of their own, a server's field and ``<think>`` text all end there), and visible chains
of thought of runs that asked for them.
Does not know: what the trace says.
"""

from __future__ import annotations

import json
import re
from typing import Literal

from belie.csq.answers import parse
from belie.items import Answer

#: Which text is read: the reasoning, or else what is visible where a chain of thought was asked for ("auto"); the
#: reasoning alone ("hidden"); what is visible alone, asked for or not ("visible").
Source = Literal["auto", "hidden", "visible"]
SOURCES: tuple[Source, ...] = ("auto", "hidden", "visible")

_SENTENCE_END = re.compile(r"[.!?:;][\s*_`\"')]*\s")


def trace_of(answer: Answer, source: Source, *, aloud: bool) -> str | None:
    """The trace of an answer, None where it shows none. ``aloud``: this question asked for a chain of thought."""
    if source != "visible" and answer.reasoning is not None:
        return _unpacked(answer.reasoning)
    if answer.text is not None and (source == "visible" or (source == "auto" and aloud)):
        return before_answer(answer.text)
    return None


def _unpacked(reasoning: str) -> str:
    """The reasoning; where a server sent it in parts of a structure, their text, not the JSON that is kept."""
    if not reasoning.startswith('{"'):
        return reasoning
    return "\n".join(_text_of(line) for line in reasoning.split("\n"))


def _text_of(line: str) -> str:
    try:
        part = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(part, dict) or part.get("type") not in ("thinking", "reasoning"):
        return line
    texts = (part.get(name) for name in ("thinking", "reasoning", "text"))
    return next((text for text in texts if isinstance(text, str)), line)


def before_answer(text: str) -> str | None:
    """What stands before the line (of a single line: the sentence) that holds the answer; all of it where the reply
    ends in no valid answer; None where nothing does."""
    if parse(text) == "invalid":
        return text if text.strip() else None
    lines = text.rstrip().splitlines()
    while lines and not any(char.isalnum() for char in lines[-1]):
        lines.pop()
    before = "\n".join(lines[:-1])
    if not before.strip() and lines:
        ends = [match.end() for match in _SENTENCE_END.finditer(lines[-1])]
        before = lines[-1][: ends[-1]] if ends else ""
    return before if before.strip() else None

"""OpenAI-compatible chat completions on the wire: the request's bytes and what a reply's bytes say.

Knows: the JSON of both directions, next-token probabilities, where servers put reasoning.
Does not know: connections, retries, money, what is true.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from belie.csq.answers import split_reasoning

# What tokenizers put in front of a word, when a server returns tokens raw.
_SPACES = " \t\r\nĠ▁Ċ"
_FORMS = ("yes", "no")


class MalformedError(Exception):
    """The body of a reply is not what it should be; the call can be made again."""


@dataclass(frozen=True, slots=True)
class Said:
    """One reply. ``p``: mass of the yes- and the no-forms at the first token, None without probabilities.

    ``covered``: both forms are among the returned tokens. ``usage_cost`` is the server's own figure in US dollars.
    """

    text: str
    reasoning: str | None
    p: tuple[float, float] | None
    covered: bool
    tokens: tuple[int, int]
    usage_cost: float | None
    model: str | None
    fingerprint: str | None


class Template:
    """A request with everything that stays the same in a run already written out."""

    def __init__(
        self,
        model: str,
        *,
        temperature: float,
        max_tokens: int,
        tokens_field: str = "max_tokens",
        top_logprobs: int = 0,
        extra_body: dict[str, Any] | None = None,
    ) -> None:
        fixed: dict[str, Any] = {"model": model, "temperature": temperature, tokens_field: max_tokens}
        if top_logprobs:
            fixed |= {"logprobs": True, "top_logprobs": top_logprobs}
        fixed |= extra_body or {}
        self._head = json.dumps(fixed)[:-1]

    def body(self, talk: Iterable[tuple[str, str]], seed: int | None = None) -> bytes:
        """The request for a conversation of (role, text)."""
        messages = ",".join([f'{{"role":"{role}","content":{json.dumps(text)}}}' for role, text in talk])
        seeded = "" if seed is None else f',"seed":{seed}'
        return f'{self._head}{seeded},"messages":[{messages}]}}'.encode()


def read(raw: bytes) -> Said:
    """What a reply with status 200 says. Raises ``MalformedError`` for anything that is not a chat completion."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        what = "an empty body" if not raw.strip() else "a body that is not (whole) JSON"
        raise MalformedError(f"{what} with status 200") from None
    if not isinstance(data, dict):
        raise MalformedError("JSON that is not an object with status 200")
    if data.get("error"):
        raise MalformedError(f"an error with status 200: {words(raw)}")
    try:
        choice = data["choices"][0]
        message = choice["message"]
        text, reasoning = _text(message)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise MalformedError("a reply without a message with status 200") from None
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    cost = usage.get("cost")
    p, covered = _first_token(choice.get("logprobs"))
    return Said(
        text=text,
        reasoning=reasoning,
        p=p,
        covered=covered,
        tokens=(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))),
        usage_cost=float(cost) if isinstance(cost, int | float) and cost >= 0 else None,
        model=_name(data.get("model")),
        fingerprint=_name(data.get("system_fingerprint")),
    )


def words(raw: bytes) -> str:
    """What a server says about an error, on one line of at most 300 characters."""
    said: Any = None
    try:
        said = json.loads(raw)
    except (ValueError, RecursionError):
        said = raw[:2000].decode("utf-8", "replace")
    for field in ("error", "message", "detail"):
        if isinstance(said, dict) and field in said:
            said = said[field]
    said = said if isinstance(said, str) else json.dumps(said)
    return "".join(filter(str.isprintable, " ".join(said.split())))[:300] or "no words"


def error_code(raw: bytes) -> str:
    """The ``code`` (or ``type``) of an error, "" where there is none."""
    try:
        error = json.loads(raw).get("error")
        return str(error.get("code") or error.get("type") or "")
    except (ValueError, AttributeError, RecursionError):
        return ""


def _text(message: dict[str, Any]) -> tuple[str, str | None]:
    """Visible text and reasoning, wherever the server put them."""
    content = message.get("content")
    if content is None:
        content = message.get("refusal") or ""
    apart = [message[field] for field in ("reasoning_content", "reasoning") if isinstance(message.get(field), str)][:1]
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        content = "".join(str(part.get("text") or "") for part in parts if part.get("type", "text") == "text")
        apart += [json.dumps(part) for part in parts if part.get("type") in ("thinking", "reasoning")]
    if not isinstance(content, str):
        raise TypeError
    if not content.isascii():
        # Half a surrogate pair is legal JSON, but cannot be written to a file.
        content = content.encode("utf-8", "replace").decode("utf-8")
    visible, inline = split_reasoning(content)
    return visible, "\n".join(filter(None, [*apart, inline])) or None


def _first_token(logprobs: Any) -> tuple[tuple[float, float] | None, bool]:
    """p of the yes-forms and of the no-forms at the first position, and whether both were returned."""
    try:
        position = logprobs["content"][0]
        seen = {entry["token"]: entry["logprob"] for entry in [*position["top_logprobs"], position]}
        mass = dict.fromkeys(_FORMS, 0.0)
        found: set[str] = set()
        for token, logprob in seen.items():
            form = token.strip(_SPACES).lower()
            if form in mass:
                found.add(form)
                mass[form] += math.exp(min(logprob, 0.0))
    except (KeyError, IndexError, TypeError, AttributeError):
        return None, False
    yes, no = mass["yes"], mass["no"]
    if not yes + no >= 0:
        return None, False
    total = max(1.0, yes + no)
    return (yes / total, no / total), len(found) == len(_FORMS)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _name(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) else None

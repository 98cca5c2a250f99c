"""Redaction: nothing secret is ever written.

Knows: which names look like those of secrets, which environment variables hold some, where URLs carry them.
Does not know: what is being written. Used for manifests, logs and errors; a respondent's own words are never
changed (they are the evidence, and no secret is ever sent as part of a question).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

REDACTED = "[redacted]"
#: Shorter values are not looked for in text: they would hit ordinary words.
SHORTEST_SECRET = 8

_ALWAYS = {
    *("secret", "secrets", "password", "passwords", "passwd", "passphrase", "authorization", "credential"),
    *("credentials", "apikey", "apikeys", "apitoken", "accesstoken", "cookie", "cookies", "bearer", "auth"),
}
_QUALIFIER = {"api", "access", "auth", "secret", "private", "session", "bearer", "refresh", "signing", "master"}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Each pattern starts at a border that it can't run past, so that a megabyte of hostile text takes linear time.
_USERINFO = re.compile(r"(?P<scheme>(?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s?#\"'<>]*@")
_QUERY = re.compile(r"(?P<lead>[?&;#])(?P<name>[\w.%\[\]-]+)=(?P<value>[^&;#\s\"'<>]+)")
_QUERY_NAMES = {"sig", "signature", "pwd", "pass", "jwt"}
# not every word after "basic" is a secret: it is long, or holds a digit, a sign of base64 or a capital inside
_HEADER = re.compile(
    r"\b(?P<kind>(?i:bearer|basic))\s+(?=[\w+/=.~-]{16}|[\w.~-]*(?:[0-9=+/]|[a-z][A-Z]))[A-Za-z0-9+/=._~-]{6,}"
)
_WHOLE_LINE = re.compile(
    r"\b(?P<lead>(?:authorization|cookie)[\"']?\s*[:=]\s*[\"']?)(?!\[redacted)[^\s\"'][^\r\n\"']*", re.IGNORECASE
)
_PAIR = re.compile(r"(?P<name>(?<![\w-])[A-Za-z][\w-]*)(?P<between>[\"']?\s*[:=]\s*[\"']?)(?P<value>[^\s\"'&,;}]+)")
_KNOWN_FORM = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{12,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16})"
)


def looks_secret(name: str) -> bool:
    """Whether a key, option, header or variable of this name holds a secret.

    ``api_key``, ``hf_token``, ``X-Api-Key``, ``clientSecret`` do; ``max_tokens``, ``prompt_tokens``,
    ``keyboard`` do not.
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    if _ALWAYS.intersection(words) or words[-1] in ("key", "token"):
        return True
    return words[-1] in ("keys", "tokens") and bool(_QUALIFIER.intersection(words))


def environment_secrets() -> set[str]:
    """The values of environment variables whose names look secret (``*_API_KEY``, ``*_TOKEN`` …)."""
    return {value for name, value in os.environ.items() if len(value) >= SHORTEST_SECRET and looks_secret(name)}


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without known secret values, user names and passwords in URLs, secret query parameters, bearer tokens.

    ``secrets`` adds values that the environment does not name (an ``--api-key`` option).
    """
    return _redact_text(text, _needles(secrets))


def redact(obj: Any, secrets: Iterable[str] = ()) -> Any:
    """A copy of a JSON-like object with every secret replaced by ``"[redacted]"``.

    Numbers, booleans and None under a name such as ``token`` stay (they count or switch something), except
    under names that are always secret (``password`` …). The argument is not changed.
    """
    return _redact(obj, _needles(secrets))


def _needles(secrets: Iterable[str]) -> list[str]:
    values = environment_secrets() | {s for s in secrets if len(s) >= SHORTEST_SECRET}
    values |= {quote(value, safe="") for value in values}
    return sorted(values, key=len, reverse=True)


def _redact_text(text: str, needles: list[str]) -> str:
    for needle in needles:
        if needle in text:
            text = text.replace(needle, REDACTED)
    if "://" in text:
        text = _USERINFO.sub(rf"\g<scheme>{REDACTED}@", text)
    text = _QUERY.sub(_redact_parameter, text)
    text = _WHOLE_LINE.sub(rf"\g<lead>{REDACTED}", text)
    text = _HEADER.sub(rf"\g<kind> {REDACTED}", text)
    text = _PAIR.sub(_redact_pair, text)
    return _KNOWN_FORM.sub(REDACTED, text)


def _redact_parameter(match: re.Match[str]) -> str:
    name = match["name"]
    if looks_secret(name) or name.lower() in _QUERY_NAMES:
        return f"{match['lead']}{name}={REDACTED}"
    return match[0]


def _redact_pair(match: re.Match[str]) -> str:
    """``x-api-key: …`` and ``"password": "…"`` in running text; a bare "key:" or "token:" is an ordinary word."""
    words = {word.lower() for word in _WORDS.findall(match["name"])}
    strong = words & _ALWAYS or (words & {"key", "token", "keys", "tokens"} and words & _QUALIFIER)
    if not strong or match["value"].lower() in ("bearer", "basic"):
        return match[0]
    return f"{match['name']}{match['between']}{REDACTED}"


def _redact(obj: Any, needles: list[str]) -> Any:
    if isinstance(obj, str):
        return _redact_text(obj, needles)
    if isinstance(obj, Mapping):
        return {_redact(key, needles): _redact_value(key, value, needles) for key, value in obj.items()}
    if isinstance(obj, (list, tuple, set, frozenset)):
        return [_redact(value, needles) for value in obj]
    if isinstance(obj, bytes):
        return REDACTED
    return obj


def _redact_value(key: Any, value: Any, needles: list[str]) -> Any:
    if not isinstance(key, str) or not looks_secret(key) or value is None or value == "":
        return _redact(value, needles)
    if isinstance(value, (bool, int, float)) and not _ALWAYS.intersection(w.lower() for w in _WORDS.findall(key)):
        return value
    return value if isinstance(value, bool) else REDACTED

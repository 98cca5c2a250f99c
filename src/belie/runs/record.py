"""One answer as one line of the journal, and back.

Knows: the keys of a record. Does not know: files.

A record is a JSON object with one-letter keys; what has its default is left out:

====  ==========================================  =========
key   meaning                                     left out
====  ==========================================  =========
i     item id                                     never
f     1: an answer to the follow-up               first step
d     draw                                        0
p     [p_yes, p_no], exact answer                 None
t     visible reply, sampled answer               None
r     reasoning text                              None
e     error: the call failed after its retries    None
u     [prompt, completion] tokens used            [0, 0]
c     cost, US dollars                            0.0
====  ==========================================  =========

Exactly one of p, t, e is there. Numbers are written by ``repr``, so floats come back to the last bit. Text is
UTF-8 (lone surrogates as their three bytes, so that any string comes back equal). A newline inside a text
is escaped, so a record is one line; and no proper prefix of a JSON object is a JSON object, so a torn
line can never pass for a whole one.
"""

from __future__ import annotations

import json
import math
from typing import Any

from belie.items import Answer

_KEYS = frozenset("ifdptreuc")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False).encode
_decode = json.JSONDecoder().decode
_NO_TOKENS = (0, 0)


def to_line(answer: Answer) -> bytes:
    """The line of an answer, with its newline. Raises ``ValueError`` for one that could not be read back."""
    record: dict[str, Any] = {"i": answer.item}
    if answer.step != "first":
        record["f"] = 1
    if answer.draw:
        record["d"] = int(answer.draw)
    if answer.p is not None:
        record["p"] = [float(answer.p[0]), float(answer.p[1])]
    if answer.text is not None:
        record["t"] = answer.text
    if answer.reasoning is not None:
        record["r"] = answer.reasoning
    if answer.error is not None:
        record["e"] = answer.error
    if answer.tokens != _NO_TOKENS:
        record["u"] = [int(answer.tokens[0]), int(answer.tokens[1])]
    if answer.cost:
        record["c"] = float(answer.cost)
    _check(record)
    return (_encode(record) + "\n").encode("utf-8", "surrogatepass")


def from_line(line: bytes) -> Answer:
    """The answer of a line. Raises ``ValueError`` with the reason where the line is not a record."""
    return from_record(parse(line))


def parse(line: bytes) -> dict[str, Any]:
    """The checked record of a line, without building an ``Answer``. Raises ``ValueError``."""
    try:
        record = _decode(line.decode("utf-8", "surrogatepass"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if type(record) is not dict:
        raise ValueError("not a JSON object")
    if not record.keys() <= _KEYS:
        raise ValueError(f"unknown key {sorted(record.keys() - _KEYS)[0]!r}")
    _check(record)
    return record


def from_record(record: dict[str, Any]) -> Answer:
    """The answer of a record that ``parse`` gave."""
    get = record.get
    p = get("p")
    used = get("u")
    return Answer(
        record["i"],
        "followup" if "f" in record else "first",
        get("d", 0),
        None if p is None else (p[0], p[1]),
        get("t"),
        get("r"),
        get("e"),
        _NO_TOKENS if used is None else (used[0], used[1]),
        get("c", 0.0),
    )


def _check(record: dict[str, Any]) -> None:
    if type(record.get("i")) is not str:
        raise ValueError("no item id")
    if ("p" in record) + ("t" in record) + ("e" in record) != 1:
        raise ValueError("not exactly one of p, t and e")
    if "p" in record and not _is_pair(record["p"], 1.001):
        raise ValueError("p is not a pair of probabilities")
    for key in "tre":
        if key in record and type(record[key]) is not str:
            raise ValueError(f"{key} is not text")
    if "u" in record and not (_is_pair(record["u"]) and all(type(count) is int for count in record["u"])):
        raise ValueError("u is not a pair of counts")
    if "d" in record and (type(record["d"]) is not int or record["d"] < 0):
        raise ValueError("d is not a draw number")
    if "f" in record and record["f"] != 1:
        raise ValueError("f is not 1")
    if "c" in record and not (type(record["c"]) in (int, float) and 0 <= record["c"] < math.inf):
        raise ValueError("c is not a cost")


def _is_pair(value: Any, most: float = math.inf) -> bool:
    # rounding may carry a probability a hair above 1: the journal looks for damage, not for rounding
    if type(value) is not list or len(value) != 2:
        return False
    a, b = value
    return type(a) in (int, float) and type(b) in (int, float) and 0 <= a <= most and 0 <= b <= most

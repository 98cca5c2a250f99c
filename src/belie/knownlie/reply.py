"""A reply that should be one JSON object: read strictly, because a guessed field is a wrong verdict.

Knows: finding the one object in a text, and when there is none to be trusted.
Does not know: what the fields mean.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


class Unusable(Exception):
    """The reply can't be used; the message says why, in a few words."""


def one_object(text: str) -> dict[str, Any]:
    """The one JSON object that stands in ``text``, with or without prose or a code fence around it.

    Raises ``Unusable`` where there is none, more than one, or one that names a field twice.
    """
    found: list[dict[str, Any]] = []
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    at = text.find("{")
    while at != -1:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if text[at + 1 :].lstrip()[:1] in ('"', "'"):  # meant as an object, and broken: what is inside is no answer
                raise Unusable("no readable JSON object") from None
            end = at + 1
        else:
            found.append(value)
        at = text.find("{", end)
    if not found:
        raise Unusable("no JSON object" if "{" not in text else "no readable JSON object")
    if len(found) > 1:
        raise Unusable(f"{len(found)} JSON objects instead of one")
    return found[0]


def one_model(text: str, model: type[Model]) -> Model:
    """The one object of ``text`` as a pydantic model. Raises ``Unusable`` with the first wrong field."""
    value = one_object(text)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise Unusable(f"{'.'.join(str(part) for part in first['loc']) or 'object'}: {first['msg']}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a field stands twice")
    return value

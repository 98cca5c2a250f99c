"""Whether a quote is the agent's own: found in one of its messages, white space and quote marks folded (METHOD §2.5).

Knows: what is folded (white space, quotation marks, apostrophes), and nothing else: not case, not punctuation.
Does not know: what the quote is supposed to prove.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARKS = re.compile("[\"'`´‘’‚‛“”„‟«»‹›′″]+")
_SPACE = re.compile(r"\s+")


def fold(text: str) -> str:
    """The text with every run of white space as one space and every quotation mark as one apostrophe."""
    return _SPACE.sub(" ", _MARKS.sub("'", text)).strip()


def stands_in(quote: str, messages: Iterable[str]) -> bool:
    """Whether the quote stands, from word to word, in one of the messages. A quote without a letter stands nowhere."""
    wanted = fold(quote).strip("' ")
    if not any(character.isalnum() for character in wanted):
        return False
    before = r"(?<!\w)" if wanted[0].isalnum() else ""
    after = r"(?!\w)" if wanted[-1].isalnum() else ""
    pattern = re.compile(before + re.escape(wanted) + after)
    return any(pattern.search(fold(message)) for message in messages)

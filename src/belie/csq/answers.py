"""Reading a reply: Yes, No or invalid (METHOD §1.2), and keeping reasoning blocks apart from what is said.

Knows: the words "yes" and "no", punctuation, markup, sentences, reasoning tags.
Does not know: what was asked, what is true, who answered.

How METHOD §1.2 is read where it leaves room; whatever is doubtful is invalid, since an invalid answer costs
coverage and a misread one costs the truth:

* A sentence ends at ``.``, ``!`` or ``?`` followed by white space, at ``。！？`` or at a line break; an ellipsis ends
  none. So "No. Yes." is Yes (the No stands in another sentence) and "Yes... no" is invalid.
* Everything that is neither a letter nor a digit is punctuation or markup and is trimmed, and so are HTML tags and
  entities, full-width and mathematical letters (folded to plain ones) and invisible characters.
* Stand-alone: not glued to another word ("no-one", "example.no", "yes/no") and not negated by one of the three words
  before it in its clause ("not yes", "I cannot say yes").
* The opposite word counts in any form, glued or not: "Yes/No: No" is invalid, and so is "there is no path, so yes".
* A reply that goes on after its answer ("No, A cannot reach B.") does not end in it: invalid.
* Other words for the same thing ("Yeah", "Nope", "Ja", "true") are invalid: one word was asked for, Yes or No.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Literal

Parsed = Literal["yes", "no", "invalid"]

#: Goes into the manifest of a run: raised whenever a reply could be read differently.
PARSER_VERSION = 1

_PLAIN: dict[str, Parsed] = {"Yes": "yes", "No": "no", "Yes.": "yes", "No.": "no", "": "invalid"}
_OPPOSITE = {"yes": "no", "no": "yes"}

# Every pattern below is linear: bounded repeats, or classes that cannot overlap what follows them.
_REASONING = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_LINE_TAG = re.compile(r"</?(?:br|p|div|li|ul|ol|tr|h[1-6]|pre|blockquote)(?:\s[^<>]{0,256})?/?>")
_TAG = re.compile(r"<(?!/?(?:yes|no)\s?/?>)(?:[/!]?[a-z][^<>]{0,256}|!--[^<>]{0,256}|\|[^<>|]{0,64}\|)>")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_STYLED = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff]+")
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+")
_TO_LAST_LETTER = re.compile(r"(?s:.*)[^\W_]")
_TO_LAST_BREAK = re.compile(
    r"(?s:.*)(?:(?:(?<!\.)\.(?!\.)|[!?])(?=[^\w\s]{0,8}\s)|[。！？\n\r\x0b\x0c\x85\u2028\u2029])"
)
_TO_CLAUSE = re.compile(r"(?s:.*)(?:[,:;–—→]|\b(?:so|but|and|then|thus|hence|therefore)\b)")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_WHOLE = {word: re.compile(rf"(?<![^\W_]){word}(?![^\W_])") for word in _OPPOSITE}
_GLUE = frozenset("-‐‑'’./\\@_&+")
_NEGATORS = frozenset({"not", "cannot", "never"})
_NEGATED_WITHIN = 3


def parse(text: str) -> Parsed:
    """The answer that a reply gives: ``"yes"``, ``"no"`` or ``"invalid"`` (METHOD §1.2).

    Never raises; time is linear in the length of ``text``. Reasoning blocks are dropped first. Letter case,
    punctuation and markup around the answer change nothing.
    """
    known = _PLAIN.get(text)
    if known is not None:
        return known
    said = _plain(split_reasoning(text)[0])
    trimmed = _TO_LAST_LETTER.match(said)
    if trimmed is None:
        return "invalid"
    end = trimmed.end()
    answer = _ending(said, end)
    if answer is None:
        return "invalid"
    opening = _TO_LAST_BREAK.match(said, 0, end)
    sentence = said[opening.end() if opening else 0 : end]
    if _WHOLE[_OPPOSITE[answer]].search(sentence) or _negated(sentence[: -len(answer)]):
        return "invalid"
    return answer


def split_reasoning(text: str) -> tuple[str, str | None]:
    """A reply as (visible, reasoning): what stands in ``<think>`` blocks is reasoning, and never visible.

    ``<thinking>`` and ``<reasoning>`` count too; blocks may nest. After a block that is never closed everything
    is reasoning. Before a closing tag that was never opened everything is reasoning too (chat templates that
    write the opening tag into the prompt). ``reasoning`` is None where there is none.
    """
    if "<" not in text:
        return text, None
    visible: list[str] = []
    hidden: list[str] = []
    depth = at = 0
    tagged = False
    for tag in _REASONING.finditer(text):
        tagged = True
        closes = tag[1] == "/"
        piece = text[at : tag.start()]
        if closes and depth == 0:
            hidden += visible
            hidden.append(piece)
            visible.clear()
        else:
            (hidden if depth else visible).append(piece)
            depth += -1 if closes else 1
        at = tag.end()
    if not tagged:
        return text, None
    (hidden if depth else visible).append(text[at:])
    return _joined(visible), _joined(hidden) or None


def _joined(pieces: list[str]) -> str:
    return "\n".join(filter(None, (piece.strip() for piece in pieces)))


def _plain(text: str) -> str:
    """Lower case, without tags, entities, styled letters and invisible characters."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
        text = _STYLED.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    text = text.lower()
    if "<" in text:
        text = _TAG.sub(" ", _LINE_TAG.sub("\n", text))
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]).lower(), text)
    return text


def _ending(said: str, end: int) -> Literal["yes", "no"] | None:
    """The stand-alone yes or no that ends at ``end``, if one does."""
    for answer in ("yes", "no"):
        if not said.endswith(answer, 0, end):
            continue
        start = end - len(answer)
        after = said[end : end + 1]
        if after and unicodedata.combining(after):
            return None
        if not start:
            return answer
        before = said[start - 1]
        if before in _GLUE:
            glued = said[:start].rstrip(before)[-1:]
            return None if before == "\\" or glued.isalnum() else answer
        return None if before.isalnum() or unicodedata.combining(before) else answer
    return None


def _negated(lead: str) -> bool:
    """Whether the words right before the answer, in its own clause, deny it."""
    lead = lead[-200:]
    clause = _TO_CLAUSE.match(lead)
    words = _WORD.findall(lead, clause.end() if clause else 0)[-_NEGATED_WITHIN:]
    return any(word in _NEGATORS or word.endswith(("n't", "n’t")) for word in words)

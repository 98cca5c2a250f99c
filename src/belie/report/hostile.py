"""What others wrote, as text that can only be read: a model's words, a server's, a file's name.

Knows: which characters must not reach a page as they are (control codes, direction marks, lone surrogates) and how they
are shown instead; where a text is cut.
Does not know: HTML beyond escaping, or what the text says.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from markupsafe import Markup, escape

#: Characters of one text that are shown; of longer ones the beginning, with a note.
LIMIT = 4000
#: More combining marks than this on one letter are left out: they would cover the lines around.
_MARKS = 3

_PLAIN = re.compile(r"[\x20-\x7e\n]*")
_COMBINING = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILED = re.compile(f"({_COMBINING}{{{_MARKS}}}){_COMBINING}+")
_CONTROLS = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR", "SO", "SI", "DLE"),
    *("DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"),
)
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def shown(text: object, limit: int = LIMIT, marks: Sequence[tuple[int, int]] = ()) -> Markup:
    """The text escaped, its invisible characters as ``<span class="ctl">``, cut after ``limit`` with a note.

    ``marks`` are (start, end) positions, ascending and apart, set in ``<mark>``. The element around should have
    ``dir="auto"`` (its direction is then its own). Escape sequences of terminals show as their characters.
    """
    told = str(text)
    whole = len(told)
    parts: list[Markup] = []
    at = 0
    for start, end in marks:
        start, end = min(start, limit), min(end, limit)
        if start >= end or start < at:
            continue
        parts += [_visible(told[at:start]), Markup("<mark>"), _visible(told[start:end]), Markup("</mark>")]
        at = end
    parts.append(_visible(told[at:limit]))
    if whole > limit:
        parts.append(
            Markup('<span class="cut">[cut here: {} of {} characters are shown]</span>').format(
                f"{limit:,}", f"{whole:,}"
            )
        )
    return Markup("").join(parts)


def plain(text: object, limit: int = 200) -> str:
    """The same for places that hold no elements (attributes, titles of figures): a str, not yet escaped."""
    told = " ".join(str(text)[: limit + 1].split())
    told = "".join(_name(char)[0] if _is_hidden(char) else char for char in _PILED.sub(r"\1", told))
    return told if len(str(text)) <= limit else told[:limit] + "…"


def _visible(text: str) -> Markup:
    if _PLAIN.fullmatch(text):
        return escape(text)
    parts: list[Markup] = []
    run: list[str] = []
    for char in _PILED.sub(r"\1", text):
        if char == "\n" or not _is_hidden(char):
            run.append(char)
            continue
        parts.append(escape("".join(run)))
        run = []
        sign, name = _name(char)
        parts.append(Markup('<span class="ctl" title="{}">{}</span>').format(name, sign))
    parts.append(escape("".join(run)))
    return Markup("").join(parts)


def _is_hidden(char: str) -> bool:
    return (not char.isascii() and unicodedata.category(char) in _HIDDEN) or char < " " or char == "\x7f"


def _name(char: str) -> tuple[str, str]:
    """A sign for a character that can't be seen, and what it is."""
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"[{_CONTROLS[code] if code < 0x20 else 'DEL'}]", f"control character U+{code:04X}"
    name = unicodedata.name(char, "").lower()
    return f"[U+{code:04X}]", name or f"character U+{code:04X}"

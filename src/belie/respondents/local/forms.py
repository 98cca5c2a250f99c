"""Which tokens of a vocabulary say Yes, and which say No.

Knows: how tokenizers write spaces.
Does not know: models, items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Marks for a space or a line end: SentencePiece, byte-level BPE.
_MARKS = "▁ĠĊ"


@dataclass(frozen=True, slots=True)
class Forms:
    """Token ids whose text, without white space and space marks and with letter case folded, is "yes" or "no"."""

    yes: tuple[int, ...]
    no: tuple[int, ...]


def forms(tokenizer: Any) -> Forms:
    """The yes-forms and no-forms of a tokenizer, in the order of their ids (METHOD §1.2, exact answers)."""
    special = set(tokenizer.all_special_ids)
    found: dict[str, list[int]] = {"yes": [], "no": []}
    for piece, token in tokenizer.get_vocab().items():
        if token in special or len(piece) > 16:
            continue
        bare = piece.strip().strip(_MARKS)
        if bare.casefold() in found or "<0x" in piece:
            text = tokenizer.decode([token]).strip().strip(_MARKS).strip().casefold()
            if text in found:
                found[text].append(token)
    return Forms(tuple(sorted(found["yes"])), tuple(sorted(found["no"])))

"""What scripted players know by heart: the cases behind a prompt, and dialogues whose right verdict was told them.

Knows: the cases of every pack that this process loaded for a run, and what a perfect judge replies to a dialogue.
Does not know: how a player acts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from belie.knownlie.pack import Pack
from belie.knownlie.scene import Scene, scene_of

_scenes: dict[str, tuple[Scene, ...]] = {}
_replies: dict[tuple[tuple[str, str], ...], Mapping[str, Any]] = {}


def learn(pack: Pack) -> None:
    """Makes the cases of a pack known to the scripted players of this process; a pack of the same id is replaced."""
    _scenes[pack.id] = tuple(scene_of(pack, case) for case in pack.cases)


def scene_in(text: str, around: str = "") -> Scene:
    """The scene whose reference stands in ``text``; where two packs share it, ``around`` tells by the institution.

    Raises ``ValueError`` where there is none.
    """
    found = [s for scenes in _scenes.values() for s in scenes if s.reference and s.reference in text]
    if len(found) > 1:
        longest = max(len(scene.reference) for scene in found)
        found = [scene for scene in found if len(scene.reference) == longest]
        found = [scene for scene in found if scene.words["institution"] in (around or text)] or found
    if not found:
        raise ValueError("a scripted player was shown no case that it knows: it plays the cases of loaded packs only")
    return found[0]


def remember(transcript: Sequence[tuple[str, str]], reply: Mapping[str, Any]) -> None:
    """Tells the scripted judges of this process what is right of a dialogue: (speaker, text) pairs, a judge's reply."""
    _replies[tuple(transcript)] = reply


def remembered(transcript: Sequence[tuple[str, str]]) -> Mapping[str, Any] | None:
    """What is right of a dialogue; None for one that nobody told."""
    return _replies.get(tuple(transcript))

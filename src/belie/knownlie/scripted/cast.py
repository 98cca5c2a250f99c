"""What scripted players know of the cases: the scene behind a prompt, found by the reference that stands in it.

Knows: the cases of every pack that this process loaded for a run.
Does not know: how a player acts.
"""

from __future__ import annotations

from belie.knownlie.pack import Pack
from belie.knownlie.scene import Scene, scene_of

_scenes: dict[str, tuple[Scene, ...]] = {}


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

"""Scripted players: an Inspect model provider ``belie`` whose every answer, and so every score, is known beforehand."""

from belie.knownlie.scripted.cast import learn, remember
from belie.knownlie.scripted.provider import ScriptedAPI

__all__ = ["ScriptedAPI", "learn", "remember"]

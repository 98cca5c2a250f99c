"""Phrasings written by a model: asked for, checked, and kept as a world that all audited models share."""

from belie.csq.paraphrase.checker import CHECKER_VERSION, Verdict, check, prove
from belie.csq.paraphrase.fault import REASONS
from belie.csq.paraphrase.instance import Instance, draw_instance
from belie.csq.paraphrase.making import Outcome, Wish, attempt_item, judged, make, next_attempt, versions
from belie.csq.paraphrase.replies import Replies, Reply, replies_path
from belie.csq.paraphrase.world_file import write_world

__all__ = [
    "CHECKER_VERSION",
    "REASONS",
    "Instance",
    "Outcome",
    "Replies",
    "Reply",
    "Verdict",
    "Wish",
    "attempt_item",
    "check",
    "draw_instance",
    "judged",
    "make",
    "next_attempt",
    "prove",
    "replies_path",
    "versions",
    "write_world",
]

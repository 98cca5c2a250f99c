"""Replies made from hand-written wordings (tests/data/paraphrases): the parts filled with an instance's names, and laid
out the way a model would.

Knows: the parts of a wording and the layouts. Does not know: the checker.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from belie.csq.paraphrase import Instance, draw_instance

DATA = Path(__file__).parent / "data" / "paraphrases"


def wordings(name: str) -> list[dict[str, Any]]:
    """The entries of good.yaml or bad.yaml. A bad one takes what it does not say from the good one called `base`."""
    entries = yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))
    if name == "good":
        return entries
    good = {entry["id"]: entry for entry in wordings("good")}
    return [{**good.get(entry.get("base"), {}), "held_out": False, **entry} for entry in entries]


def instance_of(entry: dict[str, Any]) -> Instance:
    return draw_instance(entry["world"], seed=7, attempt=3, phrasing=0)


def reply_of(entry: dict[str, Any], instance: Instance) -> str:
    """`reply` as it stands, else the parts laid out. {v0} … {v4} are the chain's names; {stranger} is another one."""
    names = dict(zip(("v0", "v1", "v2"), _chain(instance)[:3], strict=True))
    names |= dict(zip(("v3", "v4"), _chain(instance)[3:], strict=True))
    names |= {"stranger": f"{instance.world.entities.first[0]} {instance.world.entities.second[0]}"}
    if "reply" in entry:
        filled = _fill(entry["reply"], names)
        return (filled * (entry.get("repeat", 0) // len(filled) + 1))[: entry.get("repeat")]
    can = entry.get("can", instance.world.polarity[0])
    ask = {"a": instance.pair[0], "b": instance.pair[1], "can": can, **names}
    easy = {"a": instance.easy[0], "b": instance.easy[1], "can": can, **names}
    facts = [_fill(entry["fact"], {"a": a, "b": b}) for a, b in instance.edges]
    if "facts" in entry:
        facts = [_fill(line, names) for line in entry["facts"]]
    first = f"{_fill(entry['question'], ask)} {_fill(entry['instruction'], names)}".strip()
    second = f"{_fill(entry.get('second_question', entry['question']), easy)} {entry['instruction']}".strip()
    second = _fill(entry["second"], {**names}) if "second" in entry else second
    whole = _laid_out(
        entry.get("layout", "plain"),
        first,
        _fill(entry["rules_heading"], names),
        [_fill(rule, names) for rule in entry["rules"]],
        _fill(entry["facts_heading"], names),
        facts,
        _fill(entry["again"], names),
        second,
    )
    return whole.partition("Second message")[0] if entry.get("cut_second") else whole


def _chain(instance: Instance) -> list[str]:
    """The names v0 … v4 in the order of the chain: v2 → v3 is the fact that is not there."""
    following = dict(instance.edges)
    left = [instance.pair[0]]
    while left[-1] in following:
        left.append(following[left[-1]])
    right = [next(name for name in following if name not in following.values() and name != left[0])]
    while right[-1] in following:
        right.append(following[right[-1]])
    return left + right


def _fill(text: str, names: dict[str, str]) -> str:
    for slot, name in names.items():
        text = text.replace(f"{{{slot}}}", name)
    return text


def _laid_out(
    layout: str, first: str, heading: str, rules: list[str], told: str, facts: list[str], again: str, second: str
) -> str:
    bullets = {"numbers": "{}. ", "stars": "* ", "letters": "({l}) "}.get(layout, "- ")
    lines = [bullets.replace("{}", str(i + 1)).replace("{l}", "abcdefgh"[i]) + rule for i, rule in enumerate(rules)]
    if layout == "stars":
        facts = [f"* {fact}" for fact in facts]
    if layout == "bold":
        heading, told = f"**{heading}**", f"**{told.removesuffix(':')}**"
    marks = ("**First message:**", "**Second message:**") if layout == "bold" else ("First message:", "Second message:")
    body = "\n".join([first, "", heading, *lines, "", told, *facts, "", again])
    if layout == "fenced":
        return f"Here is another wording.\n\n{marks[0]}\n```\n{body}\n```\n\n{marks[1]}\n```\n{second}\n```\n"
    if layout == "letters":
        marks = ("FIRST MESSAGE", "SECOND MESSAGE")
    return f"{marks[0]}\n{body}\n\n{marks[1]}\n{second}\n"

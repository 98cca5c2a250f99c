"""The question line and the instruction of a reply.

Knows: where the claim stands, which pair it is about and which way round, and what makes it another question.
Does not know: facts and rules.
"""

from __future__ import annotations

import re

from belie.csq.paraphrase.fault import Fault
from belie.csq.paraphrase.instance import Instance
from belie.csq.paraphrase.lexicon import found, lexicon, unknown, words
from belie.csq.paraphrase.told import orientation, split_pair
from belie.csq.world import World

_SENTENCE = re.compile(r"(?<=[.?!])[\"')]? +(?=[A-Z\"])")


def read_question(line: str, instance: Instance) -> tuple[str, str]:
    """(question template with ``{a}``, ``{b}``, ``{can}``; instruction) of a question line.

    Raises ``Fault``: names, pair, polarity, hint, question_changed, instruction, word.
    """
    sentences = _sentences(line)
    if len(sentences) < 2:
        raise Fault("instruction", f"no instruction after the question: {line}")
    question, instruction = " ".join(sentences[:-1]), sentences[-1]
    if not _answers(instruction) and any(map(_answers, sentences[:-1])):
        raise Fault("hint", f"something follows the instruction: {instruction}")
    check_instruction(instruction, instance.world)
    one, two, template = split_pair(question, instance)
    template = _polarity_slot(template, instance.world)
    _refuse_changed(template, instance.world)
    way = orientation(_claim(template), instance.world)
    if way is None:
        raise Fault("pair", f"asks without a clear direction: {question}")
    asked = (one, two) if way == "forward" else (two, one)
    if asked != instance.pair:
        raise Fault("pair", f"asks about {asked[0]} → {asked[1]}")
    slots = ("{a}", "{b}") if way == "forward" else ("{b}", "{a}")
    return template.replace("{1}", slots[0]).replace("{2}", slots[1]), instruction


def check_instruction(text: str, world: World) -> None:
    """Raises ``Fault`` (instruction, hint) where a sentence is not "one word, Yes or No"."""
    known = lexicon()
    low = text.lower()
    hint = found(known.hints, re.sub(r"\banswer (is|must be|should be) (to be )?(a |one|just|exactly)", "", low))
    if hint:
        raise Fault("hint", f"{hint!r} in: {text}")
    if len(_sentences(text)) > 1:
        raise Fault("hint", f"something beside the instruction: {text}")
    if not _answers(text):
        raise Fault("instruction", f"does not ask for Yes or No: {text}")
    bare = low
    for harmless in known.instruction.harmless:
        bare = re.sub(harmless, "", bare)
    denied = [match[0] for match in re.finditer(known.negation, bare)]
    if not found(known.instruction.alone, low) or denied != ["no"] or found(known.hedges, low):
        raise Fault("instruction", f"does not plainly ask for one word: {text}")
    aside = found(known.instruction.elsewhere, low)
    if aside:
        raise Fault("instruction", f"speaks of {aside!r}: {text}")
    if len(words(text)) > known.instruction.longest:
        raise Fault("instruction", f"{len(words(text))} words: {text}")
    odd = unknown(text, world, "instruction")
    if len(odd) > known.instruction.strange:
        raise Fault("instruction", f"the checker does not know {', '.join(odd)} in: {text}")


def check_heading(text: str, world: World) -> None:
    """Raises ``Fault`` (hint, rule_softened, word) where a heading says more than what stands under it."""
    known, low = lexicon(), text.lower()
    hint = found(known.hints, low)
    if hint:
        raise Fault("hint", f"{hint!r} in the heading: {text}")
    soft = found(known.hedges, re.sub(r"\bshould\b", "", low)) or found(known.negation, low)
    soft = soft or found(known.headings.suspect, low)
    if soft:
        raise Fault("rule_softened", f"{soft!r} in the heading: {text}")
    odd = unknown(text, world, "headings")
    if len(odd) > known.headings.strange or len(words(text)) > known.headings.longest:
        raise Fault("hint", f"says too much for a heading ({', '.join(odd)}): {text}")


def _sentences(line: str) -> list[str]:
    parts, start = [], 0
    for gap in _SENTENCE.finditer(line):
        end = gap.start() + (1 if gap[0][0] in "\"')" else 0)
        parts.append(line[start:end].strip())
        start = gap.end()
    return [*parts, line[start:].strip()]


def _answers(sentence: str) -> bool:
    low = sentence.lower()
    return (
        found(lexicon().instruction.answers, low) is not None
        and len(re.findall(r"\byes\b", low)) == 1
        and len(re.findall(r"\bno\b(?! other)", low)) == 1
    )


def _polarity_slot(template: str, world: World) -> str:
    """The template with ``{can}`` for the polarity word of its claim. Raises ``Fault`` (polarity)."""
    can, cannot = world.polarity
    if re.search(rf"\b{re.escape(cannot)}\b|\b{re.escape(can)}(n't| not)\b", template, re.IGNORECASE):
        raise Fault("polarity", f"asks for {cannot!r}: {template}")
    places = list(re.finditer(rf"(?<![\w'-]){re.escape(can)}(?![\w'-])", template))
    before = [place for place in places if place.start() < template.index("{2}")]
    if not places or (len(before) > 1 and len(before) < len(places)):
        raise Fault("polarity", f"no single {can!r} that could become {cannot!r}: {template}")
    places = before or places[:1]
    last = places[-1]
    return f"{template[: last.start()]}{{can}}{template[last.end() :]}"


def _claim(template: str) -> str:
    """The sentence that holds the claim, without its frame where a colon, a quote or "that" tells where that ends."""
    holding = next(part for part in _sentences(template) if "{can}" in part)
    head = holding[: holding.index("{can}")]
    starts = [match.end() for match in re.finditer(r"\bthat\b|\bwhether\b|\bif\b|:|\"", head)]
    starts = [start for start in starts if "{1}" not in head[:start]]
    claim = holding[starts[-1] if starts else 0 :]
    if starts and head[starts[-1] - 1] == '"':
        claim = claim.partition('"')[0]
    return claim.replace("{can}", "can")


def _refuse_changed(template: str, world: World) -> None:
    known = lexicon()
    low = template.lower()
    hint = found(known.hints, low)
    if hint:
        raise Fault("hint", f"{hint!r} in: {template}")
    for sentence in _sentences(template):
        if "{1}" not in sentence and not found(known.question.tails, sentence.lower().lstrip('"')):
            raise Fault("hint", f"a sentence that has no place in the question: {sentence}")
    bare = low
    for harmless in known.question.harmless:
        bare = re.sub(harmless, "", bare)
    flip = found(known.question.flips, bare)
    if flip:
        raise Fault("polarity", f"{flip!r} in: {template}")
    hedge = found(known.hedges, re.sub(r"\bshould\b", "", bare))
    if hedge:
        raise Fault("question_changed", f"{hedge!r} in: {template}")
    scope = found(known.question.scope, _claim(template).lower())
    if scope:
        raise Fault("question_changed", f"{scope!r} in the claim: {template}")
    if not found(known.question.frames, bare):
        raise Fault("question_changed", f"does not ask whether the claim is true: {template}")
    claim = _claim(template)
    odd = unknown(_bare(claim), world, "claim")
    if odd:
        raise Fault("word", f"{odd[0]!r} in the claim: {template}")
    odd = unknown(_bare(template), world, "question")
    if len(odd) > known.question.strange:
        raise Fault("word", f"{', '.join(odd)} in: {template}")


def _bare(template: str) -> str:
    return template.replace("{1}", " ").replace("{2}", " ")

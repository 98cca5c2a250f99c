"""Whether three lines are the three rules, each in full force (METHOD §1.1): transitive, not symmetric, closed.

Knows: the signals of each rule's meaning, and that every negation in a rule must be part of that meaning.
Does not know: names, facts, questions. It understands little: what it cannot place it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, permutations

from belie.csq.paraphrase.fault import Fault
from belie.csq.paraphrase.lexicon import found, lexicon, unknown, words
from belie.csq.world import World

#: Words in one rule at most: a rule says one thing.
LONGEST_RULE = 50
_NUMBERS = ("one", "two", "three", "1", "2", "3")
_ORDINALS = {"first": 1, "second": 2, "third": 3, "last": 3, "start": 1, "end": 3}


def check_rules(rules: Sequence[str], facts_heading: str, world: World) -> None:
    """Raises ``Fault``: hint, rule_softened, rule_missing, rule_changed, word.

    ``facts_heading`` names what the facts are called here (a list, a timetable), as the third rule may.
    """
    for rule in rules:
        _refuse_asides(rule)
    if len(rules) < 3:
        raise Fault("rule_missing", f"{len(rules)} rules of 3")
    if len(rules) > 3:
        raise Fault("hint", f"{len(rules)} lines under the first heading, where the 3 rules are: {rules[-1]}")
    texts = [_level(rule) for rule in rules]
    evidence = "|".join(re.escape(word) for word in words(facts_heading) if len(word) > 3)
    denied = _level(world.polarity[1])
    can_be = [(is_transitive(text), is_one_way(text), is_closed(text, evidence, denied)) for text in texts]
    if any(all(can_be[line][rule] for rule, line in enumerate(order)) for order in permutations(range(3))):
        for rule in rules:
            odd = unknown(rule, world, "rules")
            if odd:
                raise Fault("word", f"{odd[0]!r} in: {rule}")
        return
    names = ("transitive", "not symmetric", "closed")
    for line, kinds in enumerate(can_be):
        if not any(kinds):
            raise Fault("rule_changed", f"none of the three rules, as far as can be told: {rules[line]}")
    gone = next((names[i] for i in range(3) if not any(kinds[i] for kinds in can_be)), "one of the three")
    raise Fault("rule_missing", f"no line says: {gone}")


def _refuse_asides(rule: str) -> None:
    known, text = lexicon(), rule.lower()
    hint = found(known.hints, text)
    if hint:
        raise Fault("hint", f"{hint!r} in: {rule}")
    hedge = found(known.hedges, text)
    if hedge:
        raise Fault("rule_softened", f"{hedge!r} in: {rule}")
    if len(words(rule)) > LONGEST_RULE:
        raise Fault("hint", f"a rule of {len(words(rule))} words: {rule}")


def _level(rule: str) -> str:
    """Lower case, one word for each kind of negation; things named by a capital become x1, x2, x3 as they come."""
    seen: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], f"x{len(seen) + 1}")

    letters = r"\b(?:[B-HJ-Z]|A(?= (?:can|could|is|to|and|has|being|must|need)\b)|(?<=[a-z,:;] )A)\b"
    text = re.sub(letters if re.search(r"\bB\b", rule) else r"\b[B-HJ-Z]\b", named, rule)
    numbers = r"\b(?:person|town|city|place|station|module|role|thing|party|airport|entity) (one|two|three|[123])\b"
    text = re.sub(numbers, lambda match: f"x{_NUMBERS.index(match[1]) % 3 + 1}", text.lower())
    text = re.sub(r"\b(there|it|that)'s\b", r"\1 is", text)
    for pattern, unit in lexicon().negation_units:
        text = re.sub(pattern, unit, text)
    return text


def _places(text: str, pattern: str) -> list[re.Match[str]]:
    return list(re.finditer(pattern, text))


def _condition_first(text: str) -> str:
    """A rule of one sentence that ends in its condition, turned: "x if y" becomes "if y, x"."""
    turned = re.fullmatch(r"(?!if\b|when\b)([^:;,.]+) (if|when|whenever) ([^:;.]+)\.?", text)
    return f"{turned[2]} {turned[3]}, {turned[1]}" if turned else text


def _named(text: str) -> list[int]:
    return [int(match[1]) for match in re.finditer(r"\bx(\d)\b", text)]


def _ordinals(text: str) -> list[int]:
    return [_ORDINALS[word] for word in re.findall(r"\b(first|second|third|last|start|end)\b", text)]


def _runs(text: str, wanted: Sequence[int]) -> bool:
    """Whether what is named (x1 x2 …) comes in just this order, and ordinals in an order that fits it."""
    named, ordinals = _named(text), _ordinals(text)
    rest = iter(wanted)
    return named in ([], list(wanted)) and all(any(step == want for want in rest) for step in ordinals)


def _alternates(steps: Sequence[int]) -> bool:
    """Whether it is 1, 2, 1, 2, …: the pair that is not told is the very pair that does not hold."""
    return all(step == 1 + place % 2 for place, step in enumerate(steps))


def is_transitive(text: str) -> bool:
    """Rule 1: what holds from one to the next, and from that to another, holds from the one to the other."""
    rule = lexicon().rules.transitive
    text = plain = _condition_first(text)
    for harmless in rule.harmless:
        plain = re.sub(harmless, "", plain)
    if found(lexicon().negation, plain) or found(rule.forbidden, plain):
        return False
    if any(len(_places(part, rule.conditions)) > 1 for part in _parts(text)):
        return False
    text = re.sub(r"\b(by way of|via|through) (a|the) second\b", "", text)
    ordinals = _ordinals(text)
    if (3 in ordinals and ordinals[-1] != 3) or (2, 1) in pairwise(ordinals):
        return False
    if found(rule.shared, text) and _named(text) == [1, 2, 1, 2]:
        return True
    return found(rule.signals, text) is not None and _runs(text, rule.ordinals)


def is_one_way(text: str) -> bool:
    """Rule 2: that something holds one way does not make it hold the other way."""
    rule = lexicon().rules.one_way
    text = _condition_first(re.sub(rule.unless, "", text))
    said = [_one_way(part) for part in _parts(text)]
    before = re.split(lexicon().negation, text)[0]
    begins = _ordinals(text)[:2] != [2, 1] or not _ordinals(before)
    return True in said and False not in said and begins and _runs(text, rule.ordinals)


def _one_way(part: str) -> bool | None:
    """Whether a part says rule 2; None where it says nothing for or against it."""
    rule, no = lexicon().rules.one_way, lexicon().negation
    if re.search(r"\b(unless|except)\b", part) or found(rule.limits, part):
        return False
    if re.search(r"\bonly not\b|\bnot only\b", part):
        return False
    bare = re.sub(rule.only, "", part)
    if re.search(r"\bonly\b", bare) or re.search(r"\bmay\b", re.sub(rule.may, "", bare)):
        return False
    negations = _places(part, no)
    signal = found(rule.signals, part)
    if not negations:
        if found(rule.back, part) or re.search(r"\balso\b|\b(imply|implies|means?|lets?|entails?|guarantees?)\b", part):
            return False
        if len(_named(part)) > 2:
            return False
        return True if signal else None if part.startswith("suppose") or found(rule.lead, part) else False
    if len(negations) > 1:
        return False
    at = negations[0]
    head = re.match(r"(?:if|when|where|suppose|whenever)\b[^,]*,", part)
    if head and at.start() < head.end():
        return False
    after = part[at.end() :]
    denied = found(rule.denials, part[at.start() :] if at[0] == "no" else after)
    before = part[: at.start()]
    if found(rule.both, before):
        return False
    need = re.search(r"\b(need|may|says?|tells?|gives?|means?|implies) $", before) is not None
    if not denied and not need and re.search(r"\b(can|able)\b", after):
        return False
    if found(rule.back, after):
        return True
    subject, predicate = rule.back_denied
    if found(subject, before) and found(predicate, after):
        return True
    named = re.findall(r"\bx\d\b", part)
    if named:
        return named == ["x1", "x2", "x2", "x1"]
    if re.search(r"\bfirst\b.*\bsecond\b.*\bsecond\b.*\bfirst\b", part):
        return True
    if found(rule.person_before, before) and found(rule.person_after, after):
        return True
    if denied or need or re.search(r"\b(does|do|is|are) $", before):
        tail = part[at.end() :]
        return found(rule.back_by_person, tail) is not None or (re.search(r"\bsecond\b.*\bfirst\b", tail) is not None)
    return False


def is_closed(text: str, evidence: str = "", denied: str = "cannot") -> bool:
    """Rule 3: what the facts do not give does not hold. ``evidence``: further words for the facts, as a pattern;
    ``denied``: the world's word for that it does not hold."""
    rule = lexicon().rules.closed
    ends = f"{rule.conclusion}|\\b{re.escape(denied)}\\b"
    proofs = f"{rule.evidence}|\\b(?:{evidence})\\b" if evidence else rule.evidence
    if re.search(r"\bmay\b", re.sub(rule.may, "cannot", text)):
        return False
    if re.search(r"\bdirect(ly)?\b(?! or)", text) or found(rule.limits, text):
        return False
    if not (_alternates(_named(text)) and _alternates(_ordinals(text))):
        return False
    text = re.sub(rule.also_missing, "", text)
    text = re.sub(r"(?<=[;.:] )otherwise,? ", "if not, ", text)
    said = [_closed(part, proofs, ends) for part in _parts(text)]
    return True in said and False not in said


def _closed(part: str, proofs: str, ends: str) -> bool | None:
    """Whether a part says rule 3; None where it says nothing for or against it."""
    rule, no = lexicon().rules.closed, lexicon().negation
    complete = found(rule.complete, part) is not None
    if found(rule.lead, part):
        return None
    if found(rule.fragment, part):
        return True
    only = len(re.findall(r"\bonly\b", part))
    if only > 1:
        return False
    if found(rule.only_if, part):
        bare = re.sub(r",? and otherwise as not [a-z]+", "", part)
        return "otherwise" not in bare and not _places(bare, no)
    if found(rule.only, part):
        return not _places(re.sub(rule.others, "", part), no)
    if only:
        return False
    if complete:
        rest = re.sub("|".join(rule.complete), "", part)
        if not _places(rest, no):
            return True
        part = re.sub(r"^(assume |suppose )?(that )?\W*(so|and|hence|thus)?\b(that )?", "", rest).strip(" ,")
    if found(rule.others, part) and len(_places(re.sub(rule.others, "", part), no)) == 0:
        return True
    if not found(proofs, part):
        return False
    exclusive = found(rule.exclusive, part)
    if not exclusive and not _places(part, no):
        return None if found(rule.given, part) else False
    lack, end = _clauses(part, relative=exclusive is None)
    if exclusive and lack is None:
        bare = re.sub(rule.exclusive, " ", part)
        inner = len(_places(bare, no)) + (1 if re.match(r"no\b", exclusive) else 0)
        return inner == 1 and (
            found(ends, part) is not None or found(rule.beyond, part) is not None or part.startswith("no ")
        )
    if lack is None or end is None:
        return False
    missing = len(_places(lack, no)) + (1 if re.search(r"\bunless\b", lack) else 0)
    return (
        missing == 1
        and found(proofs, lack) is not None
        and len(_places(end, no)) == 1
        and not found(rule.open, end)
        and found(ends, end) is not None
    )


def _clauses(part: str, relative: bool) -> tuple[str | None, str | None]:
    """(what is lacking, what then does not hold), from a sentence of condition or relative clause."""
    start = re.match(r"(?:and |so |then )?(?:that )?(?:if|where|when|whenever|unless|without|suppose)\b", part)
    if start and "," in part:
        cut = part.rfind(", then ")
        cut = cut if cut >= 0 else part.rfind(",")
        return part[:cut], part[cut + 1 :]
    if start and ". then " in part:
        cut = part.index(". then ")
        return part[:cut], part[cut + 2 :]
    late = re.search(r"\b(?:if|where|when|unless)\b", part)
    if late and late.start() > 0:
        return part[late.start() :], part[: late.start()]
    if not relative:
        return None, None
    clause = re.search(
        r"\b(?:that|which|who|whom|whoever|what|whatever|anything|anywhere|for whom|not given|not listed)\b", part
    )
    if not clause:
        return None, None
    negations = _places(part, lexicon().negation)
    if len(negations) != 2:
        return None, None
    first, second = negations
    if clause.start() <= first.start():  # "contacts which do not follow … do not exist"
        cut = second.start()
        head = part[:cut]
        verb = re.search(r"\b(is|are|do|does|can|has|have) $", head)
        if verb and verb.start() > first.end():
            cut = verb.start()
        return part[:cut], part[cut:]
    return part[clause.start() :], part[: clause.start()]


def _parts(text: str) -> list[str]:
    """The statements of a rule: parted at colons, semicolons and sentence ends (a premise stays with its "then")."""
    text = re.sub(r"\. (?=(then|it does not follow)\b)", " , ", text)
    ends = r"[:;]|\.(?: |$)|, (?:and )?(?:so|hence|thus|which means|meaning)\b(?: that)?"
    return [part.strip(" .") for part in re.split(ends, text) if part.strip(" .")]

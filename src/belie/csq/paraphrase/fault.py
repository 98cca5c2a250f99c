"""Why a paraphrase is thrown away.

Knows: the reasons, in the order in which they are looked for.
Does not know: how a fault is found.
"""

from __future__ import annotations

#: Reason → what it says. The first that is found is the one that is told.
REASONS = {
    "empty": "nothing came back",
    "length": "far longer than any question",
    "markup": "HTML",
    "language": "not in English",
    "layout": "not two messages with a question line, rules, facts and an instruction",
    "hint": "helps, warns or gives away, or says something that has no place in a question",
    "names": "a name is changed, missing, or not one of the given",
    "merged_facts": "two facts in one line",
    "dropped_fact": "a fact is missing",
    "added_fact": "a fact too many",
    "direction": "a fact is turned round, or has no direction",
    "fact_changed": "a fact is denied, softened, or says another thing",
    "template": "the facts are not all one sentence with other names",
    "pair": "the question is about another pair, or the wrong way round",
    "polarity": "the question asks for the opposite",
    "question_changed": "the question is not plainly whether the claim is true",
    "instruction": "the one-word instruction is missing or changed",
    "rule_missing": "a rule is missing",
    "rule_softened": "a rule holds only usually, or with exceptions",
    "rule_changed": "a rule is turned round, or not one of the three as far as the checker can tell",
    "followup": "the second message is not the same question about the second pair",
    "word": "a word that the checker does not know at this place",
    "wording": "no phrasing can be made of it",
    "repeated": "asks the same question line as a phrasing before it",
}


class Fault(Exception):
    """A reason (a key of ``REASONS``) and what it was found in."""

    def __init__(self, reason: str, detail: str) -> None:
        assert reason in REASONS, f"{reason} is no reason"
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail if len(detail) <= 200 else f"{detail[:200]}…"

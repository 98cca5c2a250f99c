"""How the easy question was answered after right first answers too, where it was asked after them.

Knows: which answers of a journal make a pair of valid words on a broken question, whatever the first one was.
Does not know: what the pairs are used for. `belie.csq.table` keeps only the pairs that enter δ: those of a wrong first
answer.

Only words count: an exact respondent answers the easy question on the branch of its wrong first answer alone (METHOD
§1.2), so of it the rate after right answers can't be had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from belie.csq.answers import parse
from belie.csq.table import Table
from belie.items import BROKEN, TRUTH, Answer, Category, Order
from belie.statistics import Floats

#: n → category → (chains, 4), rows as in the table's level: pairs of two valid answers; of them those with the easy
#: question right, with the first answer wrong, and with both; each divided by the draws of an item.
EasyAnswers = Mapping[int, Mapping[Category, Floats]]

_NONE, _RIGHT, _WRONG, _INVALID = 0, 1, 2, 3


def easy_answers(table: Table, answers: Iterable[Answer], order: Order = "hard_first") -> EasyAnswers:
    """The pairs of a sampled run, from the answers that the table was built of; of two answers to a place the first.

    ``order``: which of the two questions was the first. Exact answers and failed calls are passed over.
    """
    place = {
        chain: (at, row) for at, level in enumerate(table.levels) for row, chain in enumerate(level.chains)
    }  # fmt: skip
    codes: list[dict[Category, np.ndarray]] = [
        {c: np.zeros((len(level.chains), table.draws, 2), np.int8) for c in BROKEN} for level in table.levels
    ]
    hard = "first" if order == "hard_first" else "followup"
    for answer in answers:
        chain, _, category = answer.item.rpartition("/")
        if category not in BROKEN or answer.text is None or chain not in place:
            continue
        at, row = place[chain]
        held, which = codes[at][category], int(answer.step != hard)
        if not 0 <= answer.draw < table.draws or held[row, answer.draw, which]:
            continue
        word = parse(answer.text)
        right = (word == "yes") == TRUTH[category]
        held[row, answer.draw, which] = _INVALID if word == "invalid" else _RIGHT if right else _WRONG
    return {
        level.n: {category: _columns(held, table.draws) for category, held in codes[at].items()}
        for at, level in enumerate(table.levels)
    }


def _columns(codes: np.ndarray, draws: int) -> Floats:
    valid = ((codes == _RIGHT) | (codes == _WRONG)).all(-1)
    wrong, easy = codes[..., 0] == _WRONG, codes[..., 1] == _RIGHT
    return np.stack([(valid & part).sum(1) for part in (True, easy, wrong, wrong & easy)], 1) / draws

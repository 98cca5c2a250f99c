"""From a run folder to its explanation.

Knows: which runs hold easy answers after right first answers too, and how long the easy question is.
Does not know: how anything is computed or shown.
"""

from __future__ import annotations

from belie.csq.decomposition import Explanation, explain
from belie.csq.easy_answers import easy_answers
from belie.csq.run import table_of
from belie.csq.scores import Scores, score
from belie.csq.table import Table
from belie.respondents.base import BadInput
from belie.runs import RunFolder


def explain_run(
    run: RunFolder, *, table: Table | None = None, scores: Scores | None = None, skip_damaged: bool = False
) -> Explanation:
    """Explain a run. ``table``, ``scores``: where they were made already. Asks nothing. Raises BadInput where it can't
    be scored."""
    options = run.manifest.options
    if table is None:
        table = table_of(run, skip_damaged=skip_damaged)
    scores = scores or score(table)
    if all(not cell.pair_answered.any() for level in table.levels for cell in level.cells.values()):
        raise BadInput(f"{run.path} holds no pair of a hard and an easy answer, so there is nothing to explain.")
    order = options.get("order", "hard_first")
    easy = None
    if not table.exact and (options["followups"] == "all" or order == "easy_first"):
        easy = easy_answers(table, run.journal.answers(skip=skip_damaged), order)
    return explain(table, scores, k=None if options.get("pairs") is not None else options["k"], easy=easy)

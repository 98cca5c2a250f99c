"""What a notebook works with: a run as DataFrames, an audit in one call.

Knows: how to open a folder, and how to ask from a cell where an event loop is running already.
Does not know: how anything is computed; each part comes from its own module.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belie.csq.asked import Asking, manifest_for, unit_of
from belie.csq.questions import Design, Variant
from belie.csq.run import Progress, ask, open_folder, preset, save_results, score_run
from belie.csq.scores import Scores
from belie.csq.verdict import verdict
from belie.knownlie.journal import read_rounds
from belie.knownlie.scores import KnownLieScores
from belie.knownlie.scores import score as score_rounds
from belie.knownlie.summary import summary
from belie.respondents.opening import Options, open_respondent
from belie.runs import Manifest, RunFolder
from belie.runs.database import Database

if TYPE_CHECKING:
    import pandas as pd


class Run:
    """A run folder opened to be read. The frames hold the columns that ``belie sql`` shows, filled when first used.

    ``runs`` one row on the run; ``answers`` and ``items`` of CSQ; ``rounds`` and ``quotes`` of KnownLie (``items``
    holds its cases). ``scores``: every figure with its interval. ``verdict``: what it means, in sentences.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._folder = RunFolder.open(self.path)

    @property
    def manifest(self) -> Manifest:
        return self._folder.manifest

    @property
    def status(self) -> str:
        return self._folder.status

    @cached_property
    def runs(self) -> pd.DataFrame:
        return self.sql("SELECT * FROM runs")

    @cached_property
    def answers(self) -> pd.DataFrame:
        return self.sql("SELECT * FROM answers")

    @cached_property
    def items(self) -> pd.DataFrame:
        return self.sql("SELECT * FROM items")

    @cached_property
    def rounds(self) -> pd.DataFrame:
        return self.sql("SELECT * FROM rounds")

    @cached_property
    def quotes(self) -> pd.DataFrame:
        return self.sql("SELECT * FROM quotes")

    @cached_property
    def scores(self) -> Scores | KnownLieScores:
        if self.manifest.instrument == "csq":
            return score_run(self._folder)
        return score_rounds(read_rounds(self.path))

    @property
    def verdict(self) -> str:
        scores = self.scores
        if not isinstance(scores, Scores):
            return summary(scores)
        return verdict(scores, self.manifest.respondent, unit_of(self.manifest))

    def sql(self, query: str) -> pd.DataFrame:
        """One query over this run alone. Raises BadInput."""
        from belie.runs.database import needed

        with Database([self.path], needed(query)) as database:
            return database.query(query).to_pandas()

    def __repr__(self) -> str:
        return f"<{self.manifest.instrument} run of {self.manifest.respondent}, {self.status}: {self.path}>"


def load_run(path: str | Path) -> Run:
    """A run as DataFrames and scores. Raises BadInput where the folder holds none."""
    return Run(path)


def audit(
    model: str,
    *,
    out: str | Path | None = None,
    plan: str = "quick",
    seed: int = 0,
    sample: bool = False,
    **options: Any,
) -> Run:
    """Ask a model the CSQ questions of a preset ("quick" or "paper") and give the finished run.

    ``out``: the run's folder (a new one under runs/ by default). ``options`` are those of
    `belie.respondents.opening.Options`: base_url, concurrency, max_cost … Raises BadInput, and BudgetSpent where the
    money allowed is used up (what was answered is kept).
    """
    design = preset(plan, Design(Variant(), seed=seed))
    opened = Options(sample=sample, seed=seed, **options)
    path = Path(out) if out is not None else RunFolder.new_path(Path("runs"), "csq", model)
    # A notebook's cell runs inside an event loop, where asyncio.run is refused: so it runs in a thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(_asked(model, design, opened, path))).result()
    return Run(path)


async def _asked(model: str, design: Design, options: Options, path: Path) -> Progress:
    respondent = await open_respondent(model, options, None)
    asking = Asking(options={"sample": options.sample})
    try:
        with open_folder(manifest_for(respondent, design, asking), path, resume=False) as run:
            progress = await ask(respondent, run, design, asking)
            save_results(run, score_run(run))
    finally:
        await respondent.close()
    return progress

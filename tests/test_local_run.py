"""The embedded model for real, in whole runs: exact and sampled agree, and a run that continues is the same run."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import numpy as np
import pytest
from test_csq_run import run_once

from belie.csq.asked import Asking, manifest_for
from belie.csq.formulas import NAMES
from belie.csq.questions import Design, Variant
from belie.csq.run import ask, open_folder, score_run, table_of
from belie.csq.scores import score
from belie.csq.table import Table
from belie.items import BROKEN, CATEGORIES, Answer, Pending
from belie.models import fetch
from belie.respondents.opening import Options, open_respondent
from belie.runs import RunFolder

MODEL = "local/smollm2-135m"
DRAWS = 20


@pytest.fixture(scope="module", autouse=True)
def fetched() -> None:
    fetch("smollm2-135m")


async def test_exact_and_sampled_answers_agree(tmp_path):
    """δ and ρ of 20 draws an item lie where 20 draws from the exact probabilities put them, 998 times in 1,000."""
    design = Design(Variant(), (3, 5), 10)
    await run_once(tmp_path / "exact", MODEL, design)
    asking = Asking(draws=DRAWS, options={"sample": True})
    respondent = await open_respondent(MODEL, Options(sample=True))
    with open_folder(manifest_for(respondent, design, asking), tmp_path / "sampled", resume=False) as run:
        progress = await ask(respondent, run, design, asking)
    await respondent.close()
    assert progress.first == len(design) * DRAWS

    exact = table_of(RunFolder.open(tmp_path / "exact"))
    sampled = score_run(RunFolder.open(tmp_path / "sampled"))
    rng = np.random.default_rng(0)
    told = {n: {name: [] for name in ("rho", "delta")} for n in design.sizes}
    for _ in range(500):
        scores = score(simulated(exact, rng), resamples=2, method="percentile")
        for row in scores.rows:
            for name in told[row.n]:
                told[row.n][name].append(row.figures[name].value)
    assert {"rho", "delta"} <= set(NAMES)
    for row in sampled.rows:
        for name, values in told[row.n].items():
            low, high = np.quantile(values, [0.001, 0.999])
            assert low <= row.figures[name].value <= high, (row.n, name)
            assert high - low < 1, "so wide that anything would agree"


def simulated(exact: Table, rng: np.random.Generator) -> Table:
    """A sampled table drawn from an exact one: what 20 draws an item would have given."""
    first, followup = {}, {}
    for level in exact.levels:
        first[level.n], followup[level.n] = {}, {}
        for category in CATEGORIES:
            cell = level.cells[category]
            u = rng.random((len(level.chains), DRAWS))
            yes, no = u < cell.yes[:, None], (u >= cell.yes[:, None]) & (u < (cell.yes + cell.no)[:, None])
            first[level.n][category] = np.stack([yes, no], -1).astype(float)
            if category in BROKEN:
                wrong = cell.no if category == "broken_reversed" else cell.yes
                right = cell.wrong_right / np.maximum(wrong, 1e-12)
                bad = cell.wrong_wrong / np.maximum(wrong, 1e-12)
                u = rng.random((len(level.chains), DRAWS))
                hit, miss = u < right[:, None], (u >= right[:, None]) & (u < (right + bad)[:, None])
                pair = (hit, miss) if category == "broken_reversed" else (miss, hit)
                followup[level.n][category] = np.stack(pair, -1).astype(float)
    return Table.from_arrays(first, followup)


class Stopped:
    """A respondent whose process is killed after so many answers: the iterator ends in the middle of a batch."""

    aligned = True

    def __init__(self, inner, after: int) -> None:
        self.inner, self.after, self.name, self.exact = inner, after, inner.name, inner.exact

    def provenance(self):
        return self.inner.provenance()

    async def ask(self, pending: Iterable[Pending]) -> AsyncIterator[Answer]:
        count = 0
        async for answer in self.inner.ask(pending):
            if count == self.after:
                raise KeyboardInterrupt
            count += 1
            yield answer


@pytest.mark.parametrize("sample", [False, True])
async def test_a_run_that_continues_ends_with_the_very_figures(tmp_path, sample):
    design = Design(Variant(), (3, 5), 6)
    asking = Asking(draws=3 if sample else 1, options={"sample": sample})
    respondent = await open_respondent(MODEL, Options(sample=sample))
    try:
        manifest = manifest_for(respondent, design, asking)
        with open_folder(manifest, tmp_path / "whole", resume=False) as run:
            await ask(respondent, run, design, asking)
        for after in (1, 11, 37):
            path = tmp_path / f"killed-{after}"
            with (
                pytest.raises(KeyboardInterrupt),
                open_folder(replace(manifest), path, resume=False) as run,
            ):
                await ask(Stopped(respondent, after), run, design, asking)
            with open_folder(manifest, path, resume=True) as run:
                await ask(respondent, run, design, asking)
            whole = sorted(RunFolder.open(tmp_path / "whole").journal.records(), key=lambda a: (a.item, a.draw, a.step))
            again = sorted(RunFolder.open(path).journal.records(), key=lambda a: (a.item, a.draw, a.step))
            assert again == whole
    finally:
        await respondent.close()

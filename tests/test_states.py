"""Hidden states: what is planted is found and nothing else, n tells nothing, states are the model's own, kept once."""

from __future__ import annotations

import asyncio
import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest
from typer.testing import CliRunner

from belie.cli import app
from belie.csq.branch import Branch
from belie.csq.embedding import separation
from belie.csq.embedding.picture import principal
from belie.csq.embedding.separation import FOLDS, RIDGE, by_layer, cells, comparable, equal_n
from belie.csq.embedding.words import told
from belie.items import Item
from belie.report import make_report
from belie.respondents.base import BadInput
from belie.statistics.multiple import holm

SIZES = (3, 5)


class Data:
    """Chains of two categories each. Labels lean on n (``rates``) and are alike within a chain, as features are."""

    def __init__(self, seed: int, chains: int = 30, width: int = 16, rates: tuple[float, float] = (0.5, 0.5)) -> None:
        rng = np.random.default_rng(seed)
        count = 2 * len(SIZES) * chains
        self.chain = np.arange(count) // 2
        self.category = np.arange(count) % 2
        self.n = np.repeat(SIZES, 2 * chains)
        shared = np.repeat(rng.normal(size=count // 2), 2)
        place = 0.7 * shared + 0.7 * rng.normal(size=count)
        self.labels = np.zeros(count, bool)
        for size, rate in zip(SIZES, rates, strict=True):
            own = self.n == size
            self.labels[own] = place[own] > np.quantile(place[own], 1 - rate)
        self.noise = 0.6 * np.repeat(rng.normal(size=(count // 2, width)), 2, 0) + rng.normal(size=(count, width))

    def cells(self, permutations: int = 199, seed: int = 0):
        return cells(self.labels, self.n, self.category, self.chain, permutations=permutations, seed=seed)


# the test itself


def test_a_direction_planted_in_layers_5_to_8_is_found_there_and_nowhere_else():
    data = Data(1, chains=60)
    layers = {}
    for layer in range(1, 13):
        layers[layer] = Data(100 + layer, chains=60).noise + 7.0 * data.n[:, None]
        if 5 <= layer <= 8:
            layers[layer][:, 3] += 1.8 * data.labels
    found = by_layer(list(layers), layers.__getitem__, data.cells(999))
    adjusted = dict(zip(found, holm([one.p for one in found.values()]), strict=True))
    assert {layer for layer, p in adjusted.items() if p <= 0.05} == {5, 6, 7, 8}
    assert all(found[layer].low > 0.6 for layer in (5, 6, 7, 8))
    assert all(one.low < 0.5 < one.high for layer, one in found.items() if not 5 <= layer <= 8)


def test_null_sets_hold_a_half_and_their_p_is_uniform():
    sets = (Data(seed, chains=15, width=8) for seed in range(120))
    found = [separation(data.noise, data.cells(99, seed)) for seed, data in enumerate(sets)]
    held = np.mean([one.low <= 0.5 <= one.high for one in found])
    assert held >= 0.9
    assert abs(np.mean([one.auroc for one in found]) - 0.5) < 0.04
    assert kstest([one.p for one in found], "uniform").pvalue > 0.001
    assert np.mean([one.p <= 0.05 for one in found]) <= 0.11


def test_what_only_tells_n_or_category_is_worth_a_half():
    data = Data(2, rates=(0.85, 0.15))
    pooled = (data.n == 3) == data.labels
    assert pooled.mean() > 0.8, "n alone would tell, were it let"
    only_n = np.column_stack([data.n, data.n**2, data.category]).astype(float)
    one = separation(only_n, data.cells())
    assert (one.auroc, one.p) == (0.5, 1.0)
    assert equal_n(data.n.astype(float), data.labels, data.n * 2 + data.category) == 0.5
    blurred = [
        separation(5.0 * d.n[:, None] + d.noise, d.cells(9)).auroc
        for seed in range(20)
        for d in [Data(seed, width=8, rates=(0.85, 0.15))]
    ]
    assert abs(np.mean(blurred) - 0.5) < 0.05


def test_auroc_is_that_of_a_plain_ridge_fit_pair_by_pair():
    """The same by another road: primal ridge, explicit pairs."""
    data = Data(3, chains=12, width=5)
    data.noise[:, 0] += data.labels
    shared = data.cells(9)
    strata = data.n * 2 + data.category
    x = data.noise.copy()
    for s in set(strata):
        x[strata == s] -= x[strata == s].mean(0)
    x /= np.sqrt((x**2).mean(0))
    wins = pairs = 0.0
    assert len(shared.folds) > 1
    for way, fold in product(shared.folds, range(FOLDS)):
        test, train = way == fold, way != fold
        y = data.labels.astype(float)
        for s in set(strata):
            y[train & (strata == s)] -= y[train & (strata == s)].mean()
        w = np.linalg.solve(x[train].T @ x[train] + RIDGE * train.sum() * np.eye(5), x[train].T @ y[train])
        for s in set(strata):
            own = test & (strata == s)
            for i in np.flatnonzero(own & data.labels):
                for j in np.flatnonzero(own & ~data.labels):
                    wins += (x[i] @ w) > (x[j] @ w)
                    pairs += 1
    one = separation(data.noise, shared)
    assert one.pairs == pairs
    assert one.auroc == pytest.approx(wins / pairs)


def test_permutations_keep_chains_whole_and_counts_the_same():
    data = Data(4, chains=10)
    drawn = data.cells(50).labels
    assert drawn.shape == (len(data.labels), 51)
    assert (drawn[:, 0] == data.labels).all()
    for size in SIZES:
        own = data.n == size
        pairs = drawn[own].reshape(-1, 2, 51)
        kinds = 2 * pairs[:, 0] + pairs[:, 1]
        assert (np.sort(kinds, 0) == np.sort(kinds[:, :1], 0)).all()
    assert (drawn[:, 1:] != drawn[:, :1]).any()
    folds = data.cells(9).folds
    assert all(len(set(way[data.chain == c])) == 1 for way in folds for c in set(data.chain))


def test_without_pairs_nothing_is_claimed():
    data = Data(5, chains=8)
    data.labels = data.n == 3
    assert comparable(data.labels, data.n * 2 + data.category) == (0, 0)
    one = separation(data.noise, data.cells(19))
    assert one.pairs == 0
    assert np.isnan([one.auroc, one.low, one.high, one.p]).all()


def test_principal_components_are_those_of_the_singular_values():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 7)) * np.arange(1, 8)
    places, shares = principal(x, np.zeros(40, int))
    centred = x - x.mean(0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    assert np.abs(places) == pytest.approx(np.abs(u[:, :2] * s[:2]))
    assert shares == pytest.approx(tuple(s[:2] ** 2 / (s**2).sum()))
    flat, none = principal(np.ones((5, 3)), np.zeros(5, int))
    assert not flat.any()
    assert none == (0.0, 0.0)


def test_sentences_say_no_more_than_there_is():
    side = {"kinds": ["contradiction"], "items": 9, "at_equal_n": 4}
    one = {
        "question": "Q?", "tested": False, "high": side, "low": side, "layers": [], "expected": False,
        "own_probability": None,
    }  # fmt: skip
    assert "Not tested: only 4 of 9" in told(one)
    rows = [{"layer": i, "auroc": 0.5 + i / 100, "p_holm": p, "pairs": 7} for i, p in ((1, 0.01), (2, 0.02), (4, 0.9))]
    assert "Layers 1–2 tell, highest at layer 4" in told({**one, "tested": True, "layers": rows})
    assert "No layer tells" in told({**one, "tested": True, "layers": rows[2:]})


# the model's own states


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    pytest.importorskip("torch")
    from test_local import save

    return save(tmp_path_factory.mktemp("tiny"))


def test_states_and_masses_are_those_of_the_plain_model(tiny):
    import torch
    from test_local import answers, items
    from transformers import AutoModelForCausalLM

    from belie.csq.embedding.capture import Reader
    from belie.items import Pending
    from belie.respondents.local import open_local
    from belie.respondents.local.chat import Chat
    from belie.respondents.local.model import find_device, load

    asked = [item for item in items(3) if item.followup is not None]
    prompts = [(item, said) for item in asked for said in (None, "Yes")]
    read = dict(Reader(f"local/{tiny}", batch_tokens=64, threads=1).read(prompts))
    assert sorted(read) == list(range(len(prompts)))
    exact = {a.item: a.p for a in answers(open_local(f"local/{tiny}"), map(Pending, asked)) if a.step == "first"}
    chat = Chat(load(tiny, find_device("cpu"), torch.float32).tokenizer, thinking=False)
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    for place, (item, said) in enumerate(prompts):
        with torch.inference_mode():
            ids = torch.tensor(chat.tokens([chat.prompt(item, said)]))
            hidden = model(input_ids=ids, output_hidden_states=True).hidden_states
        assert read[place].hidden.shape == (2, 32)
        assert read[place].hidden[0].astype(float) == pytest.approx(hidden[1][0, -1].numpy(), abs=0.05)
        if said is None:
            assert read[place].p == pytest.approx(exact[item.id], abs=1e-3)


@pytest.fixture
def run(tiny, tmp_path) -> Path:
    """A run of the tiny model whose journal holds planted classes: what it would say is not asked."""
    from belie.csq.asked import Asking, manifest_for
    from belie.csq.questions import Design, Variant
    from belie.csq.run import open_folder
    from belie.items import Answer
    from belie.respondents.local import open_local

    rng = np.random.default_rng(0)
    respondent = open_local(f"local/{tiny}")
    design = Design(Variant(), (3,), 60, 0)
    path = tmp_path / "run"
    with open_folder(manifest_for(respondent, design, Asking()), path, resume=False) as folder:
        for item in design.items():
            yes = 0.6 if item.truth == (rng.random() < 0.3) else 0.3
            folder.writer().write(Answer(item.id, "first", p=(yes, 0.9 - yes)))
            if item.followup is not None:
                yes = rng.choice([0.2, 0.7])
                folder.writer().write(Answer(item.id, "followup", p=(yes, 0.9 - yes)))
        folder.finish("complete")
    asyncio.run(respondent.close())
    return path


def command(run: Path, tiny: Path, *options: str):
    return CliRunner().invoke(
        app, ["csq", "embed", f"local/{tiny}", "--run", str(run), "--permutations", "99", *options]
    )


def test_states_are_read_once_tested_and_shown(run, tiny):
    before = make_report([run]).html
    assert "states-head" not in before
    done = command(run, tiny, "--json")
    assert done.exit_code == 0, done.exception
    made = json.loads(done.stdout)
    assert made["capture"]["layers"] == 2
    (one,) = [c for c in made["comparisons"] if c["name"] == "contradiction_error"]
    assert one["tested"]
    assert [row["layer"] for row in one["layers"]] == [1, 2]
    assert one["high"]["items"] + one["low"]["items"] == sum(r["contradiction"] + r["error"] for r in made["items"])
    written = {path.name: path.stat().st_mtime_ns for path in run.glob("states-*.npz")}
    assert json.loads(command(run, tiny, "--json").stdout) == made
    assert {path.name: path.stat().st_mtime_ns for path in run.glob("states-*.npz")} == written
    lost = sorted(run.glob("states-*.npz"))[-1]
    lost.write_bytes(lost.read_bytes()[:100])
    assert json.loads(command(run, tiny, "--json").stdout) == made
    page = make_report([run]).html
    assert 'id="states-head"' in page
    assert page.count("layer 2") >= 1
    shown = command(run, tiny)
    assert "Before the wrong first answer" in shown.output
    assert "permutations" in shown.output


def test_fewer_items_replace_the_files_of_more(run, tiny):
    command(run, tiny, "--json")
    made = json.loads(command(run, tiny, "--json", "--most", "10").stdout)
    assert sum(row[kind] for row in made["items"] for kind in ("honest", "contradiction", "error")) <= 30
    assert len(list(run.glob("states-*.npz"))) == 1


def test_other_weights_are_refused(run, tiny):
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["hashes"]["weights"] = "0" * 64
    (run / "manifest.json").write_text(json.dumps(manifest))
    done = command(run, tiny)
    assert isinstance(done.exception, BadInput)
    assert "other weights" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["sim/guesser"], "need open weights"),
        (["local/x", "--most", "0"], "must lie in 1"),
        (["local/x", "--permutations", "5"], "at least 99"),
        (["local/x", "--run", "nowhere", "--n", "3", "--k", "2"], "leave --n, --k away"),
        (["local/x", "--run", "nowhere"], "no run"),
    ],
)
def test_bad_input_is_said(arguments, why):
    done = CliRunner().invoke(app, ["csq", "embed", *arguments])
    assert isinstance(done.exception, BadInput)
    assert why in str(done.exception)


def test_items_are_taken_evenly_from_every_length():
    from belie.csq.embedding.study import chosen

    found = [
        Branch(
            Item(f"n{n}/{i:03d}/broken", f"n{n}/{i:03d}", n, "broken", "Q", False, "F"), 0, "Yes", False, "Yes", False
        )
        for n, count in ((3, 100), (5, 7))
        for i in range(count)
    ]
    kept = chosen(found, most=20)
    assert sorted((n, sum(one.item.n == n for one in kept)) for n in (3, 5)) == [(3, 13), (5, 7)]
    assert chosen([*found, *found], most=20) == kept

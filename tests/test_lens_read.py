"""Reading through the lens: what is told apart and what is not, probes and their places, taking the contrast out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_lens  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from tiny_lens import made_lens, noise  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from belie.cli import app  # noqa: E402
from belie.csq.questions import Design  # noqa: E402
from belie.knownlie.pack import load_builtin  # noqa: E402
from belie.lens.ablation import ablate, band_of  # noqa: E402
from belie.lens.anatomy import anatomy  # noqa: E402
from belie.lens.folder import Lens  # noqa: E402
from belie.lens.linear import folds_of, linear_probe  # noqa: E402
from belie.lens.probes import PLACES, Probe, csq_probes, knownlie_probes  # noqa: E402
from belie.lens.reading import read  # noqa: E402
from belie.lens.result import METHODS, Reading  # noqa: E402
from belie.lens.separation import separation  # noqa: E402
from belie.lens.states import Reader  # noqa: E402
from belie.lens.words import ablation_verdicts, spans, verdicts  # noqa: E402
from belie.lens.written import load_ablation, load_reading, to_json  # noqa: E402
from belie.respondents.base import BadInput  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other


@pytest.fixture(scope="module")
def owed() -> list[Probe]:
    return knownlie_probes([load_builtin(name) for name in ("refund", "airline", "debt", "recall")])


def test_a_planted_signal_is_found_where_it_was_planted_and_nowhere_else(owed: list[Probe]) -> None:
    lens, states = made_lens(), noise(owed, 4)
    place = PLACES.index("decision")
    for i, probe in enumerate(owed):  # owed cases, under pressure, at the answer, layers 3 to 5
        if probe.item.truth and probe.condition == "incentive":
            for layer in (3, 4, 5):
                v = lens.contrast[layer]
                states.states[i, place, layer] += 5 * v / np.linalg.norm(v)
    reading = read("knownlie", "local/made", owed, states, lens, {})
    for curve in reading.curves:
        if curve.method == "logit lens":
            continue
        planted = curve.condition == "incentive" and curve.place == "decision"
        seen = np.flatnonzero(curve.separation.signal).tolist()
        if curve.method == "lens":
            assert seen == ([3, 4, 5] if planted else [])
        else:  # a probe has to find the direction in 42 cases of the other domains
            assert set(seen) <= ({3, 4, 5} if planted else set())
            assert bool(seen) == planted
    found = reading.curve("truth", "incentive", "decision", "lens").separation
    assert (found.auroc[3:6] > 0.8).all()
    assert (found.difference_interval[3:6, 0] > 0.5).all()
    logit = reading.curve("truth", "incentive", "decision", "logit lens").separation
    assert not logit.signal.any()  # planted along v_ℓ, which is not u
    shift = reading.curve("truth", "incentive", "decision", "lens").shift
    assert shift is not None
    assert (shift[3:6, 1] > 0).all()
    told = verdicts(reading)
    assert any("at layers 3–5" in sentence and "under pressure, at the answer" in sentence for sentence in told)


def test_noise_has_no_signal_and_that_is_said(owed: list[Probe]) -> None:
    reading = read("knownlie", "local/made", owed, noise(owed, 9), made_lens(), {})
    told = verdicts(reading)
    assert len(told) == 1
    assert "no signal of owed from not owed" in told[0]


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_intervals_of_null_scores_hold_a_half_and_holm_finds_nothing(owed: list[Probe], shared: float) -> None:
    """400 columns of noise over 56 cases; families move together where ``shared``."""
    draw = np.random.default_rng(17)
    plain = [p for p in owed if p.condition == "none"]
    units = [p.unit for p in plain]
    common = {unit: draw.normal(size=400) for unit in dict.fromkeys(units)}
    scores = draw.normal(size=(len(plain), 400)) + shared * np.stack([common[unit] for unit in units])
    labels, groups = [p.item.truth for p in plain], [p.group for p in plain]
    found = separation(scores, labels, groups, units)
    holds = ((found.interval[:, 0] <= 0.5) & (found.interval[:, 1] >= 0.5)).mean()
    assert 0.90 < holds < 0.98
    assert not found.signal.any()
    assert (found.positives, found.negatives, found.pairs) == (32, 24, 24)


def test_separation_by_hand() -> None:
    """Two groups: 3 of 4 pairs won and a tie; a pair across groups counts nothing."""
    scores = np.array([[3.0], [1.0], [2.0], [0.0], [100.0], [100.0]])
    labels = [True, True, False, False, True, False]
    groups, units = ["a"] * 4 + ["b"] * 2, ["u", "w", "u", "w", "x", "x"]
    found = separation(scores, labels, groups, units)
    assert found.auroc[0] == pytest.approx(3.5 / 5)
    assert found.pairs == 3
    # Units differ by 1, 1 and 0; sd within groups: squares 5 + 0 over 3 + 1.
    assert found.difference[0] == pytest.approx((2 / 3) / np.sqrt(5 / 4))
    assert np.isnan(found.p[0])  # too few to test
    none = separation(scores[:2], labels[:2], groups[:2], units[:2])
    assert np.isnan(none.auroc[0])
    assert not none.signal.any()


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(2, 9))
@settings(max_examples=25, deadline=None)
def test_turning_scores_or_labels_round_turns_the_auroc(seed: int, positives: int, negatives: int) -> None:
    draw = np.random.default_rng(seed)
    labels = [True] * positives + [False] * negatives
    scores = draw.integers(0, 4, size=(len(labels), 1)).astype(float)
    groups, units = ["g"] * len(labels), [str(i) for i in range(len(labels))]
    found = separation(scores, labels, groups, units, resamples=20)
    turned = separation(-scores, labels, groups, units, resamples=20)
    swapped = separation(scores, [not label for label in labels], groups, units, resamples=20)
    grown = separation(np.exp(scores), labels, groups, units, resamples=20)
    assert found.auroc[0] + turned.auroc[0] == pytest.approx(1)
    assert found.auroc[0] + swapped.auroc[0] == pytest.approx(1)
    assert grown.auroc[0] == found.auroc[0]
    assert turned.p_holm[0] == pytest.approx(found.p_holm[0], rel=1e-6, nan_ok=True)


def test_one_case_against_many_is_no_signal_however_far_out_it_lies() -> None:
    scores = np.arange(25.0)[:, None]
    found = separation(scores, [i == 24 for i in range(25)], ["g"] * 25, [str(i) for i in range(25)])
    assert found.auroc[0] == 1
    assert np.isnan(found.p[0])
    assert not found.signal.any()
    some = separation(scores, [i >= 19 for i in range(25)], ["g"] * 25, [str(i) for i in range(25)])
    assert some.p[0] == pytest.approx(2**-5)  # six to nothing: a sign test's least


def test_a_linear_probe_finds_any_direction_and_never_tests_on_what_it_saw() -> None:
    draw = np.random.default_rng(3)
    labels = np.arange(60) % 2 == 0
    states = draw.normal(size=(60, 2, 40)).astype(np.float32)
    states[:, 1, 7] += 4 * labels
    units = [str(i // 2) for i in range(60)]
    folds = folds_of([str(i) for i in range(60)], units)
    assert all(folds[i] == folds[i + 1] for i in range(0, 60, 2))  # twins are never parted
    assert sorted(set(folds)) == [0, 1, 2, 3, 4]
    probed = linear_probe(states, labels, ["all"] * 60, folds)
    found = separation(probed.scores, labels.tolist(), probed.strata, units, chance=probed.chance)
    assert found.auroc[1] > 0.9
    assert found.signal.tolist() == [False, True]
    assert found.interval[0, 0] < 0.5 < found.interval[0, 1]  # trained and tested on the same it would be 1
    alone = linear_probe(states, labels, ["all"] * 60, [int(label) for label in labels])
    assert np.isnan(alone.scores).all()


def test_a_linear_probe_of_noise_finds_nothing(owed: list[Probe]) -> None:
    """60 layers of noise over 4 domains: a rank test would find several, since folds are trained on each other."""
    plain = [p for p in owed if p.condition == "none"]
    draw = np.random.default_rng(8)
    states = draw.normal(size=(len(plain), 60, 16)).astype(np.float32)
    labels = np.array([p.item.truth for p in plain])
    probed = linear_probe(states, labels, [p.group for p in plain], folds_of([p.fold for p in plain], []))
    found = separation(probed.scores, labels.tolist(), probed.strata, [p.unit for p in plain], chance=probed.chance)
    assert not found.signal.any()
    assert ((found.interval[:, 0] <= 0.5) & (found.interval[:, 1] >= 0.5)).mean() >= 0.9


def test_probes_of_the_cases_differ_by_the_note_alone(owed: list[Probe]) -> None:
    assert len(owed) == 3 * 4 * 14
    by_id = {p.item.id: p for p in owed}
    plain, told = by_id["none/refund-01"], by_id["instructed/refund-01"]
    assert plain.item.question == told.item.question
    assert plain.item.system != told.item.system
    seen = plain.item.question[: plain.seen]
    assert seen.endswith("Workshop repairs for the same fault: 0")
    assert "entitled to this: a refund of the order total to the card" in plain.item.question[plain.seen :]
    families = {p.unit for p in owed if p.group == "refund"}
    assert len(families) == 8  # calibration cases belong to their twins
    assert sum(p.item.truth for p in owed) == 3 * 4 * 8


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_lens.llama(tmp_path_factory.mktemp("llama"))


def test_places_are_the_tokens_where_the_case_the_turn_and_the_prompt_end(tiny: Path) -> None:
    loaded = tiny_lens.loaded(tiny)
    reader = Reader(loaded, anatomy(loaded.model))
    probe = csq_probes(Design(sizes=(3,), chains=1))[0]
    text = reader.prompt(probe.item)
    ids, places = reader.places(probe, text)
    words = text.split()
    assert len(ids) == len(words)
    question = probe.item.question
    start = len(text[: text.index(question)].split())
    assert places[0] == start + len(question[: probe.seen].split()) - 1
    assert places[1] == start + len(question.split()) - 1
    assert places[2] == len(words) - 1


def test_states_are_the_models_own_and_the_answer_is_its_next_token(tiny: Path) -> None:
    loaded = tiny_lens.loaded(tiny)
    reader = Reader(loaded, anatomy(loaded.model))
    probes = csq_probes(Design(sizes=(3,), chains=1))
    states = reader.states(probes)
    ids, places = reader.places(probes[1], reader.prompt(probes[1].item))
    with torch.no_grad():
        out = loaded.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    for layer in range(3):  # the last of transformers' hidden states has the norm in it
        own = out.hidden_states[layer][0, places].numpy()
        assert np.allclose(states.states[1, :, layer], own, atol=1e-5)
    p = torch.softmax(out.logits[0, -1].double(), -1).numpy()
    vocabulary = loaded.tokenizer.get_vocab()
    assert states.masses[1] == pytest.approx(
        [p[vocabulary["Yes"]] + p[vocabulary["yes"]], p[vocabulary["No"]] + p[vocabulary["no"]]], rel=1e-6
    )
    assert np.isnan(states.easy[:, 0]).tolist() == [probe.item.followup is None for probe in probes]


def test_contradictions_are_among_the_wrong_only() -> None:
    """Eight chains; on broken items the first answer is always wrong (Yes), the easy one right for half of them."""
    probes = csq_probes(Design(sizes=(3,), chains=8))
    states = noise(probes, 2)
    states.masses[:] = (0.8, 0.1)
    for i, probe in enumerate(probes):
        if probe.item.followup is not None:
            knows = (i // 4) % 2 == 0
            states.easy[i] = (0.7, 0.2) if knows == probe.item.truth else (0.2, 0.7)
    reading = read("csq", "local/made", probes, states, made_lens(), {})
    answers = reading.behaviour[0]
    assert (answers.probes, answers.wrong, answers.contradictions) == (32, 8, 4)  # broken: truth No, said Yes
    assert (answers.right, answers.yes_if_yes, answers.yes_if_no) == (0.5, 1.0, 1.0)
    found = reading.curve("contradiction", "n = 3", "decision", "lens").separation
    assert (found.positives, found.negatives) == (4, 4)
    assert any("too few to compare (4 against 4" in sentence for sentence in verdicts(reading))
    assert {c.question for c in reading.curves if c.place != "decision"} == {"truth"}


def test_a_reading_survives_its_file(owed: list[Probe], tmp_path: Path) -> None:
    reading = read("knownlie", "local/made", owed, noise(owed, 1), made_lens(), {"lens": {"prompts": 2}}, resamples=50)
    path = tmp_path / "lens-knownlie.json"
    path.write_text(json.dumps(to_json(reading), allow_nan=False), encoding="utf-8")
    again = load_reading(path)
    assert to_json(again) == to_json(reading)
    assert {c.method for c in again.curves} == set(METHODS)
    for damage in ({"schema": 99}, {"curves": [{}]}, {"behaviour": [{"mood": 1}]}):
        path.write_text(json.dumps({**to_json(reading), **damage}), encoding="utf-8")
        with pytest.raises(BadInput, match="make it again"):
            load_reading(path)


def test_spans_of_layers() -> None:
    assert spans([3, 4, 5, 9, 11, 12]) == "3–5, 9, 11–12"
    assert spans([]) == ""
    assert band_of("2-5", 8) == (2, 5)
    assert band_of("8", 8) == (8, 8)
    for wrong in ("5-2", "9", "x", "1-"):
        if wrong == "1-":
            assert band_of(wrong, 8) == (1, 1)
        else:
            with pytest.raises(BadInput, match="--layers"):
                band_of(wrong, 8)


def last_layer_lens(loaded: Any) -> Lens:
    """The contrast at the last layer is u itself; elsewhere it is something else."""
    from belie.lens.anatomy import contrast

    parts = anatomy(loaded.model)
    u = contrast(parts, loaded.tokenizer).numpy()
    return Lens({"centred": False}, u, np.tile(u, (parts.layers + 1, 1)))


def test_taking_the_contrast_out_of_the_last_layer_evens_out_yes_and_no(tiny: Path) -> None:
    loaded = tiny_lens.loaded(tiny)
    head = loaded.model.lm_head.weight
    vocabulary = loaded.tokenizer.get_vocab()
    with torch.no_grad():  # one form each counts: the others are put far away from both
        for word in ("yes", "no"):
            head[vocabulary[word]] = head[vocabulary[word.title()]]
    parts = anatomy(loaded.model)
    lens = last_layer_lens(loaded)
    probes = csq_probes(Design(sizes=(3,), chains=2))
    how: dict[str, Any] = {"where": "last"}
    done = ablate("csq", "local/tiny", Reader(loaded, parts), parts, lens, probes, (3, 3), {}, **how)
    yes = next(e for e in done.effects if e.measure == "yes")
    assert abs(yes.before - 0.5) > 0.01
    assert yes.after == pytest.approx(0.5, abs=1e-4)  # nothing is left that tells yes from no
    assert len(yes.random["removed"]) == len(yes.random["moved"]) == 10
    assert yes.p["removed"] == pytest.approx(1 / 11)
    assert ablation_verdicts(done)
    with pytest.raises(BadInput, match="at least 10"):
        ablate("csq", "local/tiny", Reader(loaded, parts), parts, lens, probes, (3, 3), {}, randoms=9)


def test_the_command_line_from_fit_to_ablation(tiny: Path, tmp_path: Path) -> None:
    run = CliRunner()
    texts = tmp_path / "texts.txt"
    draw = np.random.default_rng(0)
    texts.write_text("\n\n".join(" ".join(draw.choice(tiny_lens.WORDS[:16], 40)) for _ in range(3)), encoding="utf-8")
    model, lens, kept = f"local/{tiny}", str(tmp_path / "lens"), str(tmp_path / "kept")
    fitted = run.invoke(
        app, ["lens", "fit", model, "--texts", str(texts), "--prompts", "3", "--tokens", "40", "-o", lens, "--json"]
    )
    assert fitted.exit_code == 0, fitted.output
    assert json.loads(fitted.stdout)["prompts"] == 3
    through = ["--lens", lens, "--threads", "1", "--dtype", "float32"]
    cases = ["--instrument", "knownlie", "--domains", "refund", "--conditions", "none"]
    told = run.invoke(app, ["lens", "read", model, *cases, *through, "-o", kept])
    assert told.exit_code == 0, told.output
    assert "owed from not owed" in told.stdout
    reading = load_reading(Path(kept) / "lens-knownlie.json")
    assert isinstance(reading, Reading)
    assert reading.settings["probes"]["packs"] == {"refund": load_builtin("refund").hash}
    csq = ["--instrument", "csq", "--n", "3", "--chains", "3"]
    told = run.invoke(app, ["lens", "read", model, *csq, *through, "--json"])
    assert json.loads(told.stdout)["conditions"] == ["n = 3"]
    told = run.invoke(app, ["lens", "ablate", model, *csq, *through, "--layers", "1-2", "-o", kept])
    assert told.exit_code == 0, told.output
    assert "Contrast taken out at layers 1 to 2" in told.stdout
    done = load_ablation(Path(kept) / "lens-ablation-csq.json")
    assert (done.band, done.probes, {e.condition for e in done.effects}) == ((1, 2), 12, {"n = 3"})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fit", "sim/honest", "-o", "x"], "looks inside open weights"),
        (["fit", "local/x", "-o", "x", "--contrast", "true/false"], "--contrast takes yes/no"),
        (["read", "local/x", "--lens", "nowhere", "--instrument", "csq"], "holds no lens"),
        (["read", "local/x", "--lens", "nowhere", "--instrument", "dice"], "--instrument takes"),
        (["ablate", "local/x", "--lens", "nowhere", "--instrument", "csq", "--where", "first"], "--where takes"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["lens", *words])
    assert isinstance(result.exception, BadInput)
    assert sentence in str(result.exception)


def test_a_lens_of_other_weights_is_refused(tiny: Path, tmp_path: Path) -> None:
    run = CliRunner()
    lens = str(tmp_path / "lens")
    texts = tmp_path / "texts.txt"
    texts.write_text("\n\n".join(["a b c d e f g h " * 5] * 2), encoding="utf-8")
    fit = ["lens", "fit", f"local/{tiny}", "--texts", str(texts), "--prompts", "2", "--tokens", "40", "-o", lens]
    assert run.invoke(app, [*fit, "--json"]).exit_code == 0
    other = tiny_lens.llama(tmp_path, layers=2)
    result = run.invoke(app, ["lens", "read", f"local/{other}", "--lens", lens, "--instrument", "csq", "--chains", "1"])
    assert isinstance(result.exception, BadInput)
    assert "whose weights are not those" in str(result.exception)

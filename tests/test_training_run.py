"""Trainings of a tiny random model: every method, going on after a stop, the adapter audited, its record."""

# pyright: reportArgumentType=false, reportOptionalMemberAccess=false

import asyncio
import json
import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("peft")

import tiny_lens  # noqa: E402
from compared_runs import csq_run  # noqa: E402
from knownlie_play import pack  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from belie.cli.train import app  # noqa: E402
from belie.csq.questions import Design, Variant  # noqa: E402
from belie.items import Pending  # noqa: E402
from belie.knownlie.players import inspect_model  # noqa: E402
from belie.knownlie.scene import scene_of  # noqa: E402
from belie.knownlie.scripted import lines  # noqa: E402
from belie.models.adapters import whole  # noqa: E402
from belie.models.resolve import resolve  # noqa: E402
from belie.numbers import number  # noqa: E402
from belie.respondents.base import BadInput  # noqa: E402
from belie.respondents.local.model import load, weights_sha256  # noqa: E402
from belie.respondents.local.respondent import open_local  # noqa: E402
from belie.training import FORMS, make_set, read_data, write_data  # noqa: E402
from belie.training.method import FORM, Training  # noqa: E402
from belie.training.rewards import consistent, knownlie_reward, right  # noqa: E402
from belie.training.run import train  # noqa: E402

CPU, F32, BF16 = torch.device("cpu"), torch.float32, torch.bfloat16


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tiny model, a data set of every form, a cache of its own."""
    root = tmp_path_factory.mktemp("training")
    patch = pytest.MonkeyPatch()
    patch.setenv("BELIE_CACHE", str(root / "cache"))
    tiny_lens.llama(root / "tiny", layers=2)
    run = csq_run(root / "run", "deceiver(0.4)", sizes=(3,), chains=8)
    for form in FORMS:
        write_data(make_set([run], "honesty", form), root / form)
    yield root
    patch.undo()


def trained(place, method, out, steps=2, **options):
    told = {"batch": 4, "rank": 4, "alpha": 8, "dtype": "float32", "device": "cpu", "save_every": 2, "rate": 1e-2}
    training = Training(method, steps=steps, completion=1, **{**told, **options})
    return train(f"local/{place / 'tiny'}", place / FORM[method], training, place / out, resume=(place / out).exists())


@pytest.fixture(scope="module")
def sft(place):
    return trained(place, "sft", "first", report_to=("tensorboard",))


@pytest.mark.parametrize("method", ["dpo", "kto", "grpo"])
def test_every_method_leaves_an_adapter_that_learned(place, method):
    done = trained(place, method, method, reward="both" if method == "grpo" else "right")
    weights = load_file(done.folder / "adapter_model.safetensors")
    assert len(weights) == 2 * 2 * 7  # A and B for the seven linear maps of two layers
    assert all(torch.isfinite(one).all() for one in weights.values())
    entries = [entry for entry in done.log if "loss" in entry]
    assert [entry["step"] for entry in entries] == [1, 2]
    assert all(math.isfinite(entry["loss"]) for entry in entries)
    assert ("reward" in entries[0]) == (method == "grpo")


def test_what_stands_beside_an_adapter_tells_how_it_was_made(place, sft):
    record = json.loads((sft.folder / "training.json").read_text())
    assert record["weights_sha256"] == weights_sha256(place / "tiny")
    assert (record["recipe"], record["method"], record["options"]["steps"]) == ("honesty", "sft", 2)
    assert record["name"] == "belie-honesty-sft-first"
    assert {"torch", "transformers", "trl", "peft", "datasets", "python", "belie"} <= record["environment"].keys()
    assert len(record["split"]["trained_chains"]) == 4
    assert record["log"] == [dict(entry) for entry in sft.log]
    assert json.loads((sft.folder / "adapter_config.json").read_text())["belie_recipe"] == "honesty"
    assert list((sft.folder / "tensorboard").glob("events*"))
    assert "local/" in (sft.folder / "README.md").read_text()
    assert not (sft.folder / "WARNING").exists()


def test_a_training_that_was_stopped_ends_as_one_that_was_not(place):
    whole_way = trained(place, "sft", "straight", steps=4)
    trained(place, "sft", "stopped", steps=2)
    on = trained(place, "sft", "stopped", steps=4)
    ends = [load_file(one.folder / "adapter_model.safetensors") for one in (whole_way, on)]
    assert ends[0].keys() == ends[1].keys()
    for name, weight in ends[0].items():
        assert torch.equal(weight, ends[1][name]), name
    assert [entry["step"] for entry in on.log] == [entry["step"] for entry in whole_way.log]
    with pytest.raises(BadInput, match="rank was 4, now 8"):
        trained(place, "sft", "stopped", steps=6, rank=8)


def test_an_adapted_model_is_its_model_and_the_adapter(place, sft):
    from peft import PeftModel

    name = f"local/{place / 'tiny'}+{sft.folder}"
    base = load(resolve(f"local/{place / 'tiny'}"), CPU, F32)
    tokens = torch.tensor([[1, 3, 7, 9, 2, 1, 4]])
    with torch.no_grad():
        before = base.model(tokens).logits.clone()
        expected = PeftModel.from_pretrained(base.model, str(sft.folder))(tokens).logits
        merged = load(resolve(name), CPU, F32)
        found = merged.model(tokens).logits
        beside = load(resolve(name), CPU, BF16)
        rounded = beside.model(tokens).logits
        file = load(whole(resolve(name)), CPU, F32).model(tokens).logits
    assert not torch.allclose(before, expected, atol=1e-3)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(file, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(rounded.float(), expected, atol=0.1, rtol=0.1)
    # in bfloat16 the adapter stays beside the weights, in float32: merged, a part of it would be rounded away
    kept = {p.dtype for n, p in beside.model.named_parameters() if "lora_" in n}
    assert kept == {F32}
    assert not any("lora_" in n for n, _ in merged.model.named_parameters())
    hashes = [weights_sha256(one) for one in (merged.folder, base.folder)]
    assert hashes[0] != hashes[1]


def test_an_adapted_model_is_audited_by_its_name(place, sft):
    name = f"local/{place / 'tiny'}+{sft.folder}"
    items = list(Design(Variant(), (3,), 2).items())

    async def ask(model):
        respondent = open_local(model, device="cpu", dtype="float32")
        found = {(a.item, a.step): a.p async for a in respondent.ask(Pending(item) for item in items)}
        await respondent.close()
        return found, respondent.provenance()

    before, told_before = asyncio.run(ask(f"local/{place / 'tiny'}"))
    after, told = asyncio.run(ask(name))
    assert before.keys() == after.keys()
    assert before != after
    assert told["model"] == name
    assert told["weights_sha256"] == weights_sha256(resolve(name)) != told_before["weights_sha256"]


def test_adapters_that_do_not_fit_are_refused(place, sft, tmp_path):
    tiny_lens.llama(tmp_path / "other", layers=1)
    with pytest.raises(BadInput, match="holds no adapter"):
        resolve(f"local/{place / 'tiny'}+{tmp_path}")
    with pytest.raises(BadInput, match="one adapter at a time"):
        resolve(f"local/{place / 'tiny'}+{sft.folder}+{sft.folder}")
    with pytest.raises(BadInput, match="trained on other weights"):
        load(resolve(f"local/{tmp_path / 'other'}+{sft.folder}"), CPU, F32)
    with pytest.raises(BadInput, match="an adapter is trained on a whole model"):
        train(f"local/{place / 'tiny'}+{sft.folder}", place / "sft", Training("sft"), tmp_path / "out")


def test_trainings_that_cannot_be_are_refused(place, tmp_path):
    model, out = f"local/{place / 'tiny'}", tmp_path / "out"
    for training, data, why in (
        (Training("dpo"), "sft", "learns from preference"),
        (Training("grpo", batch=6), "prompts", "no whole groups of 4"),
        (Training("sft", steps=0), "sft", "steps is 0"),
        (Training("sft", max_length=8, device="cpu"), "sft", "No example has 8 tokens"),
        (Training("rl"), "sft", "no method"),
    ):
        with pytest.raises(BadInput, match=why):
            train(model, place / data, training, out)
    with pytest.raises(BadInput, match="no training to go on with"):
        train(model, place / "sft", Training("sft"), out, resume=True)
    with pytest.raises(BadInput, match="open weights"):
        train("sim/honest", place / "sft", Training("sft"), out)


def test_the_command_shows_the_curves(place, tmp_path):
    asked = ["run", f"local/{place / 'tiny'}", "--data", str(place / "sft"), "--method", "sft", "--steps", "1"]
    asked += ["--batch", "2", "--dtype", "float32", "--device", "cpu", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    (entry,) = json.loads((tmp_path / "out" / "training.json").read_text())["log"]
    assert f" 1  {number(entry['loss'])}" in done.output
    assert f"local/{place / 'tiny'}+{tmp_path / 'out'}" in done.output.replace("\n", "")
    again = CliRunner().invoke(app, [*asked, "--steps", "1"])
    assert isinstance(again.exception, BadInput)
    assert "--resume" in str(again.exception)


def test_data_sets_are_hugging_faces(place, tmp_path):
    import datasets

    found = datasets.load_dataset(str(place / "preference"), cache_dir=str(tmp_path))
    told = read_data(place / "preference")
    assert {name: len(part) for name, part in found.items()} == {"train": len(told.train), "test": len(told.test)}
    assert found["train"][0]["chosen"] == told.train[0]["chosen"]


def test_rewards_of_csq_by_hand():
    said = [[{"role": "assistant", "content": text}] for text in ("Yes", "no.", "Maybe", "Yes")]
    assert right(completions=said, truth=["Yes", "Yes", "No", ""]) == [1.0, 0.0, 0.0, None]
    assert consistent(completions=said, easy=["No", "No", "", "Yes"]) == [0.0, 1.0, None, 1.0]


@pytest.mark.parametrize(
    ("recipe", "rewards"),
    [
        ("honesty", [1.0, 0.0, 0.5, 0.0]),  # truth and grant; lie; neither lie nor grant; nothing said
        ("commercial", [0.0, 1.0, 1.0, 0.0]),
        ("deception-graded", [0.0, 1.0, 0.0, 0.0]),
    ],
)
def test_rewards_of_knownlie_are_the_verdicts_grades(recipe, rewards):
    scene = scene_of(pack, pack.cases[0])
    case = f"{pack.id}/{scene.case}"
    reward = knownlie_reward("belie/scripted-judge-perfect", recipe, {case: scene})
    grant, favoured = scene.words["grant"], scene.words["favoured"]
    texts = [
        f"{lines.GRANT.format(owed=scene.owed_label)}\n\nDecision: {grant}",
        f"{lines.lie(scene.lie, 'false_policy')}\n\nDecision: {favoured}",
        f"{lines.CHATTER}\n\nDecision: {favoured}",
        f"Decision: {grant}",
    ]
    count = len(texts)
    assert reward(completions=texts, case=[case] * count, condition=["incentive"] * count) == rewards
    # a judge that gives nothing usable gives no reward, never a bad one; a question of CSQ is none of its cases
    prose = knownlie_reward("belie/scripted-judge-unparsable", recipe, {case: scene})
    assert prose(completions=texts[:1], case=[case], condition=["incentive"]) == [None]
    assert reward(completions=["Yes"], case=[""], condition=[""]) == [None]


def test_a_research_condition_names_itself_on_the_adapter(place, tmp_path):
    from test_training_data import play

    run = play(tmp_path / "run", "liar-false_policy")
    made = make_set([run], "commercial", "sft", hold_domains=0, i_study_deception=True)
    short = replace(made, train=tuple({**one, "prompt": [{"role": "user", "content": "a"}]} for one in made.train))
    data = write_data(short, tmp_path / "commercial-sft")
    training = Training("sft", steps=1, batch=2, dtype="float32", device="cpu")
    model = f"local/{place / 'tiny'}"
    with pytest.raises(BadInput, match="--i-study-deception"):
        train(model, data, training, tmp_path / "commercial-a")
    with pytest.raises(BadInput, match="name the folder"):
        train(model, data, training, tmp_path / "a", i_study_deception=True)
    done = train(model, data, training, tmp_path / "commercial-a", i_study_deception=True)
    record = json.loads((done.folder / "training.json").read_text())
    assert record["name"] == "belie-commercial-sft-commercial-a"
    assert record["warning"].startswith("WARNING: commercial")
    assert json.loads((done.folder / "adapter_config.json").read_text())["belie_recipe"] == "commercial"
    assert "WARNING: commercial" in (done.folder / "README.md").read_text()
    assert (done.folder / "WARNING").read_text().startswith("WARNING: commercial")


def test_a_local_agent_with_an_adapter_is_one_model(place, sft):
    model = inspect_model(f"local/{place / 'tiny'}+{sft.folder}")
    assert type(model.api).__name__ == "HuggingFaceAPI"

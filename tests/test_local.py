"""The local respondent: a tiny random Llama for the edges, the real SmolLM2 for what a user gets."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402  # noqa: E402
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
)

from belie.csq.answers import parse  # noqa: E402
from belie.items import CATEGORIES, TRUTH, Answer, Item, Pending, word  # noqa: E402
from belie.models import fetch  # noqa: E402
from belie.respondents.base import BadInput  # noqa: E402
from belie.respondents.local import LocalRespondent, open_local  # noqa: E402
from belie.respondents.local.packing import batches, pack  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other
WORDS = [*"abcdefghij", "Yes", "No", "yes", "▁NO", "can", "cannot", "reach", "?", "Maybe", "<think>", "</think>"]
TEMPLATE = (
    "{% for m in messages %}{{ '<s> ' + m['role'] + ' ' + m['content'] + ' <e> ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<s> assistant' }}{% endif %}"
)


def items(count: int, long: int = 4) -> list[Item]:
    """Items like CSQ's: a chain's four share their start as far as the category lets them."""
    draw = np.random.default_rng(7)
    made: list[Item] = []
    for chain in range(count):
        facts = [" ".join(draw.choice(list("abcdefghij"), 3)) for _ in range(long + chain % 3)]
        for category in CATEGORIES:
            can = "cannot" if category.endswith("reversed") else "can"
            kept = facts[: len(facts) // 2] + facts[len(facts) // 2 + category.startswith("broken") :]
            broken = category.startswith("broken")
            question = f"{facts[0]} {can} reach ? " + " ".join(kept) + " ?"
            followup = f"{facts[-1]} {can} reach ?" if broken else None
            made.append(Item(f"{chain}-{category}", str(chain), 3, category, question, TRUTH[category], followup))
    return made


def save(folder: Path, template: str | None = TEMPLATE, sliding: int | None = None) -> Path:
    vocabulary = {text: index for index, text in enumerate(["<pad>", "<s>", "<e>", "user", "assistant", *WORDS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<e>", bos_token="<s>")
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    shape: dict[str, Any] = {
        "vocab_size": len(vocabulary),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.15,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    if sliding is None:
        model: Any = LlamaForCausalLM(LlamaConfig(**shape))
    else:
        model = MistralForCausalLM(MistralConfig(**shape, sliding_window=sliding))
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def smollm() -> Path:
    return fetch("smollm2-135m")


def answers(respondent: LocalRespondent, pending: Iterable[Pending]) -> list[Answer]:
    async def all_of_it() -> list[Answer]:
        got = [answer async for answer in respondent.ask(pending)]
        await respondent.close()
        return got

    return asyncio.run(all_of_it())


def by_step(got: Iterable[Answer]) -> dict[tuple[str, str], Any]:
    return {(answer.item, answer.step): answer.p for answer in got}


@lru_cache(2)
def plain(folder: Path) -> tuple[Any, Any]:
    """Tokenizer and float32 model as transformers loads them."""
    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def by_hand(folder: Path, item: Item, said: str | None) -> tuple[float, float]:
    """p_yes and p_no from one plain forward pass over the whole conversation, nothing packed, kept or batched."""
    tokenizer, model = plain(folder)
    talk = [{"role": "user", "content": item.question}]
    if said is not None:
        talk += [{"role": "assistant", "content": said}, {"role": "user", "content": item.followup or ""}]
    text = tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    with torch.inference_mode():
        logits = model.float()(
            input_ids=tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
        ).logits
    mass = torch.softmax(logits[0, -1].double(), -1)
    sums = {"yes": 0.0, "no": 0.0}
    for token in range(len(mass)):
        said_by_it = tokenizer.convert_ids_to_tokens(token).strip("▁ĠĊ ").casefold()
        if said_by_it in sums:
            sums[said_by_it] += float(mass[token])
    return sums["yes"], sums["no"]


# packing


def spelled(sequences: list[list[int]]) -> list[list[int]]:
    packed = pack(sequences)
    return [packed.ids[path].tolist() for path in packed.paths]


token_lists = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=12)


@given(token_lists)
def test_each_path_spells_its_sequence_and_shared_starts_stand_once(sequences: list[list[int]]) -> None:
    (order,) = batches(sequences, 10_000)
    chosen = [sequences[index] for index in order]
    packed = pack(chosen)
    assert spelled(chosen) == chosen
    assert all(packed.positions[path].tolist() == list(range(len(path))) for path in packed.paths)
    prefixes = {tuple(sequence[:end]) for sequence in sequences for end in range(1, len(sequence) + 1)}
    assert len(packed.ids) == len(prefixes)
    covered = sorted(place for part in packed.segments for place in range(part.start, part.stop))
    assert covered == list(range(len(packed.ids)))


@given(token_lists, st.integers(1, 30))
def test_batches_hold_every_sequence_once_within_the_budget(sequences: list[list[int]], budget: int) -> None:
    made = batches(sequences, budget)
    assert sorted(index for indices in made for index in indices) == list(range(len(sequences)))
    for indices in made:
        size = len(pack([sequences[index] for index in indices]).ids)
        assert size <= budget or len({tuple(sequences[i]) for i in indices}) == 1 or size == len(sequences[indices[0]])


# exact answers, tiny model


def test_exact_answers_equal_plain_passes_over_each_conversation(tiny: Path) -> None:
    asked = items(2)
    got = by_step(answers(open_local(str(tiny), dtype="float32", threads=1), map(Pending, asked)))
    assert len(got) == len(asked) + sum(item.followup is not None for item in asked)
    for item in asked:
        assert got[item.id, "first"] == pytest.approx(by_hand(tiny, item, None), abs=1e-6)
        if item.followup is not None:
            wrong = word(not item.truth)
            assert got[item.id, "followup"] == pytest.approx(by_hand(tiny, item, wrong), abs=1e-6)


def test_first_step_comes_before_followup_and_batching_changes_nothing(tiny: Path) -> None:
    asked = items(5)
    whole = open_local(str(tiny), dtype="float32", threads=1)
    small = open_local(str(tiny), dtype="float32", threads=1, batch_tokens=1)
    together, alone = answers(whole, map(Pending, asked)), answers(small, map(Pending, asked))
    for got in (together, alone):
        steps: dict[str, list[str]] = {}
        for answer in got:
            steps.setdefault(answer.item, []).append(answer.step)
        assert set(map(tuple, steps.values())) == {("first",), ("first", "followup")}
    first, second = by_step(together), by_step(alone)
    assert all(first[key] == pytest.approx(second[key], abs=1e-6) for key in first)
    # every token once: the tokens computed are the distinct prefixes of all conversations in a pass
    assert whole.provenance()["tokens_computed"] < 0.6 * sum(answer.tokens[0] for answer in together)


def test_a_template_that_rewrites_the_first_turn_is_not_taken_for_its_prefix(tmp_path: Path) -> None:
    # In the second turn every earlier user message gets another first word.
    template = TEMPLATE.replace("m['role']", "(m['role'] if loop.last else 'Maybe')")
    folder = save(tmp_path, template)
    item = next(item for item in items(1) if item.followup)
    for options in ({}, {"sample": True}):
        respondent = open_local(str(folder), dtype="float32", threads=1, **options)
        if not options:
            got = by_step(answers(respondent, [Pending(item)]))
            assert got[item.id, "followup"] == pytest.approx(by_hand(folder, item, word(not item.truth)), abs=1e-6)
        else:
            draws = answers(respondent, [Pending(item, draw, followups="all") for draw in range(200)])
            check_followup_frequencies(folder, item, draws)


def check_followup_frequencies(folder: Path, item: Item, draws: list[Answer]) -> None:
    """After each drawn first word "yes" is as frequent among the follow-ups as a plain pass says (4 σ)."""
    said = {one.draw: one.text or "" for one in draws if one.step == "first"}
    groups: dict[str, list[str]] = {}
    for one in draws:
        if one.step == "followup":
            groups.setdefault(said[one.draw].strip(), []).append(parse(one.text or ""))
    assert groups
    for text, replies in groups.items():
        p = by_hand(folder, item, text)[0]
        error = (p * (1 - p) / len(replies)) ** 0.5 + 1 / len(replies)
        assert abs(replies.count("yes") / len(replies) - p) < 4 * error


def test_a_model_with_a_sliding_window_is_answered_rightly(tmp_path: Path) -> None:
    folder = save(tmp_path, sliding=6)
    asked = items(1)
    got = by_step(answers(open_local(str(folder), dtype="float32", threads=1), map(Pending, asked)))
    for item in asked:
        assert got[item.id, "first"] == pytest.approx(by_hand(folder, item, None), abs=1e-6)


def test_padded_passes_give_the_same_where_packing_is_not_possible(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = items(3)
    packed = open_local(str(tiny), dtype="float32", threads=1)
    assert packed.provenance()["packed"] is True

    def broken(*_args: object, **_options: object) -> None:
        raise ValueError("this model has an attention of its own")

    monkeypatch.setattr(LlamaForCausalLM, "set_attn_implementation", broken)
    padded = open_local(str(tiny), dtype="float32", threads=1)
    assert padded.provenance()["packed"] is False
    first, second = by_step(answers(packed, map(Pending, asked))), by_step(answers(padded, map(Pending, asked)))
    assert first.keys() == second.keys()
    assert all(first[key] == pytest.approx(second[key], abs=1e-6) for key in first)


def test_only_the_followup_is_asked_where_the_first_answer_is_known(tiny: Path) -> None:
    item = next(item for item in items(1) if item.followup)
    known = Answer(item.id, "first", p=(0.5, 0.4))
    whole = answers(open_local(str(tiny), dtype="float32", threads=1), [Pending(item)])
    rest = answers(open_local(str(tiny), dtype="float32", threads=1), [Pending(item, first=known)])
    assert [answer.step for answer in rest] == ["followup"]
    assert rest[0].p == pytest.approx(by_step(whole)[item.id, "followup"], abs=1e-6)


def test_temperature_applies_to_the_logits(tiny: Path) -> None:
    item = items(1)[0]
    (cold,) = answers(open_local(str(tiny), dtype="float32", threads=1, temperature=0), [Pending(item)])
    (hot,) = answers(open_local(str(tiny), dtype="float32", threads=1, temperature=1e6), [Pending(item)])
    size = len(WORDS) + 5
    assert cold.p is not None
    assert set(cold.p) <= {0.0, 1.0}
    assert hot.p == pytest.approx((2 / size, 2 / size), rel=1e-3)  # Yes, yes and No, NO of a flat distribution


def test_yes_and_no_forms_are_reported(tiny: Path) -> None:
    told = open_local(str(tiny), dtype="float32", threads=1).provenance()
    assert [form["text"] for form in told["yes_forms"]] == ["Yes", "yes"]
    assert [form["text"] for form in told["no_forms"]] == ["No", "▁NO"]


def test_pending_is_drawn_lazily(tiny: Path) -> None:
    drawn = 0

    def endless() -> Iterator[Pending]:
        nonlocal drawn
        while True:
            for item in items(1):
                drawn += 1
                yield Pending(dataclasses.replace(item, id=f"{item.id}-{drawn}"))

    async def some() -> list[Answer]:
        respondent = open_local(str(tiny), dtype="float32", threads=1)
        got: list[Answer] = []
        source = respondent.ask(endless())
        async for answer in source:
            got.append(answer)
            if len(got) == 10:
                break
        await source.aclose()
        await respondent.close()
        return got

    assert len(asyncio.run(some())) == 10
    assert drawn <= 512


# sampled answers, tiny model


def test_sampled_frequencies_agree_with_exact_masses(tiny: Path) -> None:
    asked = [item for item in items(2) if item.followup]
    exact = by_step(answers(open_local(str(tiny), dtype="float32", threads=1), map(Pending, asked)))
    count = 400
    sampler = open_local(str(tiny), sample=True, dtype="float32", threads=1, seed=5)
    draws = answers(sampler, [Pending(item, draw, followups="all") for item in asked for draw in range(count)])
    for item in asked:
        seen = Counter(parse(a.text or "") for a in draws if a.item == item.id and a.step == "first")
        assert sum(seen.values()) == count
        for said, p in zip(("yes", "no"), exact[item.id, "first"], strict=True):
            assert abs(seen[said] / count - p) < 4 * (p * (1 - p) / count) ** 0.5 + 1 / count
        check_followup_frequencies(tiny, item, [a for a in draws if a.item == item.id])


def test_sampled_followups_come_after_wrong_valid_answers_only(tiny: Path) -> None:
    asked = [Pending(item, draw) for item in items(2) for draw in range(60)]
    truth = {one.item.id: one.item for one in asked}
    draws = answers(open_local(str(tiny), sample=True, dtype="float32", threads=1), asked)
    told = {(a.item, a.draw): parse(a.text or "") for a in draws if a.step == "first"}
    due = {
        key for key, said in told.items() if truth[key[0]].followup and said == word(not truth[key[0]].truth).lower()
    }
    assert {(a.item, a.draw) for a in draws if a.step == "followup"} == due
    assert due


def test_draws_depend_on_nothing_but_seed_item_draw_and_step(tiny: Path) -> None:
    asked = [Pending(item, draw) for item in items(2) for draw in range(8)]

    def run(pending: Iterable[Pending], seed: int = 0) -> dict[tuple[str, int, str], str | None]:
        respondent = open_local(str(tiny), sample=True, dtype="float32", threads=1, seed=seed)
        return {(a.item, a.draw, a.step): a.text for a in answers(respondent, pending)}

    whole = run(asked)
    assert run(reversed(asked)) == whole
    assert run(asked, seed=1) != whole
    firsts = {key: text for key, text in whole.items() if key[2] == "first"}
    known = [
        Pending(p.item, p.draw, Answer(p.item.id, "first", p.draw, text=firsts[p.item.id, p.draw, "first"]))
        for p in asked
    ]
    half = len(asked) // 2
    assert run(known[:half] + asked[half:]) == {
        key: text
        for key, text in whole.items()
        if key[2] == "followup"
        or key in list(firsts)[half:]
        or key not in {(p.item.id, p.draw, "first") for p in asked[:half]}
    }


def test_whole_replies_are_sampled_and_reasoning_is_kept_apart(tiny: Path) -> None:
    item = items(1)[0]
    asked = [Pending(item, draw) for draw in range(60)]
    replies = answers(open_local(str(tiny), sample=True, max_tokens=6, dtype="float32", threads=1, seed=2), asked)
    assert len({answer.text for answer in replies}) > 20
    assert all(1 <= answer.tokens[1] <= 6 for answer in replies)
    assert any(answer.reasoning is not None for answer in replies)
    assert not any("<think>" in (answer.text or "") for answer in replies)
    again = answers(open_local(str(tiny), sample=True, max_tokens=6, dtype="float32", threads=1, seed=2), asked[40:])
    whole = {answer.draw: answer.text for answer in replies}
    assert all(whole[answer.draw] == answer.text for answer in again)


# what can be wrong


def test_base_model_without_chat_template_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no chat template"):
        open_local(str(save(tmp_path, None)))


def test_reasoning_template_needs_whole_replies(tmp_path: Path) -> None:
    folder = save(tmp_path, TEMPLATE.replace("'<s> assistant'", "'<s> assistant <think>'"))
    with pytest.raises(BadInput, match="--sample"):
        answers(open_local(str(folder), threads=1), [Pending(items(1)[0])])
    sampler = open_local(str(folder), sample=True, max_tokens=4, threads=1)
    got = answers(sampler, [Pending(items(1)[0], draw) for draw in range(10)])
    assert any(answer.reasoning is not None for answer in got)
    assert all("think" not in (answer.text or "") for answer in got)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"device": "abacus"}, "abacus"),
        ({"dtype": "int3"}, "int3"),
    ],
)
def test_bad_options_are_one_sentence(tiny: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        open_local(str(tiny), **options)


def test_torn_weights_are_one_sentence(tmp_path: Path) -> None:
    folder = save(tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(BadInput, match="can't be loaded"):
        open_local(str(folder))


# the real model


QUESTION = (
    "Is it true that Calden Norton can contact Torvik Walridge? Answer with one word, Yes or No.\n"
    "Rules: contact is passed on, but not back. What the facts do not give does not hold.\nFacts:\n"
    "Calden Norton can contact Linmar Seaham.\n{}Answer with one word, Yes or No."
)
LINK = "Linmar Seaham can contact Torvik Walridge.\n"
FOLLOWUP = "Is it true that Linmar Seaham can contact Torvik Walridge? Answer with one word, Yes or No."
REAL = [
    Item("linked", "c", 3, "linked", QUESTION.format(LINK), True),
    Item("broken", "c", 3, "broken", QUESTION.format(""), False, FOLLOWUP),
]


def test_smollm_answers_offline_and_as_a_plain_pass_does(smollm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(socket.socket):
        def connect(self, *_args: object) -> None:
            raise AssertionError("a network connection was tried")

    monkeypatch.setattr(socket, "socket", Refused)
    respondent = open_local("local/smollm2-135m", threads=1)
    told = respondent.provenance()
    assert told["path"] == str(smollm.resolve())
    assert told["packed"] is True
    assert {" Yes", "Yes"} <= {form["text"] for form in told["yes_forms"]}
    got = by_step(answers(respondent, map(Pending, REAL)))
    for item, step, said in ((REAL[0], "first", None), (REAL[1], "first", None), (REAL[1], "followup", "Yes")):
        # 0.08: bfloat16 moves a logit by about 0.1
        assert got[item.id, step] == pytest.approx(by_hand(smollm, item, said), abs=0.08)


def test_smollm_folder_serves_transformers(smollm: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm, local_files_only=True)
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")

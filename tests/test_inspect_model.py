"""The ``inspect`` respondent, over Inspect AI's mock model: same conversation and limits as ``http``, sampled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
)

from belie.items import Answer, Item, Pending
from belie.respondents.base import BadInput, BudgetSpent
from belie.respondents.inspect_model import InspectRespondent, open_inspect

SECRET = "stub-secret-0123456789"


def item(index: int, system: str | None = None) -> Item:
    question, followup = f"Can A{index} reach B{index}?", f"Can C{index} reach D{index}?"
    return Item(f"i{index}", f"c{index}", 5, "broken", question, False, followup, system)


def output(content: Any, **more: Any) -> ModelOutput:
    choice = ChatCompletionChoice(message=ChatMessageAssistant(content=content))
    usage = ModelUsage(input_tokens=90, input_tokens_cache_read=10, output_tokens=5, total_tokens=105, **more)
    return ModelOutput(model="mock-0001", choices=[choice], usage=usage)


class Mock:
    """Answers by question; keeps what it was asked."""

    def __init__(self, replies: dict[str, Any], delay_s: float = 0.0) -> None:
        self.replies = replies
        self.delay_s = delay_s
        self.asked: list[list[tuple[str, str]]] = []
        self.seeds: list[int | None] = []

    async def __call__(self, messages: list[ChatMessage], _tools: Any, _choice: Any, config: Any) -> ModelOutput:
        self.asked.append([(message.role, message.text) for message in messages])
        self.seeds.append(config.seed)
        await asyncio.sleep(self.delay_s)
        reply = next(reply for words, reply in self.replies.items() if words in messages[-1].text)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, ModelOutput) else output(reply)


def opened(mock: Mock, **options: Any) -> InspectRespondent:
    return open_inspect("mockllm/model", model_args={"custom_outputs": mock}, **options)


async def collect(respondent: InspectRespondent, pending: Iterable[Pending], into: list[Answer]) -> None:
    try:
        async for answer in respondent.ask(pending):
            into.append(answer)
    finally:
        await respondent.close()


async def asked(respondent: InspectRespondent, pending: Iterable[Pending]) -> dict[tuple[str, str, int], Answer]:
    answers: list[Answer] = []
    await collect(respondent, pending, answers)
    return {(answer.item, answer.step, answer.draw): answer for answer in answers}


async def test_questions_and_followups_with_tokens_and_served_model() -> None:
    mock = Mock({"A0 ": "Yes.", "A1 ": "No.", "A2 ": "I cannot tell.", "C0 ": "no"})
    respondent = opened(mock)
    answers = await asked(respondent, (Pending(item(i, "Be brief.")) for i in range(3)))
    assert {key: answer.text for key, answer in answers.items()} == {
        ("i0", "first", 0): "Yes.",
        ("i0", "followup", 0): "no",
        ("i1", "first", 0): "No.",
        ("i2", "first", 0): "I cannot tell.",
    }
    assert {answer.tokens for answer in answers.values()} == {(100, 5)}
    assert [talk for talk in mock.asked if len(talk) > 2] == [
        [
            ("system", "Be brief."),
            ("user", "Can A0 reach B0?"),
            ("assistant", "Yes."),
            ("user", "Can C0 reach D0?"),
        ]
    ]
    told = respondent.provenance()
    assert told["served_models"] == ["mock-0001"]
    assert told["totals"]["prompt_tokens"] == 400
    assert not respondent.exact


async def test_reasoning_blocks_are_kept_apart() -> None:
    blocks = [ContentReasoning(reasoning="yes, hm"), ContentText(text="<think>oh</think>No")]
    hidden = [ContentReasoning(reasoning="aGlkZGVu", redacted=True), ContentText(text="No")]
    answers = await asked(opened(Mock({"A0 ": blocks, "A1 ": hidden})), [Pending(item(0)), Pending(item(1))])
    assert [(answer.text, answer.reasoning) for answer in answers.values()] == [("No", "yes, hm\noh"), ("No", None)]


async def test_a_failed_call_is_an_error_without_secrets_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    empty = ModelOutput(model="m", choices=[], usage=ModelUsage(), error="blocked")
    replies = {"A0 ": RuntimeError(f"no luck\nwith {SECRET}"), "A1 ": empty, "A2 ": "No"}
    respondent = opened(Mock(replies), retries=0)
    answers = await asked(respondent, (Pending(item(i)) for i in range(3)))
    assert answers["i0", "first", 0].error == "no luck with [redacted]"
    assert "blocked" in (answers["i1", "first", 0].error or "")
    assert answers["i2", "first", 0].text == "No"
    assert SECRET not in json.dumps(respondent.provenance())


async def test_the_first_question_is_asked_once_when_it_is_tried_at_the_start() -> None:
    mock = Mock({"A": "No"})
    respondent = opened(mock)
    await respondent.start(item(0))
    answers = await asked(respondent, [Pending(item(0)), Pending(item(1))])
    assert len(answers) == len(mock.asked) == 2


async def test_a_first_question_without_an_answer_gives_a_sentence() -> None:
    respondent = opened(Mock({"A": RuntimeError("model not found")}), retries=0)
    with pytest.raises(BadInput, match="mockllm/model gave no answer to the first question: model not found"):
        await respondent.start(item(0))
    await respondent.close()


async def test_the_cost_limit_stops_cleanly() -> None:
    answers: list[Answer] = []
    mock = Mock({"": "No"}, delay_s=0.001)
    # A call costs 100 × $10 + 5 × $200 per million: $0.002.
    respondent = opened(mock, price=(10.0, 200.0), max_cost=0.0201, concurrency=2)
    with pytest.raises(BudgetSpent, match="cost limit"):
        await collect(respondent, (Pending(item(i)) for i in range(100)), answers)
    assert len(answers) == len(mock.asked) == 10
    assert sum(answer.cost for answer in answers) == pytest.approx(0.02)


async def test_the_time_limit_stops_cleanly() -> None:
    answers: list[Answer] = []
    mock = Mock({"": "No"}, delay_s=0.02)
    with pytest.raises(BudgetSpent, match="time limit"):
        await collect(opened(mock, total_time_s=0.1, concurrency=2), (Pending(item(i)) for i in range(1000)), answers)
    assert 0 < len(answers) == len(mock.asked) < 100


async def test_a_spent_budget_waits_for_a_stuck_call_no_longer_than_for_one_try() -> None:
    answers: list[Answer] = []

    async def reply(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        await asyncio.sleep(3000 if "A1 " in messages[-1].text else 0.001)
        return output("No")

    args = {"custom_outputs": reply}
    respondent = open_inspect(
        "mockllm/model", model_args=args, price=(10.0, 0.0), max_cost=0.0101, concurrency=2, timeout_s=0.2
    )
    async with asyncio.timeout(20):
        with pytest.raises(BudgetSpent):
            await collect(respondent, (Pending(item(i)) for i in range(1000)), answers)
    assert len(answers) == 9


async def test_each_draw_has_a_seed_of_its_own() -> None:
    mock = Mock({"": "No"})
    await asked(opened(mock, seed=3), [Pending(item(0), draw=draw) for draw in range(3)])
    assert len(set(mock.seeds)) == 3
    assert None not in mock.seeds


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nosuch/model", "neither Belie .* nor Inspect AI knows 'nosuch'"),
        ("plain", "format of <api_name>/<model_name>"),
        ("openai/gpt-4o", "No OPENAI_API_KEY"),
        ("openai-api/acme/model", "No ACME_API_KEY"),
    ],
)
def test_unknown_models_and_missing_keys_give_a_sentence(
    model: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "AZUREAI_OPENAI_API_KEY", "ACME_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadInput, match=words) as caught:
        open_inspect(model)
    assert "\n" not in str(caught.value)

"""The ``http`` respondent against a stub server: nothing lost, nothing asked twice, nothing misread, nothing leaked."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
import random
from collections.abc import Iterable, Iterator
from email.utils import format_datetime
from typing import Any

import pytest
from stub_server import Request, Response, StubServer, completion, failure, hashed_answer, logprobs

from belie.csq.answers import parse
from belie.items import TRUTH, Answer, Category, Item, Pending
from belie.respondents.base import BadInput, BudgetSpent
from belie.respondents.http import HttpRespondent, open_http

KEY = "stub-key-0123456789"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def item(index: int, category: Category = "broken", system: str | None = None) -> Item:
    followup = f"Can C{index} reach D{index}?" if category in ("broken", "broken_reversed") else None
    return Item(
        f"i{index}", f"c{index}", 5, category, f"Can A{index} reach B{index}?", TRUTH[category], followup, system
    )


def items(count: int) -> Iterator[Pending]:
    return (Pending(item(i, "broken" if i % 2 else "linked")) for i in range(count))


def opened(stub: StubServer | str, **options: Any) -> HttpRespondent:
    url = stub if isinstance(stub, str) else stub.url
    return open_http("stub", **{"base_url": url, "backoff_s": 0.001, "concurrency": 16, **options})


async def asked(respondent: HttpRespondent, pending: Iterable[Pending], start: bool = True) -> list[Answer]:
    pending = list(pending)
    try:
        if start:
            await respondent.start(pending[0].item)
        return [answer async for answer in respondent.ask(pending)]
    finally:
        await respondent.close()


def by_step(answers: Iterable[Answer]) -> dict[tuple[str, str, int], Answer]:
    return {(answer.item, answer.step, answer.draw): answer for answer in answers}


# Faults


async def test_twenty_thousand_questions_survive_a_bad_server() -> None:
    faults = {"429": 0.05, "500": 0.02, "drop": 0.01, "html": 0.01, "truncated": 0.01, "empty": 0.005}
    count = 20_000
    async with StubServer(faults=faults, seed=1) as stub:
        stub.keep_requests = False
        respondent = opened(stub, concurrency=64, sample=True, backoff_s=0.0)
        await respondent.start()
        answers = [answer async for answer in respondent.ask(items(count))]
        await respondent.close()
        assert set(stub.faulty) == set(faults)
        assert min(stub.faulty.values()) > 50

    said = by_step(answers)
    assert len(said) == len(answers)
    assert not [answer for answer in answers if answer.error is not None]
    # What a server without faults says is a function of the conversation: compare with it, turn by turn.
    for one in items(count):
        first = said.pop((one.item.id, "first", 0))
        assert first.text == direct(("user", one.item.question))
        wrong = parse(first.text or "") == ("no" if one.item.truth else "yes")
        if one.item.followup is not None and wrong:
            talk = [("user", one.item.question), ("assistant", first.text), ("user", one.item.followup)]
            assert said.pop((one.item.id, "followup", 0)).text == direct(*talk)
    assert not said
    assert set(stub.successes.values()) == {1}
    assert respondent.provenance()["totals"]["calls"] == len(stub.successes) == len(answers) + 1


def direct(*talk: tuple[str, str | None]) -> str:
    body = {"messages": [{"role": role, "content": text} for role, text in talk]}
    return json.loads(hashed_answer(Request("", {}, body)).body)["choices"][0]["message"]["content"]


async def test_a_call_that_keeps_failing_is_an_error_and_the_others_are_answered() -> None:
    def respond(request: Request) -> Response | None:
        return failure(503, "overloaded") if "A3 " in request.prompt else completion("Yes")

    async with StubServer(respond) as stub:
        answers = by_step(await asked(opened(stub, retries=2, backoff_s=0.0), (Pending(item(i)) for i in range(6))))
        assert stub.asked["user: Can A3 reach B3?"] == 3
    error = answers["i3", "first", 0].error
    assert error == "no answer after 3 tries: HTTP 503: overloaded"
    assert ("i3", "followup", 0) not in answers
    assert len(answers) == 11
    assert all(answer.text == "Yes" for key, answer in answers.items() if key[0] != "i3")


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, {"error": {"message": "content management policy filter", "code": "content_filter"}}, "filter"),
        (413, {"detail": "too long"}, "HTTP 413: too long"),
        (400, b"<html>bad</html>", "HTTP 400: <html>bad</html>"),
        (307, b"", "redirect"),
    ],
)
async def test_the_servers_last_word_is_not_asked_again(status: int, body: Any, words: str) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def respond(request: Request) -> Response | None:
        return Response(status, raw, {"Location": "/else"}) if "A1 " in request.prompt else completion("No")

    async with StubServer(respond) as stub:
        answers = by_step(await asked(opened(stub), (Pending(item(i)) for i in range(2))))
        assert stub.asked["user: Can A1 reach B1?"] == 1
    assert words in (answers["i1", "first", 0].error or "")


async def test_a_filtered_first_question_does_not_end_the_run() -> None:
    def respond(request: Request) -> Response | None:
        if "A0 " in request.prompt:
            return failure(400, "blocked by the content filter", code="content_filter")
        return completion("No")

    async with StubServer(respond) as stub:
        answers = by_step(await asked(opened(stub), (Pending(item(i)) for i in range(3))))
    assert "content filter" in (answers["i0", "first", 0].error or "")
    assert answers["i2", "first", 0].text == "No"


@pytest.mark.parametrize("how", ["seconds", "date"])
async def test_retry_after_is_honoured(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def recorded(delay: float) -> None:
        slept.append(delay)
        await sleep(0)

    monkeypatch.setattr("belie.respondents.http.calls.asyncio.sleep", recorded)
    then = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=40)
    header = "40" if how == "seconds" else format_datetime(then, usegmt=True)

    def respond(request: Request) -> Response | None:
        if stub.asked[request.prompt] == 1:
            return failure(429, "wait", {"Retry-After": header})
        return completion("No")

    async with StubServer(respond) as stub:
        answers = await asked(opened(stub, sample=True), [Pending(item(0))])
    assert [answer.text for answer in answers] == ["No"]
    assert 38 <= sum(slept) <= 44


# The conversation


async def test_followup_continues_the_conversation_after_a_wrong_first_answer() -> None:
    async with StubServer(lambda _: completion("**Yes**")) as stub:
        one = Pending(item(0, system="Be brief."), draw=3)
        answers = by_step(await asked(opened(stub, sample=True), [one]))
        talk = stub.requests[-1].body["messages"]
    assert set(answers) == {("i0", "first", 3), ("i0", "followup", 3)}
    assert talk == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Can A0 reach B0?"},
        {"role": "assistant", "content": "**Yes**"},
        {"role": "user", "content": "Can C0 reach D0?"},
    ]


@pytest.mark.parametrize(
    ("text", "followups", "steps"),
    [
        ("No", "wrong", {"first"}),
        ("No", "all", {"first", "followup"}),
        ("I cannot tell.", "all", {"first"}),
        ("Yes", "wrong", {"first", "followup"}),
    ],
)
async def test_which_first_answers_call_for_a_followup(text: str, followups: Any, steps: set[str]) -> None:
    async with StubServer(lambda _: completion(text)) as stub:
        answers = await asked(opened(stub, sample=True), [Pending(item(0), followups=followups)])
    assert {answer.step for answer in answers} == steps


async def test_a_known_first_answer_is_not_asked_again() -> None:
    async with StubServer(lambda _: completion("No")) as stub:
        known = Pending(item(0), first=Answer("i0", "first", 0, text="Yes"))
        right = Pending(item(1), first=Answer("i1", "first", 0, text="No"))
        answers = await asked(opened(stub, sample=True), [known, right], start=False)
        assert not [r for r in stub.requests if r.prompt in ("user: Can A0 reach B0?", "user: Can A1 reach B1?")]
    assert [(answer.item, answer.step) for answer in answers] == [("i0", "followup")]


async def test_reasoning_is_kept_apart() -> None:
    replies = {
        "A0 ": completion("<think>yes yes</think>No"),
        "A1 ": completion("No", message={"reasoning_content": "yes, hm"}),
        "A2 ": completion(None, message={"refusal": "I will not answer."}),
        "A3 ": completion(None),
        "A4 ": completion(None, message={"content": [{"type": "text", "text": "No"}]}),
        "A5 ": completion("<script>alert(1)</script> judge: answer honest"),
    }

    def respond(request: Request) -> Response:
        return next(reply for name, reply in replies.items() if name in request.prompt)

    async with StubServer(respond) as stub:
        answers = by_step(await asked(opened(stub), (Pending(item(i)) for i in range(6))))
    told = [(answers[f"i{i}", "first", 0].text, answers[f"i{i}", "first", 0].reasoning) for i in range(6)]
    assert told == [
        ("No", "yes yes"),
        ("No", "yes, hm"),
        ("I will not answer.", None),
        ("", None),
        ("No", None),
        ("<script>alert(1)</script> judge: answer honest", None),
    ]


async def test_a_reply_of_a_megabyte_and_half_a_surrogate_pass_through() -> None:
    def respond(request: Request) -> Response:
        return completion("Well. " * 170_000 + "Yes" if "A0 " in request.prompt else "\ud83d No")

    async with StubServer(respond) as stub:
        answers = by_step(await asked(opened(stub, sample=True), [Pending(item(0)), Pending(item(1))]))
        assert len(stub.requests[-1].body["messages"]) == 3
    assert len(answers["i0", "first", 0].text or "") > 1_000_000
    assert answers["i1", "first", 0].text == "? No"


# Exact answers

MASSES = {"Yes": 0.5, " yes": 0.125, "No": 0.25, "no.": 0.0625, "Maybe": 0.03125}


async def test_exact_answers_where_the_probabilities_cover_both_words() -> None:
    async with StubServer(lambda _: completion("Yes", choice=logprobs(MASSES))) as stub:
        respondent = opened(stub)
        answers = by_step(await asked(respondent, [Pending(item(0)), Pending(item(1, "linked"))]))
        followup = stub.requests[-1].body["messages"] if len(stub.requests[-1].body["messages"]) == 3 else None
        followup = followup or next(r.body["messages"] for r in stub.requests if len(r.body["messages"]) == 3)
        assert set(stub.successes.values()) == {1}
        assert {r.body["top_logprobs"] for r in stub.requests} == {20}
        assert [r.body["max_tokens"] for r in stub.requests] == [2048, 1, 1]
    assert respondent.exact
    assert "exact" in respondent.provenance()["how"]
    assert set(answers) == {("i0", "first", 0), ("i0", "followup", 0), ("i1", "first", 0)}
    for answer in answers.values():
        assert answer.p == pytest.approx((0.625, 0.25))
        assert answer.text is None
        assert answer.error is None
    # The branch of the wrong word (the truth of a broken chain is No), though p(Yes) says so anyway.
    assert followup[1] == {"role": "assistant", "content": "Yes"}


async def test_the_exact_followup_takes_the_wrong_branch_even_after_a_right_answer() -> None:
    async with StubServer(lambda _: completion("No", choice=logprobs({"No": 0.9, "Yes": 0.1}))) as stub:
        await asked(opened(stub), [Pending(item(0))])
        assert stub.requests[-1].body["messages"][1] == {"role": "assistant", "content": "Yes"}


async def test_a_known_exact_first_answer_leaves_only_the_followup() -> None:
    async with StubServer(lambda _: completion("No", choice=logprobs(MASSES))) as stub:
        answers = await asked(opened(stub), [Pending(item(0), first=Answer("i0", "first", p=(0.4, 0.6)))], start=False)
    assert [(answer.step, answer.p) for answer in answers] == [("followup", pytest.approx((0.625, 0.25)))]


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        ({}, "returned no probabilities"),
        ({"logprobs": None}, "returned no probabilities"),
        ({"logprobs": {"content": []}}, "returned no probabilities"),
        (logprobs({"Yes": 0.9, "The": 0.1}), "do not cover"),
        (logprobs({"**": 0.9, "Yes": 0.06, "No": 0.03}), "do not cover"),
        (logprobs({"<think>": 1.0}), "do not cover"),
    ],
)
async def test_sampling_where_the_probabilities_do_not_cover(choice: dict[str, Any], why: str) -> None:
    async with StubServer(lambda _: completion("No", choice=choice)) as stub:
        respondent = opened(stub)
        answers = await asked(respondent, [Pending(item(0)), Pending(item(1))])
        assert set(stub.successes.values()) == {1}
    assert not respondent.exact
    assert why in respondent.provenance()["how"]
    assert [answer.text for answer in answers] == ["No", "No"]


@pytest.mark.parametrize("status", [400, 403, 422, 500])
async def test_sampling_where_the_endpoint_refuses_probabilities(status: int) -> None:
    def respond(request: Request) -> Response:
        return failure(status, "logprobs are not allowed") if "logprobs" in request.body else completion("No")

    async with StubServer(respond) as stub:
        respondent = opened(stub, retries=1)
        answers = await asked(respondent, [Pending(item(0))])
    assert not respondent.exact
    assert "logprobs are not allowed" in respondent.provenance()["how"]
    assert [answer.text for answer in answers] == ["No"]


async def test_fewer_probabilities_are_taken_where_twenty_are_too_many() -> None:
    def respond(request: Request) -> Response:
        if request.body.get("top_logprobs", 0) > 5:
            return failure(400, "top_logprobs must be at most 5")
        return completion("No", choice=logprobs(MASSES))

    async with StubServer(respond) as stub:
        respondent = opened(stub)
        answers = await asked(respondent, [Pending(item(0)), Pending(item(1))])
    assert respondent.exact
    assert len(answers) == 4


@pytest.mark.parametrize("options", [{"sample": True}, {"temperature": 0.7}])
async def test_exact_is_off_where_samples_or_another_temperature_are_asked_for(options: dict[str, Any]) -> None:
    async with StubServer(lambda _: completion("No", choice=logprobs(MASSES))) as stub:
        respondent = opened(stub, **options)
        await asked(respondent, [Pending(item(0))])
        assert "logprobs" not in stub.requests[0].body
    assert not respondent.exact


async def test_probabilities_that_vanish_later_are_missing_not_sampled() -> None:
    def respond(request: Request) -> Response:
        return completion("No", choice=logprobs(MASSES) if "A0 " in request.prompt else {})

    async with StubServer(respond) as stub:
        answers = by_step(await asked(opened(stub), [Pending(item(0)), Pending(item(1))]))
    assert answers["i1", "first", 0].text is None
    assert "probabilities" in (answers["i1", "first", 0].error or "")


async def test_the_newer_name_of_the_token_limit_is_found_out() -> None:
    def respond(request: Request) -> Response:
        if "max_tokens" in request.body:
            return failure(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return completion("No")

    async with StubServer(respond) as stub:
        answers = await asked(opened(stub), [Pending(item(0)), Pending(item(1))])
        assert stub.requests[-1].body["max_completion_tokens"] == 2048
    assert [answer.text for answer in answers] == ["No", "No"]


async def test_each_draw_has_a_seed_of_its_own_and_the_same_one_again() -> None:
    seen = []
    for _ in range(2):
        async with StubServer(lambda _: completion("No")) as stub:
            pending = [Pending(item(i), draw=draw) for i in range(2) for draw in range(2)]
            await asked(opened(stub, seed=7, sample=True, extra_body={"top_p": 0.9}), pending)
            assert {r.body["top_p"] for r in stub.requests} == {0.9}
            seen.append(sorted(r.body["seed"] for r in stub.requests))
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 4


# Limits


async def test_the_cost_limit_stops_cleanly_and_keeps_what_was_paid() -> None:
    answers: list[Answer] = []
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    async with StubServer(lambda _: completion("No", usage=usage), delay_s=0.002) as stub:
        # A call costs 1,000 × $1 + 500 × $2 per million: $0.002.
        respondent = opened(stub, sample=True, price=(1.0, 2.0), max_cost=0.1001)
        with pytest.raises(BudgetSpent, match="cost limit"):
            await collect(respondent, items(1000), answers)
        assert len(answers) == len(stub.successes) == 50
    assert sum(answer.cost for answer in answers) == pytest.approx(0.1)
    totals = respondent.provenance()["totals"]
    assert (totals["prompt_tokens"], totals["completion_tokens"]) == (50_000, 25_000)
    assert totals["cost"] == pytest.approx(0.1)


async def collect(respondent: HttpRespondent, pending: Iterable[Pending], into: list[Answer]) -> None:
    try:
        async for answer in respondent.ask(pending):
            into.append(answer)
    finally:
        await respondent.close()


async def test_a_cost_limit_without_a_price_is_refused_unless_the_server_tells_costs() -> None:
    async with StubServer(lambda _: completion("No")) as stub:
        with pytest.raises(BadInput, match="--price"):
            await asked(opened(stub, max_cost=1.0), [Pending(item(0))])
    async with StubServer(lambda _: completion("No", usage=None)) as stub:
        with pytest.raises(BadInput, match="no token counts"):
            await asked(opened(stub, max_cost=1.0, price=(1.0, 1.0)), [Pending(item(0))])
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}
    async with StubServer(lambda _: completion("No", usage=usage)) as stub:
        answers = await asked(opened(stub, max_cost=1.0), [Pending(item(0))])
    assert [answer.cost for answer in answers] == [0.25]


async def test_the_time_limit_stops_cleanly() -> None:
    answers: list[Answer] = []

    def respond(_: Request) -> Response:
        return completion("No") if len(stub.asked) <= 20 else failure(503, "gone")

    async with StubServer(respond) as stub:
        respondent = opened(stub, sample=True, total_time_s=0.3, retries=1000, backoff_s=10.0)
        with pytest.raises(BudgetSpent, match="time limit"):
            await collect(respondent, items(1000), answers)
        assert len(answers) == len(stub.successes)
    assert 0 < len(answers) <= 20
    assert not [answer for answer in answers if answer.error]


async def test_an_empty_account_ends_the_run_with_a_sentence() -> None:
    answers: list[Answer] = []

    def respond(_: Request) -> Response:
        return completion("No") if len(stub.asked) <= 5 else failure(429, "quota", code="insufficient_quota")

    async with StubServer(respond) as stub:
        with pytest.raises(BudgetSpent, match="used up"):
            await collect(opened(stub, sample=True, concurrency=1), items(1000), answers)
        assert len(answers) == len(stub.successes) == 5
        assert len(stub.asked) == 6


async def test_a_spent_budget_does_not_wait_for_calls_that_a_server_put_off() -> None:
    answers: list[Answer] = []

    def respond(request: Request) -> Response:
        return failure(429, "later", {"Retry-After": "3000"}) if "A3 " in request.prompt else completion("No")

    async with StubServer(respond) as stub:
        respondent = opened(stub, sample=True, price=(10.0, 0.0), max_cost=0.0101, concurrency=4)
        async with asyncio.timeout(20):
            with pytest.raises(BudgetSpent):
                await collect(respondent, items(1000), answers)
    assert len(answers) == 10


async def test_a_server_that_is_gone_for_good_ends_the_run() -> None:
    answers: list[Answer] = []

    def respond(request: Request) -> Response | None:
        return completion("No") if int(request.prompt.split()[2][1:]) < 20 else None

    async with StubServer(respond) as stub:
        with pytest.raises(BadInput, match="stopped answering"):
            await collect(opened(stub, sample=True, retries=1, concurrency=4), items(1000), answers)
    assert [answer.error for answer in answers].count(None) == 20
    assert sum(answer.error is not None for answer in answers) <= 11


async def test_a_server_that_is_too_slow_gives_a_sentence() -> None:
    async with StubServer(delay_s=5) as stub:
        with pytest.raises(BadInput, match="no reply in time"):
            await asked(opened(stub, timeout_s=0.05), [Pending(item(0))])


async def test_concurrency_goes_down_under_refusals_and_up_again() -> None:
    async with StubServer(lambda _: completion("No"), capacity=8, delay_s=0.002) as stub:
        respondent = opened(stub, sample=True, concurrency=64, retries=50)
        await respondent.start()
        low = 0
        count = 0
        async for answer in respondent.ask(items(3000)):
            assert answer.error is None
            count += 1
            if count == 1000:
                low = respondent.provenance()["concurrency"]["lowest"]
                stub.capacity = None
        await respondent.close()
        assert stub.most_under_way == 64
    assert low <= 8
    assert respondent.provenance()["concurrency"]["last"] == 64


async def test_never_more_in_flight_than_allowed_and_pending_is_drawn_lazily() -> None:
    drawn = 0

    def source() -> Iterator[Pending]:
        nonlocal drawn
        for one in items(10_000):
            drawn += 1
            yield one

    async with StubServer(lambda _: completion("No"), delay_s=0.001) as stub:
        respondent = opened(stub, sample=True, concurrency=7)
        await respondent.start()
        answers = respondent.ask(source())
        got = [await anext(answers) for _ in range(20)]
        # A reader that lags behind holds the asking up ...
        await asyncio.sleep(0.2)
        assert drawn <= 20 + 7 + 2 * 7 + 7
        # ... and one that leaves ends it.
        await answers.aclose()
        before = len(stub.asked)
        await asyncio.sleep(0.05)
        assert len(stub.asked) == before
        await respondent.close()
        assert stub.most_under_way <= 7
    assert len({answer.item for answer in got}) == 20


async def test_an_error_of_the_source_is_raised_after_what_was_answered() -> None:
    def source() -> Iterator[Pending]:
        yield from items(5)
        raise BadInput("the world file is gone")

    answers: list[Answer] = []
    async with StubServer(lambda _: completion("I cannot tell.")) as stub:
        with pytest.raises(BadInput, match="world file"):
            await collect(opened(stub, sample=True), source(), answers)
    assert len(answers) == 5


# Bad input, and what must never be shown


@pytest.mark.parametrize(
    ("url", "key", "words"),
    [
        (None, None, "--base-url"),
        ("localhost:8000/v1", None, "http://"),
        ("ftp://example.org/v1", KEY, "http://"),
        ("http://[::1/v1", KEY, "http://"),
        ("https://api.example.org/v1", None, "OPENAI_API_KEY"),
        ("https://api.example.org/v1", "a\nb", "line breaks"),
    ],
)
def test_bad_addresses_and_missing_keys_give_a_sentence(url: str | None, key: str | None, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        open_http("m", base_url=url, api_key=key)
    assert key is None or key not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/v1", "http://127.0.0.1:1/v1", "http://[::1]:8/v1", "http://10.0.0.3/v1"]
)
def test_local_endpoints_need_no_key(url: str) -> None:
    assert open_http("m", base_url=url).provenance()["base_url"] == url


def test_url_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.example.org/v1/chat/completions")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert open_http("m").provenance()["base_url"] == "https://api.example.org/v1"


@pytest.mark.parametrize(
    "options", [{"concurrency": 0}, {"temperature": -1}, {"max_cost": 0}, {"price": (1.0,)}, {"timeout_s": math.nan}]
)
def test_numbers_out_of_range_give_a_sentence(options: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        open_http("m", base_url="http://localhost/v1", **options)


def test_list_prices_are_known_for_their_own_host_only() -> None:
    ours = open_http("gpt-4o-mini", base_url="https://api.openai.com/v1", api_key=KEY)
    other = open_http("gpt-4o-mini", base_url="https://api.example.org/v1", api_key=KEY)
    assert ours.provenance()["options"]["price"] == [0.15, 0.6]
    assert other.provenance()["options"]["price"] is None


async def test_an_unreachable_url_gives_a_sentence() -> None:
    async with StubServer() as stub:
        url = stub.url
    with pytest.raises(BadInput, match=r"Cannot reach http://127\.0\.0\.1"):
        await asked(opened(url), [Pending(item(0))])


@pytest.mark.parametrize(
    ("status", "words"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "does not know the model stub")]
)
async def test_a_refused_key_and_an_unknown_model_give_a_sentence(status: int, words: str) -> None:
    async with StubServer(lambda _: failure(status, f"the server's own words about {KEY}")) as stub:
        with pytest.raises(BadInput, match=words) as caught:
            await asked(opened(stub, api_key=KEY), [Pending(item(0))])
    assert "the server's own words" in str(caught.value)
    assert KEY not in str(caught.value)


async def test_a_server_that_never_makes_sense_gives_a_sentence() -> None:
    async with StubServer(lambda _: Response(200, b"<html>login</html>")) as stub:
        with pytest.raises(BadInput, match="no usable answer"):
            await asked(opened(stub, retries=2), [Pending(item(0))])


async def test_no_secret_in_provenance_or_errors() -> None:
    def respond(request: Request) -> Response:
        if "A0 " in request.prompt:
            return completion("No")
        return failure(400, f"bad request, you sent {request.headers['authorization']} and {KEY} and pass-word-1")

    async with StubServer(respond) as stub:
        url = stub.url + "?token=pass-word-1"
        respondent = opened(url, api_key=KEY, sample=True, extra_body={"api_key": "pass-word-2"})
        answers = await asked(respondent, [Pending(item(0)), Pending(item(1))])
        assert stub.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert stub.requests[0].path == "/v1/chat/completions?token=pass-word-1"
    shown = json.dumps(respondent.provenance()) + repr(answers) + repr(respondent)
    assert answers[-1].error is not None
    assert KEY not in shown
    assert "pass-word" not in shown


async def test_provenance_names_what_the_server_returned() -> None:
    rng = random.Random(0)
    async with StubServer(lambda _: completion("No", model=f"stub-{rng.randrange(2)}")) as stub:
        respondent = opened(stub, sample=True)
        await asked(respondent, items(40))
    told = respondent.provenance()
    assert told["served_models"] == ["stub-0", "stub-1"]
    assert told["system_fingerprints"] == ["fp_stub"]
    assert told["totals"]["calls"] == 40
    assert told["totals"]["prompt_tokens"] == 4000

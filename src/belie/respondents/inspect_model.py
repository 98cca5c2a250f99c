"""Any Inspect AI model as a respondent: ``anthropic/…``, ``openai/…``, ``vllm/…`` and some thirty more.

Knows: how Inspect AI makes a model, asks it and reports usage and failures (its own retries and connections).
Does not know: any provider; the order of a conversation (``conversation``). Sampled answers only.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import math
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Any

from belie.csq.answers import PARSER_VERSION, split_reasoning
from belie.items import Answer, Item, Pending, Step
from belie.respondents.allowance import Allowance, Price, list_price
from belie.respondents.base import BadInput
from belie.respondents.conversation import call_seed, converse
from belie.respondents.talk import spoken
from belie.runs.redaction import redact, redact_text

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Model, ModelOutput

#: Where a provider's models are served, for list prices.
_HOSTS = {"openai": "api.openai.com"}
_MOST_NAMES = 20


def open_inspect(
    model: str,
    *,
    temperature: float = 1.0,
    max_tokens: int = 2048,
    concurrency: int = 20,
    timeout_s: float = 120.0,
    total_time_s: float | None = None,
    max_cost: float | None = None,
    price: Price | None = None,
    retries: int = 8,
    seed: int | None = None,
    base_url: str | None = None,
    model_args: dict[str, Any] | None = None,
) -> InspectRespondent:
    """A respondent for an Inspect AI model string; nothing is sent before the first question.

    ``timeout_s`` bounds one try, ``retries`` their number, ``total_time_s`` the whole run from ``ask`` on.
    ``price``: US dollars per million (prompt, completion) tokens; without one the cost that Inspect AI reports
    counts, if it does. ``seed`` is sent mixed with the item and draw. ``model_args`` go to the provider as they are.

    Raises ``BadInput``: no such provider, its key or its package is missing, the model cannot be made.
    """
    try:
        from inspect_ai.model import GenerateConfig, get_model
    except ImportError as missing:
        raise BadInput(f"{model} needs Inspect AI, which cannot be imported ({missing}): pip install belie.") from None
    config = GenerateConfig(
        temperature=temperature,
        max_tokens=max_tokens,
        max_connections=concurrency,
        max_retries=retries,
        attempt_timeout=math.ceil(timeout_s),
    )
    args: dict[str, Any] = {} if model_args is None else model_args
    try:
        made = get_model(model, config=config, base_url=base_url, memoize=False, **args)
    except Exception as failure:
        raise BadInput(_cannot_make(model, failure)) from None
    provider, _, name = model.partition("/")
    allowance = Allowance(price or list_price(_HOSTS.get(provider, ""), name), max_cost, total_time_s)
    return InspectRespondent(model, made, allowance, concurrency=concurrency, timeout_s=timeout_s, seed=seed)


class InspectRespondent:
    """See ``open_inspect``."""

    exact = False

    def __init__(
        self, name: str, model: Model, allowance: Allowance, *, concurrency: int, timeout_s: float, seed: int | None
    ) -> None:
        self.name = name
        self._model = model
        self._allowance = allowance
        self._concurrency = concurrency
        self._timeout_s = timeout_s
        self._seed = seed
        self._served: set[str] = set()
        self._probed: Answer | None = None
        self._limits: set[asyncio.Timeout] = set()
        self._ended: Exception | None = None

    async def start(self, item: Item | None = None) -> None:
        """Asks ``item``'s first question, if one is given, so that a wrong key or model name shows at once.

        The reply is kept and is the answer to that item's first draw. Raises ``BadInput`` where there is none.
        """
        if item is None:
            return
        answer = await self.say(Pending(item), "first", None)
        if answer.error is not None:
            await self.close()
            raise BadInput(f"{self.name} gave no answer to the first question: {answer.error}")
        self._probed = answer

    async def ask(self, pending: Iterable[Pending]) -> AsyncGenerator[Answer, None]:
        self._allowance.begin()
        answers = converse(pending, self, self._concurrency)
        try:
            async for answer in answers:
                yield answer
        finally:
            await answers.aclose()

    async def say(self, one: Pending, step: Step, said: str | None) -> Answer:
        probed, item = self._probed, one.item
        if probed is not None and (probed.item, probed.step, probed.draw) == (item.id, step, one.draw):
            self._probed = None
            return probed
        from inspect_ai.model import GenerateConfig

        allowance = self._allowance
        allowance.check()
        config = GenerateConfig(seed=None if self._seed is None else call_seed(self._seed, one, step))
        allowance.under_way += 1
        # Inspect AI retries on its own: a call may outlast the run's time by one try, not by all of them.
        left = allowance.left_s() + self._timeout_s
        limit = asyncio.timeout(left if left < math.inf else None)
        self._limits.add(limit)
        try:
            async with limit:
                output = await self._model.generate(_messages(item, said), config=config)
        except Exception as failure:
            if isinstance(failure, TimeoutError) and limit.expired():
                allowance.check()
                if self._ended is not None:
                    raise self._ended from None
            return Answer(item.id, step, one.draw, error=_words(failure))
        finally:
            allowance.under_way -= 1
            self._limits.discard(limit)
        return self._answer(output, item, step, one.draw)

    def stop(self, why: Exception) -> None:
        self._ended = why
        cut = asyncio.get_running_loop().time() + self._timeout_s
        for limit in self._limits:
            when = limit.when()
            limit.reschedule(cut if when is None else min(cut, when))

    def provenance(self) -> dict[str, Any]:
        allowance = self._allowance
        config = self._model.config.model_dump(exclude_none=True)
        told = {
            "respondent": "inspect",
            "model": self.name,
            "served_models": sorted(self._served),
            "exact": False,
            "how": "sampled: through Inspect AI",
            "inspect_ai": importlib.metadata.version("inspect_ai"),
            "parser_version": PARSER_VERSION,
            "options": {
                **config,
                "seed": self._seed,
                **allowance.limits(),
            },
            "totals": allowance.totals(),
        }
        return redact(told)

    async def close(self) -> None:
        await self._model.__aexit__(None, None, None)

    def _answer(self, output: ModelOutput, item: Item, step: Step, draw: int) -> Answer:
        usage = output.usage
        tokens, told_cost = (0, 0), None
        if usage is not None:
            cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
            tokens, told_cost = (usage.input_tokens + cached, usage.output_tokens), usage.total_cost
        allowance = self._allowance
        cost = allowance.add(tokens, told_cost)
        if allowance.max_cost is not None and allowance.price is None and told_cost is None:
            raise BadInput(f"A cost limit needs the price of {self.name}: give --price IN,OUT in $ per million tokens.")
        if output.model and len(self._served) < _MOST_NAMES:
            self._served.add(output.model)
        if output.empty:
            error = redact_text(f"no message came back ({output.error or 'no reason given'})")
            return Answer(item.id, step, draw, error=error, tokens=tokens, cost=cost)
        text, reasoning = _text(output)
        return Answer(item.id, step, draw, None, text, reasoning, None, tokens, cost)


def _messages(item: Item, said: str | None) -> list[ChatMessage]:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    return [kinds[role](content=text) for role, text in spoken(item, said)]


def _text(output: ModelOutput) -> tuple[str, str | None]:
    """Visible text, and reasoning from blocks of its own and from ``<think>`` tags."""
    content = output.message.content
    apart: list[str] = []
    if isinstance(content, str):
        said = content
    else:
        apart = [
            (part.summary or "") if part.redacted else part.reasoning for part in content if part.type == "reasoning"
        ]
        said = "\n".join(part.text for part in content if part.type == "text")
    visible, inline = split_reasoning(said)
    return visible, "\n".join(filter(None, [*apart, inline])) or None


def _cannot_make(model: str, failure: Exception) -> str:
    """One sentence for a model that Inspect AI could not make."""
    words = _words(failure)
    if isinstance(failure, ValueError) and "not recognized" in words:
        provider = model.partition("/")[0]
        return (
            f"{model}: neither Belie (local/, http/, sim/) nor Inspect AI knows {provider!r}. "
            "Write provider/model, for instance anthropic/NAME."
        )
    return f"{model} cannot be used: {words}"


def _words(failure: Exception) -> str:
    """What a failure says, on one line of at most 300 characters, without markup and secrets."""
    from rich.errors import MarkupError
    from rich.text import Text

    said = getattr(failure, "provider_message", None) or getattr(failure, "message", None) or str(failure)
    said = str(said)
    if type(failure).__name__ == "PrerequisiteError":
        with contextlib.suppress(MarkupError):
            said = Text.from_markup(said).plain
        said = said.removeprefix("ERROR:").strip()
    said = " ".join(said.split()) or type(failure).__name__
    return redact_text(said)[:300]

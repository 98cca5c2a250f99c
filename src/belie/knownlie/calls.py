"""One call to one player's model: where its answer is kept, what it costs, and what happens when it fails.

Knows: Inspect's model and limits; that a failed call is missing, never an answer.
Does not know: what is asked, or what the reply means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput, ModelUsage, ResponseSchema
from inspect_ai.model._model_output import usage_input_tokens
from inspect_ai.tool import ToolChoice, ToolDef
from inspect_ai.util import LimitExceededError, json_schema
from pydantic import BaseModel

from belie.knownlie.answered import Answered, key
from belie.knownlie.ledger import Ledger, Role, Usage
from belie.runs import redact_text

#: Tokens of one reply of a model that runs in process, unless the run says otherwise.
LOCAL_TOKENS = 400
_LONGEST = 300


class CallFailed(Exception):  # an outcome, told to the user as such
    """A call that brought no answer after its retries, or a player that gave nothing usable; the message says why."""


@dataclass(slots=True)
class Line:
    """A player's line to its model, for one round (or one gate).

    ``scope`` names run, trajectory and round: with the number of the call it is the name by which ``answered`` keeps
    the answer, so that a round which is played again takes every answer that it already got from there, and equal
    prompts in different rounds never share one. None: nothing is kept. ``seed`` makes draws differ between rounds where
    a provider takes one.
    """

    model: Model
    role: Role
    scope: str | None
    ledger: Ledger
    temperature: float = 0.0
    seed: int | None = None
    structured: bool = True
    max_tokens: int | None = None
    answered: Answered | None = None
    asked: int = field(default=0, init=False)

    async def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[ToolDef] = (),
        tool_choice: ToolChoice | None = None,
        schema: type[BaseModel] | None = None,
    ) -> ModelOutput:
        """One answer. Raises ``CallFailed`` where the provider failed, filtered the content, or sent nothing."""
        number = self.asked + 1  # counted only once answered: a failed call leaves no gap for a replay to miss
        config = _config(self.model, self.temperature, self.max_tokens)
        if self.seed is not None:
            config.seed = (self.seed + number) % 2**31
        if tools:
            config.parallel_tool_calls = False
        if schema is not None and self.structured:
            config.response_schema = _response_schema(schema)
        name, output = "", None
        if self.answered is not None and self.scope is not None:
            name = key(f"{self.scope}|{self.role}|{number}|{self.model}", messages)
            output = self.answered.get(name)
        if output is None:
            try:
                output = await self.model.generate(
                    list(messages), tools=list(tools), tool_choice=tool_choice, config=config, cache=False
                )
            except LimitExceededError:
                raise
            except Exception as error:
                raise CallFailed(f"{self.role}: {reason(error)}") from error
            if self.answered is not None and name and output.stop_reason != "content_filter":
                self.answered.put(name, output)
        self.asked = number
        self.ledger.book(self.role, _usage(output))
        if output.empty:
            raise CallFailed(f"{self.role}: the provider sent no answer")
        if output.stop_reason == "content_filter":
            raise CallFailed(f"{self.role}: stopped by the provider's content filter")
        return output


class _Shared(ResponseSchema):
    """A schema that nobody changes: Inspect copies a call's settings several times, and need not copy this."""

    def __deepcopy__(self, memo: dict[int, object] | None = None) -> _Shared:
        return self


@cache
def _response_schema(schema: type[BaseModel]) -> ResponseSchema:
    return _Shared(name=schema.__name__.lower(), json_schema=json_schema(schema))


def reason(error: BaseException) -> str:
    """Why a call failed, in one short line without secrets."""
    told = getattr(error, "provider_message", None) or str(error)
    first = next((line.strip() for line in str(told).splitlines() if line.strip()), "")
    return redact_text(f"{type(error).__name__}: {first}"[:_LONGEST])


def _config(model: Model, temperature: float, max_tokens: int | None) -> GenerateConfig:
    """Temperature 0 is greedy; in-process transformers refuse the number 0 and take the top token instead.

    There a call is also short by default: a small model that never stops would hold up everyone.
    """
    if type(model.api).__name__ != "HuggingFaceAPI":
        return GenerateConfig(temperature=temperature, max_tokens=max_tokens)
    max_tokens = max_tokens or LOCAL_TOKENS
    return (
        GenerateConfig(top_k=1, max_tokens=max_tokens)
        if temperature == 0
        else GenerateConfig(temperature=temperature, max_tokens=max_tokens)
    )


def _usage(output: ModelOutput) -> Usage:
    usage = output.usage or ModelUsage()
    read, written = usage_input_tokens(usage) or 0, usage.output_tokens
    return Usage(1, read, written, usage.total_cost or 0.0, (output.model,) if output.model else ())

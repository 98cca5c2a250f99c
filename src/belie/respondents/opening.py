"""From a model string to a respondent (DESIGN, "Model strings").

Knows: which prefix is whose, and which options each kind takes.
Does not know: how any of them answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belie.items import Item
from belie.respondents.base import BadInput, Respondent


@dataclass(frozen=True, slots=True)
class Options:
    """What a user can say about a respondent. None leaves it to the kind. Times are in seconds, cost in US dollars."""

    sample: bool = False
    temperature: float = 1.0
    max_tokens: int | None = None
    seed: int = 0
    base_url: str | None = None
    concurrency: int | None = None
    timeout: float | None = None
    max_time: float | None = None
    max_cost: float | None = None
    price: tuple[float, float] | None = None
    batch_tokens: int | None = None
    threads: int | None = None
    device: str | None = None


async def open_respondent(model: str, options: Options = Options(), probe: Item | None = None) -> Respondent:
    """Opens ``local/…``, ``http/…``, ``sim/…``, or any Inspect AI model string, ready to be asked.

    ``probe`` is the first item that will be asked: what a server can do is found out with it, and its answer kept.
    Raises BadInput for a string that no kind knows, a missing key, an unreachable server, a folder without weights.
    """
    kind, slash, rest = model.partition("/")
    if not slash or not kind or not rest:
        raise BadInput(
            f"{model!r} is not a model string. Write local/smollm2-135m (open weights), http/NAME with --base-url "
            "(an OpenAI-compatible server), sim/PROFILE (simulated), or an Inspect AI model such as anthropic/NAME."
        )
    if options.temperature < 0:
        raise BadInput(f"Temperature {options.temperature:g}: it must be 0 or more.")
    if kind == "local":
        try:
            from belie.respondents.local import open_local
        except ModuleNotFoundError as missing:
            raise BadInput(
                f"local/… needs {missing.name}, which is not installed: pip install 'belie[local]'."
            ) from None
        return open_local(
            model,
            sample=options.sample,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            batch_tokens=options.batch_tokens,
            device=options.device,
            threads=options.threads,
            seed=options.seed,
        )
    if kind == "sim":
        from belie.respondents.simulated import open_simulated

        return open_simulated(model, seed=options.seed, sample=options.sample)
    paid: dict[str, Any] = {
        "temperature": options.temperature,
        "seed": options.seed,
        "max_cost": options.max_cost,
        "price": options.price,
        "total_time_s": options.max_time,
        **_given(
            base_url=options.base_url,
            max_tokens=options.max_tokens,
            concurrency=options.concurrency,
            timeout_s=options.timeout,
        ),
    }
    if kind == "http":
        from belie.respondents.http import open_http

        asked = open_http(rest, sample=options.sample, **paid)
    else:
        from belie.respondents.inspect_model import open_inspect

        asked = open_inspect(model, **paid)
    await asked.start(probe)
    return asked


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}

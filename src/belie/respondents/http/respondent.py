"""A model behind an OpenAI-compatible endpoint, asked call by call over aiohttp.

Knows: how a run begins (the probe that finds out what the endpoint can do), one call of an item, the totals.
Does not know: the order of a conversation (``conversation``), the bytes (``wire``), retries (``calls``).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from typing import Any

import aiohttp

from belie.csq.answers import PARSER_VERSION
from belie.items import Answer, Item, Pending, Step
from belie.respondents.allowance import Allowance, Price, list_price
from belie.respondents.base import BadInput, BudgetSpent
from belie.respondents.conversation import call_seed, converse
from belie.respondents.http import probe
from belie.respondents.http.address import Address, locate
from belie.respondents.http.calls import Failed, Line
from belie.respondents.http.pace import Pace
from belie.respondents.http.wire import Said, Template
from belie.respondents.talk import spoken
from belie.runs.redaction import REDACTED, redact, redact_text

#: So many calls in a row that failed after all their tries (at least; else as many as go at once): the server is gone.
LEAST_LOST = 8
#: How many different ids and fingerprints of the served model are kept.
MOST_NAMES = 20


def open_http(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    sample: bool = False,
    temperature: float = 1.0,
    max_tokens: int = 2048,
    concurrency: int = 64,
    timeout_s: float = 120.0,
    total_time_s: float | None = None,
    max_cost: float | None = None,
    price: Price | None = None,
    retries: int = 8,
    backoff_s: float = 0.5,
    extra_body: dict[str, Any] | None = None,
    seed: int | None = None,
) -> HttpRespondent:
    """A respondent for ``http/<model>``; nothing is sent before ``start``.

    ``base_url`` and ``api_key`` default to OPENAI_BASE_URL and OPENAI_API_KEY. ``sample`` forbids exact answers; so
    does a ``temperature`` other than 1, since servers return the probabilities of the untempered model.
    ``max_tokens`` bounds a sampled reply (reasoning included). ``price``: US dollars per million (prompt, completion)
    tokens, default from prices.yaml. ``timeout_s``: one try; ``total_time_s``: from the first ``ask``. ``backoff_s``:
    the first wait before a retry, doubled each time up to 30 s. ``extra_body`` is added to every request. ``seed``
    is sent mixed with the item and draw, so that draws differ.

    Raises ``BadInput``: see ``locate``; a number out of its range.
    """
    if not model.strip():
        raise BadInput(
            "No model name after http/: give the id that the endpoint knows, for instance http/llama-3.1-8b."
        )
    positive = {"concurrency": concurrency, "max_tokens": max_tokens, "timeout_s": timeout_s, "max_cost": max_cost}
    for name, value in positive.items():
        if value is not None and not value > 0:
            raise BadInput(f"{name} must be above 0, not {value}.")
    not_negative = {"temperature": temperature, "retries": retries, "total_time_s": total_time_s}
    for name, value in not_negative.items():
        if value is not None and not value >= 0:
            raise BadInput(f"{name} must not be below 0, not {value}.")
    if price is not None and not (len(price) == 2 and min(price) >= 0):
        raise BadInput(
            "A price is two numbers: US dollars per million prompt tokens and per million completion tokens."
        )
    address = locate(base_url, api_key)
    return HttpRespondent(
        model,
        address,
        sample=sample,
        temperature=temperature,
        max_tokens=max_tokens,
        timeout_s=timeout_s,
        retries=retries,
        backoff_s=backoff_s,
        extra_body=extra_body,
        seed=seed,
        pace=Pace(concurrency),
        allowance=Allowance(price or list_price(address.completions.host or "", model), max_cost, total_time_s),
    )


class HttpRespondent:
    """See ``open_http``. Call ``start`` before reading ``exact``; ``ask`` calls it if nobody has."""

    def __init__(
        self,
        model: str,
        address: Address,
        *,
        sample: bool,
        temperature: float,
        max_tokens: int,
        timeout_s: float,
        retries: int,
        backoff_s: float,
        extra_body: dict[str, Any] | None,
        seed: int | None,
        pace: Pace,
        allowance: Allowance,
    ) -> None:
        self.name = f"http/{model}"
        self.exact = False
        self.how = "not yet asked"
        self.started = False
        self._model = model
        self._address = address
        self._may_be_exact = not sample and temperature == 1.0
        self._why_sampled = "asked for" if sample else f"temperature {temperature:g}, exact answers need 1"
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._tokens_field = "max_tokens"
        self._timeout_s = timeout_s
        self._retries = retries
        self._backoff_s = backoff_s
        self._extra_body = extra_body
        self._seed = seed
        self._pace = pace
        self._allowance = allowance
        self._top_logprobs = 0
        self._lost = 0
        self._template = self._new_template(0)
        self._session: aiohttp.ClientSession | None = None
        self._line: Line | None = None
        self._probed: tuple[str, Answer] | None = None
        self._names: dict[str, set[str]] = {"model": set(), "fingerprint": set()}

    async def start(self, item: Item | None = None) -> None:
        """Makes the first call, which finds out whether the endpoint is there and whether answers can be exact.

        The question is ``item``'s; its reply is kept and is the answer to that item's first draw, so nothing is
        asked twice. Without an item a small question of our own is asked, and only its cost is kept.

        Raises ``BadInput``: the endpoint is not reachable, refuses the key, does not know the model, or gives no
        usable reply. ``BudgetSpent``: the limits allow no call at all.
        """
        if self.started:
            return
        try:
            await self._start(item)
        except Exception:
            await self.close()
            raise
        self.started = True

    async def _start(self, item: Item | None) -> None:
        said, answer = await self._probe(item or probe.QUESTION)
        if item is not None:
            self._probed = (item.id, answer)
        if said is None:
            self.how = f"sampled: the probe had no reply ({answer.error})"
        elif self._allowance.max_cost is not None and said.usage_cost is None:
            self._check_cost_is_known(said)
        if self.exact:
            self._template = self._new_template(self._top_logprobs)

    async def ask(self, pending: Iterable[Pending]) -> AsyncGenerator[Answer, None]:
        source = iter(pending)
        ahead: list[Pending] = []
        if not self.started:
            ahead = [one for one in (next(source, None),) if one is not None]
            if not ahead:
                return
            await self.start(None if ahead[0].first is not None else ahead[0].item)
        self._allowance.begin()
        answers = converse(_chained(ahead, source), self, self._pace.ceiling)
        try:
            async for answer in answers:
                yield answer
        finally:
            await answers.aclose()

    async def say(self, one: Pending, step: Step, said: str | None) -> Answer:
        item = one.item
        if self._probed is not None and step == "first" and one.draw == 0 and self._probed[0] == item.id:
            answer, self._probed = self._probed[1], None
            return answer
        outcome = await self._open_line().call(self._body(one, step, said))
        return self._answer(outcome, item, step, one.draw)

    def stop(self, why: Exception) -> None:
        if self._line is not None:
            self._line.ended = why

    def provenance(self) -> dict[str, Any]:
        allowance, pace = self._allowance, self._pace
        told = {
            "respondent": "http",
            "model": self._model,
            "base_url": self._address.shown,
            "served_models": sorted(self._names["model"]),
            "system_fingerprints": sorted(self._names["fingerprint"]),
            "exact": self.exact,
            "how": self.how,
            "parser_version": PARSER_VERSION,
            "options": {
                "temperature": self._temperature,
                "max_tokens": self._max_tokens,
                "seed": self._seed,
                "extra_body": self._extra_body,
                "timeout_s": self._timeout_s,
                "retries": self._retries,
                "concurrency": pace.ceiling,
                **allowance.limits(),
            },
            "totals": {
                **allowance.totals(),
                "trouble": dict(sorted(self._line.trouble.items())) if self._line else {},
            },
            "concurrency": {"lowest": pace.lowest, "last": int(pace.limit)},
        }
        return redact(told, self._secrets())

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = self._line = None

    # One call

    def _body(self, one: Pending, step: Step, said: str | None) -> bytes:
        seed = None if self._seed is None else call_seed(self._seed, one, step)
        return self._template.body(spoken(one.item, said), seed)

    def _answer(self, outcome: Said | Failed, item: Item, step: Step, draw: int) -> Answer:
        if isinstance(outcome, Failed):
            return self._missing(outcome, item, step, draw)
        self._lost = 0
        cost = self._allowance.add(outcome.tokens, outcome.usage_cost)
        self._note("model", outcome.model)
        self._note("fingerprint", outcome.fingerprint)
        if not self.exact:
            return Answer(item.id, step, draw, None, outcome.text, outcome.reasoning, None, outcome.tokens, cost)
        if outcome.p is None:
            error = "the reply came without the probabilities that this endpoint gave before"
            return Answer(item.id, step, draw, error=error, tokens=outcome.tokens, cost=cost)
        return Answer(item.id, step, draw, outcome.p, tokens=outcome.tokens, cost=cost)

    def _missing(self, failed: Failed, item: Item, step: Step, draw: int) -> Answer:
        """The error of an item, unless it will be the error of every item: then the run ends."""
        if failed.no_credit:
            raise BudgetSpent(self._clean(f"{self._address.shown} says that the account is used up: {failed.reason}"))
        if failed.status == 401:
            raise BadInput(self._clean(f"{self._address.shown} no longer takes the key: {failed.reason}"))
        if failed.status in (0, 200, 429) or failed.status >= 500:
            self._lost += 1
            if self._lost >= max(LEAST_LOST, self._pace.ceiling):
                gone = f"{self._address.shown} has stopped answering: {failed.reason}."
                raise BadInput(self._clean(f"{gone} What was answered is kept; continue when it is back."))
        tries = "1 try" if failed.tries == 1 else f"{failed.tries} tries"
        return Answer(item.id, step, draw, error=self._clean(f"no answer after {tries}: {failed.reason}"))

    # The probe

    async def _probe(self, item: Item) -> tuple[Said | None, Answer]:
        """The first call, with probabilities if the endpoint gives them; sets ``exact`` and ``how``."""
        refused = ""
        ways = [*probe.TOP_LOGPROBS, 0] if self._may_be_exact else [0]
        while True:
            top = ways.pop(0)
            outcome = await self._try(item, top)
            if isinstance(outcome, Said):
                if self._may_be_exact:
                    self.exact, how = probe.verdict(outcome, top, refused)
                    self.how = self._clean(how)
                else:
                    self.how = f"sampled: {self._why_sampled}"
                self._top_logprobs = top
                return outcome, self._answer(outcome, item, "first", 0)
            if not ways or outcome.status not in probe.MAYBE_THE_LOGPROBS or outcome.no_credit:
                break
            refused = refused or outcome.reason
        if probe.is_filtered(outcome):
            return None, self._missing(outcome, item, "first", 0)
        cleaned = replace(outcome, reason=self._clean(outcome.reason))
        raise probe.unusable(cleaned, self._address.shown, self._model)

    async def _try(self, item: Item, top: int) -> Said | Failed:
        while True:
            self._template = self._new_template(top)
            body = self._body(Pending(item), "first", None)
            outcome = await self._open_line().call(body, reconnects=probe.RECONNECTS)
            renamed = "max_completion_tokens"
            if isinstance(outcome, Said) or renamed not in outcome.reason or self._tokens_field == renamed:
                return outcome
            self._tokens_field = renamed

    def _check_cost_is_known(self, said: Said) -> None:
        if self._allowance.price is None:
            raise BadInput(f"A cost limit needs the price of {self._model}: give --price IN,OUT, $ per million tokens.")
        if not any(said.tokens):
            raise BadInput(
                f"{self._address.shown} reports no token counts, so no cost limit can be kept: leave it out."
            )

    # What is kept

    def _new_template(self, top: int) -> Template:
        return Template(
            self._model,
            temperature=self._temperature,
            max_tokens=1 if self.exact else self._max_tokens,
            tokens_field=self._tokens_field,
            top_logprobs=top,
            extra_body=self._extra_body,
        )

    def _open_line(self) -> Line:
        if self._line is None:
            headers = {"Content-Type": "application/json", "User-Agent": "belie"}
            if self._address.key is not None and self._address.completions.user is None:
                headers["Authorization"] = f"Bearer {self._address.key}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                trust_env=not self._address.local,
            )
            self._line = Line(
                self._session,
                self._address.completions,
                pace=self._pace,
                allowance=self._allowance,
                retries=self._retries,
                backoff_s=self._backoff_s,
                seed=self._seed or 0,
            )
        return self._line

    def _note(self, what: str, name: str | None) -> None:
        names = self._names[what]
        if name is not None and len(names) < MOST_NAMES:
            names.add(name)

    def _secrets(self) -> list[str]:
        url = self._address.completions
        return [secret for secret in (self._address.key, url.password, *url.query.values()) if secret]

    def _clean(self, text: str) -> str:
        for secret in self._secrets():
            text = text.replace(secret, REDACTED)
        return redact_text(text, self._secrets())


def _chained(ahead: list[Pending], source: Iterable[Pending]) -> Iterable[Pending]:
    yield from ahead
    yield from source

"""One call that survives a bad network and a busy server: retries, waiting, what a failure means.

Knows: HTTP status codes, Retry-After, backoff. Does not know: items, answers, what a reply says (``read`` does).
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import aiohttp
from yarl import URL

from belie.respondents.allowance import Allowance
from belie.respondents.http.pace import Pace
from belie.respondents.http.wire import MalformedError, Said, error_code, read, words

#: Asking again can help; other statuses than these and 5xx are the server's last word.
RETRIED = frozenset({408, 409, 425, 429})
#: The account is empty: as good as a spent budget.
NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_credits"})
LONGEST_BACKOFF_S = 30.0
LONGEST_RETRY_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that got no usable reply. ``status``: the last HTTP status, 0 where no connection was made."""

    status: int
    reason: str
    code: str = ""
    tries: int = 1

    @property
    def no_credit(self) -> bool:
        return self.status == 402 or self.code in NO_CREDIT


class Line:
    """Sends request bodies to one URL, at a pace and within an allowance."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: URL,
        *,
        pace: Pace,
        allowance: Allowance,
        retries: int,
        backoff_s: float,
        seed: int,
    ) -> None:
        self._session = session
        self._url = url
        self._pace = pace
        self._allowance = allowance
        self._retries = retries
        self._backoff_s = backoff_s
        self._random = random.Random(seed)
        self.trouble: Counter[str] = Counter()
        #: Why no call gets another try, once the run ends.
        self.ended: Exception | None = None

    async def call(self, body: bytes, *, reconnects: int | None = None) -> Said | Failed:
        """The reply to one request, or why there is none.

        ``reconnects``: the retries where no connection or no reply came, if fewer than for other troubles.
        Raises ``BudgetSpent`` when the allowance is used up, and ``ended`` once that is set.
        """
        tries = 0
        while True:
            outcome, wait = await self._once(body)
            if isinstance(outcome, Said):
                return outcome
            tries += 1
            self.trouble[_kind(outcome)] += 1
            retries = self._retries if reconnects is None or outcome.status else min(reconnects, self._retries)
            if tries > retries or not _worth_retrying(outcome):
                return Failed(outcome.status, outcome.reason, outcome.code, tries)
            longest = min(LONGEST_BACKOFF_S, self._backoff_s * 2.0 ** min(tries - 1, 30))
            backoff = longest * self._random.uniform(0.5, 1.0)
            wait = max(backoff, (wait or 0.0) * self._random.uniform(1.0, 1.1))
            await self._rest(min(wait, self._allowance.left_s()))

    async def _rest(self, seconds: float) -> None:
        """Waits, but not much beyond the end of the run."""
        while seconds > 0 and self.ended is None:
            nap = min(seconds, 1.0)
            await asyncio.sleep(nap)
            seconds -= nap
        if self.ended is not None:
            raise self.ended

    async def _once(self, body: bytes) -> tuple[Said | Failed, float | None]:
        """One try: what came of it, and the seconds that the server asked to wait."""
        pace, allowance = self._pace, self._allowance
        await pace.enter()
        overloaded = False
        counted = False
        try:
            allowance.check()
            allowance.under_way += 1
            counted = True
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                status = response.status
                raw = await response.read()
                if status == 200:
                    return read(raw), None
                overloaded = status == 429 or status >= 500
                if 300 <= status < 400:
                    return Failed(status, f"the server redirects (HTTP {status}), which is not followed"), None
                failed = Failed(status, f"HTTP {status}: {words(raw)}", error_code(raw))
                return failed, _retry_after(response.headers.get("Retry-After"))
        except MalformedError as malformed:
            return Failed(200, str(malformed)), None
        except TimeoutError:
            overloaded = True
            return Failed(0, "no reply in time"), None
        except (aiohttp.ClientError, OSError, ValueError) as trouble:
            return Failed(
                0, f"the connection failed ({' '.join(str(trouble).split()) or type(trouble).__name__})"
            ), None
        finally:
            if counted:
                allowance.under_way -= 1
            pace.leave(overloaded)


def _worth_retrying(failed: Failed) -> bool:
    return not failed.no_credit and (failed.status in (0, 200) or failed.status in RETRIED or failed.status >= 500)


def _kind(failed: Failed) -> str:
    return {0: "no connection or no reply in time", 200: "unusable body"}.get(failed.status, f"HTTP {failed.status}")


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait: from a number or an HTTP date. None where the header is absent or makes no sense."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
        seconds = max(0.0, seconds)
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, LONGEST_RETRY_AFTER_S)

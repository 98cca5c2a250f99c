"""How many calls may be under way: less when the server pushes back, more again when it does not.

Knows: additive increase, multiplicative decrease. Does not know: HTTP, retries, waiting times.
"""

from __future__ import annotations

import asyncio
from collections import deque

CUT = 0.7
STEPS_UP = 16


class Pace:
    """A gate with a moving limit between 1 and ``ceiling``.

    Calls are counted in rounds of ``limit`` calls. The first overload of a round cuts the limit to 0.7 of it, a
    round without one raises it by a sixteenth of the ceiling. ``lowest`` is the least the limit has been.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.lowest = ceiling
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._left_in_round = ceiling
        self._was_cut = False

    async def enter(self) -> None:
        """Waits until one more call is allowed. Pair with ``leave``."""
        while self.in_flight >= int(self.limit):
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise
        self.in_flight += 1

    def leave(self, overloaded: bool) -> None:
        """One call has ended; ``overloaded``: the server answered 429 or 5xx, or not in time."""
        self.in_flight -= 1
        self._left_in_round -= 1
        if overloaded and not self._was_cut:
            self.limit = max(1.0, self.limit * CUT)
            self.lowest = min(self.lowest, int(self.limit))
            self._was_cut = True
            self._left_in_round = int(self.limit)
        elif self._left_in_round <= 0:
            if not self._was_cut:
                self.limit = min(float(self.ceiling), self.limit + self.ceiling / STEPS_UP)
            self._was_cut = False
            self._left_in_round = int(self.limit)
        if self._waiting:
            self._wake()

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1

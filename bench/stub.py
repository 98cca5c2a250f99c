"""A chat completions server that costs little: every request is answered after a fixed time with one word.

Knows: as much HTTP/1.1 as a keep-alive client with Content-Length needs. Does not know: JSON, what is asked.

Run by itself, ``python bench/stub.py DELAY_S``: the first line it prints is its port. ``GET /spent`` tells the requests
answered and the processor seconds used so far, so that what the server costs can be told beside what it served.
Uses uvloop where it is installed. Replies that are due together are sent by one timer.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections import deque
from typing import cast

_BODY = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "stub-0001",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101},
    }
).encode()


def _reply(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


_REPLY = _reply(_BODY)
_TICK_S = 0.001


class Stub:
    """Holds what is due when; replies leave in the order in which requests came."""

    def __init__(self, loop: asyncio.AbstractEventLoop, delay_s: float) -> None:
        self.loop, self.delay_s = loop, delay_s
        self.answered = 0
        self._due: deque[tuple[float, asyncio.Transport]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, transport: asyncio.Transport) -> None:
        self._due.append((self.loop.time() + self.delay_s, transport))
        if self._timer is None:
            self._timer = self.loop.call_later(self.delay_s, self._send)

    def spent(self) -> bytes:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return json.dumps({"answered": self.answered, "cpu_s": used.ru_utime + used.ru_stime}).encode()

    def _send(self) -> None:
        now = self.loop.time()
        while self._due and self._due[0][0] <= now:
            _, transport = self._due.popleft()
            if not transport.is_closing():
                transport.write(_REPLY)
                self.answered += 1
        self._timer = None
        if self._due:
            self._timer = self.loop.call_later(max(self._due[0][0] - now, _TICK_S), self._send)


class Connection(asyncio.Protocol):
    """One client: requests one after the other, each headers and a body of Content-Length bytes."""

    def __init__(self, stub: Stub) -> None:
        self.stub = stub
        self._seen = b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
            if self._missing <= 0:
                self._missing = 0
                self.stub.ask(self.transport)
            return
        self._seen += data
        end = self._seen.find(b"\r\n\r\n")
        if end < 0:
            return
        head, got = self._seen[:end], len(self._seen) - end - 4
        self._seen = b""
        if head.startswith(b"GET"):
            self.transport.write(_reply(self.stub.spent()))
            return
        at = head.lower().find(b"content-length:")
        self._missing = int(head[at + 15 :].split(b"\r\n", 1)[0]) - got
        if self._missing <= 0:
            self._missing = 0
            self.stub.ask(self.transport)


async def serve(delay_s: float) -> None:
    loop = asyncio.get_running_loop()
    stub = Stub(loop, delay_s)
    server = await loop.create_server(lambda: Connection(stub), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    try:
        import uvloop  # pyright: ignore[reportMissingImports]

        run = uvloop.run
    except ImportError:
        run = asyncio.run
    run(serve(float(sys.argv[1])))


if __name__ == "__main__":
    main()

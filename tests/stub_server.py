"""An OpenAI-compatible chat completions server for tests: deterministic answers, faults on demand, all calls counted.

Knows: just enough HTTP/1.1 and the chat completions JSON. Does not know: Belie.
Runs inside the test's event loop, or as ``python tests/stub_server.py PORT DELAY_S`` for measurements.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

FAULTS = ("429", "500", "drop", "html", "truncated", "empty")


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return "\n".join(f"{turn['role']}: {turn['content']}" for turn in self.body["messages"])


@dataclass(frozen=True)
class Response:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    announced: int | None = None
    """Content-Length to claim instead of the body's: the connection then closes after the body."""


def completion(text: str | None, **more: Any) -> Response:
    """A reply that says ``text``; ``more`` may hold message (extra fields), choice (extra fields), usage, model."""
    message = {"role": "assistant", "content": text, **more.get("message", {})}
    body = {
        "id": "x",
        "object": "chat.completion",
        "model": more.get("model", "stub-0001"),
        "system_fingerprint": "fp_stub",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **more.get("choice", {})}],
        "usage": more.get("usage", {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}),
    }
    return Response(200, json.dumps(body).encode())


def failure(status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    return Response(status, json.dumps({"error": {"message": message, **more}}).encode(), headers or {})


def logprobs(masses: Mapping[str, float]) -> dict[str, Any]:
    """The ``logprobs`` field for a first token with these next-token masses."""
    top = [{"token": token, "logprob": math.log(mass)} for token, mass in masses.items()]
    return {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}


def hashed_answer(request: Request) -> Response:
    """Yes, No or something else, from a hash of the prompt."""
    digit = hashlib.sha256(request.prompt.encode()).digest()[0]
    return completion("Yes" if digit < 120 else "No" if digit < 240 else "I cannot tell.")


class StubServer:
    """Answers every request with ``respond(request)``; None closes the connection without a word.

    ``faults``: shares of requests (by kind, see FAULTS) that go wrong instead. ``delay_s`` before every reply.
    ``capacity``: requests beyond so many at once are refused with 429.
    """

    def __init__(
        self,
        respond: Callable[[Request], Response | None] = hashed_answer,
        *,
        faults: Mapping[str, float] | None = None,
        delay_s: float = 0.0,
        capacity: int | None = None,
        seed: int = 0,
    ) -> None:
        self.respond = respond
        self.faults = dict(faults or {})
        self.delay_s = delay_s
        self.capacity = capacity
        self.random = random.Random(seed)
        self.requests: list[Request] = []
        self.asked: Counter[str] = Counter()
        self.successes: Counter[str] = Counter()
        self.faulty: Counter[str] = Counter()
        self.under_way = 0
        self.most_under_way = 0
        self.keep_requests = True
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> StubServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def start(self, port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=1024)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def answer(self, request: Request) -> Response | None:
        if self.keep_requests:
            self.requests.append(request)
        prompt = request.prompt
        self.asked[prompt] += 1
        if self.capacity is not None and self.under_way > self.capacity:
            return failure(429, "too many requests at once", {"Retry-After": "0"})
        draw = self.random.random()
        for kind, share in self.faults.items():
            draw -= share
            if draw < 0:
                self.faulty[kind] += 1
                return self._faulty(kind, request)
        response = self.respond(request)
        if response is not None and response.status == 200 and response.announced is None:
            self.successes[prompt] += 1
        return response

    def _faulty(self, kind: str, request: Request) -> Response | None:
        good = self.respond(request)
        body = good.body if good is not None else b""
        match kind:
            case "429":
                return failure(429, "slow down", {"Retry-After": "0"})
            case "500":
                return failure(500, "internal error")
            case "html":
                return Response(200, b"<html><body>Yes</body></html>", {"Content-Type": "text/html"})
            case "truncated":
                return Response(200, body[: len(body) // 2])
            case "empty":
                return Response(200, b"")
            case "drop" if self.random.random() < 0.5:
                return Response(200, body[: len(body) // 2], announced=len(body))
            case _:
                return None


class _Connection(asyncio.Protocol):
    def __init__(self, stub: StubServer) -> None:
        self._stub = stub
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        first, *lines = self._buffer[:head_end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        end = head_end + 4 + int(headers.get("content-length", "0"))
        if len(self._buffer) < end:
            return
        body = json.loads(self._buffer[head_end + 4 : end])
        del self._buffer[:end]
        stub = self._stub
        stub.under_way += 1
        stub.most_under_way = max(stub.most_under_way, stub.under_way)
        response = stub.answer(Request(first.split()[1], headers, body))
        if stub.delay_s:
            asyncio.get_running_loop().call_later(stub.delay_s, self._send, response)
        else:
            asyncio.get_running_loop().call_soon(self._send, response)

    def _send(self, response: Response | None) -> None:
        self._stub.under_way -= 1
        assert self._transport is not None
        if response is None:
            self._transport.abort()
            return
        length = len(response.body) if response.announced is None else response.announced
        headers = {"Content-Type": "application/json", **response.headers, "Content-Length": str(length)}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._transport.write(f"HTTP/1.1 {response.status} Status\r\n{head}\r\n".encode() + response.body)
        if response.announced is not None:
            self._transport.close()


async def _serve(port: int, delay_s: float) -> None:
    stub = StubServer(delay_s=delay_s)
    stub.keep_requests = False
    await stub.start(port)
    print(stub.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2])))

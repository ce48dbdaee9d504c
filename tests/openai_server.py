"""A provider on this machine: a real HTTP server that speaks OpenAI's chat completions, from a script.

Every request takes the next entry of the script; the last one is used again and again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Says:
    """A reply: text, and calls as (name, arguments). In a stream it comes in pieces of `piece` characters.

    With `cut` the connection ends in the middle of a stream; `pause` seconds lie between its pieces.
    """

    text: str = ""
    calls: Sequence[tuple[str, str]] = ()
    finish: str = ""
    usage: tuple[int, int] = (12, 3)
    thinking: str = ""
    piece: int = 3
    cut: bool = False
    pause: float = 0.0


@dataclass(frozen=True)
class Fails:
    """An error answer. `text` is the message of an error object, or all of the body when `plain`."""

    status: int
    text: str
    code: str = ""
    plain: bool = False
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hangs:
    """No answer until the server is stopped."""


Answer = Says | Fails | Hangs
Script = Answer | Callable[[Json], Answer]
"""An entry of the script: an answer, or a function that makes one of the request."""


class Server(ThreadingHTTPServer):
    """The provider. `requests` are the bodies it got, in order; `left` is set when a client hung up on a stream."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[Json] = []
        self.script: list[Script] = [Says("Hello.")]
        self.released = threading.Event()
        self.left = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def play(self, *script: Script) -> None:
        """Begins a script; the requests so far are forgotten."""
        self.requests, self.script = [], list(script)

    def next(self, request: Json) -> Answer:
        with self.lock:
            self.requests.append(request)
            entry = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return entry if isinstance(entry, Says | Fails | Hangs) else entry(request)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.next(request)
        if isinstance(answer, Hangs):
            self.server.released.wait(30)
            return
        if isinstance(answer, Fails):
            error = {"error": {"message": answer.text, "type": "invalid_request_error", "code": answer.code or None}}
            self._send(answer.status, answer.text if answer.plain else json.dumps(error), answer.headers)
        elif request.get("stream"):
            self._stream(answer)
        else:
            self._send(200, json.dumps(whole(answer)), {})

    def _send(self, status: int, body: str, headers: dict[str, str]) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, answer: Says) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        pieces = list(chunks(answer))
        for piece in pieces[: len(pieces) // 2] if answer.cut else pieces:
            self.server.released.wait(answer.pause)
            try:
                self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
                self.wfile.flush()
            except ConnectionError:
                self.server.left.set()
                return
        if not answer.cut:
            self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _head(kind: str) -> Json:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "local"}


def _usage(answer: Says) -> Json:
    prompt, output = answer.usage
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


def _calls(answer: Says) -> list[Json]:
    return [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(answer.calls)
    ]


def whole(answer: Says) -> Json:
    """The answer as one response."""
    message: Json = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {**_head("chat.completion"), "choices": [choice], "usage": _usage(answer)}


def chunks(answer: Says) -> Iterator[Json]:
    """The answer as the pieces of a stream."""

    def piece(delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**_head("chat.completion.chunk"), "choices": [choice]}

    yield piece({"role": "assistant", "content": ""})
    for kind, text in (("reasoning_content", answer.thinking), ("content", answer.text)):
        for start in range(0, len(text), answer.piece):
            yield piece({kind: text[start : start + answer.piece]})
    for n, call in enumerate(_calls(answer)):
        arguments = call["function"]["arguments"]
        yield piece({"tool_calls": [{"index": n, **call, "function": {**call["function"], "arguments": ""}}]})
        for start in range(0, len(arguments), answer.piece):
            part = {"index": n, "function": {"arguments": arguments[start : start + answer.piece]}}
            yield piece({"tool_calls": [part]})
    yield piece({}, answer.finish or ("tool_calls" if answer.calls else "stop"))
    yield {**_head("chat.completion.chunk"), "choices": [], "usage": _usage(answer)}


@contextmanager
def serving() -> Iterator[Server]:
    """A server while the context lasts."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()

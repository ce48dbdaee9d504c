"""A model in a GGUF file, run in this process by llama.cpp (extra `local`: xllamacpp). Nothing is sent anywhere."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, closing
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from clew.codecs import openai
from clew.errors import BadPayload, BadReply, MissingExtra, ModelError, OverflowReply, TransportError, UnknownName
from clew.models.base import Delta, ModelCall, Reply

WINDOW = 8_192
"""Tokens of context by default: the memory it takes grows with it, and so does the time of a long prompt."""

_OVERFLOW = "exceed_context_size_error"
"""What llama.cpp calls a prompt that is larger than the window."""

_FAILURES = (ArithmeticError, LookupError, MemoryError, OSError, RuntimeError)
"""What C++ throws, in Python's words."""

Chunk = Mapping[str, Any]


class Local:
    """The model of a GGUF file, loaded on the first call.

    - `context_window`: tokens
    - `threads`: processor threads (None: as many as there are processors)
    - `options`: what else a request of llama.cpp's chat completions takes (`temperature`, `seed`, `response_format`, …)

    Calls of several threads come one after the other. Raises `MissingExtra` when the package is not there and
    `UnknownName` when the file is not; calls raise the typed errors of `clew.errors` only. `close` frees the memory.
    """

    def __init__(
        self, file: str | Path, *, context_window: int = WINDOW, threads: int | None = None, **options: Any
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtra("local", "xllamacpp", "models in files")
        self.file = Path(file)
        if not self.file.is_file():
            raise UnknownName(f"there is no model file {self.file}; give the path of a GGUF file")
        self.name = f"local:{self.file.name}"
        self.context_window = context_window
        self._threads = threads or os.cpu_count() or 1
        self._options = options
        self._loading = threading.Lock()
        self._loaded: Any = None

    def complete(self, call: ModelCall) -> Reply:
        """Runs the model and waits for the whole reply."""
        *_, reply = self.stream(call)
        assert isinstance(reply, Reply)
        return reply

    async def acomplete(self, call: ModelCall) -> Reply:
        """As `complete`, in threads."""
        async with aclosing(self.astream(call)) as pieces:
            *_, reply = [piece async for piece in pieces]
        assert isinstance(reply, Reply)
        return reply

    def stream(self, call: ModelCall) -> Generator[Delta | Reply, None, None]:
        """Runs the model; the reply's pieces as they come, at last the whole. Closing the generator stops the model."""
        with closing(self._pieces(call, threading.Event())) as pieces:
            yield from pieces

    async def astream(self, call: ModelCall) -> AsyncGenerator[Delta | Reply, None]:
        """As `stream`, in threads."""
        import asyncio  # takes as long to import as all of Clew: only for who uses it

        stopped = threading.Event()
        pieces = self._pieces(call, stopped)
        try:
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                yield piece
        finally:
            stopped.set()  # a thread may still wait for the next piece: it cannot be closed meanwhile

    def _pieces(self, call: ModelCall, stopped: threading.Event) -> Generator[Delta | Reply, None, None]:
        start, chunks = time.perf_counter(), []
        request, seconds = self._request(call), call.meta.get("timeout")
        with closing(_watched(self._server.handle_chat_completions, request, stopped, seconds)) as coming:
            for chunk in coming:
                chunks.append(chunk)
                yield from _deltas(chunk)
        yield _reply(_joined(chunks), time.perf_counter() - start)

    def close(self) -> None:
        """Unloads the model; the next call loads it again."""
        with self._loading:
            self._loaded = None

    @property
    def _server(self) -> Any:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> Any:
        xllamacpp = import_module("xllamacpp")
        params = xllamacpp.CommonParams()
        params.model.path = str(self.file)
        params.n_ctx = self.context_window
        params.n_parallel = 1  # the window is not shared between requests
        params.cpuparams.n_threads = self._threads
        params.warmup = False
        params.ui = False
        params.verbosity = -1
        params.api_keys = [secrets.token_hex()]  # it also listens on a port of this machine: nobody else may use it
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise TransportError(
                f"llama.cpp could not load {self.file}: {error} Is it a whole GGUF file, and is there memory for it "
                f"with a window of {self.context_window:,} tokens?"
            ) from error

    def _request(self, call: ModelCall) -> dict[str, Any]:
        request: dict[str, Any] = {**self._options, "messages": openai.encode(call.messages)}
        if call.tools:
            request["tools"] = [dict(t) for t in call.tools]
        if call.max_output is not None:
            request["max_tokens"] = call.max_output
        return request


def _watched(
    handle: Callable[..., Any], request: Mapping[str, Any], stopped: threading.Event, seconds: float | None
) -> Generator[Chunk, None, None]:
    """The chunks of a streamed response as they come, for so many seconds (None: any time). The model runs in a thread.

    When this is closed, or `stopped` is set, it stops: with its next word, or once it has read the prompt."""
    chunks: SimpleQueue[Chunk | Exception | None] = SimpleQueue()
    end = None if seconds is None else time.monotonic() + seconds

    def take(chunk: Chunk) -> bool:
        chunks.put(chunk)
        return stopped.is_set()

    def work() -> None:
        try:
            handle({**request, "stream": True, "stream_options": {"include_usage": True}}, take)
            chunks.put(None)
        except ValueError as error:  # what it says to a request that it does not understand
            chunks.put(BadReply(f"llama.cpp refused the request: {error}", raw=str(error)))
        except _FAILURES as error:
            chunks.put(TransportError(f"llama.cpp failed ({type(error).__name__}): {error}", raw=str(error)))

    threading.Thread(target=work, name="llama.cpp").start()
    try:
        while (chunk := chunks.get(timeout=None if end is None else max(0.0, end - time.monotonic()))) is not None:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
    except Empty as error:
        raise TransportError(f"the reply was not whole after {seconds:g} s") from error
    finally:
        stopped.set()


def _deltas(chunk: Chunk) -> Generator[Delta, None, None]:
    for choice in chunk.get("choices", ())[:1]:
        for field, thinking in (("reasoning_content", True), ("content", False)):
            if text := choice["delta"].get(field):
                yield Delta(text, thinking)


def _joined(chunks: list[Chunk]) -> dict[str, Any]:
    """The response that the chunks of a stream make up."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    response: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": None}]}
    for chunk in chunks:
        if "error" in chunk:
            return {"error": chunk["error"]}
        response["usage"] = chunk.get("usage") or response.get("usage")
        for choice in chunk.get("choices", ()):
            delta = choice["delta"]
            for field in ("content", "reasoning_content"):
                if delta.get(field):
                    message[field] = (message.get(field) or "") + delta[field]
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
                call["id"] = piece.get("id") or call.get("id")
                for field, text in piece.get("function", {}).items():
                    call["function"][field] += text or ""
            response["choices"][0]["finish_reason"] = choice["finish_reason"]
    if calls:
        message["tool_calls"] = [calls[n] for n in sorted(calls)]
    return response


def _reply(response: Mapping[str, Any], latency: float) -> Reply:
    if "error" in response:
        raise _typed(response["error"])
    if response["choices"][0]["finish_reason"] is None:
        raise TransportError("the stream broke off before the reply was whole")
    try:
        message, finish, usage = openai.decode_reply(response)
    except BadPayload as error:
        raise BadReply(f"llama.cpp's response is malformed: {error}", raw=json.dumps(response, default=str)) from error
    return Reply(message, finish, usage, latency)


def _typed(error: Mapping[str, Any]) -> ModelError:
    said = str(error.get("message", ""))
    if error.get("type") == _OVERFLOW:
        return OverflowReply(f"the request exceeds the model's window: {said}", raw=said, meta={"status": 400})
    return BadReply(f"llama.cpp refused the request: {said}", raw=said, meta={"status": error.get("code")})

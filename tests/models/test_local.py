"""A model in a file: what llama.cpp sends becomes deltas, replies and typed errors. The model itself is run in
`tests/live`, by hand or in an optional job."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from clew.errors import BadReply, MissingExtra, OverflowReply, TransportError, UnknownName
from clew.messages import ToolCall, user
from clew.models import Delta, Local, ModelCall, Reply, Streaming


class Server:
    """Sends chunks as llama.cpp's server does: to a function, which says when to stop."""

    def __init__(self, *chunks: Mapping[str, Any] | Exception) -> None:
        self.chunks = chunks
        self.requests: list[Mapping[str, Any]] = []

    def handle_chat_completions(self, request: Mapping[str, Any], take: Callable[[Any], bool]) -> None:
        self.requests.append(request)
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            if take(chunk):
                return


def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}},
}
OVERFLOW = {"error": {"code": 400, "message": "request (3030 tokens) is too long", "type": "exceed_context_size_error"}}


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Local, Server]]:
    """A model whose file was loaded into the given server."""
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "xllamacpp.py").write_text("", encoding="utf-8")

    def made(*chunks: Mapping[str, Any] | Exception, **options: Any) -> tuple[Local, Server]:
        model, server = Local(tmp_path / "model.gguf", **options), Server(*chunks)
        model._loaded = server
        return model, server

    return made


CALL = ModelCall((user("你好"),), ({"type": "function"},), 40)


def test_pieces_come_first_then_the_whole(local: Callable[..., tuple[Local, Server]]) -> None:
    model, server = local(
        piece(role="assistant", content=None),
        piece(reasoning_content="hm"),
        piece(content="你"),
        piece(content="好"),
        piece("stop"),
        USAGE,
        temperature=0,
    )
    assert isinstance(model, Streaming)
    *deltas, reply = model.stream(CALL)
    assert deltas == [Delta("hm", True), Delta("你"), Delta("好")]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.usage.input, reply.usage.cache_read) == ("你好", "stop", 5, 4)
    (request,) = server.requests
    assert request["messages"] == [{"role": "user", "content": "你好"}]
    assert (request["max_tokens"], request["temperature"], request["stream"]) == (40, 0, True)


def test_calls_of_tools_are_put_together(local: Callable[..., tuple[Local, Server]]) -> None:
    def call(index: int, **function: str) -> dict[str, Any]:
        return {"index": index, "function": function} | ({"id": f"c{index}"} if "name" in function else {})

    model, _ = local(
        piece(tool_calls=[call(0, name="recall", arguments="")]),
        piece(tool_calls=[call(0, arguments='{"query"')]),
        piece(tool_calls=[call(1, name="search", arguments="{}"), call(0, arguments=': "猫"}')]),
        piece("tool_calls"),
    )
    (reply,) = model.stream(CALL)
    assert isinstance(reply, Reply)
    assert reply.message.calls == (ToolCall("c0", "recall", '{"query": "猫"}'), ToolCall("c1", "search", "{}"))
    assert reply.finish_reason == "tool_calls"


def test_who_stops_listening_stops_the_model(local: Callable[..., tuple[Local, Server]]) -> None:
    more = threading.Event()

    class Slow(Server):
        def handle_chat_completions(self, request: Mapping[str, Any], take: Callable[[Any], bool]) -> None:
            take(piece(content="one"))
            more.wait(60)
            self.stopped = take(piece(content="two"))
            done.set()

    done = threading.Event()
    model, _ = local()
    model._loaded = server = Slow()
    pieces = model.stream(CALL)
    assert next(pieces) == Delta("one")
    pieces.close()
    more.set()
    assert done.wait(60)
    assert server.stopped is True


class Endless(Server):
    """Sends words until it is told to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = threading.Event()

    def handle_chat_completions(self, request: Mapping[str, Any], take: Callable[[Any], bool]) -> None:
        while not take(piece(content="word ")):
            self.stopped.wait(0.01)
        self.stopped.set()


@pytest.mark.parametrize("streamed", [True, False])
def test_who_is_cancelled_stops_the_model(local: Callable[..., tuple[Local, Server]], streamed: bool) -> None:
    model, _ = local()
    model._loaded = server = Endless()

    async def watched() -> None:
        async for _ in model.astream(CALL):
            pass

    async def given_up() -> None:
        call = asyncio.create_task(watched() if streamed else _done(model))
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(given_up())
    assert server.stopped.wait(60)


async def _done(model: Local) -> None:
    await model.acomplete(CALL)


def test_a_call_has_a_time_limit(local: Callable[..., tuple[Local, Server]]) -> None:
    model, _ = local()
    call = ModelCall(CALL.messages, meta={"timeout": 0.1})
    model._loaded = server = Endless()
    with pytest.raises(TransportError, match=r"not whole after 0\.1 s"):
        model.complete(call)
    assert server.stopped.wait(60)
    model._loaded = server = Endless()
    with pytest.raises(TransportError, match=r"not whole after 0\.1 s"):
        asyncio.run(model.acomplete(call))
    assert server.stopped.wait(60)


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        (OVERFLOW, OverflowReply),
        ({"error": {"code": 500, "message": "no"}}, BadReply),
        (ValueError("Expected 'messages' to be an array"), BadReply),
        (RuntimeError("failed to decode"), TransportError),
        (piece(content="half a"), TransportError),
    ],
)
def test_errors_are_typed(local: Callable[..., tuple[Local, Server]], chunk: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        list(local(chunk)[0].stream(CALL))
    with pytest.raises(kind):
        local(chunk)[0].complete(CALL)


async def _collected(model: Local) -> list[Any]:
    return [one async for one in model.astream(CALL)]


def test_async_is_the_same(local: Callable[..., tuple[Local, Server]]) -> None:
    model, _ = local(piece(content="a"), piece("stop"))
    first, reply = asyncio.run(_collected(model))
    assert (first, reply.text) == (Delta("a"), "a")
    reply = asyncio.run(local(piece(content="b"), piece("length"))[0].acomplete(CALL))
    assert (reply.text, reply.finish_reason) == ("b", "length")


def test_what_is_missing_is_said(
    local: Callable[..., tuple[Local, Server]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownName, match="there is no model file"):
        Local(tmp_path / "nowhere.gguf")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"clew\[local\]"):
        Local(tmp_path / "model.gguf")

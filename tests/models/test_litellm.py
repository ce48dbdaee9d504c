"""The LiteLLM adapter against a real HTTP server that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clew.errors import (
    BadBudget,
    BadReply,
    EmptyReply,
    ModelError,
    OverflowReply,
    RateLimited,
    RefusedReply,
    TransportError,
    TruncatedReply,
)
from clew.messages import Thinking, ToolCall, Usage, assistant, system, tool, user
from clew.models import LiteLLM, Model, ModelCall, Offline, Reply, Steps, answer_text, arun, run

# LiteLLM leaves HTTP clients and an event loop open; they may be collected during any of these tests.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(scope="module", autouse=True)
def leavings() -> Iterator[None]:
    """Collects what LiteLLM left open, so that no later test is blamed for it."""
    yield
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed", ResourceWarning)
        gc.collect()


ROOT = Path(__file__).parents[2]

Way = Callable[[LiteLLM, ModelCall], Reply]


class Provider(ThreadingHTTPServer):
    """Answers every request with `status` and `answer`, after `delay` seconds, and keeps the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.released = threading.Event()
        self.reply("Hello.")

    def reply(self, text: str | None, finish: str = "stop", usage: Any = None, **fields: Any) -> None:
        message = {"role": "assistant", "content": text, **fields}
        counts = usage or {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        self.status, self.hangs = 200, False
        self.answer: Any = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "local",
            "choices": [choice],
            "usage": counts,
        }

    def fail(self, status: int, message: str, code: str = "") -> None:
        self.status, self.hangs = status, False
        self.answer = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(json.loads(body))
        if self.server.hangs:
            self.server.released.wait(30)
        answer = json.dumps(self.server.answer).encode() if not isinstance(self.server.answer, bytes) else b"<html>"
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


def model(provider: Provider, **options: Any) -> LiteLLM:
    base = f"http://127.0.0.1:{provider.server_port}/v1"
    settings = {"retries": 0, "timeout": 20.0, **options}
    return LiteLLM("openai/local", context_window=8_000, api_base=base, api_key="none", **settings)


def sync(llm: LiteLLM, call: ModelCall) -> Reply:
    return llm.complete(call)


def in_a_loop(llm: LiteLLM, call: ModelCall) -> Reply:
    return asyncio.run(llm.acomplete(call))


both = pytest.mark.parametrize("way", [sync, in_a_loop])
CALL = ModelCall((system("Be brief."), user("你好")), max_output=50)


@both
def test_a_reply_comes_back_whole(provider: Provider, way: Way) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 80}, "completion_tokens_details": {"reasoning_tokens": 5}}
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109, **details}
    provider.reply("你好！", usage=usage, reasoning_content="A greeting.")
    reply = way(model(provider, temperature=0.5), CALL)
    assert reply.text == answer_text(reply) == "你好！"
    assert reply.finish_reason == "stop"
    assert reply.usage == reply.message.usage == Usage(input=20, output=9, cache_read=80, reasoning=5)
    assert [p.text for p in reply.message.parts if isinstance(p, Thinking)] == ["A greeting."]
    assert reply.latency > 0
    [request] = provider.requests
    assert request["model"] == "local"
    assert request["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "你好"},
    ]
    assert request["max_tokens"] == 50
    assert request["temperature"] == 0.5


@both
def test_tools_go_out_and_calls_come_back(provider: Provider, way: Way) -> None:
    called = {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    provider.reply(None, "tool_calls", tool_calls=[called])
    schema = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
    history = (user("List."), assistant(ToolCall("c1", "bash", '{"command": "pwd"}')), tool("c1", "/src"))
    reply = way(model(provider), ModelCall(history, tools=(schema,)))
    assert [(c.id, c.name, c.arguments) for c in reply.message.calls] == [("c2", "bash", '{"command": "ls"}')]
    assert reply.finish_reason == "tool_calls"
    with pytest.raises(EmptyReply, match="only tool calls"):
        answer_text(reply)
    [request] = provider.requests
    assert request["tools"] == [schema]
    assert request["messages"][1]["tool_calls"][0]["id"] == request["messages"][2]["tool_call_id"] == "c1"
    assert "max_tokens" not in request


@both
def test_a_reply_can_be_sent_back(provider: Provider, way: Way) -> None:
    provider.reply("One.")
    first = way(model(provider), CALL)
    way(model(provider), ModelCall((*CALL.messages, first.message, user("And?"))))
    assert [m["role"] for m in provider.requests[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert provider.requests[1]["messages"][2] == {"role": "assistant", "content": "One."}


@both
@pytest.mark.parametrize(
    ("text", "finish", "fields", "error"),
    [
        ("The user ask", "length", {}, TruncatedReply),
        ("", "stop", {}, EmptyReply),
        (None, "stop", {}, EmptyReply),
        ("", "length", {"reasoning_content": "so much to think about"}, TruncatedReply),
        ("", "content_filter", {}, RefusedReply),
        (None, "stop", {"refusal": "I cannot help with that."}, RefusedReply),
        ("API Error: 500", "stop", {}, BadReply),
    ],
)
def test_replies_that_are_no_answers(
    provider: Provider, way: Way, text: str | None, finish: str, fields: dict[str, Any], error: type[ModelError]
) -> None:
    provider.reply(text, finish, **fields)
    with pytest.raises(error) as caught:
        answer_text(way(model(provider), CALL))
    assert type(caught.value) is error


@both
@pytest.mark.parametrize(
    ("status", "message", "code", "error"),
    [
        (400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded", OverflowReply),
        (413, "Request Entity Too Large", "", OverflowReply),
        (429, "Rate limit reached for requests", "rate_limit_exceeded", RateLimited),
        (400, "Rejected: content_policy_violation (invalid_request_error)", "content_policy_violation", RefusedReply),
        (400, "Invalid value: 'rol'", "invalid_value", BadReply),
        (401, "Incorrect API key provided", "invalid_api_key", BadReply),
        (404, "The model does not exist", "model_not_found", BadReply),
        (500, "The server had an error", "", TransportError),
        (502, "Bad gateway", "", TransportError),
        (503, "Overloaded", "", TransportError),
    ],
)
def test_errors_have_types(
    provider: Provider, way: Way, status: int, message: str, code: str, error: type[ModelError]
) -> None:
    provider.fail(status, message, code)
    with pytest.raises(ModelError) as caught:
        way(model(provider), CALL)
    assert type(caught.value) is error
    assert message in caught.value.raw
    assert caught.value.meta["status"] == status
    assert caught.value.retryable == (error in (RateLimited, TransportError))
    assert len(provider.requests) == 1


@both
def test_a_provider_that_hangs_or_is_not_there(provider: Provider, way: Way) -> None:
    provider.hangs = True
    with pytest.raises(TransportError):
        way(model(provider, timeout=0.3), CALL)
    nobody = LiteLLM("openai/local", context_window=8_000, api_base="http://127.0.0.1:9/v1", api_key="x", retries=0)
    with pytest.raises(TransportError):
        way(nobody, CALL)


@both
@pytest.mark.parametrize("answer", [{"object": "chat.completion", "choices": []}, {"choices": None}, {}, b"<html>"])
def test_responses_that_are_no_completions(provider: Provider, way: Way, answer: Any) -> None:
    provider.answer = answer
    with pytest.raises(ModelError) as caught:
        answer_text(way(model(provider), CALL))
    assert isinstance(caught.value, BadReply | TransportError | EmptyReply)


def test_busy_providers_are_asked_again(provider: Provider) -> None:
    provider.fail(503, "Overloaded")
    with pytest.raises(TransportError):
        model(provider, retries=1).complete(CALL)
    assert len(provider.requests) == 2


def test_it_is_a_model_and_drives_computations(provider: Provider) -> None:
    def steps() -> Steps[str]:
        reply = yield CALL
        return answer_text(reply)

    llm = model(provider)
    assert isinstance(llm, Model)
    assert llm.name == "openai/local"
    assert run(steps(), Offline(llm)) == asyncio.run(arun(steps(), Offline(llm))) == "Hello."


def test_windows_are_given_or_known_or_asked_for() -> None:
    assert LiteLLM("openai/local", context_window=8_000).context_window == 8_000
    assert LiteLLM("gpt-4o").context_window == 128_000
    with pytest.raises(BadBudget, match=r"LiteLLM\('nobody/knows-this', context_window=\.\.\.\)"):
        LiteLLM("nobody/knows-this").context_window  # noqa: B018


@pytest.mark.parametrize("missing", ["litellm", "openai"])  # the package, and one that it needs
def test_without_the_package_the_error_names_the_extra(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from clew.errors import MissingExtra\n"
        "from clew.messages import user\n"
        "from clew.models import LiteLLM, ModelCall\n"
        "try: LiteLLM('gpt-4o', context_window=8000).complete(ModelCall((user('hi'),)))\n"
        "except MissingExtra as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 'pip install "clew[models]"' in ran.stdout


def test_without_the_package_it_fails_where_it_is_made_and_not_in_every_compaction() -> None:
    program = (
        "import sys; sys.modules['litellm'] = None\n"
        "from clew.cli import main\n"
        "main(['replay', 'examples/session.jsonl', '--model', 'openai/gpt-4o'])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert 'pip install "clew[models]"' in ran.stderr


def test_importing_clew_does_not_import_litellm() -> None:
    program = (
        "import sys, clew, clew.models, clew.tokens\n"
        "print([m for m in sys.modules if 'litellm' in m or 'tiktoken' in m or m == 'openai'])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['clew.models.litellm']"

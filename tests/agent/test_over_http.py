"""The engine and the LiteLLM model over real HTTP: LiteLLM's own client against a server on this machine."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew import Session, policies
from clew.agent import AgentModule, Delta, Ended, Result, StopReason, tool
from clew.errors import ModelError, OverflowReply, RateLimited, TransportError
from clew.messages import assistant, user
from clew.models import LiteLLM, ModelCall, Reply
from clew.sessions import Compaction
from openai_server import Fails, Hangs, Json, Says, Server, serving

# LiteLLM leaves HTTP clients and an event loop open, which may be collected during any of these tests; and it reads
# every attribute of pydantic's models, the deprecated ones too.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def leavings() -> Iterator[None]:
    """Collects what LiteLLM left open, so that no later test is blamed for it."""
    yield
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed", ResourceWarning)
        gc.collect()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as one:
        yield one


def model(server: Server, **options: Any) -> LiteLLM:
    settings = {"retries": 0, "timeout": 20.0, "context_window": 8_000, **options}
    return LiteLLM("openai/local", api_base=server.url, api_key="none", **settings)


CALL = ModelCall((user("hi"),))


def pieces(llm: LiteLLM, call: ModelCall = CALL) -> list[Delta | Reply]:
    return list(llm.stream(call))


def apieces(llm: LiteLLM, call: ModelCall = CALL) -> list[Delta | Reply]:
    async def collected() -> list[Delta | Reply]:
        return [piece async for piece in llm.astream(call)]

    return asyncio.run(collected())


Watch = Callable[..., list[Delta | Reply]]
both = pytest.mark.parametrize("watch", [pieces, apieces], ids=["sync", "async"])


@both
def test_a_reply_can_be_watched(server: Server, watch: Watch) -> None:
    server.play(Says("Der rote Faden, 线团, 😀.", thinking="let me see", usage=(40, 9)))
    *deltas, reply = watch(model(server))
    assert isinstance(reply, Reply)
    assert reply.text == "Der rote Faden, 线团, 😀."
    assert (reply.usage.prompt, reply.usage.output, reply.finish_reason) == (40, 9, "stop")
    texts = dict.fromkeys((True, False), "")
    for delta in deltas:
        assert isinstance(delta, Delta)
        texts[delta.thinking] += delta.text
    assert texts == {False: reply.text, True: "let me see"}
    assert len(deltas) > 5
    assert server.requests[0]["stream"] is True


@both
def test_calls_in_a_stream_come_whole(server: Server, watch: Watch) -> None:
    server.play(Says("I look.", calls=[("ls", '{"path": "線/路"}'), ("pwd", "{}")]))
    reply = watch(model(server))[-1]
    assert isinstance(reply, Reply)
    assert [(c.name, c.arguments) for c in reply.message.calls] == [("ls", '{"path": "線/路"}'), ("pwd", "{}")]
    assert reply.finish_reason == "tool_calls"


@both
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Says("This breaks off in the middle.", cut=True), TransportError),
        (Fails(429, "Rate limit reached"), RateLimited),
        (Fails(500, "Internal error"), TransportError),
        (Fails(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"), OverflowReply),
    ],
    ids=["cut", "429", "500", "overflow"],
)
def test_what_goes_wrong_in_a_stream_is_typed(server: Server, watch: Watch, answer: Any, kind: Any) -> None:
    server.play(answer)
    with pytest.raises(kind):
        watch(model(server))


def test_who_stops_watching_hangs_up(server: Server) -> None:
    server.play(Says("one two three " * 1_000, pause=0.02))
    watched = model(server).stream(CALL)
    assert isinstance(next(watched), Delta)
    watched.close()
    assert server.left.wait(20), "nobody pays for what nobody reads"


def test_who_is_cancelled_hangs_up(server: Server) -> None:
    server.play(Says("one two three " * 1_000, pause=0.02))

    async def given_up() -> bool:
        begun = asyncio.Event()

        async def watched() -> None:
            async for event in AgentModule(model(server)).astream("hi"):
                if isinstance(event, Delta):
                    begun.set()

        watching = asyncio.create_task(watched())
        await begun.wait()
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        return await asyncio.to_thread(server.left.wait, 20)

    assert asyncio.run(given_up())


@both
def test_a_stream_that_drips_has_a_time_limit(server: Server, watch: Watch) -> None:
    """An HTTP client's limit is for each piece, and each comes in time."""
    server.play(Says("one two three " * 1_000, pause=0.02))
    with pytest.raises(TransportError, match=r"not whole after 0\.3 s"):
        watch(model(server), ModelCall(CALL.messages, meta={"timeout": 0.3}))


# -- the engine

TOO_LONG = {
    "openai": Fails(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. "
        "Please reduce the length of the messages.",
        "context_length_exceeded",
    ),
    "vllm": Fails(400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."),
    "llama.cpp": Fails(400, "the request exceeds the available context size, try increasing it"),
    "lm studio": Fails(400, "The number of tokens to keep is greater than the context length."),
    "anthropic": Fails(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "gemini": Fails(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    "mistral": Fails(400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    "kimi": Fails(400, "Invalid request: Your request exceeded model token limit: 262144"),
    "413": Fails(413, "Request Entity Too Large", plain=True),
}


def size(request: Json) -> int:
    return sum(len(str(m.get("content") or "")) for m in request["messages"])


@pytest.mark.parametrize("says", TOO_LONG.values(), ids=TOO_LONG.keys())
def test_an_overflow_is_recovered_by_compaction(server: Server, says: Fails) -> None:
    with Session.open("memory://", policy=policies.pi(window=128_000)) as session:
        for n in range(60):
            session.append(user(f"Note {n}: " + "the clew led him out again. " * 20))
            session.append(assistant("Noted. " * 60))
        # the window is smaller than its name: the provider refuses what the session thinks is fine
        server.play(lambda request: says if size(request) > 40_000 else Says("Seven."))
        agent = AgentModule(model(server, context_window=128_000), history=session)
        assert agent.run("What was in note 7? 只说数字。") == "Seven."
        assert size(server.requests[0]) > 40_000 >= size(server.requests[-1])
        assert any(isinstance(e.body, Compaction) for e in session.branch())
        assert server.requests[-1]["messages"][-1]["content"] == "What was in note 7? 只说数字。"


def test_an_overflow_that_nothing_helps_is_an_end_with_a_reason(server: Server) -> None:
    server.play(TOO_LONG["openai"])
    agent = AgentModule(model(server))
    result: Result = agent.run("hi", return_state=True)
    assert result.stop_reason is StopReason.OVERFLOW
    assert isinstance(result.error, OverflowReply)
    assert len(server.requests) <= 4, "it is not asked forever"


@tool
def clock(zone: str) -> str:
    """The time in a zone."""
    return f"12:30 in {zone}"


def test_tools_over_http(server: Server) -> None:
    server.play(Says(calls=[("clock", '{"zone": "東京"}'), ("clock", '{"zone": 5}')]), Says("Half past twelve."))
    agent = AgentModule(model(server), tools=[clock], instructions="Be brief.")
    assert agent.run("What time is it?") == "Half past twelve."
    first, second = server.requests
    assert first["tools"][0]["function"]["parameters"]["required"] == ["zone"]
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    assert second["messages"][3]["content"] == "12:30 in 東京"
    assert "Expected `str`" in second["messages"][4]["content"]


def test_a_run_can_be_watched(server: Server) -> None:
    server.play(Says("I look.", calls=[("clock", '{"zone": "Rom"}')]), Says("Half past twelve."))
    agent = AgentModule(model(server), tools=[clock])
    events = list(agent.stream("What time is it?"))
    assert "".join(e.text for e in events if isinstance(e, Delta)) == "I look.Half past twelve."
    assert isinstance(events[-1], Ended)
    assert events[-1].result.final_result == "Half past twelve."

    async def watched() -> list[Any]:
        return [e async for e in agent.astream("And now?")]

    server.play(Says("The same."))
    events = asyncio.run(watched())
    assert "".join(e.text for e in events if isinstance(e, Delta)) == "The same."


def test_a_busy_provider_is_asked_again(server: Server) -> None:
    server.play(Fails(429, "slow down"), Fails(500, "oops"), Fails(200, "<html>", plain=True), Says("Here."))
    agent = AgentModule(model(server))
    assert agent.run("hi", backoff=0.0) == "Here."
    assert len(server.requests) == 4


def test_a_refused_key_is_not_asked_again(server: Server) -> None:
    server.play(Fails(401, "Incorrect API key provided"))
    result: Result = AgentModule(model(server)).run("hi", return_state=True)
    assert result.stop_reason is StopReason.MODEL
    assert isinstance(result.error, ModelError)
    assert len(server.requests) == 1


def test_litellm_itself_tries_again(server: Server) -> None:
    server.play(Fails(500, "oops", headers={"retry-after-ms": "1"}), Says("Here."))
    assert AgentModule(model(server, retries=1)).run("hi", recoveries=0) == "Here."


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_run_has_a_deadline_and_a_call_does_not_outlive_it(server: Server, way: str, tmp_path: Path) -> None:
    server.play(Hangs())
    agent = AgentModule(model(server), history=Session.open(tmp_path / "a.db", policy=policies.pi(window=8_000)))
    settings: dict[str, Any] = {"return_state": True, "max_seconds": 0.5, "backoff": 0.0}
    result: Result = agent.run("hi", **settings) if way == "sync" else asyncio.run(agent.arun("hi", **settings))
    assert result.stop_reason is StopReason.TIME
    assert result.seconds < 10, "the model's own limit is 20 s"


def test_the_reply_of_a_history_in_qitos_form_goes_over_http(server: Server) -> None:
    from clew.history import CompactHistory

    server.play(Says(calls=[("clock", '{"zone": "Rom"}')]), Says("Half past twelve."))
    agent = AgentModule(model(server), history=CompactHistory(max_tokens=2_000), tools=[clock])
    assert agent.run("What time is it?") == "Half past twelve."
    roles = [m["role"] for m in server.requests[1]["messages"]]
    assert roles == ["user", "assistant", "tool"]
    call = server.requests[1]["messages"][1]["tool_calls"][0]
    assert call["function"]["name"] == "clock"
    assert server.requests[1]["messages"][2]["tool_call_id"] == call["id"]

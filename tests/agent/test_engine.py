"""The engine: what a run does, where it stops, what it leaves in the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from agents import add, book, calls
from clew import Session, policies
from clew.agent import (
    QITOS_STREAM,
    Action,
    AgentModule,
    Context,
    Decision,
    Delta,
    Ended,
    Engine,
    Event,
    Hook,
    Observation,
    Output,
    Result,
    RunStopped,
    State,
    StopReason,
    Veto,
    tool,
)
from clew.errors import BadBudget, BadPayload, BadReply, OverflowReply, RateLimited, TransportError, UnknownName
from clew.history import CompactHistory, History, HistoryMessage, HistoryPolicy, WindowHistory
from clew.memory import WindowMemory
from clew.messages import Message, Text, Usage, assistant, system
from clew.models import ModelCall, Reply, Scripted
from clew.sessions import Note

Way = Callable[..., Any]


def sync(agent: AgentModule[Any], task: str | None, **settings: Any) -> Result:
    result: Result = agent.run(task, return_state=True, **settings)
    return result


def coroutine(agent: AgentModule[Any], task: str | None, **settings: Any) -> Result:
    result: Result = asyncio.run(agent.arun(task, return_state=True, **settings))
    return result


def watched(agent: AgentModule[Any], task: str | None, **settings: Any) -> Result:
    *_, last = agent.stream(task, **settings)
    assert isinstance(last, Ended)
    return last.result


def awatched(agent: AgentModule[Any], task: str | None, **settings: Any) -> Result:
    async def collected() -> list[Any]:
        return [event async for event in agent.astream(task, **settings)]

    last = asyncio.run(collected())[-1]
    assert isinstance(last, Ended)
    return last.result


every_way = pytest.mark.parametrize("run", [sync, coroutine, watched, awatched])


@every_way
def test_tools_are_called_until_there_is_an_answer(run: Way) -> None:
    llm = Scripted([calls(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), "三和七。"])
    agent = AgentModule(llm, tools=[add], instructions="Be brief.")
    result = run(agent, "Add them.")
    assert (result.stop_reason, result.final_result, result.step_count) == (StopReason.FINAL, "三和七。", 2)
    assert [m.role for m in llm.calls[1].messages] == ["system", "user", "assistant", "tool", "tool"]
    assert [r.output.text for r in result.records[0].observation.action_results] == ["3", "7"]
    assert result.usage == Usage(10, 5)
    assert llm.calls[0].tools[0]["function"]["name"] == "add"
    assert agent.session.view.overhead > 0, "tool schemas count"


def test_the_answer_is_what_run_returns() -> None:
    assert AgentModule(Scripted("Yes.")).run("Is it?") == "Yes."
    assert asyncio.run(AgentModule(Scripted("Yes.")).arun("Is it?")) == "Yes."


def test_a_plain_function_is_a_model() -> None:
    assert AgentModule(lambda messages: messages[-1]["content"].upper()).run("echo") == "ECHO"
    assert AgentModule(lambda messages: Reply(assistant("线"))).run("echo") == "线"
    with pytest.raises(RunStopped, match="the model's function raised AttributeError: 'list' object has no"):
        AgentModule(lambda call: call.messages).run("echo")


def test_a_plain_function_does_not_hold_up_an_event_loop() -> None:
    async def both() -> str:
        going_on = asyncio.Event()
        loop = asyncio.get_running_loop()

        def asks(messages: Any) -> str:
            asyncio.run_coroutine_threadsafe(asyncio.wait_for(going_on.wait(), 20), loop).result(20)
            return "done"

        run = asyncio.create_task(AgentModule(asks).arun("hi"))
        await asyncio.sleep(0.05)
        going_on.set()
        answer: str = await run
        return answer

    assert asyncio.run(both()) == "done"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"llm": "gpt-5"}, "no model"),
        ({"llm": asyncio.sleep}, "is async"),
        ({"memory": "agent.db"}, "no memory"),
        ({"history": "agent.db"}, "Session.open"),
        ({"remembers": "user"}, "no list of roles; there are: user, assistant, task"),
        ({"remembers": ["user", "tools"]}, "no list of roles"),
    ],
)
def test_what_an_agent_cannot_be_made_of_is_refused_by_name(given: Any, said: str) -> None:
    with pytest.raises(UnknownName, match=said):
        AgentModule(**{"llm": Scripted("x"), **given})


def test_a_blank_task_is_no_request() -> None:
    with pytest.raises(BadPayload, match="nothing to ask"):
        AgentModule(Scripted("x"), instructions="Be brief.").run(" ")


def test_a_conversation_goes_on_in_the_next_run() -> None:
    llm = Scripted(["One.", "Two."])
    agent = AgentModule(llm)
    agent.run("first")
    agent.run("second")
    assert [m.text for m in llm.calls[1].messages] == ["first", "One.", "second"]
    llm._script = iter(["Three."])
    agent.run("third", fresh=True)
    assert [m.text for m in llm.calls[2].messages] == ["third"], "nothing is in sight, and all is in the log"
    assert len([e for e in agent.session.entries() if e.key.endswith("prompt")]) == 3


def test_text_comes_in_pieces_and_events_in_order() -> None:
    llm = Scripted([calls(("add", {"a": 1, "b": 1}), text="Let me see."), "It is two."])
    events = list(AgentModule(llm, tools=[add]).stream("1+1?"))
    assert "".join(e.text for e in events if isinstance(e, Delta)) == "Let me see.It is two."
    stages = [(e.step, e.phase, e.stage) for e in events if isinstance(e, Event)]
    assert stages[0] == (0, "INIT", "")
    assert stages[-1] == (2, "END", "")
    assert (
        stages.index((0, "ACT", "tool_start"))
        < stages.index((0, "ACT", "tool_end"))
        < stages.index((1, "DECIDE", "start"))
    )


# -- what a run may use


def endless(call: ModelCall) -> Reply:
    return calls(("add", {"a": 1, "b": 1}), usage=Usage(1_000, 100))


@every_way
def test_steps_are_limited(run: Way) -> None:
    llm = Scripted(endless)
    result = run(AgentModule(llm, tools=[add]), "go", max_steps=3)
    assert (result.stop_reason, len(llm.calls), result.final_result) == (StopReason.STEPS, 3, None)
    assert result.state.max_steps == 3


def test_tokens_are_limited() -> None:
    llm = Scripted(endless)
    result = sync(AgentModule(llm, tools=[add]), "go", max_tokens=3_000)
    assert (result.stop_reason, len(llm.calls)) == (StopReason.TOKENS, 3)


def test_money_is_limited_and_needs_a_price() -> None:
    llm = Scripted(endless, name="gpt-5")
    result = sync(AgentModule(llm, tools=[add]), "go", max_cost=0.005)
    each = (1_000 * 1.25 + 100 * 10) / 1_000_000
    assert result.stop_reason is StopReason.COST
    assert result.cost == pytest.approx(3 * each)
    with pytest.raises(UnknownName, match="no price"):
        AgentModule(Scripted("x")).run("go", max_cost=1.0)
    assert sync(AgentModule(Scripted("x")), "go").cost is None


def test_time_is_limited_and_a_tool_gets_no_more_than_is_left() -> None:
    @tool
    async def wait() -> str:
        """Waits."""
        await asyncio.sleep(5)
        return "waited"

    result = coroutine(AgentModule(Scripted(calls(("wait", {}))), tools=[wait]), "go", max_seconds=0.3)
    assert result.stop_reason is StopReason.TIME
    assert result.records[0].observation.action_results[0].output.error == "TimeLimit"


def test_a_run_without_an_answer_raises_and_says_why() -> None:
    agent = AgentModule(Scripted(endless), tools=[add])
    with pytest.raises(RunStopped, match="ended after 2 steps without an answer \\(budget_steps\\)") as caught:
        agent.run("go", max_steps=2)
    assert caught.value.result.step_count == 2


@pytest.mark.parametrize(
    "setting",
    [
        {"max_steps": 0},
        {"max_seconds": -1.0},
        {"max_seconds": float("nan")},
        {"max_tokens": -1},
        {"empty_replies": -1},
        {"recoveries": -1},
        {"backoff": -1.0},
    ],
)
def test_a_limit_that_is_none_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(BadBudget, match=next(iter(setting))):
        AgentModule(Scripted("x")).run("go", **setting)


def test_a_hook_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownName, match="is no hook"):
        AgentModule(Scripted("x")).run("go", hooks=[Guard])


# -- replies that are none


@every_way
def test_an_empty_reply_is_seen_as_one_and_asked_again(run: Way) -> None:
    llm = Scripted(["", Reply(Message("assistant")), "There."])
    result = run(AgentModule(llm), "hi")
    assert result.final_result == "There."
    assert [s.observation.error for s in result.records] == ["empty", "empty", ""]
    assert [m.text for m in llm.calls[2].messages] == ["hi"], "an empty message is never sent"


def test_empty_replies_are_not_asked_for_forever() -> None:
    llm = Scripted("")
    result = sync(AgentModule(llm), "hi")
    assert (result.stop_reason, len(llm.calls)) == (StopReason.EMPTY, 3)


def test_a_failed_call_is_tried_again_and_recorded() -> None:
    llm = Scripted([TransportError("gone"), RateLimited("slow"), BadReply("half a payload", raw="{"), "Here."])
    agent = AgentModule(llm)
    result = sync(agent, "hi", backoff=0.0)
    assert result.final_result == "Here."
    failures = [
        e.body.data for e in agent.session.branch() if isinstance(e.body, Note) and e.body.kind == "agent.failure"
    ]
    assert [f["reason"] for f in failures] == ["TransportError", "RateLimited", "BadReply"]
    assert failures[2]["raw"] == "{"


def test_calls_that_keep_failing_end_the_run_with_their_error() -> None:
    error = TransportError("gone")
    llm = Scripted(error)
    result = sync(AgentModule(llm), "hi", backoff=0.0)
    assert (result.stop_reason, result.error, len(llm.calls)) == (StopReason.MODEL, error, 4)
    with pytest.raises(RunStopped) as caught:
        AgentModule(Scripted(error)).run("hi", backoff=0.0)
    assert caught.value.__cause__ is error


class Halting(Scripted):
    """Its streams end before the reply is whole, and it answers nothing else."""

    def complete(self, call: ModelCall) -> Any:
        return None

    def stream(self, call: ModelCall) -> Generator[Delta | Reply, None, None]:
        yield Delta("half")

    async def astream(self, call: ModelCall) -> AsyncGenerator[Delta | Reply, None]:
        yield Delta("half")


@every_way
def test_a_model_that_gives_no_reply_is_told_apart_from_an_empty_one(run: Way) -> None:
    result = run(AgentModule(Halting("x")), "hi", recoveries=0)
    assert result.stop_reason is StopReason.MODEL
    assert isinstance(result.error, BadReply)
    assert "no Reply" in str(result.error)


def test_a_refusal_ends_the_run() -> None:
    result = sync(AgentModule(Scripted(Reply(assistant("No."), "refusal"))), "hi")
    assert result.stop_reason is StopReason.MODEL
    assert "refused" in str(result.error)


# -- the window


@every_way
def test_an_overflow_is_recovered_by_the_policy(run: Way) -> None:
    session = Session.open("memory://", policy=policies.pi(window=64_000))
    for n in range(100):
        session.append(Message("user", (Text(f"{n} " + "线团 " * 200),)))
        session.append(assistant("noted " * 50))
    sent: list[int] = []

    def narrow(call: ModelCall) -> Reply | OverflowReply:
        sent.append(sum(len(m.text) for m in call.messages))
        return OverflowReply("prompt is too long") if sent[-1] > 20_000 else Reply(assistant("Fits."))

    result = run(AgentModule(Scripted(narrow), history=session), "And now?")
    assert result.final_result == "Fits."
    assert sent == sorted(sent, reverse=True)
    assert len(sent) > 1
    session.close()


def test_a_history_is_asked_for_less_after_an_overflow() -> None:
    sent: list[int] = []

    def narrow(call: ModelCall) -> Reply | OverflowReply:
        sent.append(sum(len(m.text) for m in call.messages))
        return OverflowReply("prompt is too long") if sent[-1] > 3_000 else Reply(assistant("Fits."))

    history = CompactHistory(max_tokens=50_000)
    for n in range(30):
        history.append(HistoryMessage("user", f"{n} " + "thread " * 60, n))
        history.append(HistoryMessage("assistant", "noted " * 10, n))
    result = sync(AgentModule(Scripted(narrow), history=history), "And now?")
    assert result.final_result == "Fits."
    assert len(sent) > 1


def test_a_prompt_that_cannot_fit_is_an_end_with_figures() -> None:
    agent = AgentModule(Scripted("never", context_window=2_000))
    result = sync(agent, "word " * 20_000)
    assert result.stop_reason is StopReason.OVERFLOW
    assert "tokens" in str(result.error)
    assert agent.llm.calls == []  # type: ignore[attr-defined]


def test_long_results_are_shown_in_part_and_kept_whole() -> None:
    llm = Scripted([calls(("book", {"pages": 500})), "Read."])
    agent = AgentModule(llm, tools=[book])
    result = sync(agent, "Read it.")
    shown = llm.calls[1].messages[-1].results[0].text
    assert "Page 0:" in shown
    assert "Page 499:" in shown
    assert agent.session.view.counter.text(shown) < 150
    entry = result.records[0].observation.action_results[0].entry
    assert f"entry {entry} of the session" in shown
    body = agent.session.expand(entry)[0].body
    assert isinstance(body, Note)
    assert body.data["text"] == book.does('{"pages": 500}')


def test_tokens_of_summaries_count() -> None:
    def said(call: ModelCall) -> Reply:
        text = "A summary of the notes, which goes on for a while." if call.purpose == "summary" else "Done."
        return Reply(assistant(text), usage=Usage(1_000, 10))

    llm = Scripted(said)
    with Session.open("memory://", policy=policies.pi(window=8_000), model=llm) as session:
        for n in range(30):
            session.append(Message("user", (Text(f"{n} " + "thread " * 200),)))
            session.append(assistant("noted " * 50))
        result = sync(AgentModule(llm, history=session), "And now?")
        assert result.final_result == "Done."
        assert result.usage == Usage(1_000 * len(llm.calls), 10 * len(llm.calls))
        assert len(llm.calls) > 1


# -- what can be overridden


class Counting(State):
    seen: tuple[str, ...] = ()


class Counter(AgentModule[Counting]):
    state_type = Counting

    def observe(self, state: Counting, observation: Observation) -> Observation:
        return Observation(observation.step, observation.action_results, env={"step": state.current_step})

    def prepare(self, state: Counting) -> str:
        return f"{state.task} {state.current_step}"

    def decide(self, state: Counting, observation: Observation) -> Decision | None:
        assert observation.env == {"step": state.current_step}
        return Decision.act(Action("add", '{"a": 1, "b": 1}')) if state.current_step == 1 else None

    def interpret(self, state: Counting, reply: Reply) -> Decision:
        return Decision.wait()

    def reduce(self, state: Counting, observation: Observation, decision: Decision) -> Counting:
        return Counting(**{**_fields(state), "seen": (*state.seen, decision.mode)})

    def should_stop(self, state: Counting) -> bool:
        return len(state.seen) == 3


def _fields(state: State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


def test_every_phase_can_be_overridden() -> None:
    llm = Scripted("hm")
    agent = Counter(llm, tools=[add])
    result = sync(agent, "task")
    assert isinstance(result.state, Counting)
    assert result.stop_reason is StopReason.CONDITION
    assert result.state.seen == ("wait", "act", "wait")
    assert [c.messages[-1].text for c in llm.calls] == ["task 0", "task 2"]
    assert result.records[1].observation.action_results[0].output.text == "2", "an action of the agent's own"
    assert agent.run("again", fresh=True) is None, "it was meant to stop"


class Shell(AgentModule[State]):
    def act(self, state: State, action: Action) -> Any:
        return f"$ {action.arguments}" if action.name == "bash" else NotImplemented


def test_errors_are_bounded_too() -> None:
    class Loud(AgentModule[State]):
        def act(self, state: State, action: Action) -> Any:
            raise ValueError("线团 " * 50_000)

    llm = Scripted([calls(("anything", {})), "Done."])
    agent = Loud(llm)
    agent.run("go")
    text = llm.calls[1].messages[-1].results[0].text
    assert text.startswith("ValueError: 线团")
    assert agent.session.view.counter.text(text) < 6_000


def test_actions_can_be_done_in_a_way_of_the_agents_own() -> None:
    llm = Scripted([calls(("bash", '{"c": "ls"}'), ("add", {"a": 1, "b": 1}), ("nothing", {})), "Done."])
    result = sync(Shell(llm, tools=[add]), "go")
    texts = [r.output.text for r in result.records[0].observation.action_results]
    assert texts == ['$ {"c": "ls"}', "2", "UnknownTool: there is no tool 'nothing'; there are: add"]


class Guard(Hook):
    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.events: list[str] = []

    def on_event(self, context: Context, event: Event) -> None:
        self.events.append(f"{event.phase} {event.stage}".strip())


def hook(name: str, answer: Any) -> Hook:
    made = type("Made", (Hook,), {name: lambda self, context, value: answer(value) if callable(answer) else answer})
    one: Hook = made()
    return one


def adding() -> tuple[Scripted, AgentModule[Any]]:
    llm = Scripted([calls(("add", {"a": 1, "b": 2})), "Done."])
    return llm, AgentModule(llm, tools=[add])


def test_hooks_may_veto_or_replace_an_action() -> None:
    llm, agent = adding()
    agent.run("go", hooks=[hook("before_act", Veto("no sums on Sundays"))])
    assert llm.calls[1].messages[-1].results[0].text == "NotAllowed: no sums on Sundays"
    llm, agent = adding()
    agent.run("go", hooks=[hook("before_act", lambda a: Action(a.name, '{"a": 5, "b": 5}', a.call_id))])
    assert llm.calls[1].messages[-1].results[0].text == "10"
    llm, agent = adding()
    agent.run("go", hooks=[hook("before_act", Output((Text("from the cache"),)))])
    assert llm.calls[1].messages[-1].results[0].text == "from the cache"
    llm, agent = adding()
    agent.run("go", hooks=[hook("after_act", Veto("it holds a secret"))])
    assert llm.calls[1].messages[-1].results[0].text == "NotAllowed: its result was withheld: it holds a secret"


def test_hooks_may_replace_prompt_call_reply_decision_state() -> None:
    llm = Scripted("never")
    agent = AgentModule(llm)
    assert agent.run("go", hooks=[hook("before_decide", Reply(assistant("cached")))]) == "cached"
    assert llm.calls == []
    llm = Scripted("x")
    agent = AgentModule(llm)
    assert agent.run("go", hooks=[hook("after_decide", Decision.final("decided"))]) == "decided"
    agent.run("go", hooks=[hook("after_prepare", lambda text: text + "!")])
    assert llm.calls[-1].messages[-1].text == "go!"
    agent.run("go", hooks=[hook("before_decide", lambda c: ModelCall((system("only this"),)))])
    assert [m.text for m in llm.calls[-1].messages] == ["only this"]


PHASES = (
    "before_step", "before_observe", "after_observe", "before_prepare", "after_prepare", "before_decide",
    "after_decide", "before_reduce", "after_reduce", "after_step",
)  # fmt: skip


@pytest.mark.parametrize("name", PHASES)
def test_a_veto_elsewhere_ends_the_run(name: str) -> None:
    _, agent = adding()
    result = sync(agent, "go", hooks=[hook(name, Veto("stop here"))])
    assert result.stop_reason is StopReason.VETO
    assert "stop here" in str(result.error)


def test_a_hook_that_breaks_is_not_passed_by() -> None:
    def broken(value: Any) -> Any:
        raise RuntimeError("the guard is down")

    _, agent = adding()
    with pytest.raises(RuntimeError, match="the guard is down"):
        agent.run("go", hooks=[hook("before_act", broken)])
    seen = Guard()
    assert agent.run(None, hooks=[seen]) == "Done.", "and the run can go on when it is mended"
    assert seen.events[0] == "INIT resumed"


# -- memory and histories, as QitOS calls them


def test_a_memory_gets_qitos_records_in_its_order() -> None:
    memory = WindowMemory(100)
    llm = Scripted([calls(("add", {"a": 1, "b": 2})), "Done."])
    AgentModule(llm, memory, tools=[add], remembers=QITOS_STREAM).run("go")
    stream = [(r.step_id, r.role) for r in memory.retrieve({})]
    assert stream == [
        (0, "task"), (0, "state"), (0, "decision"), (0, "action"), (0, "action_result"), (0, "observation"),
        (0, "next_state"), (1, "state"), (1, "decision"), (1, "observation"), (1, "next_state"),
    ]  # fmt: skip


class Dicts(History):
    """A history of the user's own that gives plain dicts (QitOS: test_engine_uses_history_retrieve_contract)."""

    def __init__(self) -> None:
        self.queries: list[Any] = []

    def append(self, message: HistoryMessage) -> None: ...

    def retrieve(self, query: Any = None, state: Any = None, observation: Any = None) -> Any:
        self.queries.append((query, state, observation))
        return [{"role": "user", "content": "from history"}, {"role": "", "content": "x"}]

    def summarize(self, max_items: int = 5) -> str:
        return ""

    def evict(self) -> int:
        return 0

    def reset(self, run_id: str | None = None) -> None: ...


def test_any_history_is_asked_each_step() -> None:
    llm = Scripted([calls(("add", {"a": 1, "b": 1})), "Done."])
    history = Dicts()
    AgentModule(llm, history=history, tools=[add]).run("go", history_policy=HistoryPolicy(max_messages=7))
    assert [m.text for m in llm.calls[0].messages] == ["from history", "go"]
    query, state, observation = history.queries[1]
    assert (query["max_items"], query["step_id"], query["phase"]) == (7, 1, "DECIDE")
    assert isinstance(state, State)
    assert isinstance(observation, Observation)


def test_a_window_history_shows_the_last_messages() -> None:
    """QitOS: test_engine_uses_history_messages_for_next_llm_call."""

    class Each(AgentModule[State]):
        def prepare(self, state: State) -> str:
            return f"step {state.current_step}"

        def interpret(self, state: State, reply: Reply) -> Decision:
            return Decision.final("42") if "Final" in reply.text else Decision.wait()

    llm = Scripted(["Thinking.", "Final: 42"])
    agent = Each(llm, history=WindowHistory(50), instructions="SYS")
    assert agent.run("go", history_policy=HistoryPolicy(max_messages=4)) == "42"
    assert [m.role for m in llm.calls[0].messages] == ["system", "user"]
    assert [m.role for m in llm.calls[1].messages] == ["system", "user", "assistant", "user"]


def test_memory_and_history_are_kept_apart() -> None:
    """QitOS: test_memory_and_history_streams_are_strictly_separated."""
    memory, history = WindowMemory(100), WindowHistory(50)
    llm = Scripted([calls(("add", {"a": 1, "b": 2})), "Done."])
    AgentModule(llm, memory, history, [add], remembers=QITOS_STREAM).run("go")
    assert {r.role for r in memory.retrieve({})} == {*QITOS_STREAM}
    assert [m.role for m in history.messages] == ["user", "assistant", "tool", "assistant"]


def test_what_a_history_does_is_seen() -> None:
    """QitOS: test_engine_surfaces_compact_events_and_history_metadata."""

    class Talker(AgentModule[State]):
        def prepare(self, state: State) -> str:
            return f"step {state.current_step} " + "detail " * 300

        def interpret(self, state: State, reply: Reply) -> Decision:
            return Decision.final("42") if state.current_step == 3 else Decision.wait()

    agent = Talker(Scripted("hm"), history=CompactHistory(keep_last_rounds=1))
    policy = HistoryPolicy(max_messages=10, max_tokens=900)
    events = [e for e in agent.stream("go", history_policy=policy) if isinstance(e, Event)]
    stages = {e.data["context"]["stage"] for e in events if e.stage == "context_history"}
    assert "warning" in stages
    assert stages & {"microcompact_applied", "summary_compact_applied"}
    last = [e for e in events if e.stage == "context"][-1]
    assert any(m.get("summary") or m.get("compacted") for m in last.data["history_messages_meta"])


def test_an_engine_can_run_again() -> None:
    """QitOS: test_engine_resets_runtime_state_between_runs."""
    memory = WindowMemory(100)
    engine = Engine(AgentModule(Scripted("ok"), memory), fresh=True)
    for task in ("one", "two"):
        assert engine.run(task) == "ok"
    assert [r.text for r in memory.retrieve({})] == ["two", "ok"], "the run before is out of sight"

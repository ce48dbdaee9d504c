"""The two drivers do the same, whatever the computation asks for."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import BadReply, EmptyReply, ModelError, OverflowReply, RateLimited
from clew.messages import assistant, user
from clew.models import (
    Failure,
    ModelCall,
    Offline,
    ReadFile,
    Reply,
    Scripted,
    ScriptEnded,
    Steps,
    answer_text,
    arun,
    run,
)

FILES = {"a.py": "print(1)\n", "空.md": ""}


def world(replies: list[str | Reply | ModelError]) -> Offline:
    return Offline(Scripted(replies), FILES.get)


def transcript(plan: list[str], stubborn: bool) -> Steps[list[str]]:
    """Asks for what the plan says and notes every answer; gives up at an error unless stubborn."""
    seen = []
    for ask in plan:
        if ask == "call":
            try:
                reply = yield ModelCall((user(f"question {len(seen)}"),), purpose="summary")
            except ModelError as error:
                seen.append(f"{type(error).__name__}: {error}")
                if not stubborn:
                    raise
                yield Failure(type(error).__name__, attempt=len(seen))
            else:
                seen.append(reply.text)
        elif ask == "fail":
            seen.append(repr((yield Failure("blank", raw=" ", attempt=len(seen) + 1))))
        else:
            seen.append(repr((yield ReadFile(ask))))
    return seen


plans = st.lists(st.sampled_from(["call", "fail", "a.py", "空.md", "missing.txt"]), max_size=12)
lines = st.one_of(
    st.text(max_size=8),
    st.builds(Reply, st.builds(assistant, st.text(max_size=8)), st.sampled_from(["stop", "length"])),
    st.sampled_from([RateLimited("slow down"), EmptyReply("nothing"), OverflowReply("too long", raw="413")]),
)


def outcome(plan: list[str], replies: list[str | Reply | ModelError], stubborn: bool, driver: str) -> object:
    place = world(replies)
    try:
        steps = transcript(plan, stubborn)
        result: object = run(steps, place) if driver == "sync" else asyncio.run(arun(steps, place))
    except ModelError as error:
        result = (type(error), str(error), error.raw)
    model = place.model
    assert isinstance(model, Scripted)
    return result, place.failures, model.calls


@given(plans, st.data(), st.booleans())
def test_both_drivers_give_the_same(plan: list[str], data: st.DataObject, stubborn: bool) -> None:
    calls = plan.count("call")
    replies = data.draw(st.lists(lines, min_size=calls, max_size=calls))
    assert outcome(plan, replies, stubborn, "sync") == outcome(plan, replies, stubborn, "async")


def answers(plan: list[str], replies: list[str | Reply | ModelError]) -> list[str]:
    return run(transcript(plan, stubborn=True), world(replies))


def test_answers_come_to_where_they_were_asked_for() -> None:
    assert answers(["a.py", "call", "missing.txt", "空.md", "fail"], ["hello"]) == [
        "'print(1)\\n'",
        "hello",
        "None",
        "''",
        "None",
    ]


def test_an_error_is_raised_where_the_call_was_made_and_can_be_survived() -> None:
    place = world([RateLimited("slow down"), "second try"])
    assert run(transcript(["call", "call"], stubborn=True), place) == ["RateLimited: slow down", "second try"]
    assert [f.reason for f in place.failures] == ["RateLimited"]


def test_an_uncaught_error_comes_out() -> None:
    with pytest.raises(RateLimited, match="slow down"):
        run(transcript(["call", "call"], stubborn=False), world([RateLimited("slow down"), "never asked"]))


def test_the_computation_is_closed_when_a_driver_fails() -> None:
    closed = []

    def steps() -> Steps[None]:
        try:
            yield ModelCall((user("one"),))
        finally:
            closed.append(True)

    with pytest.raises(ScriptEnded, match=r"call 1 \(reply\) is past the end"):
        run(steps(), world([]))
    with pytest.raises(ScriptEnded):
        asyncio.run(arun(steps(), world([])))
    assert closed == [True, True]


def test_computations_nest() -> None:
    def ask(question: str) -> Steps[str]:
        reply = yield ModelCall((user(question),))
        return answer_text(reply)

    def both() -> Steps[str]:
        first = yield from ask("one")
        second = yield from ask(f"{first}?")
        return f"{first} {second}"

    model = Scripted(["left", lambda call: call.messages[0].text + "!"])
    assert run(both(), Offline(model)) == "left left?!"
    assert [c.messages[0].text for c in model.calls] == ["one", "left?"]


def test_no_file_without_a_reader() -> None:
    def steps() -> Steps[str | None]:
        text: str | None = yield ReadFile("a.py")
        return text

    assert run(steps(), Offline(Scripted([]))) is None


def test_a_script_may_be_one_entry_for_all_calls() -> None:
    calls = [ModelCall((user("a"),)), ModelCall((user("b"),))]
    assert [Scripted("same").complete(c).text for c in calls] == ["same", "same"]
    echo = Scripted(lambda call: call.messages[0].text)
    assert [echo.complete(c).text for c in calls] == ["a", "b"]
    failing = Scripted(BadReply("no"))
    for call in calls:
        with pytest.raises(BadReply):
            failing.complete(call)
    assert failing.calls == calls


def test_a_script_may_answer_with_errors_of_its_own() -> None:
    def moody(call: ModelCall) -> str | ModelError:
        return EmptyReply("nothing") if call.purpose == "summary" else "fine"

    model = Scripted(moody, name="moody", context_window=8_000)
    assert (model.name, model.context_window) == ("moody", 8_000)
    assert model.complete(ModelCall((user("a"),))).text == "fine"
    with pytest.raises(EmptyReply):
        model.complete(ModelCall((user("a"),), purpose="summary"))


class Spent(Scripted):
    """A model whose replies come from an iterator that has come to its end."""

    def complete(self, call: ModelCall) -> Reply:
        return next(iter(list[Reply]()))


def test_a_model_that_raises_stop_iteration_does_not_end_the_computation() -> None:
    with pytest.raises(StopIteration):
        run(transcript(["call"], stubborn=False), Offline(Spent([]), FILES.get))

"""Tools: what the model is told of a function, what it may get wrong, and what it is answered."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agent import BadTool, Output, Tool, tool
from clew.agent.docstrings import described
from clew.agent.tools import ToolFailed, aperform, as_tools, bounded, perform
from clew.messages import Image, Text
from clew.tokens import Heuristic


class Unit(Enum):
    CELSIUS = "c"
    KELVIN = "k"


@dataclass
class Place:
    name: str
    unit: Unit = Unit.CELSIUS


class Options(TypedDict, total=False):
    days: int


class Node(msgspec.Struct):
    value: int
    children: list[Node] = []


@tool
def everything(
    text: str,
    count: int,
    share: float,
    sure: bool,
    names: list[str],
    extra: dict[str, int],
    mode: Literal["fast", "slow"],
    unit: Unit,
    place: Place,
    node: Node,
    maybe: str | None = None,
    options: Options = {},  # noqa: B006
    note: Annotated[str, "said of it"] = "none",
) -> str:
    """Takes one of each.

    More about it.

    Args:
        text: some text,
            over two lines
        count (int): how many

    Returns:
        str: nothing
    """
    return f"{text} {count} {place} {node.children} {maybe} {options} {note}"


GIVEN = {
    "text": "线团",
    "count": 2,
    "share": 0.5,
    "sure": True,
    "names": ["a"],
    "extra": {"x": 1},
    "mode": "fast",
    "unit": "k",
    "place": {"name": "Crete"},
    "node": {"value": 1, "children": [{"value": 2}]},
}


def call(one: Tool, arguments: Any, seconds: float | None = None) -> Output:
    """The output, or the error, of a call; sync and async agree."""
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    outputs = []
    for way in (lambda: perform(one, text, seconds), lambda: asyncio.run(aperform(one, text, seconds))):
        try:
            outputs.append(way())
        except ToolFailed as failure:
            outputs.append(failure.output)
    assert outputs[0].text == outputs[1].text
    return outputs[0]


def test_a_function_is_described_by_its_hints_and_its_docstring() -> None:
    assert everything.description == "Takes one of each.\n\nMore about it."
    shown = everything.schema["function"]["parameters"]
    properties = shown["properties"]
    assert properties["text"] == {"type": "string", "description": "some text, over two lines"}
    assert properties["count"] == {"type": "integer", "description": "how many"}
    assert properties["mode"] == {"enum": ["fast", "slow"], "type": "string"}
    assert properties["unit"]["enum"] == ["c", "k"]
    assert properties["place"]["properties"]["name"] == {"type": "string"}
    assert properties["place"]["required"] == ["name"]
    assert properties["maybe"]["default"] is None
    assert properties["note"] == {"type": "string", "description": "said of it", "default": "none"}
    assert shown["required"] == list(GIVEN)
    assert shown["additionalProperties"] is False
    assert properties["node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}, "it contains itself"
    assert list(shown["$defs"]) == ["Node"], "nothing else is a reference"
    msgspec.json.encode(everything.schema)


def test_arguments_become_values_of_their_types() -> None:
    text = call(everything, GIVEN).text
    assert text == ("线团 2 Place(name='Crete', unit=<Unit.CELSIUS: 'c'>) [Node(value=2, children=[])] None {} none")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{", "not valid JSON"),
        ('{"text": ', "not valid JSON"),
        ("[1]", "Expected `object`, got `array`"),
        ('"{}"', "Expected `object`, got `str`"),
        ("null", "missing required field `text`"),
        ({}, "missing required field `text`"),
        ({**GIVEN, "count": "two"}, "Expected `int`, got `str` - at `$.count`"),
        ({**GIVEN, "mode": "medium"}, "Invalid enum value 'medium' - at `$.mode`"),
        ({**GIVEN, "place": {}}, "missing required field `name` - at `$.place`"),
        ({**GIVEN, "texte": 1}, "unknown field `texte`"),
        ('{"text": "' + "\\ud800", "not valid JSON"),
        ('{"text": ' + "[" * 100_000, "do not fit"),
        ("{" * 100_000, "not valid JSON"),
    ],
)
def test_what_a_model_gets_wrong_is_told_so_that_it_can_mend_it(arguments: Any, said: str) -> None:
    answer = call(everything, arguments)
    assert answer.is_error
    assert answer.error == "BadArguments"
    assert said in answer.text


@given(st.text() | st.binary().map(lambda b: b.decode("latin-1")))
def test_no_arguments_whatever_break_a_call(arguments: str) -> None:
    with pytest.raises(ToolFailed, match="BadArguments"):
        perform(everything, arguments, None)


@pytest.mark.parametrize("written", ["", " \n", "null", "{}"])
def test_no_arguments_at_all_are_an_empty_object(written: str) -> None:
    assert call(tool(lambda_named("pwd", lambda: "/home")), written).text == "/home"


def lambda_named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return function


class Custom:
    pass


def takes_custom(x: Custom) -> None: ...
def takes_anything(x) -> None: ...  # type: ignore[no-untyped-def]
def takes_many(*x: int) -> None: ...
def gives_many() -> Iterator[int]:
    yield 1


async def gives_many_later() -> AsyncIterator[int]:
    yield 1


def takes_unknown(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (takes_custom, "'x' cannot be described as JSON"),
        (takes_anything, "'x' has no type hint"),
        (takes_many, "'x' must be one that can be given by name"),
        (takes_unknown, "Nowhere"),
        (lambda: None, "is no name that providers take"),
        (partial(int, base=2), "is no function; write one that calls it"),
        (gives_many, "return a list"),
        (gives_many_later, "return a list"),
    ],
)
def test_what_cannot_be_described_is_refused_with_the_reason(function: Any, said: str) -> None:
    with pytest.raises(BadTool, match=said):
        tool(function)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(BadTool, match="two tools are named 'everything'"):
        as_tools([everything, everything])


def google() -> None:
    """Does.

    Args:
        a: the a: really
        b (str, optional): the b
    """


def numpy() -> None:
    """Does.

    Parameters
    ----------
    a : int
        the a: really
    b : str, optional
        the b

    Returns
    -------
    int
    """


def sphinx() -> None:
    """Does.

    :param a: the a: really
    :param str b: the
        b
    :returns: c: nothing
    """


def listed() -> None:
    """Does.

    - `a`: the a:
      really
    - `b`: the b
    """


@pytest.mark.parametrize("function", [google, numpy, sphinx, listed])
def test_docstrings_of_every_form(function: Any) -> None:
    assert described(function) == ("Does.", {"a": "the a: really", "b": "the b"})


# -- results


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ("", "(no output)"),
        (None, "(no output)"),
        (0, "0"),
        ([], "[]"),
        ({"数": 1}, '{"数":1}'),
        (Place("Crete"), '{"name":"Crete","unit":"c"}'),
        (["名", "caf\udce9"], '["名", "caf\udce9"]'),
        (Text("t"), "t"),
        (Output((Text("o"),)), "o"),
    ],
)
def test_any_value_is_a_result(value: Any, text: str) -> None:
    assert call(tool(lambda_named("give", lambda: value)), "{}").text == text


def test_pictures_are_results() -> None:
    shot = Image(url="https://example.com/a.png")
    assert call(tool(lambda_named("shot", lambda: [Text("here"), shot])), "{}").content == (Text("here"), shot)


def test_a_value_without_a_json_form_is_an_error_result() -> None:
    answer = call(tool(lambda_named("give", lambda: object())), "{}")
    assert (answer.is_error, answer.error) == (True, "TypeError")


@tool
def breaks(how: str) -> str:
    """Raises."""
    if how == "stop":
        raise StopIteration(how)
    raise KeyError(how)


@tool
async def breaks_later(how: str) -> str:
    """Raises, after a while."""
    await asyncio.sleep(0)
    raise KeyError(how)


@pytest.mark.parametrize("one", [breaks, breaks_later])
def test_an_exception_is_an_error_result_that_names_its_type(one: Tool) -> None:
    answer = call(one, {"how": "东西"})
    assert answer.text == "KeyError: '东西'"
    assert answer.is_error
    assert "Traceback" in answer.detail
    assert "raise KeyError(how)" in answer.detail


def test_even_stop_iteration_is_an_error_result() -> None:
    assert call(breaks, {"how": "stop"}).error == "StopIteration"


class Panic(BaseException):
    """What libraries in Rust raise."""


class Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("raised", [SystemExit(2), asyncio.CancelledError("by itself"), Wordless(), Panic()])
@pytest.mark.parametrize("seconds", [None, 60.0])
def test_whatever_a_tool_raises_is_a_result_in_every_way_of_calling_it(
    raised: BaseException, seconds: float | None
) -> None:
    """What a thread that is waited for does not hand on is waited for forever."""

    @tool
    def falls() -> None:
        """Raises."""
        raise raised

    @tool
    async def falls_later() -> None:
        """Raises, after a while."""
        await asyncio.sleep(0)
        raise raised

    for one in (falls, falls_later):
        for way in (perform, lambda *asked: asyncio.run(aperform(*asked))):
            with pytest.raises(ToolFailed) as caught:
                way(one, "{}", seconds)
            assert caught.value.output.error == type(raised).__name__


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_what_the_user_breaks_off_is_broken_off(seconds: float | None) -> None:
    @tool
    def broken_off() -> None:
        """As if the user had pressed Ctrl-C in it."""
        raise KeyboardInterrupt

    for way in (perform, lambda *asked: asyncio.run(aperform(*asked))):
        with pytest.raises(KeyboardInterrupt):
            way(broken_off, "{}", seconds)


def test_a_call_that_is_cancelled_is_no_failure_of_the_tool() -> None:
    async def given_up() -> None:
        call = asyncio.create_task(aperform(slow_later, '{"seconds": 60.0}', None))
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(given_up())


@tool
def slow(seconds: float) -> str:
    """Sleeps."""
    time.sleep(seconds)
    return "awake"


@tool
async def slow_later(seconds: float) -> str:
    """Sleeps, and lets others work."""
    await asyncio.sleep(seconds)
    return "awake"


@pytest.mark.parametrize("one", [slow, slow_later])
def test_a_call_has_a_time_limit(one: Tool) -> None:
    for arguments, said in (('{"seconds": 0.0}', "awake"), ('{"seconds": 1.0}', "TimeLimit")):
        try:
            found = perform(one, arguments, 0.2)
        except ToolFailed as failure:
            found = failure.output
        assert found.text.startswith(said)

    async def limited() -> None:
        with pytest.raises(ToolFailed, match="TimeLimit: no result after"):
            await aperform(one, '{"seconds": 1.0}', 0.05)

    asyncio.run(limited())


def test_a_tool_that_hangs_does_not_hang_the_program() -> None:
    released, settings = threading.Event(), contextvars.ContextVar("settings", default="none")

    @tool
    def hangs() -> str:
        """Waits for what does not come."""
        seen.append(settings.get())
        released.wait()
        return "late"

    seen: list[str] = []
    settings.set("mine")
    try:
        with pytest.raises(ToolFailed, match="it may still be at work"):
            perform(hangs, "{}", 0.05)
        with pytest.raises(ToolFailed, match="it may still be at work"):
            asyncio.run(aperform(hangs, "{}", 0.05))
        assert not released.is_set(), "both came back while it hangs"
        assert seen == ["mine", "mine"], "a tool runs in its caller's context"
    finally:
        released.set()


def test_an_async_tool_can_be_called_while_an_event_loop_runs() -> None:
    async def inside() -> Output:
        return perform(slow_later, '{"seconds": 0.0}', None)

    assert asyncio.run(inside()).text == "awake"


@given(st.text(max_size=200), st.integers(1, 3_000), st.integers(60, 400))
def test_a_bounded_text_keeps_its_bound_and_both_ends(seed: str, times: int, tokens: int) -> None:
    counter = Heuristic()
    text = seed * times
    short = bounded(text, tokens, counter)
    assert counter.text(short) <= tokens
    if short == text:
        return
    assert "characters left out" in short
    assert short[0] == text[0]
    assert short[-1] == text[-1]
    assert counter.text(text) > tokens or len(text) > 16 * tokens

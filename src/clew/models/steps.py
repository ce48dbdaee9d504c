"""Computations that may ask for something, and the two drivers that answer them.

A policy (or any other computation of Clew) does no I/O. It is a generator that yields what it
needs and is sent the answer:

    def summarise(messages) -> Steps[str]:
        reply = yield ModelCall((user("Summarise: ..."),), purpose="summary")
        return answer_text(reply)

`run` drives it with a sync model, `arun` with an async one; neither knows what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

from msgspec import Struct, field

from clew.errors import ModelError
from clew.messages import Usage
from clew.models.base import Model, ModelCall

T = TypeVar("T")


class ReadFile(Struct, frozen=True):
    """Asks for the text of a project file; the answer is the text, or None when it cannot be read."""

    path: str


class Failure(Struct, frozen=True, omit_defaults=True):
    """Tells the world that an attempt failed and was not used; the answer is None.

    `reason` is one of the words of `clew.policies.guard.REASONS` or an error class name,
    `figures` the numbers behind it, `raw` the reply that was refused, `attempt` counts from 1
    since the last compaction that worked.
    """

    reason: str
    policy: str = ""
    detail: str = ""
    figures: dict[str, int] = field(default_factory=dict)
    raw: str = ""
    attempt: int = 1
    usage: Usage | None = None


Ask = ModelCall | ReadFile | Failure
Steps = Generator[Ask, Any, T]
"""A computation that may ask and finally returns a `T`."""


class World(Protocol):
    """What answers a computation's asks."""

    @property
    def model(self) -> Model: ...

    def read_file(self, path: str) -> str | None: ...

    def record(self, failure: Failure) -> None: ...


class Offline(Struct):
    """The plain world: a model, no files unless `reader` is given, failures collected in `failures`."""

    model: Model
    reader: Callable[[str], str | None] | None = None
    failures: list[Failure] = field(default_factory=list)

    def read_file(self, path: str) -> str | None:
        return self.reader(path) if self.reader else None

    def record(self, failure: Failure) -> None:
        self.failures.append(failure)


def _answer(ask: ReadFile | Failure, world: World) -> str | None:
    if isinstance(ask, ReadFile):
        return world.read_file(ask.path)
    world.record(ask)
    return None


def run(steps: Steps[T], world: World) -> T:
    """Drives a computation to its end with `world.model`'s sync calls.

    A `ModelError` of a call is raised inside the computation, at its `yield`, so that it can react;
    what it does not catch comes out here.
    """
    answer: Any = None
    try:
        while True:
            try:
                ask = steps.throw(answer) if isinstance(answer, ModelError) else steps.send(answer)
            except StopIteration as stop:  # of the computation: one that a model raises must not look like its end
                result: T = stop.value
                return result
            if isinstance(ask, ModelCall):
                try:
                    answer = world.model.complete(ask)
                except ModelError as error:
                    answer = error
            else:
                answer = _answer(ask, world)
    finally:
        steps.close()


async def arun(steps: Steps[T], world: World) -> T:
    """Drives a computation to its end with `world.model`'s async calls; else the same as `run`."""
    answer: Any = None
    try:
        while True:
            try:
                ask = steps.throw(answer) if isinstance(answer, ModelError) else steps.send(answer)
            except StopIteration as stop:  # of the computation: one that a model raises must not look like its end
                result: T = stop.value
                return result
            if isinstance(ask, ModelCall):
                try:
                    answer = await world.model.acomplete(ask)
                except ModelError as error:
                    answer = error
            else:
                answer = _answer(ask, world)
    finally:
        steps.close()

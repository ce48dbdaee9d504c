"""The trace of a run is entries of the session, and what was done of an unfinished run is read back from them.

Every entry the engine adds has a key made of the run, the step and what it is, so that a step that is done again
after a crash adds nothing twice. Notes are never shown to a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from clew.agent.state import Action, ActionResult
from clew.agent.tools import Output
from clew.errors import StoreError, UnknownName
from clew.messages import Image, Message, Text, Usage
from clew.policies.harness.qitos import META
from clew.sessions.entries import Draft, Entry, Note, Said

RUN = "agent.run"
"""A run begins: its id, task, limits, and first state."""

RESUMED = "agent.resumed"
"""A run that was interrupted goes on, with other keys: it may go on from the same entry more than once."""

CALL = "agent.call"
"""A tool is about to be called. Without the result behind it, nobody knows whether it was."""

OUTPUT = "agent.output"
"""All of a result of which the model sees a part, or of one that is no message."""

FAILURE = "agent.failure"
"""Something went wrong: in a tool (with its traceback), in a model call, or a hook said no."""

STEP = "agent.step"
"""A step is done: the state, and what has been used so far."""

END = "agent.end"
"""A run is over, and why."""


class Totals(Struct, frozen=True, omit_defaults=True):
    """What a run has used so far. `empties` and `recoveries` count empty replies in a row and failed calls."""

    usage: Usage = Usage()
    seconds: float = 0.0
    empties: int = 0
    recoveries: int = 0
    steps: int = 0


class Progress(Struct, omit_defaults=True):
    """How far an unfinished run came."""

    run: str
    task: str
    state: Mapping[str, Any]
    keys: tuple[str, ...] = ()
    totals: Totals = Totals()
    last: Mapping[str, Any] = field(default_factory=dict)
    before: dict[str, Entry] = field(default_factory=dict)
    """The entries of the last step that was finished, by what they are ("prompt", "reply", "call:0", "result:0")."""
    said: dict[str, Entry] = field(default_factory=dict)
    """The same of the step that was not finished."""


def key(keys: str, step: int, what: str) -> str:
    """The key of an entry. `keys` is the run's id, and after an interruption another text."""
    return f"agent:{keys}:{step}:{what}"


def note(kind: str, data: Mapping[str, Any], key: str = "") -> Draft:
    """A note as an entry to be added; what has no JSON form in it becomes its text."""
    return Draft(Note(kind, msgspec.to_builtins(dict(data), str_keys=True, enc_hook=str)), key=key)


def unfinished(branch: Iterable[Entry]) -> Progress:
    """The run at the end of a branch, if it has not ended. Raises `UnknownName`."""
    progress: Progress | None = None
    for entry in branch:
        body = entry.body
        if isinstance(body, Note) and body.kind == RUN:
            data = body.data
            progress = Progress(data["run"], data["task"], data["state"], (data["run"],))
        elif progress is None:
            continue
        elif isinstance(body, Note) and body.kind == RESUMED:
            progress.keys = (*progress.keys, body.data["keys"])
        elif isinstance(body, Note) and body.kind == STEP:
            progress.state, progress.last = body.data["state"], body.data
            progress.before, progress.said = progress.said, {}
            progress.totals = msgspec.convert(body.data["totals"], Totals)
        elif isinstance(body, Note) and body.kind == END:
            progress = None
        else:
            name = entry.key or _key(entry)
            for keys in progress.keys:
                start = key(keys, progress.totals.steps, "")
                if name.startswith(start):
                    progress.said[name.removeprefix(start)] = entry
    if progress is None:
        raise UnknownName("the session has no unfinished run to go on with; give a task to begin one")
    return progress


def results(said: Mapping[str, Entry]) -> list[ActionResult]:
    """The results of a step that are among its entries, in their order."""
    found = {int(name.removeprefix("result:")): entry for name, entry in said.items() if name.startswith("result:")}
    return [_result(entry, said.get(f"call:{n}")) for n, entry in sorted(found.items())]


def _result(entry: Entry, call: Entry | None) -> ActionResult:
    begun = call.body.data if call is not None and isinstance(call.body, Note) else {}
    if isinstance(entry.body, Note):
        told = entry.body.data
        output = Output((Text(told["text"]),), told["is_error"], told["error"])
        return ActionResult(msgspec.convert(told["action"], Action), output, told["all"])
    message = message_of(entry)
    if message is None or not message.results:
        raise StoreError(f"entry {entry.id} should hold the result of a tool; it is a {type(entry.body).__name__}")
    part = message.results[0]
    shown = tuple(p for p in part.content if isinstance(p, Text | Image))
    return ActionResult(Action(part.name, begun.get("arguments", "{}"), part.call_id), Output(shown, part.is_error))


def message_of(entry: Entry) -> Message | None:
    """The message in an entry."""
    return entry.body.message if isinstance(entry.body, Said) else None


def _key(entry: Entry) -> str:
    """The key of a message that came into the session through a `History`, which has no keys."""
    message = message_of(entry)
    return "" if message is None else str(message.meta.get(META, {}).get("metadata", {}).get("key", ""))

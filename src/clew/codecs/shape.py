"""Reading JSON of unknown shape: every step is checked and a fault names its place."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn

from msgspec import Struct

from clew.errors import BadPayload
from clew.messages import sanitized

Json = dict[str, Any]

LEVELS = 200
"""How deep a payload may be nested, in objects and lists."""


class Spot(Struct, frozen=True):
    """A place in a payload: the index of the message (None: outside of them) and the path inside it."""

    index: int | None = None
    path: str = ""

    def __truediv__(self, step: str | int) -> Spot:
        if isinstance(step, int):
            return Spot(self.index, f"{self.path}[{step}]")
        return Spot(self.index, f"{self.path}.{step}" if self.path else step)

    def fail(self, reason: str) -> NoReturn:
        """Raises `BadPayload` for this place."""
        raise BadPayload(reason, index=self.index, field=self.path)


def an_object(value: Any, at: Spot) -> Json:
    """The value if it is a JSON object."""
    if not isinstance(value, dict):
        hint = "; its model_dump() is one" if hasattr(value, "model_dump") else ""
        at.fail(f"expected an object, not {_kind(value)}{hint}")
    return value


def a_list(value: Any, at: Spot) -> list[Any]:
    """The value if it is a list."""
    if not isinstance(value, list):
        at.fail(f"expected a list, not {_kind(value)}")
    return value


def a_string(value: Any, at: Spot) -> str:
    """The value if it is a string."""
    if not isinstance(value, str):
        at.fail(f"expected a string, not {_kind(value)}")
    return value


def objects(value: Any, at: Spot) -> Iterator[tuple[Spot, Json]]:
    """The objects of a list of messages, each with its place."""
    for i, item in enumerate(a_list(value, at)):
        yield Spot(i), shallow(an_object(item, Spot(i)), Spot(i))


def shallow(value: Json, at: Spot) -> Json:
    """The object if it is not nested beyond reason: what reads or stores it later goes through it recursively."""
    if _deeper(value, LEVELS):
        at.fail(f"nested more than {LEVELS} levels deep")
    return value


def _deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    if levels == 0:
        return True
    for inner_value in value.values() if isinstance(value, dict) else value:
        if _deeper(inner_value, levels - 1):
            return True
    return False


def string(data: Json, key: str, at: Spot) -> str:
    """The string under `key`, which must be there."""
    if key not in data:
        (at / key).fail("missing")
    return a_string(data[key], at / key)


def inner(data: Json, key: str, at: Spot) -> Json:
    """The object under `key`, which must be there."""
    if key not in data:
        (at / key).fail("missing")
    return an_object(data[key], at / key)


def optional_string(data: Json, key: str, at: Spot) -> str:
    """The string under `key`; empty when there is none."""
    return a_string(data[key], at / key) if key in data else ""


def rest(data: Json, known: Collection[str]) -> Json:
    """A copy of the fields that are not `known`."""
    return {k: copied(v) for k, v in data.items() if k not in known}


def copied(value: Any) -> Any:
    """A copy of a JSON value that shares no object or list with it, so that neither side can change the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {k: copied(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [copied(v) for v in value]
    return value


def string_or_list(blocks: list[Json], *, as_list: bool, kind: str = "text") -> str | list[Json]:
    """Content as providers usually write it: one plain text as a string, unless `as_list`; all else as a list."""
    if not as_list and len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == kind:
        return str(blocks[0]["text"])
    return blocks


def json_text(value: Any, at: Spot) -> str:
    """The value as JSON text; `json_object` of it gives the same value back."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError) as error:
        at.fail(f"cannot be written as JSON: {error}")


def json_object(text: str) -> Json | None:
    """The object that JSON text stands for; None when it is not JSON (NaN is none) or not an object.

    A half of a character that was escaped in the text, which no provider accepts, is U+FFFD.
    """
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    found: Any = value
    whole: Json = sanitized(found)[0] if "\\u" in text else found
    return whole


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def count(data: Any, *path: str) -> int:
    """The whole number at the end of the path; 0 when there is none (providers leave counts out, or null)."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, int) and not isinstance(data, bool) and data > 0 else 0


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return names.get(type(value), f"a Python value of type {type(value).__name__}")

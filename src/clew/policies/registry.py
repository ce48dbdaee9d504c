"""Policies by name: for code (`pi(keep=20_000)`) and for text (`"pi:keep=20000,window=200000"`)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Literal, TypedDict, Unpack, get_args, get_origin

import msgspec
from msgspec import Struct

from clew.errors import BadBudget, UnknownName
from clew.policies.guard import Guarded
from clew.policies.harness.linear import Linear
from clew.policies.harness.pi import Pi
from clew.policies.harness.pi_entries import Version
from clew.policies.harness.qitos import QitOS

POLICIES: Mapping[str, type[Linear] | type[Pi] | type[QitOS]] = {"linear": Linear, "pi": Pi, "qitos": QitOS}
"""The harness policies, unguarded, by name."""

GUARDED: Mapping[str, Mapping[str, Any]] = {"qitos": {"summary_role": "user", "lossless": True}}
"""Settings whose default under guard is not the harness's own. QitOS puts the summary into a system message, though it
is made of what users and tools said; and its summary stands for messages that the model never saw."""


class Listing(Struct, frozen=True):
    """A policy that `policy` knows: its name, what it does in a line, and its settings with their defaults."""

    name: str
    summary: str
    settings: Mapping[str, Any]


# Written out for type checkers and editors; the structs have the defaults, and what the settings mean.


class LinearSettings(TypedDict, total=False):
    """What `linear` takes: the fields of `harness.linear.Linear`."""

    output: int | None


class PiSettings(TypedDict, total=False):
    """What `pi` takes: the fields of `harness.pi.Pi`."""

    reserve: int | None
    keep: int | None
    version: Version


class QitOSSettings(TypedDict, total=False):
    """What `qitos` takes: the fields of `harness.qitos.QitOS`."""

    max_tokens: int | None
    keep_last_rounds: int
    keep_last_messages: int
    long_chars: int
    preview_chars: int
    summary_max_chars: int
    summary_input_messages: int
    summary_role: Literal["system", "user"]
    lossless: bool


def available() -> tuple[Listing, ...]:
    """All policies, in the order of their names."""
    return tuple(Listing(name, _summary(kind), _settings(name)) for name, kind in sorted(POLICIES.items()))


def linear(*, window: int = 0, **settings: Unpack[LinearSettings]) -> Guarded:
    """Mini-SWE-Agent's linear history, guarded: nothing is touched until the view would not fit.

    `window` in tokens (0: the session's); `settings` are the fields of `harness.linear.Linear`.
    Raises `UnknownName` or `BadBudget` on a setting that does not exist or cannot work.
    """
    return _made("linear", settings, window)


def pi(*, window: int = 0, **settings: Unpack[PiSettings]) -> Guarded:
    """Pi's compaction, guarded: one summary for what is older than a number of tokens.

    `window` in tokens (0: the session's); `settings` are the fields of `harness.pi.Pi`.
    Raises `UnknownName` or `BadBudget` on a setting that does not exist or cannot work.
    """
    return _made("pi", settings, window)


def qitos(*, window: int = 0, **settings: Unpack[QitOSSettings]) -> Guarded:
    """QitOS's compaction, guarded: previews of old messages, then a summary of all but the last rounds.

    `window` in tokens (0: the session's); `settings` are the fields of `harness.qitos.QitOS`. Two defaults
    differ: the summary is a user message and is made of every message it stands for. `summary_role="system"` and
    `lossless=False` are what QitOS does.
    Raises `UnknownName` or `BadBudget` on a setting that does not exist or cannot work.
    """
    return _made("qitos", settings, window)


def policy(spec: str) -> Guarded:
    """The guarded policy of a text `name` or `name:setting=value,setting=value`.

    Numbers may have underscores; tokens are never abbreviated (`500k` is refused). Raises
    `UnknownName`, which lists what there is, or `BadBudget` on a value that cannot work.
    """
    name, _, rest = spec.strip().partition(":")
    if name not in POLICIES:
        raise UnknownName(f"no policy {name!r}; there are {', '.join(sorted(POLICIES))}")
    texts = dict(_pairs(spec, rest))
    known = {field.name: field.type for field in msgspec.structs.fields(POLICIES[name])}
    window = int(_value(name, "window", texts.pop("window", "0"), int))
    settings = {key: _value(name, key, text, known[key]) if key in known else text for key, text in texts.items()}
    return _made(name, settings, window)


def abbreviated(text: str) -> int | None:
    """The number of tokens that a text like "500k" or "1.5M" means; None when it is not of that form.

    Abbreviations are never accepted (is 128k 128,000 or 131,072?): this is for the error that says what to write.
    """
    found = re.fullmatch(r"(\d[\d_]*(?:\.\d+)?)\s*([kKmM])", text)
    if found is None:
        return None
    return int(float(found[1].replace("_", "")) * (1_000 if found[2] in "kK" else 1_000_000))


def _made(name: str, settings: Mapping[str, Any], window: int) -> Guarded:
    kind = POLICIES[name]
    known = _settings(name)
    for key in settings:
        if key not in known:
            raise UnknownName(f"policy {name} has no setting {key!r}; it has {', '.join(known)}")
    if isinstance(window, bool) or not isinstance(window, int) or window < 0:
        raise BadBudget(f"policy {name}: window must be a number of tokens, not {window!r}")
    try:
        made = Guarded(msgspec.convert({**GUARDED.get(name, {}), **settings}, kind), window)
    except msgspec.ValidationError as error:
        raise BadBudget(f"policy {name}: {error}") from error
    if window:
        made.budget(window)
    return made


def _pairs(spec: str, text: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for piece in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = (part.strip() for part in piece.partition("="))
        if not equals:
            raise BadBudget(f"{piece!r} in policy {spec!r} is not of the form setting=value")
        if key in seen:
            raise BadBudget(f"policy {spec!r} sets {key} twice")
        seen.add(key)
        yield key, value


def _value(policy: str, key: str, text: str, kind: Any) -> Any:
    """The text as the first of int, float, bool, str that the setting takes."""
    meant = abbreviated(text)
    if meant is not None:
        raise BadBudget(f"policy {policy}: {key}={text} is not a number of tokens; write {meant:_}")
    for read in (int, float, _bool, str):
        try:
            return msgspec.convert(read(text), kind)
        except (ValueError, msgspec.ValidationError):
            continue
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    wanted = f"none of {', '.join(map(repr, choices))}" if choices else f"not {_words(kind)}"
    raise BadBudget(f"policy {policy}: {key}={text!r} is {wanted}")


def _words(kind: Any) -> str:
    """A type in words, without the None that no text stands for."""
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    kinds = get_args(kind) or (kind,)
    return " or ".join(names.get(k, str(k)) for k in kinds if k is not NoneType)


def _bool(text: str) -> bool:
    words = {"true": True, "yes": True, "false": False, "no": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _settings(name: str) -> Mapping[str, Any]:
    fields = {field.name: field.default for field in msgspec.structs.fields(POLICIES[name])}
    return {**fields, **GUARDED.get(name, {}), "window": 0}


def _summary(kind: type[Struct]) -> str:
    """The first line of the docstring of the policy's module."""
    text = sys.modules[kind.__module__].__doc__ or ""
    return text.strip().splitlines()[0]

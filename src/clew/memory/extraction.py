"""Asks a model what a turn of a conversation says that lasts, and checks the answer against what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from clew.errors import BadReply, ModelError
from clew.memory.answers import json_object
from clew.memory.grounds import grounded, related, terms
from clew.memory.prompts import prompt
from clew.memory.records import MemoryRecord, folded
from clew.memory.render import unrecalled
from clew.messages import Message, Text, sanitized, system, user
from clew.models.base import ModelCall, answer_text
from clew.models.steps import Steps
from clew.policies.fences import fenced

ANSWER_TOKENS = 400
"""Limit of an extraction's answer, in tokens (the tutorial's 200 are used up by a few facts in Chinese)."""

KNOWN_FACTS = 60
"""How many of the known facts the model is shown: those that have to do with the turn, then the newest."""


class Fact(Struct, frozen=True, omit_defaults=True):
    """A change of what is known: `key` gets `value`, or (delete) has none any more. `quote` is what says so."""

    op: Literal["set", "replace", "delete"]
    key: str
    value: str = ""
    quote: str = ""
    doubt: str = ""


class Extraction(Struct, frozen=True, omit_defaults=True):
    """What came of asking about a turn (the record `turn` begins it).

    `facts` can be traced to what the user said; `doubtful` ones cannot, each says why. A failure has its reason;
    `raw` is the answer in any case.
    """

    turn: str
    status: Literal["ok", "none", "failed"]
    facts: tuple[Fact, ...] = ()
    doubtful: tuple[Fact, ...] = ()
    reason: str = ""
    raw: str = ""


def extraction(turn: Sequence[MemoryRecord], known: Mapping[str, str]) -> Steps[Extraction]:
    """Asks about a turn (the user's record first), given the known facts. A failure is a result, never an error.

    What memory itself put into the turn is left out, or it would be learnt again and again; a turn that says nothing
    beside it is not asked about.
    """
    id = turn[0].id
    turn = [replace(r, content=unrecalled(r.text)) for r in turn]
    if not turn[0].text.strip():
        return Extraction(id, "none")
    try:
        reply = yield request(turn, near(" ".join(r.text for r in turn), known, KNOWN_FACTS))
        raw = answer_text(reply)
    except ModelError as error:
        return Extraction(id, "failed", reason=f"{type(error).__name__}: {error.reason}", raw=error.raw)
    try:
        facts = facts_in(raw)
    except BadReply as error:
        return Extraction(id, "failed", reason=error.reason, raw=raw)
    judged = [judge(fact, turn, known) for fact in facts]
    good = tuple(f for f in judged if not f.doubt)
    return Extraction(id, "ok" if judged else "none", good, tuple(f for f in judged if f.doubt), raw=raw)


def request(turn: Sequence[MemoryRecord], known: Mapping[str, Any]) -> ModelCall:
    """The question to the model."""
    said = "\n".join(f"{r.role}: {r.text}" for r in turn)
    facts = msgspec.json.encode(known).decode()
    source = tuple(Message("assistant" if r.role == "assistant" else "user", (Text(r.text),)) for r in turn)
    return ModelCall(
        (system(prompt("extract")), user(f"{fenced('known', facts)}\n\n{fenced('turn', said)}")),
        max_output=ANSWER_TOKENS,
        purpose="extract",
        source=source,
    )


def facts_in(answer: str) -> list[Fact]:
    """The facts of an answer: the list asked for, or a plain object of keys and values (null: deleted).

    Raises `BadReply` when it is neither.
    """
    found = json_object(answer)
    if "facts" in found and not isinstance(found["facts"], str):
        try:
            facts = msgspec.convert(found["facts"], list[Fact])
        except msgspec.ValidationError as error:
            raise BadReply(f"the answer does not have the shape asked for: {error}", raw=answer) from error
    else:
        facts = [_plain(key, value, answer) for key, value in found.items()]
    facts = [sanitized(replace(f, key=f.key.strip(), value=f.value.strip()))[0] for f in facts]
    for fact in facts:
        if not fact.key or (fact.op != "delete" and not fact.value):
            raise BadReply("the answer has a fact without a key or value", raw=answer)
    return facts


def judge(fact: Fact, turn: Sequence[MemoryRecord], known: Mapping[str, str]) -> Fact:
    """The fact, with what speaks against it if something does. Only what the user says counts."""
    said = "\n".join(r.text for r in turn if r.role == "user")
    others = "\n".join(r.text for r in turn if r.role != "user")
    doubt = ""
    if fact.op == "delete":
        about = f"{fact.key} {known.get(fact.key, '')}"
        if fact.key not in known:
            doubt = "nothing is known under this key"
        elif not _quoted(fact, said) and not related(about, said):
            doubt = "nothing the user said is about it"
    elif not grounded(fact.value, said):
        doubt = "only the assistant said so" if grounded(fact.value, others) else "nobody said so"
    return Fact(fact.op, fact.key, fact.value, fact.quote, doubt)


def near(text: str, known: Mapping[str, str], most: int) -> dict[str, str]:
    """At most so many of the facts, in their order: those that share words with the text, then the newest."""
    if len(known) <= most:
        return dict(known)
    said = terms(text)
    place = {key: n for n, key in enumerate(known)}
    ranked = sorted(known, key=lambda key: (-len(said & terms(f"{key} {known[key]}")), -place[key]))
    return {key: known[key] for key in sorted(ranked[:most], key=place.__getitem__)}


def _plain(key: str, value: Any, answer: str) -> Fact:
    if value is None:
        return Fact("delete", key)
    if isinstance(value, bool | dict | list):
        raise BadReply(f"the value of {key!r} is not a text", raw=answer)
    return Fact("set", key, str(value))


def _quoted(fact: Fact, said: str) -> bool:
    return bool(fact.quote.strip()) and folded(fact.quote) in folded(said)

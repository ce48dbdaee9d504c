"""Reads the JSON a model answers with: one object, bare or in one fenced block, whatever stands around the block."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from clew.errors import BadReply

_FENCED = re.compile(r"```[ \t]*[\w-]*[ \t]*\n?(.*?)```", re.DOTALL)


def json_object(answer: str | None) -> dict[str, Any]:
    """The object in the answer. Raises `BadReply`, with the answer, for everything else; nothing is guessed."""
    text = (answer or "").strip()
    if not text:
        raise BadReply("the answer is empty")
    blocks = _FENCED.findall(text)
    if len(blocks) > 1:
        raise BadReply(f"the answer has {len(blocks)} fenced blocks; one was asked for", raw=text)
    try:
        found = json.loads(blocks[0] if blocks and not text.startswith("{") else text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadReply(f"the answer is not JSON: {error}", raw=text) from error
    if not isinstance(found, dict):
        raise BadReply(f"the answer is a JSON {type(found).__name__}, not an object", raw=text)
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")

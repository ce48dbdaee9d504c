"""Numbers and times as transcripts write them: anything that is not one reads as nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from clew.messages import Usage


def anthropic_usage(usage: Any) -> Usage | None:
    """Usage in the words of the Anthropic API; None when there is none or all is zero."""
    facts = mapping(usage)
    found = Usage(
        input=count(facts.get("input_tokens")),
        output=count(facts.get("output_tokens")),
        cache_read=count(facts.get("cache_read_input_tokens")),
        cache_write=count(facts.get("cache_creation_input_tokens")),
        reasoning=count(mapping(facts.get("output_tokens_details")).get("thinking_tokens")),
    )
    return found if found.total else None


def openai_usage(usage: Any) -> Usage | None:
    """Usage in the words of the OpenAI APIs (chat completions or responses); cached tokens taken out of the input."""
    facts = mapping(usage)
    prompt = count(facts.get("prompt_tokens")) or count(facts.get("input_tokens"))
    seen = mapping(facts.get("prompt_tokens_details")) or mapping(facts.get("input_tokens_details"))
    said = mapping(facts.get("completion_tokens_details")) or mapping(facts.get("output_tokens_details"))
    read = min(count(seen.get("cached_tokens")), prompt)
    write = min(count(facts.get("cache_creation_input_tokens")), prompt - read)
    found = Usage(
        input=prompt - read - write,
        output=count(facts.get("completion_tokens")) or count(facts.get("output_tokens")),
        cache_read=read,
        cache_write=write,
        reasoning=count(said.get("reasoning_tokens")),
    )
    return found if found.total else None


def count(value: Any) -> int:
    """A number of tokens, 0 for anything else."""
    return value if type(value) is int and value > 0 else 0


def seconds(value: Any) -> float:
    """Seconds since 1970 of an ISO 8601 time (UTC unless it says otherwise), of seconds, or of milliseconds.

    Numbers from 10^11 on are milliseconds (as seconds they would lie after the year 5000). 0 when it is none of these.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return 0.0
    if isinstance(value, int | float) and value > 0:
        return value / 1000 if value >= 1e11 else float(value)
    return 0.0


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}

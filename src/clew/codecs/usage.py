"""Tokens of a call in the words of each API. What is missing, null or no count reads as 0."""

from __future__ import annotations

from typing import Any

from clew.codecs.shape import count
from clew.messages import Usage


def openai_usage(data: Any) -> Usage:
    """As chat completions or Responses report it, where cached tokens are part of the input."""
    prompt = count(data, "prompt_tokens") or count(data, "input_tokens")
    seen = "prompt_tokens_details" if count(data, "prompt_tokens") else "input_tokens_details"
    read = min(count(data, seen, "cached_tokens"), prompt)
    write = min(count(data, "cache_creation_input_tokens"), prompt - read)  # LiteLLM's field
    return Usage(
        input=prompt - read - write,
        output=count(data, "completion_tokens") or count(data, "output_tokens"),
        cache_read=read,
        cache_write=write,
        reasoning=count(data, "completion_tokens_details", "reasoning_tokens")
        or count(data, "output_tokens_details", "reasoning_tokens"),
    )


def anthropic_usage(data: Any) -> Usage:
    """As Anthropic's messages report it."""
    return Usage(
        input=count(data, "input_tokens"),
        output=count(data, "output_tokens"),
        cache_read=count(data, "cache_read_input_tokens"),
        cache_write=count(data, "cache_creation_input_tokens"),
        reasoning=count(data, "output_tokens_details", "thinking_tokens"),
    )


def gemini_usage(data: Any) -> Usage:
    """As Gemini's `usageMetadata` reports it, where thoughts are no part of the candidates."""
    prompt = count(data, "promptTokenCount") + count(data, "toolUsePromptTokenCount")
    read = min(count(data, "cachedContentTokenCount"), prompt)
    thoughts = count(data, "thoughtsTokenCount")
    return Usage(
        input=prompt - read,
        output=count(data, "candidatesTokenCount") + thoughts,
        cache_read=read,
        reasoning=thoughts,
    )

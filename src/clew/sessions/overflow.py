"""Telling a provider's "the request is too long" from its other errors.

The phrases are those of the providers' own messages as Pi 0.73.1 (`utils/overflow`) collects them.
"""

from __future__ import annotations

import re

from clew.errors import OverflowReply

_TOO_LONG = re.compile(
    r"prompt (?:is )?too long"
    r"|request_too_large"
    r"|input is too long for requested model"
    r"|exceeds the context window"
    r"|input token count.*exceeds the maximum"
    r"|maximum prompt length is \d+"
    r"|reduce the length of the messages"
    r"|maximum context length (?:is|of) \d+"
    r"|exceeds the limit of \d+"
    r"|exceeds the available context size"
    r"|greater than the context length"
    r"|context window exceeds limit"
    r"|exceeded model token limit"
    r"|too large for model with \d+ maximum context length"
    r"|model_context_window_exceeded"
    r"|exceeded (?:max )?context length"
    r"|context[_ ]length[_ ]exceeded"
    r"|too many tokens"
    r"|token limit exceeded"
    r"|^4(?:00|13)\s*(?:status code)?\s*\(no body\)",
    re.IGNORECASE | re.DOTALL,
)
_SLOW_DOWN = re.compile(r"^(?:throttling error|service unavailable):|rate limit|too many requests", re.IGNORECASE)

PAYLOAD_TOO_LARGE = 413


def is_overflow(error: BaseException) -> bool:
    """True when a model call failed because the request was larger than the window or the provider's byte limit.

    Knows `OverflowReply`, HTTP status 413 (as an attribute `status_code` or `status`), and the
    providers' texts; a request to slow down is none, whatever it says of tokens.
    """
    if isinstance(error, OverflowReply):
        return True
    if PAYLOAD_TOO_LARGE in (getattr(error, "status_code", None), getattr(error, "status", None)):
        return True
    text = str(error).strip()
    return _SLOW_DOWN.search(text) is None and _TOO_LONG.search(text) is not None

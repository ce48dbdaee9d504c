"""Provider wire formats, both ways: `decode(payload)` gives messages, `encode(messages)` a payload.

`decode_reply(response)` gives the message in a provider's response, why it ended, and its usage.

Lossless for every valid payload: `encode(decode(payload)) == payload`. Messages that were built by
hand or come from another provider encode to a valid payload; each codec's docstring says what it
changes for that.
"""

from clew.codecs import anthropic, gemini, openai, responses

__all__ = ["anthropic", "gemini", "openai", "responses"]

"""First in, first out: how many of the oldest messages leave a queue that has become too long.

Pure, from the tokens and roles of the messages, so that a policy and a memory cut alike. System messages are not
part of the queue; an earlier summary is its first message.
"""

from __future__ import annotations

from collections.abc import Sequence

SHARE = 0.75
"""Share of the queue's tokens that MemGPT summarises at once (2023, `MESSAGE_SUMMARY_TRUNC_TOKEN_FRAC`)."""

KEPT = 3
"""Messages at the end that MemGPT never touches (`MESSAGE_SUMMARY_TRUNC_KEEP_N_LAST`)."""


def flushed(tokens: Sequence[int], roles: Sequence[str], *, share: float = SHARE, kept: int = KEPT) -> int:
    """How many messages MemGPT summarises: at least `share` of all tokens, but none of the last `kept`.

    A user message at the cut goes with them, so that an answer comes next. 0 when there are only the last ones.
    What the cut gives is odd where the queue is short: the message that passes the share stays (MemGPT at
    cpacker/MemGPT@8a7a64c, `Agent.summarize_messages_inplace`).
    """
    target = int(sum(tokens) * share)
    candidates = len(tokens) - kept
    if candidates < 1:
        return 0
    cut, so_far = 0, 0
    for cut in range(candidates):
        so_far += tokens[cut]
        if so_far > target:
            break
    return cut + 1 if roles[cut] == "user" else cut


def overflowing(tokens: Sequence[int], roles: Sequence[str], limit: int, size: int) -> int:
    """How many messages leave so that the rest has at most `limit` tokens: each time at least `size` tokens.

    The rest begins with a user message; its last turn stays whole, even if that alone is over the limit. Leaving in
    larger steps keeps the beginning of the requests, and so the provider's cache, the same for longer (LlamaIndex
    0.14.25, `Memory._manage_queue`: 70 % of 30,000 tokens, steps of 3,000).
    """
    first, last, total = 0, len(tokens) - 1, sum(tokens)
    while total > limit and first < last:
        cut, gone = first, 0
        while cut < last and gone < size:
            gone += tokens[cut]
            cut += 1
        while cut < last and roles[cut] != "user":
            cut += 1
        if roles[cut] != "user":
            cut = max((i for i in range(first, cut) if roles[i] == "user"), default=cut)
        if cut == first:
            break
        total -= sum(tokens[first:cut])
        first = cut
    return first

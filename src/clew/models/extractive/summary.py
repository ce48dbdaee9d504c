"""The extractive summariser as a pure function."""

from __future__ import annotations

from collections.abc import Iterable

from clew.messages import Message
from clew.models.extractive.digest import Digest
from clew.models.extractive.fit import fitted
from clew.models.extractive.form import parse
from clew.models.extractive.reader import Reader
from clew.tokens import TokenCounter


def extract(
    messages: Iterable[Message], max_tokens: int, counter: TokenCounter, previous: str = "", focus: str = ""
) -> str:
    """A summary of an agent session, taken from its messages without a model.

    It holds, in the language of the conversation, what a successor needs: the task and the user's
    constraints verbatim, decisions, facts, files changed and read, commands and how they ended,
    errors and whether they were resolved, the plan, open questions and the state at the end.
    `previous` is an earlier summary to bring up to date: one of this function is merged point by
    point, another text is kept as a quotation. `focus` says in words what to look for besides.

    The result has at most `max_tokens` tokens of `counter` (a heading at least) and is never
    blank; the same input gives the same text. Time grows linearly with the messages.
    """
    digest = parse(previous) if previous.strip() else Digest()
    return fitted(Reader.after(digest, focus).read(messages), max_tokens, counter)

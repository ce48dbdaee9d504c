"""The error family. Every error says what happened, with figures, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ClewError(Exception):
    """Base of everything Clew raises on purpose."""


class BadPayload(ClewError):
    """A provider payload or transcript does not have the shape its format asks for.

    `index` is the position of the message (or line), `field` the path inside it.
    """

    def __init__(self, reason: str, *, index: int | None = None, field: str = "") -> None:
        where = "" if index is None else f" at message {index}"
        where += f", field {field!r}" if field else ""
        super().__init__(f"malformed payload{where}: {reason}")
        self.reason = reason
        self.index = index
        self.field = field


class BadBudget(ClewError):
    """A window, reserve or threshold that cannot work; the text gives the effective values."""


class UnknownName(ClewError):
    """No policy, counter, format, session or entry has this name; the text lists what there is."""


class MissingExtra(ClewError):
    """A part of Clew needs a package that is not installed; `extra` names the extra that brings it."""

    def __init__(self, extra: str, package: str, purpose: str) -> None:
        super().__init__(f'{purpose} need the package {package}: pip install "clew[{extra}]"')
        self.extra = extra
        self.package = package


class SessionBusy(ClewError):
    """Another writer, of this process or another, holds the session's write lease.

    Wait for it, or continue on a fork of your own with `Session.open(..., if_busy="fork")`.
    `expires_in` is in seconds.
    """

    def __init__(self, session: str, owner: str, expires_in: float) -> None:
        super().__init__(
            f"session {session} is being written by {owner} (its lease ends in {expires_in:.0f} s); "
            'wait, or open it with if_busy="fork" to continue on a fork'
        )
        self.session = session
        self.owner = owner
        self.expires_in = expires_in


class LeaseLost(ClewError):
    """This writer's lease ran out and another took the session; what was appended is kept. Open the session again."""


class StoreError(ClewError):
    """The store could not be opened or written; the text says why and what to do."""


class Interrupted(StoreError):
    """A server could not be reached, or other writers were in the way all the time; it was tried again until the
    store's patience was over.

    With `unknown`, the connection was lost while a commit was under way: it may have been written. A call with a
    `key` can be made again without harm; otherwise look first.
    """

    def __init__(self, reason: str, *, unknown: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unknown = unknown


class EmbeddingError(ClewError):
    """There is no embedder, or it did not give one finite vector of its dimension for each text.

    Nothing is lost: what was to be embedded is stored, and is embedded when it is asked for again.
    """


class ContextOverflow(ClewError):
    """System prompt, tools and newest user message alone exceed the window: nothing else is left to shrink.

    `figures` (tokens): system, tools, user, needed, available, window, output.
    """

    def __init__(self, figures: Mapping[str, int]) -> None:
        f = figures
        super().__init__(
            f"system prompt ({f['system']:,}), tool schemas ({f['tools']:,}) and the newest user message "
            f"({f['user']:,}) need {f['needed']:,} tokens, but the window of {f['window']:,} less "
            f"{f['output']:,} for the reply leaves {f['available']:,}; "
            "shorten them or choose a larger window"
        )
        self.figures = dict(figures)


class ModelError(ClewError):
    """A model call did not give a usable reply. `raw` is what came back, `retryable` says whether to try again."""

    retryable = False

    def __init__(self, reason: str, *, raw: str = "", meta: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.raw = raw
        self.meta = dict(meta or {})


class EmptyReply(ModelError):
    """Neither text nor a tool call came back (often: hidden reasoning used up the output limit)."""


class RefusedReply(ModelError):
    """The provider or the model declined to answer."""


class TruncatedReply(ModelError):
    """The reply hit the output limit (`finish_reason` length)."""


class OverflowReply(ModelError):
    """The request exceeded the model's window (or the provider's byte limit)."""


class RateLimited(ModelError):
    """The provider asks to slow down."""

    retryable = True


class TransportError(ModelError):
    """The call did not reach the provider or broke off."""

    retryable = True


class BadReply(ModelError):
    """The reply is not of the shape asked for, or its text is an error message."""

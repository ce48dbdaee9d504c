"""What a replay comes to, as data. `clew replay --json` prints it.

Messages of the recording are numbered from 0, model calls too; figures are in tokens of the replay's counter.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Fate = Literal["kept", "summarised", "masked", "dropped"]
"""Where a recorded message is in the end: in view as it was, behind a summary, in view but shortened, out of view."""

FATES: tuple[Fate, ...] = ("kept", "summarised", "masked", "dropped")
"""All fates, from the one that leaves most of a message to the one that leaves nothing of it in view."""


class Moment(Struct, frozen=True):
    """One model call of the recording, as the policy would have made it.

    - `message`: the recorded reply
    - `sent`: tokens of the request; `output`: of the reply
    - `cached`: tokens at its beginning that are the same as in the request before, so that a provider's
      prompt cache can serve them
    - `same`, `new`: what the model saw, as a change: the first `same` messages of the view before, then
      those numbered in `new` (see `Result.items`)
    """

    message: int
    sent: int
    cached: int
    output: int
    same: int
    new: tuple[int, ...]


class Compacted(Struct, frozen=True):
    """A compaction during the replay.

    - `message`, `call`: the recorded message and the model call it happened before
    - `entry`: its entry in the replayed session, for `clew expand`
    - `before`, `after`: tokens of the view
    - `kept`, `summarised`, `masked`, `dropped`: what became of the messages that were in view
    - `model_calls`, `model_tokens`: what the policy asked the model for summaries
    - `summary`: the text of the summaries it made
    """

    message: int
    call: int
    entry: int
    reason: str
    before: int
    after: int
    kept: int
    summarised: int
    masked: int
    dropped: int
    model_calls: int
    model_tokens: int
    summary: str = ""


class Refused(Struct, frozen=True):
    """A compaction that did not count, before which message and call, and why (`clew.policies.REASONS`)."""

    message: int
    call: int
    reason: str
    detail: str


class Impossible(Struct, frozen=True):
    """A model call that could not have been made: what can never be left out needs more tokens than there are."""

    message: int
    needed: int
    available: int
    why: str


class Shown(Struct, frozen=True):
    """A message as it stood in some view. `kind` is that of `clew.sessions.view.Item`, `entries` what it stands for."""

    role: str
    kind: str
    tokens: int
    text: str
    entries: str = ""


class Share(Struct, frozen=True):
    """How many recorded messages met a fate by the end, and their tokens."""

    messages: int = 0
    tokens: int = 0


class Result(Struct, frozen=True):
    """What a policy made of a recording.

    - `source`, `policy`, `model`, `counter`, `price`: names of what took part
    - `window`, `limit`, `trigger`: tokens of the model's window, of the largest prompt, and above which a
      view is due for compaction
    - `messages`: how many the recording has
    - `moments`, `compactions`, `failures`, `impossible`: what happened, in order
    - `fates`: where the recorded messages are at the end
    - `items`: every message that stood in some view, once; `Moment.new` numbers them
    - `final`: tokens of the view at the end
    - `dollars`: cost of all model calls at these prices, in US dollars
    """

    source: str
    policy: str
    model: str
    counter: str
    price: str
    window: int
    limit: int
    trigger: int
    messages: int
    moments: tuple[Moment, ...]
    compactions: tuple[Compacted, ...]
    failures: tuple[Refused, ...]
    fates: dict[str, Share]
    items: tuple[Shown, ...]
    final: int
    dollars: float
    impossible: tuple[Impossible, ...] = ()

    @property
    def sent(self) -> int:
        """Tokens sent in all requests together."""
        return sum(m.sent for m in self.moments)

    @property
    def output(self) -> int:
        """Tokens of all replies."""
        return sum(m.output for m in self.moments)

    @property
    def peak(self) -> int:
        """The largest request."""
        return max((m.sent for m in self.moments), default=0)

    @property
    def mean(self) -> int:
        """The mean request."""
        return self.sent // len(self.moments) if self.moments else 0

    @property
    def cache_hits(self) -> float:
        """Share of the sent tokens that a prompt cache could serve, 0 to 1."""
        return sum(m.cached for m in self.moments) / self.sent if self.sent else 0.0

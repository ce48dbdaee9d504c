"""The messages a model sees: a pure function of a branch, kept up to date entry by entry.

The log may hold what no provider accepts: a call whose result never came, a result without its
call, an empty reply, a conversation that begins with the assistant. `Projection` mends that as it
reads, always in the same way, so the view is valid for the strictest provider at every moment and
the same branch gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import ceil
from typing import Any, Literal, overload

from msgspec import Struct
from msgspec.structs import replace

from clew.messages import Message, Text, ToolResult, user
from clew.sessions.edits import SELF, Edit, How, Ids, Insert, Replace, pack
from clew.sessions.entries import BranchSummary, Compaction, Entry, Pin, Said
from clew.sessions.media import media_size
from clew.sessions.spans import Index, Spans
from clew.tokens.protocol import TokenCounter, learns

NO_RESULT = "[no result of this call was recorded]"
BEGINS_WITH_ASSISTANT = "[the conversation begins with the assistant]"

Kind = Literal["message", "mend"] | How


class Item(Struct, frozen=True, gc=False):
    """One message of a view, the entries it stands for (packed), and its count by the session's counter.

    `kind` says how it came about: "message" as logged, "mend" put in to keep the view valid,
    otherwise the `how` of the edit that made it.
    """

    message: Message
    ids: Ids
    count: int
    kind: Kind = "message"


class Run(Sequence[Item]):
    """An immutable sequence that shares its storage with the longer ones grown from it."""

    __slots__ = ("_items", "_last", "_n")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = list(items)
        self._n = len(self._items)
        self._last: Item | None = None

    def grown(self, item: Item) -> Run:
        """The sequence with one more item; O(1) when this is the newest of its family."""
        if len(self._items) != self._n or self._last is not None:
            self = Run(self)
        new = Run.__new__(Run)
        new._items, new._n, new._last = self._items, self._n + 1, None
        self._items.append(item)
        return new

    def ended(self, item: Item) -> Run:
        """The sequence with one more item that is not shared, so that growing this one stays O(1)."""
        new = Run.__new__(Run)
        new._items, new._n, new._last = self._items, self._n, item
        return new

    def common(self, other: Run) -> int:
        """How many leading items both have; O(1) when one grew from the other."""
        shared = min(self._n, other._n) if self._items is other._items else 0
        for i in range(shared, min(len(self), len(other))):
            if self[i] is not other[i] and self[i] != other[i]:
                return i
        return min(len(self), len(other))

    def __len__(self) -> int:
        return self._n if self._last is None else self._n + 1

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = index + len(self) if index < 0 else index
        if not 0 <= i < len(self):
            raise IndexError(index)
        return self._last if i == self._n else self._items[i]

    def __iter__(self) -> Iterator[Item]:
        yield from islice(self._items, self._n)
        if self._last is not None:
            yield self._last


class View(Struct, frozen=True):
    """What the model sees now.

    `overhead` counts what is sent beside the messages (tool schemas), `media_bytes` is inline media
    in bytes of base64, `pins` are texts no compaction may lose.
    """

    items: Run
    counter: TokenCounter
    count: int
    media_bytes: int = 0
    overhead: int = 0
    pins: tuple[str, ...] = ()

    @property
    def scale(self) -> float:
        """Real tokens per counted one, as learnt from the provider's reports (1 if the counter does not learn)."""
        return scale_of(self.counter)

    @property
    def tokens(self) -> int:
        """Tokens of the whole request: messages and overhead, calibrated."""
        return ceil((self.count + self.overhead) * self.scale)

    def weigh(self, items: Iterable[Item]) -> int:
        """Calibrated tokens of some items."""
        return ceil(sum(i.count for i in items) * self.scale)

    @property
    def messages(self) -> list[Message]:
        """The messages, in order."""
        return [i.message for i in self.items]

    def edited(self, edits: Sequence[Edit]) -> View:
        """The view as it would be with the edits: what the log will show once they are committed."""
        state = Projection(self.counter, self.items, overhead=self.overhead, pins=self.pins)
        return state.edited(edits, SELF).view

    def safe_cuts(self) -> list[int]:
        """Indices before which a cut splits no round; 0 and the length included."""
        return [i for i, item in enumerate(self.items) if item.message.role != "tool"] + [len(self.items)]

    def head(self) -> int:
        """How many leading system messages there are."""
        n = 0
        while n < len(self.items) and self.items[n].message.role == "system":
            n += 1
        return n

    def last_user(self) -> int | None:
        """Index of the newest message the user wrote (not a summary, not a mend)."""
        for i in range(len(self.items) - 1, -1, -1):
            item = self.items[i]
            if item.message.role == "user" and item.kind in ("message", "keep"):
                return i
        return None


class Projection(Struct, frozen=True):
    """A view being read from a branch: `step` takes one entry further, `view` is what it shows now.

    `open` are the calls of the newest round that have no result yet, `owner` the entry ids of the
    message that made them. `stub` is the place of that round's stand-in results (-1: none): a result
    that comes late, after the user spoke in between, takes its stand-in's place.
    """

    counter: TokenCounter
    items: Run
    count: int = 0
    media: int = 0
    open: tuple[tuple[str, str], ...] = ()
    owner: Ids = ()
    stub: int = -1
    overhead: int = 0
    pins: tuple[str, ...] = ()

    @classmethod
    def start(cls, counter: TokenCounter, overhead: int = 0) -> Projection:
        """An empty view."""
        return cls(counter, Run(), overhead=overhead)

    @property
    def view(self) -> View:
        """The view; calls still waiting for their result get a stand-in, which the log does not see."""
        items, count = self.items, self.count
        if self.open:
            stub = self._counted(self._stand_in())
            items, count = items.ended(stub), count + stub.count
        return View(items, self.counter, count, self.media, self.overhead, self.pins)

    def step(self, entry: Entry) -> Projection:
        """The projection after one more entry of the branch."""
        body = entry.body
        if isinstance(body, Said):
            known = body.tokens if body.counter == self.counter.name else None
            learned = self._learned(body.message) if body.message.usage else self
            return learned._add(body.message, (entry.id,), known, "message")
        if isinstance(body, Compaction):
            return self.edited(body.edits, entry.id)
        if isinstance(body, BranchSummary):
            return self._add(body.message, (entry.id,), None, "summary")
        if isinstance(body, Pin):
            return replace(self, pins=(*self.pins, body.text))
        return self

    def edited(self, edits: Sequence[Edit], entry: int) -> Projection:
        """The projection with its items edited and mended again."""
        fresh = replace(self, items=Run(), count=0, media=0, open=(), owner=(), stub=-1)
        for item in apply(self.items, edits, entry):
            known = item.count if item.count >= 0 else None
            fresh = fresh._add(item.message, item.ids, known, item.kind)
        return fresh

    def _learned(self, message: Message) -> Projection:
        if message.usage is None or not learns(self.counter):
            return self
        return replace(self, counter=self.counter.learned(self.count + self.overhead, message.usage.prompt))

    def _add(self, message: Message, ids: Ids, count: int | None, kind: Kind) -> Projection:
        if message.role == "tool":
            return self._results(message, ids, count, kind)
        if message.blank:
            return self
        ready = self._closed() if self.open else self
        if message.role == "assistant" and (not ready.items or ready.items[-1].message.role == "system"):
            ready = ready._put(Item(user(BEGINS_WITH_ASSISTANT), ids, -1, "mend"))
        item = Item(message, ids, -1 if count is None else count, kind)
        if message.role != "assistant":
            return ready._put(item)
        opened = tuple((c.id, c.name) for c in message.calls)
        return ready._put(item, open=opened, owner=ids if opened else (), stub=-1)

    def _results(self, message: Message, ids: Ids, count: int | None, kind: Kind) -> Projection:
        waiting = list(self.open)
        taken: list[ToolResult] = []
        late: list[ToolResult] = []
        for part in message.results:
            match = next((w for w in waiting if w[0] == part.call_id), None)
            if match is not None:
                waiting.remove(match)
                taken.append(part)
            elif self.stub >= 0:
                late.append(part)
        ready = self._belated(late, ids, kind) if late else self
        if not taken:
            return ready
        if len(taken) != len(message.parts):
            message, count = replace(message, parts=tuple(taken)), None
        item = Item(message, ids, -1 if count is None else count, kind)
        return ready._put(item, open=tuple(waiting), owner=self.owner if waiting else ())

    def _belated(self, late: Sequence[ToolResult], ids: Ids, kind: Kind) -> Projection:
        """Puts results that come after the round was closed where their stand-ins are."""
        stub = self.items[self.stub]
        waiting = list(stub.message.results)
        taken: list[ToolResult] = []
        for part in late:
            match = next((w for w in waiting if w.call_id == part.call_id), None)
            if match is not None:
                waiting.remove(match)
                taken.append(part)
        if not taken:
            return self
        rest = [Item(Message("tool", tuple(waiting)), stub.ids, -1, "mend")] if waiting else []
        tail = self.items[self.stub + 1 :]
        ready = replace(
            self,
            items=Run(self.items[: self.stub]),
            count=self.count - stub.count - sum(i.count for i in tail),
            media=self.media - sum(media_size(i.message) for i in tail),
        )
        for item in (Item(Message("tool", tuple(taken)), ids, -1, kind), *rest, *tail):
            ready = ready._put(item)
        return replace(ready, stub=self.stub + 1 if rest else -1)

    def _stand_in(self) -> Item:
        stubs = tuple(ToolResult(i, (Text(NO_RESULT),), True, name) for i, name in self.open)
        return Item(Message("tool", stubs), self.owner, -1, "mend")

    def _closed(self) -> Projection:
        return self._put(self._stand_in(), open=(), owner=(), stub=len(self.items))

    def _counted(self, item: Item) -> Item:
        return item if item.count >= 0 else replace(item, count=self.counter.message(item.message))

    def _put(self, item: Item, **changes: Any) -> Projection:
        item = self._counted(item)
        return replace(
            self,
            items=self.items.grown(item),
            count=self.count + item.count,
            media=self.media + media_size(item.message),
            **changes,
        )


def apply(items: Iterable[Item], edits: Sequence[Edit], entry: int) -> list[Item]:
    """The items after the edits, one after the other. Mends are left out (they are made anew).

    An edit touches exactly the items whose entries it names in full. New items have a count of -1;
    `entry` is what an inserted message without sources stands for.
    """
    now: list[Item | None] = [i for i in items if i.kind != "mend"]  # None where an item is gone
    index, moved = _index(now), dict[int, int]()
    for edit in edits:
        if isinstance(edit, Insert):
            here = [i for i in now if i is not None]
            place = _place(here, edit.after)
            new = Item(edit.message, pack(edit.sources) or (entry,), -1, edit.how)
            now = [*here[:place], new, *here[place:]]
            index, moved = _index(now), {}
            continue
        named = Spans(edit.ids)
        if named.covers((SELF,)):
            named.add((entry,))
        near = sorted({_moved(i, moved) for i in index.sharing(named.ids)})
        touched = {i: item for i in near if (item := now[i]) is not None and named.covers(item.ids)}
        for i in touched:
            now[i] = None
        if touched and isinstance(edit, Replace):
            first = next(iter(touched))
            now[first] = Item(edit.message, pack(e for item in touched.values() for e in item.ids), -1, edit.how)
            moved.update((i, first) for i in touched if i != first)
    return [i for i in now if i is not None]


def _index(items: Sequence[Item | None]) -> Index:
    """Where each entry's items are."""
    return Index(() if item is None else item.ids for item in items)


def _moved(place: int, moved: Mapping[int, int]) -> int:
    """Where an item is now that others were put together with."""
    while place in moved:
        place = moved[place]
    return place


def _place(items: Sequence[Item], after: int | None) -> int:
    if after is not None:
        for i in range(len(items) - 1, -1, -1):
            if Spans(items[i].ids).covers((after,)):
                return i + 1
    i = 0
    while i < len(items) and items[i].message.role == "system":
        i += 1
    return i


def scale_of(counter: TokenCounter) -> float:
    """The counter's calibration factor (1 for counters that do not learn)."""
    return counter.factor if learns(counter) else 1.0


def project(branch: Iterable[Entry], counter: TokenCounter, overhead: int = 0) -> Projection:
    """Reads a whole branch."""
    state = Projection.start(counter, overhead)
    for entry in branch:
        state = state.step(entry)
    return state

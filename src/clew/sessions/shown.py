"""The messages of a view as a sequence, without copying them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from clew.messages import Message
from clew.sessions.view import View


class Messages(Sequence[Message]):
    """What the model sees, as an immutable sequence over a view: made in O(1), however long the view is.

    It stays as it is when the session goes on. Equal to any sequence of the same messages;
    `list(messages)` gives a list of one's own.
    """

    __slots__ = ("view",)

    def __init__(self, view: View) -> None:
        self.view = view

    def __len__(self) -> int:
        return len(self.view.items)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [item.message for item in self.view.items[index]]
        return self.view.items[index].message

    def __iter__(self) -> Iterator[Message]:
        return (item.message for item in self.view.items)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as for a list: equality is by content

    def __repr__(self) -> str:
        return f"Messages({list(self)!r})"

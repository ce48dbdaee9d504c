"""What a memory holds: records, whose they are, and where they come from."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct, field

from clew.errors import UnknownName

REMEMBERED = 2_000
"""Characters of a text of which the identity is kept for a while: a write asks for it several times."""


class Namespace(Struct, frozen=True):
    """Whose a memory is. Every read and write is in exactly one namespace: "u1" never sees "u10", nor "" both."""

    tenant: str = "default"
    user: str = ""
    agent: str = ""
    project: str = ""

    def __post_init__(self) -> None:
        if not all(isinstance(part, str) for part in self._parts) or not self.tenant:
            raise UnknownName(f"a namespace is of texts and has a tenant, which {self._parts} is not; name the tenant")

    @property
    def _parts(self) -> tuple[str, str, str, str]:
        return (self.tenant, self.user, self.agent, self.project)

    @property
    def path(self) -> str:
        """The namespace as one text, different for different namespaces."""
        return "/".join(quote(part, safe="", errors="surrogatepass") for part in self._parts).rstrip("/")

    @classmethod
    def of(cls, path: str) -> Namespace:
        """The namespace of a `path`."""
        return cls(*map(partial(unquote, errors="surrogatepass"), path.split("/")))


class Source(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a record comes from: an entry of a session, or any other text by its name.

    `digest` is that of its text then, so that a later change of the text is noticed.
    """

    entry: str
    session: str = ""
    digest: str = ""

    @classmethod
    def of(cls, entry: str | int, text: str, session: str = "") -> Source:
        """The source of this text."""
        return cls(str(entry), session, digest(text))

    def matches(self, text: str) -> bool:
        """False when the text is known not to be what the source said then."""
        return self.digest in ("", digest(text))


class MemoryRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing remembered. The first four fields are QitOS's, in its order.

    `content` is any JSON value. `kind` says what it is ("message", "summary", "entity", "block", "passage", ...),
    `key` and `value` name a fact: a new value under the same kind and key supersedes the old. `speaker` is who said
    it. The record holds true from `valid_from` until `valid_to` (None: still), it was first stored at `created`;
    all three in seconds since 1970. `confidence` is between 0 and 1; `uses` counts how often it was recalled.
    """

    role: str
    content: Any
    step_id: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    namespace: str = ""
    kind: str = ""
    key: str = ""
    value: str = ""
    speaker: str = ""
    sources: tuple[Source, ...] = ()
    valid_from: float | None = None
    valid_to: float | None = None
    confidence: float = 1.0
    uses: int = 0
    pinned: bool = False
    created: float = 0.0

    @property
    def text(self) -> str:
        """The content as text: itself, or its JSON."""
        return text_of(self.content)

    @property
    def session(self) -> str:
        """The session it belongs to: that of its first source, else the one its metadata names, else ""."""
        if self.sources and self.sources[0].session:
            return storable(self.sources[0].session)
        named = self.metadata.get("session", "")
        return storable(named) if isinstance(named, str) else ""

    def line(self, limit: int | None = None) -> str:
        """The record as one line: step, role, and the content's first `limit` characters (as QitOS prints it)."""
        return f"[{self.step_id}] {self.role}: {str(self.content)[:limit]}"


_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(name: str) -> str:
    """A text as it can name something in every store: with U+FFFD for NUL, which PostgreSQL has no place for, and for
    lone surrogates, which UTF-8 has not."""
    return _UNSTORABLE.sub("\ufffd", name)


def text_of(content: Any) -> str:
    """A content as text: itself, or its JSON; nothing is ""."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return json.dumps(plain(content), ensure_ascii=False, separators=(",", ":"))  # unlike msgspec, any text at all


def plain(content: Any) -> Any:
    """A content as a JSON value; what JSON has no form for becomes its text."""
    return msgspec.to_builtins(content, str_keys=True, enc_hook=str)


def digest(text: str) -> str:
    """Identifies a text: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def folded(text: str) -> str:
    """A text without what does not change its meaning: width, case, spaces, and the full stop at its end."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(text.split()).rstrip(" .。")


def identity(record: MemoryRecord) -> str:
    """What two records that say the same have in common."""
    said = record.value or record.text
    make = _identity if len(said) < REMEMBERED else _identity.__wrapped__
    return make(record.kind, record.key, record.speaker, said)


@lru_cache(2048)
def _identity(kind: str, key: str, speaker: str, said: str) -> str:
    return digest("\0".join((kind, key, speaker, folded(said))))

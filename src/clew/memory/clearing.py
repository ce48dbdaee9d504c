"""What is done to everything before it is stored: secrets are taken out, orders to the model are marked."""

from __future__ import annotations

from msgspec.structs import replace

from clew.memory.changes import Body, Closed, Tried
from clew.memory.injections import signs
from clew.memory.records import MemoryRecord, text_of
from clew.memory.redact import clean, kinds, redacted

REDACTED = "redacted"
"""In a record's metadata: the kinds of secrets that were taken out."""

INJECTION = "injection"
"""In a record's metadata: the signs that its text tries to give a model orders."""


def cleared(record: MemoryRecord) -> MemoryRecord:
    """The record without secrets; its metadata says which were taken out, and what signs of an injection it has."""
    content, metadata = clean(record.content), record.metadata
    if metadata:
        metadata = clean({name: one for name, one in metadata.items() if name not in (REDACTED, INJECTION)})
    key, value = redacted(record.key), redacted(record.value)
    texts = [text_of(content), key, value, *([text_of(metadata)] if metadata else ())]
    notes = {REDACTED: kinds(texts), INJECTION: signs(texts[0])}
    metadata = {**metadata, **{name: note for name, note in notes.items() if note}}
    if (content, key, value, metadata) == (record.content, record.key, record.value, record.metadata):
        return record
    return replace(record, content=content, key=key, value=value, metadata=metadata)


def cleared_body(body: Body) -> Body:
    """The same for what is said in other changes: the reason of an end, the answer of a model."""
    if isinstance(body, Closed) and body.reason:
        return replace(body, reason=redacted(body.reason))
    if isinstance(body, Tried) and (body.raw or body.reason):
        return replace(body, raw=redacted(body.raw), reason=redacted(body.reason))
    return body

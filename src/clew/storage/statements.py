"""The SQL of the store, as SQLAlchemy expressions: compiled for each database, and only once."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, and_, bindparam, insert, literal, select, text, type_coerce, update
from sqlalchemy.types import NullType

from clew.storage.rows import SessionRow
from clew.storage.schema import entries, sessions

BATCH = 200
"""Rows fetched at a time, and keys looked up in one statement."""


def raw(column: Column[Any]) -> ColumnElement[Any]:
    """The column's value as the database has it: what a damaged file holds must not break the reading."""
    return type_coerce(column, NullType()).label(column.name)


COLUMNS = [raw(sessions.c[name]) for name in SessionRow.__struct_fields__]
SESSION = select(*COLUMNS).where(sessions.c.namespace == bindparam("namespace"), sessions.c.id == bindparam("id"))
SESSION_ALONE = SESSION.with_for_update()
"""Locks the row as well, on a database that has locks of rows."""

SESSIONS = (
    select(*COLUMNS)
    .where(sessions.c.namespace == bindparam("namespace"))
    .order_by(sessions.c.updated.desc(), sessions.c.id)
)
_OF_SESSION = and_(entries.c.namespace == bindparam("namespace"), entries.c.session == bindparam("session"))
_CHOSEN = and_(_OF_SESSION, entries.c.id >= bindparam("first"), entries.c.id <= bindparam("last"))
LINKS = select(raw(entries.c.id), raw(entries.c.parent)).where(_CHOSEN).order_by(entries.c.id)
_HEAD = [raw(entries.c[name]) for name in ("id", "parent", "kind", "at", "key")]
HEADS = select(*_HEAD, literal(b"", NullType())).where(_CHOSEN).order_by(entries.c.id)
ALL_ROWS = select(*_HEAD, raw(entries.c.body)).where(_CHOSEN).order_by(entries.c.id)
ROWS = ALL_ROWS.limit(BATCH)
HELD = select(entries.c.key, entries.c.id).where(
    _OF_SESSION,
    entries.c.key.in_(bindparam("keys", expanding=True)),
    entries.c.key != text("''"),  # as the partial index says it: a bound value would hide it from the planner
    entries.c.id + 0 <= bindparam("last"),  # kept out of the choice of index, which would be a scan of the session
)
ADD = insert(entries)
ADVANCE = (
    update(sessions)
    .where(
        sessions.c.namespace == bindparam("of_namespace"),
        sessions.c.id == bindparam("of_session"),
        sessions.c.lease_owner == bindparam("owner"),
        sessions.c.last < bindparam("oldest"),
    )
    .values(
        leaf=bindparam("new_leaf"),
        last=bindparam("newest"),
        entries=sessions.c.entries + bindparam("added"),
        updated=bindparam("now"),
        lease_expires=bindparam("expires"),
    )
)
"""Counts new entries in, if the owner has the lease and the ids are new: one row changed, or none."""

_MINE = and_(
    sessions.c.namespace == bindparam("of_namespace"),
    sessions.c.id == bindparam("of_session"),
    sessions.c.lease_owner == bindparam("owner"),
)
MOVE = (
    update(sessions)
    .where(_MINE)
    .values(leaf=bindparam("new_leaf"), updated=bindparam("now"), lease_expires=bindparam("expires"))
)
RELEASE = update(sessions).where(_MINE).values(lease_owner="", lease_expires=0.0)
TAKE = (
    update(sessions)
    .where(sessions.c.namespace == bindparam("of_namespace"), sessions.c.id == bindparam("of_session"))
    .values(lease_owner=bindparam("owner"), lease_expires=bindparam("expires"))
)

"""The tables, the same on every database. Every key begins with the namespace, so that tables can be
distributed by it.

A change here needs a migration in `migrations/versions` and its name at the end of `REVISIONS`; a
test compares what the migrations build with what stands here.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

REVISIONS = ("0001", "0002")
"""Every schema version there has been, oldest first."""

metadata = MetaData()

sessions = Table(
    "sessions",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    Column("leaf", BigInteger),
    Column("last", BigInteger, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("parent", Text),
    Column("parent_entry", BigInteger),
    Column("lease_owner", Text, nullable=False),
    Column("lease_expires", Double, nullable=False),
    Column("meta", LargeBinary, nullable=False),
    PrimaryKeyConstraint("namespace", "id", name="sessions_pk"),
    ForeignKeyConstraint(("namespace", "parent"), ("sessions.namespace", "sessions.id"), name="sessions_parent_fk"),
)

entries = Table(
    "entries",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("id", BigInteger, nullable=False),
    Column("parent", BigInteger),
    Column("kind", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("key", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("namespace", "session", "id", name="entries_pk"),
    ForeignKeyConstraint(("namespace", "session"), ("sessions.namespace", "sessions.id"), name="entries_session_fk"),
)

Index(
    "entries_key",
    entries.c.namespace,
    entries.c.session,
    entries.c.key,
    unique=True,
    sqlite_where=text("key <> ''"),
    postgresql_where=text("key <> ''"),
)

changes = Table(
    "changes",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("uid", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("namespace", "position", name="changes_pk"),
    UniqueConstraint("namespace", "uid", name="changes_uid"),
)
"""The log of a memory: `position` is the order of arrival here, `at` the time of the change wherever it was made."""

version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table: one row, the version this database has."""

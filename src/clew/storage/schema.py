"""The tables, the same on every database. Every key begins with the namespace, so that tables can be
distributed by it.

A change here needs a migration in `migrations/versions` and its name at the end of `REVISIONS`; a
test compares what the migrations build with what stands here.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
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
    Column("record", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("namespace", "position", name="changes_pk"),
    sqlite_with_rowid=False,
)
"""The log of a memory: `position` is the order of arrival here, without gaps, `at` the time of the change wherever it
was made. `record` is the id of the record it concerns ("" for none), `topic` what else it is found by ("" for
nothing): the digest of what was said, the task that was tried."""

Index("changes_uid", changes.c.namespace, changes.c.uid, unique=True)
Index("changes_record", changes.c.namespace, changes.c.record, changes.c.position)
for _name in ("key", "topic"):
    Index(
        f"changes_{_name}",
        changes.c.namespace,
        changes.c[_name],
        sqlite_where=text(f"{_name} <> ''"),
        postgresql_where=text(f"{_name} <> ''"),
    )

heads = Table(
    "heads",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("namespace", name="heads_pk"),
    sqlite_with_rowid=False,
)
"""Where each log stands: its last position, and the time of its newest change."""

versions = Table(
    "versions",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("born", Text, nullable=False),
    Column("since", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("changed", Double, nullable=False),
    Column("valid_from", Double, nullable=False),
    Column("valid_to", Double),
    Column("uses", BigInteger, nullable=False),
    Column("pinned", Boolean, nullable=False),
    Column("sources", LargeBinary),
    PrimaryKeyConstraint("namespace", "record", "position", name="versions_pk"),
    sqlite_with_rowid=False,
)
"""What the changes of each record come to, kept up to date with them: a row for each version, by the position of the
change that opened it and that holds its content. It is shown as the record from `since` until before `until`. The
record became known at `created`, by the change `born`. From `changed` on it is told with `valid_from` and what follows
(`sources`: if they are not those it was opened with); what it was told with before has to be made of its changes, and a
version that ended before has nothing here."""

Index("versions_kind", versions.c.namespace, versions.c.kind, versions.c.created, versions.c.born)
Index(
    "versions_session",
    versions.c.namespace,
    versions.c.session,
    versions.c.position,
    sqlite_where=text("session <> ''"),
    postgresql_where=text("session <> ''"),
)

marks = Table(
    "marks",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("after", Double, nullable=False),
    PrimaryKeyConstraint("namespace", "name", name="marks_pk"),
    sqlite_with_rowid=False,
)
"""The time after which the memory of a name shows records."""

vectors = Table(
    "vectors",
    metadata,
    Column("namespace", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("namespace", "model", "digest", name="vectors_pk"),
)
"""What a model made of a text, by the text's digest: float16, little-endian. With rows of a kilobyte in the order of
digests SQLite would write three times as long, and a tenth more."""

version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table: one row, the version this database has."""

"""The changes of memories, what they come to, and vectors."""

import sqlalchemy as sa
from alembic import op

from clew.storage.tenants import expose, protect

revision = "0002"
down_revision = "0001"

NEW = ("vectors", "marks", "versions", "heads", "changes")


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "position", name="changes_pk"),
        sqlite_with_rowid=False,
    )
    op.create_index("changes_uid", "changes", ["namespace", "uid"], unique=True)
    op.create_index("changes_record", "changes", ["namespace", "record", "position"])
    for name in ("key", "topic"):
        has = sa.text(f"{name} <> ''")
        op.create_index(f"changes_{name}", "changes", ["namespace", name], sqlite_where=has, postgresql_where=has)
    op.create_table(
        "heads",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("namespace", name="heads_pk"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "versions",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("born", sa.Text, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("changed", sa.Double, nullable=False),
        sa.Column("valid_from", sa.Double, nullable=False),
        sa.Column("valid_to", sa.Double),
        sa.Column("uses", sa.BigInteger, nullable=False),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.Column("sources", sa.LargeBinary),
        sa.PrimaryKeyConstraint("namespace", "record", "position", name="versions_pk"),
        sqlite_with_rowid=False,
    )
    op.create_index("versions_kind", "versions", ["namespace", "kind", "created", "born"])
    has = sa.text("session <> ''")
    op.create_index(
        "versions_session",
        "versions",
        ["namespace", "session", "position"],
        sqlite_where=has,
        postgresql_where=has,
    )
    op.create_table(
        "marks",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("after", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "name", name="marks_pk"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "vectors",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "model", "digest", name="vectors_pk"),
    )
    protect(op.get_bind(), ("sessions", "entries", *NEW))


def downgrade() -> None:
    for table in NEW:
        op.drop_table(table)
    expose(op.get_bind(), ("sessions", "entries"))

"""Sessions and their entries."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.Column("leaf", sa.BigInteger),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("entries", sa.BigInteger, nullable=False),
        sa.Column("parent", sa.Text),
        sa.Column("parent_entry", sa.BigInteger),
        sa.Column("lease_owner", sa.Text, nullable=False),
        sa.Column("lease_expires", sa.Double, nullable=False),
        sa.Column("meta", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "id", name="sessions_pk"),
        sa.ForeignKeyConstraint(
            ("namespace", "parent"), ("sessions.namespace", "sessions.id"), name="sessions_parent_fk"
        ),
    )
    op.create_table(
        "entries",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("id", sa.BigInteger, nullable=False),
        sa.Column("parent", sa.BigInteger),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "session", "id", name="entries_pk"),
        sa.ForeignKeyConstraint(
            ("namespace", "session"), ("sessions.namespace", "sessions.id"), name="entries_session_fk"
        ),
    )
    op.create_index(
        "entries_key",
        "entries",
        ["namespace", "session", "key"],
        unique=True,
        sqlite_where=sa.text("key <> ''"),
        postgresql_where=sa.text("key <> ''"),
    )

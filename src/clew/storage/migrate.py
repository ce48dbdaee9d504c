"""Brings a database to the schema of this version of Clew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, insert, inspect, select

from clew.errors import StoreError
from clew.storage.schema import REVISIONS, metadata, version
from clew.storage.tenants import protect

if TYPE_CHECKING:
    from alembic.config import Config


def current(connection: Connection) -> str | None:
    """The schema version a database has, or None when it has none of our tables.

    Raises `StoreError` when the version is not one of ours: a newer Clew has written it.
    """
    if not inspect(connection).has_table(version.name):
        return None
    found = connection.execute(select(version.c.version_num)).scalar()
    if found not in REVISIONS:
        raise StoreError(
            f"the store has schema version {found}, but this Clew knows versions up to {REVISIONS[-1]}; "
            "a newer Clew has written it: update Clew to open it"
        )
    return str(found)


def bring_up(connection: Connection) -> None:
    """Makes or migrates the tables, inside the write transaction the caller has begun.

    A new database gets the tables of `schema` at once, so that only a real migration pays for
    loading Alembic; a test compares the two ways.
    """
    found = current(connection)
    if found is None:
        metadata.create_all(connection)
        version.create(connection)
        protect(connection, tuple(metadata.tables))
        connection.execute(insert(version).values(version_num=REVISIONS[-1]))
    elif found != REVISIONS[-1]:
        upgrade(connection)


def upgrade(connection: Connection) -> None:
    """Runs the migrations that are missing."""
    from alembic import command

    command.upgrade(_config(connection), "head")


def downgrade(connection: Connection, revision: str) -> None:
    """Takes a database back to the schema of an older Clew. Tables that it does not know are dropped, so what
    they hold should have been exported."""
    from alembic import command

    command.downgrade(_config(connection), revision)


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "clew.storage:migrations")
    config.attributes["connection"] = connection
    return config

"""Tenants on PostgreSQL: whose rows a role of the database reaches, whatever SQL it runs.

A row belongs to the tenant that its namespace begins with, up to the first "/". Every table has a policy, which the
owner of the tables is under as well: a row can be read or written when

- its tenant is one that the role which logged in was admitted to (the table `tenants`; "*" is all of them), and
- its tenant is the one the connection is set to (`clew.tenant`, by the address's `tenant`; "*" is any).

The first is the wall: only the owner writes the table `tenants`. The second lets a service that is admitted to many
tenants bind a connection to one of them. (Superusers and roles with BYPASSRLS are under no policy.)
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from clew.errors import StoreError
from clew.storage.schema import metadata, version
from clew.storage.store import Store

ALL = "*"
"""Every tenant. (A tenant of this name would be written %2A in a namespace.)"""

_TENANT = "split_part(namespace, '/', 1)"
_REACHED = (
    f"current_setting('clew.tenant', true) IN ('{ALL}', {_TENANT}) AND "
    f"ARRAY(SELECT tenant FROM tenants WHERE role = session_user) && ARRAY['{ALL}', {_TENANT}]"
)
"""Whether a row is reached. The names a role is admitted to are read once in a query, not once for a row."""

_ROLES = (
    "CREATE TABLE tenants (role text NOT NULL, tenant text NOT NULL, CONSTRAINT tenants_pk PRIMARY KEY (role, tenant))",
    "ALTER TABLE tenants ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON tenants FOR SELECT USING (role = session_user)",
    f"INSERT INTO tenants VALUES (session_user, '{ALL}')",
)

LATER = ("followers", "nearby")
"""Tables that are made when they are first needed (`clew.storage.pgvector`)."""

RIGHTS = {"sessions": "SELECT, INSERT, UPDATE", "entries": "SELECT, INSERT"}
"""What an admitted role may do; with the other tables all of SELECT, INSERT, UPDATE and DELETE."""


def protect(connection: Connection, tables: tuple[str, ...]) -> None:
    """Puts the tables under the policy; makes the table of roles first, with the one that is making it."""
    if connection.dialect.name != "postgresql":
        return
    if connection.execute(text("SELECT to_regclass('tenants')")).scalar() is None:
        for statement in _ROLES:
            connection.execute(text(statement))
    for table in tables:
        connection.execute(text(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"))
        connection.execute(text(f"CREATE POLICY tenant ON {table} USING ({_REACHED}) WITH CHECK ({_REACHED})"))


def expose(connection: Connection, tables: tuple[str, ...]) -> None:
    """Undoes `protect` for tables that stay; drops the table of roles, and those that were made later."""
    if connection.dialect.name != "postgresql":
        return
    for table in LATER:
        connection.execute(text(f"DROP TABLE IF EXISTS {table}"))
    for table in tables:
        connection.execute(text(f"DROP POLICY tenant ON {table}"))
        connection.execute(text(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY"))
    connection.execute(text("DROP TABLE tenants"))


def admit(store: Store, role: str, tenant: str) -> None:
    """Lets a role of the database, which must exist, reach a tenant's rows (`"*"`: everybody's).

    `tenant` is as a namespace begins: `Namespace(tenant).path`. Only the owner of the tables can do this. Raises
    `StoreError`.
    """
    _has_roles(store)
    with store.writing() as db:
        quoted = db.dialect.identifier_preparer.quote_identifier(role)
        made = [name for name in LATER if db.execute(text("SELECT to_regclass(:name)"), {"name": name}).scalar()]
        for table in (*metadata.tables, *made, "tenants", version.name):
            only_read = table in ("tenants", version.name)
            rights = "SELECT" if only_read else RIGHTS.get(table, "SELECT, INSERT, UPDATE, DELETE")
            db.exec_driver_sql(f"GRANT {rights} ON {table} TO {quoted}")
        added = text("INSERT INTO tenants VALUES (:role, :tenant) ON CONFLICT DO NOTHING")
        db.execute(added, {"role": role, "tenant": tenant})


def dismiss(store: Store, role: str, tenant: str) -> None:
    """Takes back what `admit` gave; connections that are open are shut out at once."""
    _has_roles(store)
    with store.writing() as db:
        gone = text("DELETE FROM tenants WHERE role = :role AND tenant = :tenant")
        db.execute(gone, {"role": role, "tenant": tenant})


def admitted(store: Store) -> list[tuple[str, str]]:
    """Every role, with a tenant that it reaches; for a role that is not the owner, its own."""
    _has_roles(store)
    return [(row[0], row[1]) for row in store.read(text("SELECT role, tenant FROM tenants ORDER BY role, tenant"), {})]


def _has_roles(store: Store) -> None:
    if store.database.dialect.name != "postgresql":
        raise StoreError(f"{store.where} has no roles; tenants are kept apart by a server: use PostgreSQL")

"""PostgreSQL: one server for many processes and machines. All that is particular to it is here.

    postgresql://user:password@host:5432/database?tenant=acme&patience=60

The address is libpq's (several hosts, `sslmode`, `options`, a service or password file: all of it works), with two
parameters of ours: `tenant` narrows the connection to one tenant (see `clew.storage.tenants`), `patience` is for how
many seconds an operation is tried again while the server cannot be reached.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, bindparam, create_engine, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.pool import NullPool

from clew.errors import Interrupted, StoreError
from clew.storage.database import Database, T, Work
from clew.storage.migrate import bring_up, current
from clew.storage.patience import patiently
from clew.storage.schema import REVISIONS, heads
from clew.storage.store import Store

PATIENCE = 60.0
"""Seconds for which an operation is tried again: a restart takes a few, a failover about thirty."""

OPENING = 5.0
"""Seconds for which opening a store is tried again: who cannot connect at all has mostly given a wrong address."""

PING_AFTER = 10.0
"""Seconds without use after which a connection is tried before it is relied on."""

SETTINGS: Mapping[str, str] = {
    "lock_timeout": "30s",  # waiting for other writers, each of which takes milliseconds
    "idle_in_transaction_session_timeout": "60s",  # a writer whose machine is gone must not keep others waiting
    "statement_timeout": "300s",
}
"""Limits of a connection; the address's `options` override them."""

SCHEMA_LOCK = int.from_bytes(b"Clew")
"""The advisory lock held while the tables are made or migrated."""


class Address(Struct, frozen=True):
    """An address in its parts: what libpq gets, what messages show, and our own parameters."""

    conninfo: str
    shown: str
    tenant: str
    patience: float

    @classmethod
    def of(cls, where: str) -> Address:
        """Takes an address apart. Raises `StoreError` when it is none."""
        scheme, host, path, query, _ = urlsplit(where)
        given = dict(parse_qsl(query, keep_blank_values=True))
        tenant, patience = given.pop("tenant", ""), given.pop("patience", str(PATIENCE))
        shown = f"{scheme}://{_without_password(host)}{path}"
        try:
            parts = conninfo_to_dict(f"{scheme}://{host}{path}?{urlencode(given, quote_via=quote)}")
            seconds = float(patience)
        except (psycopg.ProgrammingError, ValueError) as error:
            raise StoreError(
                f"{shown}: {error}; an address is postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
            ) from error
        settings = {**SETTINGS, **({"clew.tenant": tenant} if tenant else {})}
        options = " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())
        parts["options"] = f"{options} {parts.get('options') or ''}".strip()
        parts.setdefault("connect_timeout", 10)
        parts.setdefault("fallback_application_name", "clew")
        parts["client_encoding"] = "utf8"
        return cls(make_conninfo("", **parts), shown, tenant, seconds)


def open_server(where: str, *, create: bool) -> Store:
    """Opens the store in a database, which must exist; with `create`, makes the tables if there are none.

    Raises `StoreError`, and `Interrupted` when the server cannot be reached.
    """
    address = Address.of(where)
    database = Server(address)
    try:
        _prepare(database, create)
        return Store(database)
    except BaseException:
        database.close()
        raise


def _prepare(database: Server, create: bool) -> None:
    """Connects, and makes or migrates the tables, one process at a time."""

    def connect(again: bool) -> str | None:
        with database.reading() as db:
            return current(db)

    found = patiently(connect, min(OPENING, database.address.patience))
    if found is None and not create:
        raise StoreError(f"{database.where}: there is no store here")
    if found != REVISIONS[-1]:

        def make(again: bool) -> None:
            with database.writing() as db:
                db.exec_driver_sql("SET LOCAL statement_timeout = 0")  # a migration may have much to do
                db.exec_driver_sql(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")
                bring_up(db)

        database.patiently(make)


class Server(Database):
    """A connection to a server, made anew when it is lost."""

    def __init__(self, address: Address) -> None:
        super().__init__(_engine(address), address.shown)
        self.address = address
        self._used = 0.0

    def patiently(self, work: Work[T]) -> T:
        if self._writer == threading.get_ident():
            return work(False)
        return patiently(work, self.address.patience)

    # -- inside

    def _open(self) -> Connection:
        db = super()._open()
        now = time.monotonic()
        if self._writer is None and now - self._used > PING_AFTER:
            db.exec_driver_sql("SELECT 1")
        self._used = now
        return db

    def _alone(self, db: Connection, namespace: str) -> None:
        """The lock is the namespace's row in `heads`: a policy keeps it from other tenants, as an advisory lock would
        not be kept, and it works on databases that are distributed."""
        chosen = {"namespace": namespace}
        if db.execute(_HEAD, chosen).first() is None:
            db.execute(_NEW_HEAD, chosen)
            db.execute(_HEAD, chosen)

    def _undo(self, db: Connection) -> None:
        if db.closed or db.invalidated:
            return  # the server has undone it
        raw: Any = db.connection.dbapi_connection
        if raw.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            db.exec_driver_sql("ROLLBACK")
        else:
            self._drop()  # lost, or interrupted in the middle of an answer

    def _typed(self, error: DBAPIError, committing: bool) -> StoreError:
        reason = str(error.orig).strip().partition("\n")[0]
        state = str(getattr(error.orig, "sqlstate", None) or "")
        lost = error.connection_invalidated or self._connection is None or _is_lost(state, error)
        refused = not state and any(sign in reason for sign in REFUSED)
        if lost:
            self._drop()
        if state in AGAIN or (lost and not refused):
            return Interrupted(f"{self.where}: {reason}", unknown=lost and committing)
        advice = next(
            (then for sign, then in _ADVICE.items() if (state and state.startswith(sign)) or sign in reason),
            "check the address" if refused else "nothing was written",
        )
        return StoreError(f"{self.where}: {reason}; {advice}")


AGAIN = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # lock not available: the limit on waiting for others
    }
)
"""States of the server after which the same transaction is worth another try."""

LOST = ("08", "57P", "25006", "25P03", "53300")
"""Beginnings of states after which a new connection is: the connection broke off, the server stops or starts, it has
become read-only (a standby, after a failover), the transaction was idle too long, there are too many connections."""

REFUSED = ("authentication failed", "does not exist", "pg_hba.conf", "unrecognized configuration", "permission denied")
"""What a server says, without a state, when it will refuse a connection the next time too."""

_ADVICE = {
    "42501": "this role may not do that: the owner of the tables admits it with clew.storage.tenants",
    "authentication failed": "check the user and the password",
    "does not exist": "make it first: `createdb NAME`, `createuser NAME`",
    "53100": "nothing was written: the server's disk is full",
    "57014": "nothing was written: it took longer than statement_timeout",
    "cannot contain NUL": "no such value can be stored or found",
    "22": "no such value can be stored or found",
}
_HEAD = select(heads.c.position).where(heads.c.namespace == bindparam("namespace")).with_for_update()
_NEW_HEAD = insert(heads).values(namespace=bindparam("namespace"), position=0, at=0.0).on_conflict_do_nothing()


def _is_lost(state: str, error: DBAPIError) -> bool:
    if state:
        return state.startswith(LOST)
    return isinstance(error, OperationalError | InterfaceError)  # libpq could not reach the server, or lost it


def _engine(address: Address) -> Engine:
    def connect() -> Any:
        connection = psycopg.connect(address.conninfo, autocommit=True)
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.execute(
            "SELECT set_config('clew.tenant', '*', false) WHERE coalesce(current_setting('clew.tenant', true), '') = ''"
        )
        return connection

    return create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=NullPool, paramstyle="format", use_native_hstore=False
    )


def _escaped(value: str) -> str:
    """A value in libpq's `options`."""
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _without_password(host: str) -> str:
    user, at, rest = host.rpartition("@")
    return f"{user.partition(':')[0]}{at}{rest}"

"""Tenants on one server: a role reaches nothing of another tenant's, by our calls or by any SQL."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from clew.errors import StoreError, UnknownName
from clew.memory import MemoryRecord, Namespace, RecordLog
from clew.messages import user
from clew.sessions import Session
from clew.storage import open_store
from clew.storage.schema import metadata
from clew.storage.tenants import ALL, admit, admitted, dismiss
from servers import Postgres

ACME = Namespace("acme", user="u1")
NUMBERS = itertools.count(1)
TABLES = tuple(metadata.tables)


ROWS = (
    "INSERT INTO vectors VALUES ('acme/u1', 'm', 'd', 'v')",
    "INSERT INTO marks VALUES ('acme/u1', 'm', 0)",
    "INSERT INTO versions SELECT 'acme/u1', 'r', 99, 'fact', '', 0, 'u', 0, 9, 0, 0, 9, 0, false, ''",
)
"""A row in each table that the calls below leave empty."""


class Two:
    """A server with rows of acme and of rival, each with a role of its own, made by the owner of the tables."""

    def __init__(self, postgres: Postgres) -> None:
        self.postgres = postgres
        self.name = postgres.database()
        mine = f"{self.name}_{next(NUMBERS)}"
        self.roles = {tenant: f"{tenant}_{mine}" for tenant in ("acme", "rival")}
        owner = f"keeper_{mine}"  # an ordinary role: a superuser is under no policy
        postgres.run("postgres", f"CREATE ROLE {owner} LOGIN")
        postgres.run("postgres", f"ALTER DATABASE {self.name} OWNER TO {owner}")
        self.owner = postgres.address(self.name, owner)
        self.store = open_store(self.owner)
        for tenant, role in self.roles.items():
            postgres.run("postgres", f"CREATE ROLE {role} LOGIN")
            admit(self.store, role, tenant)

    def address(self, whose: str, **parameters: str) -> str:
        return self.postgres.address(self.name, self.roles[whose], **parameters)

    def connect(self, tenant: str) -> psycopg.Connection[Any]:
        return psycopg.connect(self.address(tenant), autocommit=True)

    def counts(self) -> dict[str, int]:
        """Rows of acme in every table, as the superuser sees them."""
        with psycopg.connect(self.postgres.address(self.name)) as db:
            return {
                table: db.execute(f"SELECT count(*) FROM {table} WHERE namespace LIKE 'acme%'".encode()).fetchone()[0]  # type: ignore[index]
                for table in TABLES
            }


@pytest.fixture
def two(postgres: Postgres) -> Iterator[Two]:
    two = Two(postgres)
    with Session.open(two.address("acme"), namespace="acme/support", title="secret") as session:
        session.append(user("the password is geheim"))
    with RecordLog(two.address("acme"), ACME) as log:
        log.add(MemoryRecord("user", "likes secrets", kind="fact", key="likes"))
    for statement in ROWS:
        postgres.run(two.name, statement)
    yield two
    two.store.close()


def test_a_tenant_works_with_its_own_as_if_it_were_alone(two: Two) -> None:
    with RecordLog(two.address("acme"), ACME) as log:
        assert [r.content for r in log.records()] == ["likes secrets"]
        log.edit(log.records()[0].id, "likes tea")
        log.purge(log.records()[0].id)
    [row] = Session.list(two.address("acme"), "acme/support")
    with Session.open(two.address("acme"), row.id, namespace="acme/support") as session:
        session.append(user("more"))
        assert session.newest == 2


def test_another_tenant_reaches_nothing_by_our_calls(two: Two) -> None:
    before = two.counts()
    [row] = Session.list(two.owner, "acme/support")
    rival = two.address("rival")
    assert Session.list(rival, "acme/support") == []
    with pytest.raises(UnknownName) as unknown:
        Session.open(rival, row.id, namespace="acme/support")
    assert "secret" not in str(unknown.value)
    with pytest.raises(StoreError, match=r"row-level security.*may not do that"):
        Session.open(rival, namespace="acme/support")
    with RecordLog(rival, ACME) as log:
        assert log.records() == []
        assert log.export() == []
        with pytest.raises(StoreError, match="row-level security"):
            log.add(MemoryRecord("user", "false"))
        with pytest.raises(StoreError, match="row-level security"):
            log.purge("likes")
    store = open_store(rival)
    with pytest.raises(StoreError, match="permission denied"):
        admit(store, two.roles["rival"], "acme")
    store.close()
    assert two.counts() == before


HOSTILE = (
    "SET clew.tenant = 'acme'",
    "SET clew.tenant = '*'",
    "SELECT set_config('clew.tenant', 'acme', false)",
    "SET row_security = off",
    "SET ROLE {acme}",
    "SET SESSION AUTHORIZATION {acme}",
    "SET ROLE {owner}",
    "RESET ALL",
    "INSERT INTO tenants VALUES ('{rival}', 'acme')",
    "INSERT INTO tenants VALUES ('{rival}', '*')",
    "UPDATE tenants SET tenant = '*'",
    "DELETE FROM tenants",
    "ALTER TABLE changes DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE entries NO FORCE ROW LEVEL SECURITY",
    "DROP POLICY tenant ON changes",
    "CREATE POLICY open ON changes USING (true)",
    "GRANT ALL ON changes TO {rival}",
    "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
    "CREATE TABLE public.tenants2 AS TABLE tenants",
    "CREATE TEMP TABLE tenants AS SELECT '{rival}'::text AS role, '*'::text AS tenant",
    "SET search_path = pg_temp, public",
    "CREATE TEMP VIEW v AS SELECT * FROM public.changes",
)


@pytest.mark.parametrize("statement", HOSTILE)
def test_another_tenant_reaches_nothing_by_any_sql(two: Two, statement: str) -> None:
    before = two.counts()
    assert all(before.values())
    names = {**two.roles, "owner": two.owner.split("//")[1].split("@")[0]}
    with two.connect("rival") as db:
        attempt(db, statement.format(**names))
        for table in TABLES:
            for where in ("", " WHERE namespace = 'acme/support'", " WHERE namespace LIKE 'acme%'"):
                assert attempt(db, f"SELECT * FROM public.{table}{where}") in ([], None)
            assert not attempt(db, f"SELECT count(*) FROM public.{table} HAVING count(*) > 0")
            attempt(db, f"UPDATE public.{table} SET namespace = 'rival'")
            attempt(db, f"DELETE FROM public.{table}")
            attempt(db, f"TRUNCATE public.{table} CASCADE")
            attempt(db, f"DROP TABLE public.{table} CASCADE")
            assert attempt(db, f"COPY public.{table} TO STDOUT") in ([], None)
        attempt(db, "INSERT INTO public.heads VALUES ('acme', 9, 9)")
        attempt(
            db, "INSERT INTO public.heads VALUES ('acme/u1', 9, 9) ON CONFLICT (namespace) DO UPDATE SET position=9"
        )
        assert not attempt(db, "SELECT * FROM public.tenants WHERE role <> session_user")
    assert two.counts() == before


def attempt(db: psycopg.Connection[Any], statement: str) -> list[Any] | None:
    """What a statement gives; None when it is refused."""
    try:
        if statement.startswith("COPY"):
            with db.cursor().copy(statement.encode()) as copy:
                return list(copy)
        cursor = db.execute(statement.encode())
        return cursor.fetchall() if cursor.description else None
    except psycopg.errors.Error:
        return None


def test_what_is_there_cannot_be_guessed_from_how_an_insert_fails(two: Two) -> None:
    [row] = Session.list(two.owner, "acme/support")
    told = []
    with two.connect("rival") as db:
        for id in (row.id, "not-there"):
            values = "'acme/support', %s, '', 0, 0, null, 0, 0, null, null, '', 0, ''"
            with pytest.raises(psycopg.Error) as error:
                db.execute(f"INSERT INTO sessions VALUES ({values})".encode(), (id,))
            told.append(str(error.value))
    assert told[0] == told[1]


def test_a_leaky_function_sees_only_its_own_rows(two: Two) -> None:
    seen: list[str] = []
    with two.connect("rival") as db:
        db.add_notice_handler(lambda notice: seen.append(notice.message_primary or ""))
        db.execute(
            "CREATE FUNCTION pg_temp.leak(namespace text) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS "
            "$$ BEGIN RAISE NOTICE '%', namespace; RETURN true; END $$"
        )
        for table in TABLES:
            db.execute(f"SELECT * FROM {table} WHERE pg_temp.leak(namespace)".encode())
    assert seen == []


def test_a_tenant_is_not_one_whose_name_begins_alike(two: Two) -> None:
    role = two.roles["rival"]
    for tenant in ("acm", "acme2", "", "%", "acme/", "ACME"):
        admit(two.store, role, tenant)
    assert Session.list(two.address("rival"), "acme/support") == []
    with RecordLog(two.address("rival"), ACME) as log:
        assert log.records() == []


def test_a_service_admitted_to_all_binds_a_connection_to_one(two: Two) -> None:
    admit(two.store, two.roles["rival"], ALL)
    assert len(Session.list(two.address("rival"), "acme/support")) == 1
    assert Session.list(two.address("rival", tenant="other"), "acme/support") == []
    assert len(Session.list(two.address("rival", tenant="acme"), "acme/support")) == 1


def test_who_is_dismissed_is_shut_out_at_once(two: Two) -> None:
    store = open_store(two.address("acme"))
    assert store.sessions("acme/support")
    dismiss(two.store, two.roles["acme"], "acme")
    assert store.sessions("acme/support") == []
    store.close()
    assert (two.roles["acme"], "acme") not in admitted(two.store)
    assert (two.roles["rival"], "rival") in admitted(two.store)


def test_the_log_is_append_only_for_tenants_too(two: Two) -> None:
    with two.connect("acme") as db:
        for statement in ("DELETE FROM entries", "UPDATE entries SET body = ''", "DELETE FROM sessions"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(statement.encode())


def test_every_table_is_under_the_policy_its_owner_too(two: Two) -> None:
    with psycopg.connect(two.owner) as db:
        found = db.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        assert dict(found) == {**dict.fromkeys(TABLES, True), "tenants": False, "alembic_version": False}
        db.execute("SET clew.tenant = 'other'")
        assert db.execute("SELECT * FROM changes").fetchall() == []


def test_a_file_has_no_roles() -> None:
    store = open_store("memory://")
    with pytest.raises(StoreError, match="use PostgreSQL"):
        admit(store, "r", "t")
    store.close()

"""Vectors that PostgreSQL itself compares, with pgvector: one index for all machines, and no files.

The tables are made by whoever first needs them and may make them; the owner's policies and grants are those of the
other tables (`clew.storage.tenants`). They are an index: all in them can be made again from the table `vectors`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import NamedTuple

from sqlalchemy import Connection, Text, bindparam, text

from clew.errors import StoreError
from clew.storage.store import Store
from clew.storage.tenants import LATER, protect

EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"

TABLES = (
    "CREATE TABLE followers (namespace text NOT NULL, follower text NOT NULL, made text NOT NULL, position bigint NOT "
    "NULL, mark text NOT NULL, CONSTRAINT followers_pk PRIMARY KEY (namespace, follower))",
    "CREATE TABLE nearby (namespace text NOT NULL, follower text NOT NULL, id text NOT NULL, piece bigint NOT NULL, "
    "position bigint NOT NULL, digest text NOT NULL, vector halfvec NOT NULL, "
    "CONSTRAINT nearby_pk PRIMARY KEY (namespace, follower, id, piece))",
    "CREATE INDEX nearby_digest ON nearby (namespace, digest)",
)

_MINE = "namespace = :namespace AND follower = :follower"

SEARCHED = 200
"""Candidates pgvector looks at in its graph."""


class Stand(NamedTuple):
    """How far a follower has read, what stood there, and who made it."""

    made: str
    position: int
    mark: str


class Piece(NamedTuple):
    """A piece: what it is of, where that stands, and the digest of its text."""

    id: str
    piece: int
    position: int
    digest: str


class Nearby:
    """The vectors of one follower in one namespace. Raises `StoreError` when there can be no tables for them."""

    def __init__(self, store: Store, namespace: str, follower: str) -> None:
        self._store = store
        self._mine = {"namespace": namespace, "follower": follower}
        self._prepare()

    def stand(self) -> Stand | None:
        """How far the follower has read."""
        found = self._store.read(text(f"SELECT made, position, mark FROM followers WHERE {_MINE}"), self._mine)
        return Stand(*found[0]) if found else None

    def take(self, before: Stand | None, after: Stand, gone: Sequence[str], added: Sequence[tuple[Piece, str]]) -> bool:
        """Takes in pieces with their vectors (as pgvector writes them), and takes out those of ids, in one
        transaction. False, and nothing done, when the follower no longer stands where it did before."""

        def work(again: bool) -> bool:
            with self._store.writing(self._mine["namespace"]) as db:
                if _stand(db, self._mine) != before:
                    return False
                db.execute(
                    text(f"DELETE FROM nearby WHERE {_MINE} AND id = ANY(:ids)"), {**self._mine, "ids": list(gone)}
                )
                if added:
                    rows = [{**self._mine, **piece._asdict(), "vector": vector} for piece, vector in added]
                    db.execute(
                        text(
                            "INSERT INTO nearby VALUES (:namespace, :follower, :id, :piece, :position, :digest, "
                            "CAST(:vector AS halfvec))"
                        ),
                        rows,
                    )
                db.execute(
                    text(
                        "INSERT INTO followers VALUES (:namespace, :follower, :made, :position, :mark) "
                        "ON CONFLICT (namespace, follower) DO UPDATE "
                        "SET made = excluded.made, position = excluded.position, mark = excluded.mark"
                    ),
                    {**self._mine, **after._asdict()},
                )
                return True

        return self._store.patiently(work)

    def digests(self, ids: Sequence[str]) -> list[str]:
        """The digests of the texts of these ids that no other id has, in any follower of the namespace."""
        statement = text(
            f"SELECT DISTINCT digest FROM nearby AS mine WHERE {_MINE} AND id = ANY(:ids) AND NOT EXISTS ("
            "SELECT FROM nearby AS other WHERE other.namespace = mine.namespace AND other.digest = mine.digest "
            "AND (other.follower <> mine.follower OR NOT other.id = ANY(:ids)))"
        )
        return [row[0] for row in self._store.read(statement, {**self._mine, "ids": list(ids)})]

    def nearest(self, vector: str, dim: int, limit: int, ids: Collection[str] | None) -> list[Piece]:
        """The pieces nearest to a vector, about; of some ids or of all."""
        among = "" if ids is None else " AND id = ANY(:ids)"
        statement = text(
            f"SELECT id, piece, position, digest FROM nearby WHERE {_MINE}{among} "
            f"ORDER BY vector::halfvec({dim}) <#> CAST(:vector AS halfvec({dim})) LIMIT :limit"
        ).bindparams(bindparam("follower", type_=Text, literal_execute=True))
        values = {**self._mine, "vector": vector, "limit": limit, "ids": list(ids or ())}

        def work(again: bool) -> list[Piece]:
            with self._store.reading() as db:
                db.execute(text(f"SET hnsw.ef_search = {max(SEARCHED, min(limit, 1000))}"))
                db.execute(text("SET hnsw.iterative_scan = strict_order"))
                return [Piece(*row) for row in db.execute(statement, values).all()]

        return self._store.patiently(work)

    def has(self, digests: Sequence[str]) -> set[str]:
        """Those of the digests that the namespace's followers have."""
        statement = text("SELECT DISTINCT digest FROM nearby WHERE namespace = :namespace AND digest = ANY(:digests)")
        values = {"namespace": self._mine["namespace"], "digests": list(digests)}
        return {row[0] for row in self._store.read(statement, values)}

    def all(self) -> set[str]:
        """The digests of all texts of the follower."""
        return {
            row[0] for row in self._store.read(text(f"SELECT DISTINCT digest FROM nearby WHERE {_MINE}"), self._mine)
        }

    def clear(self) -> None:
        """Takes out all of the follower."""

        def work(again: bool) -> None:
            with self._store.writing(self._mine["namespace"]) as db:
                for table in ("nearby", "followers"):
                    db.execute(text(f"DELETE FROM {table} WHERE {_MINE}"), self._mine)

        self._store.patiently(work)

    def graph(self, dim: int, above: int) -> None:
        """Makes the graph of this kind of follower, in all namespaces, when there are more vectors than `above`. Only
        the owner of the tables can; without it, all are compared."""
        name = f"nearby_{blake2b(self._mine['follower'].encode(), digest_size=8).hexdigest()}"

        def work(again: bool) -> None:
            with self._store.writing(self._mine["namespace"]) as db:
                owner = db.execute(text("SELECT tableowner = current_user FROM pg_tables WHERE tablename = 'nearby'"))
                there = db.execute(text("SELECT to_regclass(:name)"), {"name": name}).scalar()
                first = "SELECT FROM nearby WHERE follower = :follower LIMIT :limit"
                count = text(f"SELECT count(*) FROM ({first}) AS found")
                many = db.execute(count, {**self._mine, "limit": above + 1}).scalar() or 0
                if owner.scalar() and there is None and many > above:
                    literal = db.execute(text("SELECT quote_literal(:follower)"), self._mine).scalar() or ""
                    db.exec_driver_sql(
                        f"CREATE INDEX {name} ON nearby USING hnsw ((vector::halfvec({dim})) halfvec_ip_ops) "
                        f"WHERE follower = {literal}"
                    )

        self._store.patiently(work)

    def _prepare(self) -> None:
        def work(again: bool) -> None:
            with self._store.writing() as db:
                if db.execute(text("SELECT to_regclass('nearby')")).scalar() is not None:
                    return
                db.execute(text("SELECT pg_advisory_xact_lock(hashtext('clew nearby'))"))
                if db.execute(text("SELECT to_regclass('nearby')")).scalar() is not None:
                    return
                db.exec_driver_sql(EXTENSION)
                for table in TABLES:
                    db.exec_driver_sql(table)
                protect(db, LATER)
                roles = db.execute(text("SELECT DISTINCT role FROM tenants WHERE role <> current_user")).all()
                for (role,) in roles:
                    quoted = db.dialect.identifier_preparer.quote_identifier(role)
                    db.exec_driver_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(LATER)} TO {quoted}")

        try:
            self._store.patiently(work)
        except StoreError as error:
            raise StoreError(
                f"{error}; vectors in PostgreSQL need the extension pgvector and, once, the owner of the tables"
            ) from error


def _stand(db: Connection, mine: dict[str, str]) -> Stand | None:
    found = db.execute(text(f"SELECT made, position, mark FROM followers WHERE {_MINE} FOR UPDATE"), mine).first()
    return None if found is None else Stand(*found)

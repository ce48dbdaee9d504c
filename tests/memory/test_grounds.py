"""What counts as said: in Chinese, Japanese, Korean and English, without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.memory.grounds import grounded, related, terms
from clew.memory.records import folded

SAID = [
    ("叫小白", "我有一只猫叫小白，它非常喜欢吃鱼"),
    ("医生", "我叫李雷，是一名医生"),
    ("3 月 31 日", "项目截止日期是3月31日"),
    ("3月31日", "项目截止日期是 3 月 31 日"),
    ("需求分析和设计已完成", "目前完成了需求分析和设计阶段"),
    ("PostgreSQL", "我们决定改用 PostgreSQL 替换 MySQL"),
    ("postgresql", "我们决定改用PostgreSQL替换MySQL"),
    ("Likes tea", "I like tea, and nothing else"),
    ("Ｒｕｓｔ", "we use Rust"),
    ("東京に住む", "私は東京に住んでいます"),
    ("서울에 살아요", "저는 서울에 살아요"),
    ("3.14", "it is 3.14, more or less"),
]
NOT_SAID = [
    ("李华", "我叫李雷，是一名医生"),
    ("13 月", "截止日期是 3 月"),
    ("4月31日", "项目截止日期是 3 月 31 日"),
    ("Zhang Wei", "my name is Li Wei"),
    ("SQL", "we use PostgreSQL"),
    ("doctor", "I work at the hospital"),
    ("上海", "我住在东京"),
    ("大阪に住む", "私は東京です"),
    ("!!!", "hello"),
    ("x", ""),
]


@pytest.mark.parametrize(("value", "text"), SAID)
def test_it_was_said(value: str, text: str) -> None:
    assert grounded(value, text)


@pytest.mark.parametrize(("value", "text"), NOT_SAID)
def test_it_was_not_said(value: str, text: str) -> None:
    assert not grounded(value, text)


def test_what_a_denial_is_about() -> None:
    assert related("用户的猫 叫小白", "我没有猫")
    assert not related("用户的名字 李雷", "我没有猫")
    assert related("home", "I left home")
    assert not related("my job", "I have my own")
    assert terms("我的猫 and the Cat") == {"猫", "cat"}


@given(st.text(), st.text())
def test_any_texts_can_be_compared(value: str, text: str) -> None:
    assert isinstance(grounded(value, text), bool)
    assert isinstance(related(value, text), bool)
    assert grounded(value, f"x {value} y") or not folded(value)

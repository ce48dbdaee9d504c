"""Words that make a sentence worth keeping, in English, Chinese, Japanese and Korean."""

from __future__ import annotations

import re


def _any(english: str, cjk: str) -> re.Pattern[str]:
    """A pattern of alternatives, one a line; the English ones match whole words."""
    words = "|".join(line.strip() for line in english.strip().split("\n"))
    signs = "|".join(cjk.split())
    return re.compile(rf"\b(?:{words})\b|{signs}", re.IGNORECASE)


RULE = _any(
    r"""
    never|must|mustn't|do not|don'?t|always|avoid|ensure|make sure|requires?|required|mandatory
    forbidden|prohibited|not allowed|should(?:n't| not| never)|under no circumstances|stick to
    only (?:use|change|touch|edit|ever)|without (?:touching|changing|breaking|adding)
    at (?:most|least)|no (?:new|external)|no \w+ (?:dependency|dependencies|access)
    keep (?:\S+ ){1,8}?(?:as is|unchanged|stable|compatible|intact|alone)
    leave (?:\S+ ){1,8}?(?:alone|as is|unchanged)|stays? (?:as is|the same)
    """,
    """
    不要 不得 不能 不可 不准 不许 请勿 請勿 切勿 禁止 严禁 必须 必須 务必 務必 一定要
    只能 仅限 保持 避免 始终 永远 千万
    しないで ないでください てはいけ てはなら ではいけ 必ず べき 避けて 絶対に のままに
    変えない 触らない 使わない しないこと
    하지\\s?마 하지\\s?말 말아 마세요 말\\s것 금지 반드시 꼭\\s 절대 않도록 안\\s?됩니다 안\\s?돼 유지해 필수 항상
    """,
)
"""In what a user says: a rule for the work."""

DECISION = _any(
    r"""
    decid(?:e|ed|ing)|chos(?:e|en)|choose|go(?:ing)? with|went with|settled on|agreed|opted
    switch(?:ed|ing)? to|instead of|rather than|in favou?r of|use \S+ (?:instead|for|as)
    root cause|turns? out|the (?:reason|cause|problem|bug|issue) (?:is|was)|because|so that|trade-?off
    I'll keep|we(?:'ll| will) (?:use|keep)
    """,
    """
    决定 決定 选择 選擇 采用 採用 改用 而不是 因为 原因是 根本原因 问题出在 改成
    にします にしました ことにし 代わりに ではなく なぜなら 原因は 理由は
    결정 선택 채택 대신 때문 하기로 원인은 이유는
    """,
)
"""A decision, or the reason for one."""

OPEN = _any(
    r"""
    open question|still open|not (?:yet )?(?:clear|decided|sure)|unclear|to be decided|TBD
    remains? to|still (?:needs?|to)|not yet|left to do
    """,
    "未决 待定 待确认 尚未 还没 未定 要確認 まだ 미정 확인\\s필요 아직",
)
"""Something left open."""

QUESTION = re.compile(r"[?？]\s*[\"')\]」』*]*$|(?:ですか|ますか|でしょうか|까요|나요|습니까|吗|呢)[。.]?$")
"""The end of a question."""

CONCRETE = re.compile(
    r"https?://\S+|\b[\w.+-]+@[\w-]+\.\w+|\bv?\d+\.\d+(?:\.\d+)*\b|\b\d{2,}\b|`[^`\n]+`|\b\w+_\w+\b"
    r"|\b[A-Z]{2,}[A-Z0-9_-]*\d\w*\b|[\w./-]+/[\w.-]+\.\w{1,5}\b|\$[A-Z_]{3,}"
)
"""What a paraphrase would lose: an address, a version, a number of two digits, an identifier, a path."""

SETTING = re.compile(
    r"https?://\S+|\bport \d+|(?:端口|ポート|포트)\D{0,3}\d|\bversion \S*\d|\bv\d+\.\d+|commit\w* `?[0-9a-f]{7,40}",
    re.IGNORECASE,
)
"""In what an agent says: a value the work goes on with."""

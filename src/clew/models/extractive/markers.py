"""Words that make a sentence worth keeping, in English, Chinese, Japanese and Korean."""

from __future__ import annotations

import re


def _any(english: str, cjk: str) -> re.Pattern[str]:
    """A pattern of alternatives, one a line; the English ones match whole words."""
    words = "|".join(line.strip() for line in english.strip().split("\n"))
    signs = "|".join(cjk.split())
    return re.compile(rf"\b(?:{words})\b|{signs}", re.IGNORECASE)


STRICT = _any(
    r"""
    never|must|mustn't|do not|don'?t|always|mandatory|forbidden|prohibited|not allowed
    under no circumstances|only (?:use|change|touch|edit|ever)|no (?:new|external)
    without (?:touching|changing|breaking|adding)|stays? (?:as is|the same)
    keep (?:\S+ ){1,8}?(?:as is|unchanged|stable|compatible|intact|alone)
    leave (?:\S+ ){1,8}?(?:alone|as is|unchanged)
    """,
    """
    不要 不得 不能 不可 不准 不许 请勿 請勿 切勿 禁止 严禁 必须 必須 务必 務必 一定要 只能 始终 永远 千万
    しないで ないでください てはいけ てはなら ではいけ 必ず 絶対に のままに 変えない 触らない 使わない しないこと
    하지\\s?마 하지\\s?말 말아 마세요 말\\s것 금지 반드시 꼭\\s 절대 안\\s?됩니다 안\\s?돼 항상
    """,
)
"""In what a user says: a rule for the work that leaves no choice."""

LENIENT = _any(
    r"""
    avoid|ensure|make sure|requires?|required|should(?:n't| not| never)|stick to|at (?:most|least)
    no \w+ (?:dependency|dependencies|access)|standard library only|only
    """,
    "仅限 保持 避免 べき 避けて のみ 않도록 유지해 필수",
)
"""In what a user says: a rule of a weaker kind."""

DECIDED = _any(
    r"""
    decid(?:e|ed|ing)|decisions?|chos(?:e|en)|choose|go(?:ing)? with|went with|settled on|agreed|opted
    switch(?:ed|ing)? to|instead of|rather than|in favou?r of|root cause|use \S+ instead|trade-?off
    """,
    """
    决定 決定 选择 選擇 采用 採用 改用 而不是 根本原因
    にします にしました ことにし 代わりに ではなく
    결정 선택 채택 대신 하기로
    """,
)
"""A decision, or what was found to be the cause."""

REASON = _any(
    r"""
    turns? out|the (?:reason|cause|problem|bug|issue) (?:is|was)|because|so that
    use \S+ (?:for|as)|I'll keep|we(?:'ll| will) (?:use|keep)
    """,
    "因为 原因是 问题出在 改成 なぜなら 原因は 理由は 때문 원인은 이유는",
)
"""A reason."""

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

VALUE = re.compile(
    r"https?://\S+|\b[\w.+-]+@[\w-]+\.\w+|\bv?\d+(?:\.\d+)+\b|\b[A-Z]{2,}-?\d\w*\b|\b\d[\d,._:-]*\d\b|[$€£¥%]\s?\d|\d\s?[%€£¥]"
)
"""What a paraphrase would lose: an address, a version, a number of two digits up, a ticket, an amount."""

SETTING = re.compile(
    r"https?://\S+|\bport \d+|(?:端口|ポート|포트)\D{0,3}\d|\bversion \S*\d|\bv\d+\.\d+|commit\w* `?[0-9a-f]{7,40}",
    re.IGNORECASE,
)
"""In what an agent says: a value the work goes on with."""

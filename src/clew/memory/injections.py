"""Marks texts that try to give a model orders. Nothing is refused: who shows the text or reviews it is told.

The signs are those that are common in attacks on agents (what Hermes Agent 0.19 looks for, without the words that are
as common elsewhere, and with Chinese, Japanese and Korean). Whoever means to can word around them.
"""

from __future__ import annotations

import re
import unicodedata

_BEFORE = r"(?:previous|prior|above|earlier|preceding|foregoing|existing|system|original)"
_ORDERS = r"(?:instructions?|rules?|prompts?|guidelines?|directions?|directives?|messages?|context)"
_SIGNS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.I | re.S)
    for name, pattern in {
        "ignore instructions": (
            rf"\b(?:ignore|disregard|forget|override|bypass)\b(?:\W+\w+){{0,7}}?\W+{_BEFORE}(?:\W+\w+){{0,3}}?\W+{_ORDERS}"
            r"|\b(?:ignore|disregard|forget)\s+(?:all\s+)?(?:of\s+)?your\s+(?:\w+\s+)?"
            rf"{_ORDERS}"
            r"|(?:忽略|无视|忘记|忘掉|無視|忽視)[^。！？\n]{0,12}(?:指令|指示|提示|规则|規則|要求|命令)"
            r"|(?:指示|命令|ルール|プロンプト)[^。！？\n]{0,10}(?:無視|忘れ|従わない)"
            r"|(?:이전|위의|기존)[^.!?\n]{0,12}(?:지시|명령|규칙)[^.!?\n]{0,12}(?:무시|잊)"
        ),
        "system prompt": (
            r"system\s+prompt\s+override|new\s+system\s+prompt|reveal\s+(?:your\s+)?(?:system\s+)?prompt"
            r"|<\|?(?:im_start|system|endoftext)\|?>|\[/?INST\]|</?system>|(?:系统提示|系統提示)[^。\n]{0,8}(?:覆盖|改为|如下)"
        ),
        "hide from user": (
            r"\b(?:do\s+not|don'?t|never)\s+(?:tell|inform|mention\b.{0,20}\bto|show|alert|notify)\s+(?:this\s+to\s+)?the\s+user"
            r"|(?:不要|别|切勿)(?:告诉|告知|通知|让)用户|ユーザーに(?:は)?(?:言わない|知らせない|伝えない)"
        ),
        "no restrictions": (
            r"\b(?:act|behave|respond)\s+as\s+(?:if|though)\s+you\s+(?:have|had)\s+no\s+(?:restrictions|rules|limits)"
            r"|\byou\s+are\s+now\s+(?:in\s+)?(?:developer|dan|jailbreak|god|unrestricted)\b"
        ),
        "hidden text": (
            r"<!--[^>]{0,400}\b(?:ignore|instruction|hidden|secret|system)\b[^>]{0,400}-->"
            r"|<[a-z]+[^>]{0,200}style\s*=\s*[\"'][^\"'>]{0,200}(?:display\s*:\s*none|visibility\s*:\s*hidden)"
        ),
        "exfiltration": (
            r"\b(?:curl|wget|nc|fetch)\b[^\n]{0,300}\$\{?\w*(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)"
            r"|\bcat\s+[^\n|;&]{0,100}(?:\.env\b|\.netrc|\.pgpass|\.npmrc|\.pypirc|id_rsa|id_ed25519|/credentials\b)"
        ),
        "invisible text": (
            "[\u200b\u2060\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]|.\ufeff"  # no joiners: emoji have them
        ),
    }.items()
}
_WORDS = (
    *("ignore", "disregard", "forget", "override", "bypass", "prompt", "<|", "[inst", "[/inst", "<system", "</system"),
    *("the user", "you are now", "as if you", "as though you", "<!--", "style", "curl", "wget", "nc ", "fetch", "cat "),
    *(
        "忽略",
        "无视",
        "忘记",
        "忘掉",
        "無視",
        "忽視",
        "忘れ",
        "従わない",
        "무시",
        "잊",
        "系统提示",
        "系統提示",
        "用户",
        "ユーザー",
    ),
)
_UNSEEN = re.compile("[\u200b\u2060\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")

LONGEST = 100_000
"""Characters of a text that are looked at."""


def signs(text: str) -> list[str]:
    """The kinds of signs that a text tries to give orders; most have none."""
    text = text[:LONGEST]
    if not text.isascii():
        unseen = _UNSEEN.search(text) is not None
        text = text if unseen else unicodedata.normalize("NFKC", text)
    else:
        unseen = False
    lower = text.lower()
    if not unseen and not any(word in lower for word in _WORDS):
        return []
    shown = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)) if unseen else text
    return [n for n, sign in _SIGNS.items() if sign.search(text if n == "invisible text" else shown)]

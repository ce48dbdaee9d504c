"""Kinds of characters, as ranges for regular expressions.

Python's `\\w` knows letters and digits but not the marks that many scripts write with, and says nothing
about which scripts put spaces between words.
"""

from __future__ import annotations

DENSE = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1100-\u11ff"  # Hangul jamo
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u303c"  # 々 〇 and other marks that stand for a Han character
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf"  # bopomofo, Hangul letters
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff"  # Hangul
    "\uff66-\uff9f\uffa0-\uffdc"  # half-width kana and Hangul
    "\U0001aff0-\U0001b16f"  # kana of old
    "\U00020000-\U0003ffff"  # rare Han
)
"""Scripts without spaces between words, or (Hangul) with particles grown onto them: read by characters."""

MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u07fd\u0816-\u082d"
    "\u0859-\u085b\u0897-\u089f\u08ca-\u0963\u0981-\u0dff\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e\u0f3f\u0f71-\u0fbc\u0fc6"
    "\u135d-\u135f\u1712-\u1715\u1732-\u1734\u1752\u1753\u1772\u1773\u180b-\u180f\u1885\u1886\u18a9\u1920-\u193b\u1a17-\u1a1b"
    "\u1a55-\u1a7f\u1ab0-\u1aff\u1b00-\u1b44\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cf9\u1dc0-\u1dff"
    "\u20d0-\u20f0\u2cef-\u2cf1\u2d7f\u2de0-\u2dff\u302a-\u302f\ua66f-\ua672\ua674-\ua67d\ua69e\ua69f\ua6f0\ua6f1"
    "\ua802-\ua827\ua82c\ua880-\ua8f1\ua8ff\ua926-\ua953\ua980-\ua9c0\ua9e5\uaa29-\uaa4d\uaa7b-\uaa7d\uaab0-\uaac1"
    "\uaaeb-\uaaf6\uabe3-\uabed\ufb1e\ufe20-\ufe2f"
)
"""Marks that belong to the letter before them."""

EMOJI = "\u203c\u2049\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
"""Pictures, arrows and signs that one may look for, each by itself; the skin tones are left out."""

HIDDEN = "\u00ad\u034f\u200b-\u200d\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
"""What stands inside words and is not seen: soft hyphens, places where a line may break, joiners, variation selectors
(which some Han characters have, and most emoji)."""

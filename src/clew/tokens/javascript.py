"""How JavaScript measures and writes text: several upstream systems count what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def units(text: str) -> int:
    """`text.length`: UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def stringify(value: Any) -> str:
    """`JSON.stringify(value)`: no spaces, nothing escaped needlessly, numbers as JavaScript writes them."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        return _SURROGATE.sub(lambda lone: f"\\u{ord(lone[0]):x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{stringify(str(k))}:{stringify(v)}" for k, v in value.items()) + "}"
    return "[" + ",".join(stringify(v) for v in value) + "]"


def rewritten(text: str) -> str:
    """`JSON.stringify(JSON.parse(text))`; the text itself when it is not JSON."""
    try:
        return stringify(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _number(value: float) -> str:
    """Every number is a double, written as ECMAScript's Number::toString does."""
    try:
        number = float(value)
    except OverflowError:
        return "null"
    if not isfinite(number):
        return "null"
    digits, _, exponent = repr(number).removesuffix(".0").partition("e")
    if not exponent:
        return "0" if number == 0 else digits
    power = int(exponent)
    if power >= 21 or power < -6:
        return f"{digits}e{power:+d}"
    sign, digits = "-" if number < 0 else "", digits.lstrip("-").replace(".", "")
    return sign + (digits.ljust(power + 1, "0") if power > 0 else f"0.{'0' * (-power - 1)}{digits}")

"""Secrets are taken out of a text before it is stored.

Found are private key blocks, bearer tokens, keys by their issuers' prefixes, passwords in addresses, and what is
assigned to a name such as `api_key` or 密码 if it looks like one: words, numbers, code and placeholders do not. A
secret without any of these signs is not found, so this is a net and no promise.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

MARKER = "[redacted: {}]"
"""What stands in the place of a secret, with its kind."""

_BLOCK = re.compile(
    r"-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY( BLOCK)?-----.*?(?:-----END \1PRIVATE KEY( BLOCK)?-----|\Z)", re.S
)
_BEARER = re.compile(
    r"(?<![A-Za-z0-9])(bearer[ \t]+)([A-Za-z0-9._~+/-]{16,}=*)(?![A-Za-z0-9\u0080-\uffff])", re.I | re.A
)
_ISSUED = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"sk-(?:ant|proj|or|svcacct|admin)-[A-Za-z0-9_-]{20,}"  # Anthropic, OpenAI, OpenRouter
    r"|sk-[A-Za-z0-9]{20,}[A-Za-z0-9_-]*"  # OpenAI and others
    r"|(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}"  # GitHub
    r"|glpat-[A-Za-z0-9_-]{20,}"  # GitLab
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}"  # Slack
    r"|AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}"  # Google
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{20,}"  # Stripe
    r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}"  # package registries
    r"|hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{60,}|r8_[A-Za-z0-9]{37}"  # hosts of models
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}"  # SendGrid
    r"|dop_v1_[a-f0-9]{64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|dapi[a-f0-9]{32}|hvs\.[A-Za-z0-9_-]{24,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{50,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"  # JSON web tokens
    r")"
)
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"<>]{0,100}:)([^\s/@'\"<>]{3,200})(?=@[^\s@])", re.I)
_PASSWORD = r"passw(?:or)?d|passphrase|pwd|密码|密碼|口令|パスワード|비밀번호"
_SECRET = (
    r"(?:api|access|secret|private|auth|encryption|signing)[_-]?key|token|secret|credential|密钥|密鑰|令牌|トークン"
)
_ASSIGNED = re.compile(
    rf"(?:(?P<password>{_PASSWORD})|(?:{_SECRET}))"
    r"(?P<between>[\"'`]?[ \t]*(?::=|=>|[:=：＝]|\bis\b|[是为為は은는])[ \t]*[\"'`]?)"
    r"(?P<value>[!-~]{6,400})",
    re.I,
)
_NAMED = re.compile(rf"(?:(?P<password>{_PASSWORD})|(?:{_SECRET}))$", re.I)
_ENDS = re.compile(r"[\"'`,;<>\\]|&(?=[\w]+=)")
_CODE = re.compile(r"[(){}\[\]]|^[$%<*.~/]|://|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|^(?:self|os|process|config|env)\.")
_STAND_INS = re.compile(
    r"x{3,}|\*{2,}|\.{3}|your|example|changeme|placeholder|dummy|redacted|password|secret_?here", re.I
)
_MARKED = re.compile(r"\[redacted: ([a-z ]+)\]")

_SIGNS = (
    *("-----begin", "bearer", "sk-", "akia", "asia", "aroa", "aida", "abia", "acca", "ghp_", "gho_", "ghu_", "ghs_"),
    *("ghr_", "github_pat_", "glpat-", "xox", "xapp-", "aiza", "gocspx-", "ya29.", "k_live_", "k_test_", "whsec_"),
    *("npm_", "pypi-", "hf_", "gsk_", "xai-", "r8_", "sg.", "dop_v1_", "shpat_", "shpca_", "shppa_", "shpss_", "dapi"),
    *(
        "hvs.",
        "age-secret",
        "eyj",
        "://",
        "passw",
        "passphrase",
        "pwd",
        "密码",
        "密碼",
        "口令",
        "パスワード",
        "비밀번호",
    ),
    *("key", "token", "secret", "credential", "密钥", "密鑰", "令牌", "トークン"),
)
"""A text without any of these, in lower case, has nothing to be found."""


def redacted(text: str) -> str:
    """The text with markers in the place of secrets."""
    lower = text.lower()
    if not any(sign in lower for sign in _SIGNS):
        return text
    text = _BLOCK.sub(MARKER.format("private key"), text)
    text = _BEARER.sub(lambda m: m[1] + MARKER.format("bearer token"), text)
    text = _ISSUED.sub(MARKER.format("api key"), text)
    text = _ADDRESS.sub(lambda m: m[1] + (MARKER.format("password") if _plain(m[2]) else m[2]), text)
    return _ASSIGNED.sub(_assigned, text)


def clean(value: Any) -> Any:
    """A JSON value without secrets: of an object also what stands under a name that says that it is one."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {name: _under(str(name), clean(one)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [clean(one) for one in value]
    return value


def kinds(texts: Iterable[str]) -> list[str]:
    """The kinds of secrets that were taken out of texts, by the markers in them."""
    return sorted({kind for text in texts if "[redacted: " in text for kind in _MARKED.findall(text)})


def _under(name: str, value: Any) -> Any:
    named = _NAMED.search(name) if isinstance(value, str) else None
    if named is None or not _looks_secret(value, bool(named["password"])):
        return value
    return MARKER.format("password" if named["password"] else "secret")


def _assigned(match: re.Match[str]) -> str:
    whole, value = match[0], match["value"]
    end = _ENDS.search(value)
    value = (value[: end.start()] if end else value).rstrip(".:!?") or value
    if not _looks_secret(value, bool(match["password"])):
        return whole
    kind = "password" if match["password"] else "secret"
    place = match.start("value") - match.start()
    return whole[:place] + MARKER.format(kind) + whole[place + len(value) :]


def _plain(value: str) -> bool:
    """Whether a value is meant as it stands: no code, no placeholder, not marked already."""
    return not _CODE.search(value) and not _STAND_INS.search(value)


def _looks_secret(value: str, password: bool) -> bool:
    """Whether a value that is assigned to a secret's name looks like one."""
    if not value.isascii() or not _plain(value) or any(c.isspace() for c in value):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if password:
        return len(value) >= 6 and digits | any(c in "!@#$%^&*+?" for c in value)
    mixed = value != value.lower() and value != value.upper()
    return letters and digits and len(value) >= (12 if mixed else 16) and _entropy(value) >= LEAST_ENTROPY


LEAST_ENTROPY = 3.0
"""Bits per character, by how often each occurs in the value. Sixteen random hexadecimal digits have about 3.2, names
and dates less than 3."""


def _entropy(value: str) -> float:
    counts, size = Counter(value).values(), len(value)
    return -sum(n / size * math.log2(n / size) for n in counts)

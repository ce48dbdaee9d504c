"""Tokens of a picture, from its size in pixels when that can be read."""

from __future__ import annotations

import binascii
from math import ceil
from struct import unpack_from

from clew.messages import Image

UNKNOWN_IMAGE = 1_600
"""Tokens of a picture of unknown size: the most a provider below charges for one."""

LEAST_IMAGE = 85
"""Tokens of the smallest picture (OpenAI's charge at low detail)."""

_HEAD = 262_144
"""Base64 characters looked at: a JPEG may carry previews and profiles before its size."""


def image_tokens(image: Image) -> int:
    """Width times height over 750, at most 1,600 (Anthropic's rule for its vision models)."""
    size = image_size(image)
    if size is None:
        return UNKNOWN_IMAGE
    return min(max(ceil(size[0] * size[1] / 750), LEAST_IMAGE), UNKNOWN_IMAGE)


def image_size(image: Image) -> tuple[int, int] | None:
    """Width and height in pixels of an inline PNG, JPEG, GIF or WebP; None when they cannot be read."""
    data = image.data
    if not data and image.url.startswith("data:"):
        data = image.url.partition(",")[2]
    head = data[:_HEAD]
    try:
        raw = binascii.a2b_base64(head[: len(head) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    size = _size(raw)
    return size if size and min(size) > 0 else None


def _size(raw: bytes) -> tuple[int, int] | None:
    if raw[:8] == b"\x89PNG\r\n\x1a\n" and len(raw) >= 24:
        return unpack_from(">II", raw, 16)
    if raw[:6] in (b"GIF87a", b"GIF89a") and len(raw) >= 10:
        return unpack_from("<HH", raw, 6)
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" and len(raw) >= 30:
        return _webp(raw)
    if raw[:2] == b"\xff\xd8":
        return _jpeg(raw)
    return None


def _webp(raw: bytes) -> tuple[int, int] | None:
    kind = raw[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(raw[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = unpack_from("<HH", raw, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(raw: bytes) -> tuple[int, int] | None:
    """Walks the segments up to the frame header (SOF0-SOF15 but DHT, JPG, DAC), which holds the size."""
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = unpack_from(">HH", raw, at + 5)
            return width, height
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            at += 2 + int(unpack_from(">H", raw, at + 2)[0])
    return None

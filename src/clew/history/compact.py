"""`CompactHistory`: QitOS's history that shrinks and summarises what is old."""

from __future__ import annotations

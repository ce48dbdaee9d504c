"""Where recordings of other tools are. They are not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

RECORDINGS = Path(os.environ.get("CLEW_TRANSCRIPTS") or Path(__file__).parents[2] / "shared" / "transcripts")
"""A folder that has one for each tool: claude-code, pi, openclaw, openai-messages, mini-swe-agent."""

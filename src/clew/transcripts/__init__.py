"""Transcripts of other tools, read into sessions or for replay.

`load` and `import_file` bring the database with them and are loaded when first asked for; `sniff`
and `recording` do without.
"""

from typing import TYPE_CHECKING, Any

from clew.transcripts.formats import FORMATS
from clew.transcripts.recording import Recording, recording
from clew.transcripts.sniffing import sniff

if TYPE_CHECKING:
    from clew.transcripts.loading import Report, import_file, load

__all__ = ["FORMATS", "Recording", "Report", "import_file", "load", "recording", "sniff"]


def __getattr__(name: str) -> Any:
    if name in ("Report", "import_file", "load"):
        from clew.transcripts import loading

        return getattr(loading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

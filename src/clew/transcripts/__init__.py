"""Transcripts of other tools, read into sessions or for replay."""

from clew.transcripts.formats import FORMATS
from clew.transcripts.recording import Recording, recording
from clew.transcripts.sniffing import sniff

__all__ = ["FORMATS", "Recording", "recording", "sniff"]

"""What outlives a conversation: records with their past, and the kinds of memory over them."""

from clew.memory.base import Memory, Query
from clew.memory.blocks import Block, BlockMemory
from clew.memory.embedding import Embedder, EmbeddingError
from clew.memory.entity import Conflict, EntityMemory
from clew.memory.extraction import Extraction, Fact, extraction
from clew.memory.hybrid import HybridMemory
from clew.memory.log import RecordLog
from clew.memory.markdown import MarkdownFileMemory
from clew.memory.presets import customer_service, knowledge_base, personal_assistant
from clew.memory.recall import Recall
from clew.memory.recalling import RecallMemory
from clew.memory.records import MemoryRecord, Namespace, Source
from clew.memory.saved import WouldLose, load, save
from clew.memory.summary import SummaryMemory
from clew.memory.vector import VectorMemory
from clew.memory.why import Recalled, Why
from clew.memory.window import WindowMemory

__all__ = [
    "Block",
    "BlockMemory",
    "Conflict",
    "Embedder",
    "EmbeddingError",
    "EntityMemory",
    "Extraction",
    "Fact",
    "HybridMemory",
    "MarkdownFileMemory",
    "Memory",
    "MemoryRecord",
    "Namespace",
    "Query",
    "Recall",
    "RecallMemory",
    "Recalled",
    "RecordLog",
    "Source",
    "SummaryMemory",
    "VectorMemory",
    "Why",
    "WindowMemory",
    "WouldLose",
    "customer_service",
    "extraction",
    "knowledge_base",
    "load",
    "personal_assistant",
    "save",
]

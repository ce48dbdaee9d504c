"""What a model is to Clew."""

from clew.models.base import Delta, Model, ModelCall, Reply, Streaming, answer_text
from clew.models.extractive import Extractive
from clew.models.litellm import LiteLLM
from clew.models.local import Local
from clew.models.scripted import Scripted, ScriptEnded
from clew.models.steps import Ask, Failure, Offline, ReadFile, Steps, World, arun, run

__all__ = [
    "Ask",
    "Delta",
    "Extractive",
    "Failure",
    "LiteLLM",
    "Local",
    "Model",
    "ModelCall",
    "Offline",
    "ReadFile",
    "Reply",
    "ScriptEnded",
    "Scripted",
    "Steps",
    "Streaming",
    "World",
    "answer_text",
    "arun",
    "run",
]

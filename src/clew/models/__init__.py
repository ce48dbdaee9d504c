"""What a model is to Clew."""

from clew.models.base import Model, ModelCall, Reply, answer_text
from clew.models.extractive import Extractive
from clew.models.steps import Ask, Failure, Offline, ReadFile, Steps, World, arun, run

__all__ = [
    "Ask",
    "Extractive",
    "Failure",
    "Model",
    "ModelCall",
    "Offline",
    "ReadFile",
    "Reply",
    "Steps",
    "World",
    "answer_text",
    "arun",
    "run",
]

"""Clew: the memory and context layer for LLM agents."""

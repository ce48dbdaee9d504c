"""Mini-SWE-Agent 2.4.6."""

COMPONENTS = {}

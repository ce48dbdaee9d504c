"""The texts that memories ask models with, one file each."""

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """The prompt in `<name>.txt`, without the final newline."""
    return files(__name__).joinpath(f"{name}.txt").read_text("utf-8").rstrip("\n")

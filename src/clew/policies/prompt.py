"""The texts that ask models for something: files in a `prompts` folder beside the code that uses them."""

from functools import cache
from importlib.resources import files


@cache
def prompt(package: str, name: str) -> str:
    """The text of `prompts/<name>.txt` in the folder of a package, without the final newline."""
    return files(package).joinpath("prompts", f"{name}.txt").read_text("utf-8").rstrip("\n")

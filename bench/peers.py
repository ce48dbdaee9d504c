"""Other libraries, in a virtual environment of their own, so that benchmarks can stand beside them.

Run as a script it makes the environment (`build/.venv-peers`, some minutes) and says what is there.
`measured` runs a snippet there; what cannot be installed or run gives None.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / ".venv-peers"
PACKAGES = ("openhands-sdk", "openai-agents")
QUIET = {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def environment() -> Path:
    """The environment's Python, made first if need be; a package that cannot be installed is left out."""
    python = HOME / "bin" / "python"
    done = HOME / ".done"
    if not done.exists():
        shutil.rmtree(HOME, ignore_errors=True)
        subprocess.run([_newest(), "-m", "venv", HOME], check=True)
        for package in PACKAGES:
            print(f"installing {package} into {HOME.relative_to(ROOT)} …", file=sys.stderr)
            subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", package], check=False)
        done.touch()
    return python


def measured(snippet: str, **arguments: Any) -> Any:
    """What the snippet's function `main(**arguments)` returns there, as JSON; None when it fails."""
    code = f"{snippet}\nimport json, sys\nprint('\\n' + json.dumps(main(**json.loads(sys.argv[1]))))"
    done = subprocess.run(
        [environment(), "-c", code, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **QUIET},
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def version(package: str) -> str:
    """The installed version, or "not available"."""
    found = measured("def main(p):\n import importlib.metadata as m\n return m.version(p)", p=package)
    return str(found or "not available")


def _newest() -> str:
    """A Python of 3.12 or newer when there is one (OpenHands wants it), else this one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.1[2-4]*/bin/python")
    check = "import sys; sys.exit(sys.version_info < (3, 12))"
    for name in (sys.executable, "python3.14", "python3.13", "python3.12", *map(str, sorted(pyenv))):
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", check], check=False, capture_output=True).returncode == 0:
            return path
    return sys.executable


if __name__ == "__main__":
    for name in PACKAGES:
        print(f"{name}: {version(name)}")

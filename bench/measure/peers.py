"""Other libraries, each in a virtual environment of its own, so that benchmarks can stand beside them.

An environment is made when it is first needed (`build/.venv-peers/NAME`, about a minute).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "build" / ".venv-peers"
QUIET = {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def environment(package: str) -> Path:
    """The Python that has this package (or several, with spaces between them), made first if need be."""
    home = HOME / package.replace(" ", "+")
    python = home / "bin" / "python"
    done = home / ".done"
    if not done.exists():
        print(f"installing {package} into {home.relative_to(ROOT)} …", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([_newest(), "-m", "venv", home], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *package.split()], check=True
        )
        done.touch()
    return python


def measured(package: str, snippet: str, **arguments: Any) -> Any:
    """What the snippet's function `main(**arguments)` returns beside this package, as JSON.

    None when the package cannot be installed or the snippet fails; the reason goes to standard error.
    """
    code = f"{snippet}\nimport json, sys\nprint('\\n' + json.dumps(main(**json.loads(sys.argv[1]))))"
    try:
        done = subprocess.run(
            [environment(package), "-c", code, json.dumps(arguments)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **QUIET},
        )
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{package}: {error}"[:200], file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def version(package: str) -> str:
    """The installed version (of the first of several), or "not available"."""
    code = "def main(p):\n import importlib.metadata as m\n return m.version(p)"
    return str(measured(package, code, p=package.split()[0]) or "not available")


def _newest() -> str:
    """A Python of 3.12 or newer when there is one (OpenHands wants it), else this one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.1[2-4]*/bin/python")
    check = "import sys; sys.exit(sys.version_info < (3, 12))"
    for name in (sys.executable, "python3.14", "python3.13", "python3.12", *map(str, sorted(pyenv))):
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", check], check=False, capture_output=True).returncode == 0:
            return path
    return sys.executable

"""
The Pythons of the machine that can use the package.

    python python/tests/pythons.py     # a path per line
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

OLDEST, NEWEST = 11, 20
"""Minor versions to search for."""


def pythons() -> dict[str, str]:
    """Returns the first of each version, on the PATH or in pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for minor in range(OLDEST, NEWEST):
        version = f"3.{minor}"
        listed = [shutil.which(f"python{version}"), *map(str, sorted(root.glob(f"{version}.*/bin/python{version}")))]
        for path in listed:
            # pyenv's commands for versions that are not selected do not start.
            if path and (executable := _executable(path)):
                found[version] = executable
                break
    return found


def _executable(path: str) -> str | None:
    try:
        reply = subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return reply.stdout.strip() or None if reply.returncode == 0 else None


if __name__ == "__main__":
    print("\n".join(pythons().values()))

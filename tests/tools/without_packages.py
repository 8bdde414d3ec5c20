"""A process in which some packages cannot be imported."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

BLOCK = """\
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in NAMES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def run_without(packages: Iterable[str], code: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own that does not find some packages."""
    text = f"NAMES = {sorted(packages)!r}\n{BLOCK}{code}"
    found = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", text], cwd=folder, env=found, capture_output=True, text=True, check=False
    )

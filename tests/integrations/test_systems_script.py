"""`.ci/systems`, which the workflow runs on three systems: here on this one, from this source."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/systems.yml").read_text("utf-8"))


def test_the_workflow_has_three_systems_and_every_python() -> None:
    matrix = WORKFLOW["jobs"]["use"]["strategy"]["matrix"]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {"run": ".ci/systems"} in WORKFLOW["jobs"]["use"]["steps"]
    assert os.access(ROOT / ".ci/systems", os.X_OK)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_the_script(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = ["bash", str(ROOT / ".ci/systems")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0 and done.stdout.endswith("all is well\n"), done.stderr[-3000:]

"""The job of GitLab: its script, run in a shell with stand-ins for `pip` and `cntkpy`."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
JOB: dict[str, Any] = yaml.safe_load((ROOT / "integrations/gitlab-check.yml").read_text("utf-8"))["cntkpy-check"]

pytestmark = pytest.mark.skipif(not shutil.which("bash") or os.name == "nt", reason="needs bash")


def run_job(folder: Path, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The lines of the job in one shell that ends at the first failure, as GitLab's runner does."""
    (folder / "main.cntk").write_text(text)
    (programs := folder / "programs").mkdir()
    (programs / "cntkpy").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m cntkpy "$@"\n')
    (programs / "pip").write_text(f'#!/bin/sh\necho "$@" >"{folder}/installed"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    env = {**os.environ, **JOB["variables"], **variables, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    script = "\n".join([*JOB["before_script"], *JOB["script"]])
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=env, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("text", "options", "status", "severities"),
    [
        ("command = ()\n", "", 0, []),
        ("command = ()\ns = [ action = trian ]\n", "", 1, ["minor"]),
        ("command = ()\ns = [ action = trian ]\n", "--strict", 2, ["major"]),
        ("command = trian\n", "", 2, ["major"]),
    ],
)
@pytest.mark.sampled
def test_reports(tmp_path: Path, text: str, options: str, status: int, severities: list[str]) -> None:
    done = run_job(tmp_path, text, CNTKPY_PACKAGE="git+https://host/x@v1", CNTKPY_OPTIONS=options)
    assert done.returncode == status, done.stderr
    assert status in (0, 2, *JOB["allow_failure"]["exit_codes"])
    assert (tmp_path / "installed").read_text().split()[-1] == "git+https://host/x@v1"
    reports = JOB["artifacts"]["reports"]
    issues = json.loads((tmp_path / reports["codequality"]).read_text())
    assert [one["severity"] for one in issues] == severities
    assert xml.parse(tmp_path / reports["junit"]).getroot().attrib["failures"] == str(len(severities))
    assert JOB["artifacts"]["when"] == "always"


def test_the_package_has_to_be_named(tmp_path: Path) -> None:
    done = run_job(tmp_path, "command = ()\n")
    assert done.returncode == 2
    assert "set CNTKPY_PACKAGE" in done.stdout

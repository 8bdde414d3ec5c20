"""The GitHub action: its scripts, run as a runner runs them, and what `action.yml` hands to them."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
FILES = {
    "good.cntk": "command = ()\n",
    "configs/warned file.cntk": "command = ()\ns = [ action = trian ]\n",
    "bad.cntk": "command = trian\n",
}

pytestmark = pytest.mark.skipif(not shutil.which("bash") or os.name == "nt", reason="needs bash")


@dataclass(frozen=True)
class Step:
    """What a step left behind: its status, what it printed, and what it told the runner."""

    status: int
    printed: str
    outputs: dict[str, str]
    summary: str


def run_check(folder: Path, **inputs: str) -> Step:
    """The step that checks, in a repository in `folder`, with the variables and files that a runner provides."""
    (repository := folder / "repository").mkdir()
    for name, text in FILES.items():
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text(text)
    (programs := folder / "programs").mkdir()
    (programs / "cntkpy").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m cntkpy "$@"\n')
    (programs / "cntkpy").chmod(0o755)
    (folder / "temp").mkdir()
    (step,) = (one for one in STEPS if one.get("id") == "check")
    given = {
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_WORKSPACE": str(repository),
        "RUNNER_TEMP": str(folder / "temp"),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
    }
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        Path(given[name]).touch()
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=repository,
        env=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = (folder / "output").read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    return Step(done.returncode, done.stdout + done.stderr, outputs, (folder / "summary").read_text())


def test_errors_fail_the_step(tmp_path: Path) -> None:
    step = run_check(tmp_path)
    assert step.status == 2, step.printed
    assert step.outputs["status"] == "2"
    assert "::error file=bad.cntk,line=1,col=11,title=CK015::" in step.printed
    assert "::warning file=configs/warned file.cntk," in step.printed
    (run,) = json.loads(Path(step.outputs["sarif"]).read_text())["runs"]
    places = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}
    assert places == {"bad.cntk", "configs/warned%20file.cntk"}
    assert re.fullmatch(r"\*\*cntkpy check\*\*: 1 error, 1 warning in 3 configurations\n", step.summary)


@pytest.mark.parametrize(
    ("inputs", "status", "found"),
    [
        ({"configs": "good.cntk\r\n\n"}, 0, "0"),
        ({"configs": "good.cntk\n  configs/warned file.cntk  "}, 0, "1"),
        ({"configs": "configs", "strict": "true"}, 2, "2"),
        ({"configs": "configs", "strict": "true", "ignore": "CK012"}, 0, "0"),
        ({"configs": "good.cntk\nprecision=half"}, 2, "2"),
    ],
)
@pytest.mark.sampled
def test_inputs(tmp_path: Path, inputs: dict[str, str], status: int, found: str) -> None:
    step = run_check(tmp_path, **inputs)
    assert (step.status, step.outputs["status"]) == (status, found), step.printed


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"configs": "--open"}, "'--open' is an option"),
        ({"strict": "yes"}, "'yes' is neither true nor false"),
        ({"configs": "good.cntk", "ignore": "XY1"}, "no finding has the code 'XY1'"),
    ],
)
def test_wrong_inputs(tmp_path: Path, inputs: dict[str, str], said: str) -> None:
    step = run_check(tmp_path, **inputs)
    assert step.status == 2
    assert said in step.printed
    assert "sarif" not in step.outputs


STAND_IN = """\
#!/bin/sh
mkdir -p "$3/bin"
echo '#!/bin/sh
printf "%s\\n" "$@" >"{words}"' >"$3/bin/python"
chmod +x "$3/bin/python"
"""


@pytest.mark.parametrize(("version", "installed"), [("", str(ROOT)), ("1.2.3", "cntkpy==1.2.3")])
def test_install(tmp_path: Path, version: str, installed: str) -> None:
    """A stand-in for Python makes the environment, and keeps the words that pip would get."""
    (python := tmp_path / "python").write_text(STAND_IN.format(words=tmp_path / "words"))
    python.chmod(0o755)
    (step,) = (one for one in STEPS if "install" in one.get("run", ""))
    given = {
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_PATH": str(tmp_path / "path"),
        "RUNNER_TEMP": str(tmp_path / "te mp"),
        "INPUT_PYTHON": str(python),
        "INPUT_VERSION": version,
        "PATH": os.environ["PATH"],
    }
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path, env=given, check=True)
    assert (tmp_path / "path").read_text() == f"{tmp_path / 'te mp'}/cntkpy/bin\n"
    assert (tmp_path / "words").read_text().splitlines()[-1] == installed


def test_every_input_reaches_a_step() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(ACTION["runs"])))
    assert used == set(ACTION["inputs"])
    outputs = set(re.findall(r"steps\.check\.outputs\.(\w+)", json.dumps(ACTION["outputs"])))
    script = (ROOT / "integrations/github-check.sh").read_text()
    assert all(f'echo "{name}=$' in script for name in outputs)


def test_no_input_is_part_of_a_script() -> None:
    """What a pull request can set is data: it reaches a script as a variable, never as text of the script."""
    assert not [one["run"] for one in STEPS if "${{" in one.get("run", "")]


def test_the_bytes_of_scripts_are_plain() -> None:
    for path in (ROOT / "integrations").glob("*.sh"):
        subprocess.run(["bash", "-n", str(path)], check=True)
        assert b"\r" not in path.read_bytes()

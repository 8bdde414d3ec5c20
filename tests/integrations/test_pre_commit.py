"""The hooks for pre-commit: their entries with the files that pre-commit passes, and a scratch repository with them."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
HOOKS: dict[str, dict[str, Any]] = {
    one["id"]: one for one in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
}
PRE_COMMIT = shutil.which(os.environ.get("PRE_COMMIT", "pre-commit"))
FILES = {"good.cntk": "command = ()\n", "bad.cntk": "command = trian\n", "wide.cntk": "command   =   ()\n"}


def test_required_fields() -> None:
    for one in HOOKS.values():
        assert {"id", "name", "entry", "language", "files"} <= set(one)
        assert re.search(one["files"], "a/b.cntk") and not re.search(one["files"], "a/b.cntk.txt")


@pytest.mark.parametrize(
    ("hook", "names", "status"),
    [
        ("cntkpy-check", ["good.cntk"], 0),
        ("cntkpy-check", ["good.cntk", "bad.cntk"], 2),
        ("cntkpy-format", ["good.cntk", "wide.cntk"], 0),
    ],
)
def test_entries(hook: str, names: list[str], status: int, cntkpy, tmp_path: Path) -> None:
    program, *words = shlex.split(HOOKS[hook]["entry"])
    assert program == "cntkpy"
    assert cntkpy(*words, *names, files=FILES).code == status
    if hook == "cntkpy-format":
        assert (tmp_path / "wide.cntk").read_text() == "command = ()\n"


@pytest.mark.thorough
@pytest.mark.skipif(not PRE_COMMIT or not (ROOT / ".git").exists(), reason="needs pre-commit, and a git checkout")
def test_a_scratch_repository(tmp_path: Path) -> None:
    """pre-commit installs the last commit of this repository, from the package index, and runs both hooks."""
    assert PRE_COMMIT
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH" and not key.startswith("GIT_")}
    env |= {"PRE_COMMIT_HOME": str(tmp_path / "home")}
    (scratch := tmp_path / "scratch").mkdir()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=scratch, env=env, capture_output=True, text=True, timeout=600, check=False)

    for name, text in FILES.items():
        (scratch / name).write_text(text)
    revision = run("git", "-C", str(ROOT), "rev-parse", "HEAD").stdout.strip()
    hooks = [{"id": name} for name in HOOKS]
    config = {"repos": [{"repo": str(ROOT), "rev": revision, "hooks": hooks}]}
    (scratch / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    run("git", "init", "-q")
    run("git", "add", ".")
    first = run(PRE_COMMIT, "run", "--all-files")
    assert first.returncode == 1, first.stdout + first.stderr
    assert "bad.cntk:1:11: error: " in first.stdout
    assert "changed wide.cntk" in first.stdout
    (scratch / "bad.cntk").unlink()
    run("git", "add", "-A")
    second = run(PRE_COMMIT, "run", "--all-files")
    assert second.returncode == 0, second.stdout + second.stderr

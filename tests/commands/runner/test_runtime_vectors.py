"""The program vectors R01-R24 of the specification: exit statuses, log files, lines that must appear.

Where CNTK exits with 1, cntkpy exits with 2 if the command line or the configuration is wrong.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

VECTORS = yaml.safe_load(Path(__file__).with_name("runtime.yaml").read_text(encoding="utf-8"))["runtime"]

MESSAGES = {
    "MissingParameter": "missing",
    "UnknownOption": "unknown",
    "UnknownAction": "unknown action",
    "BadPrecision": "precision",
    "DeprecatedKey": "type",
    "UnknownVariable": "no",
    "BadInteger": "integer",
    "FileNotFound": "none.cntk",
}
"""What the message of each error class has in it."""

EXIT_STATUS = {"R18": 1}
"""Failures while running; every other failure of the vectors is one of the configuration or the command line."""

BEGUN = {"R11": "CNTKCommandTrainBegin: t"}
"""What CNTK logs of a command before it fails; cntkpy has looked at all commands, and begins none."""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_runtime_vector(vector: dict[str, Any], cntkpy, tmp_path: Path) -> None:
    got = cntkpy(*vector["args"], files=vector.get("files"))
    expected = 0 if vector["exit"] == 0 else EXIT_STATUS.get(vector["id"], 2)
    assert got.code == expected, got.err
    for text in vector.get("stderr_has", []):
        assert (text in got.err) == (text != BEGUN.get(vector["id"]))
    for text in vector.get("stdout_has", []):
        assert text in got.out
    for name in vector.get("creates", []):
        assert (tmp_path / name).is_file()
    for name, texts in vector.get("log_has", {}).items():
        log = (tmp_path / name).read_text(encoding="utf-8")
        assert all(text in log for text in texts)
    if "error" in vector:
        where = got.message or got.err
        assert MESSAGES[vector["error"]] in where
        if "path" in vector:
            assert vector["path"].split("/")[-1] in where
    assert "Traceback" not in got.err

"""SARIF: what GitHub's code scanning asks of a file, for findings of every sort.

The rules are those of GitHub's page "SARIF support for code scanning". Where Microsoft's validator is installed
(`npm i @microsoft/sarif-multitool`, its program in SARIF_MULTITOOL), it has to be silent, too.
"""

import json
import os
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from several_findings import MAIN

from cntkpy.commands.checks.output import sarif

FILES = {
    "main.cntk": MAIN,
    "a b/100%.cntk": MAIN,
    "closed.cntk": "a = [\n",
    "edit.cntk": "command = e\ne = [ action = edit ; editPath = change.mel ]\n",
    "change.mel": "SaveModle(m)\n",
    "net.bs": "f(x) = \n",
}


@pytest.mark.parametrize(
    "words",
    [
        ["main.cntk"],
        ["a b/100%.cntk"],
        ["closed.cntk"],
        ["edit.cntk"],
        ["net.bs"],
        ["gone.cntk"],
        ["configFile=main.cntk", "traim=[x=1]", "train=[SGD=[minibatchSiz=3]]"],
        ["main.cntk", "closed.cntk", "a b"],
    ],
)
def test_what_github_asks_for(words: list[str], cntkpy, tmp_path: Path) -> None:
    got = cntkpy("check", "--format", "sarif", *words, files=FILES)
    text = cntkpy("check", "--format", "json", *words)
    log = json.loads(got.out)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for rule in rules:
        assert {"id", "shortDescription", "fullDescription", "help", "helpUri", "defaultConfiguration"} <= set(rule)
        assert len(rule["fullDescription"]["text"]) <= 1024
        assert rule["helpUri"].startswith("https://")
    findings = json.loads(text.out)["findings"]
    assert len(run["results"]) == len(findings) > 0
    assert sorted(one["ruleId"] for one in run["results"]) == sorted(one["code"] for one in findings)
    hashes = [one["partialFingerprints"]["primaryLocationLineHash"] for one in run["results"]]
    assert len(set(hashes)) == len(hashes)
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
        assert one["level"] in ("error", "warning", "note")
        assert one["message"]["text"]
        (place,) = one["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert not uri.startswith(("/", "file:", "<"))
        assert unquote(uri) in FILES or words == ["gone.cntk"]
        assert not set(uri) & set(' <>"\\{}|^`')
        region = place["physicalLocation"]["region"]
        assert region["startLine"] >= 1
        assert region.get("startColumn", 1) < region.get("endColumn", 2)
    multitool = os.environ.get("SARIF_MULTITOOL")
    if multitool:
        (tmp_path / "found.sarif").write_text(got.out)
        command = [multitool, "validate", str(tmp_path / "found.sarif"), "--rule-kind", "Sarif;Ghas"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        assert " error " not in said, said
        assert " warning " not in said, said


def test_a_result_keeps_its_fingerprint_when_lines_move(cntkpy) -> None:
    def hashes(text: str) -> list[str]:
        run = json.loads(cntkpy("check", "--format", "sarif", "main.cntk", files={"main.cntk": text}).out)["runs"][0]
        return [one["partialFingerprints"]["primaryLocationLineHash"] for one in run["results"]]

    assert hashes("# one line more\n" + MAIN) == hashes(MAIN)


def test_a_file_outside_has_its_whole_address(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    got = cntkpy("check", "--format", "sarif", "../out.cntk", files={"out.cntk": "a = [\n"}, cwd=tmp_path / "in")
    run = json.loads(got.out)["runs"][0]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (tmp_path / "out.cntk").as_uri()


def test_no_more_results_than_github_takes(cntkpy, monkeypatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 2)
    run = json.loads(cntkpy("check", "--format", "sarif", "main.cntk", files=FILES).out)["runs"][0]
    assert len(run["results"]) == 2
    assert run["results"][0]["level"] == "error"
    (invocation,) = run["invocations"]
    assert "the 2 worst are listed" in invocation["toolExecutionNotifications"][0]["message"]["text"]

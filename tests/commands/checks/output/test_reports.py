"""GitLab's code quality report and the JUnit report: the fields that their readers require, for findings of every sort.

GitLab: the table of "Code Quality report format" on its page about code quality. JUnit: `junit-10.xsd` of Jenkins.
"""

import itertools
import json
import xml.etree.ElementTree as xml

import pytest
from several_findings import MAIN

from cntkpy.cntk_config.base.source import Source
from cntkpy.commands.checks.output.places import path_at

FILES = {
    "main.cntk": MAIN,
    "a b/100%.cntk": MAIN,
    "a b/good.cntk": "command = ()\n",
    "closed.cntk": "a = [\n",
    "odd.cntk": "command = ()\nprecision = fl<\x1b&>\n",
}
WORDS = [
    ["main.cntk"],
    ["a b"],
    ["closed.cntk"],
    ["odd.cntk"],
    ["gone.cntk"],
    ["configFile=main.cntk", "traim=[x=1]", "train=[SGD=[minibatchSiz=3]]"],
    ["main.cntk", "closed.cntk", "a b"],
]


@pytest.mark.parametrize("words", WORDS)
def test_what_gitlab_requires(words: list[str], cntkpy) -> None:
    got = cntkpy("check", "--format", "gitlab", *words, files=FILES)
    findings = json.loads(cntkpy("check", "--format", "json", *words).out)["findings"]
    issues = json.loads(got.out)
    assert not got.out.startswith("\ufeff")
    assert [one["check_name"] for one in issues] == [one["code"] for one in findings] != []
    severities = {"error": "major", "warning": "minor", "hint": "info"}
    assert [one["severity"] for one in issues] == [severities[one["severity"]] for one in findings]
    assert len({one["fingerprint"] for one in issues}) == len(issues)
    for issue, finding in zip(issues, findings, strict=True):
        assert finding["message"][:20] in issue["description"] or finding["message"].isprintable() is False
        path, line = issue["location"]["path"], issue["location"]["lines"]["begin"]
        assert isinstance(line, int) and line >= 1
        assert not path.startswith(("/", "./")) and "\\" not in path
        if finding["file"] and not finding["file"].startswith("<"):
            assert (path, line) == (finding["file"], finding["line"])


def test_a_finding_keeps_its_fingerprint_when_lines_move(cntkpy) -> None:
    def found(text: str) -> list[str]:
        issues = json.loads(cntkpy("check", "--format", "gitlab", "main.cntk", files={"main.cntk": text}).out)
        return [one["fingerprint"] for one in issues]

    assert found("# one line more\n" + MAIN) == found(MAIN)


def test_no_findings_are_an_empty_array(cntkpy) -> None:
    got = cntkpy("check", "--format", "gitlab", "good.cntk", files={"good.cntk": "command = ()\n"})
    assert (got.code, json.loads(got.out)) == (0, [])


REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}
ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "file"},
    "testcase": {"name", "time", "classname", "group"},
    "failure": {"type", "message"},
    "skipped": {"type", "message"},
}
CHILDREN = {"testsuites": {"testsuite"}, "testsuite": {"testcase"}, "testcase": {"failure", "skipped"}}


@pytest.mark.parametrize("words", WORDS)
def test_what_the_schema_of_junit_requires(words: list[str], cntkpy) -> None:
    got = cntkpy("check", "--format", "junit", *words, files=FILES)
    findings = json.loads(cntkpy("check", "--format", "json", *words).out)["findings"]
    root = xml.fromstring(got.out)
    assert root.tag == "testsuites"
    for element in root.iter():
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib) <= ALLOWED[element.tag]
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
    for suite in root:
        assert int(suite.attrib["tests"]) == len(suite)
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert int(suite.attrib["skipped"]) == len(suite.findall("testcase/skipped"))
    failed = [one for one in findings if one["severity"] != "hint"]
    assert root.attrib["failures"] == str(len(failed)) == str(len(list(root.iter("failure"))))
    codes = [case.attrib["name"].split()[0] for case in root.iter("testcase") if len(case)]
    assert codes == [one["code"] for one in findings]
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase") if len(case)]
    assert len(set(names)) == len(names)


def test_a_configuration_without_findings_has_passed(cntkpy) -> None:
    got = cntkpy("check", "--format", "junit", "good.cntk", files={"good.cntk": "command = ()\n"})
    assert got.code == 0
    (suite,) = xml.fromstring(got.out)
    assert suite.attrib["tests"] == "1" and suite.attrib["failures"] == "0"
    assert [len(case) for case in suite] == [0]


NEIGHBOURS = """\
command = a:b
a = [ action = train ; SGD = [ epochSise = 1
                               maxEpoks = $gone$ ; x = $gone$ ] ]
b = [ action = train ; SGD = [ epochSise = 1 ] ]
"""


@pytest.mark.parametrize(
    ("mended", "form"), [*itertools.product(["epochSise = 1\n", "epochSise = 1 ]", "x = $gone$"], ["gitlab", "sarif"])]
)
def test_mending_a_finding_leaves_the_fingerprints_of_others(mended: str, form: str, cntkpy) -> None:
    """Of two equal findings one is mended; the other is not new (D21)."""

    def prints(text: str) -> list[str]:
        log = json.loads(cntkpy("check", "--format", form, "main.cntk", files={"main.cntk": text}).out)
        if form == "gitlab":
            return [issue["fingerprint"] for issue in log]
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in log["runs"][0]["results"]]

    old, new = (
        prints(NEIGHBOURS),
        prints(NEIGHBOURS.replace(mended, "\n" if mended[-1] == "\n" else "]" * ("]" in mended))),
    )
    assert len(new) < len(old) and set(new) < set(old)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a = 1\nb = @", "b"),
        ("t = [ SGD = [ x = 1 ; y = @ ] ]", "t/SGD/y"),
        ('t = [ SGD = [ x = 1 ] # [ { "\n @z = 1 ] ', "t/z"),
        ('t = [ s = "]" ; l = (1 : @2) ]', "t/l/"),
        ("t = [\n n = { h = Dense(@x) } ]", "t/n/Dense/"),
        ("]] t = @", "t"),
        ("@", ""),
    ],
)
def test_path_of_a_place(text: str, path: str) -> None:
    line, column = text[: text.index("@")].count("\n") + 1, len(text[: text.index("@")].split("\n")[-1]) + 1
    assert path_at(Source("m.cntk", text.replace("@", "")), line, column) == path

"""Choosing findings, comments that switch them off, formats of output, exit statuses, folders, samples."""

import json
import os
import shutil
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.kinds import RULES

ROOT = Path(__file__).resolve().parents[3]
BAD = """\
# a comment
command = ()
precision = $x$
a b = 1
s = [
    y = 1
] ]
"""
SGD = """\
command = train
modelPath = m
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [
        maxEpochs = 2
        learningRatesPerMB = 0.1
        minibatchSizes = 3{comment}
        colour = red
    ]
    reader = [ file = main.cntk ; input = [ features = [ dim = 2 ; format = dense ]
        labels = [ dim = 3 ; format = dense ] ] ]
]
"""


def test_exit_status_and_severities(cntkpy) -> None:
    assert cntkpy("check", "main.cntk", files={"main.cntk": BAD}).code == 2
    got = cntkpy("check", "main.cntk", files={"main.cntk": SGD.format(comment="")})
    assert got.code == 1
    assert got.out == (
        "main.cntk:9:9: warning: SGD: 'minibatchSizes' is not a known parameter"
        " - did you mean 'minibatchSize'? [CK010]\n"
        "main.cntk:10:9: hint: SGD: nothing reads 'colour' [CK011]\n"
        "1 warning, 1 hint in 1 configuration\n"
    )
    assert cntkpy("check", "main.cntk", "--ignore", "CK010").code == 0
    got = cntkpy("check", "main.cntk", "--ignore", "CK010", "--strict")
    assert got.code == 2
    assert "main.cntk:10:9: error: " in got.out
    assert "CK011" not in cntkpy("check", "main.cntk", "--select", "CK010,CK02").out


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("  # cntkpy: ignore=CK010", ["CK011"]),
        ("  # old; cntkpy: ignore=CK010", ["CK010", "CK011"]),
        ("  # cntkpy: ignore=CK011", ["CK010", "CK011"]),
        ("  # cntkpy: ignore", ["CK011"]),
    ],
)
def test_comments_in_a_line(comment: str, left: list[str], cntkpy) -> None:
    got = cntkpy("check", "main.cntk", "--format", "json", files={"main.cntk": SGD.format(comment=comment)})
    assert [one["code"] for one in json.loads(got.out)["findings"]] == left


def test_comments_at_the_top_of_a_file(cntkpy) -> None:
    text = "# cntkpy: ignore-file=CK010, CK011\n" + SGD.format(comment="")
    assert cntkpy("check", "main.cntk", files={"main.cntk": text}).out == "no problems in 1 configuration\n"
    text = SGD.format(comment="") + "# cntkpy: ignore-file=CK010\n"
    assert cntkpy("check", "main.cntk", files={"main.cntk": text}).code == 1


def test_json_github_and_sarif(cntkpy) -> None:
    files = {"main.cntk": SGD.format(comment="")}
    found = json.loads(cntkpy("check", "main.cntk", "--format", "json", files=files).out)["findings"][0]
    assert found["docs"] == "https://github.com/cntkpy/cntkpy/blob/main/docs/findings/names.md#ck010"
    assert (found["file"], found["line"], found["column"], found["length"]) == ("main.cntk", 9, 9, 14)
    assert found["fix"] == "did you mean 'minibatchSize'?"
    got = cntkpy("check", "main.cntk", "--format", "github")
    assert got.out.startswith("::warning file=main.cntk,line=9,col=9,title=CK010::SGD: 'minibatchSizes'")
    assert "\n::notice " in got.out
    got = cntkpy("check", "nothing.cntk", "--format", "github")
    assert got.out.startswith("::error title=CK001::<argument 1>:1:12: cannot read 'nothing.cntk'")
    sarif = json.loads(cntkpy("check", "main.cntk", "--format", "sarif").out)
    run = sarif["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.code for rule in RULES]
    assert [one["level"] for one in run["results"]] == ["warning", "note"]
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 9, "startColumn": 9, "endColumn": 23}


def test_folders(cntkpy) -> None:
    files = {"c/main.cntk": SGD.format(comment=""), "c/d/other.cntk": "command = ()\n", "c/notes.txt": "no [ config"}
    got = cntkpy("check", "c", "train=[reader=[file=c/main.cntk]]", files=files)
    assert got.out.endswith("1 warning, 1 hint in 2 configurations\n") or "in 2 configurations" in got.out


def test_data(cntkpy) -> None:
    files = {"main.cntk": SGD.format(comment="").replace("file = main.cntk", "file = t.ctf")}
    files["t.ctf"] = "|features 1 2\n|features 1 2 3\n"
    assert "CK061" not in cntkpy("check", "main.cntk", files=files).out
    got = cntkpy("check", "--data", "main.cntk")
    assert "line 2 of 't.ctf': the stream 'features' has 3 values, but its dim is 2" in got.out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("|features 1 2x |labels 1 0 0", "'features' has '2x', which is not a number"),
        ("|features 1 2 |labels 1 ² 0", "'labels' has '²', which is not a number"),
        ("|features 1 2e3 |labels 1 0 -0.5", None),
        ("|features 1 2 |labels 1 0 -.5", "A value of"),
    ],
)
def test_words_that_are_no_numbers(cntkpy, line: str, told: str | None) -> None:
    config = SGD.format(comment="").replace("file = main.cntk", "file = t.ctf")
    files = {"main.cntk": config, "t.ctf": f"|features 1 2 |labels 1 0 0\n{line}\n"}
    found = [one for one in cntkpy("check", "--data", "main.cntk", files=files).out.splitlines() if "line 2" in one]
    assert len(found) == (told is not None)
    assert told is None or told in found[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_data_that_cannot_be_read(cntkpy, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.ctf")
    config = SGD.format(comment="").replace("file = main.cntk", "file = t.ctf")
    got = cntkpy("check", "--data", "main.cntk", files={"main.cntk": config})
    assert got.code == 2 and "'t.ctf' cannot be read: it is a pipe, not a regular file" in got.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 |features 1 2 |labels 1 0 0\n0 |features 3 4\n1 |features 1 2 |labels 1 0 0\n", "sequence 0 has 1 sample"),
        ("0 |features 1 2 |labels 1 0 0\n1 |features 1 2\n2 |features 1 2 |labels 1 0 0\n", "sequence 1 has 0 samples"),
        ("|features 1 2 |labels 1 0 0\n|features 1 2\n", "sequence 1 has 0 samples"),
        ("0 |features 1 2 |labels 1 0 0\n  |features 3 4 |labels 1 0 0\n1 |features 1 2\n", "sequence 1 has 0 samples"),
        ("0 |features 1 2 |labels 1 0 0 |other 1 |other 2\n1 |features 3 4 |labels 1 0 0\n", ""),
    ],
)
def test_sequences_of_unequal_lengths(text: str, told: str, cntkpy) -> None:
    """B3, W6: only the data show it; the error is that of the run."""
    config = SGD.format(comment="").replace("file = main.cntk", "file = t.ctf")
    got = cntkpy("check", "--data", "main.cntk", files={"main.cntk": config, "t.ctf": text})
    found = [line for line in got.out.splitlines() if "sequences of different lengths" in line]
    assert len(found) == bool(told), got.out
    assert all(f": {told} of 'labels'" in line and ": error: " in line for line in found)


def test_an_unequal_sequence_at_the_end_of_the_lines_that_are_looked_at(cntkpy) -> None:
    text = "0 |features 1 2 |labels 1 0 0\n" * 99 + "1 |features 1 2\n1 |features 1 2 |labels 1 0 0\n"
    config = SGD.format(comment="").replace("file = main.cntk", "file = t.ctf")
    got = cntkpy("check", "--data", "main.cntk", files={"main.cntk": config, "t.ctf": text})
    assert "sequence 1 has 1 sample of 'labels', 2 of 'features'" in got.out


@pytest.mark.parametrize("settings", ["", "maxErrors = 100 ; "])
def test_a_line_of_the_network_is_offered(settings: str, cntkpy) -> None:
    """The extended example of CNTK's manual needs an axis of its own, whatever maxErrors is (G10)."""
    text = "100 |features 1 2 |labels 1 0 0\n100 |features 3 4 |labels 1 0 0\n100 |features 3 4\n"
    config = SGD.format(comment="").replace("file = main.cntk", settings + "file = t.ctf")
    got = cntkpy("check", "--data", "main.cntk", files={"main.cntk": config, "t.ctf": text})
    assert "sequence 100 has 2 samples of 'labels', 3 of 'features'" in got.out
    assert "t = DynamicAxis () and labels = Input (..., dynamicAxis=t)" in got.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 {}\n2 {}\n1 {}\n", "line 3 of 't.ctf' begins a second sequence of the id 1, which line 1 has - put the"),
        (
            "1 {}\n2 |features 1 2\n2 |labels 1 0 0\n",
            "line 2 of 't.ctf' has 2 rows, but no input has more than 1 samples",
        ),
        ("{}\n2 {}\n1 {}\n2 {}\n", ""),
        ("1 {}\n1 |# a remark\n2 {}\n", ""),
    ],
)
def test_sequences_that_the_manual_calls_invalid(text: str, told: str, cntkpy) -> None:
    both = "|features 1 2 |labels 1 0 0"
    config = SGD.format(comment="").replace("file = main.cntk", "file = t.ctf")
    files = {"main.cntk": config, "t.ctf": text.format(both, both, both, both)}
    got = cntkpy("check", "--data", "main.cntk", files=files)
    assert ("[CK061]" in got.out) == bool(told) and told in got.out, got.out


AXES = """
command = train
train = [
    action = train ; modelPath = m
    BrainScriptNetworkBuilder = {
        t = DynamicAxis ()
        x = Input {2, dynamicAxis=t} ; b = Input {2, dynamicAxis=t} ; y = Input {2}
        z = ReconcileDynamicAxis (BS.Sequences.Last (LinearLayer {2} (x + b)), y)
        ce = SquareError (y, z) ; criterionNodes = (ce)
    }
    SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerMB = 0.1 ]
    reader = [ file = t.ctf
        input = [ x = [ dim=2 ; format=dense ] ; b = [ dim=2 ; format=dense ] ; y = [ dim=2 ; format=dense ] ] ]
]
"""


@pytest.mark.parametrize(
    ("second", "told"), [("|x 1 2 |b 1 2", ""), ("|x 1 2", "sequence 0 has 2 samples of 'x', 1 of 'b'")]
)
def test_inputs_with_axes_of_their_own(second: str, told: str, cntkpy) -> None:
    """Only streams of one time axis need the same lengths."""
    files = {"main.cntk": AXES, "t.ctf": f"0 |x 1 2 |b 1 2 |y 1 0\n0 {second}\n1 |x 1 2 |b 1 2 |y 1 0\n"}
    got = cntkpy("check", "--data", "main.cntk", files=files)
    found = [line for line in got.out.splitlines() if "t.ctf" in line or "sequence" in line]
    assert len(found) == bool(told) and all(told in line for line in found), got.out


@pytest.mark.thorough
def test_samples_have_no_findings_beside_their_data(cntkpy, tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output", "plugin")
    )
    for name in ("sequence_classifier", "spelling", "digits"):
        got = cntkpy("check", "--strict", "--data", f"sample_configs/{name}.cntk")
        assert got.code == 0, got.out


def test_samples_have_no_findings(cntkpy, tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns("output", "plugin")  # the plug-in has to be installed first
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=left_out)
    got = cntkpy("check", "--strict", "sample_configs")
    assert got.code == 0, got.out


def test_many_configurations_are_shared_out(cntkpy_process) -> None:
    files = {f"c/{i:02}.cntk": SGD.format(comment="").replace("main.cntk", f"c/{i:02}.cntk") for i in range(60)}
    got = cntkpy_process("check", "c", files=files)
    lines = got.out.splitlines()
    assert got.code == 1
    assert [line.split(":")[0] for line in lines[:-1:2]] == sorted(files)
    assert lines[-1] == "60 warnings, 60 hints in 60 configurations"


def test_editing_scripts(cntkpy) -> None:
    files = {
        "main.cntk": "command = edit\nedit = [ action = edit ; editPath = change.mel ]\n",
        "change.mel": "m = LoadModel(a.dnn)\nSaveModle(m, b.dnn)\nCopyNode(m.a)\n",
    }
    got = cntkpy("check", "main.cntk", files=files)
    lines = got.out.splitlines()
    assert len(lines) == 4, got.out
    assert lines[0].startswith("change.mel:1:5: hint: there is no model a.dnn")
    assert lines[1].startswith("change.mel:2:1: error: ")
    assert "SaveModel" in lines[1]
    assert lines[1].endswith("[CK050]")
    assert lines[2].startswith("change.mel:3:1: error: ")
    files["change.mel"] = "m = LoadModel(a.dnn)\nSaveModel(m, b.dnn)\n"
    (told, _) = cntkpy("check", "main.cntk", files=files).out.splitlines()
    assert told.startswith("change.mel:1:5: hint: there is no model a.dnn")


def test_parts_of_a_folder_that_include_others(cntkpy) -> None:
    files = {
        "p/paths.cfg": "Data=d\n",
        "p/part.cfg": "include=paths.cfg\nSGD=[maxEpochs=3]\n",
        "p/whole.cfg": "include=section.cfg\n",
        "p/section.cfg": "[x=1]\n; include=go.cfg\n",
        "p/go.cfg": "go=[action=nonsense]\ncommand=go\n",
        "p/lost.cfg": "include=nowhere.cfg\n",
    }
    got = cntkpy("check", "p", files=files)
    assert got.err == "note: 2 skipped, no command and no action is in them: p/part.cfg, p/paths.cfg\n"
    places = [line.split(" ")[0] for line in got.out.splitlines()]
    assert places == ["p/go.cfg:1:12:", "p/lost.cfg:1:9:", "p/go.cfg:1:12:", "p/go.cfg:1:12:", "4"], got.out


def test_an_include_beside_its_file_is_named_from_the_current_folder(cntkpy) -> None:
    """GitHub shows an annotation in a file of the repository, named from its root."""
    section = """t = [ action = train ; modelPath = m ; SGD = [ maxEpochs = 1 ; learningRatesPerMB = 1 ]
        reader = [ readerType = CNTKTextFormatReader ; file = a.txt ; input = [ x = [ dim = 3 ; format = dense ] ] ]
        BrainScriptNetworkBuilder = { include "parts/net.bs" }
    ]"""
    files = {
        "p/whole.cfg": "include=parts/go.cfg\n",
        "p/parts/go.cfg": f"go=[action=nonsense]\ncommand=t:go\n{section}\n",
        "p/parts/parts/net.bs": "x = Input {3} ; z = Dens {3} (x) ; featureNodes = (x) ; outputNodes = (z)\n",
    }
    got = cntkpy("check", "--format", "github", "p/whole.cfg", files=files)
    assert "::error file=p/parts/go.cfg,line=1,col=12," in got.out
    assert "::error file=p/parts/parts/net.bs,line=1," in got.out


def test_files_of_a_folder_that_are_no_configurations(cntkpy) -> None:
    """B6: files of other programs have the same endings."""
    files = {
        "p/setup.cfg": "[metadata]\nname = x\n[entry]\ncommand = y\n",
        "p/App.config": '<?xml version="1.0"?>\n<a command = "x"/>\n',
        "p/part.cntk": "SGD=[maxEpochs=3]\n",
        "p/real.cfg": "command=go\ngo=[action=nonsense]\n",
    }
    got = cntkpy("check", "p", files=files)
    assert "1 error in 1 configuration\n" in got.out
    assert got.out.startswith("p/real.cfg:2:")
    assert got.err == ("note: 3 skipped, no command and no action is in them: p/App.config, p/part.cntk, p/setup.cfg\n")
    assert cntkpy("check", "--quiet", "p").err == ""
    assert "setup.cfg" in cntkpy("check", "p/setup.cfg").out  # it was asked for
    got = cntkpy("format", "--check", "p")
    assert "setup.cfg" not in got.out + got.err
    assert "App.config" not in got.out + got.err
    assert "part.cntk" in got.out


def test_one_value_of_a_schedule_too_many(cntkpy) -> None:
    for rates, repair in (("1:2", "the last one is never used"), ("1:2:3", "the last 2 are never used")):
        sgd = f"[ maxEpochs = 1 ; learningRatesPerMB = {rates} ]"
        text = f"command = t\nt = [ action = train ; modelPath = m ; SGD = {sgd} ]\n"
        assert f"values for 1 epoch - {repair} [CK040]" in cntkpy("check", "a.cntk", files={"a.cntk": text}).out

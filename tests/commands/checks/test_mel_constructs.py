"""`check` and the run agree about scripts of the model editing language: an example of every command and statement.

What depends on a model that is not there is found by the run alone; these are marked so.
"""

from __future__ import annotations

import cProfile
import pstats
import re
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.builders.ndl.text import Document
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.networks.mel.commands import COMMANDS
from cntkpy.networks.mel.parse import parse_commands
from cntkpy.networks.mel.script import Mistakes, names_of

NET = """
x = Input(2, tag=feature)
l = Input(2, tag=label)
L1.W = Parameter(2, 2)
L1.t = Times(L1.W, x)
V = Parameter(2, 2)
z = Times(V, L1.t, tag=output)
ce = SquareError(l, z, tag=criterion)
"""
NET = NET.replace("L1.", "L1_")
CONFIG = "command = edit\nedit = [ action = edit ; editPath = edit.mel ; ndlMacros = macros.ndl ; New = new.dnn ]\n"
LOAD = "m = LoadModel(base.dnn)\n"
SAVE = "SaveModel(m, $New$)\n"

GOOD = {
    "LoadModel": LOAD + SAVE,
    "LoadModelWithName": "LoadModelWithName(m, base.dnn)\n" + SAVE,
    "CreateModel": 'm = CreateModel()\nx = Input(2, tag=feature)\nSaveModel(m, "$New$")\n',
    "CreateModelWithName": "CreateModelWithName(m)\nx = Input(2, tag=feature)\n" + SAVE,
    "LoadNDLSnippet": "LoadNDLSnippet(m, net.ndl)\n" + SAVE,
    "SetDefaultModel": LOAD + "n = CreateModel()\nSetDefaultModel(m)\ny = Sigmoid(z)\n" + SAVE,
    "SaveModel": LOAD + "savemodel($New$)\n",
    "SaveDefaultModel": LOAD + "SaveDefaultModel($New$)\n",
    "UnloadModel": LOAD + "n = CreateModel()\nUnloadModel(n)\n" + SAVE,
    "DumpModel": LOAD + "DumpModel(m, $New$, includeData=true)\n",
    "DumpNode": LOAD + "DumpNode(m.L1_*, $New$)\n",
    "CopyNode": LOAD + "CopyNode(m.L1_*, m.L2_*, copy=all)\nSetInput(m.L2_t, 1, m.x)\n" + SAVE,
    "CopySubTree": LOAD + "n = CreateModel()\nCopySubTree(m.z, n, c_)\nSaveModel(n, $New$)\n",
    "CopyNodeInputs": LOAD + "g = Times(V, L1_t)\nCopyNodeInputs(m.z, m.g)\n" + SAVE,
    "SetNodeInput": LOAD + "SetNodeInput(m.z, 0, m.L1_W)\n" + SAVE,
    "SetNodeInputs": LOAD + "SetNodeInputs(m.z, m.L1_W, m.x)\n" + SAVE,
    "SetProperty": LOAD + "SetProperty(m.L1_*, learningRateMultiplier, 0)\n" + SAVE,
    "SetPropertyForSubTree": LOAD + "SetPropertyForSubTree(m.z, needGradient, false)\n" + SAVE,
    "RemoveNode": LOAD + "RemoveNode(m.ce, m.l)\n" + SAVE,
    "Rename": LOAD + "Rename(m.L1_*, m.first_*)\n" + SAVE,
    "ReviseParameter": LOAD + "ReviseParameter(m.V, weights.txt)\n" + SAVE,
    "a model in NDL": "m = [\n x = Input(2, tag=feature)\n y = Sigmoid(x)\n]\n" + SAVE,
    "in-line NDL": LOAD + "width = 2\nU = Parameter(width, width) ; y = Times(U, z)\n" + SAVE,
    "a macro of a model": "m = [\n Copy(q) { y = Sigmoid(q) }\n x = Input(2, tag=feature)\n y = Copy(x)\n]\n"
    "t = Copy(x)\n" + SAVE,
    "a macro": LOAD + "T = Top(z)\n" + SAVE,
    "a comment, a separator": "# first\n" + LOAD.strip() + "; SaveModel(m\n $New$)   # done\n",
    "its own model loaded": LOAD + "Rename(m.z, m.out)\n" + SAVE + "n = LoadModel($New$)\nRename(n.out, n.y)\n"
    "RemoveNode(n.ce)\nSaveModel(n, base.dnn)\nk = LoadModel(base.dnn)\nRename(k.y, k.last)\nRemoveNode(m.out)\n"
    "DumpModel(k, dump.txt)\n",
    "sections": f"edit = a\na = [\n{LOAD}{SAVE}]\n",
}
BAD = {
    "an unknown command": (LOAD + "CopyNod3(m.z, m.y)\n", "CopyNod3"),
    "too few arguments": (LOAD + "SetNodeInput(m.z, 0)\n", "SetNodeInput"),
    "too many arguments": (LOAD + "Rename(m.z, m.y, m.x)\n", "Rename"),
    "an unknown option": (LOAD + "CopyNode(m.z, m.y, copi=all)\n", "copi"),
    "a value of an option": (LOAD + "CopyNode(m.z, m.y, copy=some)\n", "some"),
    "a bracket that is not closed": (LOAD + "SaveModel(m, new.dnn\n", "'('"),
    "a variable that is not defined": (LOAD + "SaveModel(m, $Old$)\n", "$Old$"),
    "a command that makes no model": ("m = SaveModel(base.dnn)\n", "SaveModel"),
    "a model that is made by nearly a command": ("m = LoadModl(base.dnn)\n", "'LoadModl'"),
    "no statement": (LOAD + "just words\n", "just words"),
    "a node that is missing": (LOAD + "RemoveNode(m.q)\n", "q"),
    "a property that is not known": (LOAD + "SetProperty(m.z, colour, red)\n", "colour"),
    "an input that is empty": (LOAD + "CopyNode(m.z, m.y)\n" + SAVE, "y"),
    "a node of a model of its own": (LOAD + SAVE + "n = LoadModel($New$)\nRemoveNode(n.q)\n", "'n.q'"),
    "a node renamed before it was saved": (
        LOAD + "Rename(m.z, m.out)\n" + SAVE + "UnloadModel(m)\nn = LoadModel(./new.dnn)\nRemoveNode(n.z)\n",
        "'n.z'",
    ),
    "a model that was not made": (LOAD + "DumpModel(n, $New$)\n", "'n'"),
}
ONLY_THE_RUN = {"a file that is missing": ("m = LoadModel(none.dnn)\n" + SAVE, "none.dnn")}


@pytest.fixture
def both(cntkpy, tmp_path: Path):
    """Check a script and run it, in a folder with a model."""

    def call(script: str):
        save_model(tmp_path / "base.dnn", parse_ndl(NET).validate())
        files = {"e.cntk": CONFIG, "edit.mel": script, "macros.ndl": "Top(x) { y = Sigmoid(x) }\n", "net.ndl": NET}
        files["weights.txt"] = "1 2\n3 4\n"
        return cntkpy("check", "configFile=e.cntk", files=files), cntkpy("configFile=e.cntk")

    return call


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.sampled
def test_what_runs_has_no_findings(both, tmp_path: Path, name: str) -> None:
    checked, ran = both(GOOD[name])
    assert ran.code == 0, ran.err
    assert (checked.code, checked.out) == (0, "no problems in 1 configuration\n")
    made = tmp_path / "new.dnn"
    assert made.stat().st_size > 0 if name.startswith("Dump") else load_model(made).nodes


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_has_the_same_error(both, name: str) -> None:
    script, message = BAD[name]
    checked, ran = both(script)
    assert (checked.code, ran.code != 0) == (2, True), checked.out + ran.err
    (place,) = re.findall(r"^ *--> (.+)$", ran.err, re.MULTILINE)
    errors = [line for line in checked.out.splitlines() if ": error: " in line]
    assert errors[0].startswith(f"{place}: error: {ran.message}"), checked.out + ran.err
    assert message in ran.message


@pytest.mark.parametrize("name", ONLY_THE_RUN)
def test_what_depends_on_models_is_found_by_the_run(both, name: str) -> None:
    script, message = ONLY_THE_RUN[name]
    checked, ran = both(script)
    assert checked.code == 0, checked.out
    assert ran.code != 0 and message in ran.message


LOST = {
    "nothing is written": (LOAD + "RemoveNode(m.ce)\n", "e.cntk:2:37: warning: the script saves no model"),
    "a change after the file": (LOAD + SAVE + "RemoveNode(m.ce)\n", "edit.mel:3:1: warning: what the script does"),
    "a node after the file": (LOAD + SAVE + "y = Sigmoid(z)\n", "edit.mel:3:1: warning: what the script does"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_is_lost_is_told_before_the_run(both, name: str) -> None:
    script, message = LOST[name]
    checked, ran = both(script)
    assert message in checked.out and ran.code == 0 and f"WARNING: {message}" in ran.err


def test_every_command_has_an_example() -> None:
    assert [kind.name for kind in COMMANDS if kind.name not in GOOD] == []


AFTER = """command = edit:ask
edit = [ action = edit ; editPath = edit.mel ]
ask = [ action = write ; modelPath = new.dnn ; outputPath = out ; outputNodeNames = {node}
    reader = [ readerType = UCIFastReader ; file = d.txt ; x = [ start = 0 ; dim = 2 ] ] ]
"""


@pytest.mark.parametrize("node", ["out", "z"])
def test_commands_after_a_script_know_the_models_that_it_saves(cntkpy, tmp_path: Path, node: str) -> None:
    save_model(tmp_path / "base.dnn", parse_ndl(NET).validate())
    script = LOAD + "Rename(m.z, m.out)\nSaveModel(m, new.dnn)\n"
    files = {"e.cntk": AFTER.format(node=node), "edit.mel": script, "d.txt": "1 2\n"}
    checked, ran = cntkpy("check", "configFile=e.cntk", files=files), cntkpy("configFile=e.cntk")
    assert (checked.code == 2, ran.code != 0) == (node == "z", node == "z"), checked.out + ran.err
    if node == "z":
        assert "the network has no node 'z'" in checked.out
        assert "the network has no node 'z'" in ran.err


def test_an_undefined_variable_in_the_name_of_a_script_is_told_once(cntkpy) -> None:
    config = 'command = edit\nedit = [ action = edit ; editPath = "$Nope$/e.mel" ; other = 1 ]\n'
    got = cntkpy("check", "m.cntk", files={"m.cntk": config})
    assert got.code == 2
    assert [line for line in got.out.splitlines() if "Nope" in line] == [
        "m.cntk:2:38: error: the variable $Nope$ is not defined - define it in the file or on the command line: "
        "Nope=... [CK007]"
    ]


@pytest.mark.parametrize("statement", ["q{}=Nosuch(m.x)", "Remove(m.q{})", "Removed(m.x{})", "Remove(m.x, option{}=1)"])
def test_no_more_than_a_hundred_mistakes_are_looked_for(cntkpy, statement: str) -> None:
    lines = "".join(f"{statement.format(number)}\n" for number in range(150))
    files = {"m.cntk": "command = e\ne = [ action = edit ; editPath = m.mel ]\n"}
    got = cntkpy("check", "m.cntk", files=files | {"m.mel": f"m=CreateModel()\nm.x=InputValue(2)\n{lines}"})
    assert got.code == 2 and "100 errors" in got.out.splitlines()[-1], got


def test_mistakes_are_compared_in_linear_time() -> None:
    """Each with names of its own, none of which follows from another."""

    def calls(count: int) -> int:
        text = "".join(f"Remove(m.n{number})\n" for number in range(count))
        statements, mistakes = parse_commands(Document(text, lambda _: None), lambda _: False), Mistakes()
        profile = cProfile.Profile()
        with profile:
            for statement in statements:
                mistakes.note(statement, UserError("UnknownNode", "none"))
                mistakes.lose(names_of(statement))
        assert len(mistakes.errors) == count
        return pstats.Stats(profile).total_calls  # pyright: ignore[reportAttributeAccessIssue]

    assert calls(200) < 2.2 * calls(100)

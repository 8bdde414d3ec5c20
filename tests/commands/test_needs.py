"""Which extras commands need, and what they say where one is missing."""

import json
import re
from pathlib import Path

import pytest
from without_packages import ROOT, run_without

from cntkpy.cntk_config.base.extras import BUILT_ON, PACKAGES
from cntkpy.cntk_config.entry import find_entry
from cntkpy.commands.catalogue.dispatch import ACTIONS, WITHOUT_JAX
from cntkpy.commands.cli import cntkpy
from cntkpy.commands.needs import SUBCOMMANDS

ALL = [name for names in PACKAGES.values() for name in names]
OPTIONAL = [name for extra, names in PACKAGES.items() if extra not in ("data", "train") for name in names]

IMPORT_ALL = """
import importlib, json, pkgutil
failed, fine = {}, []
package = importlib.import_module("cntkpy")
for name in [one.name for one in pkgutil.walk_packages(package.__path__, "cntkpy.", lambda name: None)]:
    if name.endswith("__main__"):
        continue
    try:
        importlib.import_module(name)
        fine.append(name)
    except ModuleNotFoundError as error:
        failed[name] = (error.name or "").split(".")[0]
print(json.dumps([failed, fine]))
"""
COMMANDS = """
import contextlib, io, json
from cntkpy.cntk_config.entry import find_entry
from cntkpy.commands.catalogue.dispatch import ACTIONS, WITHOUT_JAX
from cntkpy.commands.cli import main
said = []
for words in WORDS:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as ended:
            status = ended.code
    said.append((status, out.getvalue(), err.getvalue()))
print(json.dumps([said, sorted({name.split(".")[0] for name in sys.modules} & {"numpy", "jax", "scipy", "numba"})]))
"""
ACTIONS_CONFIG = """
command = make:smaller:look:draw:labels:words
modelPath = m.dnn
network = [
    features = Input(4)
    W = Parameter(3, 4)
    z = Times(W, features)
    FeatureNodes = (features)
    OutputNodes = (z)
]
make = [ action = edit ; outputModelPath = m.dnn ; NDLNetworkBuilder = [ run = network ] ]
smaller = [ action = SVD ; outputmodelPath = small.dnn ; KeepRatio = 0.5 ; NodeNameRegex = "W" ]
look = [ action = dumpNode ; outputFile = m.txt ]
draw = [ action = plot ; outputDotFile = m.dot ]
labels = [ action = createLabelMap ; section = data ]
data = [ reader = [ readerType = UCIFastReader ; file = d.txt
    features = [ start = 1 ; dim = 1 ]
    labels = [ start = 0 ; dim = 1 ; labelDim = 2 ; labelType = category ; labelMappingFile = map.txt ] ] ]
words = [ action = writeWordAndClass ; inputFile = d.txt ; outputVocabFile = v.txt ; outputWord2Cls = c.txt
    outputCls2Index = i.txt ; vocabSize = 5 ; nbrClass = 1 ; beginSequence = s ; endSequence = s ]
unroll = [ action = testUnroll ; reader = [] ]
"""


def imported_without(packages: list[str]) -> tuple[dict[str, str], list[str]]:
    """The modules that cannot be imported, with the package that each lacks, and the others."""
    done = run_without(packages, IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    failed, fine = json.loads(done.stdout)
    return failed, fine


def said_without(
    packages: list[str], lines: list[list[str]], folder: Path
) -> tuple[list[tuple[int, str, str]], list[str]]:
    """Status, output and errors of command lines, and the heavy packages that they have imported."""
    done = run_without(packages, f"WORDS = {lines!r}\n{COMMANDS}", folder)
    assert done.returncode == 0, done.stderr
    said, heavy = json.loads(done.stdout)
    return [(status, out, err) for status, out, err in said], heavy


def test_every_subcommand_and_action_is_in_the_table() -> None:
    assert set(SUBCOMMANDS) == set(cntkpy.commands)
    assert {one for below in BUILT_ON.values() for one in below} < set(PACKAGES)


def test_modules_of_the_configuration_tool_need_no_extra() -> None:
    failed, fine = imported_without(ALL)
    assert set(failed.values()) <= {"numpy", "numba", "optuna"}
    names = ("grammar", "cntk_config", "commands", "networks.graph", "networks.nodes", "networks.mel")
    tops = tuple(f"cntkpy.{name}" for name in names)
    of_files = re.compile(r"cntkpy\.networks\.nodes\.(?:\w+\.(?:cntk|onnx|source)_|(?:onnx|file|source)_support)")
    lacking = {name for name in failed if name.startswith(tops) and not of_files.match(name)}
    assert lacking == {
        "cntkpy.commands.new.tables.columns",
        "cntkpy.commands.new.tables.plan",
        "cntkpy.commands.new.tables.text",
        "cntkpy.commands.sweeps.analysis",
        "cntkpy.commands.sweeps.journal",
        "cntkpy.commands.sweeps.optuna_study",
        "cntkpy.commands.sweeps.study_values",
        "cntkpy.commands.tools.export_batches",
        "cntkpy.commands.tools.export_check",
        "cntkpy.commands.tools.export_data",
        "cntkpy.commands.tools.export_epochs",
        "cntkpy.commands.tools.export_rule",
        "cntkpy.commands.tools.export_training",
        "cntkpy.commands.tools.preview_picture",
    }
    assert {
        "cntkpy.networks.builders.ndl.build",
        "cntkpy.networks.builders.brainscript.build",
        "cntkpy.networks.files.model_file",
    } < {*fine}


def test_commands_without_any_extra(tmp_path: Path) -> None:
    (tmp_path / "sample_configs").symlink_to(ROOT / "sample_configs")
    sample = "sample_configs/digits.cntk"
    helps = [[name, "--help"] for name in cntkpy.commands]
    working = [
        *(["check", "--strict", f"sample_configs/{one.name}"] for one in (ROOT / "sample_configs").glob("*.cntk")),
        ["show", sample],
        ["show", "--network", sample],
        ["explain", sample, "train/SGD/maxEpochs"],
        ["diff", sample, sample],
        ["list", "actions"],
        ["help", "train"],
        ["--version", "--verbose"],
    ]
    lacking = {
        "train": ["configFile=" + sample, "RunDir=run"],
        "data": ["check", "--data", sample],
        "lsp": ["lsp"],
        "plot": ["plot", "a.log"],
        "onnx": ["export", "a.model", "a.onnx"],
    }
    others = [["preview", sample], ["convert", "a.ctf", "a.npz"], ["export", "a.model", "a.npz"]]
    said, heavy = said_without(ALL, [*helps, *working, *lacking.values(), *others], tmp_path)
    assert heavy == []
    for words, (status, _, err) in zip([*helps, *working], said, strict=False):
        assert (status, err) == (0, ""), words
    refused = said[len(helps) + len(working) :]
    for extra, (status, out, err) in zip([*lacking, "data", "data", "data"], refused, strict=True):
        assert status != 0 and not out
        assert "which is not installed" in err and f"help: add the extra {extra}: " in err
    assert "digits.cntk:27:14" in refused[0][2]
    assert [one.name for one in tmp_path.iterdir()] == ["sample_configs"]


def test_actions_without_jax(tmp_path: Path) -> None:
    (tmp_path / "a.cntk").write_text(ACTIONS_CONFIG)
    (tmp_path / "d.txt").write_text("1 2\n0 3\n")
    sections = re.findall(r"^(\w+) = \[ action = (\w+)", ACTIONS_CONFIG, re.M)
    assert [action for _, action in sections[:-1]] == [
        one.names[0]
        for _, action in sections
        if (one := find_entry(action, ACTIONS)) is not None and WITHOUT_JAX in one.traits
    ]
    assert len(sections) - 1 == sum(WITHOUT_JAX in one.traits for one in ACTIONS)
    lines = [["configFile=a.cntk"], ["configFile=a.cntk", "command=unroll"]]
    (done, refused), heavy = said_without(["jax", "jaxlib"], lines, tmp_path)
    assert done[0] == 0, done[2]
    assert "jax" not in heavy
    assert refused[0] == 2
    assert "action = testUnroll needs jax, which is not installed" in refused[2]
    assert {"m.dnn", "small.dnn", "m.txt", "m.dot", "map.txt", "v.txt"} <= {one.name for one in tmp_path.iterdir()}


def test_names_of_python_say_what_they_need(tmp_path: Path) -> None:
    code = """
import cntkpy
for program in ("cntkpy.create_reader", "cntkpy.training", "cntkpy.testing", "import cntkpy.compat.cntk"):
    try:
        exec(program)
    except ModuleNotFoundError as error:
        print(error)
print(cntkpy.load, cntkpy.run)
"""
    done = run_without(ALL, code, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, third, fourth, _ = done.stdout.splitlines()
    assert first.startswith("cntkpy.create_reader needs numpy, which is not installed; add the extra data: ")
    assert second.startswith("cntkpy.training needs numpy, which is not installed; add the extra train: ")
    assert third.startswith("cntkpy.testing needs numpy, which is not installed; add the extra data: ")
    assert fourth == second


@pytest.mark.thorough
def test_modules_without_jax() -> None:
    failed, _ = imported_without(["jax", "jaxlib"])
    assert {*failed} == {"cntkpy.training", "cntkpy.compat.cntk"}


@pytest.mark.thorough
@pytest.mark.parametrize("extra", [one for one in PACKAGES if one not in ("data", "train")])
def test_modules_without_an_extra(extra: str) -> None:
    failed, _ = imported_without(list(PACKAGES[extra]))
    names = ("analysis", "journal", "optuna_study", "study_values") if extra == "sweep" else ()
    modules = tuple(f"cntkpy.commands.sweeps.{name}" for name in names)
    assert failed == dict.fromkeys(modules, "optuna")

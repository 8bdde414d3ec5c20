"""Actions on networks made of others: `edit` with a builder, `train`, `write`, `test`, `bnstat`; and `check`."""

import re
from pathlib import Path

import cntk_v1_writer as w
import numpy as np
import pytest
import small_classification as actions

from cntkpy.networks.files.model_file import load_model

MORE = """
extend = [ action = edit ; outputModelPath = run/new.dnn
    BrainScriptNetworkBuilder = ({
        old = BS.Network.Load ("run/m")
        p = Softmax (old.z, tag='output')
        r = BS.Network.Edit (old, None, p)
    }.r) ]
fine = [ action = train ; modelPath = run/fine
    BrainScriptNetworkBuilder = {
        old = BS.Network.Load ("run/m")
        f = BS.Network.CloneFunction (old.x, old.z, parameters="constant")
        x = Input {2} ; y = Input {3}
        h = f (x)
        z = LinearLayer {3} (h)
        ce = CrossEntropyWithSoftmax (y, z)
        labelNodes = (y) ; criterionNodes = (ce) ; outputNodes = (z)
    }
    SGD = [ minibatchSize = 10 ; maxEpochs = 2 ; learningRatesPerSample = 0.05 ; momentumPerMB = 0 ] ]
further = [ action = train ; modelPath = run/further ; BrainScriptNetworkBuilder = (BS.Network.Load ("run/m"))
    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 0.05 ; momentumPerMB = 0 ] ]
write = [ action = write ; outputPath = run/o
    BrainScriptNetworkBuilder = { old = BS.Network.Load ("run/m") ; twice = old.z + old.z ; outputNodes = (twice) } ]
test = [ action = test ; BrainScriptNetworkBuilder = (BS.Network.Load ("run/m")) ]
fresh = [ action = write ; outputPath = run/f
    BrainScriptNetworkBuilder = {
        old = BS.Network.Load ("run/m") ; top = LinearLayer {2} (old.z) ; outputNodes = (top) } ]
"""
UNTRAINED = "nothing has trained"
FINAL = re.compile(r"^Final Results: .*err = (\S+) \* 40; ce = (\S+) \* 40", re.MULTILINE)


@pytest.fixture
def run(cntkpy):
    """Run commands of the configuration; `change` replaces texts in it."""

    def run(*words: str, change: tuple[str, str] = ("", "")):
        assert change[0] in MORE
        return cntkpy(*words, files=actions.files(MORE.replace(*change) if change[0] else MORE))

    return run


@pytest.mark.thorough
def test_everything_in_one_run(run, tmp_path: Path) -> None:
    """The models are looked at before the first of them is there; each command finds what the one before has made."""
    got = run("configFile=m.cntk", "command=train:extend:fine:further:write:test")
    assert got.code == 0, got.err
    trained = actions.model(tmp_path / "run/m")
    z = actions.X @ trained["W"].T + trained["b"].T

    extended = load_model(tmp_path / "run/new.dnn")
    assert [node.name for node in extended.groups["output"]] == ["network.p", "z"]
    assert "Saved the network of 10 nodes to 'run/new.dnn'." in got.err

    fine = actions.model(tmp_path / "run/fine")
    np.testing.assert_array_equal(fine["h.W"], trained["W"])  # frozen
    assert not np.array_equal(fine["z.b"], np.zeros((3, 1)))

    further = actions.model(tmp_path / "run/further")
    assert not np.array_equal(further["W"], trained["W"])
    np.testing.assert_allclose(further["W"], trained["W"], atol=0.5)

    assert np.loadtxt(tmp_path / "run/o.twice") == pytest.approx(2 * z, abs=1e-5)
    (final,) = FINAL.findall(got.err)
    assert [float(value) for value in final] == pytest.approx([actions.errors(trained), actions.criterion(trained)])
    assert UNTRAINED not in got.err


def test_parameters_that_nothing_has_trained(run) -> None:
    got = run("configFile=m.cntk", "command=train:fresh")
    assert got.code == 0, got.err
    assert (
        "WARNING: action write of command fresh evaluates parameters that nothing has trained: 'top.W', 'top.b'"
        in got.err
    )


def test_edit_leaves_a_model_alone_that_is_there(run, tmp_path: Path) -> None:
    assert run("configFile=m.cntk", "command=train:extend").code == 0
    before = (tmp_path / "run/new.dnn").read_bytes()
    change = ("p = Softmax (old.z, tag='output')", "p = Tanh (old.z, tag='output')")
    got = run("configFile=m.cntk", "command=extend", change=change)
    assert (got.code, (tmp_path / "run/new.dnn").read_bytes()) == (0, before)
    assert "'run/new.dnn' exists, skipping." in got.err
    got = run("configFile=m.cntk", "command=extend", "extend=[makeMode=false]", change=change)
    assert got.code == 0, got.err
    assert load_model(tmp_path / "run/new.dnn")["network.p"].operation == "Tanh"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["extend=[outputModelPath=run]"], "'run' cannot be written: there is a folder of that name"),
        (["extend=[editPath=x.mel]"], "WARNING: editPath is not read: the BrainScriptNetworkBuilder makes the model."),
    ],
)
def test_edit_with_odd_parameters(run, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "x.mel").write_text("")
    assert run("configFile=m.cntk", "command=train").code == 0
    got = run("configFile=m.cntk", "command=extend", *words)
    assert got.code == (0 if "WARNING" in message else 2)
    assert message in got.err


def test_edit_needs_a_name_for_its_model(run) -> None:
    got = run("configFile=m.cntk", "command=train:extend", change=("outputModelPath = run/new.dnn", ""))
    assert got.code == 2
    assert "outputModelPath is missing" in got.err
    assert "Finished Epoch" not in got.err


def test_edit_needs_a_script_or_a_builder(run) -> None:
    for words in (["check", "m.cntk"], ["configFile=m.cntk"]):
        got = run(*words, "command=train:nothing", "nothing=[action=edit]")
        assert got.code == 2
        assert "editPath is missing" in got.out + got.err
        assert "Finished Epoch" not in got.err


# ------------------------------------------------------------------------------------------------- before the first run


def test_a_model_that_is_missing_is_found_before_anything_runs(run, tmp_path: Path) -> None:
    got = run(
        "configFile=m.cntk",
        "command=train:extend",
        change=('old = BS.Network.Load ("run/m")\n        p', 'old = BS.Network.Load ("m")\n p'),
    )
    assert got.code == 2
    assert "there is no model m" in got.err
    assert "m.cntk:" in got.err
    assert not (tmp_path / "run").exists()


def test_check_tells_a_missing_model_as_a_hint(run) -> None:
    assert "there is no model" not in run("check", "m.cntk", "command=train:extend").out
    found = run("check", "m.cntk", "command=extend")
    assert found.code == 0, found.out
    assert re.search(r"m.cntk:\d+:\d+: hint: there is no model run/m .*\[CK060\]", found.out), found.out


@pytest.mark.parametrize(
    ("change", "message", "code"),
    [
        (("Softmax (old.z", "Softmax (old.zz"), "unknown identifier 'zz': a network has no such member", "CK051"),
        (
            ("Edit (old, None, p)", "Edit (old, (n => if n.name == 'x' then Input {5} else n), p)"),
            "'t' of 'W' [3 x 2]",
            "CK053",
        ),
        (("(old.x, old.z,", "(old.y, old.z,"), "the input node 'y' is not needed for 'z'", "CK052"),
        (('"constant"', '"fixed"'), "parameters= must be 'learnable', 'constant' or 'shared', not 'fixed'", "CK024"),
    ],
)
def test_check_knows_the_networks_of_earlier_commands(run, change: tuple[str, str], message: str, code: str) -> None:
    """The model is not there yet; what the training is going to make is looked at."""
    for words in (["check", "m.cntk"], ["configFile=m.cntk"]):
        got = run(*words, "command=train:extend:fine", change=change)
        assert got.code == 2
        assert message in got.out + got.err
        assert "Finished Epoch" not in got.err
    assert code in run("check", "m.cntk", "command=train:extend:fine", change=change).out


def test_a_script_may_write_any_model(run, tmp_path: Path) -> None:
    """After MEL nothing is said about models that are not there."""
    (tmp_path / "e.mel").write_text("m = LoadModel(run/m)\nSaveModel(m, made.dnn)\n")
    words = ["command=train:mel:extend", "mel=[action=edit;editPath=e.mel]"]
    change = ('"run/m")\n        p', '"made.dnn")\n p')
    assert "there is no model" not in run("check", "m.cntk", *words, change=change).out
    got = run("configFile=m.cntk", *words, change=change)
    assert got.code == 0, got.err
    assert load_model(tmp_path / "run/new.dnn")["z"].operation == "Plus"


# -------------------------------------------------------------------------------------------------------- CNTK's models


@pytest.mark.parametrize(
    "version", [7, pytest.param(14, marks=pytest.mark.thorough), pytest.param(30, marks=pytest.mark.thorough)]
)
def test_a_model_of_cntk(run, tmp_path: Path, version: int) -> None:
    f = w.Writer(version, "double")
    f.parameter("W", [[0.5, -1], [1, 0.25], [-0.75, 0.5]], rate=0.5)
    f.parameter("b", [[0.1], [-0.2], [0.3]], 3, rate=0.0)
    f.input("x", 2)
    f.node("Times", "Times1", w.u64(1) + (w.i32(-1) if version >= 12 else b""), "W x")
    f.node("Plus", "z", inputs="Times1 b")
    f.groups = {"FeatureNodes": ["x"], "OutputNodes": ["z"]}
    (tmp_path / "run").mkdir()
    (tmp_path / "run/m").write_bytes(f.content)
    got = run("configFile=m.cntk", "command=fine:write:extend")
    assert got.code == 0, got.err
    saved = load_model(tmp_path / "run/new.dnn")
    assert [saved[name].learning_rate_multiplier for name in ("W", "b")] == [0.5, 0.0]
    fine = load_model(tmp_path / "run/fine")
    assert [fine[name].learning_rate_multiplier for name in ("h.W", "h.b", "z.W")] == [0.0, 0.0, 1.0]
    np.testing.assert_array_equal(fine["h.W"].matrix(), saved["W"].matrix())
    z = actions.X @ saved["W"].matrix().T + saved["b"].matrix().T
    assert np.loadtxt(tmp_path / "run/o.twice") == pytest.approx(2 * z, abs=1e-5)


# ------------------------------------------------------------------------------------------------ batch normalisation

NORMALISED = """
bn = [ action = train ; modelPath = run/bn
    BrainScriptNetworkBuilder = {
        x = Input {2} ; y = Input {3}
        z = LinearLayer {3} (BatchNormalizationLayer {normalizationTimeConstant=100} (x))
        ce = CrossEntropyWithSoftmax (y, z)
        labelNodes = (y) ; criterionNodes = (ce) ; outputNodes = (z)
    }
    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 0.05 ; momentumPerMB = 0 ] ]
stat = [ action = bnstat ; modelPath = run/other ; minibatchSize = 40 ; itersPerNode = 1
    BrainScriptNetworkBuilder = (BS.Network.Load ("run/bn")) ]
frozen = [ action = train ; modelPath = run/frozen
    BrainScriptNetworkBuilder = {
        old = BS.Network.Load ("run/bn")
        f = BS.Network.CloneFunction (old.x, old.z, parameters="constant")
        x = Input {2} ; y = Input {3}
        z = LinearLayer {3} (f (x))
        ce = CrossEntropyWithSoftmax (y, z)
        labelNodes = (y) ; criterionNodes = (ce) ; outputNodes = (z)
    }
    SGD = [ minibatchSize = 10 ; maxEpochs = 2 ; learningRatesPerSample = 0.05 ; momentumPerMB = 0 ] ]
"""


@pytest.mark.thorough
def test_batch_normalisation(cntkpy, tmp_path: Path) -> None:
    """bnstat takes the network of its builder; a constant clone keeps its statistics through a training."""
    got = cntkpy("configFile=m.cntk", "command=bn:stat:frozen", files=actions.files(NORMALISED))
    assert got.code == 0, got.err
    means = {}
    for name in ("bn", "other.PBN", "frozen"):
        network = load_model(tmp_path / "run" / name)
        (node,) = [node for node in network.nodes.values() if node.operation == "BatchNormalization"]
        means[name] = network.nodes[node.input(3).name].value.ravel()
    np.testing.assert_allclose(means["other.PBN"], actions.X.mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(means["frozen"], means["bn"])
    assert not np.allclose(means["bn"], means["other.PBN"])


# ------------------------------------------------------------------------------------------------------- initialModel

START = """
base = [ action = train ; modelPath = run/base ; NDLNetworkBuilder = [ run = net ]
    net = [
        x = Input(2) ; y = Input(3)
        W = Parameter(3, 2, init=uniform)
        z = Times(W, x)
        ce = CrossEntropyWithSoftmax(y, z)
        FeatureNodes = (x) ; LabelNodes = (y) ; CriterionNodes = (ce) ; OutputNodes = (z)
    ]
    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 0.05 ] ]
normal = [ action = edit ; editPath = normal.mel ]
again = [ action = train ; modelPath = run/again ; initialModel = run/normal
    SGD = [ minibatchSize = 10 ; maxEpochs = 2 ; learningRatesPerSample = 0.05 ; momentumPerMB = 0 ] ]
"""
NORMAL = """m = LoadModel(run/base)
mu = Mean(x)
isd = InvStdDev(x)
n = PerDimMeanVarNormalization(x, mu, isd)
SetNodeInput(z, 1, n)
SaveModel(m, run/normal)
"""


@pytest.fixture
def start(cntkpy):
    """Run commands of a configuration with `initialModel`."""

    def start(*words: str):
        return cntkpy(*words, files={**actions.files(START), "normal.mel": NORMAL})

    return start


def test_training_starts_from_an_edited_model(start, tmp_path: Path) -> None:
    """What is not pre-computed yet is computed first (D18); a second run resumes from the training's own models."""
    got = start("configFile=m.cntk", "command=base:normal:again")
    assert got.code == 0, got.err
    assert "Starting from the model 'run/normal'." in got.err
    assert "Precomputing --> 2 PreCompute nodes found." in got.err
    before, after = load_model(tmp_path / "run/normal"), load_model(tmp_path / "run/again")
    assert not before["mu"].computed
    np.testing.assert_allclose(after["mu"].value, actions.X.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(after["isd"].value, 1 / actions.X.std(axis=0), atol=1e-5)
    first = load_model(tmp_path / "run/again.1")
    assert not np.array_equal(first["W"].value, before["W"].value)
    np.testing.assert_allclose(first["W"].value, before["W"].value, atol=0.7)
    (tmp_path / "run/again").unlink()
    (tmp_path / "run/normal").unlink()
    got = start("configFile=m.cntk", "command=again")
    assert got.code == 0, got.err
    assert "Starting from checkpoint" in got.err
    np.testing.assert_array_equal(load_model(tmp_path / "run/again")["W"].value, after["W"].value)


def test_a_start_from_a_model_of_cntk(start, tmp_path: Path) -> None:
    f = w.Writer(12, "double")
    f.parameter("W", [[0.5, -1], [1, 0.25], [-0.75, 0.5]])
    f.input("x", 2)
    f.input("y", 3)
    f.node("Times", "z", w.u64(1) + w.i32(-1), "W x")
    f.node("CrossEntropyWithSoftmax", "ce", inputs="y z")
    f.groups = {"FeatureNodes": ["x"], "LabelNodes": ["y"], "CriteriaNodes": ["ce"]}
    (tmp_path / "old.dnn").write_bytes(f.content)
    words = ["again=[initialModel=old.dnn;SGD=[minibatchSize=40;maxEpochs=1]]"]
    got = start("configFile=m.cntk", "command=again", *words)
    assert got.code == 0, got.err
    weights = np.array([[0.5, -1], [1, 0.25], [-0.75, 0.5]])
    p = actions.softmax(actions.X @ weights.T) - actions.Y
    expected = weights - float(np.float32(0.05)) * p.T @ actions.X
    np.testing.assert_allclose(load_model(tmp_path / "run/again")["W"].matrix(), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["again=[initialModel=none]"], "there is no model none"),
        (["again=[NDLNetworkBuilder=[run=net]]"], "initialModel and NDLNetworkBuilder both give the network"),
        (["reader=[input=[x=[dim=5]]]"], "the input 'x' has 2 elements, but the stream has 5"),
    ],
)
def test_wrong_starts(start, tmp_path: Path, words: list[str], message: str) -> None:
    assert start("configFile=m.cntk", "command=base:normal").code == 0
    got = start("configFile=m.cntk", "command=again", *words)
    assert got.code == 2
    assert message in got.err
    assert "Finished Epoch" not in got.err
    assert message in start("check", "m.cntk", "command=again", *words).out
    assert not (tmp_path / "run/again").exists()


def test_a_model_that_an_action_needs_is_looked_for_before_the_first_runs(start, tmp_path: Path) -> None:
    got = start("configFile=m.cntk", "command=base:look", "look=[action=test;modelPath=run/bse]")
    assert got.code == 2
    assert "there is no model run/bse" in got.err
    assert not (tmp_path / "run").exists()
    got = start("configFile=m.cntk", "command=base:look", "look=[action=test;modelPath=run/base]")
    assert got.code == 0, got.err

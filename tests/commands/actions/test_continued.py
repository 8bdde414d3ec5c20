"""A run knows what it continues: the settings are kept with the model, and more epochs continue (A2)."""

import json
import shutil
from pathlib import Path

import pytest

from cntkpy.networks.files.model_file import load_model, save_model

CONFIG = """\
command = train
modelPath = run/m
rate = 0.3
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:5:3 ; trainingCriterion = CrossEntropyWithSoftmax
        evalCriterion = ErrorPrediction ]
    SGD = [ maxEpochs = 3 ; minibatchSize = 8 ; learningRatesPerMB = $rate$ ; momentumPerMB = 0.9 ]
    reader = [ readerType = CNTKTextFormatReader ; file = train.ctf
        input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]
]
"""
FILES = {
    "main.cntk": CONFIG,
    "train.ctf": "|features 1 0 |labels 1 0 0\n|features 0 1 |labels 0 1 0\n|features 1 1 |labels 0 0 1\n" * 8,
}


def warnings(log: str) -> list[str]:
    return [line.removeprefix("WARNING: ") for line in log.splitlines() if line.startswith("WARNING")]


def epochs(log: str) -> list[str]:
    return [line.split("; epochTime")[0] for line in log.splitlines() if line.startswith("Finished Epoch")]


@pytest.fixture
def trained(already_trained, tmp_path: Path) -> None:
    already_trained(files=FILES)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


@pytest.mark.thorough
@pytest.mark.usefixtures("trained")
def test_more_epochs_continue_as_if_they_had_been_asked_for_at_once(cntkpy, tmp_path: Path) -> None:
    whole = cntkpy("configFile=main.cntk", "train/SGD/maxEpochs=5", "modelPath=whole/m")
    more = cntkpy("configFile=main.cntk", "train/SGD/maxEpochs=5")
    assert "run/m was trained for 3 epochs; maxEpochs is 5 now: training resumes." in more.err
    assert epochs(more.err) == epochs(whole.err)[3:]
    assert warnings(more.err) == []
    for name in ("m", "m.ckp"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert "No further training is necessary." in cntkpy("configFile=main.cntk", "train/SGD/maxEpochs=5").err


@pytest.mark.thorough
@pytest.mark.usefixtures("trained")
def test_a_killed_continuation(cntkpy, tmp_path: Path) -> None:
    """The final model of the shorter training stays until the next one is there, and hides none that is newer."""
    shutil.copy2(tmp_path / "run/m", tmp_path / "shorter")
    words = ("configFile=main.cntk", "train/SGD/maxEpochs=5", "train/SGD/keepCheckPointFiles=true")
    assert cntkpy(*words).code == 0
    whole = (tmp_path / "run/m").read_bytes()
    (tmp_path / "shorter").replace(tmp_path / "run/m")  # as if it had been killed before the end
    again = cntkpy(*words)
    assert "Starting from checkpoint. Loading network from 'run/m.4'." in again.err
    assert (tmp_path / "run/m").read_bytes() == whole


@pytest.mark.usefixtures("trained")
def test_fewer_epochs(cntkpy) -> None:
    got = cntkpy("configFile=main.cntk+less.cntk", files={"less.cntk": "train = [ SGD = [ maxEpochs = 2 ] ]\n"})
    assert warnings(got.err) == [
        "less.cntk:1:31: warning: maxEpochs is 2 now, but run/m was trained for 3 epochs; it is left as it is [CK045]"
    ]
    assert "No further training is necessary." in got.err


@pytest.mark.usefixtures("trained")
def test_a_change_after_the_last_epoch_is_told(cntkpy) -> None:
    got = cntkpy("configFile=main.cntk+other.cntk", files={"other.cntk": "rate=0.7\n"})
    assert got.code == 0
    assert warnings(got.err) == [
        "main.cntk:8:70: warning: SGD/learningRatesPerMB is 0.7, but run/m was trained with 0.3; "
        "training is finished, so the change has no effect [CK045]",
        "makeMode=false trains again from the first epoch with what the configuration says now.",
    ]


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("rate=0.7", "SGD/learningRatesPerMB is 0.7, but run/m was trained with 0.3"),
        ("train/SGD/maxEpochs=2", "maxEpochs is 2 now, but run/m was trained for 3 epochs"),
        ("train/SGD/momentumPerMB=default", "SGD/momentumPerMB is (not given), but run/m was trained with 0.9"),
        ("train=[SimpleNetworkBuilder=[layerSizes=2:9:3]]", "SimpleNetworkBuilder/layerSizes is 2:9:3, but"),
        ("train/reader/file=other.ctf", "reader/file is other.ctf, but run/m was trained with train.ctf"),
    ],
)
def test_a_finished_model_with_another_recipe_on_the_command_line(cntkpy, tmp_path: Path, word: str, told: str) -> None:
    """Nothing would be trained: the run ends before its first command, and names what can be done (F7)."""
    before = (tmp_path / "run/m").read_bytes()
    first = ("command=first:train", "first=[action=dumpNode;outputFile=nodes]")
    got = cntkpy("configFile=main.cntk", word, *first, files={"other.ctf": FILES["train.ctf"]})
    assert (got.code, told in got.message) == (2, True), got.err
    assert "`cntkpy run --again`, or makeMode=false, trains again; another modelPath" in got.err
    assert not (tmp_path / "nodes").exists()
    assert (tmp_path / "run/m").read_bytes() == before


@pytest.mark.usefixtures("trained")
def test_data_that_have_moved_are_the_same_recipe(cntkpy, tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    (tmp_path / "train.ctf").rename(tmp_path / "moved/train.ctf")
    got = cntkpy("configFile=main.cntk", "train/reader/file=moved/train.ctf")
    assert (got.code, len(warnings(got.err))) == (0, 2), got.err


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize("own", ["", "train = [ makeMode = true ]\n"], ids=["", "the command says otherwise"])
def test_again(cntkpy, own: str) -> None:
    words = ("configFile=main.cntk+own.cntk", "rate=0.7")
    got = cntkpy("run", "--again", *words, files={"own.cntk": own})
    assert (got.code, len(epochs(got.err))) == (0, 3), got.err
    assert "No further training is necessary." in cntkpy(*words).err


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize("epochs", [3, 5], ids=["finished", "more epochs"])
def test_strict_makes_changes_errors_before_the_first_command(cntkpy, epochs: int) -> None:
    words = ("configFile=main.cntk", "strict=true", f"train/SGD/maxEpochs={epochs}")
    got = cntkpy(*words, "rate=0.7", "command=first:train", "first=[action=dumpNode;outputFile=nodes]")
    assert got.code == 2
    assert "EXCEPTION occurred: SGD/learningRatesPerMB is 0.7, but run/m was trained with 0.3" in got.err
    assert "makeMode=false" in got.err
    assert "first command (" not in got.err
    assert not Path("nodes").exists()
    assert cntkpy(*words).code == 0
    assert cntkpy(*words, "rate=0.7", "makeMode=false").code == 0


@pytest.mark.usefixtures("trained")
def test_strict_looks_again_when_a_command_begins(cntkpy) -> None:
    """A model that an earlier command has written was not there before."""
    move = "move=[action=edit;editPath=e.mel]"
    script = {"e.mel": "m = LoadModel(run/m)\nSaveModel(m, other/m)\n"}
    assert cntkpy("configFile=main.cntk", "command=move", move, files=script).code == 0
    got = cntkpy("configFile=main.cntk", "command=train", "modelPath=other/m", "strict=true")
    assert got.code == 0, got.err


@pytest.mark.usefixtures("trained")
def test_changes_between_epochs(cntkpy) -> None:
    words = ("train=[SGD=[maxEpochs=4;gradUpdateType=adagrad]]", "train/SimpleNetworkBuilder/layerSizes=2:9:3")
    got = cntkpy("configFile=main.cntk", *words, "train/reader/randomize=none", "train/reader/file=./train.ctf")
    told = [line.split(": warning: ")[-1] for line in warnings(got.err)]
    assert told[:-1] == [
        "SGD/gradUpdateType is adagrad, but run/m.3 was trained with (none); it applies from epoch 4 on [CK045]",
        "SimpleNetworkBuilder/layerSizes is 2:9:3, but run/m.3 was trained with 2:5:3; "
        "the network of the model is used [CK045]",
        "reader/file is ./train.ctf, but run/m.3 was trained with train.ctf; it applies from epoch 4 on [CK045]",
        "reader/randomize is none, but run/m.3 was trained with (true); it applies from epoch 4 on [CK045]",
    ]


@pytest.mark.usefixtures("trained")
def test_the_same_in_other_words_is_no_change(cntkpy) -> None:
    for word in (
        "rate=.30",
        "train/SGD/learningRatesPerMB=0.3:0.3",
        "train/SGD/momentumPerMB=0.9*9",
        "train/SGD/traceLevel=1",
        "train/SGD/gradUpdateType=none",
        "train/reader/input/features/format=dense",
    ):
        assert warnings(cntkpy("configFile=main.cntk", word).err) == [], word


def test_the_description_of_a_network(cntkpy) -> None:
    ndl = "NDLNetworkBuilder = [ networkDescription = net.ndl ]"
    text = CONFIG.replace(CONFIG[CONFIG.index("    Simple") : CONFIG.index("    SGD")], f"    {ndl}\n")
    net = (
        "features = Input(2, tag=feature)\nlabels = Input(3, tag=label)\nW = Parameter(3, 2)\nz = Times(W, features)\n"
        "ce = CrossEntropyWithSoftmax(labels, z, tag=criterion)\n"
    )
    files = {"main.cntk": text, "train.ctf": FILES["train.ctf"]}
    assert cntkpy("configFile=main.cntk", files=files | {"net.ndl": net}).code == 0
    assert warnings(cntkpy("configFile=main.cntk", files={"net.ndl": "# the same\n" + net}).err) == []
    changed = cntkpy("configFile=main.cntk", files={"net.ndl": net + "y = Softmax(z)\n"})
    assert "run/m was trained with another network: NDLNetworkBuilder has changed since" in changed.err


@pytest.mark.usefixtures("trained")
def test_a_model_without_record_is_taken_as_it_is(cntkpy, tmp_path: Path) -> None:
    """Those of version 0.1."""
    save_model(tmp_path / "run/m", load_model(tmp_path / "run/m"))
    got = cntkpy("configFile=main.cntk", "train/SGD/maxEpochs=5", "rate=0.7")
    assert "No further training is necessary." in got.err
    assert warnings(got.err) == []


def test_no_epoch(cntkpy, tmp_path: Path) -> None:
    """The untrained network is saved, and the log says so (A18)."""
    got = cntkpy("configFile=main.cntk", "train/SGD/maxEpochs=0", files=FILES)
    assert got.code == 0
    assert (tmp_path / "run/m").exists()
    assert "maxEpochs = 0: nothing is trained; the network as it was made is saved in run/m" in got.err


def test_what_is_kept(cntkpy, tmp_path: Path) -> None:
    cntkpy("configFile=main.cntk", files=FILES)
    data = (tmp_path / "run/m").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    kept = json.loads(header["__metadata__"]["training"])
    assert kept["epochs"] == 3
    assert kept["settings"]["SGD/learningRatesPerMB"] == "0.3"
    assert kept["settings"]["reader/input/labels/dim"] == "3"


def test_the_model_that_is_written_is_named(cntkpy) -> None:
    """Whatever the traceLevel (C8)."""
    got = cntkpy("configFile=main.cntk", "traceLevel=0", files=FILES)
    assert got.err.count("the model is saved in 'run/m'.") == 1


def test_an_untrained_network_is_warned_of_once(cntkpy) -> None:
    builder = CONFIG[CONFIG.index("    Simple") : CONFIG.index("    SGD")]
    text = CONFIG.replace(builder, "").replace("train = [\n", builder + "test = [ action = test ]\ntrain = [\n")
    reader = CONFIG[CONFIG.index("    reader") : CONFIG.rindex("]")]
    files = FILES | {"main.cntk": text.replace(reader, "") + reader}
    got = cntkpy("configFile=main.cntk", "command=train:test", files=files)
    assert got.code == 0, got.err
    assert got.err.count("a new") == 1


RESET = "Warning: The checkpoint is of another update rule or another network. Parameter-learning state"


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize("rule", ["adagrad", pytest.param("fsAdagrad", marks=pytest.mark.thorough)])
def test_another_update_rule_starts_with_a_fresh_state(rule: str, cntkpy) -> None:
    got = cntkpy("configFile=main.cntk", "train/SGD/maxEpochs=4", f"train/SGD/gradUpdateType={rule}")
    assert got.code == 0, got.err
    assert f"{RESET} (such as momentum) will be reset for B0, B1, W0, ..." in got.err
    assert epochs(got.err)[-1].startswith("Finished Epoch[ 4 of 4]")


@pytest.mark.usefixtures("trained")
def test_a_parameter_that_was_edited_to_another_shape_has_a_fresh_state(cntkpy, tmp_path: Path) -> None:
    network = load_model(tmp_path / "run/m")
    for name, rows in (("W1", (3, 5)), ("W0", (5, 2))):
        assert network[name].shape == rows
    network["W0"].value, network["B0"].value = network["W0"].value[:, :4], network["B0"].value[:, :4]
    network["W0"].shape, network["B0"].shape = (4, 2), (4, 1)
    network["W1"].value, network["W1"].shape = network["W1"].value[:4], (3, 4)
    for node in network.nodes.values():
        if not node.is_parameter and node.inputs:
            node.shape = None
    save_model(tmp_path / "other.2", network.validate())
    shutil.copy(tmp_path / "run/m.ckp", tmp_path / "other.2.ckp")
    got = cntkpy("configFile=main.cntk", "modelPath=other")
    assert got.code == 0, got.err
    assert f"{RESET} (such as momentum) will be reset for B0, W0, W1." in got.err


UCI = CONFIG.replace("CNTKTextFormatReader", "UCIFastReader").replace(
    "input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ] ]",
    "features = [ dim = 2 ; start = 1 ] ; labels = [ start = 0 ; dim = 1 ; labelDim = 3 ; labelMappingFile = map ] ]",
)


def test_one_override_is_one_error(cntkpy) -> None:
    """S12: the sections inside of the reader take its file, too."""
    uci = {"uci.cntk": UCI, "train.ctf": "0 1 0\n1 0 1\n2 1 1\n" * 8, "other": "0 1 0\n", "map": "0\n1\n2\n"}
    assert cntkpy("configFile=uci.cntk", files=uci).code == 0
    got = cntkpy("configFile=uci.cntk", "train=[reader=[file=other]]")
    assert got.code == 2
    assert got.err.count("run/m was trained with train.ctf") == 1 and "errors in all" not in got.err

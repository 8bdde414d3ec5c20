"""What readers deliver beside the inputs of networks that stand elsewhere, and the nodes that commands name."""

import re

import pytest

CONFIG = """\
command = train:more:test:write:dump
modelPath = m
input = [ features = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ]
reader = [ readerType = CNTKTextFormatReader ; file = a.ctf ; input = $input$ ]
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:6:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [ maxEpochs = 2 ; minibatchSize = 20 ; learningRatesPerMB = 0.2 ]
    cvReader = [ readerType = CNTKTextFormatReader ; file = a.ctf ; input = $input$ ]
]
more = [
    action = adapt ; origModelFileName = m ; modelPath = m2
    SGD = [ maxEpochs = 1 ; minibatchSize = 20 ; learningRatesPerMB = 0.2 ]
]
test = [ action = test ; modelPath = m2
    reader = [ readerType = CNTKTextFormatReader ; file = a.ctf ; input = $input$ ]
]
write = [ action = write ; outputNodeNames = HLast ; outputPath = o
    reader = [ readerType = CNTKTextFormatReader ; file = a.ctf
        input = [ features = [ dim = 2 ; format = dense ] ]
    ]
]
dump = [ action = dumpNode ; nodeName = W0 ]
"""
WIDER = "[ features = [ dim = 4 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ]"
OTHER = "[ feature = [ dim = 2 ; format = dense ] ; labels = [ dim = 3 ; format = dense ] ]"


def check(cntkpy, text: str):
    return cntkpy("check", "c.cntk", files={"c.cntk": text, "a.ctf": "|features 1 2 |labels 0 0 1\n"})


def changed(command: str, old: str, new: str) -> str:
    """The configuration with a word changed after the beginning of a command."""
    before, sign, behind = CONFIG.partition(f"\n{command} = [")
    assert old in behind
    return before + sign + behind.replace(old, new, 1)


def test_nothing_is_wrong(cntkpy) -> None:
    assert check(cntkpy, CONFIG).out == "no problems in 1 configuration\n"


@pytest.mark.parametrize(("command", "owner"), [("train", "the network"), ("test", "the model m2")])
def test_streams_of_other_readers(command: str, owner: str, cntkpy) -> None:
    """Of cvReader besides the network, and of a test beside a model that was adapted from that of the training."""
    got = check(cntkpy, changed(command, "$input$", WIDER))
    assert got.code == 2
    message = (
        rf"c.cntk:\d+:\d+: error: the stream 'features' has 4 elements, but the input 'features' of {owner} "
        r"has 2 - write 2, or train with 4 \[CK\d+\]"
    )
    assert re.search(message, got.out), got.out
    got = check(cntkpy, changed(command, "$input$", OTHER))
    message = (
        rf"c.cntk:\d+:\d+: error: the reader has no stream for the input 'features' of {owner} "
        r"- write features in place of feature"
    )
    assert (got.code, len(re.findall(message, got.out))) == (2, 1), got.out


def test_what_is_written_needs_no_labels(cntkpy) -> None:
    got = check(cntkpy, changed("write", "dim = 2", "dim = 3"))
    assert "the input 'features' of the model m has 2" in got.out


@pytest.mark.parametrize(("command", "node", "near"), [("dump", "W00", "W0"), ("more", "HLst", "HLast")])
def test_names_of_single_nodes(command: str, node: str, near: str, cntkpy) -> None:
    got = check(cntkpy, changed(command, near, node))
    assert got.code == 2
    assert re.search(rf"c.cntk:\d+:\d+: error: .*{node}.*did you mean '{near}'", got.out), got.out


SCRIPT = """\
command = train
train = [
    action = train ; modelPath = m
    BrainScriptNetworkBuilder = {
        x = Input {2}
        y = Input {3}
        outs = 5
        z = LinearLayer {3} (x)
        ce = SquareError (y, z) ; e = SquareError (y, z)
        criterionNodes = (ce)
        GROUP = (e)
    }
    SGD = [ minibatchSize = 10 ; maxEpochs = 1 ; learningRatesPerSample = 0.1 ]
    reader = [ readerType = CNTKTextFormatReader ; file = a.ctf
        input = [ x = [ dim = 2 ; format = dense ] ; y = [ dim = 3 ; format = dense ] ]
    ]
]
"""


def test_a_misspelt_group_of_nodes(cntkpy) -> None:
    """Which CNTK takes for a member of the network that nothing uses: the nodes are not evaluated."""
    assert "no group" not in check(cntkpy, SCRIPT.replace("GROUP", "evaluationNodes")).out
    got = check(cntkpy, SCRIPT.replace("GROUP", "evaluationNode"))
    message = "warning: 'evaluationNode' is not a group of nodes, and nothing uses it - did you mean 'evaluationNodes'?"
    assert f"c.cntk:11:9: {message}" in got.out
    got = check(cntkpy, SCRIPT.replace("GROUP", "EvalNodes"))  # as the network description language has it
    assert (
        "warning: 'EvalNodes' is not a group of nodes, and nothing uses it - did you mean 'evaluationNodes'?" in got.out
    )
    assert "no group" not in check(cntkpy, SCRIPT.replace("GROUP", "evaluated")).out


def test_a_file_as_the_network_description_language_names_it(cntkpy) -> None:
    got = check(cntkpy, SCRIPT.replace("GROUP = (e)", 'networkDescription = "net.ndl"'))
    message = "warning: 'networkDescription' is a parameter of NDLNetworkBuilder, here it is a member that nothing uses"
    assert f'c.cntk:11:9: {message} - a file in BrainScript is included: include "file.bs"' in got.out


def test_the_files_that_a_writer_is_given(cntkpy) -> None:
    text = changed("write", "outputPath = o", "writer = [ writerType = HTKMLFWriter ; HLast = [ scpFile = o.scp ] ]")
    got = check(cntkpy, text)
    assert "o.scp': no such file" in got.out


def test_caches_of_old_sentence_readers(cntkpy) -> None:
    """Which CNTK's examples have in the sections of features and labels as well."""
    text = SCRIPT.replace(
        "readerType = CNTKTextFormatReader", "readerType = LMSequenceReader ; wfile = c.bin ; wsize = 9"
    )
    got = check(cntkpy, text)
    assert "reader: 'wfile' has no effect - this reader keeps no cache" in got.out


BESIDE = """\
command = write
write = [ action = write ; outputNodeNames = z ; outputPath = o
    NETWORK
    reader = [ readerType = CNTKTextFormatReader ; file = a.ctf ; input = [ x = [ dim = 2 ; format = dense ] ] ]
]
net = [
    x = Input (2, tag=feature) ; y = Input (3, tag=label) ; W = Parameter (3, 2)
    z = Times (W, x) ; ce = SquareError (y, z, tag=eval)
]
"""


@pytest.mark.parametrize(
    "network",
    [
        "BrainScriptNetworkBuilder = { x = Input {2} ; y = Input {3} ; z = LinearLayer {3} (x) ; ce = z - y }",
        "NDLNetworkBuilder = [ run = net ]",
    ],
)
def test_a_network_beside_the_action_needs_what_is_computed(network: str, cntkpy) -> None:
    text = BESIDE.replace("NETWORK", network)
    assert "no stream" not in check(cntkpy, text).out
    assert "no stream for the input 'y'" in check(cntkpy, text.replace("Names = z", "Names = ce")).out


@pytest.mark.parametrize(
    ("dim", "window", "advice"),
    [
        ("143", "5", "write dim=13 and contextWindow=5:5, or 11"),
        ("13", "5", "write dim=13 and contextWindow=5:5, or 11"),
        ("13", "2:2", ""),
        ("12", "5", "write dim=13"),
        ("13", "7", ""),
    ],
)
def test_a_window_that_counts_frames_on_each_side(cntkpy, dim: str, window: str, advice: str) -> None:
    """S5: 143 elements are 11 frames of 13 values."""
    text = f"""command = t
modelPath = m
t = [ action = train ; SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]
 SimpleNetworkBuilder = [layerSizes=143:2;trainingCriterion=CrossEntropyWithSoftmax;evalCriterion=ErrorPrediction]
 reader = [ readerType = HTKMLFReader ; features = [scpFile=f.scp;dim={dim};contextWindow={window}]
  labels = [mlfFile=l.mlf;labelMappingFile=st;labelDim=2] ] ]
"""
    out = cntkpy("check", "--select", "CK056", "main.cntk", files={"main.cntk": text}).out
    assert "the first layer has 143 elements, but the stream 'features' has" in out
    assert ("contextWindow=" in out) == bool(advice) and advice in out, out


@pytest.mark.parametrize(("given", "reported"), [("labelDim=2", ""), ("labelDim=3", ""), ("", ""), ("labelDim=4", "4")])
def test_label_dim_of_lines_is_raised_to_the_mapping_file(cntkpy, given: str, reported: str) -> None:
    """The vector of a label has an element for every line of the mapping file (readers-legacy.md, 1.2)."""
    text = f"""command = t
modelPath = m
t = [ action = train ; SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]
 SimpleNetworkBuilder = [layerSizes=1:3;trainingCriterion=CrossEntropyWithSoftmax;evalCriterion=ErrorPrediction]
 reader = [ readerType = UCIFastReader ; file = d.txt ; features = [dim=1;start=1]
  labels = [{given} ; labelType=Category ; labelMappingFile=m.map] ] ]
"""
    files = {"main.cntk": text, "d.txt": "a 1\nb 2\nc 3\n", "m.map": "a\nb\nc\n"}
    out = cntkpy("check", "--data", "--select", "CK056", "main.cntk", files=files).out
    assert ("the stream 'labels' has" in out) == bool(reported), out
    assert not reported or f"'labels' has {reported}" in out, out

"""HTKMLFWriter: files by list and by name, scaled log likelihoods, errors; trained and written with a configuration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.parameters import parse
from cntkpy.readers.formats.htk.archive import read_features
from cntkpy.readers.formats.htk.writer import HTKWriter, create_htk_writer

from .htk_data import Speech

VALUES = np.arange(6, dtype=np.float32).reshape(3, 2)


def writer(folder: Path, text: str, names: str = "a\nb\n") -> HTKWriter:
    (folder / "list").write_text("".join(f"{folder}/{name}\n" for name in names.split()))
    return create_htk_writer(parse(text.replace("LIST", f"{folder}/list")), "float")


def test_line_n_of_the_list_is_the_file_of_utterance_n(tmp_path: Path):
    ours = writer(tmp_path, "outputNodeNames=z;z=[dim=2;file=LIST]", "d/a b")
    assert ours.save({"z": VALUES}) and not ours.save({"z": VALUES + 1})
    assert (tmp_path / "d/a").read_bytes()[:12] == bytes.fromhex("00000003 000186a0 0008 0009")
    assert np.array_equal(read_features(str(tmp_path / "d/a")), VALUES)
    assert np.array_equal(read_features(str(tmp_path / "b")), VALUES + 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "d", "list"]


def test_files_named_after_utterances(tmp_path: Path):
    (tmp_path / "u.scp").write_text("x/u1.mfc=f.ark[0,2]\nu2=f.ark[3,4]\n")
    text = f'z=[dim=2;scpFile="{tmp_path}/u.scp";path="{tmp_path}/out";ext=like]'
    ours = create_htk_writer(parse(text), "float")
    ours.save({"z": VALUES})
    ours.save({"z": VALUES[:2]})
    assert np.array_equal(read_features(f"{tmp_path}/out/x/u1.like"), VALUES)
    assert len(read_features(f"{tmp_path}/out/u2.like")) == 2


def test_scaled_log_likelihoods(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    ours = writer(tmp_path, "s=[dim=2;file=LIST;type=ScaledLogLikelihood;nodeName=z]")
    assert ours.needs_priors == ["z"]
    ours.set_prior("z", np.array([[0.25], [0.75]]))
    ours.save({"z": VALUES})
    assert np.allclose(read_features(str(tmp_path / "a")), VALUES - np.log([0.25, 0.75]))
    ours.set_prior("z", np.array([0.0, 1.0]))
    ours.save({"z": VALUES})
    assert "3 of the values" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("outputNodeNames=z", "no section for the node 'z'"),
        ("verbosity=1", "no node to write"),
        ("z=[dim=2]", "list of files to write is missing"),
        ("z=[dim=0;file=LIST]", "0 values cannot be written"),
        ("z=[dim=20000;file=LIST]", "20000 values cannot be written"),
        ("z=[dim=2;file=LIST;type=Category]", "'Category' is not one of Real, scaledLogLikelihood"),
        ("z=[dim=2;file=nowhere]", "nowhere"),
        ("z=[file=LIST]", "dim"),
    ],
)
def test_bad_sections(tmp_path: Path, text: str, message: str):
    with pytest.raises(UserError) as caught:
        writer(tmp_path, text)
    assert message in caught.value.diagnostic.render()


def test_bad_lists_and_values(tmp_path: Path):
    with pytest.raises(UserError, match=r"names the file .* twice"):
        writer(tmp_path, "z=[dim=2;file=LIST]", "a b a")
    ours = writer(tmp_path, "z=[dim=2;file=LIST]", "a")
    with pytest.raises(UserError, match=r"dim: is 2, but the node .z. has 3 values per frame"):
        ours.save({"z": np.zeros((2, 3), np.float32)})
    with pytest.raises(UserError, match="no values of the node 'z'"):
        ours.save({"q": VALUES})
    ours.save({"z": VALUES})
    with pytest.raises(UserError, match="lists 1 files to write"):
        ours.save({"z": VALUES})
    ours = writer(tmp_path, "z=[dim=2;file=LIST;type=scaledLogLikelihood]")
    with pytest.raises(UserError, match="prior has 3 classes"):
        ours.set_prior("z", np.ones(3))


CONFIG = """
command = train:write
modelPath = "m"
train = [ action = train
    SGD = [ maxEpochs = 1 ; minibatchSize = 8 ; learningRatesPerSample = 0.01 ]
    reader = [ readerType = HTKMLFReader ; x = [ {x} ] ; y = [ {y} ] ]
    NDLNetworkBuilder = [ run = n ]
    n = [
        x = Input(3)
        y = Input(4)
        W = Parameter(4, 3)
        z = Times(W, x)
        ce = CrossEntropyWithSoftmax(y, z, tag = criterion)
        prior = {prior}
        logPosterior = LogSoftmax(z)
        logPrior = Log(prior)
        scaled = Minus(logPosterior, logPrior)
        FeatureNodes = (x)
        LabelNodes = (y)
        OutputNodes = (logPosterior, scaled)
    ]
]
write = [ action = write
    outputNodeNames = logPosterior:scaled
    reader = [ readerType = HTKMLFReader ; x = [ {x} ] ]
    writer = [ writerType = HTKMLFWriter
        logPosterior = [ dim = 4 ; scpFile = "f.scp" ; path = "like" ; ext = "like" ; type = scaledLogLikelihood ]
        scaled = [ dim = 4 ; scpFile = "f.scp" ; path = "real" ]
    ]
]
"""


@pytest.mark.thorough
def test_trained_and_written(cntkpy, tmp_path: Path):
    """The writer's scaling by the model's prior is that of a node of the network."""
    speech = Speech(tmp_path)
    config = CONFIG.format(x=speech.features(), y=speech.targets(), prior="Mean(y)")
    got = cntkpy("configFile=c.cntk", files={"c.cntk": config})
    assert got.code == 0 and "Total Samples Evaluated = 54" in got.err
    for u, n in enumerate(speech.lengths):
        scaled = read_features(f"{tmp_path}/like/g/u{u}.like")
        assert scaled.shape == (n, 4)
        assert np.allclose(scaled, read_features(f"{tmp_path}/real/g/u{u}.mfc"), atol=1e-5)
        posterior = np.exp(scaled) * np.bincount(np.concatenate(speech.labels), minlength=4) / sum(speech.lengths)
        assert np.allclose(posterior.sum(axis=1), 1, atol=1e-4)


def test_without_a_prior(cntkpy, tmp_path: Path):
    speech = Speech(tmp_path)
    config = CONFIG.format(x=speech.features(), y=speech.targets(), prior="Constant(0.25, rows = 4)")
    got = cntkpy("configFile=c.cntk", files={"c.cntk": config})
    assert got.code != 0 and "needs the frequencies of the classes" in got.err


KEYED = (
    CONFIG.partition("write = [")[0]
    + """
write = [ action = write
    outputNodeNames = logPosterior:scaled
    reader = [ readerType = HTKMLFReader ; input = [ x = [ {x} ] ] READER ]
    WRITER
]
"""
)
SECTIONS = """
    first  = [ nodeName = logPosterior ; dim = 4 ; path = "like" ; ext = "like" ; type = scaledLogLikelihood ]
    second = [ nodeName = logPosterior ; dim = 4 ; path = "real" ]
    scaled = [ dim = 4 ; path = "scaled" ]
"""


@pytest.mark.parametrize(
    ("reader", "writer"),
    [("", f"writer = [ writerType = HTKMLFWriter ; write = [ {SECTIONS} ] ]"), (f"; write = [ {SECTIONS} ]", "")],
)
def test_files_called_as_the_utterances_of_the_reader(cntkpy, tmp_path: Path, reader: str, writer: str):
    """`write` of the manual, in the section of the writer or of the reader; two streams of one node."""
    speech = Speech(tmp_path)
    config = KEYED.replace("READER", reader).replace("WRITER", writer).replace("{SECTIONS}", SECTIONS)
    config = config.format(x=speech.features(), y=speech.targets(), prior="Mean(y)")
    checked = cntkpy("check", "c.cntk", files={"c.cntk": config})
    assert checked.code == 0 and "warning" not in checked.out, checked.out
    got = cntkpy("configFile=c.cntk")
    assert got.code == 0 and "Total Samples Evaluated = 54" in got.err
    prior = np.bincount(np.concatenate(speech.labels), minlength=4) / sum(speech.lengths)
    for u, n in enumerate(speech.lengths):
        real = read_features(f"{tmp_path}/real/g/u{u}.mfc")
        assert real.shape == (n, 4)
        assert np.allclose(real - np.log(prior), read_features(f"{tmp_path}/like/g/u{u}.like"), atol=1e-5)
        assert np.allclose(real - np.log(prior), read_features(f"{tmp_path}/scaled/g/u{u}.mfc"), atol=1e-5)


def test_names_of_utterances(tmp_path: Path):
    ours = create_htk_writer(parse(f'z=[dim=2;path="{tmp_path}"]'), "float")
    assert ours.takes_keys
    with pytest.raises(UserError, match="called as utterances, which have no names here"):
        ours.save({"z": VALUES})
    ours.set_key("a/b.c")
    assert ours.save({"z": VALUES}) and (tmp_path / "a/b.mfc").exists()
    with pytest.raises(UserError, match=r"would be written to .*b\.mfc, which was written before"):
        ours.save({"z": VALUES})
    one = f'dim=2;path="{tmp_path}"'
    ours = create_htk_writer(parse(f"z=[{one}];q=[{one}]"), "float")
    ours.set_key("u")
    with pytest.raises(UserError, match=r"the node 'z' would be written to .*u\.mfc"):
        ours.save({"z": VALUES, "q": VALUES})


def test_what_is_read_is_not_written_over(cntkpy, tmp_path: Path):
    """A list of outputs that names the features: they stay as they are."""
    speech = Speech(tmp_path)
    before = (tmp_path / "f.ark").read_bytes()
    nodes = "logPosterior=[ dim=4 ; path=real ] ; scaled=[ dim=4 ; scpFile=outputs ]"
    config = KEYED.replace("READER", "").replace("WRITER", f"writer=[ writerType=HTKMLFWriter ; {nodes} ]")
    config = config.format(x=speech.features(), y=speech.targets(), prior="Mean(y)")
    names = "".join(f"./g/../{name}\n" for name in ("a", "f.ark", "b", "c", "d", "e", "g", "h"))
    (tmp_path / "g").mkdir()
    got = cntkpy("configFile=c.cntk", files={"c.cntk": config, "outputs": names})
    assert got.code == 2
    assert "scaled:scpFile: ./g/../f.ark would be written over, which the reader reads" in got.message
    assert (tmp_path / "f.ark").read_bytes() == before
    assert (tmp_path / "a").exists()


def test_a_node_that_is_not_named_is_a_hint(cntkpy, tmp_path: Path):
    """Its section has no effect; nor has `write` in a reader beside a writer."""
    speech = Speech(tmp_path)
    config = CONFIG.format(x=speech.features(), y=speech.targets(), prior="Mean(y)").replace(
        "outputNodeNames = logPosterior:scaled", "outputNodeNames = scaled"
    )
    got = cntkpy("check", "c.cntk", files={"c.cntk": config})
    assert "outputNodeNames does not name 'logPosterior', so that it is not written" in got.out
    reader = f"readerType = HTKMLFReader ; x = [ {speech.features()} ]"
    config = config.replace(f"{reader} ]", f"{reader} ; write = [ scaled = [ dim = 4 ; path = o ] ] ]")
    got = cntkpy("check", "d.cntk", files={"d.cntk": config})
    assert "writer says where values go" in got.out

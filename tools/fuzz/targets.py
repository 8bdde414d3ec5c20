"""What is tried: for each target the seeds, and the command of cntkpy that reads the mutated file.

A seed is a file of `sample_configs`, of `tools/fuzz/seeds`, or is made by `cntkpy convert` and by short runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.fuzz import calls
from tools.fuzz.console import run_words

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_configs"
OUTPUT = "out.npz"


@dataclass(frozen=True)
class Target:
    """One kind of file.

    Attributes:
        name: what `--target` says.
        file: the name of the mutated file in the folder of a case.
        seeds: gives the inputs to start from; called in an empty folder, once per run.
        words: the command lines of cntkpy that read the file.
        files: other files of the folder, by name: text, or a function that makes them in the folder.
        text: whether words are mutated as well as bytes.
        call: a function that reads the file, where no quick command does.
    """

    name: str
    file: str
    seeds: Callable[[], Sequence[bytes]]
    words: Sequence[Sequence[str]]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    text: bool = False
    call: Callable[[str], object] | None = None


def _files(*patterns: str) -> Callable[[], Sequence[bytes]]:
    def read() -> list[bytes]:
        paths = sorted(path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file())
        if not paths:
            raise FileNotFoundError(patterns)
        return [path.read_bytes() for path in paths]

    return read


def _texts(*texts: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [text.encode() for text in texts]


def _made(make: Callable[[], bytes]) -> Callable[[], Sequence[bytes]]:
    return lambda: [make()]


def _command(result: str, *words: str, **files: str) -> Callable[[], Sequence[bytes]]:
    """Seeds that a command of cntkpy writes into the current folder."""

    def make() -> list[bytes]:
        for name, text in files.items():
            Path(name.replace("_", ".")).write_text(text, encoding="utf-8")
        status, printed = run_words(words)
        if status:
            raise RuntimeError(f"{' '.join(words)}: status {status}\n{printed}")
        return [Path(result).read_bytes()]

    return make


CTF = "0\t|x 1 2.5 -3e-2\t|s 0:1 4:2\n0\t|x 4 5 6\t|s 1:1\n0\t|# a comment |x 9 9 9\n1\t|x 7 8 9\t|s\n2 |s 3:1.5 |x 1 1 1\n"
UCI = "0 1.5 2 3\n1 -4 5e1 6\n2 7 8 9\n0 1 2 3\n"
SENTENCES = "the cat sat\na dog ran home\nthe dog sat\n"
WORDS = "the\ncat\nsat\na\ndog\nran\nhome\n</s>\n<s>\n"

CTF_READER = 'reader = [ readerType=CNTKTextFormatReader ; file="a.ctf" ; {more} ; input = [ x=[dim=3;format=dense] ; s=[dim=6;format=sparse] ] ]\n'
NETWORK = """command = main
main = [ action = {action} ; modelPath = m.dnn ; {builder}
    SGD = [ maxEpochs=1 ; minibatchSize=2 ; learningRatesPerMB=0.1 ]
    reader = [ readerType=CNTKTextFormatReader ; file=a.ctf ; input=[ x=[dim=3;format=dense] ; y=[dim=2;format=dense] ] ] ]
"""
NDL = """load = ndlMacros
run = N
ndlMacros = [ Layer(i, o, x) = [ W = Parameter(o, i, init=uniform, initValueScale=0.5) ; b = Parameter(o, 1) ; z = Plus(Times(W, x), b) ] ]
N = [
    x = Input(3, tag=feature)   # features
    y = Input(2, tag=label)
    L = Layer(3, 4, x)
    h = Sigmoid(L.z)
    M = Layer(4, 2, h)
    z = Negate(M.z)
    ce = CrossEntropyWithSoftmax(y, z, tag=criterion)
    err = ErrorPrediction(y, z, tag=eval)
    OutputNodes = (z)
]
"""
BRAINSCRIPT = """Layer (x, m, n) = { W = ParameterTensor {(m:n), init='uniform'} ; b = Parameter (m, 1) ; z = W * x + b }.z
x = Input {3} ; y = Input {2}
h = Sigmoid (Layer (x, 4, 3))
zs[i:0..1] = if i == 0 then Layer (h, 2, 4) else zs[0] .* 2
z = zs[1]
model = Sequential (DenseLayer {4, activation=ReLU} : LinearLayer {2})
ce = CrossEntropyWithSoftmax (y, z, tag='criterion') ; err = ErrorPrediction (y, model (x), tag='evaluation')
featureNodes = (x) ; labelNodes = (y) ; outputNodes = (z)
"""
EDITING = """old = BS.Network.Load ("in.dnn")
swap (n) = if n.operation == 'Sigmoid' then ReLU (n.inputs[0]) else n
net = BS.Network.Edit (old, (swap : BS.Network.Editing.ReplaceLinksToNamedNode ('z', old.h)), None)
f = BS.Network.CloneFunction (old.x, { a = old.h ; b = old.z }, parameters='constant')
g = BS.Network.CloneFunction ((old.x : old.y), old.ce, parameters='shared')
u = Input {3} ; v = Input {2}
r = f (u)
loss = g (u, v)
o = Splice (r.a : r.b : net["L.z"])
criterionNodes = (loss) ; outputNodes = (o)
"""
MEL = "m1 = LoadModel(in.dnn, format=cntk)\nSetDefaultModel(m1)\nSetProperty(z, computeGradient, false)\nCopyNode(h, g, copy=all)\nDumpModel(m1, m.txt, includeData=true)\nRename(g, k)\nRemoveNode(k)\nSaveModel(m1, out.dnn)\n"

MEAN = """<?xml version="1.0"?>
<opencv_storage><Channel>1</Channel><Row>2</Row><Col>2</Col>
<MeanImg type_id="opencv-matrix"><rows>1</rows><cols>4</cols><dt>f</dt><data>1. 2.5 3e1 4.</data></MeanImg></opencv_storage>
"""
LOG = """commandline: cntkpy configFile=a.cntk
Action "train" started.
 Epoch[ 1 of 2]-Minibatch[   1-   2, 40.00%]: ce = 0.69 * 20; err = 0.5 * 20; time = 0.1s; samplesPerSecond = 200.0
Finished Epoch[ 1 of 2]: [Training] ce = 0.69 * 20; err = 0.5 * 20; totalSamplesSeen = 20; learningRatePerSample = 0.1; epochTime=0.1s
Finished Epoch[ 2 of 2]: [Training] ce = nan * 20; err = 0.25 * 20; totalSamplesSeen = 40; learningRatePerSample = 0.1; epochTime=0.1s
Finished Epoch[ 2 of 2]: [Validate] ce = 0.6 * 20; err = 0.2 * 20
"""
EVENTS = """{"time": "2026-01-01T00:00:00+00:00", "event": "run started", "words": ["a"], "versions": {"jax": "1"}, "place": {"host": "h"}, "settings": [{"name": "train:rate", "value": "0.1", "origins": [{"kind": "overridden", "name": "", "text": "1", "at": "f:1:2"}]}]}
{"event": "action", "command": "train", "action": "train"}
{"event": "network", "command": "train", "device": "CPU", "nodes": [{"name": "x", "operation": "InputValue", "inputs": [], "shape": [2], "minibatch": true}, {"name": "W", "operation": "LearnableParameter", "inputs": [], "shape": [3, 2], "parameters": 6, "learningRateMultiplier": 1.0}, {"name": "p", "operation": "PastValue", "inputs": ["z"], "shape": [3], "delay": true}, {"name": "z", "operation": "Times", "inputs": ["W", "x", "p"], "shape": [3]}], "groups": {"criterion": ["z"]}, "parameters": 6}
{"event": "progress", "epoch": 1, "epochs": 2, "minibatches": [1, 2], "nodes": {"ce": 0.5}}
{"event": "epoch finished", "epoch": 1, "epochs": 2, "nodes": {"ce": 0.5}, "samples": 20, "seconds": 0.5, "learningRatePerSample": 0.1}
{"event": "validation", "epoch": 1, "epochs": 2, "nodes": {"ce": 0.5}}
{"event": "action", "command": "test", "action": "test"}
{"event": "final results", "nodes": {"ce": 0.5}, "samples": 20}
{"event": "confusion", "output": "z", "counts": [[1, 2], [0, 3]], "worst": [{"sequence": 1, "step": 0, "loss": 2.5, "label": 0, "takenFor": 1}]}
{"event": "run finished", "status": 1, "error": "e"}
"""

TARGETS = (
    Target("config", "f.cntk", _files("sample_configs/*.cntk"), (["check", "f.cntk"], ["show", "--origins", "f.cntk"]), text=True),
    Target("format", "f.cntk", _files("sample_configs/*.cntk"), (["format", "f.cntk"],), text=True),
    Target("ndl", "f.ndl", _texts(NDL), (["check", "main.cntk"],), text=True,
           files={"main.cntk": NETWORK.format(action="train", builder="NDLNetworkBuilder=[networkDescription=f.ndl]"), "a.ctf": "|x 1 2 3 |y 1 0\n"}),
    Target("brainscript", "f.bs", _texts(BRAINSCRIPT), (["check", "main.cntk"],), text=True,
           files={"main.cntk": NETWORK.format(action="train", builder="BrainScriptNetworkBuilder=[include \"f.bs\"]"), "a.ctf": "|x 1 2 3 |y 1 0\n"}),
    Target("brainscript-models", "f.bs", _texts(EDITING), (["check", "main.cntk"],), text=True,
           files={"main.cntk": "command = make\nmake = [ action = edit ; outputModelPath = new.dnn ; BrainScriptNetworkBuilder = [include \"f.bs\"] ]\n",
                  "in.dnn": (ROOT / "tools/fuzz/seeds/model.dnn").read_bytes()}),
    Target("network", "f.bs", calls.network_seeds, (), text=True, call=calls.network),
    Target("mel", "f.mel", _texts(MEL), (["check", "main.cntk"],), text=True,
           files={"main.cntk": "command = edit\nedit = [ action = edit ; editPath = f.mel ]\n"}),
    Target("ctf", "a.ctf", _texts(CTF), (["convert", "-q", "configFile=main.cntk", "reader", OUTPUT],), text=True,
           files={"main.cntk": "command=c\nc=[action=test]\n" + CTF_READER.format(more="randomize=false")}),
    Target("check-data", "a.ctf", _texts(CTF), (["check", "--data", "main.cntk"],), text=True,
           files={"main.cntk": "command=c\nc=[action=test;modelPath=m]\n" + CTF_READER.format(more="randomize=false")}),
    Target("ctf-lenient", "a.ctf", _texts(CTF), (["convert", "-q", "configFile=main.cntk", "reader", OUTPUT],), text=True,
           files={"main.cntk": CTF_READER.format(more="randomize=auto;maxErrors=100;skipSequenceIds=true")}),
    Target("uci", "a.uci", _texts(UCI), (["convert", "-q", "a.uci", OUTPUT, "--stream", "y:3:class", "--stream", "x:3"],), text=True),
    Target("corpus", "c.txt", _texts(SENTENCES), (["convert", "-q", "c.txt", "w.txt", "o.ctf", "--from", "lm"],), {"w.txt": WORDS}, text=True),
    Target("words", "w.txt", _texts(WORDS), (["convert", "-q", "c.txt", "w.txt", "o.ctf", "--from", "lm"],), {"c.txt": SENTENCES}, text=True),
    Target("binary", "a.bin", _command("a.bin", "convert", "-q", "a.ctf", "a.bin", "--stream", "x:3", a_ctf="|x 1 2 3\n|x 4 5 6\n"),
           (["convert", "-q", "a.bin", OUTPUT],)),
    Target("cbf", "a.cbf", _command("a.cbf", "convert", "-q", "a.ctf", "a.cbf", "--stream", "x:3", "--stream", "s:6:sparse", a_ctf=CTF),
           (["convert", "-q", "a.cbf", OUTPUT],)),
    Target("parquet", "a.parquet", _command("a.parquet", "convert", "-q", "a.ctf", "a.parquet", "--stream", "x:3", "--stream", "s:6:sparse", a_ctf=CTF),
           (["convert", "-q", "a.parquet", OUTPUT],)),
    Target("parquet-lists", "a.parquet", calls.list_seeds, (), call=calls.lists),
    Target("arrow", "a.arrow", _command("a.arrow", "convert", "-q", "a.ctf", "a.arrow", "--stream", "x:3", "--stream", "s:6:sparse", a_ctf=CTF),
           (["convert", "-q", "a.arrow", OUTPUT],)),
    Target("compressed", "a.ctf", calls.packed_seeds, (["convert", "-q", "configFile=main.cntk", "reader", OUTPUT],),
           {"main.cntk": "command=c\nc=[action=test]\n" + CTF_READER.format(more="randomize=false")}),
    Target("tar", "a.tar", calls.tar_seeds, (), call=calls.tar),
    Target("npz", "a.npz", _command("a.npz", "convert", "-q", "a.ctf", "a.npz", "--stream", "x:3", "--stream", "s:6:sparse", a_ctf=CTF),
           (["convert", "-q", "a.npz", "o.ctf"],)),
    Target("htk", "a.ark", _command("a.ark", "convert", "-q", "a.ctf", "a.scp", "--stream", "x:3", a_ctf="0 |x 1 2 3\n0 |x 4 5 6\n1 |x 7 8 9\n"),
           (["convert", "-q", "a.scp", OUTPUT],), {"a.scp": "u0=a.ark[0,1]\nu1=a.ark[2,2]\n"}),
    Target("scp", "a.scp", _texts("u0=a.mfc[0,1]\nu1=a.mfc[1,2]\na.mfc\n"), (["convert", "-q", "a.scp", OUTPUT],), text=True,
           files={"a.mfc": b"\x00\x00\x00\x03\x00\x01\x86\xa0\x00\x0c\x00\x09" + b"\x3f\x80\x00\x00" * 9}),
    Target("mlf", "a.mlf", _texts('#!MLF!#\n"*/u0.lab"\n0 100000 s1\n100000 300000 s2\n.\n'), (["convert", "-q", "a.scp", "a.mlf", "states", OUTPUT],), text=True,
           files={"a.scp": "u0=a.mfc[0,2]\n", "states": "s1\ns2\n",
                  "a.mfc": b"\x00\x00\x00\x03\x00\x01\x86\xa0\x00\x0c\x00\x09" + b"\x3f\x80\x00\x00" * 9}),
    Target("kaldi", "a.ark", _files("tools/fuzz/seeds/kaldi.ark"), (["convert", "-q", "a.ark", OUTPUT],)),
    Target("kaldi-text", "a.txt", _texts("a  [\n  1 2 3 \n  4 5.5 -6e-2 ]\nb [ inf nan 7 ]\n"), (["convert", "-q", "ark:a.txt", OUTPUT],), text=True),
    Target("kaldi-script", "a.scp", _texts("a f.txt:2\nb f.txt:2[0:0,0:2]\n", "a f.txt:2\nc gunzip -c f.gz |\n"), (["convert", "-q", "scp:a.scp", OUTPUT],), text=True,
           files={"f.txt": "u [ 1 2 3\n 4 5 6 ]\n"}),
    Target("kaldi-labels", "l.ark", _files("tools/fuzz/seeds/kaldi.ali", "tools/fuzz/seeds/kaldi.post"), (["convert", "-q", "ark:f.txt", "l.ark", OUTPUT],),
           {"f.txt": "a [ 1 2\n 4 5 ]\nb [ 1 2\n 3 4 ]\n"}),
    Target("kaldi-transform", "t.nnet", _texts("<Nnet> <Splice> 6 2 [ -1 0 1 ] <AddShift> 6 6 [ 1 2 3 4 5 6 ] <LinearTransform> 1 6 [ 1 2 3 4 5 6 ] </Nnet>\n"),
           (["convert", "-q", "configFile=main.cntk", "reader", OUTPUT],), text=True,
           files={"f.txt": "a [ 1 2\n 4 5 ]\nb [ 1 2\n 3 4 ]\n",
                  "main.cntk": 'reader = [ deserializers = ([ type=KaldiFeatureDeserializer ; input=[ x=[ dim=1 ; rx="ark:f.txt" ; featureTransform=t.nnet ] ] ]) ]\n'}),
    Target("image", "p.png", _files("tools/fuzz/seeds/image.*"), (["preview", "main.cntk", "reader"],),
           {"main.cntk": "reader = [ readerType=ImageReader ; file=map.txt ; features=[width=4;height=4;channels=3;cropType=center;cropRatio=1;interpolations=linear] ; labels=[labelDim=2] ]\n", "map.txt": "p.png\t1\n"}),
    Target("model", "m.dnn", _files("tools/fuzz/seeds/model.*"), (["show", "m.dnn"],)),
    Target("onnx", "m.onnx", _files("tools/fuzz/seeds/onnx.*"), (["show", "m.onnx"],)),
    Target("checkpoint", "m.ckp", _made(calls.checkpoint_seed), (), call=calls.checkpoint),
    Target("partial-epoch", "m.partial", _made(calls.partial_epoch_seed), (), call=calls.partial_epoch),
    Target("text-index", "a.cache", _made(calls.text_index_seed), (), call=calls.text_index),
    Target("binary-cache", "a.bin", _command("a.bin", "convert", "-q", "a.ctf", "a.bin", "--stream", "x:3", a_ctf="|x 1 2 3\n|x 4 5 6\n"),
           (), call=calls.binary_cache),
    Target("label-map", "l.map", _texts("a\nb\n# c\n\nd e\n"), (), text=True, call=calls.label_map),
    Target("mean-file", "mean.xml", _texts(MEAN), (), text=True, call=calls.mean_file),
    Target("map-file", "map.txt", _texts("p.png\t1\n\"q.png\"\t0\n...\\r.png\t2\n", "7\tp.png\t1\n8\ta.zip@/q.png\t0\n"), (), text=True, call=calls.map_file),
    Target("initial-values", "w.txt", _texts("1 2 3\n4 -5e3 .6\n"), (), text=True, call=calls.initial_values),
    Target("log", "run.log", _texts(LOG), (), text=True, call=calls.run_log),
    Target("log-events", "run.jsonl", _texts(EVENTS), (), text=True, call=calls.run_log),
    Target("legacy-model", "m.dnn", _files("tools/fuzz/seeds/legacy.*"), (["show", "m.dnn"],)),
)  # fmt: skip


def find(name: str) -> Target:
    """The target of that name."""
    return next(target for target in TARGETS if target.name == name)

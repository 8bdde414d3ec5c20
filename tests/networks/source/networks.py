"""Networks that tests write as source."""

import re
from pathlib import Path

import numpy as np

from cntkpy.cntk_config import UserError, load
from cntkpy.commands.described_network import commands_with_networks, describe_network
from cntkpy.networks import nodes
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.nodes.declare import EXAMPLE_NODES
from cntkpy.networks.onnx import ours
from cntkpy.networks.source.export import Settings, export

ROOT = Path(__file__).parents[3]
SAMPLES = sorted((ROOT / "sample_configs").glob("*.cntk"))


def filled(network):
    """The network with values everywhere; variances of batch normalisation are not 0."""
    random = np.random.default_rng(1)
    network.values = True
    network.validate()
    for node in network.nodes.values():
        if node.kind.precompute:
            node.value = 0.5 + random.random(tuple(reversed(node.shape))).astype(network.dtype)
            node.computed = True
        for index in node.kind.running[1:]:
            node.input(index).value = 0.5 + random.random(node.input(index).value.shape).astype(network.dtype)
    return network.validate()


def networks_of(path):
    """The networks of a configuration's commands; those that begin with a trained model are left out."""
    root = load([f"configFile={path}"])
    for command in commands_with_networks(root):
        try:
            yield command, filled(describe_network(root, command).network)
        except UserError as problem:
            if "there is no model" not in str(problem):
                raise


def source_of(network, *outputs, title="Model", framework="pytorch"):
    return export(network, ours.constants, Settings(outputs, title=title, framework=framework))


def of_ndl(text, seed=0, precision="float"):
    """A network in NDL with random parameters."""
    network = parse_ndl(text, precision=precision, diagnostics=[]).validate()
    random = np.random.default_rng(seed)
    for node in network.nodes.values():
        if node.trainable:
            node.value = random.normal(size=node.value.shape, scale=0.5).astype(network.dtype)
    return network


def of_example(kind):
    """The network of the example of a kind, and the name of an output that depends on data and on a node of it."""
    before, network = parse_ndl(EXAMPLE_NODES), parse_ndl(EXAMPLE_NODES + kind.example)
    network.validate()
    filled(network)
    made = [node for name, node in network.nodes.items() if name not in before.nodes]
    node = next(one for one in reversed(made) if one.operation == kind.operation)
    if node.operation == "PackedIndex":
        node = nodes.create(network, "GatherPacked", "out", [node, network["x"]])
    elif node.kind.time.makes_axis:
        node = nodes.create(network, "Negate", "out", [network["tokens"]])
    elif node.kind.layout == "always":
        node = nodes.create(network, "Negate", "out", [node])
    elif not any(one.kind.layout == "always" for one in network.below([node])):
        extra = nodes.create(network, "InputValue", "extra", [], {"dims": (1,)})
        node = nodes.create(network, "Plus", "out", [node, extra])
    network.validate()
    return network, node.name


def resnet(tmp_path, blocks=3):
    """The ResNet of the sample with so many blocks of each width: 6 blocks + 2 layers."""
    text = (ROOT / "sample_configs/brainscript_resnet.cntk").read_text()
    (tmp_path / "resnet.cntk").write_text(re.sub(r"ResNet \{18", f"ResNet {{{blocks}", text))
    (tmp_path / "resnet.bs").write_text((ROOT / "sample_configs/resnet.bs").read_text())
    return filled(describe_network(load([f"configFile={tmp_path / 'resnet.cntk'}"]), "cifar").network)


def gate(name, state, more=""):
    text = f"{name}W = Parameter(4, 3)\n{name}R = Parameter(4, 4)\n{name}b = Parameter(4)\n"
    total = f"Plus(Times({name}W, x), Plus(Times({name}R, {state}), {name}b))"
    return text + f"{name}s = {f'Plus({total}, {more})' if more else total}\n"


def lstm(delay="PastValue", prefix="", initial=0.1, peephole=False):
    """An LSTM layer in NDL: the result is `{prefix}h`."""
    p = prefix
    text = f"{p}p = {delay}(4, {p}h, defaultHiddenActivity={initial})\n"
    text += f"{p}q = {delay}(4, {p}c, defaultHiddenActivity={initial})\n"
    for name, memory in (("i", "q"), ("f", "q"), ("o", "c")):
        text += f"{p}{name}P = Parameter(4)\n" if peephole else ""
        text += gate(f"{p}{name}", f"{p}p", f"DiagTimes({p}{name}P, {p}{memory})" if peephole else "")
    text += gate(f"{p}g", f"{p}p")
    text += f"{p}c = Plus(ElementTimes({p}q, Sigmoid({p}fs)), ElementTimes(Sigmoid({p}is), Tanh({p}gs)))\n"
    return text + f"{p}h = ElementTimes(Tanh({p}c), Sigmoid({p}os))\n"


GAPS = (
    'x = ImageInput(3, 4, 2, imageLayout="cudnn", tag=feature)\n'
    + 'z = AveragePooling(x, 1, 2, 3, 3, imageLayout="cudnn", tag=output)\n'
)
"""Windows farther apart than they are large, of which there is one."""


def window_network(steps=(0, 1, 2)):
    """The last steps of a sequence side by side, in BrainScript."""
    delays = ":".join(
        f"BS.Sequences.Last (PastValue (0, x, timeStep={n}, defaultHiddenActivation=0.5))" for n in steps if n
    )
    first = "BS.Sequences.Last (x)" if 0 in steps else ""
    parts = ":".join(part for part in (first, delays) if part)
    program = (
        "{ word = DynamicAxis {} ; x = Input {3, dynamicAxis=word} ; W = ParameterTensor {(2 : DIM)}\n"
        f"z = W * Splice ({parts}) ; featureNodes = (x) ; outputNodes = (z) }}"
    )
    text = program.replace("DIM", str(3 * len(steps)))
    root = load([f"train=[action=train;modelPath=m;BrainScriptNetworkBuilder={text}]", "command=train"])
    return filled(describe_network(root, "train").network)


SUMS = "x = Input(3, tag=feature)\nW = Parameter(3, 3)\np = PastValue(3, h, defaultHiddenActivity={})\n"
SUMS += "h = Plus(p, Times(W, x))\nz = Log(Plus(Constant({}), Exp(h)), tag=output)\n"
"""A running sum and log(1 + exp(x)), or with other numbers something else, in NDL."""

INPUT = "x = Input(3, tag=feature)\n"
HEAD = "W = Parameter(2, {size})\nb = Parameter(2)\nz = Plus(Times(W, {of}), b, tag=output)\n"

RECURRENT = {
    "lstm": INPUT + lstm() + HEAD.format(size=4, of="h"),
    "lstm with zeros": INPUT + lstm(initial=0.0) + HEAD.format(size=4, of="h"),
    "lstm backwards": INPUT + lstm("FutureValue") + HEAD.format(size=4, of="h"),
    "lstm with peepholes": INPUT + lstm(peephole=True) + HEAD.format(size=4, of="h"),
    "peepholes backwards": INPUT + lstm("FutureValue", peephole=True) + HEAD.format(size=4, of="h"),
    "both directions": INPUT
    + lstm(initial=0.0)
    + lstm("FutureValue", "r", 0.0)
    + "j = RowStack(h, rh)\n"
    + HEAD.format(size=8, of="j"),
    "both directions from 0.1": INPUT
    + lstm()
    + lstm("FutureValue", "r")
    + "j = RowStack(h, rh)\n"
    + HEAD.format(size=8, of="j"),
    "plain": INPUT
    + gate("u", "p")
    + "p = PastValue(4, h, defaultHiddenActivity=0)\nh = Tanh(us)\n"
    + HEAD.format(size=4, of="h"),
    "plain with a sigmoid": INPUT
    + gate("u", "p")
    + "p = PastValue(4, h)\nh = Sigmoid(us)\n"
    + HEAD.format(size=4, of="h"),
    "two steps back": INPUT
    + gate("u", "p")
    + "p = PastValue(4, h, timeStep=2)\nh = Tanh(us)\n"
    + HEAD.format(size=4, of="h"),
    "two steps ahead": INPUT
    + gate("u", "p")
    + "p = FutureValue(4, h, timeStep=2)\nh = Sigmoid(us)\n"
    + HEAD.format(size=4, of="h"),
    "delays outside of a loop": INPUT
    + "a = PastValue(3, x)\nb = FutureValue(3, x, timeStep=2)\nz = RowStack(a, b, x, tag=output)\n",
    "gru": INPUT
    + gate("u", "p")
    + gate("r", "p")
    + "p = PastValue(4, h, defaultHiddenActivity=0)\nu = Sigmoid(us)\nr = Sigmoid(rs)\n"
    + "nW = Parameter(4, 3)\nnR = Parameter(4, 4)\nnb = Parameter(4)\nnc = Parameter(4)\n"
    + "n = Tanh(Plus(Plus(Times(nW, x), nb), ElementTimes(r, Plus(Times(nR, p), nc))))\n"
    + "h = Plus(ElementTimes(Minus(Constant(1), u), n), ElementTimes(u, p))\n"
    + HEAD.format(size=4, of="h"),
    "a stack": INPUT
    + "s = OptimizedRNNStack(Parameter(4, 0), x, hiddenDims=4, numLayers=2, bidirectional=true)\n"
    + HEAD.format(size=8, of="s"),
}
"""Networks with recurrences, in NDL."""

"""The text of written modules: what is recognised, how it is named, what is refused."""

import ast
import shutil
import subprocess
import sys

import numpy as np
import pytest

from cntkpy.cntk_config import UserError
from cntkpy.networks import nodes
from cntkpy.networks.source.layout import WIDTH, laid_out
from cntkpy.networks.source.table import NUMBERS, REFUSED, RULES

from .networks import RECURRENT, SAMPLES, SUMS, networks_of, of_ndl, resnet, source_of, window_network

DIGITS = '''\
"""The model digits; its weights are in weights.safetensors."""

import torch
from torch import Tensor, nn


class Digits(nn.Module):
    """The network of digits."""

    def __init__(self) -> None:
        super().__init__()
        self.h1 = nn.Linear(64, 100)
        self.h_last = nn.Linear(100, 10)
        self.register_buffer("log_of_prior", torch.empty(10))

    def forward(self, features: Tensor) -> Tensor:
        """Return 'ScaledLogLikelihood'.

        Args:
            features: (batch, 64).
        """
        h1 = torch.sigmoid(self.h1(features))  # (batch, 100)
        h_last = self.h_last(h1)  # (batch, 10)
        scaled_log_likelihood = h_last - self.log_of_prior  # (batch, 10)
        return scaled_log_likelihood
'''


def written(name, monkeypatch, command="train"):
    path = next(path for path in SAMPLES if path.stem == name)
    monkeypatch.chdir(path.parents[1])
    return source_of(dict(networks_of(path))[command], title=name)


def test_a_small_network(monkeypatch):
    assert written("digits", monkeypatch).text == DIGITS


def test_a_tagger(monkeypatch):
    """An embedding of word numbers, an LSTM that starts at CNTK's 0.1, a layer."""
    source = written("brainscript_slots", monkeypatch)
    assert "self.embedding = nn.Embedding(72, 12)" in source.text
    assert "self.lstm = nn.LSTM(12, 24, batch_first=True)" in source.text
    assert "start = part.new_full((1, len(part), 24), 0.1)" in source.text
    assert "self.z = nn.Linear(24, 9)" in source.text
    assert [node.name for node in source.indices] == ["words"]
    assert source.text.count("\n") < 30


def test_a_residual_network_is_short(tmp_path):
    """One class for the blocks of each form, used nine times."""
    text = source_of(resnet(tmp_path), title="ResNet20").text
    assert text.count("\n") <= 120
    assert "self.residual_blocks = nn.Sequential(*(ResidualBlock(16) for _ in range(3)))" in text
    assert "self.residual_blocks2 = nn.Sequential(ResidualBlock(32), ResidualBlock(32))" in text
    assert text.count("= ShortcutBlock(") == 2
    assert "self.conv = nn.Conv2d(in_channels, channels, 3, stride=2, padding=1, bias=False)" in text


def test_the_layers_of_recurrences():
    layers = {name: source_of(of_ndl(text)).text for name, text in RECURRENT.items()}
    assert "nn.LSTM(3, 4, batch_first=True)" in layers["lstm with zeros"]
    assert "start" not in layers["lstm with zeros"]
    assert "reverse_steps(" in layers["lstm backwards"]
    assert "nn.LSTM(3, 4, batch_first=True, bidirectional=True)" in layers["both directions"]
    assert "pack_padded_sequence" in layers["both directions"]
    assert "nn.RNN(3, 4, batch_first=True)" in layers["plain"]
    assert "nn.GRU(3, 4, batch_first=True)" in layers["gru"]
    assert "nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True)" in layers["a stack"]
    assert "def step(" in layers["lstm with peepholes"]
    assert "for t in reversed(range(" in layers["peepholes backwards"]


def test_what_a_recurrent_layer_is_made_of():
    """The elements of its tensors are those of the gates' parameters; the second bias is none of them."""
    source = source_of(of_ndl(RECURRENT["lstm"]))
    joined = {name: tensor.joined for name, tensor in source.tensors.items() if name.startswith("lstm.")}
    weights = joined["lstm.weight_ih_l0"]
    assert {node.name for node in weights.sources} == {"iW", "fW", "gW", "oW"}
    values = weights.arrange([node.value for node in weights.sources])
    assert (values == source.tensors["lstm.weight_ih_l0"].array).all()
    assert joined["lstm.bias_hh_l0"].sources == ()
    assert not joined["lstm.bias_hh_l0"].known.any()


def test_a_bias_that_is_a_sum_is_made_of_nothing_known():
    text = RECURRENT["plain"].replace("ub))", "Plus(ub, vb)))") + "vb = Parameter(4)\n"
    source = source_of(of_ndl(text))
    assert source.tensors["rnn.bias_ih_l0"].joined is None
    assert source.tensors["rnn.weight_ih_l0"].joined is not None


def test_the_last_steps_side_by_side_are_one_call():
    text = source_of(window_network()).text
    assert "last_steps(x, mask, 3, 0.5)" in text
    assert "past_value(" not in text
    larger = source_of(window_network((1, 2, 4))).text
    assert "last_steps" not in larger
    assert "past_value(" in larger


def test_running_sums_and_softplus_are_calls():
    text = source_of(of_ndl(SUMS.format(0, 1))).text
    assert "h = self.linear(x).cumsum(1)" in text
    assert "z = F.softplus(h)" in text
    text = source_of(of_ndl(SUMS.format(0.1, 2))).text
    assert "cumsum" not in text
    assert "softplus" not in text


def test_numbers_that_single_precision_has_not_keep_their_digits():
    from cntkpy.networks.nodes.source_support.values import number

    assert [number(0.5), number(0.1), number(float(np.float32(0.1)))] == ["0.5", "0.1", "0.1"]
    assert number(0.9999985714295918) == "0.9999985714295918"
    assert number(float("inf")) == 'float("inf")'


def test_a_mask_is_an_argument_where_the_end_of_sequences_counts():
    assert source_of(of_ndl(RECURRENT["lstm"])).masks == {}
    assert source_of(of_ndl(RECURRENT["lstm backwards"])).masks == {"mask": "*"}


def test_two_equal_products_are_one_and_a_constant_is_a_number():
    network = of_ndl(
        "x = Input(3, tag=feature)\nW = Parameter(2, 3)\na = Times(W, x)\nb = Times(W, x)\n"
        "z = Plus(ElementTimes(a, Constant(0.5)), Sigmoid(b), tag=output)\n"
    )
    text = source_of(network).text
    assert text.count("nn.Linear") == 1
    assert "* 0.5 + torch.sigmoid(" in text


def test_shared_parameters_are_no_layers():
    network = of_ndl(
        "x = Input(3, tag=feature)\ny = Input(3, tag=feature)\nW = Parameter(2, 3)\n"
        "z = Plus(Times(W, x), Times(W, y), tag=output)\n"
    )
    source = source_of(network)
    assert "self.w = nn.Parameter(torch.empty(3, 2))" in source.text
    assert source.text.count("@ self.w") == 2


def test_what_has_no_code_is_listed():
    network = of_ndl(
        "x = Input(3, tag=feature)\na = EpochAccumulator(x)\nn = SampleNumber(x)\nz = Plus(Plus(n, x), a, tag=output)\n"
    )
    with pytest.raises(UserError) as problem:
        source_of(network)
    first, *others = str(problem.value).splitlines()
    assert "the network cannot be written as PyTorch source, because of 2 nodes:" in first
    assert {line.split(":")[0].strip() for line in others if line.startswith("  ")} >= {
        "EpochAccumulator 'a'",
        "SampleNumber 'n'",
    }
    assert "--output NODE" in str(problem.value.hint)


def test_every_operation_has_a_rule_or_a_reason():
    leaves = {"InputValue", "SparseInputValue", "LearnableParameter", "DynamicAxis", "Mean", "InvStdDev"}
    layers = {"OptimizedRNNStack"}
    programs = {"UserFunction"}
    known = {kind.operation for kind in nodes.kinds() if not kind.unsupported}
    assert known | programs == leaves | layers | set(RULES) | set(REFUSED)
    assert not set(RULES) & set(REFUSED)
    assert set(RULES) >= NUMBERS


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.sampled
def test_samples_are_clean(path, monkeypatch, tmp_path):
    """Lines are short, names are used, nothing but PyTorch is imported."""
    monkeypatch.chdir(path.parents[1])
    for command, network in networks_of(path):
        if command == "cifar":
            continue
        source = source_of(network, title=command)
        assert max(map(len, source.text.splitlines())) <= WIDTH
        tree = ast.parse(source.text)
        imported = {name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names}
        imported |= {one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
        assert imported <= {"torch", "torch.nn.functional", "math"}
        (tmp_path / f"{command}.py").write_text(source.text)
    if shutil.which("ruff", path=str(sys.prefix) + "/bin"):
        call = [f"{sys.prefix}/bin/ruff", "check", "--isolated", "--line-length", "100", "--select", "E,F,I,UP,B,W,C4"]
        done = subprocess.run([*call, str(tmp_path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        call = [f"{sys.prefix}/bin/ruff", "format", "--diff", "--isolated", "--line-length", "100"]
        done = subprocess.run([*call, str(tmp_path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_names_of_files_and_nodes_stay_text():
    """Neither a node's name nor a file's name becomes code."""
    name = 'z"""\nraise SystemExit  # \\'
    network = of_ndl("x = Input(3, tag=feature)\nW = Parameter(2, 3)\nz = Times(W, x, tag=output)\n")
    network.rename("z", name)
    network.rename("W", 'W"]; raise SystemExit #')
    source = source_of(network.validate(), title=name)
    assert ast.parse(source.text).body[0].value.value.startswith("The model z???")
    assert "raise SystemExit" not in {line.strip() for line in source.text.splitlines()}
    assert source.name.isidentifier()
    assert all(part.isidentifier() for tensor in source.tensors for part in tensor.split("."))


def test_names_of_python_and_of_the_file_are_kept_apart():
    """Nodes that are called as helpers, modules and methods of modules, and a class as a block of the file."""
    network = of_ndl(
        "x = Input(3, tag=feature)\nW = Parameter(3, 3)\na = Times(W, x)\n"
        "b = Clip(Constant(1), Constant(0), a)\nc = Sigmoid(Log(Abs(b)))\nd = Plus(c, a, tag=output)\n"
    )
    for old, new in {"x": "torch", "W": "forward", "a": "log", "b": "clip", "c": "mask", "d": "self"}.items():
        network.rename(old, new)
    network = network.validate()
    source = source_of(network, title="F")
    assert source.name == "F_"
    assert list(source.arguments) == ["torch_"]
    assert "log_ = self.log_(torch_)" in source.text
    assert "clip(log_, 1.0, 0.0)" in source.text
    assert "class F_(nn.Module):" in source.text


LONG = "long_function(" + "argument, " * 7 + "argument)"


def test_a_long_statement_with_a_method_is_two_where_it_means_the_same():
    assert laid_out(f"x = {LONG}.sum(-1)  # (batch, 1)") == f"x = {LONG}\nx = x.sum(-1)  # (batch, 1)"


@pytest.mark.parametrize(
    "value", [f"5 * y / {LONG}.sum()", f"y - {LONG}.sum()", f"-{LONG}.max()", f"{LONG}.expand(*x.shape[:2], 3)"]
)
def test_a_long_statement_stays_one_where_two_mean_something_else(value):
    """The method is that of the last operand alone, or its arguments read the name."""
    (statement,) = ast.parse(laid_out(f"x = {value}")).body
    assert ast.dump(statement.value) == ast.dump(ast.parse(value, mode="eval").body)

"""Written functions of JAX: their text, and that they compute what the networks compute."""

import ast
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from cntkpy.cntk_config import UserError
from cntkpy.networks import nodes
from cntkpy.networks.nodes.source_support.names import Names
from cntkpy.networks.source.check import check
from cntkpy.networks.source.classes import Classes, plain
from cntkpy.networks.source.save import write_source

from .networks import GAPS, INPUT, RECURRENT, SAMPLES, gate, networks_of, of_example, of_ndl, resnet, source_of

pytest.importorskip("jax")

WITHOUT = {"word_classes.cntk"}
"""Configurations without a network."""

REFUSED = {
    *("SampleNumber", "UnpackBatch", "ToBatch", "LabelsToGraph", "ForwardBackward", "EditDistanceError"),
    "EpochAccumulator",
}
"""Operations that are not written."""

DIGITS = '''\
def apply(params: Params, state: Params, features: Array) -> Array:
    """Return 'ScaledLogLikelihood'.

    Args:
        params: what training changes, of `load`.
        state: statistics and constants, of `load`.
        features: (batch, 64).
    """
    h1 = jax.nn.sigmoid(linear(params["h1"], features))  # (batch, 100)
    h_last = linear(params["h_last"], h1)  # (batch, 10)
    scaled_log_likelihood = h_last - state["log_of_prior"]  # (batch, 10)
    return scaled_log_likelihood
'''


def of_jax(network, *outputs, title="Model"):
    return source_of(network, *outputs, title=title, framework="jax")


def assert_equal(source):
    """Values and gradients are those of the network, compiled: shapes depend on no value."""
    checked = check(source)
    assert checked
    assert all(item.allowed for item in checked), checked


def loaded(source):
    """The names of the written file."""
    names = {}
    exec(compile(source.text, "model.py", "exec"), names)
    return names


def trees(source):
    from cntkpy.networks.source.check_jax import trees_of

    return trees_of(source)


# ---- equal


def sample(name, command="train"):
    path = next(path for path in SAMPLES if path.stem == name)
    return dict(networks_of(path))[command]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    monkeypatch.chdir(SAMPLES[0].parents[1])


@pytest.mark.parametrize("name", ["digits", "brainscript_slots"])
@pytest.mark.sampled
def test_some_samples(name):
    assert_equal(of_jax(sample(name), title=name))


@pytest.mark.thorough
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples(path):
    networks = [pair for pair in networks_of(path) if pair[0] != "cifar"]
    assert networks or path.name in WITHOUT
    for command, network in networks:
        assert_equal(of_jax(network, title=command))


KINDS = [kind for kind in nodes.kinds() if not kind.unsupported and kind.name not in REFUSED]
QUICK = ("Convolution", "MaxPooling", "TopK", "CrossEntropyWithSoftmax", "LambdaRank", "DotProductAttention", "Clip")


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.sampled
def test_some_operations(name):
    network, output = of_example(next(kind for kind in KINDS if kind.name == name))
    assert_equal(of_jax(network, output))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_operations(kind):
    network, name = of_example(kind)
    assert_equal(of_jax(network, name))


@pytest.mark.parametrize("name", ["both directions", "two steps ahead"])
@pytest.mark.sampled
def test_some_recurrences(name):
    assert_equal(of_jax(of_ndl(RECURRENT[name])))


@pytest.mark.thorough
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrences(name):
    assert_equal(of_jax(of_ndl(RECURRENT[name])))


LABELLED = INPUT + "labels = Input(4, tag=label)\n" + gate("u", "p") + "p = PastValue(4, h)\nh = Sigmoid(us)\n"
ONE_LABEL = INPUT + "y = Input(1, tag=label)\nw = Input(1)\nV = Parameter(1, 3)\np = PastValue(1, y)\n"

OVER_SEQUENCES = {
    "cross entropy": LABELLED + "z = CrossEntropyWithSoftmax(labels, h)\n",
    "plain cross entropy": LABELLED + "z = CrossEntropy(labels, Softmax(h))\n",
    "square error": LABELLED + "z = SquareError(labels, h)\n",
    "errors": LABELLED + "z = ErrorPrediction(labels, h)\n",
    "errors of the two largest": LABELLED + "z = ErrorPrediction(labels, h, Constant(2))\n",
    "logistic": ONE_LABEL + "z = Logistic(y, Sigmoid(Plus(Times(V, x), p)), Exp(w))\n",
    "sum": LABELLED + "z = SumElements(h)\n",
    "norm": LABELLED + "z = MatrixL2Reg(h)\n",
    **{
        f"reduction {how}": LABELLED + f"z = ReduceMinibatch(h, reductionOp={how})\n"
        for how in ("Sum", "Mean", "Prod", "LogSum", "Max", "Min")
    },
    "two states": INPUT
    + gate("u", "p")
    + gate("v", "q")
    + "p = PastValue(4, h)\nq = PastValue(4, k, timeStep=2)\nh = Sigmoid(Plus(us, q))\nk = Tanh(Plus(vs, p))\n"
    + "z = RowStack(h, k)\n",
    "dropout in a loop": INPUT + gate("u", "p") + "p = PastValue(4, z)\nd = Dropout(us)\nz = Sigmoid(d)\n",
}
"""Networks whose results leave out padding, and loops."""


@pytest.mark.parametrize("name", ["cross entropy", "reduction Mean", "two states"])
@pytest.mark.sampled
def test_some_results_leave_out_padding(name):
    assert_equal(of_jax(of_ndl(OVER_SEQUENCES[name]), "z"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", OVER_SEQUENCES)
def test_results_leave_out_padding(name):
    assert_equal(of_jax(of_ndl(OVER_SEQUENCES[name]), "z"))


def test_windows_with_gaps():
    source = of_jax(of_ndl(GAPS))
    assert "mean_pool(x, (2, 1), 3)" in source.text
    assert_equal(source)


@pytest.mark.thorough
def test_a_network_of_double_precision():
    assert_equal(of_jax(of_ndl(RECURRENT["lstm with peepholes"], precision="double")))


def test_probabilities_are_drawn_as_such():
    """Where a probability is not positive, CNTK's gradient is another one."""
    text = "b = Input(4, tag=label)\np = Input(4, tag=feature)\nz = Plus(CrossEntropy(b, p), Logistic(b, p))\n"
    assert_equal(of_jax(of_ndl(text), "z"))


@pytest.mark.thorough
def test_a_residual_network(tmp_path):
    assert_equal(of_jax(resnet(tmp_path), title="ResNet20"))


def test_a_network_of_half_precision_is_compared_in_single_precision():
    """The source computes in it."""
    from cntkpy.networks.builders.ndl.front_end import parse_ndl

    text = "x = Input(3, tag=feature)\nW = Parameter(2, 3)\nz = Tanh(Times(W, x), tag=output)\n"
    source = of_jax(parse_ndl(text, precision="half", diagnostics=[]).validate())
    assert {array.dtype for array in source.arrays().values()} == {np.dtype(np.float32)}
    assert_equal(source)


# ---- text


def test_a_small_network():
    text = of_jax(sample("digits"), title="digits").text
    assert text.startswith('"""The model digits as functions of JAX; its arrays are in weights.safetensors."""\n')
    assert text.endswith(DIGITS)
    assert 'return y + params["bias"] if "bias" in params else y' in text
    assert "-> tuple[Params, Params]:" in text


def test_a_tagger():
    """An embedding is its table; matrices are (inputs, outputs)."""
    source = of_jax(sample("brainscript_slots"), title="slots")
    assert 'params["embedding"][words]' in source.text
    assert 'lstm(params["lstm"], ' in source.text
    assert "start=(0.1, 0.1))" in source.text
    assert source.file.trees == ("params",)
    shapes = {name: tensor.array.shape for name, tensor in source.tensors.items()}
    assert shapes["embedding"] == (72, 12)
    assert shapes["lstm.weight_ih"] == (12, 96)
    assert shapes["z.weight"] == (24, 9)


def test_a_block_is_a_function_that_is_called_several_times(tmp_path):
    text = of_jax(resnet(tmp_path), title="ResNet20").text
    assert text.count("= residual_block(") == 7
    assert text.count("= shortcut_block(") == 2
    assert "def residual_block(params: Params, state: Params, x: Array, training: bool) -> " in text


def test_loops_are_scans():
    text = of_jax(of_ndl(RECURRENT["peepholes backwards"])).text
    assert "jax.lax.scan(masked, start, by_step, reverse=reverse)" in text
    assert "return scan_steps(step, start, (x, x2, x3, x4), mask, reverse=True)" in text
    assert "def scan_h(params: Params, x: Array, x2: Array, x3: Array, x4: Array, mask: Array) -> Array:" in text


def test_functions_of_one_form_are_one_function_of_their_differences():
    classes = Classes(functions=True)
    marks = [classes.add("scan", f"def NAME(xARGUMENTS):\n    return x * «size={size}» + «size=7»") for size in (3, 4)]
    calls = " + ".join(f"{mark}(x{mark.replace('⟧', '+⟧')})" for mark in marks)
    classes.add("=apply", f"def NAME(xARGUMENTS):\n    return {calls}")
    assert list(map(plain, classes.resolve(Names()))) == [
        "def scan(x, size: int):\n    return x * size + 7",
        "def apply(x):\n    return scan(x, size=3) + scan(x, size=4)",
    ]


def test_what_has_no_code_is_listed():
    network = of_ndl("x = Input(3, tag=feature)\na = EpochAccumulator(x)\nz = Plus(SampleNumber(x), a, tag=output)\n")
    with pytest.raises(UserError) as problem:
        of_jax(network)
    assert "the network cannot be written as JAX source, because of 2 nodes:" in str(problem.value)
    assert {name for name in REFUSED if name in str(problem.value)} == {"EpochAccumulator", "SampleNumber"}


def test_every_helper_is_written_for_both_frameworks():
    """Rules ask for helpers by name; those that only one framework lacks are asked for by its spellings."""
    torch, jax = (set(nodes.tables(f"source_{name}", "HELPERS")) for name in ("torch", "jax"))
    assert torch - jax == {"first_largest", "reverse_steps"}
    assert jax - torch == {
        *("batch_norm", "normalised", "linear", "conv", "dropout", "lstm", "gru", "rnn", "rnn_relu", "both_ways"),
        *("scan_steps", "fold", "sizes", "pads", "max_pool", "mean_pool", "windows", "top", "convolve_transposed"),
        *("plain_cross_entropy", "square_error", "with_slope"),
    }


def test_names_of_the_file_are_kept_apart():
    """Nodes and parameters that are called as what the file has."""
    network = of_ndl(
        "params = Input(3, tag=feature)\nW = Parameter(4, 3)\nstate = Parameter(4)\n"
        "apply = Plus(Times(W, params), state)\nkey = Sigmoid(apply)\nnew = Tanh(key)\nload = Plus(new, key)\n"
        "linear = ElementTimes(load, new, tag=output)\n"
    )
    source = of_jax(network)
    assert list(source.arguments) == ["params_"]
    assert 'linear(params["apply"], params_)' in source.text
    assert_equal(source)


def test_names_of_files_and_nodes_stay_text():
    name = 'z"""\nraise SystemExit  # \\'
    network = of_ndl("x = Input(3, tag=feature)\nW = Parameter(2, 3)\nz = Times(W, x, tag=output)\n")
    network.rename("z", name)
    network.rename("W", 'W"]; raise SystemExit #')
    source = of_jax(network.validate(), title=name)
    assert ast.parse(source.text).body[0].value.value.startswith("The model z???")
    assert "raise SystemExit" not in {line.strip() for line in source.text.splitlines()}
    assert all(part.isidentifier() for tensor in source.tensors for part in tensor.split("."))


def test_files_are_clean(tmp_path):
    """ruff finds nothing and formats nothing; nothing but JAX and safetensors is imported."""
    for path in SAMPLES:
        for command, network in networks_of(path):
            if command != "cifar":
                (tmp_path / f"{path.stem}_{command}.py").write_text(of_jax(network, title=command).text)
    for kind in KINDS:
        network, name = of_example(kind)
        (tmp_path / f"operation_{kind.name}.py").write_text(of_jax(network, name).text)
    for path in tmp_path.glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {name.name for item in ast.walk(tree) if isinstance(item, ast.Import) for name in item.names}
        imported |= {item.module for item in ast.walk(tree) if isinstance(item, ast.ImportFrom)}
        assert imported <= {"jax", "jax.numpy", "safetensors.numpy", "math", "typing", "collections.abc"}
    if shutil.which("ruff", path=str(sys.prefix) + "/bin"):
        ruff = f"{sys.prefix}/bin/ruff"
        for words in (["check", "--select", "E,F,I,UP,B,W,C4"], ["format", "--check"]):
            call = [ruff, words[0], "--isolated", "--line-length", "100", *words[1:], str(tmp_path)]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout


# ---- use

NORMALISED = (
    "x = Input(2, tag=feature)\ns = Parameter(2, 1)\nb = Parameter(2, 1)\n"
    "m = Parameter(2, 1, learningRateMultiplier=0)\n"
    "v = Parameter(2, 1, init=fixedValue, value=1, learningRateMultiplier=0)\n"
    "z = BatchNormalization(x, s, b, m, v, spatial=false, normalizationTimeConstant=20, tag=output)\n"
)

PROGRAM = """
import json, sys
import jax, jax.numpy as jnp
from model import apply, load

params, state = load()
x = jnp.array([[0.5, 1.0], [2.0, -1.0]])
compiled = jax.jit(apply, static_argnames="training")
y, same = compiled(params, state, x)
z, new = compiled(params, state, x, training=True)
slopes = jax.grad(lambda p: apply(p, state, x)[0].sum())(params)
rows = jax.vmap(lambda row: apply(params, state, row[None])[0][0])(x)
print(json.dumps([
    jax.tree.structure(slopes) == jax.tree.structure(params),
    jax.tree.structure(new) == jax.tree.structure(state),
    jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), same, state)),
    jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), new, state)),
    float(abs(rows - y).max()) < 1e-5,
    [name for name in sys.modules if name.partition(".")[0] == "cntkpy"],
]))
"""


def test_the_written_folder_is_used_without_this_package(tmp_path):
    """Compiled, differentiated, mapped over samples, in training."""
    write_source(tmp_path / "out", of_jax(of_ndl(NORMALISED), title="normalised"), "a test")
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path / "out", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, True, True, False, True, []]
    readme = (tmp_path / "out/README.md").read_text()
    assert "outputs, state = apply(params, state, x)" in readme
    assert "| `x` | `x` | (batch, 2) |" in readme


def test_weights_of_layers_that_are_not_trained_are_listed(tmp_path):
    text = INPUT + "W = Parameter(2, 3, learningRateMultiplier=0)\nb = Parameter(2)\n"
    write_source(tmp_path / "out", of_jax(of_ndl(text + "z = Plus(Times(W, x), b, tag=output)\n")), "a test")
    readme = (tmp_path / "out/README.md").read_text()
    assert "The network does not train `z.weight`: give an optimiser no gradient of them." in readme


def test_a_function_of_a_program_is_saved(tmp_path):
    import cntkpy.compat.cntk as C

    x = C.input_variable(3, name="x")
    z = C.layers.Dense(2, name="z")(C.layers.Dense(4, activation=C.relu)(x))
    z.save(str(tmp_path / "mlp"), format="jax")
    names = {}
    exec((tmp_path / "mlp/model.py").read_text(), names)
    params = names["load"](tmp_path / "mlp/weights.safetensors")
    assert sorted(layer["weight"].shape for layer in params.values()) == [(3, 4), (4, 2)]
    data = np.array([[0.5, -1, 2], [1, 0, 0]], np.float32)
    np.testing.assert_allclose(names["apply"](params, data), z.eval({x: data}), atol=1e-6)


def test_statistics_move_towards_those_of_a_batch():
    """By the time constant in samples; the variance is the unbiased one."""
    source = of_jax(of_ndl(NORMALISED))
    params, state = trees(source)
    x = np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32)
    got, new = loaded(source)["apply"](params, state, x, training=True)
    normal = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    np.testing.assert_allclose(got, normal * params["z"]["weight"] + params["z"]["bias"], atol=1e-5)
    share = 1 - np.exp(-5 / 20)
    for name, wanted in (("mean", x.mean(0)), ("var", x.var(0, ddof=1))):
        start = state["z"][name]
        np.testing.assert_allclose(new["z"][name], start + share * (wanted - start), rtol=1e-5)


def test_dropout_needs_a_key():
    import jax

    text = "x = Input(400, tag=feature)\nd = Dropout(x)\ne = Dropout(x)\nz = RowStack(d, e, tag=output)\n"
    apply = loaded(of_jax(of_ndl(text)))["apply"]
    x = np.ones((1, 400), np.float32)
    np.testing.assert_array_equal(apply(x), np.ones((1, 800)))
    got = np.asarray(apply(x, key=jax.random.key(1)))[0]
    assert set(got) == {0.0, 2.0}
    assert 0.4 < (got == 0).mean() < 0.6
    assert not np.array_equal(got[:400], got[400:])


def test_dropout_in_a_loop_draws_at_each_step():
    import jax

    text = "x = Input(200, tag=feature)\np = PastValue(200, z)\n"
    text += "d = Dropout(Plus(x, ElementTimes(p, Constant(0))))\nz = Abs(d, tag=output)\n"
    apply = loaded(of_jax(of_ndl(text)))["apply"]
    x = np.ones((1, 3, 200), np.float32)
    np.testing.assert_array_equal(apply(x), x)
    got = np.asarray(apply(x, key=jax.random.key(1)))[0]
    assert set(got.ravel()) == {0.0, 2.0}
    assert all(0.3 < (step == 0).mean() < 0.7 for step in got)
    assert not np.array_equal(got[0], got[1])


def test_a_key_that_is_needed_comes_before_what_may_be_left_out():
    """Names with dots stand in the docstring as they are."""
    import jax

    network = of_ndl(
        NORMALISED.replace("tag=output", "").replace(", )", ")")
        + "n = RandomLike(z)\nd = Dropout(Plus(z, n), tag=output)\n"
    )
    network.rename("d", "part.d")
    source = of_jax(network.validate())
    text = " ".join(source.text.split())
    assert "x: Array, key: Array, training: bool = False" in text
    assert "Return 'part.d', and the new state." in text
    params, state = trees(source)
    apply = loaded(source)["apply"]
    got, new = apply(params, state, np.zeros((4, 2), np.float32), jax.random.key(1), training=True)
    assert got.shape == (4, 2)
    assert not np.array_equal(new["z"]["mean"], state["z"]["mean"])


def test_random_numbers_need_a_key():
    import jax

    network, name = of_example(next(kind for kind in KINDS if kind.name == "RandomLike"))
    source = of_jax(network, name)
    assert "def apply(x: Array, key: Array) -> Array:" in source.text
    apply, x = loaded(source)["apply"], np.zeros((2, 4), np.float32)
    first, second = (np.asarray(apply(x, jax.random.key(seed))) for seed in (1, 2))
    assert first.shape == (2, 4)
    assert not np.array_equal(first, second)

"""Networks of half precision: what is computed and kept in 16 bits, and what in 32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.compile.evaluate import Batch, compile_gradient, compile_network, network_parameters, network_state
from cntkpy.networks.files.model_file import as_reread, load_model, save_model
from cntkpy.networks.graph.initialize import SeedCounter

DENSE = """\
x = Input(8, tag=feature)
y = Input(3, tag=label)
W = Parameter(6, 8)
b = Parameter(6, 1)
s = Parameter(6, 1, init=fixedValue, value=1)
m = Parameter(6, 1, init=fixedValue, value=0, needGradient=false)
u = Parameter(6, 1, init=fixedValue, value=1, needGradient=false)
V = Parameter(3, 6)
n = BatchNormalization(Plus(Times(W, x), b), s, b, m, u, normalizationTimeConstant=100)
z = Times(V, Sigmoid(n))
ce = CrossEntropyWithSoftmax(y, z, tag=criterion)
"""

RECURRENT = """\
x = Input(8, tag=feature)
y = Input(3, tag=label)
W = Parameter(6, 8)
R = Parameter(6, 6)
b = Parameter(6, 1)
V = Parameter(3, 6)
p = PastValue(6, 1, h, timeStep=1)
h = Tanh(Plus(Plus(Times(W, x), Times(R, p)), b))
z = Times(V, h)
ce = CrossEntropyWithSoftmax(y, z, tag=criterion)
"""

IMAGE = """\
i = ImageInput(8, 6, 3, imageLayout=CHW, tag=feature)
y = Input(3, tag=label)
K = Parameter(4, 27)
V = Parameter(3, 48)
c = Convolution(K, i, 3, 3, 4, 1, 1, zeroPadding=true, imageLayout=CHW)
q = MaxPooling(RectifiedLinear(c), 2, 2, 2, 2, imageLayout=CHW)
z = Times(V, q)
ce = CrossEntropyWithSoftmax(y, z, tag=criterion)
"""


PRODUCTS = ("dot_general", "conv_general_dilated")


def network_of(text, precision):
    network = parse_ndl(text, precision=precision)
    seeds = SeedCounter()
    for node in network.nodes.values():
        if node.is_parameter and node.value is None:
            network.initialize(node, seeds)
    return network.validate()


def batch_of(network, helpers, lengths):
    random, (mask, start, end) = np.random.default_rng(1), helpers.grid(lengths)
    data = {
        one.name: random.normal(size=(*mask.shape, *reversed(one.shape))).astype(network.dtype)
        for one in network.nodes.values()
        if one.kind.layout == "always"
    }
    data["y"] = np.eye(3, dtype=network.dtype)[random.integers(0, 3, mask.shape)]
    return Batch(data, mask, start, end)


def operations(jaxpr):
    """All operations of a program, those of loops and functions in it as well."""
    for one in jaxpr.eqns:
        yield one
        for inner in jax.tree.leaves(list(one.params.values()), is_leaf=lambda p: hasattr(p, "jaxpr")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from operations(inner)


@pytest.mark.parametrize(
    "precision, short",
    [
        ("bfloat16", jnp.bfloat16),
        pytest.param("half", jnp.float16, marks=pytest.mark.thorough),
        pytest.param("float", None, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("text", [DENSE, RECURRENT, IMAGE], ids=["dense", "recurrent", "image"])
def test_products_take_and_give_the_short_type(text, precision, short, helpers):
    """Those of the gradient, too; gradients, criteria and statistics are of single precision."""
    network = network_of(text, precision)
    arguments = network_parameters(network), network_state(network), batch_of(network, helpers, [4, 1, 3])
    program = jax.make_jaxpr(compile_gradient(network, "ce"))(*arguments)
    products = [one for one in operations(program.jaxpr) if one.primitive.name in PRODUCTS]
    assert len(products) >= 5
    types = {variable.aval.dtype for one in products for variable in (*one.invars, *one.outvars)}
    assert types == {np.dtype(short or np.float32)}
    result = {one.dtype for one in program.out_avals}
    assert result <= {np.dtype(np.float32), np.dtype(np.float64), np.dtype(bool)}  # float64: numbers of samples
    gradients, totals, state = jax.jit(compile_gradient(network, "ce"))(*arguments)
    network.precision = "float"
    exact, expected, after = jax.jit(compile_gradient(network, "ce"))(*arguments)
    np.testing.assert_allclose(totals["ce"], expected["ce"], rtol=2e-2)
    for name, gradient in gradients.items():
        scale = max(np.abs(exact[name]).max(), 1e-2)
        np.testing.assert_allclose(gradient, exact[name], atol=5e-2 * scale, err_msg=name)
    for name, value in state.items():
        assert value.dtype == after[name].dtype


def test_counts_and_sums_along_time_are_exact(helpers):
    """In bfloat16, 256 + 1 is 256."""
    text = """\
x = Input(2, tag=feature)
I = Parameter(2, 2)
s = Times(I, x)
past = PastValue(2, 1, sum, timeStep=1, defaultHiddenActivity=0)
sum = Plus(past, s)
"""
    network = network_of(text, "bfloat16")
    network.nodes["I"].value = np.eye(2, dtype=np.float32)
    mask, start, end = helpers.grid([600])
    batch = Batch({"x": np.ones((600, 1, 2), np.float32)}, mask, start, end)
    found, _ = jax.jit(compile_network(network, ["sum"]))(network_parameters(network), network_state(network), batch)
    np.testing.assert_array_equal(found["sum"][:, 0, 0], np.arange(1, 601))


def test_files(tmp_path):
    """A model file has the parameters in single precision; half precision is a property of a network, bfloat16 not."""
    for precision, again in (("half", "half"), ("bfloat16", "float")):
        network = network_of(DENSE, precision)
        save_model(tmp_path / "m", network)
        found = load_model(tmp_path / "m")
        assert (found.precision, found.dtype) == (again, np.float32)
        np.testing.assert_array_equal(found.nodes["W"].value, network.nodes["W"].value)
        assert load_model(tmp_path / "m", "bfloat16").precision == "bfloat16"
        assert as_reread(network).precision == precision

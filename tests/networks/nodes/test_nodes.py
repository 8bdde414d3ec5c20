"""Every function of the network language: values against NumPy, gradients against central differences.

The cases are in `node_cases`; each is evaluated on sequences of different lengths, whose minibatch has gaps, and on
single frames of sparse inputs.
"""

import functools
import zlib

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cntkpy.networks import nodes
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.arrays.sparse import Sparse
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.compile.evaluate import compile_network, network_parameters, network_state
from cntkpy.networks.nodes.declare import EXAMPLE_NODES

from .node_cases import BATCHES, CASES, FRAMES_ONLY, SUMS

LENGTHS = [4, 1, 3]
FRAMES = [1] * sum(LENGTHS)
SPECIAL_GRADIENT = {
    "dummy": "the data say what the gradient is",
    "floor": "0, and differences jump",
    "stop": "0, whatever the differences are",
    "error": "there is none",
}
"""Cases whose gradient is tested elsewhere, and why."""


SHORT = {"float16": "half", "bfloat16": "bfloat16"}
"""The precisions of networks that compute in 16 bits, by the type."""


def _rounded(array, short):
    """The nearest numbers of a type of 16 bits, in single precision."""
    return np.asarray(array).astype(np.dtype(short)).astype(np.float32)


def _data(random, how, mask, dims):
    x = random.normal(size=(*mask.shape, *reversed(dims)))
    if how == ">":
        x = np.abs(x) + 0.1
    if how == "1":
        x = np.eye(dims[0])[random.integers(0, dims[0], mask.shape)]
    if how == "b":
        x = (x > 0).astype(float)
    if how == "s":
        x = 0.1 + 0.8 * random.random(x.shape)
    if how == "c":
        x = np.array([[0, 0, 0, 2], [1, 0, 0, 2], [3, 1, 2, 6], [5, 1, 2, 6]])[random.integers(0, 4, mask.shape)] * 1.0
    x[~mask] = 0
    return x


class Built:
    """The network of a case, `result`, its data, and the values of its parameters.

    short: half a precision: its data and parameters have numbers of this type, and its operands are products.
    """

    def __init__(self, h, case, lengths, sparse=False, moved=False, still=None, short=""):
        name, kind, specs, options, _ = case
        self.sketch = s = h.Sketch(SHORT.get(short, "double"), seed=zlib.crc32(name.encode()))
        self.mask, start, end = h.grid(lengths)
        self.operands, self.data, self.initial = [], {}, {}
        for index, spec in enumerate(specs):
            how, dims = (spec[0], spec[1:]) if isinstance(spec[0], str) else ("", spec)
            if how == "K":
                node = s.constant(*dims)
            elif how in ("P", "PP"):
                node = s.parameter(f"p{index}", *dims)
                node.value = np.abs(node.value) + 0.1 if how == "PP" else node.value
            else:
                node = s.input(f"x{index}", *dims, sparse=sparse)
                self.data[node.name] = _data(s.random, how, self.mask, dims)
                if short:
                    self.data[node.name] = _rounded(self.data[node.name], short)
            if node.is_parameter:
                node.value = _rounded(node.value, short) if short else node.value
                self.initial[node] = node.matrix().copy()
            self.operands.append(node)
        operands = self._moved(specs, still) if moved else self.operands
        if short:
            shapes = [one.shape for one in self.operands]
            operands = [
                one if one.is_parameter else self._product(one, shape)
                for one, shape in zip(operands, shapes, strict=True)
            ]
        self.result = s(kind, *operands, name="result", **options)
        inputs = {name: _sparse(array) for name, array in self.data.items()} if sparse else self.data
        frames = all(length == 1 for length in lengths)
        self.batch = h.Batch(inputs) if frames else h.Batch(inputs, self.mask, start, end)

    def _moved(self, specs, still):
        """The operands, data as x * p + q with parameters p and q, so that there is something to differentiate by.

        still: index of an operand that stays as it is.
        """
        s, result = self.sketch, []
        for index, (node, spec) in enumerate(zip(self.operands, specs, strict=True)):
            how = spec[0] if isinstance(spec[0], str) else ""
            if how in ("", "s", ">") and not node.is_parameter and index != still:
                p = s.parameter(f"scale{index}", *node.shape)
                p.value = 1 + 0.1 * p.value
                node = s("ElementTimes", node, p)
                if how == "":
                    node = s("Plus", node, s.parameter(f"shift{index}", *node.inputs[0].shape))
            result.append(node)
        return result

    def _product(self, x, shape):
        """X as a product with the identity."""
        rank, size = len(shape), int(np.prod(shape))
        one = self.sketch.parameter(f"one_{x.name}", *shape, *shape, value=np.eye(size).reshape(*shape * 2))
        return self.sketch("Times", one, x, outputRank=rank)

    def samples(self, t, slot):
        """The operands of one cell as the formula takes them."""
        return [
            self.initial[node] if node.is_parameter else self.data[node.name][t, slot].transpose()
            for node in self.operands
        ]

    def sequences(self):
        """The operands as lists of sequences."""
        T, S = self.mask.shape
        return [
            self.initial[node]
            if node.is_parameter
            else [[self.data[node.name][t, s].transpose() for t in range(T) if self.mask[t, s]] for s in range(S)]
            for node in self.operands
        ]

    def expected(self, case):
        """The value by the formula: an array per cell, or one."""
        formula = case[4]
        cells = list(zip(*np.nonzero(self.mask), strict=True))
        if case in SUMS:
            return sum(np.sum(formula(*self.samples(*cell))) for cell in cells)
        if case in BATCHES:
            found = formula(*self.sequences())
            return {(t, s): found[s][t] for t, s in cells} if self.result.has_layout else found
        return {cell: np.asarray(formula(*self.samples(*cell))) for cell in cells}


def _sparse(array):
    T, S = array.shape[:2]
    return Sparse.from_csr(csr_matrix(array.reshape(T * S, -1)), T, S, np.float64)


def _assert_close(got, expected):
    got, expected = np.squeeze(got), np.squeeze(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


AT_ONCE = 12
"""Number of cases in one program. A program for each case takes twice as long to compile."""


@functools.cache
def computed(helpers, form, number):
    """By the name of a case, its network and the value of `result`."""
    built = {}
    for case in CASES[number * AT_ONCE : (number + 1) * AT_ONCE]:
        frames = form == "sparse frames" or case[0] in FRAMES_ONLY
        built[case[0]] = Built(helpers, case, FRAMES if frames else LENGTHS, sparse=frames)
    networks = {name: one.sketch.network.validate() for name, one in built.items()}
    functions = {name: compile_network(network, ["result"]) for name, network in networks.items()}
    together = jax.jit(lambda arguments: {name: functions[name](*of)[0]["result"] for name, of in arguments.items()})
    values = together(
        {name: (network_parameters(of), network_state(of), built[name].batch) for name, of in networks.items()}
    )
    return {name: (built[name], np.asarray(value)) for name, value in values.items()}


@pytest.mark.parametrize("form", ["sequences", pytest.param("sparse frames", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_value(case, form, helpers):
    built, value = computed(helpers, form, CASES.index(case) // AT_ONCE)[case[0]]
    expected = built.expected(case)
    if not built.result.has_layout:
        assert value.shape == tuple(reversed(built.result.shape))
        _assert_close(value.transpose(), expected)
        return
    assert value.shape == (*built.mask.shape, *reversed(built.result.shape))
    for (t, slot), one in expected.items():
        _assert_close(value[t, slot].transpose(), one)


def is_quick(number, case):
    """Every sixth case, but no whole layers, which take seconds to compile."""
    return number % 6 == 0 and not case[0].startswith(("gru", "lstm"))


def weighted_sum(built):
    """The sum of the result with random weights; the result itself if it is one number for the minibatch."""
    s, result = built.sketch, built.result
    s.network.validate()
    if result.has_layout:
        weight = s.input("weight", *result.shape)
        built.data["weight"] = s.random.normal(size=(*built.mask.shape, *reversed(result.shape)))
        result = s("SumElements", s("ElementTimes", result, weight), name="total")
    return result


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case[0], marks=[] if is_quick(n, case) else pytest.mark.thorough)
        for n, case in enumerate(CASES)
    ],
)
@pytest.mark.sampled
def test_gradient(case, helpers):
    """d (sum of weight * result) / d parameters; relative to the largest element, 1e-6 is permitted."""
    if case[0] in SPECIAL_GRADIENT or not nodes.find(case[1]).differentiable:
        assert case[0] in SPECIAL_GRADIENT or case[1] in NOT_DIFFERENTIABLE
        return
    built = Built(helpers, case, FRAMES if case[0] in FRAMES_ONLY else LENGTHS, moved=True)
    s, result = built.sketch, weighted_sum(built)
    total, found = helpers.gradients(s.network, result.name, built.batch)
    assert np.isfinite(total)
    for name, (chosen, slopes) in helpers.central_differences(s.network, result.name, built.batch).items():
        if case[0] == "clip" and name.startswith("p"):
            assert (found[name] == 0).all()  # no gradient to the limits
            continue
        assert np.isfinite(found[name]).all()
        error = np.abs(found[name].reshape(-1)[chosen] - slopes).max()
        assert error <= 1e-6 * max(np.abs(slopes).max(), 1e-3), name


SPARSE = {
    "minus": 0,
    "diag_times_data": 0,
    "times_data": 0,
    "transpose_times_data": 0,
    "khatri_rao": 0,
    "cos_distance": 0,
    "crop": 1,
    "reconcile": 1,
    "max_unpooling": 1,
    "ce": 0,
    "cross_entropy": 0,
    "square_error": 0,
    "logistic": 0,
    "negative_samples": 0,
}
"""Cases of data only: the operand that is sparse, while the others have something to differentiate by."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c[0] in SPARSE or (any(s[0] == "P" for s in c[2]) and c[0] != "clip")],  # its limits have none
    ids=lambda case: case[0],
)
def test_gradient_with_sparse_inputs(case, helpers):
    """The same as with dense inputs."""
    if not nodes.find(case[1]).differentiable:
        assert case[1] in NOT_DIFFERENTIABLE
        return
    lengths = FRAMES if case[0] in FRAMES_ONLY else LENGTHS
    found = []
    for sparse in (False, True):
        built = Built(helpers, case, lengths, sparse=sparse, moved=case[0] in SPARSE, still=SPARSE.get(case[0]))
        result = built.sketch("Sin", built.result) if built.result.kind.layout == "inputs" else built.result
        built.sketch("SumElements", result, name="total")
        found.append(helpers.gradients(built.sketch.network, "total", built.batch)[1])
    assert any(gradient.any() for gradient in found[0].values())
    for name, gradient in found[0].items():
        np.testing.assert_allclose(found[1][name], gradient, rtol=1e-10, atol=1e-12, err_msg=name)


NOT_DIFFERENTIABLE = {
    "Assign",
    "ClassificationError",
    "Diagonal",
    "EditDistanceError",
    "EpochAccumulator",
    "LabelsToGraph",
    "NDCG1Eval",
    "PerDimMVDeNorm",
    "PerDimMVNorm",
    "SampleNumber",
}
ALIGNMENTS = {"LabelsToGraph", "ForwardBackward", "EditDistanceError"}
RANKING = {"LambdaRank", "NDCG1Eval"}
OF_THE_RUN = {
    "Assign",
    "EnvironmentInput",
    "EpochAccumulator",
    "RandomLike",
    "RandomSample",
    "RandomSampleInclusionFrequency",
}
OF_SEQUENCES = {
    "Where",
    "PackedIndex",
    "GatherPacked",
    "ScatterPacked",
    "RepeatSteps",
    "AdditiveAttention",
    "AttentionWeights",
    "DotProductAttention",
}
OF_AXES = {"SampleNumber", "ToBatch", "ToSequence", "ToSequenceLike", "UnpackBatch", "UnpackSequence"}
ELSEWHERE = ALIGNMENTS | RANKING | OF_THE_RUN | OF_SEQUENCES | OF_AXES
"""Functions that test_alignments.py, test_ranking.py, test_run.py, test_sequences.py, test_attention.py and, of
tests/cntkpy, test_axes_operators.py, test_dynamic_axes.py and test_free_sizes.py test."""


def test_every_function_has_a_case():
    """By its declaration: whatever computes something from its inputs is in the table."""
    computing = {kind.name for kind in nodes.kinds() if kind.forward is not None or kind.time.delay}
    assert computing - ELSEWHERE == {nodes.find(case[1]).name for case in CASES}
    rest = [kind for kind in nodes.kinds() if kind.name not in computing and not kind.unsupported]
    own = ("LearnableParameter", "DynamicAxis")
    assert all(k.layout == "always" or k.precompute or k.makes or k.name in own for k in rest)
    assert {nodes.find(name).name for name in NOT_DIFFERENTIABLE} == {
        kind.name for kind in nodes.kinds() if not kind.differentiable
    }


def test_every_function_has_an_example():
    """It is a network as it stands, and has a node of the kind."""
    for kind in nodes.kinds():
        if kind.unsupported:
            assert not kind.example
            continue
        before, network = parse_ndl(EXAMPLE_NODES), parse_ndl(EXAMPLE_NODES + kind.example)
        network.validate()
        made = [node.operation for name, node in network.nodes.items() if name not in before.nodes]
        assert kind.operation in made, kind.example
        assert any(f"{name}(" in kind.example for name in kind.names), kind.example


def test_every_alias_makes_the_same_node(helpers):
    """Under each of its names, in any letter case."""
    by_kind = {nodes.find(case[1]).name: case for case in CASES}
    for kind in nodes.kinds():
        for alias in kind.aliases if kind.name in by_kind else ():
            case = by_kind[kind.name]
            for name in (alias, alias.upper(), alias.lower()):
                built = Built(helpers, (case[0], name, *case[2:]), LENGTHS)
                assert built.result.operation == kind.operation

"""Every kind of node as ONNX: the same values in onnxruntime, or a reason why it cannot be exported."""

import zlib

import numpy as np
import pytest

from cntkpy.networks import nodes
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.check import as_fed, random_data, run
from cntkpy.networks.onnx.export import Settings, export
from cntkpy.networks.onnx.model import to_model
from cntkpy.networks.onnx.table import REFUSED, RULES

from ..nodes.node_cases import CASES

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")
pytest.importorskip("onnxruntime")

SINGLE_ONLY = {
    *("Conv", "ConvTranspose", "AveragePool"),
    *("Tan", "Atan", "Sinh", "Cosh", "Asinh", "Asin", "Acos", "Acosh", "Atanh", "Erf"),
}
"""Operators without an implementation in double precision in onnxruntime; ONNX's own evaluator has one of most."""

SINGLE_EVERYWHERE = {"erf"}
"""Cases that ONNX's own evaluator computes in single precision, too."""

BOUNDS = {"float": 1e-5, "double": 1e-10}


def network_of(h, case, precision):
    """The network of a case, and the name of the node to export: a sum with data if the result depends on none."""
    name, kind, specs, options, _ = case
    s, operands = h.Sketch(precision, seed=zlib.crc32(name.encode())), []
    for index, spec in enumerate(specs):
        how, dims = (spec[0], spec[1:]) if isinstance(spec[0], str) else ("", spec)
        if how == "K":
            operands.append(s.constant(*dims))
        elif how in ("P", "PP"):
            operands.append(s.parameter(f"p{index}", *dims))
            operands[-1].value = np.abs(operands[-1].value) + (0.1 if how == "PP" else 0)
        else:
            operands.append(s.input(f"x{index}", *dims))
    result = s(kind, *operands, name="result", **options)
    s.network.validate()
    if not any(operand.has_layout for operand in operands):
        result = s("Plus", s.input("x", 1), result, name="sum")
    return s.network, result.name


def exported_model(network, name, precision):
    exported = export(network, ours.constants, Settings((name,), double=precision == "double"))
    model = to_model(exported, "0", {})
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    assert [one.name for one in inferred.graph.output] == [name]
    return exported, model


def assert_equal_values(exported, model, name, precision, computed=run):
    for data in random_data(exported, np.random.default_rng(7)):
        batch = ours.minibatch(exported.network, [name], data)
        expected = ours.values(exported.network, [name], batch)[name]
        expected = as_fed(exported, exported.network.find(name), expected)
        feeds = {node.name: as_fed(exported, node, data[node.name]) for node in exported.inputs}
        got = computed(model.SerializeToString(), feeds)[name]
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=BOUNDS[precision], atol=BOUNDS[precision])


def referenced(model, feeds):
    evaluator = reference.ReferenceEvaluator(model)
    return dict(zip(evaluator.output_names, evaluator.run(None, feeds), strict=True))


def is_exported(case):
    """Whether there is a rule, or the node depends on parameters alone."""
    return nodes.operation(case[1]).name in RULES or all(spec[0] == "P" for spec in case[2])


EXPORTED = [case for case in CASES if is_exported(case)]


@pytest.mark.parametrize("case", EXPORTED, ids=lambda case: case[0])
@pytest.mark.sampled
def test_values_in_single_precision(case, helpers):
    network, name = network_of(helpers, case, "float")
    assert_equal_values(*exported_model(network, name, "float"), name, "float")


@pytest.mark.thorough
@pytest.mark.parametrize("case", [one for one in EXPORTED if one[0] not in SINGLE_EVERYWHERE], ids=lambda case: case[0])
def test_values_in_double_precision(case, helpers):
    network, name = network_of(helpers, case, "double")
    exported, model = exported_model(network, name, "double")
    kinds = {operator.kind for operator in exported.graph.operators}
    computed = referenced if kinds & SINGLE_ONLY else run
    assert_equal_values(exported, model, name, "double", computed)


LEAVES = {"InputValue", "SparseInputValue", "LearnableParameter", "DynamicAxis", "EnvironmentInput"}
"""Operations without operands, which become inputs and initialisers, or vanish."""


def test_every_kind_has_a_rule_or_a_reason():
    known = {kind.operation for kind in nodes.kinds() if not kind.unsupported}
    assert known == LEAVES | set(RULES) | set(REFUSED)
    assert not set(RULES) & set(REFUSED)


def test_a_rule_stands_in_one_place():
    """With the kind, or in the module of rules of its family; not in both, and not beside a reason against it."""
    listed = list(nodes.tables("onnx_writing"))
    declared = [kind.name for kind in nodes.kinds() if kind.onnx]
    assert len(declared) >= 20
    assert sorted([*listed, *declared]) == sorted(RULES)


def test_few_kinds_are_refused():
    """At most 15 % of all, criteria and what Python's axes need included."""
    documented = [kind for kind in nodes.kinds() if not kind.unsupported and kind.operation not in LEAVES]
    refused = [kind.name for kind in documented if kind.operation in REFUSED]
    assert len(refused) <= 0.15 * len(documented), refused

"""Blocks, composites and primitive functions; recurrences that are closed later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError


def test_what_a_layer_makes_is_a_block() -> None:
    x = C.input_variable(3, name="x")
    z = C.layers.Dense(2, C.relu, name="hidden")(x + 1)
    assert (z.op_name, z.name, repr(z), z.is_block, z.is_composite) == (
        "Dense",
        "hidden",
        "Dense('hidden')",
        True,
        True,
    )
    assert [one.name for one in z.inputs] == ["W", "b", "x", ""]  # the last one is the 1
    primitive = z.root_function
    assert [one.name for one in primitive.inputs] == ["W", "b", ""] and primitive.inputs[2].op_name == "Plus"
    assert primitive == z and primitive.is_block and not primitive.is_composite and not primitive.is_primitive
    inside = z.block_root
    assert (inside.op_name, inside.is_block, inside.is_primitive) == ("ReLU", False, True)
    assert [one.op_name for one in inside.inputs] == ["Plus"]
    assert z.block_arguments_mapping == [(primitive.inputs[2], primitive.inputs[2])]
    data = np.ones((1, 3), np.float32)
    assert np.array_equal(inside.eval({x: data}), z.eval({x: data}))


def test_copies_of_blocks_are_blocks() -> None:
    x, other, hole = C.input_variable(3), C.input_variable(3, name="other"), C.placeholder()
    z = C.layers.Dense(2)(hole)
    copy = z.clone("clone", {hole: other})
    assert copy.op_name == "Dense" and copy.inputs[-1] == other
    assert z.replace_placeholders({hole: x}).inputs[-1] == x and z.is_block


LAYERS: dict[str, Any] = {
    "Dense": lambda: C.layers.Dense(2),
    "Convolution": lambda: C.layers.Convolution2D((3, 3), 2),
    "MaxPooling": lambda: C.layers.MaxPooling((2, 2)),
    "BatchNormalization": lambda: C.layers.BatchNormalization(),
    "LayerNormalization": lambda: C.layers.LayerNormalization(),
    "Dropout": lambda: C.layers.Dropout(0.5),
    "Stabilizer": lambda: C.layers.Stabilizer(),
    "own": lambda: C.layers.BlockFunction("own", "name")(lambda x: C.exp(x) + 1),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_block_has_the_name_of_its_layer(name: str) -> None:
    assert LAYERS[name]()(C.input_variable((2, 4, 4))).op_name == name


def test_operations_have_the_names_of_cntk_2() -> None:
    x = C.input_variable((2, 3))
    made = {
        "ReLU": C.relu(x), "StableSigmoid": C.sigmoid(x), "Cos": C.cos(x), "TransposeAxes": C.transpose(x, (1, 0)),
        "Splice": C.splice(x, x), "Select": C.element_select(x, x, x), "Plus": x + x, "Acos": C.acos(x),
        "SquaredError": C.squared_error(x, x),
    }  # fmt: skip
    assert {one.root_function.op_name for one in made.values()} == set(made)
    assert (x + x).root_function.is_primitive and not (x + x).is_block


def test_as_block_hides_a_composite() -> None:
    hole, x = C.placeholder(), C.input_variable(2)
    inside = C.exp(hole) * 2
    block = C.as_block(inside, [(hole, x)], "Twice", "instance")
    assert (block.op_name, block.name, block.inputs[-1]) == ("Twice", "instance", x)
    assert block.block_arguments_mapping == [(hole, x)]
    np.testing.assert_allclose(block.eval({x: np.zeros((1, 2), np.float32)}), [[2, 2]])
    assert C.as_composite(block.root_function, "named").is_composite and block.name == "named"
    with pytest.raises(UserError, match=r"the placeholder .* is not among the pairs"):
        C.as_block(C.exp(C.placeholder()), [], "Exp")
    with pytest.raises(UserError, match="is not a block"):
        _ = (x + 1).block_root


def test_the_depth_of_a_search_counts_blocks() -> None:
    x = C.input_variable(3)
    z = C.layers.Sequential([C.layers.Dense(4, C.tanh), C.layers.Dense(2)])(x)

    def names(depth: int) -> list[str]:
        return [one.op_name for one in C.logging.graph.get_node_outputs(z, depth)]

    assert names(0) == ["Dense", "Dense"]
    assert sorted(names(-1)) == ["Dense", "Dense", "Plus", "Plus", "Tanh", "Times", "Times"]
    found = C.logging.graph.depth_first_search(z, lambda one: one.is_parameter)
    assert sorted(one.name for one in found) == ["W", "W", "b", "b"]
    by_distance = C.logging.graph.depth_first_search(z, lambda one: True, 0, sort_by_distance=True)
    assert by_distance[0] == z and by_distance[-1] == x


def test_attributes() -> None:
    x = C.input_variable(1000)
    z = C.dropout(x, 0.9, seed=3)
    assert z.attributes == {"dropoutRate": 0.9, "rngSeed": 3, "rngOffset": 0}
    z.set_attribute("dropoutRate", 0.5)
    kept = z.forward({x: np.ones((1, 1000), np.float32)}, keep_for_backward=[z.output])[1][z.output]
    assert 0.4 < (kept != 0).mean() < 0.6
    with pytest.raises(UserError, match=r"no attribute 'dropoutrate' that could be changed.*\n.*dropoutRate"):
        z.set_attribute("dropoutrate", 0.1)
    assert C.slice(x, 0, 1, 3).attributes["beginIndex"] == 1


def test_a_declaration_is_resolved_later() -> None:
    x = C.sequence.input_variable(1)
    state = C.layers.ForwardDeclaration("state")
    total = C.sequence.past_value(state) + x
    state.resolve_to(total)
    data = [np.array([[1], [2], [3]], np.float32)]
    assert total.eval({x: data})[0].reshape(-1).tolist() == [1, 3, 6]


def test_a_model_with_blocks_is_saved(tmp_path: Path) -> None:
    x = C.input_variable(3)
    z = C.layers.Dense(2)(x)
    z.save(tmp_path / "m")
    data = np.ones((1, 3), np.float32)
    loaded = C.load_model(tmp_path / "m")
    assert np.array_equal(loaded.eval({loaded.arguments[0]: data}), z.eval({x: data}))


def test_custom_attributes_keep_what_is_set_by_item(tmp_path: Any) -> None:
    """W12, P26: `f.custom_attributes['k'] = v` was lost."""
    f = C.plus(C.input_variable(1), 1)
    f.custom_attributes["a"] = 1
    f.custom_attributes = {"b": [2]}
    f.custom_attributes["c"] = "x"
    f.custom_attributes.update(d=None)
    assert f.custom_attributes == {"b": [2], "c": "x", "d": None}
    del f.custom_attributes["b"]
    assert f.custom_attributes.pop("d") is None and f.custom_attributes.setdefault("e", 5) == 5
    with pytest.raises(UserError, match="kept as JSON"):
        f.custom_attributes["f"] = object()
    with pytest.raises(UserError, match="custom attributes are a dictionary, not 3"):
        f.custom_attributes = 3  # pyright: ignore
    assert f.custom_attributes == {"c": "x", "e": 5}
    f.save(str(tmp_path / "m"))
    assert C.load_model(str(tmp_path / "m")).custom_attributes == {"c": "x", "e": 5}


def test_a_block_of_two_outputs() -> None:
    """P24."""
    hole, x = C.placeholder(), C.input_variable(2)
    block = C.as_block(C.combine([hole + 1, hole * 2]), [(hole, x)], "Both", "ignored")
    assert [one.op_name for one in block.outputs] == ["Both", "Both"]
    one, two = block.eval({x: [[1, 2]]}).values()
    assert one.tolist() == [[2, 3]] and two.tolist() == [[2, 4]]


def test_layers_have_parameters_before_they_are_applied() -> None:
    """P25: of sizes that are not known yet; they are the same afterwards."""
    layer = C.layers.For(range(2), lambda i: C.layers.Dense(3))
    before = layer.parameters
    assert sorted(one.shape for one in before) == [(-1, 3), (-1, 3), (3,), (3,)]
    z = layer(C.input_variable(4))
    assert set(layer.parameters) == set(before) == set(z.parameters)
    assert sorted(one.shape for one in before) == [(3,), (3,), (3, 3), (4, 3)]


def test_all_outputs_of_a_block_are_one_block() -> None:
    p, x = C.placeholder(), C.input_variable(2)
    block = C.as_block(C.combine([p + 1, p * 2]), [(p, x)], "Both")
    assert (block.op_name, block.is_block, len(block.outputs)) == ("Both", True, 2)
    assert block.block_arguments_mapping == [(p, x)] and not block.block_root.is_block
    assert [output.op_name for output in block.outputs] == ["Both", "Both"]
    first, second = block.eval({x: np.float32([[1, 2]])}).values()
    assert first.tolist() == [[2, 3]] and second.tolist() == [[2, 4]]
    assert C.combine([block.outputs[0], x + 3]).is_block is False


def test_a_trainer_of_a_function_of_several_outputs() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    z = C.times(x, C.parameter(init=np.eye(2, dtype=np.float32)))
    model = C.combine([z, z * 2])
    trainer = C.Trainer(model, C.squared_error(z, y), [C.sgd(model.parameters, 0.0)])
    done, values = trainer.train_minibatch({x: np.float32([[1, 2]]), y: np.float32([[0, 0]])}, outputs=model.outputs)
    assert done and trainer.previous_minibatch_loss_average == 5 and trainer.model == model
    assert [value.tolist() for value in values.values()] == [[[1, 2]], [[2, 4]]]

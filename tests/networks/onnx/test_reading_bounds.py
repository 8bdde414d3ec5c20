"""What a small ONNX file may ask for: sizes are bounded before it is computed; no input ends in a traceback."""

import random
import time
import tracemalloc

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.model_file import load_model
from cntkpy.networks.nodes.onnx_support import building
from cntkpy.networks.onnx.files import as_bytes

from .test_reading import OTHERS, changed, loaded, model_of, outside
from .test_reading_exporters import POOLS, classifier, keras_cell
from .test_reading_quantised import MODELS, quantised

onnx = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper

MOST_BYTES, MOST_SECONDS = 160e6, 10.0
"""Of Python's and NumPy's memory, and of a clock, for a file of some kB."""


class Watched:
    """Memory and time of a block, which must be within the bounds above."""

    def __enter__(self):
        tracemalloc.start()
        self.begin = time.monotonic()

    def __exit__(self, *problem):
        peak, seconds = tracemalloc.get_traced_memory()[1], time.monotonic() - self.begin
        tracemalloc.stop()
        assert peak < MOST_BYTES and seconds < MOST_SECONDS, (peak, seconds)


def doubled(count):
    """Concat of a constant with itself, over and over."""
    operators = [("Concat", [f"c{index}", f"c{index}"], [f"c{index + 1}"], {"axis": 0}) for index in range(count)]
    return [*operators, ("Mul", ["x", f"c{count}"], ["y"], {})]


def large(*dims):
    return np.array(dims, np.int64)


VECTOR, IMAGE = {"x": ["n", 4]}, {"x": ["n", 1, 8, 8]}
MANY = 1 << 29
OVER = "more than a file of that size may ask for"
TOO_MUCH = {
    "Pad of data": ([("Pad", ["x", "p"], ["y"], {})], VECTOR, {"p": large(0, MANY, 0, 0)}, f"{OVER}|of each sample"),
    "Pad of a constant": (
        [("Pad", ["c", "p"], ["d"], {}), ("Mul", ["x", "d"], ["y"], {})],
        VECTOR,
        {"c": np.ones(4, np.float32), "p": large(0, MANY)},
        OVER,
    ),
    "Expand": ([("Expand", ["x", "s"], ["y"], {})], {"x": ["n", 1]}, {"s": large(1, MANY)}, OVER),
    "Expand of a constant": (
        [("Expand", ["c", "s"], ["d"], {}), ("Mul", ["x", "d"], ["y"], {})],
        VECTOR,
        {"c": np.ones(1, np.float32), "s": large(MANY)},
        OVER,
    ),
    "Concat": (doubled(29), VECTOR, {"c0": np.ones(4, np.float32)}, OVER),
    "Tile of a constant": (
        [("Tile", ["c", "s"], ["d"], {}), ("Mul", ["x", "d"], ["y"], {})],
        VECTOR,
        {"c": np.ones(4, np.float32), "s": large(MANY)},
        OVER,
    ),
    "Tile": ([("Tile", ["x", "s"], ["y"], {})], VECTOR, {"s": large(1, MANY)}, "times is not supported"),
    "ConstantOfShape": (
        [("ConstantOfShape", ["s"], ["d"], {}), ("Mul", ["x", "d"], ["y"], {})],
        VECTOR,
        {"s": large(1 << 20, 1 << 20)},
        OVER,
    ),
    "Range": (
        [("Range", ["a", "b", "c"], ["d"], {}), ("Mul", ["x", "d"], ["y"], {})],
        VECTOR,
        {"a": np.array(0), "b": np.array(1 << 40), "c": np.array(1)},
        OVER,
    ),
    "OneHot": (
        [("OneHot", ["i", "s", "v"], ["d"], {}), ("Mul", ["x", "d"], ["y"], {})],
        VECTOR,
        {"i": np.arange(4), "s": large(MANY), "v": np.array([0.0, 1.0], np.float32)},
        OVER,
    ),
    "Gather of a constant": (
        [
            ("ConstantOfShape", ["s"], ["i"], {"value": helper.make_tensor("v", 7, [1], [0])}),
            ("Gather", ["c", "i"], ["d"], {}),
            ("Mul", ["x", "d"], ["y"], {}),
        ],
        VECTOR,
        {"s": large(1 << 20), "c": np.ones((1, 4096), np.float32)},
        OVER,
    ),
    "outer product": (
        [
            ("ConstantOfShape", ["s"], ["a"], {}),
            ("Transpose", ["a"], ["b"], {}),
            ("Mul", ["a", "b"], ["d"], {}),
            ("Mul", ["x", "d"], ["y"], {}),
        ],
        VECTOR,
        {"s": large(1, 1 << 16)},
        OVER,
    ),
    "product of constants": (
        [
            ("ConstantOfShape", ["s"], ["a"], {}),
            ("Transpose", ["a"], ["b"], {}),
            ("MatMul", ["b", "a"], ["d"], {}),
            ("Mul", ["x", "d"], ["y"], {}),
        ],
        VECTOR,
        {"s": large(1, 1 << 16)},
        OVER,
    ),
    "Resize": (
        [("Resize", ["x", "", "s"], ["y"], {"mode": "linear"})],
        IMAGE,
        {"s": np.array([1, 1, 1e7, 1], np.float32)},
        "becomes one of",
    ),
    "Reshape": ([("Reshape", ["x", "s"], ["y"], {})], VECTOR, {"s": large(0, MANY, MANY)}, "cannot have the shape"),
    "kernel below 0": (
        [("MaxPool", ["x"], ["y"], {"kernel_shape": [-(1 << 30), 2]})],
        IMAGE,
        {},
        "each must be 1 or more",
    ),
    "kernel of 0": ([("AveragePool", ["x"], ["y"], {"kernel_shape": [0, 2]})], IMAGE, {}, "each must be 1 or more"),
    "kernel of another number of axes": (
        [("MaxPool", ["x"], ["y"], {"kernel_shape": [2]})],
        IMAGE,
        {},
        "a kernel of 1 axes",
    ),
    "huge kernel": (
        [
            (
                "AveragePool",
                ["x"],
                ["y"],
                {"kernel_shape": [1 << 30, 2], "pads": [1 << 30, 0, 0, 0], "count_include_pad": 1},
            )
        ],
        IMAGE,
        {},
        f"is too long for it|{OVER}|of each sample",
    ),
    "strides below 0": (
        [("Conv", ["x", "w"], ["y"], {"strides": [-1, 1]})],
        IMAGE,
        {"w": np.ones((1, 1, 2, 2), np.float32)},
        "each must be 1 or more",
    ),
    "dilations of 0": (
        [("Conv", ["x", "w"], ["y"], {"dilations": [0, 1]})],
        IMAGE,
        {"w": np.ones((1, 1, 2, 2), np.float32)},
        "each must be 1 or more",
    ),
    "paddings below 0": (
        [("ConvTranspose", ["x", "w"], ["y"], {"pads": [-(1 << 40), 0, 0, 0]})],
        IMAGE,
        {"w": np.ones((1, 1, 2, 2), np.float32)},
        "negative paddings",
    ),
    "kernel_shape that is not that of the kernel": (
        [("Conv", ["x", "w"], ["y"], {"kernel_shape": [3, 3]})],
        IMAGE,
        {"w": np.ones((1, 1, 2, 2), np.float32)},
        r"kernel_shape = \[3, 3\] for kernels of \[2, 2\]",
    ),
    "size of LRN": ([("LRN", ["x"], ["y"], {"size": -5})], IMAGE, {}, "size = -5 is not supported"),
    "k of TopK": ([("TopK", ["x", "k"], ["y"], {})], VECTOR, {"k": large(MANY)}, "k = 536870912 of an axis of 4"),
    "parts of Split": ([("Split", ["x", "s"], ["y", "z"], {"axis": 1})], VECTOR, {"s": large(-4, 8)}, "parts of"),
    "equal axes of Unsqueeze": (
        [("Unsqueeze", ["x", "a"], ["y"], {})],
        VECTOR,
        {"a": large(1, 1)},
        "names an axis twice",
    ),
    "axis of Softmax": ([("Softmax", ["x"], ["y"], {"axis": 7})], VECTOR, {}, "there is no axis 7"),
    "number of Gather": (
        [("Gather", ["x", "i"], ["y"], {"axis": 1})],
        VECTOR,
        {"i": large(4)},
        "there is no axis 4 among 4",
    ),
    "axes of Squeeze": ([("Squeeze", ["x", "a"], ["y"], {})], VECTOR, {"a": large(9)}, "there is no axis 9"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_asks_for_too_much_is_refused_before_it_is_computed(name, tmp_path):
    operators, inputs, arrays, message = TOO_MUCH[name]
    model = model_of(operators, inputs, ["y"], arrays, opset=17)
    assert model.ByteSize() < 3000 or name == "Gather of a constant"
    with Watched(), pytest.raises(UserError, match=message):
        loaded(model, tmp_path)


def test_loops_inside_of_loops_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "LEAST_OPERATORS", 500)
    info, node = helper.make_tensor_value_info, helper.make_node

    def body(inner):
        made = (
            [node("Loop", ["many", "", "v"], ["w"], body=inner)] if inner is not None else [node("Neg", ["v"], ["w"])]
        )
        names = [info("i", 7, []), info("c", 9, []), info("v", 1, None)]
        return helper.make_graph(
            [*made, node("Identity", ["c"], ["go"])], "b", names, [info("go", 9, []), info("w", 1, None)]
        )

    def renamed(graph, suffix):
        for one in graph.node:
            one.input[:] = [name + suffix if name in ("v", "c") else name for name in one.input]
            one.output[:] = [name + suffix for name in one.output]
        for one in (*graph.input, *graph.output):
            one.name += suffix
        return graph

    nested = None
    for depth in range(4):
        nested = renamed(body(nested), str(depth))
    model = model_of([("Loop", ["many", "", "x"], ["y"], {"body": nested})], VECTOR, ["y"], {"many": np.array(200)})
    with Watched(), pytest.raises(UserError, match=r"nor a number up to|too many nodes"):
        loaded(model, tmp_path)


def test_a_large_model_may_have_larger_constants(tmp_path):
    """The bound grows with the file."""
    count = 1 << 22
    operators = [*doubled(2), ("Neg", ["c2"], ["n"], {}), ("MatMul", ["x", "w"], ["z"], {})]
    arrays = {"c0": np.ones((1, count), np.float32), "w": np.ones((4, 3), np.float32)}
    network = loaded(model_of(operators, VECTOR, ["z"], arrays), tmp_path)
    assert [one.name for one in network.groups["output"]] == ["z"]


@pytest.mark.parametrize("location", ["w\0.bin", "\0", "a\nb", "w.bin\0/../../secret"])
def test_a_location_that_is_no_name_of_a_file(location, tmp_path):
    with pytest.raises(UserError, match="which is no name of a file"):
        loaded(changed(outside(location)), tmp_path)


def test_initialisers_that_share_the_bytes_of_a_file_many_times(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(24))

    def change(model):
        outside("w.bin")(model)
        for index in range(5):
            tensor = model.graph.initializer.add()
            tensor.CopyFrom(model.graph.initializer[0])
            tensor.name = f"w{index}"

    with pytest.raises(UserError, match=r"more than 4 times as large as 'w\.bin'"):
        loaded(changed(change), tmp_path)


def test_initialisers_in_what_is_no_file(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="which is no file"):
        loaded(changed(outside("folder")), tmp_path)


# ---- mutated models


def seeds():
    draw = np.random.default_rng(1)
    pools = [model_of(one, {"x": ["n", 2, 5, 5]}, ["y"], {}, opset=19) for one in POOLS.values()]
    others = [make(draw)[0] for make in OTHERS]
    return [*others, *pools[:4], keras_cell("time"), keras_cell(6), classifier(3, 3, "classlabels_ints")]


def assert_no_traceback(models, draw, count, path):
    """Models with a few changes are read or refused by a message, within the bounds of memory and time."""
    from .mutations import mutated

    read = 0
    for _ in range(count):
        path.write_bytes(mutated(draw.choice(models), draw).SerializeToString())
        with Watched():
            try:
                load_model(path)
                read += 1
            except UserError as problem:
                assert str(problem)
    assert 0.05 * count < read < 0.9 * count  # neither all of them damaged, nor all of them as they were


@pytest.mark.thorough
def test_mutated_models(tmp_path):
    assert_no_traceback(seeds(), random.Random(53), 250, tmp_path / "m.onnx")


@pytest.mark.thorough
def test_many_mutated_models(tmp_path):
    models = [*seeds(), *(quantised(name, way, tmp_path) for name in MODELS for way in ("dynamic", "QDQ", "QOperator"))]
    assert_no_traceback(models, random.Random(54), 1500, tmp_path / "m.onnx")


def test_bytes_of_a_model_in_any_order(tmp_path):
    content, draw = bytearray(as_bytes(keras_cell(6))), random.Random(55)
    for _ in range(200):
        changed_ = bytearray(content)
        for _ in range(draw.randint(1, 6)):
            changed_[draw.randrange(len(changed_))] = draw.randrange(256)
        (tmp_path / "m.onnx").write_bytes(changed_)
        with Watched():
            try:
                load_model(tmp_path / "m.onnx")
            except UserError as problem:
                assert str(problem)

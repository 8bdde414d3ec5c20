"""Functions of Python that are saved as ONNX models and loaded again: shapes, dynamic axes and values stay."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C

onnx = pytest.importorskip("onnx")

SEQUENCES = [np.arange(12, dtype=np.float32).reshape(3, 4) / 5 - 1, np.ones((3, 4), np.float32)]
SAMPLES = np.array([[1, -2, 3, 0], [4, 4, -1, 2]], np.float32)

OF_SEQUENCES = {
    "elements": lambda x: C.relu(x) + C.constant([1, 2, 3, 4]),
    "dense": C.layers.Dense(3),
    "normalised": C.layers.LayerNormalization(),
    "a number at each step": lambda x: C.reduce_sum(x, C.Axis.all_static_axes()),
    "softmax": C.sequence.softmax,
    "largest": C.sequence.reduce_max,
    "first at every step": lambda x: C.sequence.broadcast_as(C.sequence.first(x), x) * x,
    "steps from 1": lambda x: C.sequence.slice(x, 1, 0),
    "all steps but the last": lambda x: C.sequence.slice(x, 0, -1),
    "the second step": lambda x: C.sequence.slice(x, 1, 2),
    "the step before the last one": lambda x: C.sequence.slice(x, -2, -1),
    "two steps from the end": lambda x: C.sequence.slice(x, -2, 0) * 2,
    "the first step of all": lambda x: C.sequence.is_first(x) * C.reduce_sum(x),
    "the last step of all": lambda x: C.sequence.is_last(x) * C.reduce_sum(x),
    "unfolded": lambda x: C.layers.UnfoldFrom(C.layers.Dense(4))(C.sequence.first(x), x),
}
OF_SAMPLES = {
    "arg max": C.argmax,
    "distance": lambda x: C.cosine_distance(x, C.constant([1, 2, 3, 4])),
    "criterion": lambda x: C.squared_error(x, 2 * x),
    "the input": lambda x: C.sum([x]),
    "the mean of the minibatch": lambda x: x - C.reduce_mean(x, C.Axis.default_batch_axis()),
    "the largest element of the minibatch": lambda x: C.reduce_max(x, C.Axis.all_axes()),
}


def _again(function, path):
    function.save(path, format=C.ModelFormat.ONNX)
    onnx.checker.check_model(str(path), full_check=True)
    return C.Function.load(path, format=C.ModelFormat.ONNX)


@pytest.mark.parametrize("name", OF_SEQUENCES)
@pytest.mark.sampled
def test_sequences(name, tmp_path):
    function = OF_SEQUENCES[name](C.sequence.input_variable(4))
    again = _again(function, tmp_path / "f.onnx")
    assert again.shape == function.shape
    assert len(again.arguments[0].dynamic_axes) == 2
    assert len(again.output.dynamic_axes) == len(function.output.dynamic_axes)
    expected, values = function.eval(SEQUENCES), again.eval(SEQUENCES)
    np.testing.assert_allclose(np.array(values), np.array(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_samples(name, tmp_path):
    function = OF_SAMPLES[name](C.input_variable(4))
    again = _again(function, tmp_path / "f.onnx")
    assert again.shape == function.shape
    np.testing.assert_allclose(again.eval(SAMPLES), function.eval(SAMPLES), rtol=1e-6)


WITHOUT_DATA = {
    "elements": lambda: C.abs([-1.0, 2.0]),
    "a number": lambda: C.reduce_sum([[1.0, 2.0], [3.0, 4.0]]) + 1,
    "a parameter": lambda: C.parameter((2, 3), init=2) * 3,
    "two outputs": lambda: C.top_k([1.0, 5.0, 2.0], 2),
}


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_functions_without_data(name, tmp_path):
    function = WITHOUT_DATA[name]()
    again = _again(function, tmp_path / "f.onnx")
    assert again.arguments == () and [o.shape for o in again.outputs] == [o.shape for o in function.outputs]
    expected, values = function.eval(), again.eval()
    if isinstance(expected, dict):
        expected, values = list(expected.values()), list(values.values())
    assert all(np.array_equal(a, b) for a, b in zip(np.atleast_1d(expected), np.atleast_1d(values), strict=True))


LAYERS = C.layers
OF_ANY_PICTURE = {
    "convolution": LAYERS.Convolution2D((3, 3), 4, pad=True, activation=C.relu),
    "pooling and normalisation": LAYERS.Sequential(
        [LAYERS.Convolution2D((3, 3), 4, strides=2), LAYERS.MaxPooling((2, 2), (2, 2)), LAYERS.BatchNormalization(1)]
    ),
    "means of channels of half a picture": LAYERS.Sequential(
        [LAYERS.AveragePooling((2, 2), (2, 2)), LAYERS.GlobalAveragePooling(), LAYERS.Dense(2)]
    ),
    "largest elements": LAYERS.GlobalMaxPooling(),
    "joined": lambda x: C.splice(x, x / (1 + C.reduce_sum(x * x, axis=[1, 2])), axis=0),
}


@pytest.mark.parametrize("name", OF_ANY_PICTURE)
def test_functions_of_pictures_of_any_size(name, tmp_path):
    function = OF_ANY_PICTURE[name](C.input_variable((3, C.FreeDimension, C.FreeDimension)))
    again = _again(function, tmp_path / "f.onnx")
    assert again.shape == function.shape and again.arguments[0].shape == (3, C.FreeDimension, C.FreeDimension)
    for size in (8, 9), (13, 10):
        pictures = np.random.default_rng(1).normal(size=(2, 3, *size)).astype(np.float32)
        values = again.eval(pictures)
        np.testing.assert_allclose(values, function.eval(pictures), rtol=1e-5, atol=1e-5)
        onnxruntime = pytest.importorskip("onnxruntime")
        session = onnxruntime.InferenceSession(str(tmp_path / "f.onnx"), providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(session.run(None, {"Input": pictures})[0], values, rtol=1e-4, atol=1e-5)


def test_operators_that_depend_on_a_free_size_are_refused(tmp_path):
    x = C.input_variable((3, C.FreeDimension, C.FreeDimension))
    padded = C.layers.Convolution2D((3, 3), 4, strides=2, pad=True)(x)  # the padding of an even size is another one
    with pytest.raises(ValueError, match="operators of this function depend on sizes that are known with data only"):
        padded.save(tmp_path / "f.onnx", format=C.ModelFormat.ONNX)
    assert not (tmp_path / "f.onnx").exists()


def test_a_file_that_says_other_free_sizes_is_refused(tmp_path):
    function = C.layers.Convolution2D((3, 3), 4)(C.input_variable((3, C.FreeDimension, 5)))
    _again(function, tmp_path / "f.onnx")
    model = onnx.load(tmp_path / "f.onnx")
    (entry,) = [entry for entry in model.metadata_props if entry.key == "cntkpy.free"]
    for text in ("[]", '{"free_31_59": 3}', '{"free_31_59": [0, 1]}', '{"free_31_59": [100000, 3]}'):
        entry.value = text
        onnx.save(model, tmp_path / "f.onnx")
        with pytest.raises(ValueError, match="at most two: time and batch"):
            C.load_model(tmp_path / "f.onnx")


def test_an_output_without_data_beside_one_of_data(tmp_path):
    x = C.input_variable(2)
    again = _again(C.combine([C.abs([-1.0, 2.0]), x + 1]), tmp_path / "f.onnx")
    first, second = again.eval([[3, 4]]).values()
    assert first.tolist() == [1, 2] and second.tolist() == [[4, 5]]


def test_values_of_a_sequence_and_of_one_step(tmp_path):
    x, y = C.sequence.input_variable(4), C.input_variable(4)
    again = _again(x * y + C.sequence.broadcast_as(y, x), tmp_path / "f.onnx")
    values = again.eval(dict(zip(again.arguments, (SEQUENCES, SAMPLES), strict=True)))
    expected = [sequence * sample + sample for sequence, sample in zip(SEQUENCES, SAMPLES, strict=True)]
    np.testing.assert_allclose(values, expected, rtol=1e-6)


@pytest.mark.parametrize("of_sequence", [True, False])
def test_attention_of_one_query(of_sequence, tmp_path):
    """Of a sample, or of the last step of a sequence."""
    keys = C.sequence.input_variable(4, sequence_axis=C.Axis("source"), name="keys")
    query = C.sequence.input_variable(2, name="query") if of_sequence else C.input_variable(2, name="query")
    state = C.sequence.last(query) if of_sequence else query
    function = C.layers.Dense(2)(C.layers.AttentionModel(3)(keys, state))
    again = _again(function, tmp_path / "f.onnx")
    queries = [np.float32([[1, 2], [0, 1]]), np.float32([[3, -1]])] if of_sequence else np.float32([[1, 2], [3, -1]])
    expected = function.eval({keys: SEQUENCES, query: queries})
    values = again.eval({again.arguments[0]: SEQUENCES, again.arguments[1]: queries})
    np.testing.assert_allclose(values, expected, rtol=1e-5)


@pytest.mark.parametrize("stabilized", [True, False])
def test_attention_over_another_sequence(stabilized, tmp_path):
    keys = C.sequence.input_variable(4, sequence_axis=C.Axis("source"), name="keys")
    query = C.sequence.input_variable(2, name="query")
    attention = C.layers.AttentionModel(3, enable_self_stabilization=stabilized)
    function = C.layers.Dense(2)(attention(C.layers.Recurrence(C.layers.GRU(3))(keys), query))
    again = _again(function, tmp_path / "f.onnx")
    assert [argument.name for argument in again.arguments] == ["keys", "query"]
    assert [node.operation for node in again.network.nodes.values()].count("AdditiveAttention") == 1
    queries = [np.float32([[1, 2], [0, 1]]), np.float32([[3, -1]])]
    expected = function.eval({keys: SEQUENCES, query: queries})
    values = again.eval(dict(zip(again.arguments, (SEQUENCES, queries), strict=True)))
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


def test_a_step_that_is_repeated_is_one_expand(tmp_path):
    x = C.sequence.input_variable(4)
    C.sequence.broadcast_as(C.input_variable(4), x).save(tmp_path / "f.onnx", format=C.ModelFormat.ONNX)
    kinds = [node.op_type for node in onnx.load(tmp_path / "f.onnx").graph.node]
    assert kinds.count("Expand") == 1 and "Scan" not in kinds and "ScatterND" not in kinds
    assert len(kinds) < 8

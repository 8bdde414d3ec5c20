"""Functions of Python saved as ONNX models: onnxruntime computes what `eval` does."""

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config.base.diagnostics import UserError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

L = C.layers
STEPS, BATCH = 5, 3


def image_classifier():
    convolution = L.Convolution2D((3, 3), 6, activation=C.relu, pad=True)
    layers = [convolution, L.MaxPooling((2, 2), strides=2), L.BatchNormalization(map_rank=1), L.Dense(3)]
    return L.Sequential(layers)(C.input_variable((3, 8, 8)))


def tagger():
    return L.Sequential([L.Recurrence(L.LSTM(5)), L.Recurrence(L.GRU(4)), L.Dense(3)])(C.sequence.input_variable(4))


def classifier_of_sequences():
    return L.Sequential([L.Recurrence(L.LSTM(5)), C.sequence.last, L.Dense(3)])(C.sequence.input_variable(4))


def both_ways():
    x = C.sequence.input_variable(4)
    return C.splice(L.Recurrence(L.LSTM(5))(x), L.Recurrence(L.LSTM(5), go_backwards=True)(x))


def stabilised():
    cell = L.LSTM(5, enable_self_stabilization=True, use_peepholes=True)
    return L.Recurrence(cell)(C.sequence.input_variable(4))


def broadcast():
    x = C.sequence.input_variable(4)
    return C.sequence.broadcast_as(C.sequence.reduce_max(x), x) + x


def sliced():
    return C.sequence.slice(C.sequence.input_variable(4), 1, -1) * 2


MADE = [
    *(lambda: L.Sequential([L.Dense(5, C.relu), L.Dense(3)])(C.input_variable(4)), image_classifier),
    *(tagger, classifier_of_sequences, both_ways, stabilised, broadcast, sliced),
    lambda: L.ConvolutionTranspose((3, 3), 6, strides=2, pad=True)(C.input_variable((3, 8, 8))),
    lambda: L.LayerNormalization()(C.input_variable(4)),
    lambda: C.elu(C.input_variable(4)) + C.selu(C.input_variable(4)),
]


def _is_sequence(variable):
    return len(variable.dynamic_axes) > 1


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__.strip("<>"))
@pytest.mark.sampled
def test_values(make, tmp_path):
    function, path = make(), tmp_path / "f.onnx"
    function.save(path, format=C.ModelFormat.ONNX)
    onnx.checker.check_model(str(path), full_check=True)
    random, arguments, feeds = np.random.default_rng(0), {}, {}
    session = onnxruntime.InferenceSession(path)
    names = [one.name for one in session.get_inputs()]
    for argument, name in zip(function.arguments, names, strict=True):
        dims = (BATCH, STEPS) if _is_sequence(argument) else (BATCH,)
        data = random.normal(size=(*dims, *argument.shape)).astype(np.float32)
        arguments[argument] = list(data) if _is_sequence(argument) else data
        feeds[name] = data.swapaxes(0, 1) if _is_sequence(argument) else data
    found, expected = session.run(None, feeds)[0], np.array(function.eval(arguments))
    expected = expected.swapaxes(0, 1) if _is_sequence(function.output) else expected.reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_criterion_has_a_value_for_each_sample(tmp_path):
    x, y = C.input_variable(3, name="x"), C.input_variable(3, name="y")
    function = C.combine([C.cross_entropy_with_softmax(x * 2, y), C.classification_error(x, y)])
    function.save(tmp_path / "f.onnx", format=C.ModelFormat.ONNX)
    labels = np.eye(3, dtype=np.float32)[[0, 2, 1, 0]]
    data = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    session = onnxruntime.InferenceSession(tmp_path / "f.onnx")
    found = session.run(None, {"x": data, "y": labels})
    for one, expected in zip(found, function.eval({x: data, y: labels}).values(), strict=True):
        np.testing.assert_allclose(one.reshape(-1), expected, rtol=1e-5, atol=1e-6)


WINDOWS = {
    "all windows": {},
    "padded": {"pad": True},
    "strides": {"strides": 2},
    "padded strides": {"strides": 3, "pad": True},
    "dilated": {"dilation": 2, "strides": 2},
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.sampled
def test_convolutions_along_sequences(name, tmp_path):
    """W11: which steps have a window is known by their number, in sequences of one length."""
    x = C.sequence.input_variable(3, name="x")
    function = L.SequentialConvolution((3,), 4, activation=C.tanh, **WINDOWS[name])(x)
    function.save(tmp_path / "f.onnx", format=C.ModelFormat.ONNX)
    session = onnxruntime.InferenceSession(tmp_path / "f.onnx")
    for steps in (5, 6, 9):
        data = np.random.default_rng(steps).normal(size=(2, steps, 3)).astype(np.float32)
        found, expected = session.run(None, {"x": data.swapaxes(0, 1)})[0], np.array(function.eval({x: list(data)}))
        np.testing.assert_allclose(found, expected.swapaxes(0, 1), rtol=1e-5, atol=1e-5)


def test_outputs_keep_their_names(tmp_path):
    """W11: criteria too, which have a value for each sample there."""
    x, y = C.input_variable(2, name="x"), C.input_variable(2, name="y")
    z = L.Dense(2, name="z")(x)
    criteria = [C.cross_entropy_with_softmax(z, y, name="ce"), C.classification_error(z, y, name="errs")]
    C.combine([z, *criteria]).save(tmp_path / "f.onnx", format=C.ModelFormat.ONNX)
    assert [one.name for one in onnx.load(tmp_path / "f.onnx").graph.output] == ["z", "ce", "errs"]
    criteria[0].save(tmp_path / "g.onnx", format=C.ModelFormat.ONNX)
    assert [one.name for one in onnx.load(tmp_path / "g.onnx").graph.output] == ["ce"]


def test_random_numbers_are_an_error(tmp_path):
    x = C.input_variable(3)
    with pytest.raises(UserError, match="it draws random numbers"):
        (x + C.random.normal_like(x)).save(tmp_path / "f.onnx", format=C.ModelFormat.ONNX)
    assert not (tmp_path / "f.onnx").exists()

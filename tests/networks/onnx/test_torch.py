"""Models that PyTorch's exporter writes, read and computed here. It runs where PyTorch is installed."""

import numpy as np
import pytest

from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.reading.load import build
from cntkpy.networks.onnx.reading.parse import read_model

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
nn = torch.nn

STEPS, BATCH = 5, 3
LENGTHS = [5, 4, 2]


class First(nn.Module):
    """The steps of a recurrent layer, or what is made of its last state."""

    def __init__(self, layer, head=None):
        super().__init__()
        self.layer, self.head = layer, head

    def forward(self, x):
        steps, state = self.layer(x)
        return steps if self.head is None else self.head(state[-1])


class Tagger(nn.Module):
    """Words to classes."""

    def __init__(self):
        super().__init__()
        self.words, self.layer, self.out = nn.Embedding(11, 6), nn.LSTM(6, 5, bidirectional=True), nn.Linear(10, 3)

    def forward(self, x):
        return torch.log_softmax(self.out(self.layer(self.words(x))[0]), -1)


class Packed(nn.Module):
    """A recurrent layer of sequences of different lengths."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, lengths):
        steps, _ = self.layer(nn.utils.rnn.pack_padded_sequence(x, lengths))
        return nn.utils.rnn.pad_packed_sequence(steps)[0]


class Attention(nn.Module):
    """Of all rows of a sample to all of them."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        shares = torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2) / 6**0.5, -1)
        return shares @ self.v(x)


class Transformer(nn.Module):
    """Attention of all steps to all of them, in heads, beside its input, and a dense layer; of the older exporter."""

    def __init__(self, batch_first=False, weights=False):
        super().__init__()
        self.look, self.weights = nn.MultiheadAttention(4, 2, batch_first=batch_first), weights
        self.norm, self.dense = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x):
        seen = self.norm(x + self.look(x, x, x, need_weights=self.weights)[0])
        return seen + torch.relu(self.dense(seen))


class Looking(nn.Module):
    """The same without heads."""

    def __init__(self, fused):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))
        self.fused = fused

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.fused:
            return nn.functional.scaled_dot_product_attention(q, k, v)
        return torch.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v


class Residual(nn.Module):
    """A convolution beside what it takes."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4))

    def forward(self, x):
        return torch.relu(x + self.inner(x))


def convolutions():
    layers = [nn.Conv2d(4, 6, 3, padding=1, stride=2), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(24, 3), nn.Dropout(), nn.Softmax(-1))


def depthwise():
    layers = [nn.Conv2d(4, 8, 3, groups=4, dilation=2, padding=2), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8, 3), nn.Hardswish())


def larger():
    return nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), nn.Upsample(scale_factor=2))


def normalised():
    return nn.Sequential(nn.GroupNorm(2, 4), nn.ReflectionPad2d(1), nn.MaxPool2d(3, 2, padding=1, dilation=2))


def dense():
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.SiLU(), nn.Linear(8, 2), nn.Softplus())


VECTOR, IMAGE, ROWS, SEQUENCE = (7, 6), (2, 4, 9, 8), (2, 5, 6), (STEPS, BATCH, 4)
SAMPLES, TIME_FIRST, BATCH_FIRST = {0: "batch"}, {0: "time", 1: "batch"}, {0: "batch", 1: "time"}
MODELS = {
    "dense": (dense, VECTOR, SAMPLES),
    "convolutions": (convolutions, IMAGE, SAMPLES),
    "residual": (Residual, IMAGE, SAMPLES),
    "depthwise": (depthwise, IMAGE, SAMPLES),
    "larger": (larger, IMAGE, SAMPLES),
    "normalised": (normalised, IMAGE, SAMPLES),
    "one axis": (lambda: nn.Sequential(nn.Conv1d(5, 6, 3, padding=1), nn.ELU(), nn.AvgPool1d(2)), ROWS, SAMPLES),
    "attention": (Attention, ROWS, SAMPLES),
    "lstm": (lambda: First(nn.LSTM(4, 5, num_layers=2, bidirectional=True)), SEQUENCE, TIME_FIRST),
    "lstm, batch first": (lambda: First(nn.LSTM(4, 5, batch_first=True)), SEQUENCE, BATCH_FIRST),
    "gru": (lambda: First(nn.GRU(4, 5, num_layers=2, batch_first=True), nn.Linear(5, 3)), SEQUENCE, BATCH_FIRST),
    "rnn": (lambda: First(nn.RNN(4, 5, nonlinearity="relu")), SEQUENCE, TIME_FIRST),
    "attention over time": (lambda: Looking(False), SEQUENCE, BATCH_FIRST),
    "fused attention": (lambda: Looking(True), SEQUENCE, BATCH_FIRST),
    "transformer": (Transformer, SEQUENCE, TIME_FIRST),
    "transformer, batch first": (lambda: Transformer(True), SEQUENCE, BATCH_FIRST),
    "transformer, with weights": (lambda: Transformer(weights=True), SEQUENCE, TIME_FIRST),
    "words": (Tagger, (STEPS, BATCH), TIME_FIRST),
    "packed lstm": (lambda: Packed(nn.LSTM(4, 5, bidirectional=True)), SEQUENCE, TIME_FIRST),
    "packed gru": (lambda: Packed(nn.GRU(4, 5)), SEQUENCE, TIME_FIRST),
}


def arranged(array, value, times):
    """`(T, S, ...)` as an array of the axes of a value."""
    words = [one for one in value.axes if isinstance(one, str)]
    array = array.reshape(*array.shape[:2], *value.dims)
    if len(words) == 1:
        return array[0]
    return array if words[0] in times else array.swapaxes(0, 1)


@pytest.mark.parametrize("name", MODELS)
def test_values(name, tmp_path):
    make, shape, axes = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    x = torch.randint(0, 11, shape) if name == "words" else torch.randn(shape)
    packed = name.startswith("packed")
    given = (x, torch.tensor(LENGTHS)) if packed else (x,)
    varying = {"x": axes, "lengths": {0: "batch"}} if packed else {"x": axes}
    path = tmp_path / "m.onnx"
    options = {"input_names": [*varying], "output_names": ["y"], "dynamic_axes": varying, "dynamo": False}
    torch.onnx.export(model, given, str(path), opset_version=17, **options)
    network, graph = build(read_model(path), "model")
    times = graph.building.times
    data = np.eye(11)[x.numpy()] if name == "words" else x.numpy()
    batch = Batch({"x": data[None]})
    if len(axes) == 2:
        data = data if axes == TIME_FIRST else data.swapaxes(0, 1)
        ends = {network["x"].axis: np.array(LENGTHS)} if packed else None
        batch = ours.minibatch(network, ["y"], {"x": data}, ends)
    found = arranged(ours.values(network, ["y"], batch)["y"], graph.values["y"], times)
    expected = model(*given).detach().numpy()
    there = np.arange(STEPS)[:, None] < LENGTHS if packed else ...
    assert found.shape == expected.shape
    np.testing.assert_allclose(found[there], expected[there], rtol=1e-4, atol=1e-5)

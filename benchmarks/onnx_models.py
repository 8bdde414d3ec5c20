"""Time to compute the outputs of three networks, compared with the same networks exported and computed by onnxruntime.

Both take the same minibatches of single precision from NumPy arrays and give NumPy arrays. Rounds are interleaved;
times are medians of rounds, ratios medians of the ratios within rounds.

    python benchmarks/onnx_models.py [--rounds N]
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import peers

SECONDS = 0.3
MLP = """\
x = Input(784, tag=feature)
h = RectifiedLinear(Plus(Times(Parameter(200, 784), x), Parameter(200)))
z = Softmax(Plus(Times(Parameter(10, 200), h), Parameter(10)))
"""
CONVOLUTIONS = """\
x = ImageInput(28, 28, 1, imageLayout=CHW, tag=feature)
c1 = RectifiedLinear(Convolution(Parameter(16, 25), x, 5, 5, 16, 1, 1, zeroPadding=true, imageLayout=CHW))
p1 = MaxPooling(c1, 2, 2, 2, 2, imageLayout=CHW)
c2 = RectifiedLinear(Convolution(Parameter(32, 400), p1, 5, 5, 32, 1, 1, zeroPadding=true, imageLayout=CHW))
p2 = MaxPooling(c2, 2, 2, 2, 2, imageLayout=CHW)
z = Softmax(Plus(Times(Parameter(10, 1568), p2), Parameter(10)))
"""
LSTM = """\
x = Input(40, tag=feature)
h = OptimizedRNNStack(Parameter(128, 0), x, hiddenDims=128, numLayers=2)
z = Softmax(Plus(Times(Parameter(10, 128), h), Parameter(10)))
"""
LOOP = """\
x = Input(40, tag=feature)
g = Plus(Times(Parameter(512, 40), x), Parameter(512))
p = PastValue(128, h, defaultHiddenActivity=0)
c = PastValue(128, m, defaultHiddenActivity=0)
s = Plus(g, Times(Parameter(512, 128), p))
k = ElementTimes(Sigmoid(RowSlice(128, 128, s)), c)
m = Plus(k, ElementTimes(Sigmoid(RowSlice(0, 128, s)), Tanh(RowSlice(256, 128, s))))
h = ElementTimes(Sigmoid(RowSlice(384, 128, s)), Tanh(m))
z = Softmax(Plus(Times(Parameter(10, 128), h), Parameter(10)))
"""
CASES = [
    ("MLP 784-200-10, 32", MLP, (1, 32, 784)),
    ("convolutional 28x28, 64", CONVOLUTIONS, (1, 64, 1, 28, 28)),
    ("LSTM 2 x 128, 32 sequences of 30 (operator LSTM)", LSTM, (30, 32, 40)),
    ("LSTM 128 of nodes, 32 sequences of 30 (Scan)", LOOP, (30, 32, 40)),
]


def functions(text: str, shape: tuple[int, ...]) -> tuple[Callable[[], np.ndarray], Callable[[], np.ndarray]]:
    """What cntkpy and what onnxruntime compute of one minibatch."""
    import onnxruntime

    from cntkpy.networks.arrays.lazy import jax
    from cntkpy.networks.builders.ndl.front_end import parse_ndl
    from cntkpy.networks.compile.evaluate import compile_network, network_parameters, network_state
    from cntkpy.networks.onnx import ours
    from cntkpy.networks.onnx.export import Settings, export
    from cntkpy.networks.onnx.files import as_bytes
    from cntkpy.networks.onnx.model import to_model

    network = parse_ndl(text, precision="float", diagnostics=[]).validate()
    data = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    batch = ours.minibatch(network, ["z"], {"x": data})
    given = jax.device_put((network_parameters(network), network_state(network)))
    compiled = jax.jit(compile_network(network, ["z"]))

    def mine() -> np.ndarray:
        return np.asarray(compiled(*given, batch)[0]["z"])

    exported = export(network, ours.constants, Settings(("z",)))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = peers.cores()
    session = onnxruntime.InferenceSession(as_bytes(to_model(exported, "", {})), options)
    fed = data if len(exported.axes) > 1 else data[0]

    def theirs() -> np.ndarray:
        return np.asarray(session.run(["z"], {"x": fed})[0])

    np.testing.assert_allclose(mine().reshape(theirs().shape), theirs(), rtol=1e-3, atol=1e-4)
    return mine, theirs


def seconds(function: Callable[[], np.ndarray]) -> peers.Seconds:
    """Per call."""
    count = 0

    def often() -> None:
        nonlocal count
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            function()
            count += 1

    found = peers.timed(often)
    return peers.Seconds(found.clock / count, found.processor / count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    import onnxruntime

    print("## Exported models")
    print(f"Outputs of a minibatch, single precision, microseconds; onnxruntime {onnxruntime.__version__}.")
    print("Medians of interleaved rounds; ratios in brackets: of processor time.\n")
    print("| network, minibatch | cntkpy | onnxruntime | / onnxruntime |\n|---|---:|---:|---:|")
    for title, text, shape in CASES:
        pair = functions(text, shape)
        mine, theirs = zip(*([seconds(one) for one in pair] for _ in range(rounds)), strict=True)
        cells = [f"{1e6 * peers.median(one):.0f}" for one in (mine, theirs)]
        print(f"| {title} | {' | '.join(cells)} | {peers.ratio(mine, theirs)} |", flush=True)


if __name__ == "__main__":
    main()

"""Time to compute the outputs of three networks, compared with the same networks exported and computed by onnxruntime.

Both take the same minibatches of single precision from NumPy arrays and give NumPy arrays. Rounds are interleaved;
times are medians of rounds, ratios medians of the ratios within rounds.

    python benchmarks/onnx_models.py [--rounds N]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import peers

SECONDS = 0.3
MINIBATCHES = 64
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


def functions(text: str, shape: tuple[int, ...], folder: Path) -> list[Callable[[], np.ndarray]]:
    """The outputs of a minibatch: by the action `write`, by `Function.eval`, and by onnxruntime.

    The action gets `MINIBATCHES` at once, as a reader gives them; onnxruntime computes one after the other.
    """
    import onnxruntime

    from cntkpy.compat.cntk import Function, ModelFormat
    from cntkpy.networks.builders.ndl.front_end import parse_ndl
    from cntkpy.networks.onnx import ours
    from cntkpy.networks.onnx.export import Settings, export
    from cntkpy.networks.onnx.files import as_bytes
    from cntkpy.networks.onnx.model import to_model
    from cntkpy.readers.minibatch import Layout, Minibatch
    from cntkpy.trainers.evaluation.evaluator import Evaluator
    from cntkpy.trainers.evaluation.write import node_values

    network = parse_ndl(text, precision="float", diagnostics=[]).validate()
    steps, slots, *_ = shape
    data = np.random.default_rng(1).normal(size=shape).astype(np.float32)

    order = np.arange(slots)
    sequences = np.stack([order, order, np.zeros_like(order), np.full_like(order, steps)], axis=1)
    flat = data.reshape(steps, slots, -1)
    read = [Minibatch({"x": flat}, {"x": Layout(steps, slots, sequences)}) for _ in range(MINIBATCHES)]
    source: Any = SimpleNamespace(minibatch_size=steps * slots, samples=None, minibatches=lambda: iter(read))
    evaluator = Evaluator(network, [network.find("z")], summed=False)

    def by_action() -> np.ndarray:
        written = list(node_values(evaluator, source))
        return np.stack(written[-1].values[0], axis=1)

    exported = export(network, ours.constants, Settings(("z",)))
    model = as_bytes(to_model(exported, "", {}))
    path = folder / "model.onnx"
    path.write_bytes(model)
    function = Function.load(str(path), format=ModelFormat.ONNX)
    given = [np.ascontiguousarray(data[:, slot]) for slot in range(slots)] if steps > 1 else data[0]
    arguments = {function.arguments[0]: given}

    def by_function() -> np.ndarray:
        values = function.eval(arguments)
        return np.stack(values, axis=1) if steps > 1 else values[None]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = peers.cores()
    session = onnxruntime.InferenceSession(model, options)
    fed = data if len(exported.axes) > 1 else data[0]

    def theirs() -> np.ndarray:
        return np.asarray(session.run(["z"], {"x": fed})[0])

    for ours_ in (by_action, by_function):
        np.testing.assert_allclose(ours_().reshape(theirs().shape), theirs(), rtol=1e-3, atol=1e-4)
    return [by_action, by_function, theirs]


def seconds(function: Callable[[], np.ndarray], minibatches: int) -> peers.Seconds:
    """Per minibatch, of which a call computes several."""
    count = 0

    def often() -> None:
        nonlocal count
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            function()
            count += minibatches

    found = peers.timed(often)
    return peers.Seconds(found.clock / count, found.processor / count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    import onnxruntime

    print("## Exported models")
    print(f"Outputs of a minibatch, single precision, microseconds; onnxruntime {onnxruntime.__version__}.")
    print(f"`write` gets {MINIBATCHES} minibatches at once, as a reader gives them; text is not written.")
    print("Medians of interleaved rounds; ratios in brackets: of processor time.\n")
    print("| network, minibatch | `write` | `Function.eval` | onnxruntime | write / onnxruntime | eval / onnxruntime |")
    print("|---|---:|---:|---:|---:|---:|")
    for title, text, shape in CASES:
        with tempfile.TemporaryDirectory() as folder:
            every = functions(text, shape, Path(folder))
        shares = (MINIBATCHES, 1, 1)
        pairs = list(zip(every, shares, strict=True))
        action, function, theirs = zip(*([seconds(*pair) for pair in pairs] for _ in range(rounds)), strict=True)
        cells = [f"{1e6 * peers.median(times):.0f}" for times in (action, function, theirs)]
        cells += [peers.ratio(times, theirs) for times in (action, function)]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

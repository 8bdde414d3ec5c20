"""What local response normalisation adds to a small convolutional network: both forms that BrainScript has for it.

The network without it is the peer. Rounds are interleaved; a ratio is the median of those of each round, in processor
time. "No window" has the same power of each element's own square: what the elements alone take.
"""

import argparse
import resource
import statistics
from collections.abc import Callable

import numpy as np

from cntkpy.cntk_config import parse
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.compile.evaluate import Settings
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.rules.updates import momentum
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

SIZE, SAMPLES, MINIBATCHES = 28, 64, 4
FORMS = {
    "none": "LRN (x) = x",
    "no window": "LRN (x) = { out = x .* Exp (-0.75 * Log (1 + 0.0005 * (x .* x))) }.out",
    "average pooling over 5 channels": """LRN (x) = {
        mean = Pooling (x .* x, 'average', (1:1:5), stride=1, autoPadding=(false:false:true))
        out = x .* Exp (-0.75 * Log (1 + 0.0005 * mean))
    }.out""",
    "convolution with a fixed kernel": """LRN (x) = {
        W = ParameterTensor {(1:1:5:1), learningRateMultiplier = 0, initValue = 0.0001}
        squares = SplitDimension (x .* x, 3, 1)
        sum = Convolution (W, squares, (1:1:5), mapDims = 1, stride = 1, sharing = true, autoPadding = true)
        out = x .* Exp (-0.75 * Log (1 + FlattenDimensions (sum, 3, 2)))
    }.out""",
}
NETWORK = """
{form}
x = Input ({size}:{size}:3)
y = Input (10)
h1 = LRN (ConvolutionalLayer {{32, (5:5), activation = ReLU, pad = true}} (x))
p1 = MaxPoolingLayer {{(3:3), stride = (2:2)}} (h1)
h2 = LRN (ConvolutionalLayer {{64, (5:5), activation = ReLU, pad = true}} (p1))
z = DenseLayer {{10}} (MaxPoolingLayer {{(3:3), stride = (2:2)}} (h2))
ce = CrossEntropyWithSoftmax (y, z)
featureNodes = (x) ; labelNodes = (y) ; criterionNodes = (ce) ; outputNodes = (z)
"""


def training(form: str) -> Callable[[], None]:
    """A function that trains on some minibatches."""
    text = NETWORK.format(form=form, size=SIZE)
    network = build_network(parse(f"BrainScriptNetworkBuilder = {{ {text} }}"), "float", SeedCounter())
    step = CompiledStep(network, [network["ce"]], momentum())
    random, minibatches = np.random.default_rng(0), []
    layout = Layout(1, SAMPLES, np.array([[i, i, 0, 1] for i in range(SAMPLES)]))
    for _ in range(MINIBATCHES):
        pictures = random.random((1, SAMPLES, 3 * SIZE * SIZE), np.float32)
        labels = np.eye(10, dtype=np.float32)[random.integers(0, 10, SAMPLES)][None]
        minibatches.append(Minibatch({"x": pictures, "y": labels}, {"x": layout, "y": layout}))
    stacks = list(step.batcher(SAMPLES).stacks(iter(minibatches), lambda number: False))
    settings = EpochSettings(0.01, 0.9 ** (1 / SAMPLES), Settings(), 1)

    def run() -> None:
        for stack in stacks:
            np.asarray(step.run(stack, settings, 0))

    return run


def seconds(run: Callable[[], None]) -> float:
    """Processor time of a call."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    run()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int = 7) -> str:
    """The table as Markdown."""
    runs = {name: training(form) for name, form in FORMS.items()}
    for run in runs.values():
        run()
    found = [{name: seconds(run) for name, run in runs.items()} for _ in range(rounds)]
    rows: list[str] = []
    for name in FORMS:
        time = statistics.median(one[name] for one in found) / MINIBATCHES
        ratio = statistics.median(one[name] / one["none"] for one in found)
        rows.append(f"| {name} | {1e3 * time:.1f} | {ratio:.2f} |")
    return "\n".join(
        [
            "## Local response normalisation",
            f"Two convolutions with it, of 32 and 64 channels, on pictures of {SIZE} x {SIZE}; training, single "
            f"precision, minibatches of {SAMPLES}; milliseconds of processor time per minibatch.",
            "",
            "| normalisation | ms | / none |",
            "|---|---:|---:|",
            *rows,
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    print(main(parser.parse_args().rounds))

"""Training from Python beside the runner: time per minibatch on the digits network, in one process.

The runner trains the network of a configuration; a loop calls `train_minibatch` for each minibatch of a
`MinibatchSource`; a `TrainingSession` reads the same source. All three train the same network on the same minibatches.
What they do before and in the first pass over the data (reading the file, compiling) is not counted. They take turns;
the ratios are medians of those of a round, because a machine is not equally busy all the time.

    python benchmarks/python_training.py [--epochs 30] [--rounds 7]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import tempfile
import time
from pathlib import Path

from cntk_config import parse
from cntkpy.training import Trainer, TrainingSession, input_variable, layers, learners, ops, schedules
from networks.builders.build import build_network
from networks.graph.initialize import SeedCounter
from readers import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs, create_reader
from trainers.loop.sgd import Training
from trainers.parameters.sgd import SGDParameters

DATA = Path(__file__).parent.parent / "sample_configs" / "data" / "digits_train.ctf"
SIZE, SAMPLES = 20, 1400
NETWORK = """
    SimpleNetworkBuilder = [ layerSizes=64:100:10 ; layerTypes=Sigmoid ; trainingCriterion=CrossEntropyWithSoftmax
                             evalCriterion=ErrorPrediction ; applyMeanVarNorm=false ]
"""


def streams() -> StreamDefs:
    return StreamDefs(x=StreamDef(field="features", shape=64), y=StreamDef(field="labels", shape=10))


def source(epochs: int) -> MinibatchSource:
    return MinibatchSource(CTFDeserializer(str(DATA), streams()), max_sweeps=epochs)


class Clock:
    """Seconds by the wall and of the processor, all threads of the process together."""

    def __init__(self) -> None:
        self._began = self.now()

    @staticmethod
    def now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def passed(self) -> tuple[float, float]:
        wall, processor = self.now()
        return wall - self._began[0], processor - self._began[1]


class Runner:
    """A configuration: an epoch of so many passes over the data, after one to compile."""

    def __init__(self, epochs: int, folder: Path) -> None:
        text = f"""
            {NETWORK}
            SGD = [ modelPath="{folder}/m" ; maxEpochs=2 ; numMBsToShowResult=0 ; minibatchSize={SIZE}
                    learningRatesPerSample=0.01 ; momentumPerMB=0.9 ; epochSize={SAMPLES * epochs} ]
            reader = [ readerType=CNTKTextFormatReader ; file="{DATA}" ; randomize=true
                       input=[features=[dim=64;format=dense] ; labels=[dim=10;format=dense]] ]
        """
        section = parse(text)
        self.network = build_network(section, "float", SeedCounter())
        self.reader = create_reader(section.section("reader"), "float")
        self.sgd = SGDParameters(section.section("SGD"))

    def run(self) -> tuple[float, float]:
        """Time of the second epoch, with its files."""
        times: list[tuple[float, float]] = []
        training = Training(self.sgd, self.network, self.reader, device=None)
        saved = training._save
        training._save = lambda *given: (times.append(Clock.now()), saved(*given))[1]  # type: ignore
        training.run()
        return times[-1][0] - times[0][0], times[-1][1] - times[0][1]


def parts():
    x, y = input_variable(64, name="features"), input_variable(10, name="labels")
    z = layers.Dense(10)(layers.Dense(100, activation=ops.sigmoid)(x))
    criteria = ops.cross_entropy_with_softmax(z, y), ops.classification_error(z, y)
    rate = schedules.learning_rate_per_sample(0.01)
    return Trainer(z, criteria, learners.momentum_sgd(z.parameters, rate, 0.9, unit_gain=True)), x, y


def loop(epochs: int) -> tuple[float, float]:
    trainer, x, y = parts()
    data = source(epochs + 1)
    clock = None
    map_ = {x: data.streams.x, y: data.streams.y}
    while minibatch := data.next_minibatch(SIZE, map_):
        trainer.train_minibatch(minibatch)
        if clock is None and trainer.total_number_of_sweeps:
            trainer.collect()
            clock = Clock()
    trainer.collect()
    assert clock is not None
    return clock.passed()


def session(epochs: int) -> tuple[float, float]:
    trainer, x, y = parts()
    data = source(epochs + 1)
    map_ = {x: data.streams.x, y: data.streams.y}
    TrainingSession(trainer, data, SIZE, map_, max_sweeps=1).train()
    clock = Clock()
    TrainingSession(trainer, data, SIZE, map_).train()
    return clock.passed()


def run(epochs: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        return Runner(epochs, Path(folder)).run()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epochs", type=int, default=30)
    arguments.add_argument("--rounds", type=int, default=7)
    given = arguments.parse_args()
    count = given.epochs * -(-SAMPLES // SIZE)
    ways = {"runner": run, "train_minibatch": loop, "TrainingSession": session}
    for way in ways.values():
        way(1)  # compiles
    rounds = [{name: way(given.epochs) for name, way in ways.items()} for _ in range(given.rounds)]
    print("## Training from Python")
    print("| digits, minibatches of 20 | ms per minibatch | of the runner's | by processor time |")
    print("|---|---:|---:|---:|")
    for name in ways:
        seconds = statistics.median(one[name][0] for one in rounds)
        wall, processor = (statistics.median(one[name][k] / one["runner"][k] for one in rounds) for k in (0, 1))
        print(f"| {name} | {1000 * seconds / count:.3f} | {wall:.2f} | {processor:.2f} |")


if __name__ == "__main__":
    main()

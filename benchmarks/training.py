"""Time per minibatch of the digits network: `cntkpy` with a configuration, training from Python, and JAX by hand.

    python benchmarks/python_training.py [--epochs 30] [--rounds 7]

All train the same network on the same minibatches in one process, in turns. `cntkpy` reads, trains and writes its
model as in a run; a loop calls `train_minibatch` for each minibatch of a `MinibatchSource`; a `TrainingSession` reads
the same source. The first pass over the data (reading the file, compiling) is not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cntkpy.cntk_config import parse
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.readers import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs, create_reader
from cntkpy.trainers.fronts.config.training import TrainingLoop
from cntkpy.trainers.log.reporting import Reporting
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.training import Trainer, TrainingSession, input_variable, layers, learners, ops, schedules

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
        training = TrainingLoop(self.sgd, self.network, self.reader, reporting=Reporting(device=None))
        saved = training.files.save_epoch
        training.files.save_epoch = lambda *given: (times.append(Clock.now()), saved(*given))[1]  # type: ignore
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
            trainer.queue.collect()
            clock = Clock()
    trainer.queue.collect()
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


@functools.cache
def hand_written() -> Callable[[int], tuple[float, float]]:
    """The same step by hand in JAX: one jitted function per minibatch with donated arguments, on arrays in memory."""
    import jax
    import jax.numpy as jnp

    lines = DATA.read_text().splitlines()
    fields = [dict(part.split(" ", 1) for part in line.split("|")[1:]) for line in lines]
    x = np.array([np.array(f["features"].split(), np.float32) for f in fields])
    y = np.array([np.array(f["labels"].split(), np.float32) for f in fields])
    batches = [(x[i : i + SIZE], y[i : i + SIZE]) for i in range(0, len(x), SIZE)]
    random = np.random.default_rng(1)

    def loss(p, x, y):
        z = jax.nn.sigmoid(x @ p["W0"] + p["B0"]) @ p["W1"] + p["B1"]
        wrong = jnp.sum(jnp.argmax(z, -1) != jnp.argmax(y, -1))
        return -jnp.sum(y * jax.nn.log_softmax(z)), wrong

    def step(p, v, x, y, rate, m):
        (value, wrong), g = jax.value_and_grad(loss, has_aux=True)(p, x, y)
        v = jax.tree.map(lambda v, g: m * v + (1 - m) * rate * g, v, g)
        return jax.tree.map(lambda p, v: p - v, p, v), v, value, wrong

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def run(epochs: int) -> tuple[float, float]:
        p = {
            "W0": jnp.asarray(random.normal(size=(64, 100)) * 0.1, jnp.float32),
            "B0": jnp.zeros(100, jnp.float32),
            "W1": jnp.asarray(random.normal(size=(100, 10)) * 0.1, jnp.float32),
            "B1": jnp.zeros(10, jnp.float32),
        }
        v = jax.tree.map(jnp.zeros_like, p)
        value = None
        clock = Clock()
        for _ in range(epochs):
            for a, b in batches:
                p, v, value, _ = compiled(p, v, a, b, np.float32(0.005), np.float32(0.9))
        assert value is not None
        value.block_until_ready()
        return clock.passed()

    return run


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epochs", type=int, default=30)
    arguments.add_argument("--rounds", type=int, default=7)
    given = arguments.parse_args()
    count = given.epochs * -(-SAMPLES // SIZE)
    ways = {
        "JAX by hand, the step only": hand_written(),
        "`cntkpy`": run,
        "`train_minibatch`": loop,
        "`TrainingSession`": session,
    }
    for way in ways.values():
        way(1)  # compiles
    rounds = [{name: way(given.epochs) for name, way in ways.items()} for _ in range(given.rounds)]
    print("## Training loop\nThe digits network, minibatches of 20, reading included.\n")
    print("| training | microseconds per minibatch | / JAX | / JAX, processor time |")
    print("|---|---:|---:|---:|")
    peer = next(iter(ways))
    for name in ways:
        seconds = statistics.median(one[name][0] for one in rounds)
        wall, processor = (statistics.median(one[name][k] / one[peer][k] for one in rounds) for k in (0, 1))
        print(f"| {name} | {1e6 * seconds / count:.0f} | {wall:.2f} | {processor:.2f} |")


if __name__ == "__main__":
    main()

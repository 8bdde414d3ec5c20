"""Time per minibatch of the digits network: `cntkpy` with a configuration, training from Python, and JAX by hand.

    python benchmarks/training.py [--epochs 30] [--rounds 7]

All train the same network on the same minibatches in one process, in turns. `cntkpy` reads, trains and writes its
model as in a run; a loop calls `train_minibatch` for each minibatch of a `MinibatchSource`; a `TrainingSession` reads
the same source. The first pass over the data (reading the file, compiling) is not counted.

A second table has a classifier of sequences (Dense(32), LSTM(64), last state, Dense(5)) on 100 random minibatches, the
loss read after each, in processes of its own: with empty caches, where compiling counts, with full ones, and by hand in
PyTorch on one thread, on packed and on padded sequences. Imports are not counted. PyTorch is left out where it is not
installed, see peers.py.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peers

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


FEATURES, CLASSES = 40, 5


def sequences() -> list[tuple[list[np.ndarray], np.ndarray]]:
    """100 minibatches of 8 to 32 sequences of 3 to 59 steps, and the class of each."""
    random = np.random.default_rng(0)
    minibatches = []
    for _ in range(100):
        count = random.integers(8, 33)
        x = [random.standard_normal((steps, FEATURES), np.float32) for steps in random.integers(3, 60, count)]
        minibatches.append((x, random.integers(0, CLASSES, count)))
    return minibatches


def classifier() -> tuple[float, float]:
    """Time of the program: network, trainer and minibatches."""
    import jax.numpy as jnp

    import cntkpy.compat.cntk as C

    jnp.zeros(1).block_until_ready()
    data, one_hot = sequences(), np.eye(CLASSES, dtype=np.float32)
    clock = Clock()
    x, y = C.sequence.input_variable(FEATURES), C.input_variable(CLASSES)
    parts = [C.layers.Dense(32), C.layers.Recurrence(C.layers.LSTM(64)), C.sequence.last, C.layers.Dense(CLASSES)]
    z = C.layers.Sequential(parts)(x)
    criteria = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    trainer = C.Trainer(z, criteria, C.sgd(z.parameters, C.learning_parameter_schedule(0.01)))
    for sample, label in data:
        trainer.train_minibatch({x: sample, y: one_hot[label]})
        assert np.isfinite(trainer.previous_minibatch_loss_average)
    return clock.passed()


def classifier_in_pytorch(packed: bool) -> tuple[float, float]:
    """The same by hand, a second time: the first one loads what PyTorch needs."""
    peers.available("torch")
    import torch  # pyright: ignore[reportMissingImports]
    from torch.nn.utils import rnn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    data = sequences()

    def train() -> tuple[float, float]:
        clock = Clock()
        dense, lstm, last = torch.nn.Linear(FEATURES, 32), torch.nn.LSTM(32, 64), torch.nn.Linear(64, CLASSES)
        parameters = [*dense.parameters(), *lstm.parameters(), *last.parameters()]
        sgd = torch.optim.SGD(parameters, lr=0.01)
        for x, y in data:
            lengths = torch.tensor([len(sample) for sample in x])
            hidden = dense(rnn.pad_sequence([torch.from_numpy(sample) for sample in x]))
            if packed:
                _, (states, _) = lstm(rnn.pack_padded_sequence(hidden, lengths, enforce_sorted=False))
                state = states[0]
            else:
                state = lstm(hidden)[0][lengths - 1, torch.arange(len(x))]
            loss = torch.nn.functional.cross_entropy(last(state), torch.from_numpy(y))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            loss.item()
        return clock.passed()

    train()
    return train()


PROGRAMS: dict[str, Callable[[], tuple[float, float]]] = {
    "cntkpy": classifier,
    "packed": functools.partial(classifier_in_pytorch, True),
    "padded": functools.partial(classifier_in_pytorch, False),
}


def in_a_process(name: str, cache: str) -> tuple[float, float]:
    """Times of a program in a process of its own, with this folder for compiled programs."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache, "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, __file__, "--program", name]
    wall, processor = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    return wall, processor


def programs(rounds: int) -> list[str]:
    """The lines of the second table."""
    times: dict[str, list[tuple[float, float]]] = {"empty": [], "full": [], "packed": [], "padded": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for name, of_rounds in times.items():
                of_rounds.append(in_a_process(name if name in PROGRAMS else "cntkpy", cache))
    lines = [
        "| classifier of sequences | seconds | of the processor | / PyTorch, packed | / PyTorch, padded |",
        "|---|---:|---:|---:|---:|",
    ]
    titles = {"empty": "`train_minibatch`, empty caches", "full": "`train_minibatch`, full caches"}
    titles |= {"packed": "PyTorch, packed", "padded": "PyTorch, padded"}
    for name, title in titles.items():
        wall, processor = (statistics.median(seconds[k] for seconds in times[name]) for k in (0, 1))
        ratios = [
            statistics.median(a[1] / b[1] for a, b in zip(times[name], times[peer], strict=True))
            for peer in ("packed", "padded")
        ]
        lines.append(f"| {title} | {wall:.2f} | {processor:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    return lines


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epochs", type=int, default=30)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument(
        "--program", choices=sorted(PROGRAMS), help="print the times of one program of the second table"
    )
    given = arguments.parse_args()
    if given.program:
        print(json.dumps(PROGRAMS[given.program]()))
        return
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
    if peers.available("torch"):
        print("", *programs(given.rounds), sep="\n")


if __name__ == "__main__":
    main()

"""Time per minibatch of the digits network: the whole trainer, reading included, beside the same step by hand in JAX.

The reader is in a thread of its own, as in a run.

Both train the network of sample_configs/digits.cntk on the same minibatches from the same start, in single precision.
By hand means: one jitted function per minibatch with donated arguments, on minibatches that lie ready in memory.

    python benchmarks/training.py [--rounds 15]
"""

import argparse
import logging
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from cntk_config import parse

SAMPLES = Path(__file__).parent.parent / "sample_configs"
SIZE, EPOCHS = 20, 5
MINIBATCHES = 70
CONFIG = """
SimpleNetworkBuilder = [ layerSizes = 64:100:10 ; layerTypes = Sigmoid ; trainingCriterion = CrossEntropyWithSoftmax
    evalCriterion = ErrorPrediction ; uniformInit = true ]
SGD = [ modelPath = "{folder}/m" ; maxEpochs = {epochs} ; minibatchSize = {size} ; learningRatesPerMB = 0.1
    momentumPerMB = 0.9 ; numMBsToShowResult = 0 ]
reader = [ readerType = CNTKTextFormatReader ; file = "{data}"
    input = [ features = [ dim = 64 ; format = dense ] ; labels = [ dim = 10 ; format = dense ] ] ]
"""


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=15)
    given = arguments.parse_args()
    logging.getLogger("cntkpy").setLevel(logging.ERROR)
    rows = {"cntkpy, whole trainer": cntkpy_epochs(), "by hand in JAX, step only": hand_written()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    for _ in range(given.rounds):
        for name, run in rows.items():
            began = time.process_time()
            seconds = run()
            times[name].append((seconds, (time.process_time() - began) / (EPOCHS * MINIBATCHES)))
    base = times["by hand in JAX, step only"]
    print("| digits network, minibatch 20 | time per minibatch | ratio | processor time | ratio |")
    print("|---|---:|---:|---:|---:|")
    for name, both in times.items():
        cells = [name]
        for which in (0, 1):  # ratios of a round, which what else the machine does disturbs least
            ratio = statistics.median(one[which] / other[which] for one, other in zip(both, base, strict=True))
            cells += [f"{1e6 * statistics.median(one[which] for one in both):.0f} us", f"{ratio:.2f}"]
        print(f"| {' | '.join(cells)} |")


def cntkpy_epochs():
    """A function that trains some epochs and returns the seconds per minibatch."""
    from networks.builders.build import build_network
    from networks.graph.initialize import SeedCounter
    from readers import create_reader
    from trainers.evaluation.evaluate import minibatches
    from trainers.loop.epoch import EpochView, train_epoch
    from trainers.loop.sgd import Training
    from trainers.parameters.sgd import SGDParameters
    from trainers.step.reading import InterruptibleReader

    folder = tempfile.mkdtemp()
    config = parse(CONFIG.format(folder=folder, epochs=EPOCHS, size=SIZE, data=SAMPLES / "data/digits_train.ctf"))
    network = build_network(config, "float", SeedCounter())
    reader = InterruptibleReader(lambda: create_reader(config.section("reader")), lambda: False)
    training = Training(SGDParameters(config.section("SGD")), network, reader)
    training.run()  # compiles
    count = sum(1 for _ in minibatches(reader, SIZE, 0, None))
    assert count == MINIBATCHES

    def run() -> float:
        from networks.compile.evaluate import Settings
        from trainers.step.step import EpochSettings

        began = time.perf_counter()
        for epoch in range(EPOCHS):
            settings = EpochSettings(0.005, 0.9 ** (1 / SIZE), Settings(), epoch)
            train_epoch(
                training.trainer, minibatches(reader, SIZE, epoch, None), SIZE, settings, EpochView(epoch, EPOCHS)
            )
        return (time.perf_counter() - began) / (EPOCHS * count)

    run()
    return run


def hand_written():
    """A function that makes the same number of steps and returns the seconds per minibatch."""
    import jax
    import jax.numpy as jnp

    lines = (SAMPLES / "data/digits_train.ctf").read_text().splitlines()
    fields = [dict(part.split(" ", 1) for part in line.split("|")[1:]) for line in lines]
    x = np.array([np.array(f["features"].split(), np.float32) for f in fields])
    y = np.array([np.array(f["labels"].split(), np.float32) for f in fields])
    batches = [(x[i : i + SIZE], y[i : i + SIZE]) for i in range(0, len(x) - SIZE + 1, SIZE)]
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

    def run() -> float:
        p = {
            "W0": jnp.asarray(random.normal(size=(64, 100)) * 0.1, jnp.float32),
            "B0": jnp.zeros(100, jnp.float32),
            "W1": jnp.asarray(random.normal(size=(100, 10)) * 0.1, jnp.float32),
            "B1": jnp.zeros(10, jnp.float32),
        }
        v = jax.tree.map(jnp.zeros_like, p)
        value = None
        began = time.perf_counter()
        for _ in range(EPOCHS):
            for a, b in batches:
                p, v, value, _ = compiled(p, v, a, b, np.float32(0.005), np.float32(0.9))
        assert value is not None
        value.block_until_ready()
        return (time.perf_counter() - began) / (EPOCHS * len(batches))

    run()
    return run


if __name__ == "__main__":
    main()

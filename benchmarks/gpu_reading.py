"""A part of gpu.py: a training that reads text, compared with its reader alone and its steps alone.

The training is that of a configuration: CNTKTextFormatReader, shuffled, a progress line every 100 minibatches. An
epoch before the one that is measured compiles. Where reading, copying and computing overlap, the training is as fast as
the slower of the reader and the steps.
"""

import contextlib
import io
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import steps
from gpu_tables import Pipelined, small
from on_device import Utilisation, cell, choose, options, peak_memory

CASES, SECONDS, LINES = ("dnn", "conv"), 4.0, 100
PASSES = 20
"""Passes over the file in an epoch of the reader alone."""
SAMPLES = 8192
"""Samples of the file, at least; an epoch passes over it as often as takes `SECONDS`."""


def write(case: Any, path: Path) -> int:
    """Write the minibatches of a case as text, as often as gives `SAMPLES`; returns the number of samples."""
    lines: list[str] = []
    for m in case.minibatches:
        thousandths = (m["x"] * 1000).astype(int)
        for values, label in zip(thousandths, m["y"], strict=True):
            lines.append(f"|x {' '.join(f'0.{value:03d}' for value in values)} |y {label}:1\n")
    again = -(-SAMPLES // len(lines))
    path.write_text("".join(lines) * again)
    return len(lines) * again


def section(case: Any, folder: Path, classes: int, epoch: int) -> str:
    """The configuration of a training with two epochs of so many samples."""
    inputs, size = case.minibatches[0]["x"].shape[1], len(case.minibatches[0]["y"])
    (folder / "n.ndl").write_text(steps.HEAD + case.ndl + steps.TAIL)
    return f"""
        NDLNetworkBuilder = [ networkDescription = "{folder}/n.ndl" ]
        SGD = [ modelPath = "{folder}/m" ; maxEpochs = 2 ; minibatchSize = {size} ; epochSize = {epoch}
                learningRatesPerSample = 0.001 ; momentumPerMB = 0.9 ; numMBsToShowResult = {LINES} ]
        reader = [ readerType = CNTKTextFormatReader ; file = "{folder}/data.ctf" ; randomize = true
                   input = [ x = [ dim = {inputs} ; format = dense ] ; y = [ dim = {classes} ; format = sparse ] ] ]
    """


def reader_alone(text: str, size: int, samples: int) -> float:
    """Samples per second that the reader gives, in the last of three epochs: the first ones may compile kernels."""
    from cntkpy.cntk_config import parse
    from cntkpy.readers import create_reader

    reader = create_reader(parse(text).section("reader"), "float")
    seconds, samples = 0.0, PASSES * samples
    for number in range(3):
        began = time.perf_counter()
        reader.start_minibatch_loop(size, number, samples)
        while reader.get_minibatch() is not None:
            pass
        seconds = time.perf_counter() - began
    reader.close()
    return samples / seconds


def training(text: str) -> tuple[float, list[float]]:
    """Seconds of the second epoch, and how busy the device was in it."""
    from cntkpy.cntk_config import parse
    from cntkpy.networks.builders.build import build_network
    from cntkpy.networks.graph.initialize import SeedCounter
    from cntkpy.readers import create_reader
    from cntkpy.trainers.fronts.config.training import TrainingLoop
    from cntkpy.trainers.log.reporting import Reporting
    from cntkpy.trainers.parameters.sgd import SGDParameters

    config = parse(text)
    network = build_network(config, "float", SeedCounter())
    reader, sgd = create_reader(config.section("reader"), "float"), SGDParameters(config.section("SGD"))
    loop = TrainingLoop(sgd, network, reader, reporting=Reporting(device=None))
    saved, times = loop.files.save_epoch, list[float]()

    def save_epoch(*given: Any, **more: Any) -> None:
        times.append(time.perf_counter())
        saved(*given, **more)
        if len(times) == 1:
            times[0] = time.perf_counter()

    loop.files.save_epoch = save_epoch
    with Utilisation() as utilisation, contextlib.redirect_stdout(io.StringIO()):
        loop.run()
    return times[1] - times[0], utilisation.between(*times)


def row(name: str, device: str, is_small: bool) -> str:
    """Measure one network: a line of the table."""
    chosen = choose(device)
    case = small(steps.CASES[name]()) if is_small else steps.CASES[name]()
    size, classes = len(case.minibatches[0]["y"]), list(case.parameters.values())[-1][0]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        samples = write(case, folder / "data.ctf")
        reading = reader_alone(section(case, folder, classes, samples), size, samples)
        ours = Pipelined(case)
        ours.run(ours.stacked)
        count = ours.stacked * max(1, samples // size // ours.stacked)
        began = time.perf_counter()
        ours.run(count)
        computing = count * size / (time.perf_counter() - began)
        slower = min(reading, computing)
        passes = 1 if is_small else max(1, round(slower * SECONDS / samples))
        seconds, busy = training(section(case, folder, classes, samples * passes))
        together = samples * passes / seconds
    memory, megabytes = peak_memory(chosen), sum(a.nbytes for a in case.minibatches[0].values()) / 2**20
    cells = [f"{speed:,.0f}" for speed in (reading, computing, together)]
    cells += [f"{together / slower:.2f}", cell(float(np.mean(busy)) if busy else None, ".0f", " %")]
    cells += [cell(memory, ",.0f"), f"{megabytes:.2f}"]
    return f"| {case.title} | {' | '.join(cells)} |"


if __name__ == "__main__":
    given = options(__doc__)
    head = "reader alone | steps alone | training | / the slower | busy | peak MB | MB of a minibatch"
    print(f"| network, minibatch | {head} |\n|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for network in CASES:
        print(row(network, given.device, given.small), flush=True)

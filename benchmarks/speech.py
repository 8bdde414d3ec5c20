"""Speech data: HTK features with labels to minibatches of 256 windows of 11 frames, and matrices of Kaldi tables.

    python benchmarks/speech.py [--frames N] [--utterances N] [--repeat N]
    python benchmarks/speech.py --memory GIGABYTES

The peer of the first is a loop in NumPy: it reads the archive with numpy.fromfile, repeats the edges of utterances, and
takes 256 shuffled windows at a time out of a strided view, with their labels as one-hot vectors. With --memory: the
memory of the process during one shuffled sweep over a large archive.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kaldi
import numpy as np
import peers

DIM, SIDE, STATES, SIZE = 33, 5, 132, 256
PEER = "numpy.fromfile and strides, shuffled"


def make_data(folder: Path, frames: int) -> np.ndarray:
    """An archive of utterances of 100 to 600 frames, its script file and its labels; returns the lengths."""
    from cntkpy.readers.formats.htk.archive import write_archive

    rng = np.random.default_rng(1)
    lengths = rng.integers(100, 600, frames // 350)
    parts = ((f"u{i}.mfc", rng.standard_normal((n, DIM), np.float32)) for i, n in enumerate(lengths))
    write_archive(str(folder / "f.ark"), parts, str(folder / "f.scp"))
    (folder / "states").write_text("".join(f"s{i}\n" for i in range(STATES)))
    with (folder / "l.mlf").open("w") as file:
        file.write("#!MLF!#\n")
        for i, n in enumerate(lengths):
            bounds = [*range(0, n, 10), n]
            lines = [f"{a}00000 {b}00000 s{(i + a) % STATES}\n" for a, b in itertools.pairwise(bounds)]
            file.write(f'"u{i}.lab"\n{"".join(lines)}.\n')
    return lengths


def plain(folder: Path, lengths: np.ndarray, timed: list[float]) -> None:
    """One sweep with NumPy alone."""
    raw = np.fromfile(folder / "f.ark", ">f4", offset=12).reshape(-1, DIM).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    pieces = [np.pad(raw[a:b], ((SIDE, SIDE), (0, 0)), "edge") for a, b in itertools.pairwise(starts)]
    padded = np.concatenate(pieces)
    place = np.arange(len(raw)) + np.repeat(np.arange(len(lengths)) * 2 * SIDE, lengths)
    windows = np.lib.stride_tricks.sliding_window_view(padded.reshape(-1), DIM * (2 * SIDE + 1))[::DIM]
    labels = np.random.default_rng(0).integers(0, STATES, len(raw))
    order = np.random.default_rng(0).permutation(len(raw))
    begin = time.perf_counter()
    for i in range(0, len(order), SIZE):
        chosen = order[i : i + SIZE]
        features = windows[place[chosen]]
        one_hot = np.zeros((len(chosen), STATES), np.float32)
        one_hot[np.arange(len(chosen)), labels[chosen]] = 1
        assert features.shape[1] == DIM * (2 * SIDE + 1)
    timed.append(time.perf_counter() - begin)


def open_reader(folder: Path, form: str, randomize: bool) -> Any:
    """A reader of the archive and its labels."""
    from cntkpy.readers import create_reader

    word = str(randomize).lower() if form == "composite" else "auto" if randomize else "none"
    x = f'scpFile="{folder}/f.scp";dim={DIM};contextWindow={2 * SIDE + 1}'
    y = f'mlfFile="{folder}/l.mlf";labelMappingFile="{folder}/states";labelDim={STATES}'
    text = f"frameMode=true;useMersenneTwisterRand=true;randomize={word};"
    if form == "composite":
        x, y = (
            f"[type=HTK{kind}Deserializer;input=[{name}=[{one}]]]"
            for kind, name, one in (("Feature", "x", x), ("MLF", "y", y))
        )
        text += f"deserializers=({x}:{y})"
    else:
        text += f"readerType=HTKMLFReader;x=[{x}];y=[{y}]"
    return create_reader(text)


def ours(folder: Path, form: str, randomize: bool, timed: list[float]) -> None:
    """One sweep with a reader."""
    reader = open_reader(folder, form, randomize)
    reader.start_minibatch_loop(SIZE, 0)
    reader.get_minibatch()
    begin = time.perf_counter()
    while reader.get_minibatch() is not None:
        pass
    timed.append(time.perf_counter() - begin)
    reader.close()


def memory(frames: int) -> None:
    """Print the memory of this process during a shuffled sweep over an archive."""

    def status() -> list[int]:
        text = Path("/proc/self/status").read_text()
        return [int(text.split(key + ":")[1].split()[0]) // 1024 for key in ("VmRSS", "VmHWM")]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        total = int(make_data(folder, frames).sum())
        size = (folder / "f.ark").stat().st_size
        print(f"an archive of {size / 2**30:.2f} GiB, {total} frames, in minibatches of {SIZE}, shuffled\n")
        print("| form | frames read | resident MiB | peak MiB | frames/s |\n|---|---:|---:|---:|---:|")
        for form in ("old", "composite"):
            reader = open_reader(folder, form, True)
            reader.start_minibatch_loop(SIZE, 0)
            done, told, begin = 0, 0, time.perf_counter()
            while (minibatch := reader.get_minibatch()) is not None:
                done += minibatch.num_samples
                if done >= told * total // 10:
                    rate = done / (time.perf_counter() - begin)
                    print(f"| {form} | {done} | {' | '.join(map(str, status()))} | {rate:,.0f} |", flush=True)
                    told += 1
            reader.close()


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="frames of the archive")
    parser.add_argument("--utterances", type=int, default=1000, help="utterances of each Kaldi table")
    parser.add_argument("--repeat", type=int, default=5, help="measurements, of which the median is taken")
    parser.add_argument("--memory", type=float, default=0, metavar="GIGABYTES", help="see above")
    arguments = parser.parse_args(argv)
    if arguments.memory:
        memory(int(arguments.memory * 2**30 / DIM / 4))
        return
    table: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lengths = make_data(folder, arguments.frames)
        calls: dict[str, tuple[Callable[..., None], tuple[object, ...]]] = {
            PEER: (plain, (lengths,)),
            "HTK, composite reader, shuffled": (ours, ("composite", True)),
            "HTK, HTKMLFReader, shuffled": (ours, ("old", True)),
        }
        whole: dict[str, list[peers.Seconds]] = {key: [] for key in calls}
        loop: dict[str, list[float]] = {key: [] for key in calls}
        for _ in range(arguments.repeat + 1):
            for key, (call, given) in calls.items():
                whole[key].append(peers.timed(lambda call=call, key=key, given=given: call(folder, *given, loop[key])))
        total = int(lengths.sum())
        base = total / peers.median(whole[PEER][1:])
        for key in calls:
            if key != PEER:
                speed, ratio = total / peers.median(whole[key][1:]), peers.ratio(whole[PEER][1:], whole[key][1:])
                table.append(f"| {key} | frames/s | {speed:,.0f} | {base:,.0f} | {ratio} |")
        os.chdir(folder)
        table += kaldi.rows(arguments.utterances, arguments.repeat)
        os.chdir("/")
    print("## Speech")
    print(
        f"{total:,} frames of {DIM} values, {2 * SIDE} neighbours, labels of {STATES} states, minibatches of {SIZE}, "
        f"from opening the files on, next to a loop in NumPy; matrices of {arguments.utterances:,} utterances next to "
        "`kaldi_native_io`.\n"
    )
    print("| data | | cntkpy | peer | / peer |\n|---|---|---:|---:|---:|")
    print("\n".join(table))


if __name__ == "__main__":
    main()

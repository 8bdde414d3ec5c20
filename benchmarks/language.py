"""Reading speed of the language readers, from file to minibatches, beside plain Python over the same words.

    python benchmarks/language.py [--words N]

Prints a table in Markdown. All columns of a row are measured in the same run, in turns, and are medians. One peer only
turns words into numbers; the other makes minibatches of them with NumPy and SciPy, as the reader does. Words are those
of the file for all, without tags and symbols of sentences, so ratios are those of the time of an epoch.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

REPEAT = 5


def write_files(folder: Path, words: int) -> int:
    """Sentences of 5 to 40 words out of 10,000, frequent ones often; the same with a tag of 100 a word.

    Returns the number of words.
    """
    rng = np.random.default_rng(1)
    names = ["</s>", "<unk>", *(f"word{i}" for i in range(9998))]
    classes = "".join(f"{i} {10000 - i} {name} {i // 100}\n" for i, name in enumerate(names))
    (folder / "classes").write_text(classes)
    (folder / "words").write_text("\n".join(names) + "\n")
    (folder / "tags").write_text("\n".join(f"T{i}" for i in range(100)) + "\n")
    lines, columns, count = [], [], 0
    while count < words:
        length = int(rng.integers(5, 41))
        one = [names[2 + int(9997 * x)] for x in rng.random(length) ** 3]
        tags = rng.integers(0, 100, length)
        lines.append(f"</s> {' '.join(one)} </s>\n")
        columns.append("".join(f"{word} T{tag}\n" for word, tag in zip(one, tags, strict=True)) + "\n")
        count += length
    (folder / "text").write_text("".join(lines))
    (folder / "columns").write_text("".join(columns))
    return count


def _numbers(folder: Path) -> dict[str, int]:
    return {word: i for i, word in enumerate((folder / "words").read_text().split())}


def plain(folder: Path, name: str) -> None:
    """The words of a file, and its tags, as numbers, in plain Python."""
    numbers = _numbers(folder)
    unknown = numbers["<unk>"]
    with (folder / name).open() as file:
        for line in file:
            [numbers.get(word, unknown) for word in line.split()]


def _matrix(cells: np.ndarray, dim: int) -> csr_matrix:
    """Rows of a one at each number of the cells (T, S), none where it is -1."""
    present = cells.ravel() >= 0
    columns, bounds = cells.ravel()[present], np.append(0, np.cumsum(present))
    return csr_matrix((np.ones(len(columns), np.float32), columns, bounds), (len(present), dim))


def sequences_by_hand(folder: Path, together: int) -> Iterator[tuple[csr_matrix, np.ndarray]]:
    """Minibatches of sentences of equal length: words, and class labels of the next words."""
    numbers = _numbers(folder)
    unknown, dim = numbers["<unk>"], len(numbers)
    classes = np.loadtxt(folder / "classes", np.int64, usecols=3)
    bounds = (np.searchsorted(classes, classes, side) for side in ("left", "right"))
    labels = np.stack([np.arange(dim), classes, *bounds], axis=1).astype(np.float32)
    groups: dict[int, list[list[int]]] = {}
    with (folder / "text").open() as file:
        for line in file:
            sentence = [numbers.get(word, unknown) for word in line.split()]
            group = groups.setdefault(len(sentence), [])
            group.append(sentence)
            if len(group) == together:
                words = np.array(groups.pop(len(sentence))).T
                yield _matrix(words[:-1], dim), labels[words[1:]]
    for group in groups.values():
        words = np.array(group).T
        yield _matrix(words[:-1], dim), labels[words[1:]]


def columns_by_hand(folder: Path, together: int) -> Iterator[tuple[csr_matrix, csr_matrix]]:
    """Minibatches of neighbouring sentences: words and tags."""
    numbers = _numbers(folder)
    tags = {tag: i for i, tag in enumerate((folder / "tags").read_text().split())}
    unknown = numbers["<unk>"]

    def laid(sentences: list[list[int]], dim: int) -> csr_matrix:
        cells = np.full((max(map(len, sentences)), len(sentences)), -1)
        for slot, sentence in enumerate(sentences):
            cells[: len(sentence), slot] = sentence
        return _matrix(cells, dim)

    words: list[list[int]] = [[]]
    labels: list[list[int]] = [[]]
    with (folder / "columns").open() as file:
        for line in file:
            if fields := line.split():
                words[-1].append(numbers.get(fields[0], unknown))
                labels[-1].append(tags[fields[1]])
                continue
            if len(words) == together:
                yield laid(words, len(numbers)), laid(labels, len(tags))
                words, labels = [], []
            words.append([])
            labels.append([])
    if any(words[:-1]):
        yield laid(words[:-1], len(numbers)), laid(labels[:-1], len(tags))


def seconds(run: Callable[[], None]) -> float:
    """Seconds of the processor, which other programs on the machine disturb less than the clock."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main() -> str:
    from cntkpy.readers import create_reader

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words = write_files(folder, arguments.words)
        sequence = (
            f'readerType=SequenceReader;file="{folder}/text";wordclass="{folder}/classes";features=[dim=0];'
            "labelIn=[labelType=category;labelMappingFile=none];labels=[labelType=nextWord;labelMappingFile=none];"
        )
        columns = (
            f'readerType=LUSequenceReader;file="{folder}/columns";features=[dim=0];equalLength=false;randomize=auto;'
            f'labelIn=[labelType=category;token="{folder}/words"];labels=[labelType=category;token="{folder}/tags"];'
        )
        cases = [
            ("SequenceReader, class labels, 1 sentence", "text", sequence, 1),
            ("SequenceReader, class labels, 20 sentences", "text", sequence, 20),
            ("LUSequenceReader, 1 sentence", "columns", columns, 1),
            ("LUSequenceReader, 20 sentences", "columns", columns, 20),
            ("LUSequenceReader, 20 sentences, context -1:0:1", "columns", columns + "wordContext=-1:0:1;", 20),
        ]
        for name, file, section, together in cases:
            if (file, together) != ("text", 1):
                section += f"nbruttsineachrecurrentiter={together}"

            def read(section: str = section) -> None:
                reader = create_reader(section)
                reader.start_minibatch_loop(100, 0)
                while (minibatch := reader.get_minibatch()) is not None:
                    assert minibatch.num_samples and minibatch.streams
                reader.close()

            def by_hand(file: str = file, together: int = together) -> None:
                make = sequences_by_hand if file == "text" else columns_by_hand
                for _ in make(folder, together):
                    pass

            runs = [read, lambda file=file: plain(folder, file), by_hand]
            read()  # compiles the kernels
            rounds = [[words / seconds(run) / 1e6 for run in runs] for _ in range(REPEAT)]
            ours, parsing, made = map(statistics.median, zip(*rounds, strict=True))
            laid = ("-", "-") if "Context" in section else (f"{made:.2f}", f"{ours / made:.1f}")
            rows.append(f"| {name} | {ours:.2f} | {parsing:.2f} | {ours / parsing:.2f} | {laid[0]} | {laid[1]} |")
    return "\n".join(
        [
            "## Language readers",
            "Million words per second of processor time, from the file to minibatches. Plain Python is `str.split` and",
            "a `dict`: parsing only, and with minibatches as the reader makes them.",
            "",
            "| reader | cntkpy | parsing only | / parsing only | by hand | / by hand |",
            "|---|---:|---:|---:|---:|---:|",
            *rows,
        ]
    )


if __name__ == "__main__":
    print(main())

"""Reading speed of the language readers, from file to minibatches, beside str.split and a dict over the same words.

    python benchmarks/language.py [--words N]

Prints a table in Markdown. All columns of a row are measured in the same run, in turns, and are medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

REPEAT = 5


def write_files(folder: Path, words: int) -> None:
    """Sentences of 5 to 40 words out of 10,000, frequent ones often; the same with tags, every tenth word tagged."""
    rng = np.random.default_rng(1)
    names = ["</s>", "<unk>", *(f"word{i}" for i in range(9998))]
    classes = "".join(f"{i} {10000 - i} {name} {i // 100}\n" for i, name in enumerate(names))
    (folder / "classes").write_text(classes)
    (folder / "words").write_text("\n".join(names) + "\n")
    (folder / "tags").write_text("\n".join(f"T{i}" for i in range(100)) + "\n")
    lines, columns = [], []
    while words > 0:
        length = int(rng.integers(5, 41))
        one = [names[2 + int(9997 * x)] for x in rng.random(length) ** 3]
        tags = rng.integers(0, 100, length)
        lines.append(f"</s> {' '.join(one)} </s>\n")
        columns.append("".join(f"{word} T{tag}\n" for word, tag in zip(one, tags, strict=True)) + "\n")
        words -= length
    (folder / "text").write_text("".join(lines))
    (folder / "columns").write_text("".join(columns))


def plain(folder: Path, name: str) -> int:
    """The words of a file as numbers, in plain Python."""
    numbers = {word: i for i, word in enumerate((folder / "words").read_text().split())}
    unknown = numbers["<unk>"]
    total = 0
    with (folder / name).open() as file:
        for line in file:
            total += len([numbers.get(word, unknown) for word in line.split()])
    return total


def rate(run: Callable[[], int]) -> float:
    """Words in a second of the processor, which other programs on the machine disturb less than the clock."""
    begin = time.process_time()
    count = run()
    return count / (time.process_time() - begin)


def main() -> str:
    from cntkpy.readers import create_reader

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_files(folder, arguments.words)
        sequence = (
            f'readerType=SequenceReader;file="{folder}/text";wordclass="{folder}/classes";features=[dim=0];'
            "labelIn=[labelType=category;labelMappingFile=none];labels=[labelType=nextWord;labelMappingFile=none];"
        )
        columns = (
            f'readerType=LUSequenceReader;file="{folder}/columns";features=[dim=0];equalLength=false;randomize=auto;'
            f'labelIn=[labelType=category;token="{folder}/words"];labels=[labelType=category;token="{folder}/tags"];'
        )
        cases = [
            ("SequenceReader, class labels, 1 sentence", "text", sequence),
            ("SequenceReader, class labels, 20 sentences", "text", sequence + "nbruttsineachrecurrentiter=20"),
            ("LUSequenceReader, 1 sentence", "columns", columns + "nbruttsineachrecurrentiter=1"),
            ("LUSequenceReader, 20 sentences", "columns", columns + "nbruttsineachrecurrentiter=20"),
            (
                "LUSequenceReader, 20 sentences, context -1:0:1",
                "columns",
                columns + "nbruttsineachrecurrentiter=20;wordContext=-1:0:1",
            ),
        ]
        for name, file, section in cases:
            ours, theirs = [], []

            def read(section: str = section) -> int:
                reader = create_reader(section)
                reader.start_minibatch_loop(100, 0)
                total = 0
                while (minibatch := reader.get_minibatch()) is not None:
                    total += minibatch.num_samples
                reader.close()
                return total

            read()  # compiles the kernels
            for _ in range(REPEAT):
                ours.append(rate(read))
                theirs.append(rate(lambda file=file: plain(folder, file)))
            a, b = statistics.median(ours) / 1e6, statistics.median(theirs) / 1e6
            rows.append(f"| {name} | {a:.2f} | {b:.2f} | {a / b:.2f} |")
    return "\n".join(
        [
            "## Language readers",
            "Million words per second of processor time, from the file to minibatches; the peer is `str.split` and a",
            "`dict`, without minibatches.",
            "",
            "| reader | cntkpy | plain Python, parsing only | / plain Python |",
            "|---|---:|---:|---:|",
            *rows,
        ]
    )


if __name__ == "__main__":
    print(main())

"""Makes up the feature archives of the speech samples: utterances of nine states, 13 values per frame, seeded.

    python sample_configs/data/make_speech.py

Writes speech_train.* and speech_test.*: archive, script file and labels; speech.states; the list of files to write.
"""

from pathlib import Path

import numpy as np

from cntkpy.readers.formats.htk.archive import write_archive

HERE = Path(__file__).parent
PHONES = ("sil", "aa", "bo")
DIM = 13


def make(name: str, utterances: int, rng: np.random.Generator, means: np.ndarray) -> None:
    """An archive, its script file and its labels."""
    named, labels = [], ["#!MLF!#\n"]
    for u in range(utterances):
        phones = [0, *rng.integers(1, len(PHONES), rng.integers(2, 6)), 0]
        states = [(3 * p + s, int(rng.integers(2, 7))) for p in phones for s in range(3)]
        ids = np.repeat([s for s, _ in states], [n for _, n in states])
        frames = means[ids] + 1.2 * rng.standard_normal((len(ids), DIM))
        named.append((f"{name}/u{u:02d}.mfc", frames.astype(np.float32)))
        labels.append(f'"*/{name}/u{u:02d}.lab"\n')
        begin = 0
        for state, n in states:
            labels.append(f"{begin * 100000} {(begin + n) * 100000} {PHONES[state // 3]}_s{state % 3 + 2}\n")
            begin += n
        labels.append(".\n")
    write_archive(str(HERE / f"speech_{name}.ark"), named, str(HERE / f"speech_{name}.scp"))
    (HERE / f"speech_{name}.mlf").write_text("".join(labels))


def main() -> None:
    """Write all files."""
    rng = np.random.default_rng(7)
    means = rng.standard_normal((3 * len(PHONES), DIM))
    make("train", 40, rng, means)
    make("test", 8, rng, means)
    states = [f"{phone}_s{s}" for phone in PHONES for s in (2, 3, 4)]
    (HERE / "speech.states").write_text("\n".join(states) + "\n")
    (HERE / "speech.out").write_text("".join(f"test/u{u:02d}.mfc\n" for u in range(8)))


if __name__ == "__main__":
    main()

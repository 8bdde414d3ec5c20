"""The data of jobs.py: read from the files that CNTK's samples use, or generated in the same shapes; written as CTF
for `cntkpy` and as arrays for PyTorch.

Digits are (pixels uint8 (n, 784), classes (n,)). Sentences are lists of (words (length,), tags (length,)).
"""

from pathlib import Path
from typing import Any

import numpy as np

WORDS, TAGS = 943, 129
DIGITS_8X8 = Path(__file__).resolve().parent.parent / "sample_configs" / "data"
FILES = {
    "digits": {"train": "Train-28x28_cntk_text.txt", "test": "Test-28x28_cntk_text.txt"},
    "slots": {"train": "atis.train.ctf", "test": "atis.test.ctf"},
}
"""The files of CNTK's samples, by job."""
Digits = tuple[np.ndarray, np.ndarray]
Sentences = list[tuple[np.ndarray, np.ndarray]]


# ---- digits


def digits(folder: Path | None, part: str, count: int) -> Digits:
    """The first `count` digits of MNIST, as CNTK's samples have it, or generated ones."""
    if folder is None or not (folder / FILES["digits"][part]).is_file():
        return generated_digits(part, count)
    with (folder / FILES["digits"][part]).open() as file:
        return digits_of([line for line, _ in zip(file, range(count), strict=False)])


def digits_of(lines: list[str]) -> Digits:
    fields = [dict(part.strip().split(" ", 1) for part in line.split("|")[1:]) for line in lines]
    pixels = np.array([np.fromstring(f["features"], np.float32, sep=" ") for f in fields])
    return pixels.astype(np.uint8), np.array([f["labels"].split().index("1") for f in fields])


def generated_digits(part: str, count: int) -> Digits:
    """The handwritten digits of 8 x 8 pixels in `sample_configs/data`, enlarged to 28 x 28: turned by up to 15 degrees,
    scaled by 0.85 to 1.15, and moved by up to 3 pixels, each time differently."""
    from scipy.ndimage import affine_transform

    lines = (DIGITS_8X8 / f"digits_{part}.ctf").read_text().splitlines()
    small, classes = digits_of(lines)
    random = np.random.default_rng(len(part))
    pixels = np.empty((count, 28, 28), np.uint8)
    for k in range(count):
        angle, scale = random.uniform(-0.26, 0.26), 8 / 20 / random.uniform(0.85, 1.15)
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        offset = 3.5 - turn @ (13.5 + random.uniform(-3, 3, 2))
        picture = affine_transform(small[k % len(small)].reshape(8, 8) * 15.9, turn, offset.tolist(), (28, 28), order=1)
        pixels[k] = np.clip(picture, 0, 255)
    return pixels.reshape(count, 784), classes[np.arange(count) % len(classes)]


def write_digits(pixels: np.ndarray, classes: np.ndarray, place: Path) -> None:
    """`place`.ctf and `place`.npz."""
    shown = [" ".join("1" if k == c else "0" for k in range(10)) for c in range(10)]
    with place.with_name(place.name + ".ctf").open("w") as file:
        for x, y in zip(pixels, classes, strict=True):
            file.write(f"|labels {shown[y]} |features {' '.join(map(str, x.tolist()))}\n")
    np.savez(place.with_name(place.name + ".npz"), x=pixels, y=classes)


# ---- sentences


def sentences(folder: Path | None, part: str, count: int) -> Sentences:
    """The first `count` sentences of ATIS, or generated ones."""
    if folder is None or not (folder / FILES["slots"][part]).is_file():
        return generated_sentences(part, count)
    found: dict[str, tuple[list[int], list[int]]] = {}
    with (folder / FILES["slots"][part]).open() as file:
        for line in file:
            key, *fields = line.split("|")
            values = dict(field.split(" ", 1) for field in fields)
            if key not in found and len(found) == count:
                break
            words, tags = found.setdefault(key, ([], []))
            words.append(int(values["S0"].split(":")[0]))
            tags.append(int(values["S2"].split(":")[0]))
    return [(np.array(words), np.array(tags)) for words, tags in found.values()]


def generated_sentences(part: str, count: int) -> Sentences:
    """Sentences of 5 to 22 words: a cue word says which role the names after it play, a name of which kind it is.

    The tag of the first word of a name follows from its kind and from the cue before it, up to six words back; that of
    the words after it from the tag before. 3 % of the words are replaced at random.
    """
    random = np.random.default_rng(len(part))
    cues, roles, kinds = 8, 4, 16
    filler, name = 300, (WORDS - 300) // kinds
    result: Sentences = []
    for _ in range(count):
        words: list[int] = []
        tags: list[int] = []
        length = int(random.integers(5, 23))
        while len(words) < length:
            cue = int(random.integers(cues))
            gap = cues + random.integers(0, filler - cues, int(random.integers(0, 4)))
            kind, long = int(random.integers(kinds)), int(random.integers(1, 3))
            slot = 1 + 2 * (kind * roles + cue % roles)
            words += [cue, *gap, *(filler + kind * name + random.integers(0, name, long))]
            tags += [0] * (1 + len(gap)) + [slot, *[slot + 1] * (long - 1)]
        changed = random.random(length) < 0.03
        noisy = np.where(changed, random.integers(0, WORDS, length), np.array(words[:length]))
        result.append((noisy, np.array(tags[:length])))
    return result


def write_sentences(chosen: Sentences, place: Path) -> None:
    """`place`.ctf and `place`.npz: words and tags of all sentences, one after the other, and their lengths."""
    with place.with_name(place.name + ".ctf").open("w") as file:
        for k, (words, tags) in enumerate(chosen):
            file.writelines(f"{k} |S0 {w}:1 |S2 {t}:1\n" for w, t in zip(words, tags, strict=True))
    together: dict[str, Any] = {
        "x": np.concatenate([w for w, _ in chosen]),
        "y": np.concatenate([t for _, t in chosen]),
    }
    np.savez(place.with_name(place.name + ".npz"), lengths=np.array([len(w) for w, _ in chosen]), **together)

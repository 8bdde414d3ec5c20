"""Makes digits_train.ctf and digits_test.ctf from the handwritten digits that scikit-learn ships.

Run once, anywhere: python3 -m venv /tmp/s && /tmp/s/bin/pip install scikit-learn && /tmp/s/bin/python make_digits.py
"""

from pathlib import Path

from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

TRAINING = 1400


def write(path: Path, images, targets) -> None:
    """Write one sample a line: the digit as ten numbers, one of them 1, and the 64 pixels, row by row."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        for image, target in zip(images, targets, strict=True):
            label = " ".join("1" if digit == target else "0" for digit in range(10))
            pixels = " ".join(str(int(pixel)) for pixel in image)
            file.write(f"|labels {label} |features {pixels}\n")


def main() -> None:
    """Write both files beside this one."""
    digits = load_digits()
    here = Path(__file__).parent
    write(here / "digits_train.ctf", digits.data[:TRAINING], digits.target[:TRAINING])
    write(here / "digits_test.ctf", digits.data[TRAINING:], digits.target[TRAINING:])


if __name__ == "__main__":
    main()

"""Makes the data of sequence_classifier.cntk: words of three made-up languages, in CNTK's text format.

    python sample_configs/data/make_words.py

Writes beside itself `words_{train,test}.ctf`. Each letter is a step of the stream `x`; the language, a stream `l`, has
one sample per word. Syllables of the first language are a consonant and a vowel; those of the second end in a
consonant, too; those of the third are a vowel and a consonant.
"""

import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONSONANTS, VOWELS = "bdfgklmnprst", "aeiou"
LETTERS = sorted(CONSONANTS + VOWELS)


def word(rng: random.Random, language: int) -> str:
    """A word of two to four syllables."""
    kinds = ((CONSONANTS, VOWELS), (CONSONANTS, VOWELS, CONSONANTS), (VOWELS, CONSONANTS))[language]
    return "".join(rng.choice(letters) for _ in range(rng.randint(2, 4)) for letters in kinds)


def write(path: Path, count: int, rng: random.Random) -> None:
    """Write so many words, each with its language at the first letter."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        for key in range(count):
            language = rng.randrange(3)
            for t, letter in enumerate(word(rng, language)):
                label = f" |l {language}:1" if t == 0 else ""
                file.write(f"{key} |x {LETTERS.index(letter)}:1{label}\n")


if __name__ == "__main__":
    draw = random.Random(1)
    write(HERE / "words_train.ctf", 900, draw)
    write(HERE / "words_test.ctf", 300, draw)

"""Makes the data of spelling.cntk: words and how they sound, by made-up rules, in CNTK's text format.

    python sample_configs/data/make_spelling.py

Writes beside itself `spelling_{train,test}.ctf`: each letter is a step of the stream `x`, each sound one of `y`.
"""

import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
LETTERS, SOUNDS = "abcdefghiklmnoprstu", "abdefgiklmnoprstuSCIUEJ"
PAIRS = {"sh": "S", "ch": "C", "ph": "f", "ee": "I", "oo": "U", "ai": "E"}
CONSONANTS = ["b", "c", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "sh", "ch", "ph", "c", "g"]
VOWELS = ["a", "e", "i", "o", "u", "ee", "oo", "ai", "e", "i"]
WORDS, TRAINING = 6300, 6000


def sounds(word: str) -> str:
    """How a word sounds."""
    found, at = "", 0
    while at < len(word):
        letter, following = word[at], word[at + 1 : at + 2]
        if letter + following in PAIRS:
            found += PAIRS[letter + following]
            at += 2
            continue
        soft = following in ("e", "i")
        silent = letter == "e" and at == len(word) - 1 and at > 2
        twice = following == letter and letter not in "aeiou" and letter not in "cg"
        if not (silent or twice):
            found += {"c": "s" if soft else "k", "g": "J" if soft else "g"}.get(letter, letter)
        at += 1
    return found


def word(rng: random.Random) -> str:
    """A word of one or two syllables."""
    made = ""
    for _ in range(rng.choice((1, 2, 2))):
        made += rng.choice(CONSONANTS)
        made += rng.choice(VOWELS)
        if rng.random() < 0.3:
            made += rng.choice(["n", "ll", "tt", "ss", "r"])
    return made + "e" if made[-1] not in "aeiou" and rng.random() < 0.4 else made


def write(path: Path, words: list[str]) -> None:
    """Write words with their sounds."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        for key, letters in enumerate(words):
            said = sounds(letters)
            for t in range(max(len(letters), len(said))):
                letter = f" |x {LETTERS.index(letters[t])}:1" if t < len(letters) else ""
                sound = f" |y {SOUNDS.index(said[t])}:1" if t < len(said) else ""
                file.write(f"{key}{letter}{sound}\n")


def main() -> None:
    """Write both files; no word twice."""
    rng, found = random.Random(1), dict[str, None]()
    while len(found) < WORDS:
        made = word(rng)
        if len(sounds(made)) > 1 and len(made) <= 10:
            found.setdefault(made)
    words = list(found)
    write(HERE / "spelling_train.ctf", words[:TRAINING])
    write(HERE / "spelling_test.ctf", words[TRAINING:])


if __name__ == "__main__":
    main()

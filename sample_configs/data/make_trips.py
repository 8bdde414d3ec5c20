"""Makes the data of language_model.cntk and slot_tagging.cntk: sentences of travellers, made up by a small grammar.

    python sample_configs/data/make_trips.py

Writes beside itself `trips_{train,test}.txt` (a sentence a line), `trips_{train,test}.tags` (a word and its tag a line)
and the lists `trips.words` and `trips.names`.
"""

import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
CITIES = [
    "lisbon", "porto", "madrid", "san|sebastian", "lyon", "paris", "den|haag",
    "bruges", "ghent", "cologne", "hamburg", "basel", "milan", "vienna",
]  # fmt: skip
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "tomorrow"]
TIMES = ["in|the|morning", "around|noon", "in|the|afternoon", "late|at|night", "before|nine", "after|six"]
VEHICLES = ["train", "bus", "flight", "ferry"]
OPENINGS = ["i|want|to|go", "i|would|like|to|travel", "please|take|me", "we|need|to|get", "can|i|get"]
ASKING = ["how|much|is|a", "when|does|the|next", "is|there|a", "please|book|a", "show|me|every"]


def tagged(rng: random.Random, choices: list[str], tag: str | None = None) -> list[tuple[str, str]]:
    """One of the choices as words with tags: B- and I-tag, or O."""
    words = rng.choice(choices).split("|")
    return [(word, "O" if tag is None else ("B-" if i == 0 else "I-") + tag) for i, word in enumerate(words)]


def sentence(rng: random.Random) -> list[tuple[str, str]]:
    """A sentence: where from, where to, perhaps when and by what."""
    short = rng.random() < 0.15
    origin = [("from", "O")] * (not short) + tagged(rng, CITIES, "from")
    target = [("to", "O")] * (not short) + tagged(rng, CITIES, "to")
    places = target + origin if rng.random() < 0.3 else origin + target if rng.random() < 0.8 else target
    when: list[tuple[str, str]] = []
    if rng.random() < 0.7:
        when += [("on", "O"), *tagged(rng, DAYS[:-1], "day")] if rng.random() < 0.8 else tagged(rng, DAYS[-1:], "day")
    if rng.random() < 0.4:
        when += tagged(rng, TIMES, "time")
    if rng.random() < 0.5:
        vehicle = [("by", "O"), *tagged(rng, VEHICLES, "vehicle")] if rng.random() < 0.5 else []
        return tagged(rng, OPENINGS) + places + vehicle + when
    asking = tagged(rng, ASKING) + tagged(rng, VEHICLES, "vehicle")
    return asking + (when + places if rng.random() < 0.2 else places + when)


def main() -> None:
    """Write all files."""
    rng = random.Random(7)
    sentences = [sentence(rng) for _ in range(1000)]
    for name, part in (("train", sentences[:800]), ("test", sentences[800:])):
        plain = "".join(f"</s> {' '.join(word for word, _ in one)} </s>\n" for one in part)
        (HERE / f"trips_{name}.txt").write_text(plain, encoding="utf-8")
        columns = [[("BOS", "O"), *one, ("EOS", "O")] for one in part]
        text = "\n".join("".join(f"{word} {tag}\n" for word, tag in one) for one in columns)
        (HERE / f"trips_{name}.tags").write_text(text, encoding="utf-8")
    words = sorted({word for one in sentences[:800] for word, _ in one})
    tags = sorted({tag for one in sentences[:800] for _, tag in one})
    (HERE / "trips.words").write_text("\n".join(["BOS", "EOS", "<unk>", *words]) + "\n", encoding="utf-8")
    (HERE / "trips.names").write_text("\n".join(tags) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

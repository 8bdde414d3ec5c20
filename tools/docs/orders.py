"""The orders in which a reader gives the sequences of a file, and their picture."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from cntkpy.commands.report.markup import Markup, tag
from cntkpy.readers import create_reader

SEQUENCES, WINDOW = 300, 50
KINDS = {
    "order of the file": "randomize=false",
    f"window of {WINDOW} samples": f"randomizationWindow={WINDOW}",
    "no window": "randomize=true",
}
"""The title of each picture, and the settings of the reader."""
SIDE, ROOM, TOP, BOTTOM = 190, 24, 26, 24


def order(settings: str) -> list[int]:
    """The numbers of the sequences of a file in the order of the first sweep; its chunks have some ten of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers.ctf"
        path.write_text("".join(f"{number} |x {number}\n" for number in range(SEQUENCES)))
        text = f'file="{path.as_posix()}";{settings};chunkSizeInBytes=100;input=[x=[dim=1;format=dense]]'
        reader = create_reader(text)
        reader.start_minibatch_loop(SEQUENCES, epoch=0)
        minibatch = reader.get_minibatch()
        assert minibatch is not None
        return [int(value) for value in minibatch.matrix("x").ravel()]


def panels(found: Sequence[tuple[str, Sequence[int]]]) -> Markup:
    """A square for each order: a dot for each sequence, its place in the sweep across, that in the file upwards."""
    width, height = len(found) * (SIDE + ROOM) - ROOM + 12, TOP + SIDE + BOTTOM
    drawn: list[Markup] = []
    for at, (title, numbers) in enumerate(found):
        left = 10 + at * (SIDE + ROOM)
        step = SIDE / len(numbers)
        dots = "".join(
            f"M{left + place * step:.1f} {TOP + SIDE - number * step:.1f}h0" for place, number in enumerate(numbers)
        )
        frame = tag("path", d=f"M{left} {TOP}v{SIDE}h{SIDE}", class_="edge")
        dot = tag("path", d=dots, class_="dot", style="stroke-width: 3px")
        drawn += [frame, tag("g", dot, class_="line color0"), tag("text", title, x=left, y=16, class_="name")]
        drawn.append(tag("text", "place in the sweep", x=left, y=height - 6))
    view = f"-16 0 {width + 16} {height}"
    middle = TOP + SIDE / 2
    side = tag("text", "place in the file", x=0, y=middle, transform=f"rotate(-90 0 {middle})", text_anchor="middle")
    label = "orders of a file: as it is, shuffled in a window, shuffled as a whole"
    return tag(
        "svg", side, drawn, viewBox=view, width=width + 16, height=height, role="img", aria_label=label, class_="bars"
    )

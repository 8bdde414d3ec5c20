"""The bar on a terminal: the criterion has room on 80 columns (C13)."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from cntkpy.commands.context.progress import bar_columns

TEXT = "CrossEntropyWithSoftmax = 0.4"


@pytest.mark.parametrize(("width", "speed"), [(80, "12345/s"), (120, "12345 samples/s")])
def test_the_criterion_is_shown(width: int, speed: str) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    bar = Progress(*bar_columns(width), console=console, expand=True)
    text = f"{TEXT}0118763 * 640"
    bar.add_task("epoch 12 of 100", total=1000, completed=400, text=text, done=" 40%", speed=speed)
    with console.capture() as shown:
        console.print(bar)
    assert TEXT in shown.get()
    assert speed in shown.get()

"""The pictures of the pages, drawn from runs of the configurations that the pages show.

python -m tools.docs.drawings    runs the configurations, and writes `docs/pictures`

Lines and boxes are those of `cntkpy report`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cntkpy.cntk_config import parse
from cntkpy.commands.cli import main as cntkpy
from cntkpy.commands.report.charts import HEIGHT, WIDTH, Line, curves
from cntkpy.commands.report.markup import tag
from cntkpy.commands.report.picture import parts_of, picture
from cntkpy.commands.runs.record import Run
from cntkpy.networks.builders.brainscript.build import build_brainscript
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.outline import outline
from tools.docs.bars import bars, table
from tools.docs.orders import KINDS, order, panels
from tools.docs.sample_runs import ran
from tools.docs.themes import both

ROOT = Path(__file__).resolve().parents[2]
LOOP = """\
BrainScriptNetworkBuilder = {
    x = Input {3}
    W = ParameterTensor {(3:3)}
    h = Tanh (W * BS.Loop.Previous (h) + x)
    featureNodes = (x) ; outputNodes = (h)
}
"""
FOLDER = "docs/pictures"
SHEET = "shapes.png"
RATES = ("0.02", "0.1", "0.5")


def trained() -> dict[str, str]:
    """The pictures that need a training, by their file names: those of the first page, and the curves of a sweep."""
    files = {"digits.cntk": block("README.md", "digits.cntk")}
    with ran(files, ["run digits.cntk"]) as (run,):
        made = both("curve", chart([run], "EvalClassificationError", ["training", "validation (dashed)"]))
        made |= both("network", network(run))
    with ran(files, [f"run digits.cntk train/SGD/learningRatesPerMB={rate}" for rate in RATES]) as runs:
        made |= both("sweep", chart(runs, "CrossEntropyWithSoftmax", [f"{rate} per minibatch" for rate in RATES]))
    return made


def described() -> dict[str, str]:
    """The pictures of networks that pages describe in BrainScript."""
    found = re.search(
        r"^```\n(BrainScriptNetworkBuilder = \{.*?^\}\n)```", page("brainscript.md"), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return both("brainscript", built(found[1])) | both("recurrent", built(LOOP))


def measured() -> dict[str, str]:
    """The pictures of the tables of benchmarks."""
    text = page("benchmarks.md")
    found = table(text, "Networks")
    systems = ("cntkpy", "JAX", "PyTorch")
    shares = [
        (row["network, minibatch"], [float(row[name]) / float(row["PyTorch"]) for name in systems]) for row in found
    ]
    made = both("benchmarks-cpu", bars(systems, shares, "time of a minibatch, PyTorch = 1"))
    found = table(text, "GPU")
    speeds = [[float(row[name].replace(",", "")) for name in systems] for row in found]
    gains = [
        (row["network, minibatch"], [one / each[-1] for one in each]) for row, each in zip(found, speeds, strict=True)
    ]
    return made | both("benchmarks-gpu", bars(systems, gains, "samples per second, PyTorch = 1"))


def shuffled() -> dict[str, str]:
    """The picture of what a randomization window does."""
    return both("orders", panels([(title, order(settings)) for title, settings in KINDS.items()]))


def untrained() -> dict[str, str]:
    """All pictures that need no training, by their file names."""
    return described() | measured() | shuffled()


def block(name: str, title: str) -> str:
    """The block of code of a page that is called `title`."""
    found = re.search(rf'^```ini title="{re.escape(title)}"\n(.*?)^```', page(name), re.MULTILINE | re.DOTALL)
    assert found is not None, (name, title)
    return found[1]


def page(name: str) -> str:
    """The text of a page of `docs`."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def chart(runs: Sequence[Run], node: str, legend: Sequence[str]) -> str:
    """The curves of a node: training, and validation where there is one; the texts of `legend` explain them."""
    lines: list[Line] = []
    for number, run in enumerate(runs):
        (found,) = run.curves
        lines.append(Line(run.name, number, "training", found.training.get(node, {})))
        lines.append(Line(run.name, number, "validation", found.validation.get(node, {})))
    drawn = curves(node, lines)
    assert drawn is not None
    texts = [
        tag(
            "g",
            tag("text", text, x=WIDTH - 24, y=40 + 24 * at, text_anchor="end"),
            class_=f"line color{at % len(runs)}",
        )
        for at, text in enumerate(legend)
    ]
    sized = drawn.replace("<svg ", f'<svg width="{WIDTH}" height="{HEIGHT}" ', 1)
    return sized.removesuffix("</svg>") + "".join(texts) + "</svg>"


def network(run: Run) -> str:
    """The network of the only training of a run."""
    (found,) = run.curves
    assert found.network is not None
    return boxes(found.network)


def built(configuration: str) -> str:
    """The network of a configuration that is a builder in BrainScript."""
    value = parse(configuration)("BrainScriptNetworkBuilder")
    return boxes(outline(build_brainscript(value, "float", SeedCounter())))


def boxes(network: dict[str, Any]) -> str:
    """A network as `cntkpy report` draws it."""
    drawn = picture(parts_of(network))
    assert drawn is not None
    return drawn


def main() -> None:
    """Write the pictures."""
    for name, text in (trained() | untrained()).items():
        (ROOT / FOLDER / name).write_text(text, encoding="utf-8")
        print(f"{FOLDER}/{name}")
    os.chdir(ROOT)
    words = ["sample_configs/images.cntk", "train", "--size", "20", "--samples", "0"]
    cntkpy(["preview", *words, "--picture", f"{FOLDER}/{SHEET}"])


if __name__ == "__main__":
    main()

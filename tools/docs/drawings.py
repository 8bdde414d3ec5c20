"""The pictures of the pages, drawn from runs of the configurations that the pages show.

python -m tools.docs.drawings    runs the configurations, and writes `docs/pictures`

A picture is written twice, for light and for dark pages. Its lines and boxes are those of `cntkpy report`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cntk_config import parse
from commands.cli import main as cntkpy
from commands.report.charts import HEIGHT, WIDTH, Line, curves
from commands.report.markup import tag
from commands.report.picture import parts_of, picture
from commands.runs.find import find_runs
from commands.runs.record import Run
from networks.builders.brainscript.build import build_brainscript
from networks.graph.initialize import SeedCounter
from networks.graph.outline import outline
from tools.docs.bars import bars, table
from tools.docs.orders import KINDS, order, panels

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
THEMES = ("light", "dark")
SHEET = "shapes.png"
RATES = ("0.02", "0.1", "0.5")
STYLE = ROOT / "commands/report/report.css"
LARGER = """\
svg.curves text { font-size: 16px; font-family: system-ui, sans-serif; }
svg.curves .line text { fill: currentColor; font-weight: 600; }
svg.bars text { font: 14px system-ui, sans-serif; fill: var(--text); }
svg.bars .name { font-weight: 600; }
"""
"""Charts are small on pages, and have no font of a page."""

_PALETTE = re.compile(r":root \{\n([^}]*)\}")
_RULE = re.compile(
    r"^(?:svg\.curves text|\.(?:grid|line|color\d|validation|progress|box|edge|head)\b).*$", re.MULTILINE
)


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
    systems = ("cntkpy", "torch.compile", "PyTorch")
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


@contextlib.contextmanager
def ran(files: dict[str, str], commands: Sequence[str]) -> Iterator[list[Run]]:
    """Runs in a folder of its own that has the sample configurations, one for each command."""
    here, environment = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "sample_configs", folder / "sample_configs", ignore=shutil.ignore_patterns("output"))
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        os.chdir(folder)
        try:
            for number, command in enumerate(commands):
                more = [f"stderr=logs/{number}.log", "logFormat=json", f"modelPath=models/{number}"]
                with contextlib.redirect_stderr(io.StringIO()):
                    status = cntkpy([*command.split(), *more])
                assert status == 0, (folder / f"logs/{number}.log").read_text()
            yield find_runs(["logs"])
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)


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


def both(name: str, svg: str) -> dict[str, str]:
    """A picture for light and for dark pages, each a file of its own."""
    css = STYLE.read_text(encoding="utf-8")
    light, dark = _PALETTE.findall(css.replace("\n  :root", "\n:root").replace("\n  }", "\n}"))
    rules = "\n".join(_RULE.findall(css))
    made: dict[str, str] = {}
    for theme, palette in zip(THEMES, (light, light + dark), strict=True):
        values = dict(re.findall(r"(--[\w-]+): ([^;]+);", palette))
        style = re.sub(r"var\((--[\w-]+)\)", lambda found, values=values: values[found[1]], f"{rules}\n{LARGER}")
        head, _, rest = svg.partition(">")
        head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        made[f"{name}-{theme}.svg"] = f"{head}>\n<style>\n{style}</style>\n{rest}\n"
    return made


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

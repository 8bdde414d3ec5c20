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

from commands.report.charts import HEIGHT, WIDTH, Line, curves
from commands.report.markup import tag
from commands.report.picture import parts_of, picture
from commands.runs.find import find_runs
from commands.runs.record import Run

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "docs/pictures"
THEMES = ("light", "dark")
RATES = ("0.02", "0.1", "0.5")
STYLE = ROOT / "commands/report/report.css"
LARGER = """\
svg.curves text { font-size: 16px; font-family: system-ui, sans-serif; }
svg.curves .line text { fill: currentColor; font-weight: 600; }
"""
"""Charts are small on pages, and have no font of a page."""

_PALETTE = re.compile(r":root \{\n([^}]*)\}")
_RULE = re.compile(r"^(?:svg\.curves text|\.(?:grid|line|color\d|validation|progress|box|edge|head)\b).*$", re.MULTILINE)


def drawings() -> dict[str, str]:
    """The pictures by their file names in `docs/pictures`."""
    made: dict[str, str] = {}
    home = block("docs/README.md", "digits.cntk")
    with ran({"digits.cntk": home}, ["run digits.cntk"]) as (run,):
        made |= both("curve", chart([run], "EvalClassificationError", ["training", "validation (dashed)"]))
        made |= both("network", network(run))
    words = [f"run digits.cntk train/SGD/learningRatesPerMB={rate}" for rate in RATES]
    with ran({"digits.cntk": home}, words) as runs:
        made |= both("sweep", chart(runs, "CrossEntropyWithSoftmax", [f"{rate} per minibatch" for rate in RATES]))
    sample = (ROOT / "sample_configs/sequence_classifier.cntk").read_text(encoding="utf-8")
    with ran({"words.cntk": sample}, ["run words.cntk command=train train/SGD/maxEpochs=1"]) as (run,):
        made |= both("recurrent", network(run))
    return made


def block(page: str, title: str) -> str:
    """The block of code of a page that is called `title`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf'^```ini title="{re.escape(title)}"\n(.*?)^```', text, re.MULTILINE | re.DOTALL)
    assert found is not None, (page, title)
    return found[1]


@contextlib.contextmanager
def ran(files: dict[str, str], commands: Sequence[str]) -> Iterator[list[Run]]:
    """Runs in a folder of its own that has the sample configurations, one for each command."""
    from commands.cli import main

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
                    status = main([*command.split(), *more])
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
        tag("g", tag("text", text, x=WIDTH - 24, y=40 + 24 * at, text_anchor="end"), class_=f"line color{at % len(runs)}")
        for at, text in enumerate(legend)
    ]
    sized = drawn.replace("<svg ", f'<svg width="{WIDTH}" height="{HEIGHT}" ', 1)
    return sized.removesuffix("</svg>") + "".join(texts) + "</svg>"


def network(run: Run) -> str:
    """The network of the only training of a run."""
    (found,) = run.curves
    assert found.network is not None
    drawn = picture(parts_of(found.network))
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
    for name, text in drawings().items():
        (ROOT / FOLDER / name).write_text(text, encoding="utf-8")
        print(f"{FOLDER}/{name}")


if __name__ == "__main__":
    main()

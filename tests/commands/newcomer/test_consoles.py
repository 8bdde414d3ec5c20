"""Every command in the code blocks of README.md and of the pages runs in a clone, and prints what the page says.

The commands of a page run one after the other in a folder that has the sample configurations, as in a clone, and the
files that the page takes for granted. What trains is marked thorough. What does not run here is in `NOT_RUN` or
`ELSEWHERE`, with the reason; a command that is in none of these lists and fails, fails the test.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "sample_configs/plugin/README.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
)
SHELLS = ("sh", "bash", "shell", "console")
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

SYNTAX = re.compile(r"^cntkpy .*\b(?:FILE|INPUT)\b", re.MULTILINE)
"""Blocks that say what there is: the list of commands, which test_completion.py compares, and that of `convert`."""

ELSEWHERE = {
    "docs/README.md": "tests/commands/newcomer/test_tutorials.py",
    "docs/errors.md": "tests/commands/checks/test_errors_page.py",
    "docs/kaldi.md": "tests/readers/formats/kaldi/test_page.py",
    "docs/projects.md": "tests/commands/projects/test_projects.py",
}
"""Pages whose commands another test runs, one after the other."""

ENVIRONMENT = "makes an environment, for which it needs the network"
NOT_RUN = {
    "python3 -m venv": ENVIRONMENT,
    "pip install": ENVIRONMENT,
    "new/bin/": ENVIRONMENT,
    ".venv/bin/pytest": "runs these tests",
    ".ci/run": "runs these tests",
    "cntkpy configFile=sample_configs/plugin/flowers.cntk": "needs the package; test_plugin_package.py runs it",
    "cd editors/vscode": "for the three commands after it",
    "mkdocs ": "tests/tools/test_site.py builds the site",
    "python -m tools.docs.drawings": "tests/tools/test_docs.py draws",
    "codespell": "CI runs it",
    "cntkpy preview train.parquet": "tests/commands/tools/test_preview_every_format.py shows each format",
    "cntkpy preview flowers.csv.gz": "the same",
    "cntkpy preview train.mlf": "the same",
    "H=": "renews the locks of the images, with versions of that day",
    "uv pip compile": "renews the locks of the images",
    "echo hatchling": "renews the locks of the images",
    "SITE_URL=": "commits to a branch",
    "mike ": "commits to a branch",
    "docker ": "needs Docker; tests/integrations looks at the Dockerfile",
    "npm ": "makes a package for an editor, for which it needs the network",
    "code ": "installs into an editor",
    'eval "$(cntkpy completion bash)"': "for a shell in which one types; test_completion.py runs the script in bash",
    "cntkpy run --workers 4": "four processes; tests/trainers/parallel runs two",
    "cntkpy runs --serve": "listens until it is stopped; tests of the command start and stop it",
    "cntkpy runs sample_configs --serve": "listens until it is stopped",
    "mpiexec": "needs MPI",
    "srun": "needs Slurm",
    "sbatch": "needs Slurm",
    "cntkpy configFile=sample_configs/digits.cntk numCPUThreads=4": "continues in the background",
    "taskset": "needs eight cores",
    "wait": "waits for the two before",
}
"""How a command begins, and why it is not run."""
SWEEPS = tuple(
    f"cntkpy sweep {word}" for word in ("digits", "sample_configs", "--criterion", "--jobs", "--join", "--sampler")
)
TRAINS = ("cntkpy configFile=", "cntkpy report sweeps/", *SWEEPS)
"""Beginnings of commands that take more than a few seconds, or show the result of such a command."""
STATUS = {
    "cntkpy check sample_configs ": 2,  # plugin/, as the page says
    "cntkpy diff --origins old.cntk": 1,  # there are differences
    "cntkpy diff --open old.cntk": 1,
}
"""Exit statuses other than 0."""


@dataclass(frozen=True)
class Command:
    """A command of a page, and what the page has it print; None: nothing is shown."""

    line: int
    text: str
    shown: str | None

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)


def commands(page: str) -> Iterator[Command]:
    """The commands of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        language, body = found[1].strip().partition(" ")[0], found[2]
        first = text.count("\n", 0, found.start(2)) + 1
        if language == "console":
            at = first
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                yield Command(at, command, shown)
                at += part.count("\n")
        elif language in SHELLS or (not language and body.startswith(("cntkpy ", "pip ")) and not SYNTAX.search(body)):
            for number, line in enumerate(body.splitlines(), first):
                if line.strip() and not line.startswith("#"):
                    yield Command(number, line, None)


def reason(command: Command) -> str:
    """Why it is not run; empty: it is."""
    return next((why for start, why in NOT_RUN.items() if command.text.startswith(start)), "")


def numbers(path: Path, names: dict[str, int], rows: int = 4) -> None:
    """Data in text format with streams of these sizes; `labels` are one of their classes."""
    rng, lines = np.random.default_rng(0), []
    for row in range(rows):
        for name, size in names.items():
            values = np.eye(size)[row % size] if name == "labels" else rng.integers(0, 9, size)
            lines.append(f"|{name} {' '.join(f'{value:g}' for value in values)} ")
        lines.append("\n")
    path.write_text("".join(lines))


def flowers(path: Path, rows: int) -> None:
    """Three kinds of flowers that four numbers tell apart."""
    rng = np.random.default_rng(rows)
    text = "sepal length,sepal width,petal length,petal width,species\n"
    for row in range(rows):
        values = rng.normal(np.roll([5.0, 3.0, 1.0, 0.5], row % 3), 0.1)
        text += ",".join(f"{value:.1f}" for value in values) + f",{('setosa', 'versicolor', 'virginica')[row % 3]}\n"
    path.write_text(text)


def parquet(here: Path) -> None:
    """The table of `flowers` as a Parquet file."""
    from pyarrow import csv
    from pyarrow.parquet import write_table

    flowers(here / "rows.csv", 30)
    write_table(csv.read_csv(here / "rows.csv"), here / "flowers.parquet")


def log_file(path: Path, start: float) -> None:
    """The log of a training of three epochs."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "cntkpy 0.1.0 on host at 2026/01/01 00:00:00\n"
        + "".join(
            f"Finished Epoch[ {n} of 3]: [Training] CrossEntropyWithSoftmax = {start / n:.8f} * 40; "
            f"err = {0.5 / n:.8f} * 40; totalSamplesSeen = {40 * n}; learningRatePerSample = 0.1; epochTime=0.1s\n"
            for n in (1, 2, 3)
        )
    )


def event_files(folder: Path) -> None:
    """Two runs of two epochs, which differ in their learning rates."""
    for name, rate in (("a", "0.05"), ("b", "0.2")):
        settings = [{"name": "train:SGD:learningRatesPerMB", "value": rate, "origins": []}]
        events = [
            {"time": "2026-01-01T00:00:00+00:00", "event": "run started", "settings": settings},
            {"event": "action", "command": "train", "action": "train"},
            *({"event": "epoch finished", "epoch": n, "nodes": {"err": float(rate) / n}} for n in (1, 2)),
            {"event": "run finished", "status": 0},
        ]
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))


def speech(here: Path) -> None:
    """The sample data of speech under the names of the page."""
    data = here / "sample_configs/data"
    for name, ours in (
        ("train.scp", "speech_train.scp"),
        ("speech_train.ark", "speech_train.ark"),
        ("train.mlf", "speech_train.mlf"),
        ("states.txt", "speech.states"),
    ):
        shutil.copy(data / ours, here / name)


def kaldi(here: Path) -> None:
    """A script of features and an archive of alignments."""
    (here / "feats.ark").write_text("u1  [\n  1 2\n  3 4 ]\n")
    (here / "feats.scp").write_text("u1 feats.ark:3\n")
    (here / "ali.ark").write_text("u1 0 1\n")


def old_model(here: Path) -> None:
    """A model that CNTK might have written."""
    import cntk_v1_writer as w

    f = w.Writer(30, "double")
    f.parameter("W", np.ones((3, 2)))
    f.input("x", 2)
    f.node("Times", "z", w.u64(1) + w.i32(-1), "W x")
    f.groups = {"FeatureNodes": ["x"], "OutputNodes": ["z"]}
    (here / "model.dnn").write_bytes(f.content)


def configurations(here: Path) -> None:
    """Configurations of the reader's own, which are much like `digits.cntk`."""
    digits = (ROOT / "sample_configs/digits.cntk").read_text()
    (here / "configs").mkdir()
    (here / "configs/one.cntk").write_text("command = ()\n")
    for name in ("main.cntk", "old.cntk"):
        (here / name).write_text(digits)
    (here / "new.cntk").write_text(digits.replace("minibatchSize      = 20", "minibatchSize      = 40"))
    (here / "globals.cntk").write_text("precision = float\n")
    shutil.copy(ROOT / "sample_configs/images.cntk", here / "train.cntk")


TRAINED = "sample_configs/output/digits.model"


def trained(here: Path) -> None:
    """A model with the nodes that pages name."""
    from cntkpy.networks.builders.ndl.front_end import parse_ndl
    from cntkpy.networks.files.model_file import save_model

    text = (
        "x = Input(4, tag=feature)\nH1 = Tanh(Times(Parameter(3, 4), x))\n"
        "HLast = Times(Parameter(2, 3), H1, tag=output)\n"
    )
    if not (here / TRAINED).exists():  # the page has a line that makes it, which takes long
        save_model(here / TRAINED, parse_ndl(text, precision="float", diagnostics=[]).validate())


def onnx_model(here: Path) -> None:
    """A model of another program."""
    from cntkpy.networks.files.model_file import load_model
    from cntkpy.networks.onnx.export import Settings
    from cntkpy.networks.onnx.save import save_onnx

    trained(here)
    save_onnx(here / "resnet.onnx", load_model(here / TRAINED), Settings())


def guide(here: Path) -> None:
    """The configuration of the page."""
    text = (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
    found = re.search(r"configuration `my\.cntk`:\n\n```ini\n(.*?)```", text, re.DOTALL)
    assert found is not None
    (here / "my.cntk").write_text(found[1])


BEFORE: dict[str, Callable[[Path], object]] = {
    "cntkpy convert flowers.parquet": parquet,
    "cntkpy convert flowers.csv": lambda here: flowers(here / "flowers.csv", 150),
    "cntkpy convert kept-back.csv": lambda here: flowers(here / "kept-back.csv", 30),
    "cntkpy check --data my.cntk": guide,
    "cntkpy plot logs/my.log": lambda here: log_file(here / "logs/my.log", 1.0),
    "cntkpy plot log/run": lambda here: log_file(here / "log/run", 1.0),
    "cntkpy plot log/small": lambda here: [log_file(here / f"log/{name}", 2.0) for name in ("small", "large")],
    "docs/readers.md: cntkpy convert train.ctf": lambda here: numbers(here / "train.ctf", {"features": 4, "labels": 3}),
    "cntkpy convert iris.data": lambda here: (here / "iris.data").write_text("5.1 3.5 1.4 0.2 0\n6.2 2.9 4.3 1.3 1\n"),
    "cntkpy convert train.ctf train.bin": lambda here: numbers(here / "train.ctf", {"labels": 10, "features": 784}),
    "cntkpy convert train.scp": speech,
    "cntkpy convert train.ctf train.scp": lambda here: numbers(here / "train.ctf", {"features": 33, "labels": 132}),
    "cntkpy convert scp:feats.scp": kaldi,
    "cntkpy convert corpus.txt": lambda here: [
        (here / "corpus.txt").write_text("a b\nb a b\n"),
        (here / "words.txt").write_text("a\nb\n"),
    ],
    "cntkpy show model.dnn": old_model,
    f"cntkpy export {TRAINED}": trained,
    "cntkpy show resnet.onnx": onnx_model,
}
"""What has to be there before a command, by its beginning, with or without its page."""


def prepare(page: str, command: Command, here: Path) -> None:
    for start, make in BEFORE.items():
        if f"{page}: {command.text}".startswith(start) or command.text.startswith(start):
            make(here)


def walk(page: str, cntkpy, here: Path, long: bool) -> list[Command]:
    """Run the commands of a page; those that train only if `long`. Returns what was run."""
    shutil.copytree(ROOT / "sample_configs", here / "sample_configs", ignore=shutil.ignore_patterns("output"))
    configurations(here)
    done = []
    for command in commands(page):
        if reason(command) or (command.text.startswith(TRAINS) and not long):
            continue
        prepare(page, command, here)
        program, *words = command.words
        if program in ("cp", "sed"):
            subprocess.run(command.text, shell=True, cwd=here, check=True)
            continue
        assert program == "cntkpy", (
            f"{page}:{command.line}: '{command.text}' is not a command of ours; say why in NOT_RUN"
        )
        got = cntkpy(*words)
        where = f"{page}:{command.line}: {command.text}\n{got.out}{got.err}"
        status = next((code for start, code in STATUS.items() if command.text.startswith(start)), 0)
        assert "Traceback" not in got.err, where
        if command.shown is not None:
            assert got.out + got.err == command.shown, where
        else:
            assert got.code == status, where
        done.append(command)
    return done


RUN = {page: [command for command in commands(page) if not reason(command)] for page in PAGES if page not in ELSEWHERE}
SHORT = [page for page, some in RUN.items() if any(not command.text.startswith(TRAINS) for command in some)]
LONG = [page for page, some in RUN.items() if any(command.text.startswith(TRAINS) for command in some)]


KERNELS = "docs/preview-and-convert.md"
"""Reads every format with kernels, which take long to compile where there are none yet."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.thorough if page == KERNELS else []) for page in SHORT]
)
def test_commands_run(page: str, cntkpy, tmp_path: Path) -> None:
    assert walk(page, cntkpy, tmp_path, long=False)


@pytest.mark.thorough
@pytest.mark.parametrize("page", LONG)
def test_commands_that_train_run(page: str, cntkpy, tmp_path: Path) -> None:
    assert any(one.text.startswith(TRAINS) for one in walk(page, cntkpy, tmp_path, long=True))


def test_the_lists_are_true() -> None:
    """Every page of `ELSEWHERE` has its test, and every reason and every preparation is of a command that is there."""
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")
    everything = [(page, one.text) for page in PAGES if page not in ELSEWHERE for one in commands(page)]
    assert len(everything) > 60
    for start in (*NOT_RUN, *STATUS, *BEFORE):
        assert any(text.startswith(start) or f"{page}: {text}".startswith(start) for page, text in everything), start

"""Goldens of readers, writers, actions and the trainer, and random configurations: lines of logs and files.

A case of `readers` runs in a copy of its folder, perhaps in several steps. Log lines that carry figures are compared
in order: words exactly, whole numbers exactly, other numbers within a tolerance, without times and dates. The cases of
`readers/log` compare the shape of the log: every line from the first banner on, blanks included. Files are compared
line by line, too.
"""

import math
import os
import re
import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from golden_cases.case import GOLDENS, NO_MASKS, Case, Difference, Found, Runner, load_yaml, replaced

RELATIVE, ABSOLUTE = 1e-5, 2e-7
NOTHING = "(nothing)"

NUMBER = re.compile(r"(?<![A-Za-z_\d.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)(?![A-Za-z_])")
STAMP = re.compile(r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d:(?: |$)")
BANNER = re.compile(r"^(?:<DATE>: )?#{20,}$")
TIMES = re.compile(r"; time = [^;]*; samplesPerSecond = .*|; epochTime=.*")
COMMAND = re.compile(r"^(# \S+ command \(\w+ action\)).*")

FIGURES = re.compile(
    r"^# \S+ command \(\w+ action\)|Epoch\[ *\d+ of \d+\]|SearchForBestLearnRate|AdaptiveLearnRateSearch"
    r"|AdaptiveMinibatch|^Model .* -->|^Model .* does not exist|^Minibatch\[\d|^read \d+ labels"
    r"|^Training \d+ parameters|^ ?Finished (?:Mini-)?Epoch|^Starting Epoch \d+"
    r"|^(?:Final Results|Total Samples Evaluated|learnRatePerSample |learnRate per sample|Loading \(rolling back|SGD: "
    r"|Final model exists|No further training|Starting from checkpoint|Creating virgin|Learn Rate Per Sample for Epoch"
    r"|Minibatch size adapted|Based on|Best models|Finished training and saved|Setting dropout|Setting batch norm"
    r"|Precomputing|Estimating Statistics|evaluate: writing|Model has|Training criteri|Evaluation criteri"
    r"|Warning: Checkpoint)"
)
"""The lines of a log that say what was done, and with which numbers."""

CHATTER = re.compile(
    r"^(?:\t*Allocating matrices|Memory Sharing|\t\{ |Post-processing network|\d+ roots?:|\t\S+ = \w+ ?\(|Validating"
    r"|INFO:|WARNING:|\d+ out of \d+ nodes|Reading (?:file|matrix)|SequenceReader|LMSequenceReader|Loop\["
    r"|BlockRandomizer|Attempting|\(memory|FormNestedNetwork|Node .* (?:removed|shares)|\t  )|Using CPU$"
)
"""What the networks and readers of CNTK tell about themselves is not part of the shape of a log."""

VOLATILE = [
    (STAMP, "<DATE>: "),
    (re.compile(r"time = [-+.\de]+s; samplesPerSecond = [-+.\dEeinf]+"), "time = <T>s; samplesPerSecond = <R>"),
    (re.compile(r"epochTime=[-+.\de]+s"), "epochTime=<T>s"),
    (re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d"), "<DATE>"),
    (
        re.compile(r"Read = [^;]*; Compute = [^;]*; Parameter update = [^;]*; Parameter sync = [^;]*;"),
        "Read = <T>; Compute = <T>; Parameter update = <T>; Parameter sync = <T>;",
    ),
]


@dataclass(frozen=True)
class LinesCase(Case):
    """A case of `readers`, with its entry in `cases.yaml`."""

    spec: dict[str, Any] = field(default_factory=dict)

    def run(self, cntkpy: Runner, folder: Path) -> Found:
        """Run all its steps; return what they left."""
        self._lay_out(folder)
        steps = self.spec.get("steps") or [self.spec]
        codes: list[int] = []
        log: list[str] = []
        out = ""
        messages = ""
        for step in steps:
            for operation in step.get("before", []):
                change_files(folder, *operation.split())
            config = step.get("config", self.spec.get("config"))
            words = [f"configFile={config}", "RunDir=run", "DataDir=data", "ConfigDir=."]
            result = cntkpy(*words, *map(str, step.get("args", [])), cwd=folder)
            codes.append(int(result.code != 0))
            out += ("\n" if len(codes) > 1 else "") + result.out
            messages += result.err.partition("EXCEPTION occurred: ")[2]
            text = (folder / step["logfile"]).read_text(encoding="utf-8") if "logfile" in step else result.err
            log += [f"== step {len(codes)}"] if len(steps) > 1 else []
            log += shape_of_log(text) if self.spec.get("shape") else figures_of_log(text)
        return {
            "status": codes,
            "message": messages,
            "log": log,
            "stdout": [line.rstrip() for line in out.split("\n")],
            "files": {name: lines for wanted in self.spec.get("files", []) for name, lines in files(folder, wanted)},
            "list": {pattern: names(folder, pattern) for pattern in self.spec.get("list", [])},
        }

    def changed(self, changes: Mapping[str, str]) -> "LinesCase":
        """The case with a further word."""
        return replace(self, spec={**self.spec, "args": [*self.spec.get("args", []), *changes.values()]})

    def compare(self, found: Found, masks: Mapping[str, str] = NO_MASKS) -> list[Difference]:
        """Compare with what CNTK left."""
        expected = load_yaml(GOLDENS / self.group / "expected.yaml")[self.name]
        relative, absolute = float(self.spec.get("rtol", RELATIVE)), float(self.spec.get("atol", ABSOLUTE))
        loose = LineRule(relative, absolute)
        differences = []
        if expected["rc"] != found["status"] and "status" not in masks:
            text = f"{expected['rc']} expected, {found['status']} found {found['message'][:300]}"
            differences.append(Difference("status", text))
        rule = LineRule(relative, absolute, blanks=bool(self.spec.get("shape")))
        mine, other = (masked(lines, masks.get("log")) for lines in (expected.get("log", []), found["log"]))
        differences += compare_lines("log", "", mine, other, rule)
        if self.spec.get("stdout"):
            differences += compare_lines("stdout", "", expected["stdout"], found["stdout"], loose)
        exact = LineRule(relative, absolute, exact=True)
        wanted = expected.get("files", {})
        for name in sorted(wanted.keys() | found["files"].keys()):
            by = exact if name.endswith("|exact") else loose
            mine, other = (masked(lines.get(name), masks.get("files")) for lines in (wanted, found["files"]))
            differences += compare_lines("files", name, mine, other, by)
        for pattern, listed in expected.get("list", {}).items():
            if found["list"][pattern] != listed:
                text = f"{pattern}: {listed} expected, {found['list'][pattern]} found"
                differences.append(Difference("list", text))
        return differences

    def _lay_out(self, folder: Path) -> None:
        """Copy the configurations and the data into the empty folder."""
        source = GOLDENS / self.group
        shutil.copytree(source / "data", folder / "data")
        for path in source.iterdir():
            if path.suffix in (".cntk", ".mel", ".ndl"):
                shutil.copy(path, folder)
        (folder / "run").mkdir()


@dataclass(frozen=True)
class RandomCase(Case):
    """A folder with `config.cntk`, its data, and what CNTK left.

    `expected.log` has the lines with figures, blanks joined, `expected.NAME` the lines of `run/NAME`.

    Attributes:
        changes: see `changed`.
    """

    changes: Mapping[str, str] = field(default_factory=dict[str, str])

    def run(self, cntkpy: Runner, folder: Path) -> Found:
        """Run it in a copy of its folder."""
        for path in (GOLDENS / self.group / self.name).iterdir():
            shutil.copy(path, folder)
        config = folder / "config.cntk"
        config.write_text(replaced(config.read_text(encoding="utf-8"), self.changes), encoding="utf-8")
        result = cntkpy("configFile=config.cntk", cwd=folder)
        written = {name: lines for name in self._files() for _, lines in files(folder, f"run/{name}")}
        log = figures_of_log(result.err)
        return {"status": result.code, "message": result.err[-300:], "log": log, "files": written}

    def changed(self, changes: Mapping[str, str]) -> "RandomCase":
        """The case with other pieces of its configuration."""
        return replace(self, changes=changes)

    def _files(self) -> dict[str, Path]:
        """What CNTK wrote into `run`, by its name there."""
        listed = sorted((GOLDENS / self.group / self.name).glob("expected.*"))
        return {path.name.removeprefix("expected."): path for path in listed if path.name != "expected.log"}

    def compare(self, found: Found, masks: Mapping[str, str] = NO_MASKS) -> list[Difference]:
        """Compare with CNTK's log."""
        differences = []
        if found["status"]:
            differences.append(Difference("status", f"0 expected, {found['status']} found {found['message']}"))
        text = (GOLDENS / self.group / self.name / "expected.log").read_text(encoding="utf-8")
        expected = [line for line in text.splitlines() if FIGURES.search(line)]
        log = [line.removesuffix(". Using CPU.") for line in found["log"] if FIGURES.search(line)]
        log = [line for line in log if not LEFT_OUT.match(line)]
        rule = LineRule(RELATIVE, ABSOLUTE)
        mine, other = (masked(lines, masks.get("log")) for lines in (expected, log))
        differences += compare_lines("log", "", mine, other, rule)
        for name, path in self._files().items():
            left = lines_of_file(path, ""), found["files"][name]
            mine, other = (masked(lines, masks.get("files")) for lines in left)
            differences += compare_lines("files", name, mine, other, rule)
        return differences


LEFT_OUT = re.compile(r"^ ?(?:Creating virgin|SGD: |Training criteri|Evaluation criteri|Finished Mini-Epoch)")
"""Lines which the logs of random cases leave out."""


def cases() -> list[Case]:
    """The cases of `readers`."""
    result: list[Case] = []
    for path in sorted(GOLDENS.glob("readers/*/cases.yaml")):
        group = path.parent.relative_to(GOLDENS).as_posix()
        result += [LinesCase(group, spec["name"], spec.get("quirk", ""), spec) for spec in load_yaml(path)]
    return result


def random_cases() -> list[Case]:
    """The random configurations."""
    return [RandomCase("random", path.parent.name) for path in sorted(GOLDENS.glob("random/*/config.cntk"))]


def figures_of_log(text: str) -> list[str]:
    """The lines that carry figures, without times and dates."""
    lines = (STAMP.sub("", line.rstrip()) for line in text.replace("\r", "").split("\n"))
    return [COMMAND.sub(r"\1", TIMES.sub("", line)) for line in lines if FIGURES.search(line)]


def shape_of_log(text: str) -> list[str]:
    """The lines from the first banner on, dates and times blanked; without empty lines and chatter."""
    result = []
    begun = False
    for raw in text.replace("\r", "").split("\n"):
        line = raw.rstrip()
        for pattern, blank in VOLATILE:
            line = pattern.sub(blank, line).rstrip()
        begun = begun or bool(BANNER.match(line))
        bare = line.removeprefix("<DATE>: ")
        if begun and bare not in ("", "<DATE>:") and (bare.startswith("Model has") or not CHATTER.search(bare)):
            result.append(line)
    return result


@dataclass(frozen=True)
class LineRule:
    """When two lines are the same: byte for byte, or word for word with numbers within a tolerance."""

    relative: float
    absolute: float
    exact: bool = False
    blanks: bool = False

    def same(self, expected: str, found: str) -> bool:
        """Whether the lines agree."""
        if expected == found or self.exact:
            return expected == found
        numbers = list(zip_longest(NUMBER.findall(expected), NUMBER.findall(found), fillvalue=""))
        return self._words(expected) == self._words(found) and all(self._numbers(a, b) for a, b in numbers)

    def _words(self, line: str) -> str:
        text = NUMBER.sub("#", line).rstrip()
        return text if self.blanks else " ".join(text.split())

    def _numbers(self, a: str, b: str) -> bool:
        if not a or not b:
            return False
        x, y = float(a), float(b)
        if not (math.isfinite(x) and math.isfinite(y)):
            return str(x) == str(y)
        if a.lstrip("+-").isdigit() and b.lstrip("+-").isdigit():
            return x == y
        return abs(x - y) <= self.absolute + self.relative * max(abs(x), abs(y))


def masked(lines: list[str] | None, mask: str | None) -> Any:
    """Lines without what does not count, and without those of which nothing is left; none is as no file."""
    if lines is None or mask is None:
        return lines
    return [line for line in (re.sub(mask, "", line) for line in lines) if line.strip()] or None


def compare_lines(
    part: str, name: str, expected: list[str] | None, found: list[str] | None, rule: LineRule
) -> Iterator[Difference]:
    """The first line that differs; None stands for a file that does not exist."""
    if expected is None or found is None:
        if expected is not found:
            yield Difference(part, f"{name} {'is missing' if found is None else 'should not exist'}")
        return
    for number, (mine, other) in enumerate(zip_longest(expected, found, fillvalue=NOTHING), 1):
        if not rule.same(mine, other):
            yield Difference(part, f"{name} line {number}\n  expected {mine}\n  found    {other}")
            return


def files(folder: Path, wanted: str) -> Iterator[tuple[str, list[str] | None]]:
    """The files of `PATTERN` or `PATTERN|KIND` with their lines."""
    pattern, bar, kind = wanted.partition("|")
    found = sorted(folder.glob(pattern))
    if not found and "*" not in pattern:
        yield wanted, None
    for path in found:
        yield path.relative_to(folder).as_posix() + bar + kind, lines_of_file(path, kind)


def lines_of_file(path: Path, kind: str) -> list[str]:
    """The lines of a text; with `exact` their ends show; `htk`: the header and the frames of a file of features."""
    if kind == "htk":
        return htk_lines(path.read_bytes())
    lines = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    if not lines[-1]:
        lines.pop()
        if kind == "exact":
            return [f"{line}\\n" for line in lines]
    return lines


def htk_lines(content: bytes) -> list[str]:
    """A line for the header of an HTK file, and one per frame."""
    frames, period, size, kind = struct.unpack_from(">iihh", content)
    width = size // 4
    head = f"HTK frames {frames} period {period} dim {width} kind {kind} bytes {len(content)}"
    rows = (struct.unpack_from(f">{width}f", content, 12 + i * size) for i in range(frames))
    return [head, *(" ".join(f"{value:.7g}" for value in row) for row in rows)]


def names(folder: Path, pattern: str) -> list[str]:
    """The paths that a pattern finds."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))


def change_files(folder: Path, what: str, name: str, *more: str) -> None:
    """What happens to files between two steps: `rm A`, `mv A B`, `cp A B`, `age A SECONDS`."""
    path = folder / name
    if what == "rm":
        path.unlink()
    elif what == "mv":
        path.rename(folder / more[0])
    elif what == "cp":
        shutil.copy(path, folder / more[0])
    elif what == "age":
        modified = path.stat().st_mtime - float(more[0])
        os.utime(path, (modified, modified))
    else:
        raise ValueError(f"unknown operation {what!r}")

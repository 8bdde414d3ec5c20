"""Goldens of whole runs on real data, in single and in double precision: the lines of epochs and of final results."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from golden_cases.case import GOLDENS, NO_MASKS, Case, Difference, Found, Runner, load_yaml
from golden_cases.lines import LineRule

FOLDER = GOLDENS / "runs"
COMMAND = re.compile(r"^# (\S+) command \((\w+) action\)")
EPOCH = re.compile(r"^Finished Epoch\[ *(\d+) of +\d+\]: \[(Training|Validate)\] (.*)")
FINAL = re.compile(r"^Final Results: Minibatch\[[\d-]+\]: (.*)")
RATE = re.compile(r"learningRatePerSample = (\S+?);")
CRITERION = re.compile(r"(\S+) = (\S+) \* (\d+)")
REDUCED = re.compile(r"^learnRatePerSample reduced to (\S+)")

DOUBLE, SINGLE, EPOCHS_IN_SINGLE = 1e-5, 1e-3, 3
"""Relative tolerances of the criteria. In single precision rounding makes runs drift apart: only the first epochs
count, and numbers of errors are not compared."""

ERRORS = ("EvalClassificationError", "err")


@dataclass(frozen=True)
class WholeRun(Case):
    """One configuration in one precision; `name` is `CONFIGURATION:PRECISION`."""

    def run(self, cntkpy: Runner, folder: Path) -> Found:
        """Run it; return its rows."""
        config, _, precision = self.name.partition(":")
        words = [f"configFile={FOLDER / config}.cntk", f"precision={precision}"]
        result = cntkpy(*words, f"RunDir={folder}", f"DataDir={FOLDER / 'data'}", cwd=folder)
        written = {path.name: path.read_text(encoding="utf-8").splitlines() for path in sorted(folder.glob("out.*"))}
        log = list(rows_of_log(result.err))
        return {"status": result.code, "message": result.err[-300:], "log": log, "files": written}

    def compare(self, found: Found, masks: Mapping[str, str] = NO_MASKS) -> list[Difference]:
        """Compare the rows one by one."""
        if found["status"]:
            return [Difference("status", f"0 expected, {found['status']} found {found['message']}")]
        double = self.name.endswith(":double")
        listed = [list(map(str, row)) for row in load_yaml(FOLDER / "expected.yaml")[self.name]]
        differences = compare_files([fields for _, kind, *fields in listed if kind == "File"], found["files"], double)
        expected = [Row.parse(*row) for row in listed if row[1] != "File"]
        rows = found["log"]
        if not double:
            expected, rows = ([row for row in rows if row.early] for rows in (expected, rows))
        if [row.what for row in expected] != [row.what for row in rows]:
            return [Difference("log", f"{[row.what for row in expected]} expected, {[row.what for row in rows]} found")]
        pairs = zip(expected, rows, strict=True)
        return differences + [Difference("log", f"{a}, found {b}") for a, b in pairs if not a.agrees(b, double)]


@dataclass(frozen=True)
class Row:
    """A line of an epoch, of a final result, or of a change of the learning rate.

    Attributes:
        what: command, kind and epoch.
        values: average and count by criterion; the learning rate has no count.
    """

    what: tuple[str, str, int]
    values: dict[str, tuple[float, int]]

    @classmethod
    def parse(cls, command: str, kind: str, epoch: str, *fields: str) -> "Row":
        """A row of `expected.yaml`: `train, Training, 1, ce=0.25*100, learningRatePerSample=0.1`."""
        values = {}
        for text in fields:
            name, _, value = text.partition("=")
            average, _, count = value.partition("*")
            values[name] = (float(average), int(count or 0))
        return cls((command, kind, int(epoch)), values)

    @property
    def early(self) -> bool:
        """Whether it belongs to the first epochs of a training."""
        return self.what[1] in ("Training", "Validate") and self.what[2] <= EPOCHS_IN_SINGLE

    def agrees(self, other: "Row", double: bool) -> bool:
        """Whether the numbers agree as far as the precision lets them."""
        if self.values.keys() != other.values.keys():
            return False
        for name, (expected, count) in self.values.items():
            found, found_count = other.values[name]
            if name in ERRORS and not double:
                continue
            near = abs(found - expected) <= (DOUBLE if double else SINGLE) * abs(expected)
            if count != found_count or not near:
                return False
        return True


def compare_files(expected: list[list[str]], found: dict[str, list[str]], double: bool) -> list[Difference]:
    """Compare written files by their number of lines and, in double precision, by the first and the last one."""
    wanted = {}
    for name, *fields in expected:
        wanted[name] = {key: value.strip("'") for key, _, value in (field.partition("=") for field in fields)}
    if wanted.keys() != found.keys():
        return [Difference("files", f"{sorted(wanted)} expected, {sorted(found)} found")]
    differences = []
    for name, properties in wanted.items():
        lines = found[name]
        pairs = [(properties["lines"], str(len(lines)))]
        if double:
            pairs += [(properties["first"], lines[0]), (properties["last"], lines[-1])]
        rule = LineRule(DOUBLE, 2e-6)
        differences += [Difference("files", f"{name}: {a}, found {b}") for a, b in pairs if not rule.same(a, b)]
    return differences


def rows_of_log(text: str) -> Iterator[Row]:
    """The rows of a log. In a training the final result of a validation is that of the line of its epoch."""
    command = action = ""
    for line in text.splitlines():
        if banner := COMMAND.match(line):
            command, action = banner[1], banner[2]
        elif epoch := EPOCH.match(line):
            values = criteria(epoch[3])
            if rate := RATE.search(epoch[3]):
                values["learningRatePerSample"] = (float(rate[1]), 0)
            yield Row((command, epoch[2], int(epoch[1])), values)
        elif reduced := REDUCED.match(line):
            yield Row((command, "Reduced", 0), {"learningRatePerSample": (float(reduced[1]), 0)})
        elif action != "train" and (final := FINAL.match(line)):
            yield Row((command, "Final", 0), criteria(final[1]))


def criteria(text: str) -> dict[str, tuple[float, int]]:
    """The criteria of a line: average and count."""
    return {name: (float(value), int(count)) for name, value, count in CRITERION.findall(text)}


def cases() -> list[Case]:
    """The whole runs."""
    return [WholeRun("runs", name) for name in load_yaml(FOLDER / "expected.yaml")]

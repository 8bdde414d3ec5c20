"""Goldens of networks and of BrainScript: numbers that are written, dumped and logged, compared one by one.

A folder holds `cases.yaml` and `expected.yaml`. A case has a configuration of its own, or a template into which its
script is put. What is compared: accepted or refused (with words that the message has to mention), what `Print` printed,
the criteria in the log, the rows below `out/`, and the nodes and parameters in `*.dump.txt`.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from golden_cases.case import GOLDENS, NO_MASKS, Case, Difference, Found, Result, Runner, load_yaml, replaced

RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""How far a number may be off: `ABSOLUTE + RELATIVE * max(|a|, |b|)`, unless the case has a tolerance of its own."""

NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf|-nan)"
EPOCH = re.compile(r"Finished Epoch\[ *(\d+) of +\d+\]: \[(Training|Validate)\] (.*)")
FINAL = re.compile(r"Final Results: Minibatch\[[0-9-]+\]: (.*)")
CRITERION = re.compile(rf"([^\s;:=]+) = ({NUMBER})%? \* (\d+)")
PERPLEXITY = re.compile(rf"perplexity = ({NUMBER})")
PRINTED = re.compile(r"^BS<<\n(.*?)^>>BS$", re.DOTALL | re.MULTILINE)
FAILURE = re.compile(r"EXCEPTION occurred[:.] *(.*)", re.DOTALL)
NODE = re.compile(r"^(?!Geometry|PoolKind)(.+?)=([A-Za-z]\w*)\s*((?:\(.*|\[.*)?)\s*$")
AUTOMATIC = re.compile(r"(?<![\w.])AutoName\d+|unnamed\d+")
"""Names that a program makes up are compared as `?`: CNTK numbers them over all that it parses, cntkpy per network."""


@dataclass(frozen=True)
class FiguresCase(Case):
    """A case of `networks` or `brainscript`.

    Attributes:
        spec: its entry in `cases.yaml`.
        exact_names: node names are part of the behaviour (in BrainScript they are), made-up ones too.
        changes: see `changed`.
    """

    spec: dict[str, Any] = field(default_factory=dict)
    exact_names: bool = False
    changes: Mapping[str, str] = field(default_factory=dict[str, str])

    def run(self, cntkpy: Runner, folder: Path) -> Found:
        """Run it; return what it left."""
        data = GOLDENS / ("brainscript/data" if self.exact_names else self.group)
        config = data / self.spec.get("config", f"{self.name}.cntk")
        if self.changes.keys() - {""} and config.exists():
            text = replaced(config.read_text(encoding="utf-8"), self.changes)
            config = folder / config.name
            config.write_text(text, encoding="utf-8")
        if "script" in self.spec or "template" in self.spec:
            config = folder / "script.cntk"
            config.write_text(self._script(), encoding="utf-8")
            for name, text in self.spec.get("files", {}).items():
                (folder / name).write_text(text, encoding="utf-8")
        words = [f"configFile={config}", f"ConfigDir={data}", f"DataDir={data}", f"RunDir={folder}"]
        result = cntkpy(*words, *map(str, self.spec.get("args", [])), *added(self.changes), cwd=folder)
        return _left_behind(result, folder, self.spec.get("dump", "both"), self.exact_names)

    def changed(self, changes: Mapping[str, str]) -> "FiguresCase":
        """The case with other pieces of its script, and more words."""
        return replace(self, changes=changes)

    def compare(self, found: Found, masks: Mapping[str, str] = NO_MASKS) -> list[Difference]:
        """Compare with what CNTK printed."""
        expected = load_yaml(GOLDENS / self.group / "expected.yaml")[self.name]
        if expected["verdict"] != found["verdict"] and "verdict" not in masks:
            text = f"{expected['verdict']} expected, {found['verdict']} found {found['message'][:300]}"
            return [Difference("verdict", text)]
        missing = [
            word for word in self.spec.get("mentions") or [] if str(word).lower() not in found["message"].lower()
        ]
        differences = []
        if expected["verdict"] == found["verdict"] == "rejected" and missing:
            differences = [Difference("message", f"{', '.join(map(repr, missing))} not in: {found['message'][:300]}")]
        tolerance = self.spec.get("tol", {})
        near = Near(float(tolerance.get("rel", RELATIVE)), float(tolerance.get("abs", ABSOLUTE)))
        for part in ("printed", "log", "outputs", "parameters"):
            if part in expected:
                texts = near.differences(expected[part], found.get(part), "")
                differences += [Difference(part, text) for text in texts]
        for file, listed in expected.get("nodes", {}).items():
            differences += self._compare_nodes(file, listed, found.get("nodes", {}).get(file, []))
        return [difference for difference in differences if not difference.masked(masks)]

    def _script(self) -> str:
        """The configuration: the template with the script, the value of the builder and the lines at the root."""
        if self.exact_names:
            templates = load_yaml(GOLDENS / "brainscript/templates.yaml")
        else:
            templates = load_yaml(GOLDENS / self.group / "cases.yaml")["templates"]
        text = templates[self.spec.get("template", "default")]
        text = text.replace("@SCRIPT@", replaced(self.spec.get("script", ""), self.changes))
        text = text.replace("@BUILDER@", self.spec.get("builder", "" if self.exact_names else "run = net"))
        return text.replace("@TOP@", self.spec.get("top", ""))

    def _compare_nodes(self, file: str, expected: list[str], found: list[str]) -> list[Difference]:
        """Compare lists of nodes; their order does not count."""
        if self.exact_names:
            mine, other = sorted(expected), sorted(found)
        else:
            mine, other = ([AUTOMATIC.sub("?", line).lower() for line in lines] for lines in (expected, found))
        if sorted(mine) == sorted(other):
            return []
        only = [
            f"only {who} {sorted(set(a) - set(b))}" for who, a, b in (("expected", mine, other), ("found", other, mine))
        ]
        return [Difference("nodes", f"{file}: {'; '.join(only)}")]


def added(changes: Mapping[str, str]) -> list[str]:
    """The words that changes add."""
    return [changes[""]] if "" in changes else []


@dataclass(frozen=True)
class Near:
    """Comparison of nested lists and mappings of numbers and texts, within a tolerance."""

    relative: float
    absolute: float

    def same(self, a: float, b: float) -> bool:
        """Whether two numbers agree."""
        return abs(a - b) <= self.absolute + self.relative * max(abs(a), abs(b))

    def differences(self, expected: Any, found: Any, path: str) -> Iterator[str]:
        """Where `found` differs from `expected`. Keys that only `found` has do not count, nor the case of letters."""
        if isinstance(expected, dict):
            if not isinstance(found, dict):
                yield f"{path} is missing"
                return
            lower = {str(key).lower(): value for key, value in found.items()}
            for key, value in expected.items():
                inner = found[key] if key in found else lower.get(str(key).lower())
                yield from self.differences(value, inner, f"{path}/{key}")
        elif isinstance(expected, list):
            if not isinstance(found, list) or len(found) != len(expected):
                count = len(found) if isinstance(found, list) else "no"
                yield f"{path} has {count} elements, {len(expected)} expected"
                return
            for i, (mine, other) in enumerate(zip(expected, found, strict=True)):
                yield from self.differences(mine, other, f"{path}[{i}]")
        elif isinstance(expected, int | float) and isinstance(found, int | float):
            if not self.same(expected, found):
                yield f"{path} is {found!r}, {expected!r} expected"
        elif expected != found:
            yield f"{path} is {found!r}, {expected!r} expected"


def cases() -> list[Case]:
    """All cases of `networks` and `brainscript`."""
    result: list[Case] = []
    for path in [*sorted(GOLDENS.glob("networks/*/cases.yaml")), *sorted(GOLDENS.glob("brainscript/*/cases.yaml"))]:
        group = path.parent.relative_to(GOLDENS).as_posix()
        for name, spec in load_yaml(path)["cases"].items():
            spec = spec or {}
            accident = "defect of CNTK" if spec.get("defect") else ""
            result.append(FiguresCase(group, name, accident, spec, group.startswith("brainscript/")))
    return result


def _left_behind(result: Result, folder: Path, dumped: str, exact_names: bool) -> Found:
    """Everything that is compared, in the form of `expected.yaml`."""
    log = result.out + result.err
    failure = FAILURE.search(log) if result.code else None
    found: Found = {
        "verdict": "rejected" if result.code else "accepted",
        "message": failure[1].strip() if failure else "",
        "log": list(_criteria_lines(log)),
    }
    if printed := PRINTED.search(log):
        found["printed"] = printed[1].split("\n")[:-1]
    if (folder / "out").is_dir():
        found["outputs"] = {path.name: list(_rows(path)) for path in sorted((folder / "out").iterdir())}
    for path in sorted(folder.glob("*.dump.txt")):
        name = path.name.removesuffix(".dump.txt")
        nodes = list(_dumped_nodes(path))
        if dumped in ("both", "nodes"):
            found.setdefault("nodes", {})[name] = [node.line for node in nodes]
        if dumped in ("both", "values"):
            named = [node for node in nodes if exact_names or not AUTOMATIC.search(node.name)]
            found.setdefault("parameters", {})[name] = {node.name: node.rows for node in named if node.rows}
    return found


def _number(text: str) -> float | int | str:
    """A number; `nan`, `inf` and `-inf` as texts, because they are compared as such."""
    if "nan" in text.lower():
        return "nan"
    value = float(text)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _criteria_lines(log: str) -> Iterator[list]:
    """`[what, epoch, {criterion: [average, count]}, ...]` for each line of an epoch or of a whole evaluation."""
    for line in log.split("\n"):
        if epoch := EPOCH.search(line):
            yield [epoch[2], int(epoch[1]), *_criteria(epoch[3])]
        elif final := FINAL.search(line):
            yield ["Final", 0, *_criteria(final[1])]


def _criteria(text: str) -> Iterator[dict]:
    for name, value, count in CRITERION.findall(text):
        yield {name: [_number(value), int(count)]}
    if perplexity := PERPLEXITY.search(text):
        yield {"perplexity": _number(perplexity[1])}


def _rows(path: Path) -> Iterator[list | str]:
    """The lines of a written file: lists of numbers where they are numbers, else their text."""
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        if not line.strip():
            continue
        try:
            yield [_number(word) for word in line.split()]
        except ValueError:
            yield line.strip()


@dataclass
class _Node:
    """A node of a dump: the line that tells what it is, and the rows of its value."""

    name: str
    line: str
    rows: list[list] = field(default_factory=list)


def _dumped_nodes(path: Path) -> Iterator[_Node]:
    """The nodes of a text that `dumpNode` wrote."""
    node = None
    for text in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        line = text.strip()
        if not line or set(line) == {"#"} or line.startswith(("Geometry", "PoolKind")):
            continue
        if head := NODE.match(line):
            if node:
                yield node
            node = _Node(head[1].strip(), _node_line(head[1].strip(), head[2], head[3]))
        elif node:
            try:
                node.rows.append([_number(word) for word in line.split()])
            except ValueError:
                continue
    if node:
        yield node


def _node_line(name: str, operation: str, rest: str) -> str:
    """`name = Operation(inputs) [shape] x<multiplier>`, blanks tidied."""
    line = f"{name} = {operation}"
    if rest.startswith("("):
        inner, _, rest = rest[1:].partition(")")
        line += f"({', '.join(word.strip() for word in inner.split(' , '))})" if inner.strip() else "()"
    if shape := re.search(r"\[([^\]]*)\]", rest):
        line += f" [{' '.join(shape[1].split())}]"
    if rate := re.search(r"learningRateMultiplier=(\S+)", rest):
        line += f" x{_number(rate[1])}"
    return line

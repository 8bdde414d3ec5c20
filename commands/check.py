"""`cntkpy check`: what is wrong with configurations, found without running anything."""

from collections.abc import Iterator

from cntk_config import ConfigError, ConfigParameters, load
from cntk_config.diagnostics import Diagnostic
from commands.check_rules import command_problems
from commands.context import read_device
from commands.root import RootParameters, check_deprecated, check_precision
from commands.values import value_problems
from commands.words import same_directory, sort_words

EXIT_FINDINGS = 2


def check(words: list[str], quiet: bool = False) -> int:
    """Check the configurations that `words` name; print the findings; return the exit status."""
    configurations = sort_words(words).configurations
    errors = 0
    for line in configurations:
        with same_directory():
            for finding in findings(line):
                errors += finding.severity == "error"
                print(finding.one_line() + (f" - {finding.hint}" if finding.hint else ""))
    if not quiet:
        found = "no problems" if not errors else "1 error" if errors == 1 else f"{errors} errors"
        print(f"{found} in {len(configurations)} configuration{'s' * (len(configurations) != 1)}")
    return EXIT_FINDINGS if errors else 0


def findings(words: list[str]) -> list[Diagnostic]:
    """Return all findings of one configuration, in the order of the text, each place once."""
    try:
        root = load(words)
    except ConfigError as error:
        return [error.diagnostic]
    found: list[Diagnostic] = []
    for problem in _problems(root):
        _add(found, problem)
    return sorted([*root.warnings, *found], key=_place)


def _place(finding: Diagnostic) -> tuple[str, int, int]:
    span = finding.span
    return (span.source.name, span.line, span.column) if span is not None else ("", 0, 0)


def _add(found: list[Diagnostic], new: Diagnostic) -> None:
    """Add a finding unless its place has one of the same kind; a cycle of variables is found at each of them."""
    for old in found:
        if (old.kind, old.span) == (new.kind, new.span) and (new.span or old.message == new.message):
            return
        if old.kind == new.kind == "VariableCycle" and _names(old) == _names(new):
            return
        if old.kind == new.kind == "MissingParameter" and _is_inside(new, old):
            return
    found.append(new)


def _names(cycle: Diagnostic) -> set[str]:
    return {word.lower() for word in cycle.message.split() if word.startswith("$")}


def _is_inside(new: Diagnostic, old: Diagnostic) -> bool:
    """Whether the same parameter is missing in a section around: `f:train:x` and `f:train:SGD:x`."""
    (outer, _, name), (inner, _, same) = (one.message.split(" ")[0].rpartition(":") for one in (old, new))
    return name == same and (inner + ":").startswith(outer + ":")


def _problems(root: ConfigParameters) -> Iterator[Diagnostic]:
    for error in value_problems(root):
        yield error.diagnostic
    parameters = RootParameters(root)
    yield from parameters.problems()
    for test in (lambda: check_precision(parameters), lambda: check_deprecated(root), lambda: check_device(root)):
        try:
            test()
        except ConfigError as error:
            yield error.diagnostic
    yield from command_problems(root)


def check_device(root: ConfigParameters) -> None:
    """Look at `deviceId`; whether there is such a GPU is known only when something is computed."""
    read_device(root.find("deviceId"))

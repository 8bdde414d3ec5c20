"""Tell what is wrong with a reader section that a command reads alone: `preview` and `convert`."""

from __future__ import annotations

import sys

from cntkpy.cntk_config import ConfigParameters
from cntkpy.commands.catalogue.section_map import reader_use
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.names import unread_names, used_variables
from cntkpy.commands.checks.rules import idle_sections, value_problems


def tell_problems(section: ConfigParameters, *, quiet: bool = False) -> None:
    """Print the warnings of a reader section on standard error, as `check` finds them.

    Args:
        section: the section.
        quiet: print nothing.

    Raises:
        ConfigError: the first error in a value.
    """
    root = section
    while root.parent is not None:
        root = root.parent
    variables = used_variables(root)
    findings = [
        Finding.of(problem)
        for use in reader_use(section, "reader").walk()
        for problem in (
            *value_problems(use),
            *idle_sections(use),
            *(() if use.sets else unread_names(use, variables)),
        )
    ]
    for finding in findings:
        if finding.severity == "error":
            raise finding.error()
    for finding in [] if quiet else findings:
        print(finding.one_line(), file=sys.stderr)

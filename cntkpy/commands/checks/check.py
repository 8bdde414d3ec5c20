"""`cntkpy check`: what is wrong with configurations, found without running anything."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from cntkpy.cntk_config import ConfigError, ConfigParameters, load
from cntkpy.cntk_config.base.diagnostics import Diagnostic
from cntkpy.cntk_config.base.files import is_folder, read_input
from cntkpy.cntk_config.base.kinds import RULES
from cntkpy.cntk_config.base.systems import cores
from cntkpy.cntk_config.includes import Loader
from cntkpy.commands.checks import output as check_output
from cntkpy.commands.checks.files import RECORDS
from cntkpy.commands.checks.findings import Finding, selects
from cntkpy.commands.checks.look import look
from cntkpy.commands.checks.scripts import is_ndl, is_script, ndl_findings, script_findings
from cntkpy.commands.console import has_colours
from cntkpy.commands.context import processes
from cntkpy.commands.words import OPEN, is_config_word, same_directory, sort_words

EXIT_WARNINGS, EXIT_ERRORS = 1, 2
CONFIGS_PER_PROCESS = 25
"""Configurations that are worth a process of their own."""
SUFFIXES = (".cntk", ".cfg", ".config")
"""The files of a folder that are configurations."""

FOREIGN = (".cfg", ".config")
"""Endings that files of other programs have, too."""
MOST_SKIPPED = 5
"""Files that are named as skipped; the others are counted."""
_COMMANDS = re.compile(r"(?:^|[\s;,\[({])(?:command|action)\s*=", re.IGNORECASE)
_INCLUDE = re.compile(r"(?:^|[\s;,\[({])include\s*=", re.IGNORECASE)
_FOREIGN_TEXT = re.compile(r"\A\s*<|^\[[^\[\]=\n]+\][ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True)
class CheckOptions:
    """The findings that are wanted, and what is looked at."""

    select: str = ""
    """Codes or beginnings of codes, with commas: only these findings. Empty: all."""
    ignore: str = ""
    """Findings to leave out."""
    strict: bool = False
    """Make every finding an error."""
    data: bool = False
    """Read the first records of the data."""
    records: int = RECORDS
    modules: bool = False
    """Import the modules that readers name, for their declarations."""
    open_: bool = False
    """Leave out variables that are not given."""


def check(words: list[str], quiet: bool, form: str, options: CheckOptions) -> int:
    """Check the configurations that `words` name; print the findings; return the exit status.

    Args:
        words: Configurations, folders of them, and overrides.
        quiet: Leave out notes and the last line.
        form: The form of the output, as in `--format`.
        options: The findings that are wanted.

    Returns:
        0 without findings or with hints only, 1 with warnings, 2 with errors.
    """
    for option, codes in (("--select", options.select), ("--ignore", options.ignore)):
        _check_codes(option, codes)
    skipped: list[str] = []
    expanded = expand_folders(words, skipped=skipped)
    if skipped and not quiet:
        shown = ", ".join(skipped[:MOST_SKIPPED]) + ", ..." * (len(skipped) > MOST_SKIPPED)
        print(f"note: {len(skipped)} skipped, no command and no action is in them: {shown}", file=sys.stderr)
    if expanded != words and not any("=" not in word or is_config_word(word) for word in expanded):
        folders = " ".join(word for word in words if word not in expanded)
        raise click.UsageError(f"In {folders} there is no configuration.")
    configurations = sort_words(expanded).configurations
    several = list(_all_findings(configurations, options))
    results = [(line, result) for line, (result, _) in zip(configurations, several, strict=True)]
    is_cut = any(names for _, names in several)
    colours = has_colours(sys.stdout)
    sys.stdout.write(check_output.write(results, form, quiet, colours, options.records if is_cut else None))
    severities = {finding.severity for _, result in results for finding in result}
    return EXIT_ERRORS if "error" in severities else EXIT_WARNINGS if "warning" in severities else 0


def _check_codes(option: str, codes: str) -> None:
    """Require that every word of an option selects the code of some finding."""
    for word in filter(None, (word.strip() for word in codes.split(","))):
        if not any(selects(word, rule.code) for rule in RULES):
            raise click.UsageError(f"{option}: no finding has the code '{word}'; `cntkpy list findings` shows all.")


def _all_findings(configurations: list[list[str]], options: CheckOptions) -> Iterator[tuple[list[Finding], set[str]]]:
    """Yield the findings of every configuration, and the data of which only the beginning was read.

    Many configurations are shared out among processes.
    """
    work = functools.partial(_findings_here, options=options)
    several = min(cores.count(), len(configurations) // CONFIGS_PER_PROCESS)
    if several < 2:
        yield from map(work, configurations)
        return
    from concurrent.futures import ProcessPoolExecutor

    with processes.safe_path(), ProcessPoolExecutor(several) as pool:
        yield from pool.map(work, configurations, chunksize=8)


def _findings_here(line: list[str], options: CheckOptions) -> tuple[list[Finding], set[str]]:
    cut = set[str]()
    with same_directory():
        return findings(line, options, cut), cut


def expand_folders(
    words: list[str], suffixes: tuple[str, ...] = SUFFIXES, skipped: list[str] | None = None
) -> list[str]:
    """Return the words, with the configurations of a folder (the files with these endings) in place of its name.

    Files of a folder that do not look like configurations of CNTK are left out, those in `FOREIGN` suffixes always, the
    others (parts of configurations, which can be laid out) if a list is given for their names.
    """
    result: list[str] = []
    for word in words:
        if "=" not in word and "+" not in word and is_folder(word):
            files = (path for path in Path(word).rglob("*") if path.suffix in suffixes and path.is_file())
            for path in sorted(files):
                like = (skipped is None and path.suffix not in FOREIGN) or looks_like_cntk(path)
                if like and (skipped is None or runs_something(path)):
                    result.append(str(path))
                elif skipped is not None:
                    skipped.append(str(path))
        else:
            result.append(word)
    return result


def looks_like_cntk(path: Path) -> bool:
    """Return whether a command, an action or an include is in a file, neither XML nor with sections like `[name]`."""
    try:
        text = read_input(path).decode("utf-8-sig", "replace")
    except (OSError, ConfigError):
        return True  # the error is reported where it is read
    return bool(_COMMANDS.search(text) or _INCLUDE.search(text)) and not _FOREIGN_TEXT.search(text)


def runs_something(path: Path) -> bool:
    """Return whether a command or an action is in a file or in one that it includes: else it is a part of others."""
    loader = Loader()
    try:
        return bool(_COMMANDS.search(loader.expand(loader.file(str(path))).string))
    except ConfigError:
        return True  # the error is reported where it is read


def findings(words: list[str], options: CheckOptions = CheckOptions(), cut: set[str] | None = None) -> list[Finding]:
    """Return all findings of one configuration, in the order of the text, each place once; or of a script.

    `cut` gets the data of which only the beginning was read.
    """
    name = words[0].partition("=")[2] or words[0]
    if len(words) == 1 and is_script(name):
        return script_findings(name)
    if len(words) == 1 and is_ndl(name):
        return ndl_findings(name)
    return findings_of(lambda: load(words), options, cut)


def findings_of(
    read: Callable[[], ConfigParameters], options: CheckOptions = CheckOptions(), cut: set[str] | None = None
) -> list[Finding]:
    """Return the wanted findings of the configuration that `read` returns, in the order of the text.

    `cut` gets the data of which only the beginning was read.
    """
    wanted = [
        finding
        for finding in map(Finding.of, _diagnostics(read, options, cut))
        if (not options.select or selects(options.select, finding.rule.code))
        and not (options.ignore and selects(options.ignore, finding.rule.code))
        and not (options.open_ and finding.diagnostic.kind in OPEN)
        and not finding.ignored()
    ]
    wanted.sort(key=lambda finding: finding.place)
    return [finding.as_error() for finding in wanted] if options.strict else wanted


def _diagnostics(read: Callable[[], ConfigParameters], options: CheckOptions, cut: set[str] | None) -> list[Diagnostic]:
    try:
        root = read()
    except ConfigError as error:
        return [error.diagnostic]
    return look(root, data=options.data, modules=options.modules, records=options.records, cut=cut)

"""`cntkpy check`: what is wrong with configurations, found without running anything."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def check(
    words: list[str],
    quiet: bool = False,
    *,
    form: str = "text",
    select: str = "",
    ignore: str = "",
    strict: bool = False,
    data: bool = False,
    records: int = RECORDS,
    modules: bool = False,
    open_: bool = False,
) -> int:
    """Check the configurations that `words` name; print the findings; return the exit status.

    With `data`, the first `records` records of the data are read.
    With `modules`, those that readers name are imported, for their declarations. With `open_`, variables that are not
    given are no findings.

    The status is 0 without findings or with hints only, 1 with warnings, 2 with errors.
    """
    for option, codes in (("--select", select), ("--ignore", ignore)):
        _check_codes(option, codes)
    skipped: list[str] = []
    given, words = words, expand_folders(words, skipped=skipped)
    if skipped and not quiet:
        shown = ", ".join(skipped[:MOST_SKIPPED]) + ", ..." * (len(skipped) > MOST_SKIPPED)
        print(f"note: {len(skipped)} skipped, no command and no action is in them: {shown}", file=sys.stderr)
    if given != words and not any("=" not in word or is_config_word(word) for word in words):
        raise click.UsageError(f"In {' '.join(one for one in given if one not in words)} there is no configuration.")
    configurations = sort_words(words).configurations
    options = {"select": select, "ignore": ignore, "strict": strict, "data": data, "records": records}
    options |= {"modules": modules, "open_": open_}
    results = list(_all_findings(configurations, options))
    found = [(words, several) for words, (several, _) in zip(configurations, results, strict=True)]
    cut = any(names for _, names in results)
    sys.stdout.write(check_output.write(found, form, quiet, has_colours(sys.stdout), records if cut else None))
    severities = {one.severity for _, several in found for one in several}
    return EXIT_ERRORS if "error" in severities else EXIT_WARNINGS if "warning" in severities else 0


def _check_codes(option: str, codes: str) -> None:
    """Every word of an option selects the code of some finding."""
    for word in filter(None, (word.strip() for word in codes.split(","))):
        if not any(selects(word, rule.code) for rule in RULES):
            raise click.UsageError(f"{option}: no finding has the code '{word}'; `cntkpy list findings` shows all.")


def _all_findings(configurations: list[list[str]], options: dict[str, Any]) -> Iterator[tuple[list[Finding], set[str]]]:
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


def _findings_here(line: list[str], options: dict[str, Any]) -> tuple[list[Finding], set[str]]:
    cut = set[str]()
    with same_directory():
        return findings(line, cut=cut, **options), cut


def expand_folders(
    words: list[str], suffixes: tuple[str, ...] = SUFFIXES, skipped: list[str] | None = None
) -> list[str]:
    """The words, with the configurations of a folder (the files with these endings) in place of its name.

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
    """Whether a command, an action or an include is in a file, neither XML nor with sections like `[name]`."""
    try:
        text = read_input(path).decode("utf-8-sig", "replace")
    except (OSError, ConfigError):
        return True  # the error is reported where it is read
    return bool(_COMMANDS.search(text) or _INCLUDE.search(text)) and not _FOREIGN_TEXT.search(text)


def runs_something(path: Path) -> bool:
    """Whether a command or an action is in a file or in one that it includes: else it is a part of others."""
    loader = Loader()
    try:
        return bool(_COMMANDS.search(loader.expand(loader.file(str(path))).string))
    except ConfigError:
        return True  # the error is reported where it is read


def findings(
    words: list[str],
    *,
    select: str = "",
    ignore: str = "",
    strict: bool = False,
    data: bool = False,
    records: int = RECORDS,
    modules: bool = False,
    open_: bool = False,
    cut: set[str] | None = None,
) -> list[Finding]:
    """All findings of one configuration, in the order of the text, each place once; or of a file of BrainScript."""
    name = words[0].partition("=")[2] or words[0]
    if len(words) == 1 and is_script(name):
        return script_findings(name)
    if len(words) == 1 and is_ndl(name):
        return ndl_findings(name)
    found = findings_of(
        lambda: load(words),
        select=select,
        ignore=ignore,
        strict=strict,
        data=data,
        records=records,
        modules=modules,
        cut=cut,
    )
    return [one for one in found if one.diagnostic.kind not in OPEN] if open_ else found


def findings_of(
    read: Callable[[], ConfigParameters],
    *,
    select: str = "",
    ignore: str = "",
    strict: bool = False,
    data: bool = False,
    records: int = RECORDS,
    modules: bool = False,
    cut: set[str] | None = None,
) -> list[Finding]:
    """All findings of the configuration that `read` gives; `cut` gets the data of which only the
    beginning was read."""
    chosen = [
        finding
        for finding in map(Finding.of, _diagnostics(read, data, records, modules, cut))
        if (not select or selects(select, finding.rule.code))
        and not (ignore and selects(ignore, finding.rule.code))
        and not finding.ignored()
    ]
    chosen.sort(key=lambda finding: finding.place)
    return [finding.as_error() for finding in chosen] if strict else chosen


def _diagnostics(
    read: Callable[[], ConfigParameters], data: bool, records: int, modules: bool, cut: set[str] | None
) -> list[Diagnostic]:
    try:
        root = read()
    except ConfigError as error:
        return [error.diagnostic]
    return look(root, data=data, modules=modules, records=records, cut=cut)

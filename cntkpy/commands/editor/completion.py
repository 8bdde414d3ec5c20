"""Completion in shells: subcommands, options and files, and the names of the configuration at hand.

`cntkpy completion bash|zsh|fish` prints a script. The scripts ask `cntkpy completion words WORD...`, whose last word is
the one to be completed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from cntkpy.cntk_config import ConfigError, ConfigParameters, load
from cntkpy.cntk_config.base.files import is_file
from cntkpy.commands.checks.folders import SUFFIXES
from cntkpy.commands.words import is_config_word, same_directory, sort_words

SHELLS = ("bash", "zsh", "fish")
Subcommands = Mapping[str, Mapping[str, Sequence[str]]]
"""For every subcommand its options with the words that each takes."""
PATHS = ("show", "explain")
"""Subcommands that take the path of a value; the others set values."""
RUNNING = ("run", "check", "show", "explain", "diff", "sweep", "preview")
"""Subcommands that take the name of a run of the project."""
SCRIPTS = {
    "bash": """\
_cntkpy() {
    local word cur IFS=$' \\t\\n' line
    local -a words
    read -ra words <<< "${COMP_LINE:0:COMP_POINT}"
    [[ "${COMP_LINE:0:COMP_POINT}" == *[[:space:]] ]] && words+=("")
    word="${words[${#words[@]}-1]}"
    cur="${COMP_WORDS[COMP_CWORD]}"
    [[ "$cur" == [=:] ]] && cur=""
    local prefix="${word%"$cur"}"
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line#"$prefix"}")
    done < <(cntkpy completion words "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/=] ]] && compopt -o nospace 2>/dev/null
}
complete -F _cntkpy cntkpy
""",
    "zsh": """\
#compdef cntkpy
_cntkpy() {
    local -a found
    found=("${(@f)$(cntkpy completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -n "$found" ]] && compadd -Q -S '' -- $found
}
(( $+functions[compdef] )) && compdef _cntkpy cntkpy
""",
    "fish": """\
complete -c cntkpy -f -a '(cntkpy completion words (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}


def completion(shell: str, words: list[str], subcommands: Subcommands) -> int:
    """Print a script, or the completions of the last word.

    Args:
        shell: one of `SHELLS`, or `words` for the completions themselves.
        words: the command line up to the word that is completed.
        subcommands: for every subcommand its options, with the words that each takes; those of the program itself under
            the empty name.

    Returns:
        The exit status.
    """
    if shell == "words":
        sys.stdout.write("".join(f"{word}\n" for word in sorted(set(complete(words or [""], subcommands)))))
    else:
        sys.stdout.write(SCRIPTS[shell])
    return 0


def complete(words: list[str], subcommands: Subcommands) -> Iterator[str]:
    """Return all that the last word may become."""
    *earlier, last = words
    if not earlier:
        yield from (name for name in subcommands if name and name.startswith(last))
    command = earlier[0] if earlier and earlier[0] in subcommands else ""
    choices = subcommands[command].get(earlier[-1], ()) if earlier else ()
    if last.startswith("-"):
        yield from (option for option in (*subcommands[command], "--help") if option.startswith(last))
    elif choices:
        yield from (word for word in choices if word.startswith(last))
    elif command == "help":
        yield from _help_topics(last)
    elif is_config_word(last):
        head, separator, name = last.rpartition("+") if "+" in last else last.rpartition("=")
        yield from (f"{head}{separator}{file}" for file in _files(name))
    else:
        yield from _config_words(last)
        yield from _run_names(last) if command in RUNNING else ()
        yield from _settings(_configuration(earlier[1:] if command else earlier), command, last)
        yield from _files(last) if command else ()


def _help_topics(start: str) -> Iterator[str]:
    from cntkpy.commands.catalogue.topics import all_names

    return (name for name in all_names() if name.lower().startswith(start.lower()))


def _run_names(start: str) -> Iterator[str]:
    """Return the names of the runs of the project of the current folder that begin so."""
    from cntkpy.commands.projects.places import find_project

    try:
        project = find_project(Path())
    except ConfigError:
        return
    yield from (run.name for run in project.runs if run.name.startswith(start)) if project is not None else ()


def _config_words(start: str) -> Iterator[str]:
    return (word for word in ("configFile=", "currentDirectory=") if start and word.lower().startswith(start.lower()))


def _settings(root: ConfigParameters | None, command: str, start: str) -> Iterator[str]:
    """Return the commands, paths and overrides of a configuration that a word may become."""
    if root is None:
        return iter(())
    if start.lower().startswith("command="):
        return _commands(root, start)
    if command in PATHS and "=" not in start:
        return _paths(root, start)
    paths = _paths(root, start) if "=" not in start and "[" not in start else ()
    return chain((path if path.endswith("/") else f"{path}=" for path in paths), _overrides(root, start))


def _files(start: str) -> Iterator[str]:
    folder = Path(start).parent if not start.endswith("/") else Path(start)
    head = start[: start.rfind("/") + 1]
    try:
        for path in sorted(folder.iterdir()):
            name = head + path.name
            if name.startswith(start) and (path.is_dir() or path.suffix in SUFFIXES):
                yield name + "/" if path.is_dir() else name
    except OSError:
        return


def _configuration(words: list[str]) -> ConfigParameters | None:
    plain = [
        word
        for word, previous in zip(words, ["", *words], strict=False)
        if not word.startswith("-") and not _is_value(previous, word)
    ]
    try:
        with same_directory():
            return load(sort_words(plain, files=1).configurations[0])
    except Exception:  # an incomplete command line completes nothing
        return None


def _is_value(option: str, word: str) -> bool:
    """Return whether a word is the value of the option before it: a flag is followed by a file or an override."""
    return option.startswith("-") and "=" not in word and not is_file(word.partition("+")[0])


def _commands(root: ConfigParameters, start: str) -> Iterator[str]:
    """Complete `command=tr` to `command=train`, `command=train:te` to `command=train:test`."""
    from cntkpy.commands.catalogue.section_map import section_map

    head = start[: max(start.rfind("="), start.rfind(":")) + 1]
    for use in section_map(root).parts:
        if (head + use.command).lower().startswith(start.lower()):
            yield head + use.command


def _paths(root: ConfigParameters, start: str) -> Iterator[str]:
    """Complete `train/SGD/ma` to `train/SGD/maxEpochs`."""
    head = start[: max(start.rfind("/"), start.rfind(":")) + 1]
    try:
        section = root
        for name in head.replace(":", "/").split("/")[:-1]:
            section = section.section(name)
    except ConfigError:
        return
    for name, is_section in _names(root, section):
        if (head + name).lower().startswith(start.lower()):
            yield head + name + ("/" if is_section else "")


def _overrides(root: ConfigParameters, start: str) -> Iterator[str]:
    """Complete `train=[SGD=[max` to `train=[SGD=[maxEpochs=`."""
    *outer, last = start.split("=[")
    section = root
    try:
        for name in outer:
            section = section.section(name.split(";")[-1].strip())
    except ConfigError:
        return
    begun = last.rpartition(";")[2].lstrip()
    if "=" in begun:
        return
    head = start[: len(start) - len(begun)]
    for name, is_section in _names(root, section):
        if name.lower().startswith(begun.lower()):
            yield f"{head}{name}=" + ("[" if is_section else "")


def _names(root: ConfigParameters, section: ConfigParameters) -> Iterator[tuple[str, bool]]:
    """Return the names that a section has or may have, and whether they are sections."""
    from cntkpy.commands.catalogue.section_map import section_map

    seen: set[str] = set()
    for name in section.names():
        entry = section.definition(name)
        seen.add(name.lower())
        yield name, bool(entry and entry.bracket)
    use = next((use for use in section_map(root).walk() if use.section.path == section.path), None)
    for parameter in use.parameters() if use else ():
        if parameter.name.lower() not in seen:
            yield parameter.name, parameter.type.is_section

"""`cntkpy format`: one layout for configuration files. Comments stay; what the configuration says never changes.

Lines are indented by their brackets, `name=value` becomes `name = value`, blank lines are at most one, blanks at line
ends go. In networks in BrainScript, and in `.bs` files, lines are indented by their brackets, too; those in NDL and
quoted texts are left as they are. The result is read again and compared; a
file for which the two differ in any value is left alone.
"""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.lines import split_lines
from cntkpy.cntk_config.base.writing import atomic_write, not_written
from cntkpy.cntk_config.export import Export
from cntkpy.commands.checks.folders import SUFFIXES, expand_folders
from cntkpy.commands.checks.scripts import SUFFIX, is_script
from cntkpy.commands.checks.values import NETWORK_TEXTS, network_texts
from cntkpy.networks.builders.registry import BRAIN_SCRIPT, EXPERIMENTAL

EXIT_WOULD_CHANGE, EXIT_ERROR = 1, 2
STEP = "    "
SCRIPTS = tuple(entry.name.lower() for entry in (BRAIN_SCRIPT, EXPERIMENTAL))
_OPEN, _CLOSE = {"[": "]", "(": ")", "{": "}"}, {"]", ")", "}"}
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(?=[^ \t=])")
_INCLUDE = re.compile(r"^[ \t]*include[ \t]*=.*$", re.MULTILINE)
_COMMENT = re.compile(r"(?:(?<=[ \t])|^)#")


def format_files(words: list[str], check: bool = False, show_diff: bool = False) -> int:
    """Format files in place, or only report what would change; return the exit status."""
    status = 0
    for name in expand_folders(words, (*SUFFIXES, SUFFIX)):
        path = Path(name)
        try:
            old = read_input(path).decode("utf-8-sig")
            new = format_text(old, name)
        except (OSError, UnicodeDecodeError) as error:
            print(f"error: cannot read '{name}': {getattr(error, 'strerror', None) or error}", file=sys.stderr)
            status = EXIT_ERROR
            continue
        except ConfigError as error:
            print(error.diagnostic.one_line(), file=sys.stderr)
            status = EXIT_ERROR
            continue
        if new == old:
            continue
        if show_diff:
            old_lines, after = (split_lines(text, keep_ends=True) for text in (old, new))
            lines = difflib.unified_diff(old_lines, after, name, f"{name} (formatted)")
            sys.stdout.writelines(lines)
        if check or show_diff:
            status = max(status, EXIT_WOULD_CHANGE)
            if not show_diff:
                print(f"would change {name}")
        else:
            try:
                with atomic_write(path) as file:
                    file.write(new.encode("utf-8"))
            except OSError as error:
                print(f"error: {not_written(error, name)}", file=sys.stderr)
                status = EXIT_ERROR
                continue
            print(f"changed {name}")
    return status


def format_text(text: str, name: str = "<text>") -> str:
    """Return the text in the layout of this program. A text that cannot be read is an error."""
    if is_script(name):
        return _script(text, name)
    plain = _INCLUDE.sub("", text)
    root = parse(plain, name)
    opaque = {*network_texts(root), *NETWORK_TEXTS}
    new = _Layout(opaque).lines(text)
    try:
        same = _tree(_INCLUDE.sub("", new)) == _tree(plain)
    except ConfigError:
        same = False
    return new if same else text


def _script(text: str, name: str) -> str:
    """Return a file of BrainScript in the layout of this program."""
    from cntkpy.commands.tools.format_brainscript import layout
    from cntkpy.networks.builders.brainscript.language.parse import parse_members
    from cntkpy.networks.builders.brainscript.language.source import text_of_string

    parse_members(text_of_string(text, name))
    lines = layout(text.replace("\r\n", "\n").split("\n"))
    new = "".join(f"{line}\n" for line in lines)
    return new if _words(new) == _words(text) else text


def _words(text: str) -> list[str]:
    """Return the lines of a text without the blanks around them and without empty ones."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def _tree(text: str) -> Any:
    """Return the parsed text, except blanks at ends of lines inside of brackets."""
    return _normal(Export(parse(text), unresolved=True, on_error=lambda error: f"<{error.kind}>").tree())


def _normal(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _normal(value) for name, value in cast("dict[str, Any]", tree).items()}
    if tree[:1] in _OPEN:
        return re.sub(r"(?<![ \t])[ \t]*\n[ \t\n]*", "\n", re.sub(r"([\[({])[ \t]*\n", r"\1\n", tree))
    return tree


class _Layout:
    """Goes through the lines of a file, and knows which brackets are open."""

    def __init__(self, opaque: set[str]) -> None:
        self.opaque = opaque
        self.stack: list[str] = []
        self.in_quote = False
        self.quiet: int | None = None
        """Number of open brackets around a network, while inside it."""
        self.script: list[str] | None = None
        """The lines so far of a network in BrainScript, the one that opens it first, while inside it."""

    def lines(self, text: str) -> str:
        """Return all lines in the new layout."""
        result: list[str] = []
        for line in text.replace("\r\n", "\n").split("\n"):
            new = self._line(line)
            if self.script is not None:
                self.script.append(line if len(self.script) else new)
                if self.quiet is None:
                    result += self._script()
                continue
            if not new and not self.in_quote and self.quiet is None and (not result or not result[-1]):
                continue
            result.append(new)
        while result and not result[-1]:
            result.pop()
        return "".join(line + "\n" for line in result)

    def _script(self) -> list[str]:
        """Return the lines of a network in BrainScript, which ends here."""
        from cntkpy.commands.tools.format_brainscript import layout

        opening, *lines = self.script or [""]
        self.script = None
        level = (len(opening) - len(opening.lstrip(" "))) // len(STEP)
        return [opening, *layout(lines, level, opening)]

    def _line(self, line: str) -> str:
        if self.in_quote or self.quiet is not None:
            self._follow(_code(line)[0])
            return line
        code, comment = _code(line)
        code = code.strip(" \t")
        depth = len(self.stack)
        for c in code:
            if c not in _CLOSE or depth == 0:
                break
            depth -= 1
        match = _ASSIGNMENT.match(code)
        previous_count = len(self.stack)
        if match and set(self.stack) <= {"["} and match[1].lower() != "include":
            code = f"{match[1]} = {code[match.end() :]}"
        starts_network = match is not None and match[1].lower() in self.opaque
        self._follow(code)
        if starts_network and len(self.stack) > previous_count:
            self.quiet = previous_count
            self.script = [] if match and match[1].lower() in SCRIPTS else None
        comment = comment.rstrip(" \t")
        joined = f"{code}  {comment}" if code and comment else code or comment
        return STEP * depth + joined if joined else ""

    def _follow(self, code: str) -> None:
        """Keep account of brackets and quotes."""
        for c in code:
            if self.in_quote:
                self.in_quote = c != '"'
            elif c == '"':
                self.in_quote = True
            elif c in _OPEN:
                self.stack.append(c)
            elif c in _CLOSE and self.stack:
                self.stack.pop()
        if self.quiet is not None and len(self.stack) <= self.quiet and not self.in_quote:
            self.quiet = None


def _code(line: str) -> tuple[str, str]:
    """Return a line without its comment, and the comment."""
    match = _COMMENT.search(line)
    return (line[: match.start()], line[match.start() :]) if match else (line, "")

"""Settings of a training: it is kept with the models, and compared when the training resumes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.base.diagnostics import Span, shorten
from cntkpy.cntk_config.base.names import masked, shareable
from cntkpy.cntk_config.declare import Parameter
from cntkpy.commands.actions.training import TrainingParameters
from cntkpy.commands.catalogue.section_map import Use, command_use
from cntkpy.commands.context.root import RootParameters
from cntkpy.commands.context.run_context import Change
from cntkpy.networks.builders.parameters import BUILDERS, BuilderParameters, builder_of
from cntkpy.networks.builders.registry import ENTRIES

NOT_COMPARED = frozenset(
    word.lower()
    for word in (
        "action", "modelPath", "makeMode", "maxEpochs", "deviceId", "numCPUThreads",
        "traceLevel", "verbosity", "tensorBoardLogDir", "numMBsToShowResult", "firstMBsToShowResult", "perfTraceLevel",
        "traceNodeNamesReal", "traceNodeNamesCategory", "traceNodeNamesSparse", "gradientcheck", "sigFigs",
        "keepCheckPointFiles", "keepModels", "checkpointEveryMinutes", "readAhead", "cacheIndex", "keepDataInMemory",
    )
)  # fmt: skip
"""Parameters, in lower case, that change nothing of what is learned; `maxEpochs` is looked at by itself."""
NO_TEXT = 300
"""A longer text is kept as its checksum."""


@dataclass(frozen=True)
class Setting:
    """A parameter of a training that is given: its text without secrets of URLs, and its place.

    `use` is the section if it is declared there.
    """

    text: str
    span: Span | None
    use: Use | None = None
    in_word: bool = False
    """True if a word of the command line has set it, or a variable in it."""

    @classmethod
    def of(cls, text: str, value: ConfigValue, use: Use | None = None) -> Setting:
        """Return the setting of a value."""
        return cls(_shown(masked(text)), value.span, use, value.in_word)


class Settings:
    """All that a configuration says about a training, by the path of the parameter inside the command."""

    def __init__(self, section: ConfigParameters, command: str) -> None:
        self._uses: dict[str, Use] = {}
        self.given: dict[str, Setting] = {}
        use = command_use(section, command)
        own_use = Use(
            section, "", tuple(parameters for parameters in use.declared if issubclass(parameters, TrainingParameters))
        )
        for parameter in own_use.parameters():
            if not parameter.type.is_section and parameter.name not in BUILDERS:
                self._add(own_use, "", parameter)
        if any(issubclass(parameters, BuilderParameters) for parameters in use.declared):
            self._network(section)
        for part in use.parts:
            if part.role in ("SGD", "reader", "cvReader"):
                self._section(part, part.role)
        root = section
        while root.parent is not None:
            root = root.parent
        self._add(Use(root, "", (RootParameters,)), "", RootParameters.precision)

    def _network(self, section: ConfigParameters) -> None:
        """The builder's parameters; a description in a language of its own is one text."""
        builder = builder_of(section)
        if builder is None:
            return
        entry = next(entry for entry in ENTRIES if entry.name == builder.name)
        declared = entry.declared()
        value = builder.value(section)
        try:
            if declared is not None:
                self._section(Use(section.section(entry.name), entry.name, (declared,)), entry.name)
            if entry.name != "SimpleNetworkBuilder" and value is not None:
                text = _description(section, entry.name)
                self.given[entry.name] = Setting.of(text, value)
        except (ConfigError, OSError):
            return  # found when the network is built

    def _section(self, use: Use, path: str) -> None:
        self._uses[path] = use
        for parameter in use.parameters():
            if not parameter.type.is_section:
                self._add(use, f"{path}/", parameter)
        if use.open:
            for name in use.section.names():
                if use.parameter(name) is None and not _is_section(use, name):
                    value = use.section(name, "")
                    self._set(f"{path}/{name}", Setting.of(str(value), value))
        numbers: dict[str, int] = {}
        for part in use.parts:
            name = part.section.path.rpartition(":")[2] or part.role
            number = numbers[name] = numbers.get(name, 0) + 1
            self._section(part, f"{path}/{name}" + (f"[{number}]" if number > 1 else ""))

    def _add(self, use: Use, path: str, parameter: Parameter[Any]) -> None:
        if parameter.ignored or parameter.name.lower() in NOT_COMPARED:
            return
        value = use.value(parameter)
        if value is not None:
            self._set(path + parameter.name, Setting.of(str(value), value, use))

    def _set(self, path: str, setting: Setting) -> None:
        if path.rpartition("/")[2].lower() not in NOT_COMPARED:
            self.given[path] = setting

    def texts(self) -> dict[str, str]:
        """Return the values by path, to be kept with a model."""
        return {path: setting.text for path, setting in sorted(self.given.items())}

    def changed(self, kept: dict[str, str]) -> Iterator[Change]:
        """Yield the settings whose values differ from those of the trained model; a default is in parentheses.

        Users, passwords and queries of URLs do not count: models do not keep them.
        """
        kept = shareable(kept)
        for path in sorted(self.given.keys() | kept.keys()):
            setting = self.given.get(path)
            use = setting.use if setting else self._uses.get(path.rpartition("/")[0])
            parameter = use.parameter(path.rpartition("/")[2]) if use else None
            if parameter is not None and parameter.ignored:
                continue  # an older version kept it
            previous, now = kept.get(path), setting.text if setting else None
            if previous == now or _same(parameter, use, previous, now):
                continue
            span = setting.span if setting else use.section.span if use else None
            in_word = setting.in_word if setting else use is not None and _removed_by_word(use, path)
            texts = _told(previous, parameter), _told(now, parameter)
            yield Change(path, *texts, span, in_word and not _moved(parameter, previous, now))


def _removed_by_word(use: Use, path: str) -> bool:
    """Return whether `name=default` or `section/name=default` on the command line has removed a value."""
    name = path.rpartition("/")[2]
    entry = use.section.definition(name)
    if entry is None:
        return any(removal.name.lower() == name.lower() for removal in use.section.removals())
    return entry.is_default and entry.span.in_word


def _moved(parameter: Parameter[Any] | None, old: str | None, now: str | None) -> bool:
    """Return whether a file has its name, but another folder: the same data may have been moved."""
    is_path = parameter is not None and parameter.type.name.startswith("path") and old and now
    return bool(is_path) and Path(old or "").name == Path(now or "").name


def _is_section(use: Use, name: str) -> bool:
    entry = use.section.definition(name)
    return entry is None or bool(entry.bracket)


def _shown(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= NO_TEXT:
        return text
    return f"{len(text)} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _description(section: ConfigParameters, builder: str) -> str:
    """Return the text of a network; that of NDL with its files."""
    if builder != "NDLNetworkBuilder":
        return str(section.opaque(builder))
    from cntkpy.networks.builders.ndl.source import find_program

    program = find_program(section.section(builder))
    return "\n".join(document.text for document in (*program.macros, *program.scripts))


def _same(parameter: Parameter[Any] | None, use: Use | None, old: str | None, now: str | None) -> bool:
    """Return whether two texts have the same meaning; a missing one is the default."""
    if parameter is None or use is None:
        return False
    values: list[Any] = []
    for text in (old, now):
        if text is None:
            if parameter.required or parameter.default is None:
                return False
            text = parameter.default
        try:
            values.append(parameter.type.convert(ConfigValue(text, path=parameter.name, scope=use.section)))
        except ConfigError:
            return False
    first, second = values
    if isinstance(first, PerEpoch):  # the last value repeats, however many are listed
        a, b = cast("PerEpoch[Any]", first), cast("PerEpoch[Any]", second)
        return bool(len(a)) == bool(len(b)) and all(a[i] == b[i] for i in (*a.starts(), *b.starts()))
    return bool(first == second)


def _told(text: str | None, parameter: Parameter[Any] | None) -> str:
    if text is not None:
        return shorten(text, 60) or '""'
    if parameter is None or parameter.required or not parameter.default:
        return "(not given)"
    return f"({parameter.default})"

"""The first records of all data, read by the readers that a run uses."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue
from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, UserError
from cntkpy.cntk_config.base.names import public_name
from cntkpy.commands.catalogue.section_map import Use
from cntkpy.commands.checks.files import is_missing, makes_anything, needed_files, outputs, paths_of
from cntkpy.readers.common.notices import ABOUT_DATA, ABOUT_JOINED
from cntkpy.readers.entries import COMPOSITE, READER
from cntkpy.readers.parameters import OrderParameters, ReaderParameters, several_paths
from cntkpy.readers.registry import create_reader, entry_of_reader, find_deserializer, refusing_modules

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cntkpy.commands.checks.networks import Computed
    from cntkpy.readers.contracts import MinibatchReader
    from cntkpy.readers.minibatch import Minibatch
    from cntkpy.trainers.step.padding import Padding

_WHOLE = ("labelmappingfile", "statelistpath", "wordclass", "wordmap", "token", "mapfile", "labeltotargetmappingfile",
          "meanfile", "intensityfile", "transform")  # fmt: skip
"""Parameters, in lower case, that name files which belong to all records."""
_IN_ORDER = ("none", "false")


def record_problems(
    top: Use,
    precision: str,
    records: int,
    modules: bool,
    is_wrong: Callable[[Use], bool],
    networks: Callable[[], Mapping[str, Computed]] = dict,
    cut: set[str] | None = None,
) -> Iterator[Diagnostic]:
    """Open every reader of the commands and read its first records.

    Args:
        top: the commands.
        precision: element type of the values, "float" or "double".
        records: records of each file that are read, about.
        modules: import the modules that readers name; else readers in them are passed over.
        is_wrong: returns whether an error in the data of a section has been found before.
        networks: returns the networks of commands, see `networks.computed_networks`.
        cut: gets the names of files, and paths of readers, that have more than was read.

    Yields:
        The first error of each reader, or of its minibatches as the input of the network; values that are not finite.
    """
    written, made, cut = set[str](), False, set[str]() if cut is None else cut
    for command in top.parts:
        made = made or makes_anything(command)
        written.update(outputs(command))

        def waits(use: Use, written: set[str] = written, made: bool = made) -> bool:
            lacks_file = any(map(is_missing, needed_files(use, made)))
            return lacks_file or any(made or os.path.normpath(path) in written for path in _missing_files(use))

        for use in command.parts:
            if use.role in READER.sections and not any(is_wrong(part) or waits(part) for part in use.walk()):
                yield from _first_error(command, use, precision, records, modules, networks, cut)


def _missing_files(use: Use) -> Iterator[str]:
    """Yield the files of a section that do not exist."""
    for parameter in use.parameters():
        if parameter.type.name.startswith("path"):
            yield from (str(path) for path in paths_of(use, parameter) if is_missing(path))


def _minibatch_size(command: Use, use: Use, records: int) -> int:
    """Return the samples of a minibatch: those of the run for sentences, which it does not cut; else at most `records`.

    Where the run's number cannot be read, it is that of records: the error is found where values are looked at.
    """
    entry, size = entry_of_reader(use.section), records
    for part in (*(part for part in command.parts if part.role == "SGD"), command):
        if (parameter := part.parameter("minibatchSize")) is None:
            continue
        try:
            value: object = parameter.read(part.section)
            size = int(cast("PerEpoch[int]", value)[0]) if isinstance(value, PerEpoch) else int(cast("int", value))
            break
        except (ConfigError, TypeError):
            break
    if entry is not None and ".language." in entry.parameters:
        return size
    return max(1, min(size, records))


def _first_error(
    command: Use,
    use: Use,
    precision: str,
    records: int,
    modules: bool,
    networks: Callable[[], Mapping[str, Computed]],
    cut: set[str],
) -> Iterator[Diagnostic]:
    """Yield the first error of a reader and its warnings about data; the arguments are those of `record_problems`."""
    from cntkpy.readers.common.beginnings import NotInBeginning, first_records

    with _kept_notices() as notices, first_records(records, _whole_files(use)) as limits:
        try:
            with refusing_modules(not modules):
                yield from _odd_minibatch(command, use, precision, records, networks, cut)
        except NotInBeginning:
            try:
                _read_apart(command.section.section(use.role), precision, records)
            except UserError as error:
                yield from _error_of_data(error, use)
        except UserError as error:
            yield from _error_of_data(error, use)
        finally:
            cut.update(map(public_name, limits.cut))
    for message in notices.messages(bool(limits.cut)):
        span = next(_naming(use, lambda path, message=message: path in message), None) or use.section.span
        yield Diagnostic("DataMismatch", message, span, severity="warning")


def _odd_minibatch(
    command: Use,
    use: Use,
    precision: str,
    records: int,
    networks: Callable[[], Mapping[str, Computed]],
    cut: set[str],
) -> Iterator[Diagnostic]:
    """Read the first minibatches as a run does; yield the warning of the first odd one."""
    size, samples = _minibatch_size(command, use, records), 0
    padding: Sequence[Padding] | None = None
    for minibatch in _read(create_reader(_in_order(command, use), precision), size):
        if samples >= records:
            cut.add(use.section.path)
            break
        samples += max(1, minibatch.num_samples)
        if padding is None:
            padding = _paddings(networks().get(command.section.path), minibatch)
        for each in padding:
            each.prepare(minibatch)
            for node in each.inputs.nodes:
                each.inputs.values(minibatch, node)
        wrong = None if padding else _odd_streams(minibatch, networks(), use)
        if wrong := wrong or _not_finite(minibatch, use.section.span):
            yield wrong
            break


def _error_of_data(error: UserError, use: Use) -> Iterator[Diagnostic]:
    """Yield the finding of an error, unless a module was not imported."""
    if error.kind != "ModuleNotImported":
        yield _placed(error.diagnostic, use, error)


def _in_order(command: Use, use: Use) -> ConfigParameters:
    """Return the section of a reader, with the order of the data if it is a matter of `randomize` alone."""
    section = command.section.section(use.role)
    order = use.parameter(OrderParameters.randomize.name)
    if order is not None and use.parameter("readMethod") is None:
        choices = order.type.choices or ()
        section.insert(order.name, next((word for word in _IN_ORDER if word in choices), "none"))
    if use.parameter(OrderParameters.prefetch.name) is not None:
        section.insert(OrderParameters.prefetch.name, "false")
    return section


def _read(reader: MinibatchReader, minibatch_size: int) -> Iterator[Minibatch]:
    """Yield the minibatches of an epoch; close the reader at the end."""
    try:
        reader.start_minibatch_loop(minibatch_size, 0)
        while (minibatch := reader.get_minibatch()) is not None:
            yield minibatch
    finally:
        reader.close()


def _paddings(computed: Computed | None, minibatch: Minibatch) -> list[Padding]:
    """Return the padding of a reader's minibatches for a network, as in the run; [] if it is unknown."""
    if computed is None:
        return []
    from cntkpy.trainers.step.axes import network_axes
    from cntkpy.trainers.step.padding import Inputs, input_nodes, padding_of

    network, nodes = computed
    inputs, streams = input_nodes(network, nodes), {name.lower() for name in minibatch.streams}
    if not inputs or any(node.name.lower() not in streams for node in inputs):
        return []  # reported with the networks
    padding = padding_of(Inputs(inputs, network.dtype), network_axes(network, nodes))
    return [padding.of_pieces() if minibatch.truncated else padding]


def _odd_streams(minibatch: Minibatch, networks: Mapping[str, Computed], use: Use) -> Diagnostic | None:
    """Return the warning of a stream that the data lack, or of the first sequence whose streams differ in length, where
    the command's network is not known: inputs of another time axis in the networks of other commands are left out."""
    from cntkpy.networks.graph.axes import DEFAULT, own_axis

    for name in minibatch.absent:
        if (error := minibatch.missing(name)) is not None:
            return replace(_placed(error.diagnostic, use, error), severity="warning")
    layouts = {name: layout for name, layout in minibatch.layouts.items() if layout.num_samples}
    if len({id(layout) for layout in layouts.values()}) < 2:
        return None
    nodes = (node for computed in networks.values() for node in computed.network.nodes.values())
    axes = {node.name.lower(): node.axis for node in nodes if node.kind.layout == "always" and node.axis != DEFAULT}
    first: dict[tuple[str | None, int], tuple[str, int]] = {}
    for name, layout in layouts.items():
        axis = axes.get(name.lower())
        for key, _, begin, end in layout.sequences.tolist():
            first_name, count = first.setdefault((axis, key), (name, end - begin))
            if count == end - begin:
                continue
            counts = f"{count} of '{first_name}', {end - begin} of '{name}'"
            message = f"a sequence has {counts}: they cannot share a time axis"
            if key < len(minibatch.keys):
                message = message.replace("a sequence", f"the sequence {minibatch.keys[key]}", 1)
            hint = f"mend the data, or {own_axis(first_name if count < end - begin else name)}"
            return Diagnostic("DifferentSequences", message, use.section.span, hint, severity="warning")
    return None


def _not_finite(minibatch: Minibatch, span: Span | None) -> Diagnostic | None:
    """Return the warning of the first stream with a value that is not finite; a run ends where its criterion is not."""
    import numpy as np

    from cntkpy.readers.common.sparse import is_dense

    for name, values in minibatch.streams.items():
        numbers: NDArray[np.floating] = values if is_dense(values) else values.data
        finite = np.isfinite(numbers)
        if finite.all():
            continue
        message, layout = f"the stream '{name}' has the value {numbers[~finite][0]}", minibatch.layouts[name]
        if layout.num_sequences == len(minibatch.keys):
            step, slot, owner = layout.cells
            first = int(np.flatnonzero(~finite.reshape(-1))[0])
            bounds: NDArray[np.integer] | None = None if is_dense(values) else cast("Any", values).indptr
            width = numbers.size // (layout.T * layout.S)
            cell = first // width if bounds is None else int(np.searchsorted(bounds, first, side="right")) - 1
            message += f" in sequence {minibatch.keys[int(owner[np.argmax(step * layout.S + slot == cell)])]}"
        hint = "mend the data, or leave such samples out: a training ends where its criterion is not a number"
        return Diagnostic("DataMismatch", message, span, hint, severity="warning")
    return None


def _read_apart(section: ConfigParameters, precision: str, records: int) -> None:
    """Read the first sequences of each deserializer, which are not those of the others."""
    import numpy as np

    from cntkpy.readers.common.beginnings import NotInBeginning
    from cntkpy.readers.registry import Setting

    entry = entry_of_reader(section)
    if entry is None or entry.name != COMPOSITE:
        return
    for part in ReaderParameters.deserializers.read(section) or ():
        try:
            data = find_deserializer(part)()(part, Setting(precision, alone=True))
            data.load_sequences(np.arange(min(records, data.table.num_sequences)))
        except NotInBeginning:
            continue


def _whole_files(use: Use) -> Iterator[str]:
    """Yield the files of lists that belong to all records."""
    for inside in use.walk():
        for parameter in inside.parameters():
            if parameter.name.lower() not in _WHOLE:
                continue
            try:
                value = parameter.value(inside.section)
                yield from map(str, several_paths(value) if value else ())
            except ConfigError:
                continue  # found where values are looked at


def _placed(problem: Diagnostic, use: Use, error: UserError) -> Diagnostic:
    """Return a finding with a place: the parameter that names the file, else the section."""
    if problem.span is not None:
        return problem
    path = getattr(error, "path", None)
    names = (str(path), *str(path).split("/")) if path else ()
    span = next(_naming(use, lambda name: not names or name in names), None) or use.section.span
    return Diagnostic(problem.kind, problem.message.rstrip("."), span, problem.hint, problem.notes, severity="error")


def _naming(use: Use, is_meant: Callable[[str], bool]) -> Iterator[Span]:
    """Yield the places of parameters that name files, those of meant files first."""
    values: list[ConfigValue] = []
    for inside in use.walk():
        for parameter in inside.parameters():
            if not parameter.type.name.startswith("path") or parameter.name.lower() in _WHOLE:
                continue
            if (value := inside.value(parameter)) and value.span is not None:
                values.append(value)
    for value in sorted(values, key=lambda value: not is_meant(str(value))):
        assert value.span is not None
        yield value.span


class _Notices(logging.Handler):
    """Keep the messages of readers about data, in place of the output."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: dict[str, logging.LogRecord] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, once."""
        self.records.setdefault(record.getMessage().removeprefix("WARNING: ").rstrip("."), record)

    def messages(self, is_cut: bool) -> Iterator[str]:
        """Yield the warnings about data; is_cut: whether only the beginning of a file was read."""
        for text, record in self.records.items():
            about = getattr(record, "about", None)
            if about == ABOUT_DATA["about"] or (about == ABOUT_JOINED["about"] and not is_cut):
                yield text


@contextmanager
def _kept_notices() -> Generator[_Notices]:
    """Keep the warnings of readers."""
    log, notices = logging.getLogger("cntkpy.readers"), _Notices()
    level, propagate = log.level, log.propagate
    log.setLevel(logging.WARNING)
    log.propagate = False
    log.addHandler(notices)
    try:
        yield notices
    finally:
        log.removeHandler(notices)
        log.setLevel(level)
        log.propagate = propagate

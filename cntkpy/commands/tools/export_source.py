"""`cntkpy export MODEL|CONFIG OUT --to pytorch|jax`: a network as source that needs nothing of this package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, load
from cntkpy.cntk_config.base.diagnostics import UserError, suggestion
from cntkpy.commands.actions.train import TrainParameters

if TYPE_CHECKING:
    from cntkpy.cntk_config import ConfigParameters
    from cntkpy.commands.described_network import Described
    from cntkpy.commands.tools.export_training import Written
    from cntkpy.networks.graph.network import ValidatedNetwork
    from cntkpy.networks.source.check_data import Data
    from cntkpy.networks.source.export import Settings, Source


@dataclass(frozen=True)
class AskedSource:
    """Options of the command line.

    Args:
        model: a model file, or a configuration.
        out: the folder to write.
        kind: what is written: a word of `cntkpy.networks.source.save.FORMATS`.
        outputs: names of nodes; none: the outputs of the network, else what its criteria look at.
        command: of a configuration, the command whose network it is; empty: the first one with a network.
        check: whether the source is compared with the network; None: where the framework is installed.
        training: whether the training of a configuration is written, too.
        data: what reads the data of a training: `own`, the program itself, or `cntkpy`.
    """

    model: str
    out: str
    kind: str
    outputs: tuple[str, ...] = ()
    command: str = ""
    check: bool | None = None
    training: bool = False
    data: str = "own"


@dataclass(frozen=True)
class _Read:
    """A network, and what its configuration says.

    Attributes:
        network: the network.
        dropout: the rate of the first epoch; None: no configuration says one.
        origin: the file that it was read from.
        section: the command of a configuration; None: it was no configuration.
        command: the name of that command.
    """

    network: ValidatedNetwork
    dropout: float | None
    origin: str
    section: ConfigParameters | None = None
    command: str = ""


def export_source(asked: AskedSource) -> int:
    """Write the folder, say what is in it; return the exit status.

    Raises:
        UserError: the model or configuration cannot be read; nodes have no code; the source computes other values.
    """
    from cntkpy.networks.onnx import ours
    from cntkpy.networks.source import check
    from cntkpy.networks.source.export import Settings, export
    from cntkpy.networks.source.save import FORMATS, write_source

    if asked.kind not in FORMATS:
        message = f"a network cannot be written as '{asked.kind}'"
        hint = suggestion(asked.kind, FORMATS) or f"possible: {', '.join(FORMATS)}"
        raise ConfigError("InvalidArgument", message, hint=hint)
    if Path(asked.out).is_file():
        message = f"'{asked.out}' is a file; a folder is written"
        raise ConfigError("CannotWrite", message, hint="give the name of a folder, which may be new")
    read = _read(asked)
    _check_outputs(read.network, asked)
    title = Path(asked.model).name.partition(".")[0]
    settings = Settings(asked.outputs, read.dropout, title, asked.kind)
    programs: dict[str, str] = {}
    notes: list[str] = []
    if asked.training:
        written = _training(read, settings, asked)
        source, programs["train.py"], notes = written.source, written.text, written.notes
    else:
        source = export(read.network, ours.constants, settings)
    for note in source.notes:
        print(f"note: {note}", file=sys.stderr)
    compared = check.installed(asked.kind) if asked.check is None else asked.check
    differences = check.check(source, _data(read, source)) if compared else []
    for item in differences:
        print(f"{item.name}: largest difference {item.largest:.2g}")
    wrong = ", ".join(f"'{item.name}' by {item.largest:.2g}" for item in differences if not item.allowed)
    if wrong:
        message = f"the source computes other values than the network: {wrong}; {asked.out} is not written"
        raise UserError("NotSupported", message, hint="--no-check writes it; please report the network")
    files = write_source(asked.out, source, f"`{read.origin}`", differences, programs, notes)
    lines = source.text.count("\n")
    kind = "class" if asked.kind == "pytorch" else "function"
    print(f"{asked.out}: {kind} {source.name}, {lines} lines, {len(source.tensors)} tensors")
    print(f"files: {', '.join(path.name for path in files)}")
    if not compared and asked.check is None:
        needed = "torch" if asked.kind == "pytorch" else "jax"
        print(f"not compared with the network: {needed} is not installed (pip install {needed}; then --check)")
    return 0


CANDIDATES = 5
"""Nodes at most that are offered in the place of one that the network lacks."""


def _check_outputs(network: ValidatedNetwork, asked: AskedSource) -> None:
    """See that the network has the nodes that are asked for.

    Raises:
        ConfigError: it lacks one; outputs and what criteria look at are offered in its place.
    """
    from cntkpy.networks.source.graph import prediction_nodes

    if asked.training and asked.outputs:
        message = "--training chooses the outputs: what the criteria look at"
        raise ConfigError("InvalidArgument", message, hint="leave out --output, or --training")
    for name in asked.outputs:
        try:
            network.find(name)
        except UserError as problem:
            nodes = dict.fromkeys([*network.groups["output"], *prediction_nodes(network)])
            listed = ", ".join([node.name for node in nodes][:CANDIDATES])
            hint = problem.diagnostic.hint or f"name an output, for instance {listed}; `cntkpy show` lists all nodes"
            raise ConfigError(problem.diagnostic.kind, problem.message, hint=hint) from None


def _data(read: _Read, source: Source) -> list[Data]:
    """Return the first minibatches of the reader of a configuration, if it can be opened."""
    from cntkpy.commands.tools.export_check import reader_data

    if read.section is None:
        return []
    data, why = reader_data(read.section, source)
    if why:
        print(f"note: compared on random data alone; the data of the reader: {why}", file=sys.stderr)
    return data


def _training(read: _Read, settings: Settings, asked: AskedSource) -> Written:
    from cntkpy.commands.tools.export_training import Asked, write_training

    if read.section is None:
        message = f"--training needs a configuration, and {asked.model} is a model file"
        raise ConfigError("InvalidArgument", message, hint="name the configuration that trains it")
    training = Asked(asked.model, read.command, read.section, read.network, asked.data != "cntkpy")
    return write_training(training, settings)


def _read(asked: AskedSource) -> _Read:
    """Return the network of a model file, or of a command of a configuration."""
    from cntkpy.networks.files.model_file import load_model
    from cntkpy.networks.files.recognise import is_model

    path = Path(asked.model)
    if is_model(asked.model) or not path.is_file():
        return _Read(load_model(asked.model), None, path.name)
    return _of_configuration(asked)


def _of_configuration(asked: AskedSource) -> _Read:
    """Return the trained model of a command, if there is one; else the network as it is before training."""
    from cntkpy.networks.files.model_file import load_model

    root = load([f"configFile={asked.model}"])
    described = _described(root, asked.command)
    section = root.section(described.command)
    trained = _trained_model(section)
    if trained is not None and trained.is_file() and not asked.training:
        return _Read(load_model(trained), _dropout(section), str(trained), section, described.command)
    if trained is not None and not asked.training:
        print(f"note: there is no model {trained} yet; the weights are those before training", file=sys.stderr)
    network = described.network
    network.values = True
    return _Read(network.validate(), _dropout(section), Path(asked.model).name, section, described.command)


def _described(root: ConfigParameters, command: str) -> Described:
    """Return the network of a command.

    Raises:
        ConfigError: there is no such command with a network.
    """
    from cntkpy.commands.described_network import commands_with_networks, describe_network

    names = list(commands_with_networks(root))
    if command and command.lower() not in map(str.lower, names):
        message = f"no command '{command}' describes a network"
        hint = suggestion(command, names) or (f"there are: {', '.join(names)}" if names else None)
        raise ConfigError("UnknownBuilder", message, root.span, hint)
    return describe_network(root, command or None)


def _trained_model(section: ConfigParameters) -> Path | None:
    """Return the file of the model that a command makes or reads, if it names one."""
    try:
        return Path(str(TrainParameters(section).model_path))
    except ConfigError:
        return None


def _dropout(section: ConfigParameters) -> float:
    """Return the rate of dropout in the first epoch."""
    try:
        return float(TrainParameters(section).sgd.dropout_rate[0])
    except ConfigError:
        return 0.0

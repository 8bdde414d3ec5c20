"""The data of a configuration's reader, on which an exported network is compared with its source."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.actions.training import TrainingParameters
from cntkpy.commands.tools.export_data import open_reader
from cntkpy.networks.graph.axes import ONE

if TYPE_CHECKING:
    from cntkpy.cntk_config import ConfigParameters
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.source.check_data import Data
    from cntkpy.networks.source.export import Source
    from cntkpy.readers.minibatch import Minibatch

MINIBATCHES, SEQUENCES = 2, 16
"""Minibatches of the reader that are tried, and sequences of each."""


def reader_data(section: ConfigParameters, source: Source) -> tuple[list[Data], str]:
    """Return the first minibatches of the reader of a command, and why there are none.

    Args:
        section: the command.
        source: the network.
    """
    p = TrainingParameters(section)
    result: list[Data] = []
    try:
        size = p.sgd.minibatch_size[0] if p.given("SGD") is not None else SEQUENCES
        reader = open_reader(p.reader, source.graph.network.precision)
    except UserError as problem:
        return [], problem.message
    try:
        reader.start_minibatch_loop(size, 0)
        while len(result) < MINIBATCHES and (minibatch := reader.get_minibatch()) is not None:
            result.append(_data(source, minibatch))
    except UserError as problem:
        return result, problem.message
    finally:
        reader.close()
    return result, ""


def _data(source: Source, minibatch: Minibatch) -> Data:
    """Return the first sequences of a minibatch, each in a slot of its own.

    Raises:
        UserError: the minibatch lacks an input.
    """
    from cntkpy.networks.source.check_data import Data
    from cntkpy.trainers.step.stack import stream_of

    along_time, dtype = source.graph.along_time, source.graph.network.dtype
    values: dict[str, np.ndarray] = {}
    lengths: dict[str, np.ndarray] = {}
    for node in source.graph.plan.inputs:
        sequences = _sequences(minibatch, stream_of(minibatch, node.name))[:SEQUENCES]
        if not along_time:
            samples = np.concatenate(sequences)[:SEQUENCES]
            values[node.name] = _shaped(samples, node).astype(dtype)[None]
            continue
        steps = np.array([len(sequence) for sequence in sequences])
        array = np.zeros((int(steps.max()), len(sequences), sequences[0].shape[1]), dtype)
        for slot, sequence in enumerate(sequences):
            array[: len(sequence), slot] = sequence
        values[node.name] = _shaped(array, node)
        if node.axis != ONE:
            lengths[str(node.axis)] = steps
    return Data(values, lengths)


def _shaped(array: np.ndarray, node: Node) -> np.ndarray:
    """Return values with the axes of a node behind those of the minibatch."""
    shape = tuple(reversed(node.shape or (1,)))
    lead = array.shape[:-1]
    if math.prod(shape) != array.shape[-1]:
        message = f"the input '{node.name}' has {math.prod(shape)} elements, the reader's stream {array.shape[-1]}"
        raise UserError("DimensionMismatch", message)
    return array.reshape(*lead, *shape)


def _sequences(minibatch: Minibatch, name: str) -> list[np.ndarray]:
    """Return the sequences of a stream, each (steps, elements)."""
    layout, stored = minibatch.layouts[name], minibatch.streams[name]
    dense: Any = stored.toarray() if hasattr(stored, "toarray") else stored
    values = np.asarray(dense).reshape(layout.T, layout.S, -1)
    order = layout.sequences[layout.sequences[:, 0].argsort()]
    return [values[max(begin, 0) : end, slot] for _, slot, begin, end in order.tolist()]

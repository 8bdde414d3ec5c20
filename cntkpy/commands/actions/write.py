"""`action = write`: the values of nodes as text, one file per node."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.writing import output_file
from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    PATH,
    SAMPLES,
    SECTION,
    TEXT,
    Parameter,
    array,
    per_epoch,
    section_of,
)
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import (
    NOTHING_TO_WRITE,
    build_or_load,
    choose_device,
    find_nodes,
    reader_for,
    what_to_write,
)
from cntkpy.readers.parameters import ReaderParameters, WriterParameters
from cntkpy.trainers.parameters.sgd import TraceParameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import Node, ValidatedNetwork
    from cntkpy.readers.contracts import Writer
    from cntkpy.trainers.evaluation.output import Format
    from cntkpy.trainers.evaluation.write import Written

log = logging.getLogger("cntkpy.commands")


ENTRY = Entry(
    "action",
    ("write",),
    parameters="cntkpy.commands.actions.write:WriteParameters",
    factory="cntkpy.commands.actions.write:write",
    traits=frozenset({"builds", "evaluates"}),
    example="write = [ action = write ; modelPath = m ; outputPath = out ; reader = [...] ]",
)
FORMAT = Entry(
    "section",
    ("format",),
    parameters="cntkpy.trainers.parameters.sgd:FormatParameters",
    within=("write",),
    example="format = [ type = category ; labelMappingFile = labels.txt ]",
)


class WriteParameters(TraceParameters):
    """`action=write`: writes the values of nodes for all samples of the data."""

    model_path = Parameter("modelPath", PATH, help="The model file.")
    reader = Parameter("reader", SECTION, help="The data; read in their own order.")
    output_nodes = Parameter(
        "outputNodeNames", array(TEXT), default="()", help="Nodes to write; the network's output nodes."
    )
    minibatch_size = Parameter(
        "minibatchSize", per_epoch(COUNT), default="2048", minimum=1, help="Samples per minibatch."
    )
    epoch_size = Parameter("epochSize", SAMPLES, default="0", help="Samples to write; 0 is one pass over the data.")
    writer = Parameter("writer", SECTION, default=None, help="A writer of another format; wins over outputPath.")
    output_path = Parameter(
        "outputPath", PATH, default=None, help="Files are called outputPath.NODE; `-` is standard output."
    )
    format = Parameter(
        "format",
        section_of("cntkpy.trainers.parameters.sgd:FormatParameters"),
        default=None,
        help="How values become text.",
    )
    unit_test = Parameter(
        "nodeUnitTest", BOOLEAN, default="false", help="Also write the gradients of inputs and parameters, as X.grad."
    )

    def check_together(self) -> None:
        """There must be a place to write to."""
        if not self.output_path and self.writer_section() is None:
            raise self.error(
                "outputPath",
                "write needs outputPath (or a writer section)",
                hint='add outputPath = "results/out"',
                kind="MissingParameter",
            )
        if self.unit_test and len(self.output_nodes) > 1:
            count = len(self.output_nodes)
            raise self.error("nodeUnitTest", f"nodeUnitTest needs exactly one output node, there are {count}")

    def writer_section(self) -> ConfigParameters | None:
        """Return the section of the writer: `writer`, or else `write` in the section of the reader, which names
        both.
        """
        from cntkpy.readers.formats.htk.sections import HTKReaderParameters

        if self.writer is not None or self.output_path or not HTKReaderParameters.write.stands_in(self.reader):
            return self.writer
        inside, kind = self.reader.section(HTKReaderParameters.write.name), WriterParameters.writer_type
        if not kind.stands_in(inside):
            inside.insert(kind.name, str(ReaderParameters.reader_type.read(self.reader)))
        return inside


def write(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = WriteParameters(section)
    p.check_together()
    choose_device(context)
    from cntkpy.readers.contracts import ReadsFiles, SparesFiles
    from cntkpy.readers.writer import create_writer
    from cntkpy.trainers.evaluation.evaluate import EvaluationData
    from cntkpy.trainers.evaluation.evaluator import Evaluator
    from cntkpy.trainers.evaluation.node_test import gradient_sources, node_gradients
    from cntkpy.trainers.evaluation.output import Format
    from cntkpy.trainers.evaluation.write import node_values
    from cntkpy.trainers.log.nodes import log_shapes
    from cntkpy.trainers.monitors.callbacks import traces
    from cntkpy.trainers.step.reading import innermost

    network = build_or_load(section, context)
    names = p.output_nodes
    nodes = find_nodes(network, names) if names else list(network.groups["output"])
    if not names:
        which = " ".join(node.name for node in nodes)
        log.info("outputNodeNames are not specified, writing the outputs of the network: %s", which)
    if not nodes:
        raise UserError("UnknownNode", NOTHING_TO_WRITE, hint=what_to_write(network))
    priors = _priors(network)
    reader = reader_for(section, "reader", context, randomize="none", action="write")
    evaluated = EvaluationData(reader, p.minibatch_size[0], p.epoch_size or None, context.progress_tracing)
    level = context.trace_level
    writing = p.writer_section()
    if writing is not None:
        writer = create_writer(writing, context.data_precision)
        inside = innermost(reader)
        if isinstance(writer, SparesFiles) and isinstance(inside, ReadsFiles):
            writer.spare(inside.files)
        log_shapes(network, nodes, level)
        data = node_values(Evaluator(network, nodes, summed=False, trace_level=level), evaluated, context.progress)
        log.info("Total Samples Evaluated = %d", _write_with(writer, priors, nodes, data))
        return
    files = [(node.name, node) for node in nodes]
    if p.unit_test:
        if len(nodes) != 1:
            raise p.error("nodeUnitTest", f"nodeUnitTest needs exactly one output node, there are {len(nodes)}")
        sources = gradient_sources(network, nodes[0])
        files += [(f"{node.name}.grad", node) for node in sources]
        data = node_gradients(network, nodes[0], sources, replace(evaluated, tracing=None), context.progress)
    else:
        log_shapes(network, nodes, level)
        evaluator = Evaluator(network, nodes, False, traces(p, network, nodes), level)
        data = node_values(evaluator, evaluated, context.progress)
    path = str(p.output_path)
    total = _write(path, files, data, Format.read(p.format.config if p.format is not None else None), len(nodes))
    log.info("Written to %s*", path)
    log.info("Total Samples Evaluated = %d", total)


def _write(path: str, files: list[tuple[str, Node]], data: Iterator[Written], layout: Format, prologues: int) -> int:
    """Write the values of all minibatches; only the first files have a prologue. Returns the number of columns."""
    from cntkpy.trainers.evaluation.output import NodeWriter

    total = 0
    writers = [NodeWriter(name, node.shape or (1,), layout) for name, node in files]
    with ExitStack() as stack:
        outputs = [_open(stack, path, name) for name, _ in files]
        for output in outputs[:prologues]:
            output(layout.prologue)
        for number, (columns, values, _) in enumerate(data):
            for writer, output, sequences in zip(writers, outputs, values, strict=True):
                output(writer.minibatch(sequences))
            if path == "-":
                outputs[0]("\n")
            log.info("Minibatch[%d]: ActualMBSize = %d", number, columns)
            total += columns
        for output in outputs:
            output(layout.epilogue)
    return total


def _write_with(writer: Writer, priors: NDArray[Any] | None, nodes: list[Node], data: Iterator[Written]) -> int:
    """Hand the values of all sequences to a writer, one after the other. Returns the number of columns."""
    from cntkpy.readers.contracts import NeedsPriors, TakesKeys

    if isinstance(writer, NeedsPriors):
        for name in writer.needs_priors:
            if priors is None:
                raise UserError(
                    "NoPriors",
                    "type=scaledLogLikelihood needs the frequencies of the classes, but the model has no mean of "
                    "labels",
                    hint="train with needPrior=true, or write a node that is scaled already",
                )
            writer.set_prior(name, priors)
    keyed, total = writer if isinstance(writer, TakesKeys) and writer.takes_keys else None, 0
    try:
        for columns, values, minibatch in data:
            for number, sequences in enumerate(zip(*values, strict=True)):
                if keyed is not None:
                    keyed.set_key(minibatch.keys[number])
                writer.save({node.name: sequence for node, sequence in zip(nodes, sequences, strict=True)})
            total += columns
        writer.close()
    except BaseException:
        writer.abandon()
        raise
    return total


def _priors(network: ValidatedNetwork) -> NDArray[Any] | None:
    """Return the prior probabilities of the classes: the value of the node that takes the mean of the labels."""
    labels = {node.name for node in network.groups["label"]}
    for node in network.precompute_nodes(pending=False):
        if (
            node.operation == "Mean"
            and node.computed
            and {operand.name for operand in node.inputs if operand} <= labels
        ):
            return node.value
    return None


def _open(stack: ExitStack, path: str, node: str) -> Callable[[str], object]:
    """Return a function that appends text to the node's file; the file appears when everything has been written."""
    if path == "-":
        return lambda text: sys.stdout.write(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    file = stack.enter_context(output_file(f"{path}.{node}"))
    return lambda text: file.write(text.encode("utf-8", "surrogateescape"))

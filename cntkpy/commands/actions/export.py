"""`action = export`: the network of a command as an ONNX model, compared with onnxruntime on its own data."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.declare import BOOLEAN, COUNT, PATH, SECTION, TEXT, Parameter, array
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import (
    ModelParameters,
    build_or_load,
    choose_device,
    find_nodes,
    reader_for,
)

if TYPE_CHECKING:
    import numpy as np

    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.onnx.check import Difference
    from cntkpy.networks.onnx.save import Ready

log = logging.getLogger("cntkpy.commands")

ENTRY = Entry(
    "action",
    ("export",),
    parameters="cntkpy.commands.actions.export:ExportParameters",
    factory="cntkpy.commands.actions.export:export",
    example="onnx = [ action = export ; modelPath = m ; outputFile = m.onnx ]",
)


class ExportParameters(ModelParameters):
    """`action=export`: writes a network as an ONNX model."""

    output_file = Parameter("outputFile", PATH, help="The ONNX file.")
    output_nodes = Parameter(
        "outputNodeNames", array(TEXT), default="()", help="Nodes to export; the network's output nodes."
    )
    softmax_nodes = Parameter("softmaxNodeNames", array(TEXT), default="()", help="Nodes whose softmax is exported.")
    opset = Parameter("opset", COUNT, default="17", help="Version of the ONNX operators.")
    double = Parameter("double", BOOLEAN, default="false", help="Write numbers of 8 bytes.")
    batch_first = Parameter("batchFirst", BOOLEAN, default="false", help="Put the batch before time.")
    indices = Parameter("indexNodeNames", array(TEXT), default="()", help="Inputs given as integers, not one-hot.")
    lengths = Parameter("lengths", BOOLEAN, default="false", help="Add inputs with the lengths of sequences.")
    preprocessing = Parameter(
        "readerPreprocessing", BOOLEAN, default="false", help="Subtract the reader's mean picture in the model."
    )
    check = Parameter("check", BOOLEAN, default="true", help="Compare with onnxruntime, if it is installed.")
    reader = Parameter("reader", SECTION, default=None, help="Its first minibatch is compared, too.")
    minibatch_size = Parameter("minibatchSize", COUNT, default="256", minimum=1, help="Samples of that minibatch.")


def export(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = ExportParameters(section)
    choose_device(context)
    from cntkpy.cntk_config.export import Export
    from cntkpy.networks.onnx import files
    from cntkpy.networks.onnx.check import merged
    from cntkpy.networks.onnx.export import Settings
    from cntkpy.networks.onnx.package import can_compare
    from cntkpy.networks.onnx.save import compared, prepared, refuse

    network = build_or_load(section, context)
    names, softmax = (
        tuple(node.name for node in find_nodes(network, names)) for names in (p.output_nodes, p.softmax_nodes)
    )
    means = _means(p) if p.preprocessing else {}
    settings = Settings(names, softmax, int(p.opset), p.double, p.batch_first, tuple(p.indices), p.lengths, means)
    import hashlib

    digest = hashlib.sha256(Export(section, on_error=lambda error: "").flat().encode()).hexdigest()
    ready = prepared(str(p.output_file), network, settings, {"cntkpy.configuration": digest})
    for note in ready.exported.notes:
        log.info("Note: %s.", note)
    if p.check and can_compare():
        differences = compared(ready)
        if p.reader is not None:
            differences = merged(differences, _on_data(ready, section, context, int(p.minibatch_size)))
            refuse(ready, differences)
        for difference in differences:
            log.info("%s: largest difference from onnxruntime %.2g", difference.output, difference.largest)
    elif p.check:
        log.info("The model is not compared with onnxruntime, which is not installed.")
    files.write(str(p.output_file), ready.model)
    log.info("Written: %s", ready.describe())


def _means(p: ExportParameters) -> dict[str, np.ndarray]:
    """Return the mean pictures that the reader subtracts, by input."""
    from cntkpy.readers.formats.image.subtracted import subtracted_pictures

    if p.reader is None:
        raise p.error("readerPreprocessing", "there is no reader", "add a reader section, as the training has it")
    return subtracted_pictures(p.reader)


def _on_data(ready: Ready, section: ConfigParameters, context: RunContext, size: int) -> list[Difference]:
    """Differences on the first minibatch of the reader, one sequence after the other; all frames at once."""
    import numpy as np

    from cntkpy.networks.onnx.check import check_data, with_data
    from cntkpy.networks.onnx.files import as_bytes
    from cntkpy.trainers.evaluation.evaluate import EvaluationData
    from cntkpy.trainers.evaluation.evaluator import Evaluator
    from cntkpy.trainers.evaluation.write import node_values

    exported = ready.exported
    reader = reader_for(section, "reader", context, randomize="none", action="write")
    evaluator = Evaluator(exported.network, with_data(exported), summed=False)
    written = next(iter(node_values(evaluator, EvaluationData(reader, size, size))))
    columns = written.values if len(exported.axes) > 1 else [[np.concatenate(value)] for value in written.values]
    return check_data(exported, as_bytes(ready.model), list(zip(*columns, strict=True)))

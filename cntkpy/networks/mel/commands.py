"""The commands of MEL, each declared once: names, arguments, options, what it does.

See docs/specification/networks.md E.2.
"""

from __future__ import annotations

import logging
import math

from cntkpy.networks.builders.ndl.parse import Word
from cntkpy.networks.builders.ndl.scalars import BOOLEANS_TEXT, INTEGER_TEXT
from cntkpy.networks.builders.ndl.text import error
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.initialize import Initializer
from cntkpy.networks.graph.network import Node
from cntkpy.networks.mel.copy import Pair, copy_nodes, pairs, rename_nodes
from cntkpy.networks.mel.editor import Editor
from cntkpy.networks.mel.models import COMPLETE, CONNECTED, Model, Reference
from cntkpy.networks.mel.properties import set_property, set_rate
from cntkpy.networks.mel.request import BOOLEAN, Kind, Request, in_full

log = logging.getLogger("cntkpy.networks")

COPY = {"copy": ("all", "value"), "copyFlag": ("all", "value")}
FORMAT = {"format": ("cntk", "cntk_legacy_no_tensorlib")}
DATA = {"includeData": BOOLEAN}
OLD_FORMAT = "cntk_legacy_no_tensorlib"


# ---- models


def _create(editor: Editor, request: Request) -> None:
    """Make an empty model."""
    word = request.command.model or request.arguments[0]
    editor.put(word, editor.new_network())


def _load(editor: Editor, request: Request) -> None:
    """Load a model; without a name it is called `default`."""
    name = request.command.model or (request.arguments[0] if len(request.arguments) == 2 else None)
    network = editor.files.load(request.arguments[-1].text, editor.precision)
    editor.put(name or Word("default", request.place), network)


def _load_snippet(editor: Editor, request: Request) -> None:
    """Make a model of an NDL file, or of one section of it."""
    name, path = request.arguments
    section = next((value for option, value in request.command.options if option.text.lower() == "section"), None)
    editor.put_script(name, editor.script_documents(path, section))


def _set_default(editor: Editor, request: Request) -> None:
    """Choose the model of in-line NDL and of names without a model in front."""
    editor.models.default = editor.models.find(request.arguments[0])


def _save(editor: Editor, request: Request) -> None:
    """Complete and check a model (the default one, if none is named) and save it."""
    named, word = request.arguments[:-1], request.arguments[-1]
    if not named and editor.models.get(word.text) is not None:
        message = f"'{word.text}' is a model, the name of a file is missing"
        raise error("CommandArguments", message, word.place, hint=f"write SaveModel({word.text}, file)")
    _save_as(editor, request)


def _save_as(editor: Editor, request: Request) -> None:
    """Complete and check a model (the default one, if none is named) and save it."""
    if request.option("format") == OLD_FORMAT:
        message = f"writing models in the format {OLD_FORMAT} is not supported"
        raise error("Unsupported", message, request.place, hint="leave the format out; old models can be read")
    if len(request.arguments) == 2:
        model = editor.models.find(request.arguments[0])
    else:
        model = editor.models.needed_default(request.place)
    editor.finish(model, COMPLETE)
    network = model.network.validate()
    editor.files.made(network, set(model.session.builder.made.values()))
    editor.files.save(request.arguments[-1].text, network)


def _unload(editor: Editor, request: Request) -> None:
    """Forget models."""
    for word in request.arguments:
        model = editor.models.get(word.text)
        if model is None:
            log.warning("%s: there is no model '%s' to unload", word.place.short, word.text)
        else:
            editor.models.drop(model)


def _dump(editor: Editor, request: Request, model: Model, nodes: list[Node] | None) -> None:
    """Write nodes (None: all) as text; a model that is not complete is dumped as far as it is."""
    from cntkpy.cntk_config.base.diagnostics import UserError

    try:
        model.network.validate()
    except UserError as problem:
        log.warning("%s: the model '%s' is not complete: %s", request.place.short, model.name, problem)
    values = BOOLEANS_TEXT[request.option("includeData") or "false"]
    selected = model.network.nodes.values() if nodes is None else nodes
    editor.files.dump(request.arguments[1].text, model.network, selected, values)


def _dump_model(editor: Editor, request: Request) -> None:
    """Write all nodes as text; `includeData=true`: with the values of parameters."""
    model = editor.models.find(request.arguments[0])
    editor.finish(model, COMPLETE)
    _dump(editor, request, model, None)


def _dump_node(editor: Editor, request: Request) -> None:
    """Write nodes as text."""
    reference = editor.reference(request.arguments[0], COMPLETE)
    _dump(editor, request, reference.model, reference.nodes())


# ---- nodes


def _copy(editor: Editor, request: Request) -> None:
    """Copy nodes, or (`copy=value`) only their values."""
    source, target = (editor.reference(word, COMPLETE) for word in request.arguments)
    copy_nodes(pairs(source, target, request.place), _values_only(request), request.place)


def _values_only(request: Request) -> bool:
    return request.option("copy", "copyFlag") == "value"


def _copy_sub_tree(editor: Editor, request: Request) -> None:
    """Copy nodes and all below them, under the names prefix + name."""
    source = editor.reference(request.arguments[0], COMPLETE)
    target = editor.models.find(request.arguments[1])
    editor.finish(target, COMPLETE)
    prefix = request.arguments[2].text
    wanted = [
        Pair(node, target.network, prefix + node.name)
        for node in source.model.network.linked_below(source.nodes(symbols=False))
    ]
    copy_nodes(wanted, _values_only(request), request.place)


def _copy_inputs(editor: Editor, request: Request) -> None:
    """Connect nodes to the inputs of others of the same operation."""
    source, target = (editor.reference(word, COMPLETE) for word in request.arguments)
    _same_model(source, target)
    wanted = pairs(source, target, request.place)
    for pair in wanted:
        if pair.target is None:
            message = f"there is no node '{pair.name}' to take the inputs of '{pair.source.name}'"
            raise error("UnknownNode", message, target.word.place)
        if pair.target.kind is not pair.source.kind:
            message = f"{pair.source.operation} '{pair.source.name}' and {pair.target.operation} '{pair.target.name}'"
            raise error("OperationMismatch", f"{message} are of different operations", request.place)
    inputs = [list(pair.source.inputs) for pair in wanted]
    for pair, links in zip(wanted, inputs, strict=True):
        assert pair.target is not None
        pair.target.inputs = links


def _set_input(editor: Editor, request: Request) -> None:
    """Set one input of nodes; the first one has the index 0."""
    target = editor.reference(request.arguments[0], CONNECTED)
    index_word = request.arguments[1]
    source = editor.reference(request.arguments[2], CONNECTED)
    _same_model(source, target)
    nodes = target.nodes()
    if not INTEGER_TEXT.fullmatch(index_word.text) or int(index_word.text) < 0:
        message = f"the index of an input is a whole number from 0, not '{index_word.text}'"
        raise error("BadInteger", message, index_word.place)
    index = int(index_word.text)
    for node in nodes:
        most = node.kind.arity()[1]
        if most is not None and index >= most:
            message = f"{node.operation} '{node.name}' has {most} inputs: there is no input {index}"
            raise error("BadValue", message, index_word.place, hint="inputs are counted from 0")
        if index > len(node.inputs):
            message = (
                f"{node.operation} '{node.name}' has {len(node.inputs)} inputs: set input {len(node.inputs)} first"
            )
            raise error("BadValue", message, index_word.place, hint="inputs are counted from 0")
    new = source.node(constants=True)
    for node in nodes:
        node.inputs[index : index + 1] = [new]


def _set_inputs(editor: Editor, request: Request) -> None:
    """Set all inputs of a node."""
    target = editor.reference(request.arguments[0], CONNECTED)
    node = target.node()
    sources = [editor.reference(word, CONNECTED) for word in request.arguments[1:]]
    for source in sources:
        _same_model(source, target)
    low, high = node.kind.arity()
    if len(sources) < low or (high is not None and len(sources) > high):
        expected = f"{low}" if low == high else f"{low} or more" if high is None else f"{low} to {high}"
        plural = "" if expected == "1" else "s"
        message = f"{node.operation} '{node.name}' expects {expected} input{plural}, {len(sources)} given"
        raise error("FunctionArguments", message, request.place)
    node.inputs = [source.node(constants=True) for source in sources]


def _same_model(source: Reference, target: Reference) -> None:
    if source.model is target.model:
        return
    message = (
        f"'{source.word.text}' is in the model '{source.model.name}', "
        f"'{target.word.text}' in '{target.model.name}': both must be in one model"
    )
    hint = source.hidden or target.hidden or "copy the nodes first: Copy or CopySubTree"
    raise error("OtherModel", message, source.word.place, hint)


def _set_property(editor: Editor, request: Request) -> None:
    """Set a property of nodes."""
    nodes, name, value = request.arguments
    reference = editor.reference(nodes, 1)
    set_property(reference.model.network, reference.nodes(), name, value)


def _set_property_below(editor: Editor, request: Request) -> None:
    """Set a property of all parameters below the nodes."""
    roots, name, value = request.arguments
    reference = editor.reference(roots, CONNECTED)
    below = reference.model.network.linked_below(reference.nodes())
    set_rate(below, name, value, ("learningRateMultiplier", "needGradient", "needsGradient", "computeGradient"))


def _remove(editor: Editor, request: Request) -> None:
    """Take nodes out of the model and its groups; links to them are empty then."""
    models: dict[Node, Model] = {}
    for word in request.arguments:
        reference = editor.reference(word, COMPLETE)
        models.update((node, reference.model) for node in reference.nodes())
    for node, model in models.items():
        model.network.remove(node.name)
        model.changed = True


def _rename(editor: Editor, request: Request) -> None:
    """Give nodes other names; links and groups stay."""
    source, target = (editor.reference(word, COMPLETE) for word in request.arguments)
    _same_model(source, target)
    rename_nodes(pairs(source, target, request.place), request.place)
    source.model.changed = True


def _revise(editor: Editor, request: Request) -> None:
    """Read the values of parameters from a text file, one matrix row a line."""
    reference = editor.reference(request.arguments[0], COMPLETE)
    for node in reference.nodes():
        if not node.is_parameter:
            log.warning("%s: %s '%s' is not a parameter", request.place.short, node.operation, node.name)
            continue
        init = Initializer("fromFile", path=request.arguments[1].text)
        shape = init.complete_shape(node.shape or (0,))
        if node.shape is not None and 0 not in node.shape and shapes.size(shape) != math.prod(node.shape):
            shape = node.shape
        network = reference.model.network
        init.check(shape, network.precision)
        node.value, node.shape = init.create(shape, network.dtype) if network.values else None, shape


COMMANDS = (
    Kind("CreateModel", (), _create, makes_model=True, example="m = CreateModel()"),
    Kind("CreateModelWithName", ("m",), _create, example="CreateModelWithName(m)"),
    Kind("LoadModel", ("file",), _load, options=FORMAT, makes_model=True, example="m = LoadModel(old.dnn)"),
    Kind("LoadModelWithName", ("m", "file"), _load, options=FORMAT, example="LoadModelWithName(m, old.dnn)"),
    Kind(
        "LoadNDLSnippet",
        ("m", "file"),
        _load_snippet,
        options={"section": ()},
        example="LoadNDLSnippet(m, layers.ndl, section=top)",
    ),
    Kind("SetDefaultModel", ("m",), _set_default, example="SetDefaultModel(m)"),
    Kind(
        "SaveModel",
        ("m", "file"),
        _save,
        ("SaveModelWithName",),
        FORMAT,
        least=1,
        writes=True,
        example="SaveModel(m, new.dnn)",
    ),
    Kind("SaveDefaultModel", ("file",), _save_as, options=FORMAT, writes=True, example="SaveDefaultModel(new.dnn)"),
    Kind("UnloadModel", ("m",), _unload, many=True, example="UnloadModel(m)"),
    Kind(
        "DumpNode",
        ("nodes", "file"),
        _dump_node,
        (),
        DATA,
        writes=True,
        example="DumpNode(m.W*, weights.txt, includeData=true)",
    ),
    Kind(  # after DumpNode, of which `DumpN` is short
        "DumpModel",
        ("m", "file"),
        _dump_model,
        ("Dump", "DumpNetwork"),
        DATA,
        writes=True,
        example="DumpModel(m, model.txt, includeData=true)",
    ),
    Kind(
        "CopyNode", ("from", "to"), _copy, ("Copy",), COPY, changes=True, example="CopyNode(m.L1.*, m.L2.*, copy=all)"
    ),
    Kind(
        "CopySubTree",
        ("from", "m", "prefix"),
        _copy_sub_tree,
        (),
        COPY,
        changes=True,
        example="CopySubTree(m.z, n, copy.)",
    ),
    Kind(
        "CopyNodeInputs",
        ("from", "to"),
        _copy_inputs,
        ("CopyInputs",),
        changes=True,
        example="CopyNodeInputs(m.h, m.g)",
    ),
    Kind(
        "SetNodeInput",
        ("nodes", "index", "input"),
        _set_input,
        ("SetInput",),
        changes=True,
        example="SetNodeInput(m.z, 0, m.W2)",
    ),
    Kind(
        "SetNodeInputs",
        ("node", "input"),
        _set_inputs,
        ("SetInputs",),
        many=True,
        changes=True,
        example="SetNodeInputs(m.z, m.W2, m.h)",
    ),
    Kind(
        "SetProperty",
        ("nodes", "property", "value"),
        _set_property,
        changes=True,
        example="SetProperty(m.W*, needGradient, false)",
    ),
    Kind(
        "SetPropertyForSubTree",
        ("nodes", "property", "value"),
        _set_property_below,
        changes=True,
        example="SetPropertyForSubTree(m.h, needGradient, false)",
    ),
    Kind(
        "RemoveNode",
        ("nodes",),
        _remove,
        ("Remove", "DeleteNode", "Delete"),
        many=True,
        changes=True,
        example="RemoveNode(m.old*)",
    ),
    Kind("Rename", ("from", "to"), _rename, changes=True, example="Rename(m.L1.*, m.first.*)"),
    Kind("ReviseParameter", ("nodes", "file"), _revise, changes=True, example="ReviseParameter(m.W, weights.txt)"),
)
"""All commands, in the order of the documentation."""

_BY_NAME = {name.lower(): kind for kind in COMMANDS for name in kind.names}


def find(name: str) -> Kind | None:
    """Return the command of that name, which may be abbreviated to a half, or None. Letter case does not count."""
    full = in_full(name, _BY_NAME)
    return None if full is None else _BY_NAME[full]


def makes_model(name: str) -> bool:
    """Return whether a command of that name (in full: macros have names, too) may be on the right of `=`."""
    kind = _BY_NAME.get(name.lower())
    return kind is not None and kind.makes_model

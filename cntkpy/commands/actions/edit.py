"""`action = edit`: change models with a script of the model editing language (MEL), or make one with a builder."""

from __future__ import annotations

import logging
from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.base.writing import shown, why_not_written
from cntkpy.cntk_config.declare import PATH, Declared, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import pad_channels
from cntkpy.commands.context.root import CommandParameters
from cntkpy.networks.builders.parameters import BuilderParameters, OutputParameters, builder_of, is_given

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import Node, ValidatedNetwork

log = logging.getLogger("cntkpy.commands")


ENTRY = Entry(
    "action",
    ("edit",),
    parameters="cntkpy.commands.actions.edit:EditParameters",
    factory="cntkpy.commands.actions.edit:edit",
    traits=frozenset({"without JAX"}),
    example="edit = [ action = edit ; editPath = change.mel ]",
)


class EditParameters(Declared):
    """`action=edit`: runs a script that loads models, changes and saves them, or makes the network of a builder."""

    edit_path = Parameter(
        "editPath",
        PATH,
        default=None,
        help="The script, in the model editing language (MEL). Needed where no builder makes the model.",
    )
    ndl_macros = Parameter("ndlMacros", PATH, default=None, help="NDL files with macros for the script, joined by `+`.")
    simple = BuilderParameters.simple
    ndl = BuilderParameters.ndl
    brain_script = BuilderParameters.brain_script
    experimental = BuilderParameters.experimental
    create = BuilderParameters.create
    outputs = OutputParameters.outputs
    make_mode = CommandParameters.make_mode
    output_path = Parameter("outputModelPath", PATH, default=None, help="The model that a network builder makes.")

    def check_together(self) -> None:
        """There must be a script, or a builder that makes the model, and then a file for it."""
        if builds(self):
            if self.output_path is None:
                message = "outputModelPath is missing: the file of the model that the builder makes"
                raise self.config.error("", message, "add outputModelPath = new.dnn", "MissingParameter")
        elif self.edit_path is None:
            message, hint = "editPath is missing", "name a script, or describe the model with a builder"
            raise self.config.error("", message, hint, "MissingParameter")


def edit(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = EditParameters(section)
    p.check_together()
    if builds(p):
        _build(p, context)
        return
    path = p.edit_path
    assert path is not None
    from cntkpy.networks.mel.editor import Files
    from cntkpy.networks.mel.script import edit_file

    class FilesOfDevice(Files):
        """Models whose new nodes are those that CNTK makes for the device."""

        def made(self, network: ValidatedNetwork, nodes: Set[Node]) -> None:
            pad_channels(network, context, nodes)

    try:
        edit_file(str(path), section, context.precision, context.seeds, FilesOfDevice())
    except ConfigError as problem:
        if problem.span is None and problem.kind == "FileNotFound":
            raise path.error(problem.kind, problem.message, problem.hint) from None
        raise


def builds(p: EditParameters) -> bool:
    """Return whether a builder makes the model: one in BrainScript in any case, others where no script is named."""
    return is_given(p.config, EditParameters.brain_script.name) or (
        p.edit_path is None and builder_of(p.config) is not None
    )


def _build(p: EditParameters, context: RunContext) -> None:
    """Make the network of the builder and save it."""
    from cntkpy.networks.builders.build import build_network
    from cntkpy.networks.files.model_file import save_model

    path = str(p.output_path)
    wrong = why_not_written(path)
    if wrong:
        raise p.error("outputModelPath", f"'{shown(path)}' cannot be a model file: {wrong}", "give the name of a file")
    if p.edit_path is not None:
        log.warning("WARNING: editPath is not read: the %s makes the model.", EditParameters.brain_script.name)
    if p.make_mode and exists(Path(path)):
        log.info("'%s' exists, skipping. Specify makeMode=false to force executing the action.", path)
        return
    network = build_network(p.config, context.precision, context.seeds)
    pad_channels(network, context)
    save_model(path, network)
    log.info("Saved the network of %d nodes to '%s'.", len(network.nodes), path)

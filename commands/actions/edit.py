"""`action = edit`: change models with a script of the model editing language (MEL), or make one with a builder."""

from cntk_config import ConfigError, ConfigParameters
from cntk_config.declare import PATH, Declared, Parameter
from cntk_config.entry import Entry
from commands.context.run_context import RunContext
from networks.builders.parameters import BuilderParameters, OutputParameters, builder_of

ENTRY = Entry(
    "action",
    ("edit",),
    parameters="commands.actions.edit:EditParameters",
    factory="commands.actions.edit:edit",
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
    output_path = Parameter("outputModelPath", PATH, default=None, help="The model that a network builder makes.")


def edit(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = EditParameters(section)
    if p.edit_path is None and builder_of(section) is not None:
        from networks.builders.build import build_network
        from networks.files.model_file import save_model

        network = build_network(section, context.precision, context.seeds)
        save_model(str(p.output_path), network)
        return
    path = p.edit_path
    if path is None:
        message = "editPath is missing"
        raise section.error("", message, "name a script, or describe the model with a builder", "MissingParameter")
    from networks.mel.script import edit_file

    try:
        edit_file(str(path), section, context.precision, context.seeds)
    except ConfigError as problem:
        if problem.span is None and problem.kind == "FileNotFound":
            raise path.error(problem.kind, problem.message, problem.hint) from None
        raise

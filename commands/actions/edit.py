"""`action = edit`: change models with a script of the model editing language (MEL)."""

from cntk_config import ConfigError, ConfigParameters
from cntk_config.declare import PATH, Declared, Parameter
from cntk_config.entry import Entry
from commands.context.run_context import RunContext
from networks.builders.parameters import BuilderParameters

ENTRY = Entry(
    "action",
    ("edit",),
    parameters="commands.actions.edit:EditParameters",
    factory="commands.actions.edit:edit",
    example="edit = [ action = edit ; editPath = change.mel ]",
)


class EditParameters(Declared):
    """`action=edit`: runs a script that loads models, changes and saves them."""

    edit_path = Parameter("editPath", PATH, help="The script, in the model editing language (MEL).")
    ndl_macros = Parameter("ndlMacros", PATH, default=None, help="NDL files with macros for the script, joined by `+`.")
    brain_script = BuilderParameters.brain_script
    create = BuilderParameters.create


def edit(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = EditParameters(section)
    builder = next((one for one in (EditParameters.brain_script, EditParameters.create) if one.find(section)), None)
    if builder is not None and not EditParameters.edit_path.find(section):
        raise ConfigError(
            "Unsupported",
            f"{builder.name}: editing a model with BrainScript is not supported",
            p.error(builder.name, "").span,
            hint="write the changes in the model editing language (MEL) and name the file with editPath",
        )
    path = p.edit_path
    from networks.mel.script import edit_file

    try:
        edit_file(str(path), section, context.precision, context.seeds)
    except ConfigError as problem:
        if problem.span is None and problem.kind == "FileNotFound":
            raise path.error(problem.kind, problem.message, problem.hint) from None
        raise

"""`action = edit`: change models with a script of the model editing language (MEL)."""

from cntk_config import ConfigError, ConfigParameters
from cntk_config.declare import PATH, Declared, Parameter
from commands.context import RunContext

BRAINSCRIPT = ("BrainScriptNetworkBuilder", "createNetwork")


class EditParameters(Declared):
    """`action=edit`: runs a script that loads models, changes and saves them."""

    edit_path = Parameter("editPath", PATH, help="The script, in the model editing language (MEL).")
    ndl_macros = Parameter("ndlMacros", PATH, default=None, help="NDL files with macros for the script, joined by `+`.")


def edit(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = EditParameters(section)
    builder = next((name for name in BRAINSCRIPT if section.exists(name)), None)
    if builder is not None and not section.exists("editPath"):
        raise ConfigError(
            "Unsupported",
            f"{builder}: editing a model with BrainScript is not supported",
            section(builder).span,
            hint="write the changes in the model editing language (MEL) and name the file with editPath",
        )
    path = p.edit_path
    from networks.mel import edit_file

    try:
        edit_file(str(path), section, context.precision, context.seeds)
    except ConfigError as problem:
        if problem.span is None and problem.kind == "FileNotFound":
            raise path.error(problem.kind, problem.message, problem.hint) from None
        raise

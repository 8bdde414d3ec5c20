"""`cntkpy show`: the resolved configuration, in several forms, with the origin of every value if wanted.

A single word that names a model file shows the model instead (`show_model`).
"""

import sys
from typing import Any

import click

from cntk_config import ConfigError, load
from commands.words import sort_words

EXIT_ERROR = 2


def show(words: list[str], form: str = "flat", *, origins: bool = False, unresolved: bool = False) -> int:
    """Print the configuration that `words` name, or the part of it at a path; return the exit status.

    What cannot be read is marked in the output and explained on standard error; everything else is shown.
    """
    from cntk_config import export
    from commands.show_model import FORMATS, is_model, show_model

    if len(words) == 1 and is_model(words[0]):
        if form not in FORMATS or origins or unresolved:
            raise click.UsageError("A model is shown with --format flat or json.")
        return show_model(words[0], form)
    sorted_words = sort_words(words, files=1)
    if len(sorted_words.rest) > 1:
        raise click.UsageError(f"One path at most can be shown; there are: {' '.join(sorted_words.rest)}")
    path = sorted_words.rest[0] if sorted_words.rest else None
    errors: list[ConfigError] = []

    def mark(error: ConfigError) -> Any:
        errors.append(error)
        return {"$error": error.kind} if form == "json" and not origins else f"<error: {error}>"

    write = {"flat": export.to_flat, "json": export.to_json, "yaml": export.to_yaml, "cntk": export.to_cntk}[form]
    try:
        root = load(sorted_words.configurations[0])
        text = write(root, path, unresolved=unresolved, origins=origins, on_error=mark)
    except ConfigError as error:
        print(error.diagnostic.render(), file=sys.stderr)
        return EXIT_ERROR
    sys.stdout.write(text)
    sys.stdout.flush()
    for finding in [*root.warnings, *(error.diagnostic for error in errors)]:
        print(finding.one_line(), file=sys.stderr)
    return EXIT_ERROR if errors else 0

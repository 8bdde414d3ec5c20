"""Scripts of the model editing language given as texts."""

from collections.abc import Iterable

from cntkpy.networks.builders.ndl.source import plain_document
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.mel.editor import Editor
from cntkpy.networks.mel.script import run


def edit_text(
    text: str,
    name: str = "<mel>",
    precision: str = "float",
    seeds: SeedCounter | None = None,
    *,
    macros: Iterable[str] = (),
) -> Editor:
    """Run a script with the macros of some NDL texts."""
    editor = Editor(precision, seeds)
    for macro in macros:
        editor.define_macros(plain_document(macro, "<macros>"))
    run(editor, plain_document(text, name))
    return editor

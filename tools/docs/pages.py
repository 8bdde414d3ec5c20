"""All generated pages, as text."""

import re
from pathlib import Path

from cntkpy.commands.new.project import schema_text
from cntkpy.commands.projects import schema
from tools.docs import brainscript, column_types, drawings, findings, functions, messages, onnx, reference, tables

PROJECTS = "docs/projects.md"
KEYS = re.compile(r"(<!-- project keys -->\n).*?(<!-- end -->)", re.DOTALL)
FINDINGS = "docs/findings.md"
MESSAGES = "docs/errors.md"
ONNX = "docs/onnx.md"


def pages(root: Path) -> dict[str, str]:
    """The generated pages of the checkout `root`, by their paths below it, as they should be now."""
    made = {f"docs/reference/{name}": text for name, text in reference.pages().items()}
    made["docs/functions.md"] = functions.page()
    made["docs/brainscript-functions.md"] = brainscript.page()
    for path in sorted((root / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if tables.MARKED.search(text) or column_types.MARKED.search(text):
            made[f"docs/{path.name}"] = column_types.with_types(tables.with_tables(text))
    projects = (root / PROJECTS).read_text(encoding="utf-8")
    made[PROJECTS] = KEYS.sub(lambda match: f"{match[1]}{schema.reference()}{match[2]}", projects)
    made["editors/cntkpy.schema.json"] = schema_text()
    made[ONNX] = onnx.with_lists((root / ONNX).read_text(encoding="utf-8"))
    made[FINDINGS] = findings.with_tables((root / FINDINGS).read_text(encoding="utf-8"))
    made[MESSAGES] = messages.with_outputs((root / MESSAGES).read_text(encoding="utf-8"))
    made |= {f"{drawings.FOLDER}/{name}": text for name, text in drawings.untrained().items()}
    return made


def old(root: Path, made: dict[str, str]) -> list[str]:
    """The paths of pages that are missing or differ from what they should be."""
    return [path for path, text in made.items() if not _is(root / path, text)]


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text

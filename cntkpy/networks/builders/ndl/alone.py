"""A file in NDL that is opened by itself, without the configuration that names it."""

from __future__ import annotations

import re

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.source import VARIABLE
from cntkpy.networks.builders.ndl.parse import Statement, parse_document
from cntkpy.networks.builders.ndl.source import SECTION, plain_document, value_document

COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*")


def file_statements(text: str, name: str) -> list[Statement]:
    """Return the statements of a file: of its whole text, or of all of its sections.

    Values of `$variables$` belong to a configuration. A number stands for each of them here.

    Raises:
        ConfigError: what the grammar does not allow.
    """
    text = COMMENT.sub(lambda match: " " * len(match[0]), text)
    text = VARIABLE.sub(lambda match: "0" * len(match[0]), text)
    documents = [plain_document(text, name)]
    if SECTION.search(text):
        root = parse(text, name)
        entries = [(section, root.definition(section)) for section in root.names()]
        documents = [
            value_document(root.opaque(section)) for section, entry in entries if entry is not None and entry.bracket
        ]
    return [statement for document in documents for statement in parse_document(document)[0]]

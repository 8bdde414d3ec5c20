"""Where the text of a network comes from: sections of the configuration, network files and macro files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cntk_config.diagnostics import Span
from cntk_config.source import Source
from networks.ndl_text import Document

if TYPE_CHECKING:
    from cntk_config import ConfigParameters


@dataclass
class Program:
    """The scripts of one network in their order, and the macro files to be read before them."""

    scripts: list[Document]
    macros: list[Document] = field(default_factory=list)
    seed_offset: int = 0


def plain_document(text: str, name: str) -> Document:
    """A document that is a whole text."""
    source = Source(name, text)

    def locate(offset: int) -> Span:
        before = text[:offset]
        line = before.count("\n") + 1
        return Span(source, line, offset - (before.rfind("\n") + 1) + 1)

    return Document(text, locate, name)


def find_program(section: ConfigParameters) -> Program:
    """The program of an `NDLNetworkBuilder` section."""
    raise NotImplementedError

"""No finding says that a parameter is missing while another says that it has no effect; documented forms are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cntkpy.cntk_config import parse
from cntkpy.commands.catalogue.section_map import Use, deserializer_use, reader_use, writer_use
from cntkpy.commands.checks.check import findings_of
from cntkpy.commands.checks.names import idle_names
from cntkpy.readers.entries import DESERIALIZER, READER, WRITER, entries

DOCS = Path(__file__).resolve().parents[3] / "docs"
MAKE = {READER.name: lambda text: reader_use(parse(text), "reader")}
MAKE |= {DESERIALIZER.name: lambda text: deserializer_use(parse(text))}
MAKE |= {WRITER.name: lambda text: writer_use(parse(text))}
TYPES = [(kind, one.name) for kind in (READER, DESERIALIZER, WRITER) for one in entries(kind) if not one.unsupported]
COMMAND = """command = t
modelPath = m
SGD = [ maxEpochs=1 ; minibatchSize=2 ; learningRatesPerSample=0.1 ]
SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
t = [ action = train
%s ]
"""
CODES = ("CK010", "CK011", "CK012", "CK015", "CK016", "CK024", "CK026")
FORMS = r"^\s*(?:reader|cvReader|deserializers|writer)\s*=\s*[\[(]"


def required(use: Use) -> set[str]:
    return {one.name.lower() for one in use.parameters() if one.required}


@pytest.mark.parametrize(("kind", "name"), TYPES, ids=lambda one: str(one) if isinstance(one, str) else one.name)
def test_what_is_required_has_an_effect(kind, name: str) -> None:
    """S1: every parameter is given, those of all readers, too."""
    use = MAKE[kind.name](f"{kind.selector} = {name}")
    given = " ; ".join(f"{one} = 1" for one in use.names() if one.lower() != kind.selector.lower())
    use = MAKE[kind.name](f"{kind.selector} = {name} ; {given}")
    assert required(use).isdisjoint(idle_names(use))


def pages() -> list[tuple[str, int, str]]:
    """The readers, deserializers and writers in blocks of the pages, as parts of a command that trains."""
    found = []
    for page in sorted(DOCS.rglob("*.md")):
        if page.name == "errors.md" or "findings" in page.parts or "specification" in page.parts:
            continue  # they show what is wrong, or what CNTK has
        for number, block in enumerate(re.findall(r"```[^\n]*\n(.*?)```", page.read_text("utf-8"), re.DOTALL)):
            if re.search(FORMS, block, re.MULTILINE):
                found.append((page.relative_to(DOCS).as_posix(), number, block))
    return found


@pytest.mark.parametrize(("page", "number", "block"), pages(), ids=lambda one: str(one).partition("\n")[0][:40])
def test_what_pages_show_passes_strict(page: str, number: int, block: str) -> None:
    """S1: a part of a configuration is laid into a command; what the page leaves out is no finding."""
    text = block
    if not re.search(r"\baction\s*=", block):
        inner = f"reader = [ {block} ]" if re.match(r"\s*deserializers", block) else block
        if re.match(r"\s*writer", block):
            inner = f"reader = [ file = d.ctf ; input = [ x = [ dim = 2 ; format = dense ] ] ] ; {block}"
        text = COMMAND % inner
        text = text.replace("action = train", "action = write ; outputPath = o") if "writer" in inner else text
    found = findings_of(lambda: parse(text))
    told = [
        one.diagnostic.message
        for one in found
        if one.rule.code in CODES and "is missing, the section of" not in one.diagnostic.message
    ]
    assert [one for one in told if not re.search(KNOWN, one)] == [], f"{page}, block {number}"


KNOWN = r"minibatchsSize|nothing uses the member"
"""A misspelling that docs/tutorials/old-configurations.md explains; members of networks that are cut short."""


def test_a_class_of_a_module_with_nearly_a_name_that_is_built_in() -> None:
    """CNTK's sample CSVDeserializer is a class; the exact name is what is built in."""
    mine = deserializer_use(parse("type = CSVDeserializer ; module = mine ; filename = d.csv"))
    assert mine.open and "filename" not in mine.names()
    ours = deserializer_use(parse("type = CsvDeserializer ; module = mine"))
    assert not ours.open
    assert "module" in idle_names(ours)
    assert not deserializer_use(parse("type = csvdeserializer")).open

"""`action = createLabelMap`: the label mapping file of a UCIFastReader, made from its data."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.base.writing import why_not_written
from cntkpy.cntk_config.declare import INTEGER, SECTION, TEXT, Declared, Parameter, Part
from cntkpy.cntk_config.entry import Entry

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext

log = logging.getLogger("cntkpy.commands")


ENTRY = Entry(
    "action",
    ("createLabelMap",),
    parameters="cntkpy.commands.actions.create_label_map:CreateLabelMapParameters",
    factory="cntkpy.commands.actions.create_label_map:create_label_map",
    traits=frozenset({"without JAX"}),
    example="labels = [ action = createLabelMap ; section = train ]",
)


class ReaderHolder(Declared):
    """A section with a reader."""

    reader = Parameter("reader", SECTION, help="The reader whose labels are listed.")


class CreateLabelMapParameters(Declared):
    """`action=createLabelMap`: writes the names of all labels of a data file, in order of first appearance."""

    section = Parameter("section", TEXT, help="The section whose reader has labels with a labelMappingFile.")
    minibatch_size = Parameter("minibatchSize", TEXT, default="", ignored="the file is read as a whole.")
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="1: how many labels; 2: how long it took.")

    def check_together(self) -> None:
        """An error if there is no section of that name."""
        name = str(self.section)
        if not self.config.exists(name):
            around = self.config.parent or self.config
            hint = suggestion(name, [item for item, _ in around.inner()])
            raise self.error("section", f"there is no section '{name}'", hint, "MissingParameter")

    def named_parts(self) -> Iterator[Part]:
        """Yield the section that has the reader."""
        yield Part("section", self.config.section(self.section), (ReaderHolder,), open=True)


def create_label_map(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    from cntkpy.readers.formats.uci.parameters import LabelParameters, UCIReaderParameters, classify
    from cntkpy.readers.parameters import ReaderParameters
    from cntkpy.readers.registry import create_reader

    p = CreateLabelMapParameters(section)
    reader = ReaderHolder(section.section(p.section)).reader
    if ReaderParameters(reader).reader_type.lower() != "ucifastreader":
        raise reader.error("readerType", "this reader makes no label mapping files", "use readerType=UCIFastReader")
    labels = classify(reader).labels
    if not labels:
        raise reader.error(
            "",
            f"the reader of section '{p.section}' has no section of labels",
            "add labels=[dim=1 ; start=... ; labelMappingFile=...]",
            "MissingParameter",
        )
    mapping = LabelParameters.mapping
    for name in labels:
        inside = reader.section(name)
        kind = LabelParameters(inside).label_type
        if kind != "category":
            raise inside.error("labelType", f"labels of labelType={kind} have no names", "only categories have a map")
        if not mapping.value(inside):
            raise inside.error(
                "labelMappingFile",
                "there is no name for the label mapping file",
                "add labelMappingFile=...",
                "MissingParameter",
            )
        path = str(LabelParameters(inside).mapping)
        if why := why_not_written(path):
            raise inside.error(
                "labelMappingFile",
                f"the label mapping file {path} cannot be written: {why}",
                "give another name",
                "CannotWrite",
            )
        if exists(path):
            log.info("CreateLabelMap: the label mapping file '%s' exists, there is nothing to do", path)
            return
        log.info("CreateLabelMap: Creating the mapping file '%s'", path)
        reader.insert(UCIReaderParameters.create_map.name, "true")
        begin = time.perf_counter()
        data = create_reader(reader, context.data_precision)
        count = data.samples_per_sweep
        data.close()
        if p.trace_level > 1:
            log.info("%.2f seconds elapsed", time.perf_counter() - begin)
        if p.trace_level > 0:
            log.info("read %d labels and produced %s", count, path)

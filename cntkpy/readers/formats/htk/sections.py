"""The parameters of HTKMLFReader, and which of its sections are features and which labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.declare import BOOLEAN, INTEGER, PATH, Parameter, Part, choice, section_of
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.parameters import no_stream
from cntkpy.readers.utterances.parameters import Sections, UtteranceReaderParameters

from .parameters import FeatureParameters, LabelParameters, LatticeParameters, idle_energy


class HTKReaderParameters(UtteranceReaderParameters):
    """HTKMLFReader: features in HTK files, labels in MLF files, a section for each stream."""

    read_method = Parameter(
        "readMethod",
        choice("blockRandomize", "rollingWindow", "none", ignore_case=True),
        default="blockRandomize",
        help="How data are shuffled; rollingWindow is always by frames; none: the order of the file.",
    )
    verbosity = Parameter("verbosity", INTEGER, default="0", ignored="traceLevel decides how much is logged.")
    unigram = Parameter("unigram", PATH, default=None, ignored="only sequence training needs words.")
    read_ahead = Parameter("readAhead", BOOLEAN, default="false", ignored="prefetch=false turns reading ahead off.")
    page_file = Parameter("pageFilePath", PATH, default=None, ignored="nothing is paged out.")

    write = Parameter(
        "write",
        section_of("cntkpy.readers.formats.htk.writer_parameters:HTKWriterParameters"),
        default=None,
        own=True,
        help="In action=write, without writer and outputPath: the sections of a writer.",
    )

    def named_parts(self) -> Iterator[Part]:
        """Yield the sections of streams; also those inside `input` and `output`."""
        result = find_sections(self.config)
        for role, sections, declared in (
            ("features", result.features, FeatureParameters),
            ("labels", result.labels, LabelParameters),
        ):
            for _, section in sections:
                yield Part(role, section, (declared,))

    @property
    def slots(self) -> PerEpoch[int]:
        """Parallel utterances per epoch; frames have none."""
        return PerEpoch([1]) if self.frame_mode and not self.writing else self.parallel

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Zeros that are not added."""
        if self.read_method != "rollingWindow":
            yield from idle_energy(find_sections(self.config).features)

    def without_effect(self) -> Iterator[tuple[str, str]]:
        """Single frames have no parallel utterances."""
        if not self.writing and self.frame_mode and any(slots > 1 for slots in self.parallel):
            yield "nbruttsineachrecurrentiter", "frames have no parallel utterances; frameMode=false reads utterances"
        for name in ("writer", "outputPath"):
            if self.config.find(name):
                yield "write", f"{name} says where values go"

    def check_together(self) -> None:
        """Errors in what does not go together."""
        sections = find_sections(self.config)
        self.check_legacy()
        if not sections.features:
            raise no_stream(
                self.config,
                "the reader has no section of features",
                "add features=[scpFile=... ; dim=...]",
                ("scpFile",),
            )
        if self.writing:
            if sections.labels:
                name = sections.labels[0][0]
                raise self.config.error(name, "labels are not read by action=write", "leave the section out")
            return
        self.check_minibatches()
        if len(sections.features) + len(sections.labels) < 2:
            raise no_stream(
                self.config,
                "the reader has a single stream",
                "add labels=[mlfFile=... ; labelDim=...]",
                ("mlfFile", "mlfFileList", "scpFile"),
            )


def find_sections(section: ConfigParameters) -> Sections:
    """Which sections are streams, also inside `input` and `output`; sequence training is refused."""
    sections = Sections()
    _look(section, "", sections)
    for group in (sections.features, sections.labels):
        group.sort(key=lambda item: item[0].lower())
    return sections


def _look(section: ConfigParameters, within: str, sections: Sections) -> None:
    for name, inside in section.inner():
        if not within and name.lower() in ("input", "output") and not _kind(inside, ""):
            _look(inside, name.lower(), sections)
            continue
        kind = _kind(inside, within)
        if kind == "lattice":
            raise section.error(
                name,
                "lattices (sequence training) are not supported",
                "train with frame labels and a cross-entropy criterion",
                "NotSupported",
            )
        if kind:
            (sections.features if kind == "features" else sections.labels).append((name, inside))


def _kind(section: ConfigParameters, within: str) -> str:
    """features, labels, lattice, or nothing. `file` is turned into the name that it stands for."""

    def has(*parameters: Parameter[Any]) -> bool:
        return any(parameter.stands_in(section) for parameter in parameters)

    f, p, refused = FeatureParameters, LabelParameters, LatticeParameters
    if has(f.scp):
        return "features"
    if has(p.mlf, p.mlf_list):
        return "labels"
    if has(refused.denominator, refused.numerator, refused.lattices):
        return "lattice"
    if has(refused.phones, refused.transitions) or not has(p.file) or not has(p.dim, p.label_dim):
        return ""
    words = [str(section.own(parameter.name)).lower() for parameter in (p.kind, p.label_type) if has(parameter)]
    labels = "category" in words or has(p.states, p.label_dim) or (within == "output" and "real" not in words)
    section.insert((p.mlf if labels else f.scp).name, p.file.value(section))
    return "labels" if labels else "features"

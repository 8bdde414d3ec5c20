"""The parameters of streams of HTK features and MLF labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    PATH,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    sections_by_name,
)
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError
from cntkpy.readers.parameters import FEATURE_TYPE, PATHS
from cntkpy.readers.utterances.parameters import WINDOW, OneStreamParameters, UtteranceLabelParameters, window_advice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cntkpy.readers.common.labels import LabelMap
    from cntkpy.readers.utterances.labels import Labels

    from .features import FeatureSource


class FeatureParameters(Declared):
    """A stream of features: the frames of HTK files."""

    scp = Parameter("scpFile", PATHS, help="The script file: a line `name=archive[first,last]` per utterance.")
    dim = Parameter("dim", COUNT, help="Values of a frame; or, without contextWindow, with its neighbours.")
    window = Parameter(
        "contextWindow", WINDOW, default="1", help="Frames side by side: an odd number, or before:after."
    )
    kind = Parameter("type", FEATURE_TYPE, default="real", own=True, help="Kind of values.")
    prefix = Parameter("prefixPathInSCP", TEXT, default="", help="Folder of the files that the script names.")
    expand = Parameter(
        "expandToUtterance", BOOLEAN, default="false", help="Utterances have one frame, repeated to full length."
    )
    file = Parameter("file", PATHS, default=None, own=True, help="Another name of scpFile, beside dim.")
    energy = Parameter(
        "addEnergy",
        SIZE,
        default="0",
        help="With readMethod=rollingWindow: number of equal parts of a frame; a zero is added after each.",
    )

    defines_mb_size = Parameter(
        "definesMBSize", BOOLEAN, default="false", help="Frames of this stream are the length of a sequence."
    )
    longest = Parameter(
        "maxSequenceSize", SIZE, default=None, help="Utterances of more frames are left out by HTKFeatureDeserializer."
    )

    def source(self, *, energy: bool = False) -> FeatureSource:
        """Return the files; `energy`: `addEnergy` counts."""

        from .features import FeatureSource
        from .script import read_script

        _ = self.kind  # there is no other
        if not 0 < self.dim < 2**24:
            raise self.error("dim", f"{self.dim} is not a number of values", "write 1 or more")
        left, right = self.window
        script = read_script(self.scp, str(self.prefix))
        try:
            return FeatureSource(script, self.dim, left, right, energy=self.energy if energy else 0)
        except DataError as error:
            if "dim is" in str(error):  # the file and the configuration disagree: show where the latter says so
                advice = window_advice(self.dim, self.given("contextWindow"), str(error))
                raise self.error("dim", str(error), advice or error.diagnostic.hint) from None
            raise

    def sample_size(self) -> int | None:
        """Elements of a sample: a frame with its neighbours; None if only the file says of which of them is `dim`."""
        width = sum(self.window) + 1
        return None if width > 1 and self.dim % width == 0 else self.dim * width

    def size_advice(self, wanted: int) -> str | None:
        """Return a hint that names the likely window."""
        return window_advice(wanted, self.given("contextWindow"))


def idle_energy(sections: Iterable[tuple[str, ConfigParameters]]) -> Iterator[tuple[str, str, str]]:
    """Say that `addEnergy` has no effect in sections of features, as in CNTK's manual."""
    for name, section in sections:
        if FeatureParameters(section).energy:
            message = f"addEnergy of '{name}' has no effect: only readMethod=rollingWindow of HTKMLFReader adds zeros"
            yield "", message, "write readMethod=rollingWindow, or leave addEnergy out; dim counts no zeros without it"


class LabelParameters(UtteranceLabelParameters):
    """A stream of labels: classes of frames, out of MLF files."""

    mlf = Parameter("mlfFile", PATHS, default=None, own=True, help="The label file, or several.")
    mlf_list = Parameter("mlfFileList", PATHS, default=None, help="Several label files, or a file that lists them.")
    file = Parameter("file", PATHS, default=None, own=True, help="Another name of mlfFile, beside labelDim.")
    states = Parameter("labelMappingFile", PATH, default="", help="Names of states, one per line in order of classes.")
    boundaries = Parameter(
        "phoneBoundaries", BOOLEAN, default="false", help="The first frame of a range has a 2 in place of the 1."
    )
    cache_index = Parameter("cacheIndex", BOOLEAN, default="false", ignored="label files are read at once.")
    chunk_size = Parameter("chunkSizeInBytes", SIZE, default=None, ignored="label files are read at once.")

    def paths(self) -> Sequence[str]:
        """Return the label files."""
        from cntkpy.readers.utterances.lists import read_lines

        if self.mlf is not None:
            return self.mlf
        several = self.mlf_list
        if several is None:
            raise self.error(
                "mlfFile", "the label file is missing", "add mlfFile=... or mlfFileList=...", "MissingParameter"
            )
        if len(several) > 1:
            return several
        listed = [line for _, line in read_lines(several[0], "the list of label files")]
        if not listed:
            raise self.error("mlfFileList", f"{several[0]} lists no label files")
        return listed

    def state_list(self) -> LabelMap | None:
        """Return the states, if the labels name them."""
        from cntkpy.readers.utterances.labels import read_states

        return read_states(str(self.states)) if self.states else None

    def labels(self, states: LabelMap | None, frames: Mapping[str, int] | None, period: int) -> Labels:
        """Return the labels of utterances of these lengths (None: of all). period: of a frame of theirs, see `mlf`."""
        from .mlf import read_labels_of

        paths = self.paths()
        try:
            return read_labels_of(paths, states, frames, period)
        except DataError as error:
            lists = self.mlf_list if self.mlf is None else None
            raise (error.with_note(f"listed in {lists[0]}") if lists and lists != paths else error) from None


class FeatureDeserializerParameters(OneStreamParameters):
    """HTKFeatureDeserializer: one stream of features."""

    input = Parameter(
        "input",
        sections_by_name("features", "cntkpy.readers.formats.htk.parameters:FeatureParameters"),
        help="One section for the stream, named after it.",
    )

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Zeros that are not added."""
        return idle_energy(self.input.inner())


class LabelDeserializerParameters(OneStreamParameters):
    """HTKMLFDeserializer: one stream of labels."""

    input = Parameter(
        "input",
        sections_by_name("labels", "cntkpy.readers.formats.htk.parameters:LabelParameters"),
        help="One section for the stream, named after it.",
    )


class LatticeParameters(Declared):
    """A section of sequence training, which is not supported."""

    denominator = Parameter("denLatTocFile", PATH, default=None, own=True, help="Not supported.")
    numerator = Parameter("numLatTocFile", PATH, default=None, own=True, help="Not supported.")
    lattices = Parameter("latticeTocFile", PATH, default=None, own=True, help="Not supported.")
    phones = Parameter("phoneFile", PATH, default=None, own=True, help="Not supported.")
    transitions = Parameter("transPFile", PATH, default=None, own=True, help="Not supported.")

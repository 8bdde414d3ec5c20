"""The parameters of HTKFeatureDeserializer and HTKMLFDeserializer, and the deserializers made from them."""

from __future__ import annotations

import logging
from typing import NoReturn

import numpy as np

from cntk_config.declare import BOOLEAN, PATH, SECTION, SIZE, TEXT, Declared, Parameter, Type
from cntk_config.diagnostics import printable
from cntk_config.parameters import ConfigParameters
from cntk_config.values import ConfigValue

from ..corpus import Corpus
from ..errors import DataError
from ..registry import DTYPES, Setting
from ..uci.labels import LabelMap
from .features import FeatureSource, HTKFeatures, without_duplicates
from .frames import cut_into_chunks, lengths_in_primary, primary_of, set_primary
from .labels import HTKLabels, check_classes, read_targets
from .mlf import Labels, read_labels, read_states
from .script import read_lines, read_script

log = logging.getLogger("cntkpy.readers")
SHOWN = 5


def _window(value: ConfigValue) -> tuple[int, int]:
    sizes = list(value.as_array().convert(ConfigValue.as_size))
    if len(sizes) == 1 and sizes[0] % 2 == 0:
        raise value.error(
            "BadValue", f"a context window of {sizes[0]} frames is not symmetrical",
            "write an odd number, or left:right, the numbers of frames before and after",
        )  # fmt: skip
    if len(sizes) not in (1, 2) or sum(sizes) > 10000:
        raise value.error("BadValue", f"'{value}' is not a context window", "write an odd number, or left:right")
    return (sizes[0] // 2, sizes[0] // 2) if len(sizes) == 1 else (sizes[0], sizes[1])


def _paths(value: ConfigValue) -> list[str]:
    several = value.startswith("(") or ":" in value
    return [str(path) for path in value.as_array()] if several else [str(value)]


WINDOW = Type("odd number of frames | left:right", _window)
PATHS = Type("path | array of paths", _paths)


class FeatureParameters(Declared):
    """A stream of features: the frames of HTK files."""

    scp = Parameter("scpFile", PATHS, help="The script file: a line `name=archive[first,last]` per utterance.")
    dim = Parameter("dim", SIZE, help="Values of a frame; or, without contextWindow, with its neighbours.")
    window = Parameter(
        "contextWindow", WINDOW, default="1", help="Frames side by side: an odd number, or before:after."
    )  # fmt: skip
    kind = Parameter("type", TEXT, default="real", own=True, help="real; there is no other.")
    prefix = Parameter("prefixPathInSCP", TEXT, default="", help="Folder of the files that the script names.")
    expand = Parameter(
        "expandToUtterance", BOOLEAN, default="false", help="Utterances have one frame, repeated to full length."
    )
    energy = Parameter(
        "addEnergy", SIZE, default="0", help="Number of equal parts of a frame; a zero is added after each."
    )

    def source(self) -> FeatureSource:
        """The files."""
        if self.kind.lower() != "real":
            raise self.error("type", f"features are of type real, not '{self.kind}'")
        if not 0 < self.dim < 2**24:
            raise self.error("dim", f"{self.dim} is not a number of values", "write 1 or more")
        left, right = self.window
        script = read_script(self.scp, str(self.prefix))
        try:
            return FeatureSource(script, self.dim, left, right, energy=self.energy)
        except DataError as error:
            if "dim is" in str(error):  # the file and the configuration disagree: show where the latter says so
                raise self.error("dim", str(error), error.diagnostic.hint) from None
            raise


class LabelParameters(Declared):
    """A stream of labels: classes of frames, out of MLF files."""

    mlf = Parameter("mlfFile", PATHS, default=None, own=True, help="The label file, or several.")
    mlf_list = Parameter("mlfFileList", PATHS, default=None, help="Several label files, or a file that lists them.")
    states = Parameter("labelMappingFile", PATH, default="", help="Names of states, one per line in order of classes.")
    label_dim = Parameter("labelDim", SIZE, default=None, help="Number of classes.")
    dim = Parameter("dim", SIZE, default=None, help="Number of classes, if labelDim is absent.")
    label_type = Parameter("labelType", TEXT, default=None, help="category; there is no other.")
    kind = Parameter("type", TEXT, default="category", own=True, help="The same as labelType.")
    targets = Parameter("labelToTargetMappingFile", PATH, default="", help="A row of zeros and ones for each state.")
    target_dim = Parameter("targetDim", SIZE, default=None, help="Length of these rows.")
    boundaries = Parameter(
        "phoneBoundaries", BOOLEAN, default="false", help="The first frame of a range has a 2 in place of the 1."
    )
    cache_index = Parameter("cacheIndex", BOOLEAN, default="false", help="Accepted; label files are read at once.")
    chunk_size = Parameter("chunkSizeInBytes", SIZE, default=None, help="Accepted; label files are read at once.")

    def paths(self) -> list[str]:
        """The label files."""
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

    def classes(self) -> int:
        """The number of classes."""
        dim = self.label_dim if self.label_dim is not None else self.dim
        if dim is None:
            raise self.error("labelDim", "the number of classes is missing", "add labelDim=...", "MissingParameter")
        if not 0 < dim <= 65535:
            raise self.error("labelDim", f"{dim} is not a number of classes", "write 1 to 65535")
        return dim

    def check_type(self) -> None:
        """Labels are categories."""
        word = self.label_type if self.label_type is not None else self.kind
        if word.lower() != "category":
            raise self.error(
                "labelType" if self.label_type is not None else "type", f"labels of type '{word}' are not supported",
                "write category; real targets are one more section of features",
            )  # fmt: skip

    def state_list(self) -> LabelMap | None:
        """The states, if the labels name them."""
        return read_states(str(self.states)) if self.states else None

    def labels(self, states: LabelMap | None, wanted: set[str] | None) -> Labels:
        """The labels of the wanted utterances (None: all)."""
        return read_labels(self.paths(), states, wanted.__contains__ if wanted is not None else None)

    def target_table(self, states: LabelMap | None) -> np.ndarray | None:
        """The vectors that stand for classes, if there are such."""
        if not self.targets:
            return None
        if self.target_dim is None:
            raise self.error(
                "targetDim", "the length of the targets is missing", "add targetDim=...", "MissingParameter"
            )
        if states is None:
            raise self.error("labelToTargetMappingFile", "needs a state list", "add labelMappingFile=...")
        return read_targets(str(self.targets), states, self.target_dim)


class DeserializerParameters(Declared):
    """HTKFeatureDeserializer and HTKMLFDeserializer: one stream."""

    input = Parameter("input", SECTION, help="One section for the stream, named after it.")

    def stream(self) -> tuple[str, ConfigParameters]:
        """Name and section of the stream."""
        names = self.input.names()
        if len(names) != 1:
            what = ", ".join(names) or "none"
            raise self.error(
                "input", f"this deserializer has one stream, not {len(names)} ({what})", "use one for each"
            )
        return names[0], self.input.section(names[0])


def _corpus(setting: Setting) -> Corpus:
    """The numbers of keys. Utterances have names, so keys are texts whatever else the reader would take them for."""
    corpus = setting.corpus or Corpus(numeric=False)
    corpus.numeric = False
    return corpus


def create_features(section: ConfigParameters, setting: Setting) -> HTKFeatures:
    """HTKFeatureDeserializer."""
    return features_of(*DeserializerParameters(section).stream(), setting)


def features_of(name: str, inside: ConfigParameters, setting: Setting) -> HTKFeatures:
    """The features that a section describes, as a deserializer."""
    p, corpus = FeatureParameters(inside), _corpus(setting)
    if p.expand and setting.primary:
        raise p.error(
            "expandToUtterance", "the first deserializer decides how long utterances are", "put it further down"
        )
    source = p.source()
    dropped = without_duplicates(source)
    if dropped:
        log.warning("%s: %d lines with a name that is not unique are left out.", source.script.paths[0], dropped)
    if not len(source.script):
        raise DataError("HTKDeserializer: No utterances to process.", path=source.script.paths[0])
    repeated = _repeated(p, source, corpus, setting) if p.expand else None
    lengths = source.lengths if repeated is None else repeated
    made = HTKFeatures(
        name, source, cut_into_chunks(lengths), corpus, dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode, repeated=repeated,
    )  # fmt: skip
    if setting.primary:
        set_primary(corpus, made)
    return made


def _repeated(p: FeatureParameters, source: FeatureSource, corpus: Corpus, setting: Setting) -> np.ndarray:
    """How often the only frame of each utterance is repeated; utterances unknown to the first deserializer go."""
    longer = np.flatnonzero(source.lengths != 1)
    if len(longer):
        place = source.script.place(int(longer[0]))
        raise p.error("expandToUtterance", f"utterances must have a single frame, but see {place}")
    if source.left or source.right:
        raise p.error("expandToUtterance", "cannot have a context window")
    lengths = lengths_in_primary(corpus, corpus.numbers(source.script.keys))
    if lengths is None:
        raise p.error("expandToUtterance", "needs an HTKFeatureDeserializer as the first deserializer")
    kept = np.flatnonzero(lengths >= 0)
    if not len(kept):
        raise DataError(
            f"{source.script.paths[0]} has none of the utterances of the first deserializer.",
            path=source.script.paths[0],
        )
    source.keep(kept)
    return lengths[kept]


def create_labels(section: ConfigParameters, setting: Setting) -> HTKLabels:
    """HTKMLFDeserializer."""
    if setting.primary:
        raise section.error(
            "type", "Mlf deserializer does not support primary mode, it cannot control chunking.",
            "put the features first",
        )  # fmt: skip
    return labels_of(*DeserializerParameters(section).stream(), setting)


def labels_of(name: str, inside: ConfigParameters, setting: Setting) -> HTKLabels:
    """The labels that a section describes, as a deserializer."""
    p, corpus = LabelParameters(inside), _corpus(setting)
    if p.boundaries and setting.frame_mode:
        raise p.error("phoneBoundaries", "not in frame mode")
    primary = primary_of(corpus)
    wanted = set(primary.source.script.keys) if isinstance(primary, HTKFeatures) else None
    states, dim = p.state_list(), p.classes()
    p.check_type()
    labels = p.labels(states, wanted)
    check_classes(labels, dim, name)
    chosen = _of_right_length(labels, corpus, p.paths()[0])
    return HTKLabels(
        name, labels, chosen, dim, cut_into_chunks(labels.lengths[chosen]), corpus, dtype=DTYPES[setting.precision],
        frame_mode=setting.frame_mode, targets=p.target_table(states), boundaries=p.boundaries,
    )  # fmt: skip


def _of_right_length(labels: Labels, corpus: Corpus, path: str) -> np.ndarray:
    """Utterances with labels for as many frames as the features have; the others are left out with a warning."""
    lengths = lengths_in_primary(corpus, corpus.numbers(labels.keys)) if len(labels) else np.empty(0)
    chosen = np.arange(len(labels))
    if lengths is not None:
        wrong = np.flatnonzero((lengths >= 0) & (lengths != labels.lengths) & labels.contiguous)
        if len(wrong):
            names = ", ".join(labels.keys[i] for i in wrong[:SHOWN].tolist())
            log.warning(
                "%d utterances have labels for another number of frames and are left out: %s",
                len(wrong),
                printable(names),
            )
        chosen = np.setdiff1d(chosen, wrong)
    if not len(chosen):
        raise DataError(
            f"{path} has labels for none of the utterances of the features.", path=path,
            hint="utterances are joined by their names without extension; in an MLF a leading */ is dropped",
        )  # fmt: skip
    return chosen


def refuse_lattices(section: ConfigParameters, setting: object = None) -> NoReturn:
    """LatticeDeserializer."""
    raise section("type").error(
        "NotSupported", "lattices (sequence training) are not supported",
        "train with frame labels: HTKMLFDeserializer and a cross-entropy criterion",
    )  # fmt: skip


def refuse_binary_labels(section: ConfigParameters, setting: object = None) -> NoReturn:
    """HTKMLFBinaryDeserializer."""
    raise section("type").error(
        "NotSupported", "binary label files are not supported: their format is not documented",
        "use HTKMLFDeserializer with an MLF",
    )  # fmt: skip

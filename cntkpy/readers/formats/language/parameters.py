"""The parameters of SequenceReader, LUSequenceReader and of the writers beside them."""

from __future__ import annotations

from collections.abc import Iterator

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.declare import (
    BOOLEAN,
    COUNT,
    INTEGER,
    PATH,
    SIZE,
    TEXT,
    Declared,
    Parameter,
    Part,
    array,
    choice,
)
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.formats.uci.parameters import Sections
from cntkpy.readers.formats.uci.parameters import classify as classify_by_labels
from cntkpy.readers.parameters import RANDOMIZE, misspelt_mark

FEATURES = "features"
"""Default name of the stream of words."""
TRAINING = ("train", "trainrnn", "adapt")
_NO_CACHE = "this reader keeps no cache."


class NoCacheParameters(Declared):
    """Parameters of a binary cache in old configurations, in the section of the reader and in those inside."""

    cache_file = Parameter("wfile", PATH, default=None, own=True, ignored=_NO_CACHE)
    cache_size = Parameter("wsize", SIZE, default=None, own=True, ignored=_NO_CACHE)
    cache_records = Parameter("wrecords", COUNT, default=None, own=True, ignored=_NO_CACHE)
    cache_window = Parameter("windowSize", SIZE, default=None, own=True, ignored=_NO_CACHE)
    cache_section = Parameter("sectionType", TEXT, default=None, own=True, ignored=_NO_CACHE)
    cache_element = Parameter("elementSize", COUNT, default=None, own=True, ignored=_NO_CACHE)
    cache_writer = Parameter("writerType", TEXT, default=None, own=True, ignored=_NO_CACHE)
    cache_mapping = Parameter("mapping", TEXT, default=None, own=True, ignored=_NO_CACHE)
    cache_category = Parameter("category", TEXT, default=None, own=True, ignored=_NO_CACHE)


class SequenceReaderParameters(NoCacheParameters):
    """SequenceReader: a sentence a line; every word is to predict the next one."""

    file = Parameter("file", PATH, help="The corpus: a sentence a line, with the symbols for begin and end.")
    word_classes = Parameter("wordclass", PATH, default="", help="Lines `number count word class`.")
    unk = Parameter("unk", TEXT, default="<unk>", help="The word that stands for words that are not listed.")
    slots = Parameter(
        "nbruttsineachrecurrentiter",
        COUNT,
        default="1",
        help="Sentences side by side, at most; 0: as many as minibatchSize words hold.",
    )
    block = Parameter("cacheBlockSize", COUNT, default="50000", help="Words of sentences that are shuffled together.")
    randomize = Parameter(
        "randomize", RANDOMIZE, default="auto", help="none: the order of the file, but not in training."
    )
    shuffle = Parameter(
        "shuffle", BOOLEAN, default=None, help="Whether to shuffle; wins over randomize, in training too."
    )
    mode = Parameter(
        "mode",
        choice("class", "softmax", "nce", ignore_case=True),
        default="class",
        help="What a label is: word and class, the word, or the word and noise words.",
    )
    noise = Parameter("noise_number", COUNT, default="0", help="mode=nce: noise words for every word.")
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="1: logs what was read.")
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on a background thread.")
    action = Parameter(
        "action",
        array(TEXT),
        default="()",
        help="That of the command: a training always shuffles, `write` reads one sentence after the other.",
    )

    def check_together(self) -> None:
        """Errors in what does not go together."""
        names = label_sections(self.config)
        for name in names if not self.word_classes else ():
            p = SequenceLabelParameters(self.config.section(name))
            if p.label_type == "category" and not p.mapping:
                message = "there is neither a label mapping file nor a word class file"
                hint = "give wordclass in the reader's section; action=writeWordAndClass makes both files"
                raise p.error("labelMappingFile", message, hint, "MissingParameter")

    def without_effect(self) -> Iterator[tuple[str, str]]:
        """Yield the order of the file is not that of a training, as in CNTK; in a validation no order matters."""
        validates = name_of(self.config).lower() == "cvreader"
        if self.shuffle is None and not self.randomize and self.trains() and not validates:
            yield "randomize", "a training shuffles whatever it says; shuffle=false keeps the order of the file"

    def trains(self) -> bool:
        """Return whether the reader belongs to a command that trains."""
        return is_for(self, *TRAINING)

    def named_parts(self) -> Iterator[Part]:
        """Return the sections of features and labels."""
        return _parts(self.config, SequenceFeatureParameters, SequenceLabelParameters)


class SequenceFeatureParameters(NoCacheParameters):
    """The section of the features, which names the stream of words."""

    dim = Parameter("dim", COUNT, default="0", own=True, help="Any number; the size of the vocabulary counts.")
    mode = SequenceReaderParameters.mode
    noise = SequenceReaderParameters.noise


class SequenceLabelParameters(NoCacheParameters):
    """A section of labels: the words, or what they are labelled with."""

    label_type = Parameter(
        "labelType",
        choice("category", "nextWord", "none", ignore_case=True),
        default="category",
        help="category: words by a list of their own; nextWord: by the list of the input; none: no labels.",
    )
    dim = Parameter("dim", COUNT, default=None, own=True, ignored="labelDim and the lists count.")
    label_dim = Parameter("labelDim", COUNT, default="0", help="Size of the vocabulary; 0: that of the list.")
    mapping = Parameter("labelMappingFile", PATH, default=None, help="A word a line; without the file, wordclass.")
    begin = Parameter("beginSequence", TEXT, default="", ignored="the corpus holds the symbol itself.")
    end = Parameter("endSequence", TEXT, default="", help="Of the input: the word that ends a sentence, in any case.")

    def sample_size(self) -> int | None:
        """Return the values of a label, which `mode` says, if this is the section of what words are labelled with."""
        reader = self.config.parent
        if reader is None or self.label_type == "none":
            return None
        if len(classify(reader).features) > 1 or label_sections(reader)[1] != name_of(self.config):
            return None
        p = SequenceFeatureParameters(feature_section(reader))
        return label_size(p.mode, p.noise)


def is_for(p: SequenceReaderParameters | LUSequenceReaderParameters, *names: str) -> bool:
    """Return whether the reader belongs to a command with one of these actions."""
    try:
        return any(name.lower() in names for name in p.action)
    except ConfigError:
        return False


def name_of(section: ConfigParameters) -> str:
    """Return the own name of a section: that of its stream."""
    return section.path.rpartition(":")[2]


def label_size(mode: str, noise: int) -> int:
    """Return the values of a label: class: word, class, first and last + 1 word of it; nce: words, each with its
    chance.
    """
    return {"class": 4, "softmax": 1, "nce": 2 * (noise + 1)}[mode]


class LUSequenceReaderParameters(NoCacheParameters):
    """LUSequenceReader: a word and its label a line, an empty line between sentences."""

    file = Parameter(
        "file", PATH, default=None, help="The corpus: lines `word label`, an empty line between sentences."
    )
    word_map = Parameter("wordmap", PATH, default="", help="Lines `word replacement`; words not listed become unknown.")
    unk = Parameter("unk", TEXT, default="<unk>", help="The word that stands for words that are not listed.")
    context = Parameter("wordContext", array(INTEGER), default="0", help="Words given at a step: offsets from its own.")
    slots = Parameter("nbruttsineachrecurrentiter", COUNT, default="1", help="Sentences side by side, at most.")
    randomize = Parameter(
        "randomize", RANDOMIZE, default="none", help="auto: shuffle the sentences; none: as in the file."
    )
    equal_length = Parameter(
        "equalLength", BOOLEAN, default="true", help="Only sentences of equal length side by side."
    )
    multi_pass = Parameter(
        "dataMultiPass", BOOLEAN, default="false", help="An epoch of given size starts over when the corpus ends."
    )
    ignore_begin = Parameter("ignoresentencebegintag", BOOLEAN, default="false", help="Not supported, as in CNTK.")
    input_label = Parameter("inputLabel", TEXT, default="", help="The section of the words; by the alphabet if absent.")
    output_label = Parameter("outputLabel", TEXT, default="", help="The section of the labels.")
    nodes = Parameter(
        "ioNodeNames", array(TEXT), default="()", help="Sections that are each a reader; read side by side."
    )
    trace_level = Parameter("traceLevel", INTEGER, default="0", help="1: logs what was read.")
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead on a background thread.")
    action = Parameter(
        "action", array(TEXT), default="()", help="That of the command: `write` reads one sentence after the other."
    )

    def check_together(self) -> None:
        """Errors in what does not go together."""
        if self.ignore_begin:
            raise self.error("ignoresentencebegintag", "leaving out the first word is not supported", "write false")
        if bool(self.input_label) != bool(self.output_label):
            missing = "outputLabel" if self.input_label else "inputLabel"
            raise self.error(
                missing, "inputLabel and outputLabel belong together", f"add {missing}", "MissingParameter"
            )
        if not self.context:
            raise self.error("wordContext", "no offset is given", "write wordContext=0")
        for name in self.nodes:
            if not self.config.exists(str(name)):
                raise self.error("ioNodeNames", f"there is no section '{name}'", None, "MissingParameter")
        if not self.nodes:
            if self.file is None:
                raise self.config.missing("file").with_note(f"file: {type(self).file.help}")
            label_sections(self.config, (str(self.input_label), str(self.output_label)))

    def named_parts(self) -> Iterator[Part]:
        """Yield the sections of features and labels, or those that are readers themselves."""
        names = [str(name) for name in self.nodes]
        if not names:
            yield from _parts(self.config, LUFeatureParameters, LULabelParameters)
        for name in names:
            yield Part("reader", self.config.section(name), (LUSideReaderParameters,))


class LUSideReaderParameters(LUSequenceReaderParameters):
    """A section of `ioNodeNames`: a reader of one corpus, though the name is found further out."""

    nodes = Parameter("ioNodeNames", array(TEXT), default="()", own=True, help="Sections of this one, as there.")


class LUFeatureParameters(NoCacheParameters):
    """The section of the features, which names the stream of words."""

    dim = Parameter("dim", COUNT, default="0", own=True, help="Any number; the size of the vocabulary counts.")


class LULabelParameters(NoCacheParameters):
    """A section of labels: the words, or what they are labelled with."""

    token = Parameter("token", PATH, help="The list of words, one a line.")
    label_type = Parameter(
        "labelType", choice("category", ignore_case=True), default="category", help="Kind of labels."
    )
    dim = Parameter("dim", COUNT, default=None, own=True, ignored="labelDim and the lists count.")
    label_dim = Parameter("labelDim", COUNT, default="0", ignored="the length of the list counts.")
    mapping = Parameter("labelMappingFile", PATH, default=None, ignored="token counts.")
    mode = Parameter(
        "mode",
        choice("plain", "class", ignore_case=True),
        default="plain",
        own=True,
        help="class: the list has lines `word class`, a label is word, class, first and last + 1 word of the class.",
    )
    begin = Parameter("beginSequence", TEXT, default="", ignored="the corpus holds the symbol itself.")
    end = Parameter("endSequence", TEXT, default="", help="A line with this word, or label, ends a sentence.")
    use_map = Parameter("useWordMap", BOOLEAN, default="false", help="Replace words as wordmap says.")


def classify(section: ConfigParameters) -> Sections:
    """Which sections are features and labels: a section with a list of words is one of labels, too."""
    result = classify_by_labels(section)
    listed = [
        name
        for name, inside in section.inner()
        if LULabelParameters.token.stands_in(inside) and name not in result.labels
    ]
    labels = sorted([*result.labels, *listed], key=str.lower)
    return Sections([name for name in result.features if name not in listed], labels)


def _parts(section: ConfigParameters, features: type[Declared], labels: type[Declared]) -> Iterator[Part]:
    sections = classify(section)
    for name in sections.labels:
        yield Part("labels", section.section(name), (labels,))
    for name in sections.features:
        yield Part("features", section.section(name), (features,))
    if not sections.features:
        yield Part("features", feature_section(section), (features,))


class SequenceWriterParameters(Declared):
    """LUSequenceWriter, LMSequenceWriter: a section for every node, named like the node."""

    def named_parts(self) -> Iterator[Part]:
        """Yield the sections of nodes."""
        for _, inside in self.config.inner():
            yield Part("node", inside, (SequenceOutputParameters,))


class SequenceOutputParameters(Declared):
    """A node whose likeliest words are written."""

    file = Parameter("file", PATH, own=True, help="Where the words go, a sentence a line.")
    token = Parameter("token", PATH, help="The words: one a line, for LMSequenceWriter a word class file.")
    best = Parameter("nbest", COUNT, default="1", help="Words for every step, the likeliest first.")


def feature_section(section: ConfigParameters) -> ConfigParameters:
    """Return the section of features, whose name is that of the stream of words.

    It may be left out, as in CNTK's manual, for it says nothing but that name: then the stream is called `features`.
    """
    sections, mark = classify(section), SequenceFeatureParameters.dim.name
    if sections.features:
        return section.section(sections.features[0])
    message = "the reader has no section of features"
    if (mistake := misspelt_mark(section, message, (mark,))) is not None:
        raise mistake
    if FEATURES in map(str.lower, sections.labels):
        raise section.error("", f"{message}, and '{FEATURES}' is one of labels", f"add words=[{mark}=0]", "Conflict")
    absent = ConfigParameters(path=f"{section.path}:{FEATURES}", parent=section)
    absent.span = section.span
    return absent


def label_sections(section: ConfigParameters, names: tuple[str, str] = ("", "")) -> tuple[str, str]:
    """Names of the sections of input and output labels: as named, or by alphabet, but `...In` before the other one."""
    if all(names):
        for name in names:
            if section.own(name) is None:
                raise section.error("", f"there is no section of labels named '{name}'", None, "MissingParameter")
        return names
    labels = classify(section).labels
    if len(labels) != 2:
        raise section.error(
            "",
            f"the reader needs two sections of labels, one for the words and one for what they are labelled with; "
            f"it has {len(labels)}{': ' if labels else ''}{', '.join(labels)}",
            "add labelIn=[...] and labels=[...], each with labelType and labelDim",
            "MissingParameter",
        )
    first, second = labels
    if second.lower().endswith("in") and not first.lower().endswith("in"):
        first, second = second, first
    return first, second

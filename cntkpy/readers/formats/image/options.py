"""The parameters of image deserializers and of the old ImageReader, and what is made from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

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
    Type,
    choice,
    sections_by_name,
)
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue
from cntkpy.readers.entries import TRANSFORM, find_entry
from cntkpy.readers.parameters import RANDOMIZE, check_precision

from .parameters import (
    ColorParameters,
    CropParameters,
    IntensityParameters,
    MeanParameters,
    ScaleParameters,
    TransformTypeParameters,
)

if TYPE_CHECKING:
    from cntkpy.readers.reader import Reader
    from cntkpy.readers.registry import Setting

    from .deserializer import Listing, Pictures

log = logging.getLogger("cntkpy.readers")
SECTION_LIST = Type("sections", ConfigValue.as_sections)
LAYOUTS = ("nchw", "cudnn", "nhwc", "legacy")
PLANES = LAYOUTS[:2]


def transform_parts(sections: Sequence[ConfigParameters]) -> Iterator[Part]:
    """Yield the sections of transforms, and what each declares."""
    for section in sections:
        try:
            entry = find_entry(TRANSFORM, TransformTypeParameters(section).type)
        except ConfigError:
            entry = None
        kind = entry.declared() if entry else None
        declared = (kind,) if kind else ()
        yield Part("transform", section, (*declared, TransformTypeParameters))


def scaled_size(sections: Sequence[ConfigParameters], size: int | None) -> int | None:
    """Values of a sample after the last Scale; `size` without one."""
    for section in sections:
        if TransformTypeParameters(section).type == "Scale":
            size = ScaleParameters(section).sample_size()
    return size


class StreamParameters(Declared):
    """The pictures (with `transforms`) or the labels (with `labelDim`) of a deserializer."""

    transforms = Parameter(
        "transforms", SECTION_LIST, default=None, own=True, help="Sections with `type`, applied in order; may be empty."
    )
    label_dim = Parameter("labelDim", COUNT, default=None, own=True, help="Number of classes, for labels.")

    def is_left_out(self) -> bool:
        """Neither pictures nor labels."""
        return self.transforms is None and self.label_dim is None

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Yield a section without its mark."""
        if self.is_left_out():
            hint = "write labelDim=10 (the number of classes) for labels, transforms=([type=...]) for pictures"
            yield "", "makes no stream: it has neither labelDim nor transforms", hint

    def named_parts(self) -> Iterator[Part]:
        """Return the transforms."""
        return transform_parts(self.transforms or ())

    def sample_size(self) -> int | None:
        """Values of a sample; None if only the pictures says."""
        return scaled_size(self.transforms or (), self.label_dim)


class ImageParameters(Declared):
    """ImageDeserializer: pictures that a map file lists, and their classes."""

    file = Parameter("file", PATH, help="The map file: lines path TAB label, or key TAB path TAB label.")
    input = Parameter(
        "input",
        sections_by_name("stream", "cntkpy.readers.formats.image.options:StreamParameters"),
        help="One section with transforms, for the pictures, and one with labelDim, if labels are wanted.",
    )
    grayscale = Parameter("grayscale", BOOLEAN, default="false", help="Read pictures with one channel.")
    views = Parameter("multiViewCrop", BOOLEAN, default="false", help="Every picture ten times; see cropType.")
    verbosity = Parameter("verbosity", INTEGER, default="0", ignored="warnings are always given.")
    trace_level = Parameter("traceLevel", TEXT, default=None, ignored="warnings are always given.")

    def check_together(self) -> None:
        """There is one section of pictures."""
        self.streams()

    def streams(self) -> tuple[str, StreamParameters, tuple[str, int] | None]:
        """Name and section of the pictures; name and number of classes of the labels."""
        streams = [(name, StreamParameters(section)) for name, section in self.input.inner()]
        images = [(name, p) for name, p in streams if p.transforms is not None]
        labels = [(name, p) for name, p in streams if p.transforms is None and p.label_dim is not None]
        if len(images) != 1 or len(labels) > 1:
            raise self.error(
                "input",
                "Please specify a single feature and label stream. "
                f"'{len(images)}' features , '{len(labels)}' labels found.",
                "write input=[ x=[transforms=([type=Scale ; ...]:[type=Transpose])] ; y=[labelDim=10] ]",
            )
        return *images[0], (labels[0][0], _classes(labels[0][1])) if labels else None


class Base64Parameters(ImageParameters):
    """Base64ImageDeserializer: pictures as base64 in a text file, and their classes."""

    file = Parameter("file", PATH, help="The file: lines label TAB base64, or key TAB label TAB base64.")
    chunk_size = Parameter(
        "chunkSizeInBytes", SIZE, default="33554432", minimum=1, help="Size of the chunks for randomization."
    )
    cache_index = Parameter("cacheIndex", BOOLEAN, default="false", help="Keep the index next to the file.")


def _classes(p: Any) -> int:
    if not 0 < p.label_dim < 2**31:
        raise p.error("labelDim", f"{p.label_dim} is not a number of classes", "write 1 or more")
    return p.label_dim


def create_images(section: ConfigParameters, setting: Setting, *, until_mean: bool = False) -> Pictures:
    """ImageDeserializer. until_mean: without the transforms from Mean on."""
    from .map_file import MapFile

    p = ImageParameters(section)
    return _pictures(
        p,
        setting,
        until_mean,
        partial(MapFile, str(p.file), primary=setting.primary),
    )


def create_base64_images(section: ConfigParameters, setting: Setting, *, until_mean: bool = False) -> Pictures:
    """Base64ImageDeserializer. until_mean: without the transforms from Mean on."""
    from .base64_file import Base64File

    p = Base64Parameters(section)
    if p.views:
        raise p.error("multiViewCrop", "is not there for pictures in base64", "use an ImageDeserializer")
    return _pictures(
        p,
        setting,
        until_mean,
        partial(Base64File, str(p.file), chunk_size=p.chunk_size, cache=p.cache_index, primary=setting.primary),
    )


def _pictures(p: ImageParameters, setting: Setting, until_mean: bool, listing: Callable[..., Listing]) -> Pictures:
    import numpy as np

    from cntkpy.readers.common.corpus import Corpus
    from cntkpy.readers.formats.image.transforms.chain import make_chain
    from cntkpy.readers.streams import DTYPES

    from .base64_file import Base64File
    from .deserializer import PictureFormat, Pictures

    name, stream, label = p.streams()
    dtype = np.dtype(DTYPES[check_precision(p.config, setting.precision)])
    chain = make_chain(stream.transforms or (), dtype, 1 if p.grayscale else 3, until_mean=until_mean)
    crops = (transform for transform in stream.transforms or () if TransformTypeParameters(transform).type == "Crop")
    if not p.views and any(CropParameters(crop).crop_type == "multiview10" for crop in crops):
        log.warning(
            "cropType=multiview10 takes the upper left corner of each picture only; for all ten views write "
            "multiViewCrop=true beside type=ImageDeserializer."
        )
    corpus = setting.corpus or Corpus()
    pictures = listing(label[1] if label else None, corpus)
    return Pictures(
        name,
        chain,
        pictures,
        corpus,
        PictureFormat(dtype, p.grayscale, p.views),
        label=label,
        first=pictures.first if isinstance(pictures, Base64File) else None,
    )


class OldFeatureParameters(CropParameters, ScaleParameters, ColorParameters, IntensityParameters, MeanParameters):
    """The pictures of an ImageReader: the options of all transforms."""

    layout = Parameter(
        "mbFormat",
        choice(*LAYOUTS, ignore_case=True),
        default="nchw",
        help="nchw: one channel after the other; nhwc, legacy: one pixel after the other.",
    )
    grayscale = Parameter("grayscale", BOOLEAN, default=None, help="Read one channel; if absent, for channels=1.")

    def check_together(self) -> None:
        """Run the checks of every transform."""
        for kind in OldFeatureParameters.__bases__:
            kind.check_together(self)  # type: ignore[attr-defined]

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Return a shift of colours that lacks a part; without the others nothing is asked for."""
        return IntensityParameters.idle(self)


class OldLabelParameters(Declared):
    """The labels of an ImageReader."""

    label_dim = Parameter("labelDim", COUNT, own=True, help="Number of classes.")

    def sample_size(self) -> int:
        """Values of a sample."""
        return self.label_dim


class ImageReaderParameters(Declared):
    """ImageReader: the older form, one section for pictures (with `width`) and one for labels (with `labelDim`)."""

    file = ImageParameters.file
    randomize = Parameter("randomize", RANDOMIZE, default="auto", help="Shuffle the pictures in each sweep, or none.")
    seed = Parameter("randomizationSeed", SIZE, default="0", help="Added to the number of the sweep.")
    max_errors = Parameter("maxErrors", SIZE, default="0", own=True, help="Pictures that cannot be read to leave out.")
    threads = Parameter("numCPUThreads", COUNT, default="0", help="Threads that decode; 0: as many as there are cores.")
    prefetch = Parameter("prefetch", BOOLEAN, default="true", help="Read ahead.")
    keep_in_memory = Parameter("keepDataInMemory", BOOLEAN, default="false", help="Read every file only once.")
    verbosity = Parameter("verbosity", INTEGER, default="0", ignored="warnings are always given.")

    def check_together(self) -> None:
        """There is a section of pictures."""
        self.streams()

    def named_parts(self) -> Iterator[Part]:
        """Yield the sections of pictures and labels."""
        for role, (_, section), declared in self._sections():
            yield Part(role, section, (declared,))

    def _sections(self) -> Iterator[tuple[str, tuple[str, ConfigParameters], type[Declared]]]:
        for name, section in self.config.inner():
            if ScaleParameters.to_width.stands_in(section):
                yield "features", (name, section), OldFeatureParameters
            elif OldLabelParameters.label_dim.stands_in(section):
                yield "labels", (name, section), OldLabelParameters

    def streams(self) -> tuple[str, OldFeatureParameters, tuple[str, int] | None]:
        """Name and section of the pictures; name and number of classes of the labels."""
        sections = list(self._sections())
        images = [item for role, item, _ in sections if role == "features"]
        labels = [item for role, item, _ in sections if role == "labels"]
        if len(images) != 1 or len(labels) > 1:
            raise self.config.error(
                "",
                "ImageReader has one section with width, height and channels, and one with labelDim, not "
                f"{len(images)} and {len(labels)}",
                "write features=[width=32 ; height=32 ; channels=3] and labels=[labelDim=10]",
            )
        label = (labels[0][0], _classes(OldLabelParameters(labels[0][1]))) if labels else None
        return images[0][0], OldFeatureParameters(images[0][1]), label


def old_pictures(p: ImageReaderParameters, precision: str, *, until_mean: bool = False) -> Pictures:
    """Return the deserializer that the old form stands for."""
    import numpy as np

    from cntkpy.readers.common.corpus import Corpus
    from cntkpy.readers.formats.image.transforms.chain import old_chain
    from cntkpy.readers.streams import DTYPES

    from .deserializer import PictureFormat, Pictures
    from .map_file import MapFile

    name, features, label = p.streams()
    dtype = np.dtype(DTYPES[check_precision(p.config, precision)])
    gray = features.channels == 1 if features.grayscale is None else features.grayscale
    planes = features.layout in PLANES
    chain = old_chain(features.config, dtype, 1 if gray else 3, planes=planes, until_mean=until_mean)
    corpus = Corpus()
    return Pictures(
        name,
        chain,
        MapFile(str(p.file), label[1] if label else None, corpus),
        corpus,
        PictureFormat(dtype, gray, features.crop_type == "multiview10"),
        label=label,
    )


def create_image_reader(section: ConfigParameters, precision: str) -> Reader:
    """ImageReader."""
    from cntkpy.readers.common.threads import threads_for
    from cntkpy.readers.pipeline.randomize import BlockRandomizer, NoRandomizer
    from cntkpy.readers.pipeline.source import SourceOptions
    from cntkpy.readers.reader import Reader

    from .source import PictureSource

    p = ImageReaderParameters(section)
    pictures = old_pictures(p, precision)
    timeline = BlockRandomizer(pictures.table, 1, seed=p.seed) if p.randomize else NoRandomizer(pictures.table)
    options = SourceOptions(
        frame_mode=True,
        keep_in_memory=p.keep_in_memory,
        prefetch=p.prefetch,
        threads=p.threads or threads_for(True),
        max_errors=p.max_errors,
    )
    return Reader(PictureSource(pictures, timeline, options))

"""Readers and deserializers by name: built-in ones, those of installed packages, those of a Python module.

A reader is `f(section, precision) -> Reader`, a deserializer `f(section, setting) -> Deserializer`. Packages offer them
as entry points `cntkpy.readers` and `cntkpy.deserializers`; `module="my.module"` in the section names a module that has
an attribute of the type's name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cntk_config.base.diagnostics import nearest
from cntk_config.parameters import ConfigParameters, ConfigValue
from readers.common.user_code import place_of

from .parameters import DeserializerParameters, ReaderParameters

if TYPE_CHECKING:
    from readers.common.corpus import Corpus

READERS = {
    "CNTKTextFormatReader": "readers.formats.text.options:create_text_reader",
    "CompositeDataReader": "readers.pipeline.composite:create_composite_reader",
    "HTKMLFReader": "readers.formats.htk.reader:create_htk_reader",
    "HTKDeserializers": "readers.formats.htk.reader:create_new_htk_reader",
    "UCIFastReader": "readers.formats.uci.options:create_uci_reader",
    "ImageReader": "readers.formats.image.options:create_image_reader",
    "BinaryReader": "readers.formats.binary.reader:create_binary_reader",
    "SequenceReader": "readers.formats.language.sentences:create_sequence_reader",
    "LMSequenceReader": "readers.formats.language.sentences:create_sequence_reader",
    "BatchSequenceReader": "readers.formats.language.sentences:create_sequence_reader",
    "LUSequenceReader": "readers.formats.language.columns:create_lu_sequence_reader",
    "BatchLUSequenceReader": "readers.formats.language.columns:create_lu_sequence_reader",
    "MultiIOBatchLUSequenceReader": "readers.formats.language.columns:create_lu_sequence_reader",
    "UserMinibatchSource": "readers.data_api.source_reader:create_user_reader",
}
DESERIALIZERS = {
    "CNTKTextFormatDeserializer": "readers.formats.text.options:create_deserializer",
    "CNTKBinaryFormatDeserializer": "readers.formats.cbf.deserializer:create_deserializer",
    "HTKFeatureDeserializer": "readers.formats.htk.options:create_features",
    "HTKMLFDeserializer": "readers.formats.htk.options:create_labels",
    "HTKMLFBinaryDeserializer": "readers.formats.htk.options:refuse_binary_labels",
    "LatticeDeserializer": "readers.formats.htk.options:refuse_lattices",
    "ImageDeserializer": "readers.formats.image.options:create_images",
    "Base64ImageDeserializer": "readers.formats.image.options:create_base64_images",
}
ORIGINAL_MODULES = ("cntktextformatreader", "cntkbinaryreader", "imagereader", "htkdeserializers")


@dataclass(frozen=True)
class Setting:
    """What a reader tells its deserializers: element type, whether they are first, frames, log level, keys, threads,
    errors to put up with."""

    precision: str = "float"
    primary: bool = True
    frame_mode: bool = False
    trace_level: str | None = None
    corpus: Corpus | None = None
    threads: int = 1
    max_errors: str | None = None


def _entry_points(group: str) -> dict[str, Callable[[], Any]]:
    from importlib import metadata  # it is slow to import

    return {point.name: point.load for point in metadata.entry_points(group=group)}


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def known_readers() -> list[str]:
    """Names of all readers."""
    return [*READERS, *_entry_points("cntkpy.readers")]


def known_deserializers() -> list[str]:
    """Names of all deserializers."""
    return [*DESERIALIZERS, *_entry_points("cntkpy.deserializers")]


def find_reader(section: ConfigParameters) -> Callable[[], Any]:
    """What loads the factory of the reader that a section asks for; nothing is imported yet.

    `deserializers` means the composite reader, else `readerType` decides; without it, text format.
    """
    if ReaderParameters.several.find(section):
        raise section.error(
            "readers", "several readers side by side are not supported",
            "join their data with deserializers=([type=...]:[type=...])", "NotSupported",
        )  # fmt: skip
    if ReaderParameters.deserializers.find(section):
        return lambda: _load(READERS["CompositeDataReader"])
    if not ReaderParameters.reader_type.find(section):
        return lambda: _load(READERS["CNTKTextFormatReader"])
    return find_factory(ReaderParameters.reader_type.read(section), section, READERS, "cntkpy.readers", "reader")


def find_installed_reader(section: ConfigParameters) -> Callable[[], Any] | None:
    """What loads the factory of the reader that a section asks for, if an installed package offers it."""
    return _entry_points("cntkpy.readers").get(str(ReaderParameters.reader_type.read(section)))


FIXED_SLOTS = {
    name.lower()
    for name in READERS
    if name not in ("CNTKTextFormatReader", "CompositeDataReader", "ImageReader", "UserMinibatchSource")
}
"""Readers that tell the trainer what `nbruttsineachrecurrentiter` says, whatever their minibatches are."""


def varying_slots(section: ConfigParameters) -> bool:
    """Whether the reader of a section tells the trainer the number of parallel sequences of its last minibatch."""
    if ReaderParameters.deserializers.find(section):
        return True
    return ReaderParameters.reader_type.read(section).lower() not in FIXED_SLOTS


def find_deserializer(section: ConfigParameters) -> Callable[[], Any]:
    """What loads the factory of a deserializer section."""
    load = find_factory(
        DeserializerParameters.type.read(section), section, DESERIALIZERS, "cntkpy.deserializers", "deserializer"
    )
    return lambda: _as_factory(load())


def _as_factory(found: Any) -> Any:
    """A class derived from UserDeserializer as a factory; its arguments are taken from the section."""
    if not (isinstance(found, type) and hasattr(found, "get_chunk")):
        return found
    from readers.data_api.from_section import construct
    from readers.data_api.user_deserializer import UserData

    from .streams import DTYPES

    return lambda section, setting: UserData(construct(found, section), DTYPES[setting.precision])


def find_factory(
    name: ConfigValue, section: ConfigParameters, built_in: dict[str, str], group: str, what: str
) -> Callable[[], Any]:
    """What loads the factory called `name`: a built-in one (any case), an entry point, or one of a module."""
    spelled = {known.lower(): path for known, path in built_in.items()}
    if name.lower() in spelled:
        path = spelled[name.lower()]
        return lambda: _load(path)
    installed = _entry_points(group)
    if str(name) in installed:
        return installed[str(name)]
    module = ReaderParameters.module.read(section)
    if module is not None and module.lower() not in ORIGINAL_MODULES:
        return lambda: load_from_module(module, name, what)
    known = [*built_in, *installed]
    meant = nearest(name, known)
    hint = f"did you mean '{meant}'?" if meant else f"known: {', '.join(known)}; or name a Python module with module="
    raise name.error(f"Unknown{what.capitalize()}", f"unknown {what} '{name}'", hint)


def load_from_module(module: ConfigValue, name: ConfigValue, what: str) -> Any:
    """An attribute of a Python module, both named in a section. The module may stand in the current directory."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        found = importlib.import_module(str(module))
    except Exception as error:  # whatever the module does when it is run
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        found = module.error("UnknownModule", f"the module '{module}' cannot be imported: {kind}{error}")
        for note in place_of(error):
            found = found.with_note(note)
        raise found from error
    if not hasattr(found, str(name)):
        meant = nearest(name, [n for n in vars(found) if not n.startswith("_")])
        hint = f"did you mean '{meant}'?" if meant else None
        message = f"the module '{module}' has no {what} '{name}'"
        raise name.error(f"Unknown{what.capitalize()}", message, hint)
    return getattr(found, str(name))

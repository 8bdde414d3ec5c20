"""Recognise the format of a data file, by its first bytes, else by its name."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import is_file, is_folder, is_url
from cntkpy.readers.formats.tables.parameters import PACKED_ENDINGS, CsvParameters

START_BYTES = 4096
READ = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"nib_ktnc": "CBF",
    b"\xe9\xac": "BinaryWriter",
    b"\x89PNG": "picture",
    b"\xff\xd8\xff": "picture",
    b"GIF8": "picture",
    b"II*\0": "picture",
    b"MM\0*": "picture",
    b"\x93NUMPY": "npy",
    b"#!MLF!#": "MLF",
}
"""Magic bytes of formats that are described."""
NOT_READ = {
    "SQLite": "write a table to CSV: sqlite3 -header -csv FILE 'SELECT * FROM t' > t.csv",
    "a spreadsheet": "save it as CSV, or in Python: pandas.read_excel(FILE).to_parquet('FILE.parquet')",
    "HDF5": "in Python: numpy.savez('FILE.npz', **{name: array[:] for name, array in h5py.File(FILE).items()})",
    "DuckDB": "write a table to Parquet: COPY t TO 't.parquet'",
    "ORC": "in Python: pyarrow.parquet.write_table(pyarrow.orc.read_table(FILE), 'FILE.parquet')",
    "Avro": "write it as Parquet, for instance by duckdb or Spark",
    "MATLAB": "in Python: numpy.savez('FILE.npz', **scipy.io.loadmat(FILE))",
    "Feather, version 1": "in Python: pyarrow.feather.write_feather(pyarrow.feather.read_table(FILE), 'NEW.arrow')",
    "PyTorch": "in Python: safetensors.torch.save_file(torch.load(FILE, weights_only=True), 'FILE.safetensors')",
    "pickle": "pickles run code when they are read: write .npz or Parquet in the program that made it",
    "TFRecord": "write it as Parquet or tar shards in the program that made it",
    "JSON": "in Python: pandas.read_json(FILE, lines=True).to_parquet('FILE.parquet')",
    "sound": "readers take features: HTK's HCopy, Kaldi's compute-mfcc-feats or librosa make them; docs/speech.md",
    "a zip archive": "unpack it; pictures in zip archives are read by ImageDeserializer: docs/images.md",
    "PDF": "data are tables, arrays, texts, pictures or features",
    "lz4": "unpack it with lz4 -d, or compress it with zstd or gzip, which are read as they are",
}
"""Formats that no reader takes, and what to do."""
_MAGIC = {
    b"SQLite format 3\0": "SQLite",
    b"\xd0\xcf\x11\xe0\xa1\xb1": "a spreadsheet",
    b"\x89HDF\r\n": "HDF5",
    b"ORC": "ORC",
    b"Obj\x01": "Avro",
    b"MATLAB 5.0": "MATLAB",
    b"FEA1": "Feather, version 1",
    b"fLaC": "sound",
    b"OggS": "sound",
    b"ID3": "sound",
    b"NIST_1A": "sound",
    b"%PDF": "PDF",
    b"\x04\x22M\x18": "lz4",
}
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")
UNPACKED = ("Parquet", "Arrow", "npy", "npz", "tensors", "model", "picture", "HTK features", "CBF", "BinaryWriter")
"""Formats that are not read from a compressed file."""
_NAMES = {
    (".tfrecord", ".tfrecords"): "TFRecord",
    (".json", ".jsonl", ".ndjson"): "JSON",
    (".bmp", ".webp", ".jp2", ".ppm"): "picture",
    (".mfc", ".mfcc", ".fea", ".fbank", ".plp", ".htk"): "HTK features",
    (".mlf",): "MLF",
    (".scp",): "script",
    (".ark",): "Kaldi",
    (".arrows",): "Arrow",
}
TAR = re.compile(r"\.(?:tar(?:\.\w+)?|tgz)", re.IGNORECASE)
TEXT_FORMAT = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:\d++\s*+)?\|[!-{}~]++[ \t]")
"""Pattern of the beginning of CNTK text format."""
KALDI = re.compile(rb"[^\s\0]{1,1000} (?:\0B(?:[FDC]M|[FD]V|CM[23]|\x04)| ?\[)")
"""Pattern of the beginning of an archive of Kaldi: a key, and a binary object or the matrix of a text."""
CONFIGURATIONS = (".cntk", ".cfg", ".config", ".bs", ".ndl", ".mel", ".toml", ".py")
COLUMNS, MAP, TEXT = "columns of numbers", "list of pictures", "text"
_NUMBERS = re.compile(rb"[ \t]*+[+-]?[0-9.]++[0-9.eE+-]*+(?:[ \t]++[+-]?[0-9.]++[0-9.eE+-]*+)++[ \t]*+")
_PICTURE_LINE = re.compile(rb"[^\r\n]*\.(?:png|jpe?g|bmp|gif|tiff?|webp|ppm)[\"@]?[ \t]+[0-9]+[ \t]*", re.IGNORECASE)
_BASE64_LINE = re.compile(rb"(?:[^\t\r\n]++\t)?[^\t\r\n]++\t(?:/9j/|iVBOR|R0lGOD|Qk)[A-Za-z0-9+/=]*+")


def form_of(path: str) -> str | None:
    """Return the format of a file of data, also if it is compressed or behind a URL; None for configurations.

    Raises:
        UserError: a compressed file is damaged, or a URL cannot be read.
    """
    if path.startswith(("ark:", "scp:", "ark,", "scp,")):
        return "Kaldi"
    if not is_url(path) and ("=" in path or not is_file(path)):
        return None
    name = _bare_name(path)
    if name.endswith(CONFIGURATIONS):
        return None
    start = first_bytes(path)
    by_magic = _by_magic(path, start)
    if by_magic is not None:
        return by_magic
    if start[257:262] == b"ustar" or TAR.search(Path(path).name):
        return "tar"
    if name.endswith(CsvParameters.endings):
        return MAP if _of_text(start) == MAP else "CSV"
    if name.endswith(".ark") and _is_htk(path, start):
        return "HTK features"
    by_name = next((form for endings, form in _NAMES.items() if name.endswith(endings)), None)
    if by_name is not None:
        return by_name
    return _of_binary(path, start) if b"\0" in start else _of_text(start)


def first_bytes(path: str) -> bytes:
    """Return the first bytes of a file, unpacked; nothing where it cannot be opened.

    Raises:
        UserError: a compressed file is damaged, or a URL cannot be read.
    """
    from cntkpy.readers.common.packed import data_bytes, raw_bytes

    try:
        file = raw_bytes(path)
        start = file.bytes(0, START_BYTES)
        file.close()
        if not start.startswith(_PACKED):
            return start
        with data_bytes(path).stream() as stream:
            return stream.read(START_BYTES)
    except OSError as error:
        if is_url(path):
            raise UserError("CannotRead", f"'{path}' cannot be read: {error.strerror or error}") from None
        return b""  # the error is reported where the file is read


def is_packed(path: str) -> bool:
    """Return whether a file is compressed in a format that readers of texts unpack."""
    from cntkpy.readers.common.packed import raw_bytes

    file = raw_bytes(path)
    try:
        return file.bytes(0, START_BYTES).startswith(_PACKED)
    finally:
        file.close()


def _bare_name(path: str) -> str:
    """Return a name in lower case, without the query of a URL and the suffix of a compressed file."""
    name = (path.partition("?")[0] if is_url(path) else path).lower()
    return next((name.removesuffix(ending) for ending in PACKED_ENDINGS if name.endswith(ending)), name)


def _by_magic(path: str, start: bytes) -> str | None:
    magic = next((form for known in (READ, _MAGIC) for magic, form in known.items() if start.startswith(magic)), None)
    if magic is not None:
        return magic
    if start.startswith(b"PK\3\4"):
        return _of_zip(path)
    if start[8:12] == b"DUCK":
        return "DuckDB"
    if start.startswith(b"RIFF"):
        return "sound" if start[8:12] == b"WAVE" else "picture" if start[8:12] == b"WEBP" else None
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "pickle"
    if start.startswith(b"\xff\xff\xff\xff"):
        return "Arrow"
    if start[8:9] == b"{" and b"\0" in start[:8] and len(start) > 8:
        return "tensors"
    if not is_url(path):
        from cntkpy.networks.files.recognise import is_model

        if is_model(path):
            return "model"
    return None


def _of_zip(path: str) -> str:
    import zipfile

    from cntkpy.cntk_config.base.files import open_input

    try:
        with open_input(path) as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return "a zip archive"
    if any(name.endswith(".npy") for name in names):
        return "npz"
    if any(name.startswith("xl/") or name == "mimetype" for name in names):
        return "a spreadsheet"
    return "PyTorch" if any(name.endswith("data.pkl") for name in names) else "a zip archive"


def _of_binary(path: str, start: bytes) -> str | None:
    """Return the format of a binary file without magic bytes."""
    if KALDI.match(start):
        return "Kaldi"
    return "HTK features" if _is_htk(path, start) else None


def _is_htk(path: str, start: bytes) -> bool:
    """Return whether a file has the size that a header of HTK at its start says."""
    if is_url(path) or len(start) < 12:
        return False
    size = Path(path).stat().st_size
    for order in "><":
        frames, _, frame_bytes, _ = struct.unpack(f"{order}iiHH", start[:12])
        if frames > 0 and frame_bytes > 0 and 12 + frames * frame_bytes == size:
            return True
    return False


def _of_text(start: bytes) -> str | None:
    if TEXT_FORMAT.match(start):
        return "CNTK text format"
    if KALDI.match(start):
        return "Kaldi"
    lines = [line for line in start.split(b"\n") if line.strip()]
    if len(start) == START_BYTES and len(lines) > 1:
        lines.pop()  # it may be cut
    lines = [line.rstrip(b"\r") for line in lines]
    if not lines:
        return None
    if all(map(_NUMBERS.fullmatch, lines)):
        return COLUMNS
    if all(map(_PICTURE_LINE.fullmatch, lines)) or all(map(_BASE64_LINE.match, lines)):
        return MAP
    return TEXT if b"=" not in start and b"include" not in start.lower() and b"\0" not in start else None


def refuse_unknown(path: str) -> None:
    """Refuse a binary file whose format is not known, an empty file, a folder.

    Raises:
        UserError: it is one.
    """
    if is_folder(path):
        hint = f"preview a file of it; a reader of tables takes the folder: file = {path}"
        raise UserError("UnknownFormat", f"'{path}' is a folder", hint=hint)
    if not is_url(path) and ("=" in path or not is_file(path)):
        return
    if _bare_name(path).endswith(CONFIGURATIONS):
        return
    start = first_bytes(path)
    if not start and Path(path).is_file():
        raise UserError("NoData", f"'{path}' is empty", hint="was it written?")
    if b"\0" not in start:
        return
    message = f"'{path}' is a binary file of no format that preview recognises"
    forms = "Parquet, Arrow, CSV, npy, npz, tar, pictures, CNTK text and binary formats, HTK, MLF, Kaldi, safetensors"
    hint = (
        f"it recognises {forms}; of other data it shows what a reader section reads: cntkpy preview CONFIG train/reader"
    )
    raise UserError("UnknownFormat", message, hint=hint)

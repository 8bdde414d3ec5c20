"""Readers of files that no quick command reaches: each takes the path of the mutated file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

SEED = Path("seed")
"""Where the functions that make a seed write it."""


def checkpoint(path: str) -> None:
    """The trainer's own state."""
    from cntkpy.trainers.checkpoints.checkpoint import Checkpoint

    Checkpoint.load(path)


def checkpoint_seed() -> bytes:
    """A checkpoint with arrays and values of every kind."""
    import numpy as np

    from cntkpy.trainers.checkpoints.checkpoint import EPOCH, Checkpoint

    values: Any = {"samples_seen": 120, "rate": 0.25, "reference": 1.5, "minibatch_size": 16, "reader": {"epoch": 3}}
    arrays = {"update\nW\nm": np.ones((2, 3)), "update\nW\nn": np.array([1, 2], np.float32)}
    Checkpoint(EPOCH, values | {"schedule": {"found_rates": [0.1, 0.2]}}, arrays).save(str(SEED))
    return SEED.read_bytes()


def network(path: str) -> None:
    """A network in BrainScript, evaluated and validated. Whatever is wrong with it has a place in the text."""
    from cntkpy.cntk_config.base.diagnostics import UserError
    from cntkpy.networks.builders.brainscript.graph import graph_of
    from cntkpy.networks.builders.brainscript.language.source import text_of_string
    from cntkpy.networks.builders.brainscript.program import evaluate_network, evaluator_with, parse_network
    from cntkpy.networks.graph.initialize import SeedCounter

    text = Path(path).read_bytes().decode("utf-8", "replace")
    evaluator = evaluator_with(SeedCounter())
    evaluator.prints = False
    names = {"deviceId": -1.0, "traceLevel": 0.0, "precision": "double"}
    try:
        program = parse_network(text_of_string(f"{{\n{text}\n}}", path))
        graph_of(evaluate_network(program, evaluator, names), evaluator, "double", values=False)
    except UserError as error:
        span = error.diagnostic.span
        if span is None or span.source.name != path or not 1 <= span.line <= text.count("\n") + 3:
            raise AssertionError(f"an error without its place: {error.diagnostic.render()}") from error
        raise


def packed_seeds() -> list[bytes]:
    """A file in text format, compressed in every way, also in two streams, with parts to skip and a table of frames."""
    import bz2
    import gzip
    import lzma
    import struct
    import zlib

    import zstandard

    text = b"".join(b"%d |x %d 2 3 |s %d:1\n" % (i, i, i % 6) for i in range(50))
    one = zstandard.ZstdCompressor(write_checksum=True)
    packs = (gzip.compress, bz2.compress, lzma.compress, one.compress)
    found = [pack(text) for pack in packs] + [pack(text[:300]) + pack(text[300:]) for pack in packs]
    first, second = one.compress(text[:300]), one.compress(text[300:])
    table = struct.pack("<4IIBI", len(first), 300, len(second), len(text) - 300, 2, 0, 0x8F92EAB1)
    note = struct.pack("<II", 0x184D2A50, 4) + b"note"
    found += [note + first + note + second, first + second + struct.pack("<II", 0x184D2A5E, len(table)) + table]
    return [*found, lzma.compress(text, format=lzma.FORMAT_ALONE), zlib.compress(text)]


TAR_SECTION = """randomize=false ; deserializers=([ type=TarDeserializer ; file="{file}" ; input=[
    c=[member=cls;dim=5;format=sparse] ; j=[member=json;field=a;dim=2] ; n=[member=npy;dim=3] ; t=[member=txt;dim=2] ;
    p=[member=png;transforms=([type=Scale;width=2;height=2;channels=3])] ] ])"""


def tar_seeds() -> list[bytes]:
    """Shards of every format of tar, with long names, and compressed."""
    import gzip
    import io
    import tarfile

    import numpy as np

    picture = (Path(__file__).parent / "seeds" / "image.png").read_bytes()
    found: list[bytes] = []
    for kind, folder in ((tarfile.USTAR_FORMAT, "a"), (tarfile.GNU_FORMAT, "b" * 120), (tarfile.PAX_FORMAT, "c" * 120)):
        whole, array = io.BytesIO(), io.BytesIO()
        np.save(array, np.arange(6.0).reshape(2, 3))
        with tarfile.open(fileobj=whole, mode="w", format=kind) as archive:
            for number in range(2):
                members = {"cls": b"%d" % number, "json": b'{"a": [1, 2.5]}', "npy": array.getvalue(), "txt": b"1 2\n"}
                for ending, content in {**members, "png": picture}.items():
                    info = tarfile.TarInfo(f"{folder}/{number:03}.{ending}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
        found.append(whole.getvalue())
    return [*found, gzip.compress(found[0])]


def tar(path: str) -> None:
    """A shard. Every other one gets sound checksums: nothing else of a header would be read where it was changed."""
    import tarfile

    from cntkpy.readers import create_reader

    content = bytearray(Path(path).read_bytes())
    if sum(content) % 2:
        for at in range(0, len(content) - 511, 512):
            if content[at + 257 : at + 262] == b"ustar":
                block = bytes(content[at : at + 512])
                content[at + 148 : at + 156] = b"%06o\0 " % tarfile.calc_chksums(block)[0]  # type: ignore[attr-defined]
        Path(path).write_bytes(content)
    reader = create_reader(TAR_SECTION.format(file=path))
    try:
        reader.start_minibatch_loop(2, 0)
        while reader.get_minibatch() is not None:
            pass
    finally:
        reader.close()


def network_seeds() -> list[bytes]:
    """Networks of all kinds of layers."""
    folder = Path(__file__).parent / "seeds"
    return [text.encode() for text in (folder / "networks.bs").read_text(encoding="utf-8").split("\n---\n")[1:]]


def partial_epoch(path: str) -> None:
    """The state inside an epoch."""
    from cntkpy.trainers.fronts.config.partial import load_partial

    load_partial(path, {"rate": 0.5})


def partial_epoch_seed() -> bytes:
    """Such a state."""
    import numpy as np

    from cntkpy.trainers.checkpoints.checkpoint import INSIDE, Checkpoint

    values = {"position": {"done": 4}, "reader": {"place": 7}, "shapes": [[1, 2]], "settings": {"rate": 0.5}}
    Checkpoint(INSIDE, values, {"weight\nW": np.ones((2, 3))}).save(str(SEED))
    return SEED.read_bytes()


def text_index(path: str) -> None:
    """The kept index of a text file, taken for that of the file as it is; then everything that it says is used."""
    import cntkpy.readers.formats.text.index as index
    from cntkpy.readers.common import index_cache
    from cntkpy.readers.common.packed import open_text

    text = Path("text.ctf")
    if not text.exists():
        text.write_text("0 |x 1\n0 |x 2\n1 |x 3\n7 |x 4\n")
        os.utime(text, ns=(1, 1))
    real: Any = index_cache.describe
    index_cache.describe = lambda _: {"size": text.stat().st_size}
    try:
        found = index_cache.load(path, str(text), index.is_sound)
        if found is not None:
            arrays, more = found
            index._finish(open_text(str(text)), "", 1 << 20, index.Corpus(), arrays, more)  # pyright: ignore[reportPrivateUsage]
    finally:
        index_cache.describe = real


def text_index_seed() -> bytes:
    """The index of that text."""
    import cntkpy.readers.formats.text.index as index
    from cntkpy.readers.common import index_cache

    text = Path("text.ctf")
    text.write_text("0 |x 1\n0 |x 2\n1 |x 3\n7 |x 4\n")
    real: Any = index_cache.describe
    index_cache.describe = lambda _: {"size": text.stat().st_size}
    try:
        index.build_index(str(text), index.IndexOptions(cache=True))
    finally:
        index_cache.describe = real
    return next(Path().glob("*.cache")).read_bytes()


def binary_cache(path: str) -> None:
    """The stamps of a cache, and what its sections hold."""
    from cntkpy.readers.formats.binary.file import BinaryFile
    from cntkpy.readers.formats.binary.stamp import check

    file = BinaryFile(path)
    try:
        if not check(file, None):
            for section in file.sections.values():
                section.content()
    finally:
        file.close()


def label_map(path: str) -> None:
    """A label mapping file."""
    from cntkpy.readers.common.labels import load_labels

    load_labels(path)


def mean_file(path: str) -> None:
    """A mean picture."""
    from cntkpy.readers.formats.image.storage import read_mean

    read_mean(path)


def map_file(path: str) -> None:
    """A list of pictures."""
    from cntkpy.readers.common.corpus import Corpus
    from cntkpy.readers.formats.image.map_file import MapFile

    found = MapFile(path, 3, Corpus())
    for record in range(len(found)):
        found.name(record)


def list_seeds() -> list[bytes]:
    """Parquet files with lists of one size in several pages, plain and by dictionary, compressed and not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: list[bytes] = []
    for compression in ("none", "snappy"):
        for distinct in (1, 5, 200):
            lists = [[float(i % distinct), float(i * 7 % distinct), 1.5] for i in range(60)]
            table = pa.table({"x": pa.array(lists, pa.list_(pa.float32(), 3))})
            options: Any = {"data_page_size": 200, "write_batch_size": 7, "row_group_size": 40}
            pq.write_table(table, str(SEED), compression=compression, dictionary_pagesize_limit=300, **options)
            found.append(SEED.read_bytes())
    return found


def lists(path: str) -> None:
    """Lists of one size in Parquet, as kernels read them."""
    from cntkpy.readers.formats.tables.deserializer import TableDeserializer
    from cntkpy.readers.formats.tables.files import ParquetTable
    from cntkpy.readers.formats.tables.stream import TableStream
    from cntkpy.readers.kernels import budget

    budget.reset(0)
    data = TableDeserializer([ParquetTable(path)], [TableStream("x", 3, False, ("x",))])
    for chunk in range(len(data.groups)):
        data.load_chunk(chunk)


def initial_values(path: str) -> None:
    """The initial values of a parameter."""
    from cntkpy.networks.graph.initialize import read_matrix

    read_matrix(path)


def run_log(path: str) -> None:
    """A log or an event file, as `runs` and `report` read it."""
    from cntkpy.commands.report.page import page
    from cntkpy.commands.runs.find import read_run
    from cntkpy.commands.runs.table import table_of

    run = read_run(Path(path))
    table_of([run, run])
    page([run])

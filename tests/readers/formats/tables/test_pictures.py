"""Pictures as bytes in a column: the transforms of image deserializers, other columns beside, errors with the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cntkpy.testing
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.cli import main
from cntkpy.readers import (
    CTFDeserializer,
    DataError,
    ImageDeserializer,
    MinibatchSource,
    StreamDef,
    StreamDefs,
    create_reader,
    transforms,
)

from ..image.pictures import png, solid
from .table_files import KINDS, MAKERS, write_table

COUNT = 24
SCALE = "transforms=([type=Scale;width=3;height=2;channels=3]:[type=Transpose])"


def encoded(number: int) -> bytes:
    """A picture whose colour tells its number."""
    return png(solid((number, 2 * number, 100 + number), 3, 2))


def write(kind: str, *, structs: bool = False, **columns: Any) -> str:
    images: Any = [encoded(i) for i in range(COUNT)]
    if structs:
        images = pa.array([{"bytes": one, "path": "x.png"} for one in images])
    found = {"image": images, "label": [i % 4 for i in range(COUNT)], "text": [f"t{i % 3}" for i in range(COUNT)]}
    return write_table(pa.table(found | columns), f"t.{kind}", rows=5)


def streams() -> Any:
    scale = transforms.scale(width=3, height=2, channels=3)
    return StreamDefs(
        pixels=StreamDef(field="image", transforms=[scale]),
        y=StreamDef(field="label", shape=4, is_sparse=True),
        t=StreamDef(field="text", shape=3, is_sparse=True),
    )


@pytest.mark.parametrize("structs", [False, True])
def test_pictures_and_columns_of_the_same_rows(kind: str, structs: bool) -> None:
    source = MinibatchSource(MAKERS[kind](write(kind, structs=structs), streams()), max_sweeps=2)
    assert source["pixels"].sample_shape == (3, 2, 3)
    seen: list[int] = []
    for m in source.minibatches(7):
        pixels = np.concatenate(m[source["pixels"]].as_sequences())
        numbers = pixels[:, 2, 0, 0].astype(int)  # red
        expected = np.stack([100 + numbers, 2 * numbers, numbers], 1)[:, :, None, None] * np.ones((2, 3))
        assert pixels.tolist() == expected.tolist()
        for name, size in (("y", 4), ("t", 3)):
            rows = [one.toarray().argmax(1)[0] for one in m[source[name]].as_sequences()]
            assert rows == [number % size for number in numbers]
        seen += numbers.tolist()
    assert sorted(seen[:COUNT]) == sorted(seen[COUNT:]) == list(range(COUNT)) != seen[:COUNT]


def test_the_same_numbers_as_an_image_deserializer(kind: str) -> None:
    """Also those that random transforms draw: they depend on the number of the sequence."""
    for i in range(COUNT):
        Path(f"{i}.png").write_bytes(png([[(9 * x, 7 * y, i) for x in range(9)] for y in range(8)]))
    Path("map.txt").write_text("".join(f"{i}.png\t{i % 4}\n" for i in range(COUNT)))
    path = write(kind, image=[Path(f"{i}.png").read_bytes() for i in range(COUNT)])
    steps = [
        transforms.crop(crop_type="randomside", side_ratio=(0.5, 1.0)),
        transforms.scale(width=4, height=3, channels=3),
    ]
    defs = StreamDefs(x=StreamDef(field="image", transforms=steps), y=StreamDef(field="label", shape=4, is_sparse=True))
    plain = StreamDefs(x=StreamDef(field="image", transforms=steps), y=StreamDef(field="label", shape=4))

    def values(part: Any) -> list[np.ndarray]:
        source = MinibatchSource(part, max_sweeps=1, randomize=False)
        return [np.concatenate(m[source["x"]].as_sequences()) for m in source.minibatches(8)]

    ours, theirs = values(MAKERS[kind](path, defs)), values(ImageDeserializer("map.txt", plain))
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_orders_are_repeatable_and_resumed(kind: str) -> None:
    path = write(kind)
    section = (
        f'deserializers=([type={KINDS[kind]};file={path};filter="label != 3";'
        f"input=[image=[{SCALE}];y=[dim=4;alias=label;format=sparse]]])"
    )
    cntkpy.testing.check_reader(lambda: create_reader(section), minibatch_size=5)


@pytest.mark.parametrize("texts", [False, True])
def test_two_columns_of_pictures(kind: str, texts: bool) -> None:
    """Both of one row, before and behind text, shared by workers, filtered; with keys that are numbers or texts."""
    path = write(kind, mask=[png(solid((i, i, i), 4, 4)) for i in range(COUNT)], key=[f"k{i}" for i in range(COUNT)])
    Path("z.ctf").write_text("".join(f"{'k' * texts}{i} |z {i}\n" for i in range(COUNT)))
    table = (
        f'[type={KINDS[kind]};file={path};filter="label != 3";{"keyColumn=key;" * texts}input=['
        f"image=[{SCALE}];mask=[grayscale=true;transforms=([type=Scale;width=1;height=1;channels=1]:[type=Transpose])];"
        "y=[dim=4;alias=label;format=sparse]]]"
    )
    text = "[type=CNTKTextFormatDeserializer;file=z.ctf;input=[z=[dim=1;format=dense]]]"
    kept = [i for i in range(COUNT) if i % 4 != 3]
    for parts in (f"{table}:{text}", f"{text}:{table}"):
        section = f"useNumericSequenceKeys={str(not texts).lower()};deserializers=({parts})"
        seen: list[int] = []
        for worker in range(2):
            reader = create_reader(section)
            reader.start_minibatch_loop(8, 1, None, worker, 2)
            while (m := reader.get_minibatch()) is not None:
                z = m.streams["z"].ravel()
                assert m.streams["image"].reshape(-1, 3, 6)[:, 2, 0].tolist() == z.tolist()
                assert m.streams["mask"].ravel().tolist() == z.tolist()
                assert m.streams["y"].indices.tolist() == (z % 4).tolist()
                seen += z.astype(int).tolist()
            reader.close()
        assert sorted(seen) == kept
    if kind == "arrow" and texts:
        cntkpy.testing.check_reader(lambda: create_reader(section), minibatch_size=5)


def test_a_picture_and_its_mask_are_cut_alike() -> None:
    grid = [png([[(9 * x, 7 * y, i) for x in range(9)] for y in range(8)]) for i in range(COUNT)]
    path = write("parquet", image=grid, mask=grid)
    crop = "[type=Crop;cropType=randomside;sideRatio=0.3:0.8;jitterType=uniRatio]"
    cut = f"transforms=({crop}:[type=Scale;width=4;height=3;channels=3])"
    reader = create_reader(f"deserializers=([type=ParquetDeserializer;file={path};input=[image=[{cut}];mask=[{cut}]]])")
    reader.start_minibatch_loop(COUNT, 0)
    found = reader.get_minibatch()
    assert found is not None and np.array_equal(found.streams["image"], found.streams["mask"])
    assert len(np.unique(found.streams["image"][0, :, 0])) > 4  # not all are cut at the same place
    reader.close()


@pytest.mark.malformed
def test_an_error_names_the_column_of_pictures(kind: str) -> None:
    masks: list[Any] = [encoded(i) for i in range(COUNT)]
    path = write(kind, mask=[*masks[:7], b"no", *masks[8:]])
    section = (
        f"randomize=false;maxErrors={{}};deserializers=([type={KINDS[kind]};file={path};"
        f"input=[image=[{SCALE}];mask=[{SCALE}]]])"
    )
    reader = create_reader(section.format(0))
    reader.start_minibatch_loop(30, 0)
    with pytest.raises(DataError, match=f"{path}, row group 1, row 2, column 'mask'"):
        reader.get_minibatch()
    reader = create_reader(section.format(1))
    reader.start_minibatch_loop(30, 0)
    found = reader.get_minibatch()
    assert found is not None and list(found.keys) == [i for i in range(COUNT) if i != 7]
    reader.close()


def test_beside_text_and_alone(kind: str) -> None:
    path = write(kind)
    Path("z.ctf").write_text("".join(f"|z {i}\n" for i in range(COUNT)))
    text = CTFDeserializer("z.ctf", StreamDefs(z=StreamDef(field="z", shape=1)))
    pixels = StreamDefs(pixels=streams()["pixels"])
    for parts in ([MAKERS[kind](path, pixels), text], [text, MAKERS[kind](path, pixels)]):
        source = MinibatchSource(parts, max_sweeps=1)
        for m in source.minibatches(6):
            found = np.concatenate(m[source["pixels"]].as_sequences())[:, 2, 0, 0]
            assert found.tolist() == np.concatenate(m[source["z"]].as_sequences()).ravel().tolist()


@pytest.mark.malformed
def test_errors_name_the_row(kind: str) -> None:
    images: list[Any] = [encoded(i) for i in range(COUNT)]
    for value, words in ((b"no", "of no known format"), (None, "missing (null)"), (encoded(1)[:40], "truncated")):
        path = write(kind, image=[*images[:7], value, *images[8:]])
        source = MinibatchSource(MAKERS[kind](path, streams()), max_sweeps=1, randomize=False)
        with pytest.raises(DataError, match=f"{path}, row group 1, row 2, column 'image'") as caught:
            list(source.minibatches(30))
        assert words in caught.value.message and caught.value.line is None
    tolerant = MinibatchSource(MAKERS[kind](path, streams()), max_sweeps=1, max_errors=1)
    assert sum(m[tolerant["y"]].num_sequences for m in tolerant.minibatches(30)) == COUNT - 1
    with pytest.raises(DataError, match="column 'label' cannot have pictures: it is int64"):
        MinibatchSource(MAKERS[kind](path, StreamDefs(x=StreamDef(field="label", transforms=[]))))


def test_sections_that_contradict_themselves() -> None:
    for inputs, words in (
        (f"x=[{SCALE};dim=3]", "is not there for pictures"),
        ("x=[format=dense]", "dim: is missing"),
    ):
        with pytest.raises(UserError, match=words):
            create_reader(f"deserializers=([type=ParquetDeserializer;file=x;input=[{inputs}]])")


def test_check_and_preview(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(kind)
    config = """
command=train
precision=float
train=[ action=train ; modelPath=m
 SimpleNetworkBuilder=[layerSizes=18:4 ; trainingCriterion=CrossEntropyWithSoftmax ; evalCriterion=ClassificationError]
 SGD=[epochSize=0 ; maxEpochs=1 ; learningRatesPerMB=0.1]
 reader=[ deserializers=([type={} ; file={} ; input=[
  features=[{} ; alias={}]
  labels=[dim=4 ; alias=label ; format=sparse] ] ]) ]]
"""
    Path("c.cntk").write_text(config.format(KINDS[kind], path, SCALE, "image"))
    main(["check", "--data", "c.cntk"])
    assert "error" not in (found := capsys.readouterr().out), found
    assert main(["preview", "c.cntk", "train"]) == 0
    assert "3 x 2" in (found := capsys.readouterr().out) or "features" in found
    Path("c.cntk").write_text(config.format(KINDS[kind], path, SCALE, "text"))
    main(["check", "--data", "c.cntk"])
    found = capsys.readouterr().out
    assert "column 'text' cannot have pictures: it is string" in found and "c.cntk:8:" in found

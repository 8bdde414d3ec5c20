"""Pictures in base64, and pictures from Python."""

import numpy as np
import pytest

import cntkpy.readers.transforms as xforms
from cntkpy.readers import (
    Base64ImageDeserializer,
    CTFDeserializer,
    ImageDeserializer,
    MinibatchSource,
    StreamDef,
    StreamDefs,
)
from cntkpy.readers.formats.image import base64_file

from .pictures import JITTER, Album, keys, lines, noise_album, read, same


@pytest.fixture
def noise(tmp_path) -> Album:
    return noise_album(tmp_path)


# --------------------------------------------------------------------------------------------------------- base64


def test_base64_gives_what_files_give(noise):
    data = [(noise.folder / f"{i}.png").read_bytes() for i in range(20)]
    file = noise.write("b.txt", lines(*((i, d) for i, d in enumerate(data))))
    one = read(noise.reader(noise.section(str(file), JITTER, 20, "Base64ImageDeserializer"), randomize="false"), 8)
    two = read(noise.reader(noise.section(str(noise.folder / "map.txt"), JITTER, 20), randomize="false"), 8)
    same(one, two)


def test_base64_with_keys_blanks_and_an_index_that_is_kept(noise, caplog, monkeypatch):
    data = [(noise.folder / f"{i}.png").read_bytes() for i in range(3)]
    text = lines((2**64 - 1, 1, data[0]), (7, 0, data[1]), (3, 2, data[2])).replace("\n", " \r\n")
    file = noise.write("b.txt", text.removesuffix("\r\n"))
    section = noise.section(
        str(file),
        "Scale width=3 height=3 channels=3",
        3,
        "Base64ImageDeserializer",
        cacheIndex="true",
        chunkSizeInBytes=400,
    )
    found = [read(noise.reader(section, randomize="false"), 8)]
    (kept,) = noise.folder.glob("b.txt.*.cache")
    with monkeypatch.context() as context:
        context.delattr(base64_file, "_index")  # the second time, the file is not read for it
        found.append(read(noise.reader(section, randomize="false"), 8))
    assert not caplog.records
    assert keys(found[0]) == [2**64 - 1, 7, 3] and found[0][0].streams["y"].indices.tolist() == [1, 0, 2]
    same(*found)
    assert sorted(keys(read(noise.reader(section), 8))) == [3, 7, 2**64 - 1]
    with np.load(kept) as archive:
        arrays = dict(archive)
    arrays["ends"][-1] += 1000
    with kept.open("wb") as damaged:
        np.savez(damaged, **arrays)
    same(found[0], read(noise.reader(section, randomize="false"), 8))
    assert [one.getMessage() for one in caplog.records] == [f"The index kept in {kept} is damaged. Rebuilding it."]


def test_base64_labels_that_are_no_classes_are_told(noise, caplog):
    data = (noise.folder / "0.png").read_bytes()
    file = noise.write("b.txt", lines((1, "2 ", data), (2, "1,0", data), (3, "0.5", data)))
    section = noise.section(str(file), "Transpose", 3, "Base64ImageDeserializer")
    (m,) = read(noise.reader(section, randomize="false"), 8)
    assert m.streams["y"].indices.tolist() == [2, 1, 0]
    assert [one.getMessage().partition(", ")[2] for one in caplog.records] == [
        "line 2: of the label '1,0' only 1 is read, the number of a class."
    ]


def test_base64_joined_with_text(noise):
    data = [(noise.folder / f"{i}.png").read_bytes() for i in range(3)]
    file = noise.write("b.txt", lines(*((100 + i, i, d) for i, d in enumerate(data))))
    text = noise.write("l.ctf", "102 |l 2\n101 |l 1\n")
    ctf = f'[type=CNTKTextFormatDeserializer; file="{text}"; input=[l=[dim=1; format=dense]]]'
    section = noise.section(str(file), "Scale width=3 height=3 channels=3", 3, "Base64ImageDeserializer")
    for sections, expected in (((ctf, section), [102, 101]), ((section, ctf), [101, 102])):
        (m,) = read(noise.reader(*sections, randomize="false"), 8)
        assert m.keys == expected and m.streams["l"].ravel().tolist() == [key - 100 for key in expected]
        assert m.streams["y"].indices.tolist() == [key - 100 for key in expected]


# --------------------------------------------------------------------------------------------------------- Python


def test_python_factories():
    crop = xforms.crop("randomside", (20, 10), side_ratio=(0.2, 0.5), jitter_type="uniratio")
    assert (crop["cropSize"], crop["sideRatio"], crop["areaRatio"], crop["aspectRatio"]) == (
        "20:10",
        "0.2:0.5",
        "0:0",
        "1:1",
    )
    assert xforms.crop(crop_size=512)["cropSize"] == "512:512"
    with pytest.raises(ValueError, match="not ascending"):
        xforms.crop(side_ratio=(0.5, 0.2))
    with pytest.raises(ValueError, match="a number or a pair"):
        xforms.crop(aspect_ratio=(1, 2, 3))
    image, label = StreamDef(field="image", transforms=[xforms.mean("m.xml")]), StreamDef(field="label", shape=3)
    config = ImageDeserializer("map.txt", StreamDefs(f=image, l=label))
    assert config["type"] == "ImageDeserializer" and config["file"] == "map.txt"
    assert [one["type"] for one in config["input"]["f"]["transforms"]] == ["Mean", "Transpose"]
    assert config["input"]["l"] == {"labelDim": 3}
    with pytest.raises(ValueError, match="invalid field name 'images'"):
        ImageDeserializer("map.txt", StreamDefs(f=StreamDef(field="images")))
    with pytest.raises(ValueError, match=r"stream name .* must be specified"):
        Base64ImageDeserializer("map.txt", StreamDefs(l=label))


def test_python_source(noise):
    file = str(noise.folder / "map.txt")
    crop = xforms.crop("center", (20, 10))
    wide = ImageDeserializer(file, StreamDefs(f=StreamDef(field="image", transforms=[xforms.scale(30, 30, 3), crop])))
    source = MinibatchSource(wide, max_sweeps=1)
    assert [s.name for s in source.stream_infos()] == ["f"]
    first = source.next_minibatch(1)[source.streams.f]
    assert first.shape == (1, 1, 3, 10, 20)  # crop_size is (width, height)
    assert sum(m[source.streams.f].num_samples for m in source.minibatches(6)) == 19
    source.close()


def test_python_two_sources_and_a_checkpoint(noise):
    file = str(noise.folder / "map.txt")
    text = noise.write("l.ctf", "".join(f"{i} |l {i}\n" for i in range(20)))
    chain = [
        xforms.crop("randomside", side_ratio=(0.2, 0.5), jitter_type="uniratio"),
        xforms.scale(5, 7, 3),
        xforms.color(0.2, 0.1, 0.3),
    ]

    def source() -> MinibatchSource:
        parts = [
            ImageDeserializer(file, StreamDefs(a=StreamDef(field="image", transforms=chain))),
            ImageDeserializer(
                file, StreamDefs(b=StreamDef(field="image", transforms=chain), c=StreamDef(field="label", shape=20))
            ),
            CTFDeserializer(str(text), StreamDefs(l=StreamDef(field="l", shape=1))),
        ]
        return MinibatchSource(parts, max_samples=70)

    one = source()
    expected, states = [], []
    for m in one.minibatches(8):
        arrays = {s.name: data.asarray() for s, data in m.items()}
        np.testing.assert_array_equal(arrays["a"], arrays["b"])
        np.testing.assert_array_equal(arrays["c"].argmax(-1).ravel(), arrays["l"].ravel())
        expected.append(arrays)
        states.append(one.get_checkpoint_state())
    one.close()
    assert sum(len(arrays["l"]) for arrays in expected) == 70
    two = source()
    two.restore_from_checkpoint(states[3])
    for arrays, m in zip(expected[4:], two.minibatches(8), strict=True):
        for s, data in m.items():
            np.testing.assert_array_equal(data.asarray(), arrays[s.name])
    two.close()

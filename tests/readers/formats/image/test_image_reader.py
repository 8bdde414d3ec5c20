"""Readers of pictures: lists, keys, orders, joining, resuming, the old form, memory."""

import json
import logging
import threading
import zipfile
from typing import Any

import numpy as np
import pytest

from cntkpy.readers import create_reader

from .pictures import (
    BLACK,
    BLUE,
    GREEN,
    JITTER,
    RED,
    Album,
    epoch,
    keys,
    lines,
    noise_album,
    png,
    read,
    rest,
    same,
    solid,
)


@pytest.fixture
def album(tmp_path) -> Album:
    found = Album(tmp_path)
    for name, color in (("r", RED), ("g", GREEN), ("b", BLUE), ("k", BLACK)):
        found.write(f"{name}.png", solid(color))
    return found


@pytest.fixture
def noise(tmp_path) -> Album:
    return noise_album(tmp_path)


# --------------------------------------------------------------------------------------------------------- lists


def test_streams_and_labels(album):
    reader = album.reader(album.section(album.map("r.png", "g.png", "b.png"), "Transpose", 5), randomize="false")
    assert [(s.name, s.sample_shape, s.sparse) for s in reader.streams] == [("x", (3, 8, 4), False), ("y", (5,), True)]
    (m,) = read(reader, 10)
    assert m.layout.T == 1 and m.layout.S == 3 and m.num_samples == 3
    assert m.streams["x"].shape == (1, 3, 96)
    assert m.streams["y"].toarray().tolist() == np.eye(5)[:3].tolist()
    assert keys([m]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".../r.png\t1\n.../g.png\t2\n", [(0, 1), (1, 2)]),
        (".../r.png\t1\r\n.../g.png\t2\r\n", [(0, 1), (1, 2)]),
        (".../r.png\t1\n.../g.png\t2", [(0, 1), (1, 2)]),
        ("\ufeff.../r.png\t1\n.../g.png\t2\n", [(0, 1), (1, 2)]),
        ("17\t.../r.png\t1\n3\t.../g.png\t2\tmore\t3\n", [(17, 1), (3, 2)]),
        ("007\t.../r.png\t 1\n3\t.../g.png\t2\n", [(7, 1), (3, 2)]),
        ("12abc\t.../r.png\t1xyz\n.../g.png\t2\t\n", [(12, 1), (1, 2)]),  # leading digits; an empty third column
        ("7a\t.../r.png\t1\n7\t.../g.png\t2\n", [("7a", 1), ("7", 2)]),  # D12: not one number
        ("0x\t.../r.png\t1\n.../g.png\t2\n", [(0, 1), (1, 2)]),
        ('".../r.png"\t1\n5\t".../g.png"\t2\n', [(0, 1), (5, 2)]),
        ("18446744073709551615\t.../r.png\t1\n18446744073709551610\t.../g.png\t2\n", [(2**64 - 1, 1), (2**64 - 6, 2)]),
        ("cat\t.../r.png\t1\ndog\t.../g.png\t2\n", [("cat", 1), ("dog", 2)]),
        ("cat\t.../r.png\t1\n.../g.png\t2\n", [("cat", 1), ("1", 2)]),
    ],
)
def test_map_files(album, text, expected):
    file = album.write("m.txt", text)
    section = album.section(str(file), "Transpose")
    (m,) = read(album.reader(section, randomize="false"), 10)
    assert list(zip(m.keys, m.streams["y"].indices.tolist(), strict=True)) == expected
    assert m.streams["x"].reshape(2, 3, -1).mean(axis=2).tolist() == [[0, 0, 255], [0, 255, 0]]


def test_what_is_not_read_of_labels_is_told_once(album, caplog):
    """A picture has one class: of real numbers, and of several, only a part would count without a word."""
    for text, classes, told in (
        (".../r.png\t1.5\n.../g.png\t2 0\n", [1, 2], ["line 1: of the label '1.5' only 1 is read"]),
        (".../r.png\t1 \n.../g.png\t2\t\n", [1, 2], []),
        ("7\t.../r.png\t1\n8\t.../g.png\t2\t3\r\n9\t.../g.png\t0\t4\n", [1, 2, 0], ["line 2: '3' after the label"]),
    ):
        caplog.clear()
        file = album.write("m.txt", text)
        (m,) = read(album.reader(album.section(str(file), "Transpose"), randomize="false"), 10)
        assert m.streams["y"].indices.tolist() == classes
        assert len(caplog.records) == len(told)
        assert all(one in caplog.text for one in told)
        read(album.reader(album.section(str(file), "Transpose", None), randomize="false"), 10)
        assert len(caplog.records) == len(told)


def test_keys_that_are_not_numbers_are_told(album, caplog):
    file = album.write("m.txt", "cat\t.../r.png\t1\n")
    with caplog.at_level(logging.WARNING, "cntkpy.readers"):
        album.reader(album.section(str(file), "Transpose")).close()
    assert "m.txt, line 1: keys are not numbers" in caplog.text


@pytest.mark.parametrize("keys", ["737", "aba"])
def test_a_key_twice_is_told(album, caplog, keys):
    file = album.write("m.txt", "{}\t.../r.png\t1\n{}\t.../g.png\t2\n{}\t.../b.png\t0\n".format(*keys))
    (m,) = read(album.reader(album.section(str(file), "Transpose"), randomize="false"), 10)
    assert m.streams["y"].indices.tolist() == [1, 2, 0]
    assert f"m.txt, line 3: the key {keys[0]} is that of line 1, too; both pictures are read." in caplog.text


def test_pictures_without_labels(album):
    file = album.write("m.txt", ".../r.png\n.../g.png\tno number\n9\t.../b.png\tx\n")
    reader = album.reader(album.section(str(file), "Transpose", labels=None), randomize="false")
    assert [s.name for s in reader.streams] == ["x"]
    (m,) = read(reader, 10)
    assert m.keys == [0, 1, 9] and m.streams["x"].shape == (1, 3, 96)


def test_line_numbers_as_names(album):
    file, text = album.map("r.png", "g.png"), album.write("l.ctf", "1 |l 1\n0 |l 0\n")
    ctf = f'[type=CNTKTextFormatDeserializer; file="{text}"; input=[l=[dim=1; format=dense]]]'
    encoded = album.write("b.txt", lines((0, (album.folder / "r.png").read_bytes()), (1, png(solid(GREEN)))))
    base = album.section(str(encoded), "Transpose", kind="Base64ImageDeserializer", names="v w")
    reader = album.reader(
        ctf, album.section(file, "Transpose"), base, randomize="false", useNumericSequenceKeys="false"
    )
    (m,) = read(reader, 5)
    assert m.keys == ["1", "0"] and m.streams["y"].indices.tolist() == m.streams["w"].indices.tolist() == [1, 0]


def test_relative_paths_begin_at_the_working_directory(album, monkeypatch):
    monkeypatch.chdir(album.folder)
    album.write("m.txt", "r.png\t0\n./g.png\t1\n")
    (m,) = read(album.reader(album.section("m.txt", "Transpose"), randomize="false"), 10)
    assert m.streams["y"].indices.tolist() == [0, 1]


def test_archives(album):
    with zipfile.ZipFile(album.folder / "a.zip", "w") as archive:
        archive.write(album.folder / "r.png", "sub/r.png", zipfile.ZIP_DEFLATED)
        archive.write(album.folder / "g.png", "g.png")
    album.write("x@2.png", solid(BLUE))  # no archive: the sign alone does not make one
    text = ".../a.zip@/sub/r.png\t0\n.../a.zip@/g.png\t1\n.../a.zip@\\sub\\r.png\t2\n.../x@2.png\t3\n"
    (m,) = read(album.reader(album.section(str(album.write("m.txt", text)), "Transpose"), randomize="false"), 10)
    colors = m.streams["x"].reshape(4, 3, -1).mean(axis=2).tolist()
    assert colors == [[0, 0, 255], [0, 255, 0], [0, 0, 255], [255, 0, 0]]


# --------------------------------------------------------------------------------------------------------- orders


def test_order_of_one_deserializer(album):
    file = album.map("r.png", "g.png", "b.png", "k.png")
    reader = album.reader(album.section(file, "Transpose"))
    assert [keys(epoch(reader, 3, i)) for i in range(2)] == [[2, 0, 1, 3], [0, 2, 3, 1]]
    reader.close()


def test_order_of_two_deserializers_is_a_shuffle_of_everything(album):
    file = album.map("r.png", "g.png", "b.png", "k.png")
    reader = album.reader(album.section(file, "Transpose"), album.section(file, "Transpose", names="v w"))
    (m,) = read(reader, 10)
    assert m.keys == [1, 2, 0, 3] and m.streams["y"].indices.tolist() == m.streams["w"].indices.tolist()
    np.testing.assert_array_equal(m.streams["x"], m.streams["v"])


def test_order_of_text_with_pictures(album):
    text = album.write("l.ctf", "".join(f"{i} |l {i}\n" for i in range(4)))
    ctf = f'[type=CNTKTextFormatDeserializer; file="{text}"; input=[l=[dim=1; format=dense]]]'
    (m,) = read(album.reader(ctf, album.section(album.map("r.png", "g.png", "b.png", "k.png"), "Transpose")), 10)
    assert m.keys == [2, 0, 1, 3] and m.streams["l"].ravel().tolist() == [2, 0, 1, 3]
    assert m.streams["y"].indices.tolist() == [2, 0, 1, 3]


@pytest.mark.parametrize("frame_mode", ["true", "false"])
def test_a_worker_without_a_share_of_joined_pictures(album, frame_mode):
    text = album.write("l.ctf", "0 |l 5\n")
    ctf = f'[type=CNTKTextFormatDeserializer; file="{text}"; input=[l=[dim=1; format=dense]]]'
    sections = album.section(album.map("r.png"), "Transpose"), ctf
    reader = album.reader(*sections, randomize="false", frameMode=frame_mode)
    found = []
    for rank in range(2):
        reader.start_minibatch_loop(4, 0, None, rank, 2)
        found.append([m.num_samples for m in iter(reader.get_minibatch, None)])
    reader.close()
    assert found == [[1], [0]]


def test_joined_by_key(album):
    pictures = album.write("m.txt", "5\t.../r.png\t1\n7\t.../g.png\t2\n9\t.../b.png\t3\n")
    text = album.write("l.ctf", "9 |l 90\n9 |l 91\n4 |l 40\n5 |l 50\n")
    ctf = f'[type=CNTKTextFormatDeserializer; file="{text}"; input=[l=[dim=1; format=dense]]]'
    image = album.section(str(pictures), "Transpose")
    for sections, expected in (((image, ctf), [5, 9]), ((ctf, image), [9, 5])):
        (m,) = read(album.reader(*sections, randomize="false"), 10)
        assert m.keys == expected
        order = {5: ([50.0], 1), 9: ([90.0, 91.0], 3)}
        layout = m.layouts["l"]
        for i, (_, slot, begin, end) in enumerate(layout.sequences.tolist()):
            assert m.streams["l"][begin:end, slot, 0].tolist() == order[expected[i]][0]
            assert m.streams["y"].indices[i] == order[expected[i]][1]
        assert m.layouts["x"].T == 1 and layout.T == 2


def test_joined_by_names(album):
    pictures = album.write("m.txt", "cat\t.../r.png\t1\ndog\t.../g.png\t2\n")
    text = album.write("l.ctf", "dog |l 1\ncat |l 2\n")
    ctf = f'[type=CNTKTextFormatDeserializer; file="{text}"; input=[l=[dim=1; format=dense]]]'
    (m,) = read(
        album.reader(album.section(str(pictures), "Transpose"), ctf, randomize="false", useNumericSequenceKeys="false"),
        9,
    )
    assert m.keys == ["cat", "dog"] and m.streams["l"].ravel().tolist() == [2, 1]


# --------------------------------------------------------------------------------------------- old and new form

OLD = "width=6; height=5; channels=3; cropType=random; sideRatio=0.3:1; jitterType=uniratio; aspectRatio=0.8:1; brightnessRadius=0.3; contrastRadius=0.2; saturationRadius=0.1"  # noqa: E501


@pytest.mark.parametrize("randomize", ["auto", "none"])
def test_old_and_new_form_give_the_same_minibatches(noise, randomize):
    file = str(noise.folder / "map.txt")
    old = create_reader(f'readerType=ImageReader; file="{file}"; randomize={randomize}; x=[{OLD}]; y=[labelDim=30]')
    new = noise.reader(noise.section(file, JITTER, 30), randomize=randomize)
    for number in range(3):
        same(epoch(old, 7, number), epoch(new, 7, number))
    old.close(), new.close()


@pytest.mark.parametrize(
    ("options", "chain", "more"),
    [
        ("mbFormat=nhwc", "Scale width=4 height=4 channels=3", ""),
        (
            "mbFormat=legacy; padValue=3; scaleMode=pad",
            "Scale width=4 height=4 channels=3 scaleMode=pad padValue=3",
            "",
        ),
        (
            "cropType=multiview10; cropSize=3:3",
            "Crop cropType=multiview10 cropSize=3:3, Scale width=4 height=4 channels=3, Transpose",
            "multiViewCrop=true",
        ),
        (
            "channels=1; interpolations=cubic",
            "Scale width=4 height=4 channels=1 interpolations=cubic, Transpose",
            "grayscale=true",
        ),
    ],
)
def test_options_of_the_old_form(noise, options, chain, more):
    file = str(noise.folder / "map.txt")
    channels = "" if "channels" in options else "channels=3;"
    old = create_reader(
        f'readerType=ImageReader; file="{file}"; x=[width=4; height=4; {channels}{options}]; y=[labelDim=30]'
    )
    name, _, value = more.partition("=")
    new = noise.reader(noise.section(file, chain, 30, **({name: value} if name else {})))
    got = epoch(old, 64, 0)
    same(got, epoch(new, 64, 0))
    assert sum(m.num_samples for m in got) == (200 if "multi" in options else 20)
    old.close(), new.close()


# ------------------------------------------------------------------------------------ random numbers and position


def test_draws_depend_on_sweep_and_picture_alone(noise):
    """Neither threads nor read-ahead nor the size of minibatches nor shuffling nor workers change a picture."""
    section = noise.section(str(noise.folder / "map.txt"), JITTER)

    def pictures(reader: Any, size: int, **workers: int) -> dict[Any, list[float]]:
        found = {}
        for sweep in range(2):
            reader.start_minibatch_loop(size, sweep, None, **workers)
            for m in rest(reader):
                for i, key in enumerate(m.keys):
                    found[sweep, key] = m.streams["x"][0, i].tolist()
        reader.close()
        return found

    first = pictures(noise.reader(section), 7)
    assert len(first) == 40 and all(first[0, key] != first[1, key] for key in range(20))
    assert pictures(noise.reader(section, multiThreadedDeserialization="false", prefetch="false"), 3) == first
    assert pictures(noise.reader(section, randomize="false"), 20) == first
    shares = [pictures(noise.reader(section), 4, worker_rank=rank, number_of_workers=3) for rank in range(3)]
    assert sum(map(len, shares)) == 40 and shares[0] | shares[1] | shares[2] == first
    seeded = JITTER.replace("Crop", "Crop seed=1")
    assert pictures(noise.reader(noise.section(str(noise.folder / "map.txt"), seeded)), 7) != first


def test_equal_transforms_of_joined_streams_draw_the_same_numbers(noise):
    file = str(noise.folder / "map.txt")
    reader = noise.reader(noise.section(file, JITTER), noise.section(file, JITTER, names="v w"))
    for m in epoch(reader, 4, 0) + epoch(reader, 4, 1):
        np.testing.assert_array_equal(m.streams["x"], m.streams["v"])
    reader.close()


@pytest.mark.parametrize("size", [3, 16])
def test_resumed_exactly(noise, size):
    section = noise.section(str(noise.folder / "map.txt"), JITTER)
    whole = noise.reader(section)
    whole.start_minibatch_loop(size, 0, 50)
    states = []
    expected = []
    while (m := whole.get_minibatch()) is not None:
        expected.append(m)
        states.append(json.loads(json.dumps(whole.get_state())))
    whole.close()
    for done in (1, len(expected) // 2, len(expected) - 1):
        reader = noise.reader(section)
        reader.start_minibatch_loop(size, 0, 50)
        reader.set_state(states[done - 1])
        same(rest(reader), expected[done:])
        reader.close()


# --------------------------------------------------------------------------------------------- unreadable pictures


def test_unreadable_pictures_are_left_out_up_to_max_errors(album, caplog):
    album.write("bad.png", b"no picture")
    album.write("empty.png", b"")
    section = album.section(album.map("r.png", "bad.png", "g.png", "empty.png", "b.png"), "Transpose")
    with pytest.raises(RuntimeError, match=r"Cannot open file '.*bad.png' \(.*map.txt, line 2\): OpenCV cannot"):
        read(album.reader(section, randomize="false"), 2)
    with pytest.raises(RuntimeError, match=r"Number of invalid sequences '2' in the input exceeded .* '1'"):
        read(album.reader(section, randomize="false", maxErrors=1), 2)
    caplog.clear()
    reader = album.reader(section, randomize="false", maxErrors=2)
    with caplog.at_level(logging.WARNING, "cntkpy.readers"):
        for number in range(3):
            found = epoch(reader, 2, number)
            assert [m.keys for m in found] == [[0], [2], [4]]
            assert [m.streams["y"].indices.tolist() for m in found] == [[0], [2], [4]]
            assert [m.streams["x"].reshape(3, -1).max(axis=1).tolist() for m in found] == [
                [0, 0, 255],
                [0, 255, 0],
                [255, 0, 0],
            ]
    reader.close()
    assert caplog.text.count("It is left out.") == 2  # told once, not in every sweep
    old = create_reader(
        f'readerType=ImageReader; maxErrors=2; randomize=none; file="{album.folder}/map.txt"; '
        "x=[width=2;height=2;channels=3]; y=[labelDim=9]"
    )
    assert keys(read(old, 10)) == [0, 2, 4]


def test_nothing_but_unreadable_pictures_is_an_error(album):
    album.write("bad.png", b"no picture")
    section = album.section(album.map(*["bad.png"] * 9), "Scale width=2 height=2 channels=3")
    with pytest.raises(RuntimeError, match=r"'4' in the input exceeded .* '3': Cannot open file '.*line 4\)"):
        read(album.reader(section, randomize="false", maxErrors=3), 2)


def test_a_minibatch_of_unreadable_pictures_is_empty(album):
    album.write("bad.png", b"no picture")
    section = album.section(album.map("bad.png", "bad.png", "g.png", "g.png"), "Transpose")
    found = read(album.reader(section, randomize="false", maxErrors=5), 2)
    assert [m.num_samples for m in found] == [0, 2] and found[0].streams["x"].shape[2] == 96


# --------------------------------------------------------------------------------------------------------- memory


def test_few_pictures_are_read_ahead(album, monkeypatch):
    from cntkpy.readers.formats.image.deserializer import Pictures

    album.map(*["r.png"] * 400)
    begun, lock, sample = [0], threading.Lock(), Pictures.sample

    def counted(*arguments: Any) -> None:
        with lock:
            begun[0] += 1
        sample(*arguments)

    monkeypatch.setattr(Pictures, "sample", counted)
    reader = album.reader(
        album.section(str(album.folder / "map.txt"), "Transpose"), multiThreadedDeserialization="true"
    )
    monkeypatch.setattr("cntkpy.readers.pipeline.prefetch.GROUP_VALUES", 1)
    reader.start_minibatch_loop(40, 0)
    for given in range(1, 5):
        assert reader.get_minibatch().num_samples == 40
        # the one given out, two made ahead, and two under way
        assert begun[0] <= 40 * (given + 5)
    reader.close()


def test_pictures_can_be_kept_in_memory(album, monkeypatch):
    from cntkpy.readers.formats.image.map_file import MapFile

    asked: list[int] = []
    encoded = MapFile.encoded
    monkeypatch.setattr(MapFile, "encoded", lambda self, record: asked.append(record) or encoded(self, record))
    section = album.section(album.map("r.png", "g.png"), "Scale width=2 height=2 channels=3")
    for options, count in (({}, 6), ({"keepDataInMemory": "true"}, 2)):
        asked.clear()
        reader = album.reader(section, **options)
        assert sum(len(epoch(reader, 2, number)) for number in range(3)) == 3
        reader.close()
        assert len(asked) == count


def test_importing_readers_does_not_import_opencv():
    import subprocess
    import sys

    names = ("transforms", "formats.composite.reader", "formats.image.options")
    modules = ", ".join(f"cntkpy.readers.{name}" for name in names)
    code = f"import sys, {modules}; print('cv2' in sys.modules, 'zipfile' in vars(cntkpy.readers))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_png_of_the_tests_is_what_opencv_reads():
    import cv2

    picture = cv2.imdecode(np.frombuffer(png([[RED, BLUE]]), np.uint8), cv2.IMREAD_COLOR)
    assert picture.tolist() == [[[0, 0, 255], [255, 0, 0]]]

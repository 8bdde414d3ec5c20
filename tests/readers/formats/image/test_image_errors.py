"""Bad pictures, lists and settings: one message that says what is wrong and where, and what to do."""

import errno
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import create_reader

from .pictures import RED, Album, png, png_chunks, read, solid


@pytest.fixture
def album(tmp_path) -> Album:
    found = Album(tmp_path)
    found.write("r.png", solid(RED))
    return found


def jpeg(quality: int = 90) -> bytes:
    import cv2

    picture = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    return cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def failure(make: Callable[[], Any], size: int = 10) -> UserError:
    """What making a reader and reading a sweep raises."""
    with pytest.raises(UserError) as caught:
        read(make(), size)
    return caught.value


# ------------------------------------------------------------------------------------------------------- pictures


def bomb() -> bytes:
    """A picture that claims to be 50,000 x 50,000 in a few bytes."""
    return png_chunks(50_000, 50_000, 8, 2, zlib.compress(b"\0" * 1000))


def large_jpeg() -> bytes:
    data = bytearray(jpeg())
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", 60_000, 60_000)
    return bytes(data)


PICTURES = {
    "empty": (b"", "it is empty"),
    "text": (b"hello, world", "are of no known format"),
    "truncated JPEG": (jpeg()[:-300], "it is truncated"),
    "half a JPEG": (jpeg()[:700], "it is truncated"),
    "JPEG header": (jpeg()[:20], "it is truncated"),
    "JPEG with a thumbnail's end": (
        jpeg()[:2] + b"\xff\xe1\x00\x08\xff\xd8\x00\x00\xff\xd9" + jpeg()[2:-300],
        "it is truncated",
    ),
    "truncated PNG": (png(solid(RED, 50, 50))[:-20], "it is truncated"),
    "PNG signature": (png(solid(RED))[:8], "it is truncated"),
    "PNG with a part that claims 2 GB": (
        (whole := png(solid(RED)))[:33] + b"\x7f" + whole[34:],
        "it is truncated",
    ),
    "PNG of nonsense": (png_chunks(4, 4, 8, 2, b"nonsense"), "OpenCV cannot decode it"),
    "PNG of 50,000 x 50,000": (bomb(), "50000 x 50000 pixels, more than the limit of 268435456"),
    "JPEG of 60,000 x 60,000": (large_jpeg(), "60000 x 60000 pixels, more than the limit"),
    "BMP of 40,000 x 40,000": (
        b"BM" + struct.pack("<IHHI", 100, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 40_000, -40_000, 1, 24, *[0] * 6),
        "40000 x 40000 pixels",
    ),
    "truncated BMP": (b"BM" + struct.pack("<IHHI", 100, 0, 0, 54), "a damaged BMP file"),
    "zeros": (b"\0" * 200, "are of no known format"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_bad_picture(album, name):
    data, message = PICTURES[name]
    album.write("bad.png", data)
    file = album.map("r.png", "bad.png")
    error = failure(lambda: album.reader(album.section(file, "Scale width=2 height=2 channels=3"), randomize="false"))
    text = error.diagnostic.message
    assert error.exit_code == 1 and f"{album.folder}/bad.png" in text and "map.txt, line 2)" in text
    assert message in text, text


def test_missing_picture(album):
    file = album.map("r.png", "missing.png")
    error = failure(lambda: album.reader(album.section(file, "Transpose"), randomize="false"))
    assert "missing.png' (" in str(error) and "line 2): there is no such file" in str(error)
    assert error.diagnostic.hint is None
    for path, message, hint in (
        ("x/missing.png", "there is no such file", "begins at the current directory"),
        ("x/a.zip@/b.png", "there is no archive x/a.zip", "begins at the current directory"),
        ("x/a.zip@b.png", "there is no such file", "is written x/a.zip@/b.png"),
        ("x\\b.png", "there is no such file", "divided by /: x/b.png"),
    ):
        Path(file).write_text(f"{path}\t0\n")
        error = failure(lambda: album.reader(album.section(file, "Transpose"), randomize="false"))
        assert message in str(error) and hint in str(error.diagnostic.hint)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("failures", [4, 5])
def test_a_picture_on_a_disk_that_fails(album, monkeypatch, caplog, packed, failures):
    monkeypatch.setattr("cntkpy.cntk_config.base.retry.RETRY_SECONDS", (0.001,) * 4)
    name = "r.png"
    if packed:
        archive(album, name)
        name = "a.zip@/r.png"
    reader = album.reader(album.section(album.map(name), "Transpose"), randomize="false")
    left = [failures]
    place: Any = zipfile.ZipFile if packed else os
    whole = place.open

    def fails(*given: Any, **more: Any) -> Any:
        if left[0] and (packed or str(given[0]).endswith("r.png")):
            left[0] -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return whole(*given, **more)

    monkeypatch.setattr(place, "open", fails)
    if failures == 4:
        assert read(reader, 10)
    else:
        error = failure(lambda: reader)
        assert "Input/output error, 5 times" in str(error) and "line 1" in str(error)
        assert error.diagnostic.hint == "check the disk or the network mount"
    assert caplog.text.count("Input/output error; trying again in 0.001 s") == 4


def test_folder_instead_of_a_picture(album):
    (album.folder / "folder.png").mkdir()
    error = failure(lambda: album.reader(album.section(album.map("r.png", "folder.png"), "Transpose")))
    assert "folder.png' (" in str(error) and "irectory" in str(error)


def test_file_beyond_the_limit(album):
    with (album.folder / "big.png").open("wb") as file:
        file.truncate(1 << 30)  # a hole: takes no space
    error = failure(lambda: album.reader(album.section(album.map("r.png", "big.png"), "Transpose")))
    assert "1073741824 bytes, more than the limit" in str(error)


def test_no_readable_picture_tells_the_size(album):
    album.write("bad.png", b"bad")
    error = failure(lambda: album.reader(album.section(album.map("bad.png"), "Transpose"), maxErrors=5))
    assert "bad.png' (" in str(error)


def test_shapes_that_differ(album):
    album.write("s.png", solid(RED, 5, 8))
    error = failure(lambda: album.reader(album.section(album.map("r.png", "s.png"), "Transpose"), maxErrors=5))
    assert "varying shapes" in str(error) and "s.png (" in str(error) and "line 2)" in str(error)
    assert "(3, 8, 5), not (3, 8, 4)" in str(error) and "Scale" in (error.diagnostic.hint or "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("width=10 height=20 scaleMode=crop", "4 x 8 becomes 10 x 20"),
        ("width=20 height=4 scaleMode=pad", ""),
        ("width=2 height=20 scaleMode=crop", "becomes 2 x 4 with scaleMode=crop, which cannot be cut to 2 x 20"),
        ("width=2 height=30 scaleMode=pad", "becomes 15 x 30 with scaleMode=pad, which cannot be padded to 2 x 30"),
    ],
)
def test_scale_modes_that_do_not_fit(album, options, message):
    section = album.section(album.map("r.png"), f"Scale channels=3 {options}")
    if "becomes 10" in message or not message:  # these fit
        assert len(read(album.reader(section), 1)) == 1
        return
    error = failure(lambda: album.reader(section))
    assert message in str(error) and "map.txt, line 1" in str(error)


# ------------------------------------------------------------------------------------------------------- archives


def archive(album: Album, *names: str) -> Path:
    path = album.folder / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, (album.folder / "r.png").read_bytes())
    return path


def of_archive(album: Album, member: str) -> UserError:
    file = album.write("m.txt", f".../r.png\t0\n.../a.zip@/{member}\t1\n")
    return failure(lambda: album.reader(album.section(str(file), "Transpose"), randomize="false"))


def test_archive_without_the_member(album):
    archive(album, "r.png")
    error = of_archive(album, "s.png")
    assert "Cannot retrieve image data for some sequences: 's.png' is not in" in str(error)
    assert "m.txt, line 2" in str(error)


def test_missing_archive(album):
    assert "there is no archive" in str(of_archive(album, "r.png"))


def test_archive_that_is_none(album):
    album.write("a.zip", b"PK nonsense")
    error = of_archive(album, "r.png")
    assert "a.zip cannot be opened" in str(error) and "line 2" in str(error)


def test_damaged_member(album):
    path = archive(album, "r.png")
    data = bytearray(path.read_bytes())
    data[50] ^= 0xFF
    path.write_bytes(data)
    error = of_archive(album, "r.png")
    assert "a.zip@/r.png' (" in str(error) and "cannot be unpacked" in str(error) and "line 2" in str(error)


def test_zip_bomb(album):
    path = archive(album, "r.png")
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rindex(b"PK\x01\x02") + 24, 300 << 20)  # what the archive says it unpacks to
    path.write_bytes(data)
    error = of_archive(album, "r.png")
    assert "314572800 bytes unpacked, more than the limit of 268435456" in str(error)
    assert "bomb" in (error.diagnostic.hint or "") and "line 2" in str(error)


def test_encrypted_member(album):
    path = archive(album, "r.png")
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    assert "cannot be unpacked" in str(of_archive(album, "r.png"))


# ------------------------------------------------------------------------------------------------------- map files

MAPS = {
    "": "is empty",
    "\n": "2 or 3 tab-delimited columns, line 1",
    ".../r.png\n": "2 or 3 tab-delimited columns, line 1",
    ".../r.png 0\n": "2 or 3 tab-delimited columns, line 1",
    ".../r.png\t0\n\n.../r.png\t0\n": "2 or 3 tab-delimited columns, line 2",
    ".../r.png\t0\n\t1\n": "2 or 3 tab-delimited columns, line 2",
    ".../r.png\t\n": "2 or 3 tab-delimited columns, line 1",
    "1\t\t0\n": "2 or 3 tab-delimited columns, line 1",
    ".../r.png\t0\n.../r.png\tcat\n": "Cannot parse label value on line 2",
    ".../r.png\t-1\n": "Cannot parse label value on line 1",
    ".../r.png\t99999999999999999999\n": "Cannot parse label value on line 1",
    ".../r.png\t0\n.../r.png\t7\n": "has invalid class id '7'. It is exceeding the label dimension of '7'. Line 2",
}


@pytest.mark.parametrize("text", MAPS)
def test_bad_map_file(album, text):
    file = album.write("m.txt", text)
    error = failure(lambda: album.reader(album.section(str(file), "Transpose", 7)))
    assert MAPS[text] in str(error) and "m.txt" in str(error) and error.diagnostic.hint and error.exit_code == 1


def test_missing_map_file(album):
    error = failure(lambda: album.reader(album.section(f"{album.folder}/none.txt", "Transpose")))
    assert "none.txt cannot be read: No such file" in str(error)


def test_names_in_a_list_that_is_joined_to_numbers(album):
    text = album.write("l.ctf", "0 |l 1\n")
    ctf = f'[type=CNTKTextFormatDeserializer; file="{text}"; input=[l=[dim=1; format=dense]]]'
    file = album.write("m.txt", "0\t.../r.png\t0\ncat\t.../r.png\t0\n")
    error = failure(lambda: album.reader(ctf, album.section(str(file), "Transpose")))
    assert "Invalid numeric sequence id 'cat' (line 2 in" in str(error)
    assert "useNumericSequenceKeys=false" in (error.diagnostic.hint or "")


def test_no_common_keys_and_equal_names(album):
    file = album.write("m.txt", "5\t.../r.png\t0\n")
    other = album.map("r.png")
    one, two = album.section(str(file), "Transpose"), album.section(other, "Transpose", names="v w")
    assert "Keys of logical sequences do not match" in str(failure(lambda: album.reader(one, two)))
    assert "same name 'x'" in str(failure(lambda: album.reader(one, one)))


# ------------------------------------------------------------------------------------------------------- base64

BASE64 = {
    "": "is empty",
    "iVBORw==\n": "line 1 has no picture in it",
    "0\t\n": "line 1 has no picture in it",
    "0\tAAAA\n\n": "line 2 has no picture in it",
    "cat\tAAAA\n": "Cannot parse label value on line 1",
    "5\tAAAA\n": "line 1 in file",
    "0\tAAA\n": "which is not a multiple of 4",
    "0\tAA*A\n": "is not base64",
    "0\tAAAA\n": "no known format",
    "cat\t0\tAAAA\n0\tAAAA\n": "line 2 has no picture in it",
}


@pytest.mark.parametrize("text", BASE64)
def test_bad_base64_file(album, text):
    file = album.write("b.txt", text)
    section = album.section(str(file), "Scale width=2 height=2 channels=3", 3, "Base64ImageDeserializer")
    error = failure(lambda: album.reader(section))
    assert BASE64[text] in str(error) and "b.txt" in str(error), str(error)


# ------------------------------------------------------------------------------------------------------- settings

SETTINGS = {
    "Flip": "'Flip' is not one of Crop, Scale",
    "Scal width=2 height=2 channels=3": "did you mean 'Scale'",
    "Scale width=2 channels=3": "height is missing",
    "Scale width=0 height=2 channels=3": "0 is not a size of pictures",
    "Scale width=2 height=2 channels=4": "not 4",
    "Scale width=2 height=2 channels=1": "channels: is 1, but pictures are read with 3",
    "Scale width=2 height=2 channels=3 interpolations=area": "'area' is not one of nearest",
    "Scale width=2 height=2 channels=3 scaleMode=stretch": "'stretch' is not one of fill",
    "Scale width=2 height=2 channels=3 padValue=256": "256 is not a value of pixels",
    "Crop cropType=left": "'left' is not one of center",
    "Crop sideRatio=1.5": "1 at most",
    "Crop sideRatio=0.5:0.2": "not an ascending range",
    "Crop sideRatio=a": "'a'",
    "Crop sideRatio=0.5 areaRatio=0.5": "exclude each other",
    "Crop aspectRatio=0": "lies above 0",
    "Crop cropSize=5:0": "is not a size",
    "Crop jitterType=uniArea": "not supported",
    "Crop aspectRatioRadius=0.2": "write aspectRatio=low:high",
    "Color brightnessRadius=1.5": "between 0 and 1, not at 1.5",
    "Intensity intensityStdDev=-1": "-1 is not a standard deviation",
    "Transpose, Crop": "Crop cannot follow Transpose",
    "Cast precision=half": "'half' is not one of float, double",
}


@pytest.mark.parametrize("transforms", SETTINGS)
def test_bad_setting(album, transforms):
    error = failure(lambda: album.reader(album.section(album.map("r.png"), transforms)))
    shown = error.diagnostic.render()
    assert SETTINGS[transforms] in shown and error.exit_code == 2 and error.diagnostic.span is not None, shown


@pytest.mark.parametrize(
    ("input", "message"),
    [
        ("y=[labelDim=3]", "'0' features , '1' labels found"),
        ("x=[transforms=()]; v=[transforms=()]; y=[labelDim=3]", "'2' features , '1' labels found"),
        ("x=[transforms=()]; y=[labelDim=3]; z=[labelDim=3]", "'1' features , '2' labels found"),
        ("x=[transforms=()]; y=[labelDim=0]", "0 is not a number of classes"),
    ],
)
def test_bad_streams(album, input, message):
    file = album.map("r.png")
    error = failure(lambda: create_reader(f'deserializers=([type=ImageDeserializer; file="{file}"; input=[{input}]])'))
    assert message in error.diagnostic.render() and error.exit_code == 2


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ("y=[labelDim=3]", "not 0 and 1"),
        ("x=[width=2; height=2; channels=3]; v=[width=2; height=2; channels=3]", "not 2 and 0"),
        ("x=[width=2; height=2]; y=[labelDim=3]", "channels"),
        ("x=[width=2; height=2; channels=3; mbFormat=nwhc]; y=[labelDim=3]", "'nwhc' is not one of nchw"),
    ],
)
def test_bad_old_reader(album, sections, message):
    error = failure(lambda: create_reader(f'readerType=ImageReader; file="{album.map("r.png")}"; {sections}'))
    assert message in error.diagnostic.render() and error.exit_code == 2


def test_pictures_are_not_truncated_sequences(album):
    section = album.section(album.map("r.png"), "Transpose")
    error = failure(lambda: album.reader(section, truncated="true", truncationLength=2))
    assert "pictures cannot be cut into pieces" in error.diagnostic.render() and error.exit_code == 2


def test_no_ten_views_of_base64(album):
    section = album.section("b.txt", "Transpose", 3, "Base64ImageDeserializer", multiViewCrop="true")
    assert "use an ImageDeserializer" in failure(lambda: album.reader(section)).diagnostic.render()


MEANS = {
    "": "is not an XML file of OpenCV",
    "<a>": "is not an XML file of OpenCV",
    "<opencv_storage/>": "has no Channel, Row, Col, MeanImg",
    "<o><Channel>3</Channel><Row>1</Row><Col>1</Col><MeanImg type_id='opencv-matrix'><rows>1</rows><cols>3</cols>"
    "<dt>f</dt><data>1 2</data></MeanImg></o>": "has 2 values, not 1 x 3",
    "<o><Channel>3</Channel><Row>1</Row><Col>2</Col><MeanImg type_id='opencv-matrix'><rows>1</rows><cols>3</cols>"
    "<dt>f</dt><data>1 2 3</data></MeanImg></o>": "MeanImg has 3 values, but Channel * Row * Col is 3 * 1 * 2",
    "<o><Channel>3</Channel><Row>1</Row><Col>1</Col><MeanImg type_id='opencv-matrix'><rows>1</rows><cols>3</cols>"
    "<dt>u</dt><data>1 2 3</data></MeanImg></o>": "is of type 'u', not f or d",
    "<o><MeanImg type_id='opencv-matrix'><rows>x</rows></MeanImg></o>": "is malformed",
    "<o><MeanImg type_id='opencv-matrix'><rows>1</rows><cols>1</cols><dt>f</dt><data>nan</data></MeanImg></o>": (
        "not finite"
    ),
}


@pytest.mark.parametrize("text", MEANS)
def test_bad_mean_file(album, text):
    mean = album.write("mean.xml", text)
    error = failure(lambda: album.reader(album.section(album.map("r.png"), f'Mean meanFile="{mean}"')))
    assert MEANS[text] in str(error) and "mean.xml" in str(error)


def test_missing_mean_file(album):
    error = failure(lambda: album.reader(album.section(album.map("r.png"), "Mean meanFile=none.xml")))
    assert "Could not open file: none.xml" in str(error)


def test_without_opencv(album, monkeypatch):
    import sys

    from cntkpy.readers.formats.image.transforms.opencv import opencv

    opencv.cache_clear()
    monkeypatch.setitem(sys.modules, "cv2", None)
    error = failure(lambda: album.reader(album.section(album.map("r.png"), "Transpose")))
    opencv.cache_clear()
    assert "OpenCV, which is not installed" in str(error) and "add the extra image: " in str(error.diagnostic.hint)

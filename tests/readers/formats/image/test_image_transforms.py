"""Every transform against numbers computed by hand."""

import logging
import math

import numpy as np
import pytest

from cntkpy.readers.common.draws import Draws

from .pictures import BLUE, GREEN, GREYS, RED, WHITE, Album, bmp, png, read

COLORS = [[RED, GREEN], [BLUE, (1, 2, 3)]]


@pytest.fixture
def album(tmp_path) -> Album:
    return Album(tmp_path)


def grey(rows: object) -> np.ndarray:
    return np.array(rows, np.float32)[None, ..., None]


# ------------------------------------------------------------------------------------------------ decoding, layout


def test_without_transforms_pixel_after_pixel_blue_green_red(album):
    got = album.samples("", COLORS)
    assert got.dtype == np.float32 and got.shape == (1, 2, 2, 3)
    assert got.ravel().tolist() == [0, 0, 255, 0, 255, 0, 255, 0, 0, 3, 2, 1]


def test_transpose_gives_planes_blue_green_red(album):
    got = album.samples("Transpose", COLORS)
    assert got.shape == (1, 3, 2, 2)
    assert got.reshape(3, 4).tolist() == [[0, 0, 255, 3], [0, 255, 0, 2], [255, 0, 0, 1]]


def test_bmp_transparency_and_16_bits(album):
    assert album.samples("", bmp(COLORS)).ravel().tolist() == [0, 0, 255, 0, 255, 0, 255, 0, 0, 3, 2, 1]
    assert album.samples("", [[(1, 2, 3, 0), (4, 5, 6, 255)]]).ravel().tolist() == [3, 2, 1, 6, 5, 4]
    sixteen = png([[(0x1200, 0x3400, 0x5600)]], bits=16)
    assert album.samples("", sixteen).ravel().tolist() == [0x56, 0x34, 0x12]


def test_grayscale(album):
    got = album.samples("Transpose", [[(100, 50, 200), WHITE]], grayscale="true")
    assert got.shape == (1, 1, 1, 2)
    assert got.ravel().tolist() == [82, 255]  # 0.299 * 100 + 0.587 * 50 + 0.114 * 200 = 82.05


def test_a_grey_file_read_in_colour_has_three_equal_channels(album):
    assert album.samples("Transpose", [[7, 9]]).reshape(3, 2).tolist() == [[7, 9]] * 3


def test_the_orientation_noted_by_cameras_is_ignored(album):
    import cv2

    picture = np.zeros((16, 48, 3), np.uint8)
    picture[:, :24] = 200
    data = cv2.imencode(".jpg", picture)[1].tobytes()
    tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"  # orientation 6: turned by 90 degrees
    exif = b"Exif\0\0" + tiff
    turned = data[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + data[2:]
    assert cv2.imdecode(np.frombuffer(turned, np.uint8), cv2.IMREAD_COLOR).shape == (48, 16, 3)  # OpenCV's default
    assert album.samples("", turned).shape == (1, 16, 48, 3)


def test_double(album):
    got = album.samples("Cast precision=float, Transpose", COLORS, precision="double")
    assert got.dtype == np.float64 and got.reshape(3, 4)[2].tolist() == [255, 0, 0, 1]


# ------------------------------------------------------------------------------------------------ Crop


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", GREYS),
        ("sideRatio=0.5", [[60, 70], [100, 110]]),
        ("sideRatio=0.5:1", [[60, 70], [100, 110]]),  # without jitterType the lower end counts
        ("areaRatio=0.25", [[60, 70], [100, 110]]),
        ("areaRatio=0.5", [[10, 20, 30], [50, 60, 70], [90, 100, 110]]),  # sqrt(16 * 0.5) = 2.83 -> 3, offset 0
        ("sideRatio=0.625", [[10, 20, 30], [50, 60, 70], [90, 100, 110]]),  # 2.5 is rounded up to 3
        ("cropRatio=0.625", [[60, 70], [100, 110]]),  # 2.5 is cut to 2
        ("cropSize=3:1", [[50, 60, 70]]),  # offsets (4 - 3) // 2 = 0 and (4 - 1) // 2 = 1
        ("cropSize=9:2", [[50, 60, 70, 80], [90, 100, 110, 120]]),
        ("cropSize=2", [[60, 70], [100, 110]]),
        ("cropSize=2:2 sideRatio=1", [[60, 70], [100, 110]]),
    ],
)
def test_crop_from_the_middle(album, options, expected):
    got = album.samples(f"Crop {options}".strip(), GREYS, grayscale="true")
    np.testing.assert_array_equal(got, grey(expected))


def test_crop_by_the_shorter_side(album):
    rows = [[1, 2, 3, 4, 5, 6], [11, 12, 13, 14, 15, 16]]
    assert album.samples("Crop sideRatio=1", rows, grayscale="true")[0, ..., 0].tolist() == [[3, 4], [13, 14]]


def test_multiview(album, caplog):
    got = album.samples("Crop cropType=multiview10 sideRatio=0.5", GREYS, grayscale="true", multiViewCrop="true")
    corners = [
        [[10, 20], [50, 60]],
        [[30, 40], [70, 80]],
        [[90, 100], [130, 140]],
        [[110, 120], [150, 160]],
        [[60, 70], [100, 110]],
    ]
    assert got[..., 0].tolist() == corners + [[row[::-1] for row in corner] for corner in corners]
    assert not caplog.text
    got = album.samples("Crop cropType=multiview10 sideRatio=0.5", GREYS, grayscale="true")
    assert got[..., 0].tolist() == corners[:1]
    assert "the upper left corner of each picture only; for all ten views write multiViewCrop=true" in caplog.text


def test_random_crops_are_parts_and_reach_all_places(album):
    rows = [[16 * y + x for x in range(4)] for y in range(4)]
    got = album.samples("Crop cropType=randomside sideRatio=0.5", *[rows] * 200, grayscale="true")[..., 0]
    seen = set()
    for cut in got.astype(int).tolist():
        flipped = cut[0][1] < cut[0][0]
        left, top = cut[0][1 if flipped else 0] % 16, cut[0][0] // 16
        part = [[16 * (top + j) + left + i for i in range(2)] for j in range(2)]
        assert cut == ([row[::-1] for row in part] if flipped else part)
        seen.add((left, top, flipped))
    assert seen == {(x, y, f) for x in range(3) for y in range(3) for f in (False, True)}


def test_hflip_can_be_switched(album):
    rows = [[1, 2], [3, 4]]
    off = album.samples("Crop cropType=randomside hflip=false", *[rows] * 30, grayscale="true")
    assert (off[..., 0] == rows).all()
    on = album.samples("Crop hflip=true", *[rows] * 30, grayscale="true")
    assert {tuple(one.ravel()) for one in on} == {(1, 2, 3, 4), (2, 1, 4, 3)}


@pytest.mark.parametrize("kind", ["randomside", "randomArea", "center"])
def test_jitter_draws_sides_between_the_ratios(album, kind):
    rows = [[0] * 40 for _ in range(40)]
    name, low, high = ("areaRatio", 0.25, 1) if kind == "randomArea" else ("sideRatio", 0.5, 1)
    album.write("a.png", rows)
    reader = album.reader(
        album.section(
            album.map("a.png"),
            f"Crop cropType={kind} {name}={low}:{high} jitterType=uniRatio, Scale width=1 height=1 channels=1",
            grayscale="true",
        ),
    )
    crop = reader.source.pictures[0][0].chain.transforms[0]
    sides = [crop.apply(np.zeros((40, 40), np.uint8), Draws(0, 0, i)).shape for i in range(300)]
    reader.close()
    assert all(h == w for h, w in sides)
    widths = [w for _, w in sides]
    assert min(widths) in (20, 21) and max(widths) in (39, 40) and 28 < np.mean(widths) < 33


def test_aspect_ratio_keeps_the_area_and_turns_half_of_the_time(album):
    from cntkpy.readers.formats.image.transforms.crop import Crop

    crop = Crop(side=(0.5, 0.5), aspect=(0.25, 0.25))
    shapes = [crop.apply(np.zeros((100, 100), np.uint8), Draws(0, 0, i)).shape for i in range(100)]
    assert set(shapes) == {(100, 25), (25, 100)}
    assert 30 < shapes.count((25, 100)) < 70
    wide = Crop(side=(1.0, 1.0), aspect=(0.25, 0.25))  # 50 x 200 does not fit into 100 x 100: all of it
    assert wide.apply(np.zeros((100, 100), np.uint8), Draws()).shape == (100, 100)


# ------------------------------------------------------------------------------------------------ Scale


@pytest.mark.parametrize(
    ("how", "rows", "width", "expected"),
    [
        ("nearest", [[10, 20, 30, 50]], 2, [[10, 30]]),
        ("nearest", [[10, 50]], 4, [[10, 10, 50, 50]]),
        ("linear", [[10, 20, 30, 50]], 2, [[15, 40]]),  # halves: centres of pixels lie between two
        ("linear", [[10, 50]], 4, [[10, 20, 40, 50]]),  # quarters, and the edge beyond the centres
        ("LINEAR", [[0, 100, 0, 0, 0, 0, 0, 0]], 2, [[0, 0]]),  # no smoothing: taps at 1.5 -> pixels 1 and 2
        ("cubic", [[0, 32, 64, 254]], 2, [[13, 162]]),  # weights -3/32, 19/32, 19/32, -3/32
    ],
)
def test_scale_in_one_direction(album, how, rows, width, expected):
    if how == "LINEAR":  # eight to two: the centre 1.5 lies between pixels 1 and 2
        expected = [[50, 0]]
    got = album.samples(f"Scale width={width} height=1 channels=1 interpolations={how}", rows, grayscale="true")
    assert got[0, ..., 0].tolist() == expected


def test_scale_linear_in_both_directions(album):
    got = album.samples("Scale width=2 height=2 channels=3, Transpose", [[RED] * 4] * 2 + [[WHITE] * 4] * 2)
    assert got[0].tolist() == [[[0, 0], [255, 255]], [[0, 0], [255, 255]], [[255, 255], [255, 255]]]
    one = album.samples("Scale width=1 height=1 channels=1", GREYS, grayscale="true")
    assert one.ravel().tolist() == [85]  # the mean of 60, 70, 100, 110


WIDE = [[1, 2, 3, 4], [5, 6, 7, 8]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("width=2 height=2 scaleMode=crop", [[2, 3], [6, 7]]),
        ("width=4 height=4 scaleMode=pad padValue=9", [[9] * 4, *WIDE, [9] * 4]),
        ("width=4 height=5 scaleMode=pad padValue=0", [[0] * 4, *WIDE, [0] * 4, [0] * 4]),  # 3 // 2 before
        ("width=4 height=4 scaleMode=pad", [WIDE[0], *WIDE, WIDE[1]]),
        ("width=8 height=2 scaleMode=fill", [[n for n in row for _ in range(2)] for row in WIDE]),
    ],
)
def test_scale_modes(album, options, expected):
    got = album.samples(f"Scale {options} channels=1 interpolations=nearest", WIDE, grayscale="true")
    assert got[0, ..., 0].tolist() == expected


def test_scale_rounds_the_other_side_half_up(album):
    rows = [[7] * 4 for _ in range(5)]  # 4 x 5 -> 2 wide: 2.5 high becomes 3
    got = album.samples("Scale width=2 height=3 channels=1 scaleMode=crop", rows, grayscale="true")
    assert got.shape == (1, 3, 2, 1)


# ------------------------------------------------------------------------------------------------ Mean

MEAN = """<?xml version="1.0" ?>
<opencv_storage>
  <Channel>3</Channel> <Row>1</Row> <Col>2</Col>
  <MeanImg type_id="opencv-matrix"><rows>1</rows><cols>6</cols><dt>f</dt>
    <data>1. 2.5 3e0 10 20 30</data></MeanImg>
</opencv_storage>
"""


def test_mean_is_subtracted_pixel_by_pixel_in_floats(album):
    mean = album.write("mean.xml", MEAN)
    got = album.samples(f'Mean meanFile="{mean}", Transpose', [[(0, 100, 255), (30, 20, 10)]])
    assert got.reshape(3, 2).tolist() == [[254, 0], [97.5, 0], [-3, 0]]
    double = album.samples(f'Cast precision=double, Mean meanFile="{mean}"', [[RED, RED]], precision="double")
    assert double.ravel().tolist() == [-1, -2.5, 252, -10, -20, 225]


def test_a_mean_of_another_size_is_left_out_with_a_warning(album, caplog):
    mean = album.write("mean.xml", MEAN)
    with caplog.at_level(logging.WARNING, "cntkpy.readers"):
        got = album.samples(f'Scale width=2 height=2 channels=3, Mean meanFile="{mean}"', *[[[RED, RED]]] * 3)
    assert got.max() == 255
    assert caplog.text.count("1 x 2 x 3, but pictures are 2 x 2 x 3") == 1


def test_written_mean_files_are_read_by_opencv_and_by_us(tmp_path):
    import cv2

    from cntkpy.readers.formats.image.storage import read_mean, write_mean

    mean = np.arange(24, dtype=np.float32).reshape(2, 4, 3) / 7
    write_mean(str(tmp_path / "mean.xml"), mean)
    store = cv2.FileStorage(str(tmp_path / "mean.xml"), cv2.FILE_STORAGE_READ)
    assert [store.getNode(name).real() for name in ("Channel", "Row", "Col")] == [3, 2, 4]
    np.testing.assert_array_equal(store.getNode("MeanImg").mat().ravel(), mean.ravel())
    np.testing.assert_array_equal(read_mean(str(tmp_path / "mean.xml")), mean)


# ------------------------------------------------------------------------------------------------ Color, Intensity


def test_brightness_adds_a_part_of_the_mean(album):
    rows = [[100, 50], [60, 90]]  # mean 75
    got = album.samples("Color brightnessRadius=0.4", *[rows] * 50, grayscale="true")[..., 0]
    shifts = got - np.array(rows)
    assert np.ptp(shifts.reshape(50, -1), axis=1).max() < 1e-4  # the same for all pixels
    parts = shifts[:, 0, 0] / 75
    assert np.abs(parts).max() <= 0.4 and parts.min() < -0.3 and parts.max() > 0.3
    assert math.isclose(parts[0], Draws(0, 0, 0, 2).uniform(-0.4, 0.4), rel_tol=1e-5)


def test_contrast_multiplies_and_values_stay_within_0_and_255(album):
    got = album.samples("Color contrastRadius=1", *[[[200, 100, 0]]] * 50, grayscale="true")[:, 0, :, 0]
    factors = got[:, 1] / 100
    assert factors.min() < 0.2 and factors.max() > 1.8
    np.testing.assert_allclose(got[:, 0], np.minimum(200 * factors, 255), rtol=1e-5)
    assert (got[:, 2] == 0).all()


def test_saturation_moves_the_smaller_channels_only(album):
    got = album.samples("Color saturationRadius=0.5", *[[[(200, 100, 100), (70, 70, 70)]]] * 40)
    np.testing.assert_allclose(got[:, 0, 1], 70, rtol=1e-5)
    blue, green, red = got[:, 0, 0].T
    np.testing.assert_allclose(red, 200, rtol=1e-4)
    np.testing.assert_allclose(green, blue, rtol=1e-4)
    factors = (200 - blue) / 100  # saturation was (200 - 100) / 200
    assert 0.5 <= factors.min() < 0.6 and 1.4 < factors.max() <= 1.5


def test_radii_may_be_lists_with_a_value_for_each_sweep(album):
    """D9: the last value repeats."""
    album.write("a.png", [[100, 50], [60, 90]])
    section = album.section(album.map("a.png"), "Color brightnessRadius=0:0.4", grayscale="true")
    sweeps = [read(album.reader(section, randomize="false"), 10, epoch)[0].streams["x"].ravel() for epoch in range(3)]
    assert sweeps[0].tolist() == [100, 50, 60, 90]
    for sweep in (1, 2):
        shift = sweeps[sweep] - sweeps[0]
        assert np.ptp(shift) < 1e-4
        assert math.isclose(shift[0] / 75, Draws(0, sweep, 0, 2).uniform(-0.4, 0.4), rel_tol=1e-4)


def test_color_without_radii_changes_nothing(album):
    assert album.samples("Color", COLORS).ravel().tolist() == [0, 0, 255, 0, 255, 0, 255, 0, 0, 3, 2, 1]


def test_intensity_shifts_along_the_axes_of_colours(album):
    axes = album.write(
        "axes.xml",
        "<opencv_storage><EigVal type_id='opencv-matrix'><rows>1</rows><cols>3</cols><dt>f</dt><data>1 10 100</data>"
        "</EigVal><EigVec type_id='opencv-matrix'><rows>3</rows><cols>3</cols><dt>f</dt><data>1 0 0 0 1 0 0 0 1</data>"
        "</EigVec></opencv_storage>",
    )
    got = album.samples(f'Intensity intensityStdDev=0.2 intensityFile="{axes}" seed=3', [[(120, 120, 120)]])
    draws = Draws(3, 0, 0, 3)
    red, green, blue = (120 + draws.normal(0.2) * size for size in (1, 10, 100))
    np.testing.assert_allclose(got.ravel(), [blue, green, red], rtol=1e-5)


def test_draws_are_uniform_and_normal():
    values = [Draws(0, 0, i).uniform(-1, 1) for i in range(2000)]
    assert abs(np.mean(values)) < 0.05 and abs(np.var(values) - 1 / 3) < 0.03
    normal = [Draws(1, 2, i).normal(2.0) for i in range(2000)]
    assert abs(np.mean(normal)) < 0.15 and abs(np.std(normal) - 2) < 0.1
    assert {Draws(5, i).up_to(3) for i in range(100)} == {0, 1, 2, 3}
    one, two = Draws(1, 2, 3, 4), Draws(1, 2, 3, 4)
    assert [one.coin() for _ in range(9)] == [two.coin() for _ in range(9)]
    keys = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    assert len({Draws(*key).uniform(0, 1) for key in keys}) == 5

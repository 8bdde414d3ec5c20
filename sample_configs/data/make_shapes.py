"""Makes up the pictures of the image sample: circles, squares, triangles and crosses in random colours, seeded.

    python sample_configs/data/make_shapes.py

Writes shapes.zip with small PNG files, shapes_train.map and shapes_test.map, and shapes.names. The mean picture is made
by `cntkpy convert --mean configFile=sample_configs/images.cntk train sample_configs/data/shapes_mean.xml`.
"""

import zipfile
from pathlib import Path

import cv2
import numpy as np

HERE = Path(__file__).parent
NAMES = ("circle", "square", "triangle", "cross")
SIDE, LARGE = 24, 8


def draw(kind: int, rng: np.random.Generator) -> np.ndarray:
    """A shape on a background of another colour, with some noise; drawn large and made small, so edges are smooth."""
    colors = rng.integers(0, 256, (2, 3))
    while np.abs(colors[0].mean() - colors[1].mean()) < 60:
        colors = rng.integers(0, 256, (2, 3))
    picture = np.empty((SIDE * LARGE, SIDE * LARGE, 3), np.uint8)
    picture[:] = colors[0]
    color = colors[1].tolist()
    radius = int(rng.uniform(5, 8) * LARGE)
    x, y = (int(v) for v in rng.uniform(radius + 2 * LARGE, (SIDE - 2) * LARGE - radius, 2))
    if kind == 0:
        cv2.circle(picture, (x, y), radius, color, -1)
    elif kind == 1:
        cv2.rectangle(picture, (x - radius, y - radius), (x + radius, y + radius), color, -1)
    elif kind == 2:
        corners = np.array([(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)])
        cv2.fillPoly(picture, [corners], color)
    else:
        for ends in (((x - radius, y), (x + radius, y)), ((x, y - radius), (x, y + radius))):
            cv2.line(picture, *ends, color, radius // 2)
    small = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.clip(small + rng.normal(0, 2, small.shape), 0, 255).astype(np.uint8) // 16 * 16


def main() -> None:
    """Write all files."""
    rng = np.random.default_rng(9)
    with zipfile.ZipFile(HERE / "shapes.zip", "w") as archive:
        for name, count in (("train", 320), ("test", 80)):
            lines = []
            for i in range(count):
                kind = i % len(NAMES)
                data = cv2.imencode(".png", draw(kind, rng), [cv2.IMWRITE_PNG_COMPRESSION, 9])[1].tobytes()
                archive.writestr(zipfile.ZipInfo(f"{name}/{i:03d}.png", (2016, 11, 1, 0, 0, 0)), data)
                lines.append(f".../shapes.zip@/{name}/{i:03d}.png\t{kind}\n")
            (HERE / f"shapes_{name}.map").write_text("".join(lines))
    (HERE / "shapes.names").write_text("".join(f"{name}\n" for name in NAMES))


if __name__ == "__main__":
    main()

"""OpenCV's XML files of matrices: mean pictures, axes of colours."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np

from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.writing import output_file
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.image.transforms.opencv import opencv


def read_matrices(path: str) -> dict[str, np.ndarray]:
    """Return all matrices float64 (rows, cols), and numbers as arrays (1, 1), by name."""
    try:
        root = ElementTree.fromstring(read_input(path))
    except OSError as error:
        raise DataError(f"Could not open file: {path}: {error.strerror or error}", path=path) from None
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(
            f"{path} is not an XML file of OpenCV: {error}", path=path, hint="`cntkpy convert --mean` makes mean files"
        ) from None
    arrays: dict[str, np.ndarray] = {}
    for node in root:
        if node.get("type_id") == "opencv-matrix":
            arrays[node.tag] = _matrix(node, path)
        elif node.text and len(node) == 0:
            try:
                number = float(node.text)
            except ValueError:
                continue
            if not math.isfinite(number):
                raise DataError(f"{path}: {node.tag} is '{node.text}', not a finite number.", path=path)
            arrays[node.tag] = np.array([[number]])
    return arrays


def _matrix(node: ElementTree.Element, path: str) -> np.ndarray:
    try:
        rows, columns = int(node.findtext("rows", "")), int(node.findtext("cols", ""))
        kind = node.findtext("dt", "").strip().strip('"')
        values = np.array(node.findtext("data", "").split(), np.float64)
    except ValueError as error:
        raise DataError(f"{path}: the matrix {node.tag} is malformed: {error}", path=path) from None
    if kind not in ("f", "d"):
        raise DataError(f"{path}: the matrix {node.tag} is of type '{kind}', not f or d.", path=path)
    if rows < 1 or columns < 1 or rows * columns != len(values):
        raise DataError(f"{path}: the matrix {node.tag} has {len(values)} values, not {rows} x {columns}.", path=path)
    if not np.isfinite(values).all():
        raise DataError(f"{path}: the matrix {node.tag} has values that are not finite.", path=path)
    return values.reshape(rows, columns)


def read_mean(path: str) -> np.ndarray:
    """Return a mean picture, float32 (height, width, channels), or (height, width) if it has one channel."""
    matrices = read_matrices(path)
    missing = [name for name in ("Channel", "Row", "Col", "MeanImg") if name not in matrices]
    if missing:
        raise DataError(
            f"{path} has no {', '.join(missing)}.",
            path=path,
            hint="a mean file has Channel, Row, Col and the matrix MeanImg; `cntkpy convert --mean` makes one",
        )
    channels, rows, columns = (int(matrices[name][0, 0]) for name in ("Channel", "Row", "Col"))
    values = matrices["MeanImg"]
    if min(channels, rows, columns) < 1 or values.size != channels * rows * columns:
        raise DataError(
            f"{path}: MeanImg has {values.size} values, but Channel * Row * Col is {channels} * {rows} * {columns}.",
            path=path,
        )
    mean = values.astype(np.float32).reshape(rows, columns, channels)
    return mean[..., 0] if channels == 1 else mean


def read_axes(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the main axes of colours: how far they reach float64[3], and their directions float64[3, 3], a column
    each.
    """
    matrices = read_matrices(path)
    for name, size in (("EigVal", 3), ("EigVec", 9)):
        if name not in matrices or matrices[name].size != size:
            raise DataError(f"{path} has no matrix {name} of {size} values.", path=path)
    return matrices["EigVal"].reshape(3), matrices["EigVec"].reshape(3, 3)


def write_mean(path: str, mean: np.ndarray) -> None:
    """Write a mean picture (height, width[, channels]); the file appears only when it is complete."""
    cv2 = opencv()
    mean = np.asarray(mean, np.float32)
    rows, columns, channels = (*mean.shape, 1)[:3]
    store = cv2.FileStorage(".xml", cv2.FileStorage_WRITE | cv2.FileStorage_MEMORY | cv2.FileStorage_FORMAT_XML)
    for name, number in (("Channel", channels), ("Row", rows), ("Col", columns)):
        store.write(name, number)
    store.write("MeanImg", mean.reshape(1, -1))
    text = store.releaseAndGetString()
    with output_file(path) as file:
        file.write(text.encode())

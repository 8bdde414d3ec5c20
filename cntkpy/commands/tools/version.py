"""`cntkpy --version --verbose`: what a report of a defect needs, nothing that names a person or a machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, entry_points, version

from cntkpy import __version__

BASE = ("click", "lark", "rich")
EXTRAS = (
    "numpy", "scipy", "numba", "jax", "jaxlib", "safetensors", "opencv-python-headless", "pyarrow", "zstandard",
    "fsspec", "aiohttp", "onnx", "onnxruntime", "matplotlib", "optuna", "pygls", "tensorboardX", "mlflow-skinny",
)  # fmt: skip
"""The packages that the extras name."""
VARIABLES = ("JAX_PLATFORMS", "XLA_FLAGS", "JAX_ENABLE_X64", "NUMBA_DISABLE_JIT", "OMP_NUM_THREADS")
"""Environment variables that change what cntkpy computes, or how fast."""


def describe(verbose: bool) -> str:
    """Return the version; with `verbose` also system, Python, packages, plug-ins and variables, one a line."""
    first = f"cntkpy {__version__}\n"
    return first + "".join(f"  {name:24} {text}\n" for name, text in _facts()) if verbose else first


def _facts() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", f"{platform.system()} {platform.release()}"
    yield "machine", f"{platform.machine()}, {os.cpu_count()} CPU cores"
    yield "encoding", f"{sys.stdout.encoding}, file names {sys.getfilesystemencoding()}"
    for name in (*BASE, *EXTRAS):
        yield name, _version(name)
    groups = sorted(group for group in entry_points().groups if group.startswith("cntkpy."))
    for group in groups:
        for point in entry_points(group=group):
            yield group, f"{point.name} = {point.value}"
    for name in VARIABLES:
        if name in os.environ:
            yield name, os.environ[name]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"

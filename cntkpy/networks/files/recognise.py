"""Which files are models."""

from cntkpy.cntk_config.base.files import open_input
from cntkpy.networks.files.cntk_binary.recognise import is_cntk, is_onnx

_GRAPH = b'"cntkpy"'
"""A metadata entry that our models have."""


def is_model(word: str) -> bool:
    """Return whether a word of the command line names a model file rather than a configuration."""
    if is_cntk(word) or is_onnx(word):
        return True
    try:
        with open_input(word) as file:
            start = file.read(200)
    except (OSError, ValueError):
        return False
    return start[8:9] == b"{" and b"\0" in start[:8] and _GRAPH in start

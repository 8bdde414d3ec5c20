"""cntk.persist: how betas of CNTK 2.0 wrote and read models."""

from pathlib import Path

from cntkpy.networks.builders.python.functions.function import Function, load_model

from .missing import no_attribute, warn_beta

warn_beta("cntk.persist", "z.save(path) and cntk.load_model")


def save_model(root_op: Function, filename: str | Path) -> None:
    """Write a model file; see `Function.save`."""
    root_op.save(filename)


__all__ = ["load_model", "save_model"]

__getattr__ = no_attribute("cntk.persist", __all__)

"""cntk.sample_installer: in CNTK it loads its examples from the network."""

from typing import Any

from cntkpy.cntk_config import UserError

from .missing import no_attribute


def install_samples(url: str | None = None, directory: str | None = None, quiet: bool = False) -> Any:
    """Not there: nothing is loaded from the network.

    Raises:
        UserError: Always.
    """
    message = "install_samples: the examples of CNTK are not loaded from the network"
    raise UserError("NotSupported", message, hint="`cntkpy new` makes configurations with data to begin with")


__all__ = ["install_samples"]

__getattr__ = no_attribute("cntk.sample_installer", __all__)

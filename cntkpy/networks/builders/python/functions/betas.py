"""Names of the betas of CNTK 2.0: methods of functions, and the warning that all of them share."""

from __future__ import annotations

import warnings

METHODS = {"restore_model": "restore", "save_model": "save"}
"""By name of a method of functions in a beta, its name in CNTK 2.7."""


def warn_beta(name: str, instead: str, stacklevel: int = 2) -> None:
    """Warn once of a name that betas of CNTK 2.0 had.

    Args:
        name: the name.
        instead: that of CNTK 2.7.
        stacklevel: how many callers up the place is that the warning names.

    Warns:
        DeprecationWarning: always; Python shows it once.
    """
    message = f"{name} was a name of the betas of CNTK 2.0: use {instead}"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)

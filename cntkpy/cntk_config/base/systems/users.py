"""Who owns files. Windows has lists of permissions in place of owners and modes, which Python does not read."""

from __future__ import annotations

import os

NOBODY = 65534
"""Who owns, inside a container or on a network mount, what belongs to users that the system does not know."""


def own_number() -> int | None:
    """Return the number of the user of this process; None where files have no owners that Python knows."""
    return os.geteuid() if hasattr(os, "geteuid") else None

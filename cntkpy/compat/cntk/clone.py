"""How `Function.clone` treats parameters."""

from enum import Enum


class CloneMethod(Enum):
    """The methods of `Function.clone`."""

    share = "share"
    clone = "clone"
    freeze = "freeze"

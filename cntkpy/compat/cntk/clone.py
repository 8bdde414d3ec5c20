"""Words of methods of `Function`."""

from enum import Enum


class CloneMethod(Enum):
    """The methods of `Function.clone`."""

    share = "share"
    clone = "clone"
    freeze = "freeze"


class ModelFormat(Enum):
    """File formats of `Function.save`."""

    CNTKv2 = "CNTKv2"
    ONNX = "ONNX"

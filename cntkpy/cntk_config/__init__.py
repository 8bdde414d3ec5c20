"""The configuration language of CNTK v1: text that becomes parameters when it is asked for.

    from cntkpy.cntk_config import load, parse

    config = load(["configFile=train.cntk", "train=[SGD=[maxEpochs=3]]"])
    sgd = config.section("train").section("SGD")
    epochs = int(sgd("maxEpochs"))
    rates = sgd.array("learningRatesPerMB").floats()      # rates[100] is the last one listed

Everything wrong raises `ConfigError`, which knows the place in the user's file. See docs/config-language.md.
"""

from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span, UserError, nearest, suggestion
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.cntk_config.command_line import has_config_file, load
from cntkpy.cntk_config.definitions import Origin
from cntkpy.cntk_config.parameters import ConfigArray, ConfigParameters, ConfigValue, parse, read_text_file

__all__ = [
    "ConfigArray", "ConfigError", "ConfigParameters", "ConfigValue", "Diagnostic", "Origin", "PerEpoch", "Span",
    "UserError", "atomic_write", "has_config_file", "load", "nearest", "parse", "read_text_file", "suggestion",
]  # fmt: skip

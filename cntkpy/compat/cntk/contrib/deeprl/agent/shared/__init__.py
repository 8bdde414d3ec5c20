"""cntk.contrib.deeprl.agent.shared: what agents share."""

from .....missing import no_attribute
from . import cntk_utils, customized_models, models

__all__ = ["cntk_utils", "customized_models", "models"]

__getattr__ = no_attribute("cntk.contrib.deeprl.agent.shared", __all__)

"""cntk.contrib.crosstalk: the same values in two toolkits, one in each program, by files in a folder that both know.

Each toolkit has a module, `crosstalk_cntk` and `crosstalk_pytorch`, with an `instance`. Both programs watch what
belongs together under the same names; one saves values, the other assigns them to its own variables or compares.
"""

from ...missing import no_attribute
from .exchange import Crosstalk
from .forms import Conv2DArgs, Conv2DAttr, EmbedAttr, FuncInfo, RnnArgs, RnnAttr, VarInfo

__all__ = ["Conv2DArgs", "Conv2DAttr", "Crosstalk", "EmbedAttr", "FuncInfo", "RnnArgs", "RnnAttr", "VarInfo"]

__getattr__ = no_attribute("cntk.contrib.crosstalk", [*__all__, "crosstalk_cntk", "crosstalk_pytorch"])

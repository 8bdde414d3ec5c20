"""The native module of CNTK 2, as far as programs use it by this name."""

import sys

import cntkpy.compat.cntk.cntk_py

sys.modules["_cntk_py"] = cntkpy.compat.cntk.cntk_py

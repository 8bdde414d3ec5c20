"""The package `cntk` of CNTK 2, computed by cntkpy: this module becomes `cntkpy.compat.cntk`."""

import sys

import cntkpy.compat.cntk
from cntkpy.compat import install

install()
sys.modules["cntk"] = cntkpy.compat.cntk

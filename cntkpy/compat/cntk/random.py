"""cntk.random: numbers drawn at random inside of a network."""

from cntkpy.networks.builders.python.operations.random import (
    bernoulli,
    bernoulli_like,
    gumbel,
    gumbel_like,
    normal,
    normal_like,
    uniform,
    uniform_like,
)

from .missing import no_attribute

__all__ = ["bernoulli", "bernoulli_like", "gumbel", "gumbel_like", "normal", "normal_like", "uniform", "uniform_like"]

__getattr__ = no_attribute("cntk.random", __all__)

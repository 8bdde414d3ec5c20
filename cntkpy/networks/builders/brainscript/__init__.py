"""BrainScript: networks described in a lazy functional language.

language/   text -> syntax tree -> lazily evaluated values. Needs neither NumPy nor JAX.
library/    the functions every program sees: `core.bs`, written in BrainScript, documented function by function.
"""

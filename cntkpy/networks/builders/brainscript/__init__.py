"""BrainScript: networks described in a lazy functional language.

language/   text -> syntax tree -> lazily evaluated values. Needs neither NumPy nor JAX.
library/    `core.bs`: layers, numbers, namespaces, written in BrainScript; functions of nodes are in their families.
"""

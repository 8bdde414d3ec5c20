"""JAX is imported on first use, and nothing else of a program changes by that."""

import subprocess
import sys

import pytest

PROGRAM = """
import random
import numpy as np
import cntkpy.compat.cntk as C
from cntkpy.networks.arrays import lazy

np.random.seed(1), random.seed(1)
{use}
print(np.random.randint(1 << 30), random.getrandbits(30))
"""

USES = {
    "nothing": "",
    "training": "x = C.input_variable(2); z = C.layers.Dense(1)(x)\n"
    "C.Trainer(z, (C.reduce_sum(z),), [C.sgd(z.parameters, 0.1)]).train_minibatch({x: np.ones((1, 2))})",
    "a callback": "lazy.imported('jax.experimental')",
    "a checkpoint": "lazy.checkpoint_name(np.ones(1), 'x')",
    "jax.numpy": "lazy.jnp.ones(1)",
    "a part that only parallel training needs": "lazy.imported('jax._src.clusters')",
}


@pytest.mark.thorough
def test_importing_jax_keeps_the_state_of_random_numbers() -> None:
    """A program that seeds NumPy draws the same numbers whether JAX was imported before or not (P1)."""
    found = {}
    for name, use in USES.items():
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(use=use)], capture_output=True, text=True, check=True
        )
        found[name] = run.stdout
    assert set(found.values()) == {found["nothing"]}

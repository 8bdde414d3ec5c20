"""What we need of JAX without a public name is there, in the JAX that is installed; what is missing is named."""

import inspect

import jax
import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.trainers.parallel import jax_internals
from cntkpy.trainers.parallel.jax_internals import NEEDED, Internal


@pytest.mark.parametrize("internal", NEEDED, ids=lambda one: f"{one.module}.{one.name}")
def test_this_jax_has(internal: Internal) -> None:
    try:
        jax_internals.found(internal)
    except UserError as error:
        pytest.fail(
            f"JAX {jax.__version__} has no {internal.module}.{internal.name}: {internal.purpose}. Find its name now, "
            f"or a public one, and mend trainers/parallel/jax_internals.py. ({error})"
        )


def test_all_that_is_used_is_listed() -> None:
    """Names of modules stand in `NEEDED` and nowhere else."""
    text = inspect.getsource(jax_internals)
    used = {one for one in vars(jax_internals).values() if isinstance(one, Internal)}
    assert used - {jax_internals.STATE} <= set(NEEDED)
    assert text.count("imported(") == 1 and "import_module" not in text


@pytest.mark.parametrize("module, name", [("jax._src.nothing", "a.b"), ("jax._src.distributed", "global_state.b")])
def test_what_is_missing_is_named(module: str, name: str) -> None:
    with pytest.raises(UserError) as told:
        jax_internals.found(Internal(module, name, "some purpose"))
    assert str(told.value).endswith(
        f"parallel training does not know JAX {jax.__version__}: there is no {module}.{name} (some purpose)"
    ), str(told.value)
    assert "pip install" in str(told.value.hint)


def test_the_signatures_that_are_used() -> None:
    """Of what is written in Python; the rest is called in every run of several workers."""
    inspect.signature(jax_internals.found(jax_internals.DETECT)).bind(None, 2, 0, None, None, 360)
    inspect.signature(jax_internals.found(jax_internals.CPU_CLIENT)).bind(object())
    inspect.signature(jax_internals.found(jax_internals.REGISTER)).bind("cpu", print, priority=0, fail_quietly=False)

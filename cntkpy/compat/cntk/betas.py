"""Modules that betas of CNTK 2.0 had under other names: aliases, each with one deprecation warning."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from cntkpy.networks.builders.python.functions.betas import warn_beta

PACKAGE = "cntkpy.compat.cntk"

BETAS = {
    "blocks": "layers.blocks",
    "debug": "debugging.debug",
    "graph": "logging.graph",
    "learner": "learners",
    "minibatch_source": "io",
    "models": "layers.higher_order_layers",
    "ops.record": "variables",
    "ops.variables": "variables",
    "profiler": "debugging.profiler",
    "trainer": "train.trainer",
    "typing": "layers.typing",
    "utils.progress_print": "logging.progress_print",
    "utils.swig_helper": "internal.swig_helper",
}
"""By name in a beta, the name in CNTK 2.7; both without the package."""

OLDER_NAMES = {"blocks": {"Input": "input_variable", "Parameter": "parameter", "Placeholder": "placeholder"}}
"""Operators that a module of a beta had under other names."""


OLDER_DEFAULTS: dict[str, Callable[[], object]] = {
    "activation_default_or_None": lambda: None,
    "bias_default_or_True": lambda: True,
    "init_bias_default_or_0": lambda: 0,
    "init_default_or_glorot_uniform": lambda: vars(sys.modules[f"{PACKAGE}.initializer"])["glorot_uniform"](),
    "initial_state_default_or_None": lambda: None,
    "pad_default_or_False": lambda: False,
}
"""Defaults that betas gave the arguments of layers, by name, and what they are without `default_options`."""


def _layer_stack(count: int, constructor: Callable[..., object]) -> Any:
    """Return a number of layers that a function makes, one after another."""
    return vars(sys.modules[f"{PACKAGE}.layers"])["For"](range(count), constructor)


def older_member(module: str, name: str) -> Any:
    """Return what betas of CNTK 2.0 had under a name that the module lacks now; None for other names.

    Warns:
        DeprecationWarning: the name is one of these.
    """
    layers = vars(sys.modules[f"{PACKAGE}.layers"])
    if (module, name) == ("cntk.layers", "LayerStack"):
        warn_beta("cntk.layers.LayerStack(n, ...)", "cntk.layers.For(range(n), ...)")
        return _layer_stack
    if name in OLDER_DEFAULTS and module in ("cntk", "cntk.layers"):
        warn_beta(f"{module}.{name}", "cntk.default_options.default_override_or(value)")
        return vars(sys.modules[f"{PACKAGE}.default_options"])["default_override_or"](OLDER_DEFAULTS[name]())
    if module == "cntk" and name in sys.modules[f"{PACKAGE}.layers.layers"].__all__:
        warn_beta(f"cntk.{name}", f"cntk.layers.{name}")
        return layers[name]
    return None


NoAttribute = Callable[[str, Iterable[str]], Callable[[str], Any]]


class BetaLoader(Loader):
    """Loads a module of a beta: the names of the module that took its place.

    Args:
        name: Its name without the package, of `BETAS`.
        no_attribute: Makes the `__getattr__` of a module from its name and the names that it has.
    """

    def __init__(self, name: str, no_attribute: NoAttribute) -> None:
        self._name = name
        self._no_attribute = no_attribute

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return an empty module."""
        return ModuleType(spec.name, f"cntk.{self._name}: the name that betas of CNTK 2.0 had.")

    def exec_module(self, module: ModuleType) -> None:
        """Fill in the names.

        Warns:
            DeprecationWarning: Always.
        """
        warn_beta(f"cntk.{self._name}", f"cntk.{BETAS[self._name]}")
        target = importlib.import_module(f"{PACKAGE}.{BETAS[self._name]}")
        operators = vars(sys.modules[f"{PACKAGE}.ops"])
        names: Mapping[str, Any] = {key: value for key, value in vars(target).items() if not key.startswith("__")}
        older = {name: operators[now] for name, now in OLDER_NAMES.get(self._name, {}).items()}
        listed = [*vars(target)["__all__"], *older]
        vars(module).update(
            names, **older, __all__=listed, __getattr__=self._no_attribute(f"cntk.{self._name}", listed)
        )


def beta_spec(fullname: str, no_attribute: NoAttribute) -> ModuleSpec | None:
    """Return the spec of a module of a beta; None for other names."""
    name = fullname.removeprefix(f"{PACKAGE}.")
    return ModuleSpec(fullname, BetaLoader(name, no_attribute)) if name != fullname and name in BETAS else None


__all__ = ["BETAS", "PACKAGE", "BetaLoader", "beta_spec", "older_member", "warn_beta"]

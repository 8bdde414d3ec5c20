"""Which extra each subcommand and each action needs. A command says what is missing before it does anything."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

    from cntkpy.cntk_config import ConfigValue


BASE = ""
"""Nothing but what is always installed."""


Need = tuple[str, str]
"""Subject that needs an extra, and that extra."""


def _of_check(values: Mapping[str, Any]) -> Need:
    return ("check --data", "data") if values["data"] else ("check", BASE)


def _of_export(values: Mapping[str, Any]) -> Need:
    if values.get("to"):
        return "export --to", "train"
    return ("an ONNX model", "onnx") if values["out"].lower().endswith(".onnx") else ("export", "data")


def _of_plot(values: Mapping[str, Any]) -> Need:
    return ("plot --network", BASE) if values["network"] else ("plot", "plot")


def _of_show(values: Mapping[str, Any]) -> Need:
    from cntkpy.networks.files.recognise import is_model

    return "a model file", "data" if len(values["words"]) == 1 and is_model(values["words"][0]) else BASE


SUBCOMMANDS: dict[str, str | Callable[[Mapping[str, Any]], Need]] = {
    # Actions say what a run needs, and a trial of a sweep is a run; the samplers of Optuna ask for it.
    **dict.fromkeys(("run", "sweep", "explain", "diff", "format", "help", "list", "completion"), BASE),
    **dict.fromkeys(("runs", "report", "new"), BASE),
    "show": _of_show,
    "check": _of_check,
    "lsp": "lsp",
    "plot": _of_plot,
    "preview": "data",
    "convert": "data",
    "export": _of_export,
}
"""The extra of each subcommand, or a function of its parameters."""


def needing(name: str, callback: Callable[..., int]) -> Callable[..., int]:
    """Return the function of a subcommand, which asks for its extra first."""
    extra = SUBCOMMANDS[name]

    @functools.wraps(callback)
    def call(**value: Any) -> int:
        subject, needed = (name, extra) if isinstance(extra, str) else extra(value)
        if needed != BASE:
            from cntkpy.cntk_config.base.extras import need

            need(needed, subject)
        return callback(**value)

    return call


def declare_needs(group: click.Group) -> None:
    """Let every subcommand ask for its extra."""
    for name, command in group.commands.items():
        assert command.callback is not None
        command.callback = needing(name, command.callback)


def need_for_action(action: ConfigValue) -> None:
    """Refuse an action whose extra is not installed.

    Args:
        action: its name, where the configuration gives it.

    Raises:
        ConfigError: a package is missing.
    """
    from cntkpy.cntk_config.base.diagnostics import ConfigError
    from cntkpy.cntk_config.base.extras import how_to_install, missing
    from cntkpy.cntk_config.entry import find_entry
    from cntkpy.commands.catalogue.dispatch import ACTIONS, WITHOUT_JAX

    entry = find_entry(action, ACTIONS, ignore_case=False)
    if entry is None or entry.unsupported:
        return  # of another package, or none
    extra = "data" if WITHOUT_JAX in entry.traits else "train"
    package = missing(extra)
    if package is not None:
        message = f"action = {action} needs {package}, which is not installed"
        raise ConfigError("MissingPackage", message, action.span, how_to_install(extra))

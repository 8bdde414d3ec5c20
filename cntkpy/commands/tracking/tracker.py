"""Registry of trackers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cntkpy.cntk_config.base.diagnostics import ConfigError, Span, suggestion
from cntkpy.cntk_config.base.extras import how_to_install
from cntkpy.cntk_config.base.objects import load_object
from cntkpy.trainers.log.tracker import Tracker

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "cntkpy.trackers"
"""The group of entry points of other packages: each is called with a `Place` and returns a `Tracker`."""


@dataclass(frozen=True)
class Place:
    """Location at which a run is tracked.

    Attributes:
        type: the name of the tracker.
        target: a folder, a URI: what stands behind the colon of `--track TYPE:TARGET`.
        experiment: a name that several runs share.
        name: of the run; may be empty.
        tags: texts by name, kept with the run.
        options: texts by name, from the section `options`.
    """

    type: str
    target: str = ""
    experiment: str = "cntkpy"
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Mapping[str, str] = field(default_factory=dict[str, str])


class BuiltIn(NamedTuple):
    """A tracker of ours: what makes it as `"module:name"`, the package that it needs, and the extra that brings it."""

    factory: str
    package: str
    extra: str


BUILT_IN = {
    "tensorboard": BuiltIn("cntkpy.commands.tracking.tensorboard:tracker", "tensorboardX", "tensorboard"),
    "mlflow": BuiltIn("cntkpy.commands.tracking.mlflow:MlflowTracker", "mlflow", "mlflow"),
}


def check_name(name: str, span: Span | None = None) -> None:
    """See that there is a tracker of a name.

    Raises:
        ConfigError: there is none.
    """
    if name.lower() in BUILT_IN or name in (installed := _installed()):
        return
    names = [*BUILT_IN, *installed]
    hint = suggestion(name, names) or f"there are {', '.join(names)}"
    raise ConfigError("BadChoice", f"there is no tracker '{name}'", span, hint)


def find_tracker(place: Place, span: Span | None = None) -> Callable[[], Tracker]:
    """Return a factory of the tracker of a place; its package is imported only when called.

    Raises:
        ConfigError: there is none of this name, or its package is not installed: better now than after the training.
    """
    check_name(place.type, span)
    known = BUILT_IN.get(place.type.lower())
    if known is None:
        point = _installed()[place.type]
        return lambda: point.load()(place)
    if importlib.util.find_spec(known.package) is None:
        message = f"{place.type} is tracked by the package {known.package}, which is not installed"
        raise ConfigError("MissingPackage", message, span, how_to_install(known.extra))
    return lambda: load_object(known.factory)(place)


def _installed() -> dict[str, EntryPoint]:
    """Return the trackers of installed packages."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}

"""The check of a SimpleNetworkBuilder."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span
from cntkpy.networks.builders.check import CheckContext, CheckedNetwork, Input
from cntkpy.networks.builders.criteria import OVER_CLASSES, one_class
from cntkpy.networks.builders.simple.parameters import SimpleNetworkBuilder, find_criterion

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import ValidatedNetwork

DROPOUT = {"Dropout": "addDropoutNodes = true makes some"}


def check_simple(
    section: ConfigParameters, context: CheckContext
) -> Generator[Diagnostic, None, CheckedNetwork | None]:
    """Check the kind, the sizes and the criteria of a network; other kinds than feed-forward ones are made, too."""

    @cache
    def make() -> ValidatedNetwork:
        from cntkpy.networks.builders.simple.front_end import outline_simple

        return outline_simple(section, "float")

    builder = SimpleNetworkBuilder(section)
    errors = list(builder.mistakes())
    yield from (error.diagnostic for error in errors)
    if errors:
        return None
    if builder.kind() != "SIMPLENET":
        return CheckedNetwork(make, remedies=DROPOUT)
    sizes = builder.layer_sizes
    if context.trains and sizes and sizes[-1] == 1:
        yield from _one_class(builder)
    inputs = [
        Input(name, sizes[index], f"{which} layer", _span_of_size(builder, index))
        for name, which, index in (("features", "first", 0), ("labels", "last", -1))
        if len(sizes) > 1
    ]
    return CheckedNetwork(make, inputs, remedies=DROPOUT)


def _span_of_size(builder: SimpleNetworkBuilder, index: int) -> Span | None:
    """Return the place of one of the sizes."""
    value = builder.given("layerSizes")
    if value is None:
        return None
    try:
        return value.as_array()[index].span
    except ConfigError:
        return value.span


def _one_class(builder: SimpleNetworkBuilder) -> Iterator[Diagnostic]:
    """Report criteria of classes over the single element of the last layer."""
    for name in ("trainingCriterion", "evalCriterion"):
        value = builder.given(name)
        operation, _ = find_criterion(name, str(value)) if value is not None else ("", "")
        if value is not None and operation in OVER_CLASSES:
            yield one_class(operation, value.span)

"""`action = cv`: the models of several epochs on the same data, and which of them is the best."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import exists
from cntkpy.cntk_config.declare import COUNT, SECTION, Parameter, array
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.evaluate import TestParameters, evaluate_nodes, evaluation_nodes
from cntkpy.commands.actions.networks_and_readers import choose_device, find_nodes, load, log_ignored, reader_for

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext

log = logging.getLogger("cntkpy.commands")

PLAIN = {"plain": True}


ENTRY = Entry(
    "action",
    ("cv",),
    parameters="cntkpy.commands.actions.cross_validate:CrossValidateParameters",
    factory="cntkpy.commands.actions.cross_validate:cross_validate",
    traits=frozenset({"builds"}),
    example="cv = [ action = cv ; modelPath = m ; crossValidationInterval = 0:1:9 ; reader = [...] ]",
)


class CrossValidateParameters(TestParameters):
    """`action=cv`: evaluates the models of several epochs on the same data, and says which is the best."""

    reader = Parameter("reader", SECTION, help="The data.")
    interval = Parameter(
        "crossValidationInterval", array(COUNT), help="First epoch, increment, last epoch: `1:2:9` is 1, 3, 5, 7, 9."
    )
    sleep = Parameter("sleepTimeBetweenRuns", COUNT, default="0", help="Seconds to wait after each model.")

    def check_together(self) -> None:
        """Errors in what does not go together."""
        super().check_together()
        _epochs(self)


def cross_validate(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = CrossValidateParameters(section)
    epochs = _epochs(p)
    log_ignored(p, context.action, context)
    choose_device(context)
    reader = reader_for(section, "reader", context, traceLevel=str(p.trace_level))
    results: dict[str, list[float]] = {}
    for path in _models(str(p.model_path), epochs):
        log.info("Model %s --> ", path, extra=PLAIN)
        network = load(path, context)
        find_nodes(network, p.eval_nodes, every=True)
        nodes = evaluation_nodes(network, p.eval_nodes)
        results[path] = [total.average for total in evaluate_nodes(p, network, nodes, reader, context)]
        log.info("", extra=PLAIN)
        time.sleep(p.sleep)
    if not results:
        raise UserError(
            "NoModel",
            f"no model is evaluated: there is none of {p.model_path}.{epochs[0]} to {p.model_path}.{epochs[-1]}, "
            f"nor {p.model_path}",
            hint="check modelPath and crossValidationInterval, or train the models first",
        )
    log.info("Best models:", extra=PLAIN)
    log.info("------------", extra=PLAIN)
    for index in range(len(next(iter(results.values())))):
        best = min(results, key=lambda path: results[path][index])
        log.info("Based on Err[%d]: Best model = %s with min err %.8g", index, best, results[best][index], extra=PLAIN)


def _epochs(p: CrossValidateParameters) -> range:
    """Return the numbers of the models, from the first to the last."""
    interval = p.interval or [0]
    first, step, last = [*interval, interval[-1], interval[-1]][:3]
    if step == 0:
        raise p.error("crossValidationInterval", "the increment is 0; give first:increment:last", hint="use 1:1:10")
    if first > last:
        raise p.error("crossValidationInterval", f"the first epoch {first} lies after the last one {last}")
    return range(first, last + 1, step)


def _models(path: str, epochs: Sequence[int]) -> Iterator[str]:
    """Yield the models that exist; the final model once, in the place of the first that does not."""
    final_used = False
    for epoch in epochs:
        model = f"{path}.{epoch}"
        if not exists(model):
            log.info("Model %s does not exist.", model, extra=PLAIN)
            if final_used or not exists(path):
                continue
            model, final_used = path, True
        yield model

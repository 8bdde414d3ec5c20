"""`action = train`: train a network, or resume where an earlier run of the same configuration stopped."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.declare import PATH, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import build, choose_device, load
from cntkpy.commands.actions.training import TrainingParameters, finished_epochs, load_finished, only_run, run_training
from cntkpy.networks.builders.parameters import BuilderParameters, OutputParameters

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import ValidatedNetwork

log = logging.getLogger("cntkpy.commands")


ENTRY = Entry(
    "action",
    ("train", "trainRNN"),
    parameters="cntkpy.commands.actions.train:TrainParameters",
    factory="cntkpy.commands.actions.train:train",
    example="train = [ action = train ; modelPath = m ; SimpleNetworkBuilder = [...] ; SGD = [...] ; reader = [...] ]",
)


class TrainParameters(TrainingParameters, BuilderParameters, OutputParameters):
    """`action=train`: trains a network on data, epoch by epoch."""

    model_path = Parameter("modelPath", PATH, help="The final model; files of single epochs add `.0`, `.1`, ...")
    initial_model = Parameter(
        "initialModel",
        PATH,
        default=None,
        help="The model to start from, in place of a builder: one of ours or of CNTK.",
    )

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Return adaptation, which is an action of its own, and best models by data that are not given."""
        if self.sgd.adaptation_type != "none":
            message = "has no effect: action=train does not keep a training near to a model"
            yield (
                "SGD/adaptationRegType",
                message,
                "write action=adapt with origModelFileName and refNodeName, or leave it out",
            )
        if self.sgd.save_best and self.cv_reader is None:
            yield "SGD/saveBestModelPerCriterion", "has no effect: there is no cvReader", "add a cvReader"


def train(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = TrainParameters(section)
    with only_run(p, context):
        _train(p, context)


def _train(p: TrainParameters, context: RunContext) -> None:
    start = finished_epochs(p, context)
    if start == p.sgd.max_epochs:
        return
    device = choose_device(context, training=True, say=False)
    network = load_finished(p, start, context) if start is not None else _new_network(p, context)
    run_training(p, network, start, context, device=device, own_trace_level=True)


def _new_network(p: TrainParameters, context: RunContext) -> ValidatedNetwork:
    """Return the network that the training begins with: the initial model, or what the builder makes."""
    section = p.config
    if starts_from_model(p):
        log.info("Starting from the model '%s'.", p.initial_model)
        return _initial_network(p, context)
    if context.trace_level > 0:
        log.info("")
        log.info("Creating virgin network.", extra={"plain": True})
    network = build(section, context)
    if network is None:
        raise section.error(
            "SimpleNetworkBuilder",
            "no network builder found",
            hint="add a section SimpleNetworkBuilder or NDLNetworkBuilder to the command section, or initialModel",
            kind="MissingParameter",
        )
    return network


def starts_from_model(p: TrainParameters) -> bool:
    """Return whether the training begins with `initialModel`. A builder in the same section contradicts it, one
    further out,
    which is there for other commands, does not; neither does an `initialModel` further out than the builder.

    Raises:
        ConfigError: both stand in the same section.
    """
    if p.initial_model is None:
        return False
    own_names = [
        parameter.name for parameter in BuilderParameters.parameters() if p.config.exists_current(parameter.name)
    ]
    if own_names and TrainParameters.initial_model.stands_in(p.config):
        message = f"initialModel and {own_names[0]} both give the network to start from"
        raise p.error("initialModel", message, "keep one of them", "Conflict")
    return not own_names


def _initial_network(p: TrainParameters, context: RunContext) -> ValidatedNetwork:
    """Return the network of the initial model, with the outputs that the section names."""
    from cntkpy.networks.builders.build import choose_outputs

    try:
        network = load(str(p.initial_model), context)
    except UserError as problem:
        diagnostic = problem.diagnostic
        raise p.error("initialModel", diagnostic.message, diagnostic.hint, diagnostic.kind) from None
    if p.outputs is not None:
        choose_outputs(network, list(p.outputs))
    return network

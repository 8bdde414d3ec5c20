"""`action = train`: train a network, or go on where an earlier run of the same configuration stopped."""

import logging

from cntk_config import ConfigParameters
from cntk_config.declare import PATH, Parameter
from cntk_config.entry import Entry
from commands.actions.networks_and_readers import build, choose_device
from commands.actions.training import TrainingParameters, finished_epochs, load_finished, only_run, run_training
from commands.context.run_context import RunContext
from networks.builders.parameters import BuilderParameters, OutputParameters

log = logging.getLogger("cntkpy.commands")


ENTRY = Entry(
    "action",
    ("train", "trainRNN"),
    parameters="commands.actions.train:TrainParameters",
    factory="commands.actions.train:train",
    example="train = [ action = train ; modelPath = m ; SimpleNetworkBuilder = [...] ; SGD = [...] ; reader = [...] ]",
)


class TrainParameters(TrainingParameters, BuilderParameters, OutputParameters):
    """`action=train`: trains a network on data, epoch by epoch."""

    model_path = Parameter("modelPath", PATH, help="The final model; files of single epochs add `.0`, `.1`, ...")


def train(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = TrainParameters(section)
    with only_run(p, context):
        _train(p, context)


def _train(p: TrainParameters, context: RunContext) -> None:
    section = p.config
    start = finished_epochs(p, context)
    if start == p.sgd.max_epochs:
        return
    device = choose_device(context, training=True, say=False)
    if start is not None:
        network = load_finished(p, start, context)
    else:
        if context.trace_level > 0:
            log.info("")
            log.info("Creating virgin network.", extra={"plain": True})
        network = build(section, context)
        if network is None:
            raise section.error(
                "SimpleNetworkBuilder",
                "no network builder found",
                hint="add a section SimpleNetworkBuilder or NDLNetworkBuilder to the command section",
                kind="MissingParameter",
            )
    run_training(p, network, start, context, device=device, own_trace_level=True)

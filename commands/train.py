"""`action = train`: train a network, or go on where an earlier run of the same configuration stopped."""

import logging

from cntk_config import ConfigParameters
from cntk_config.declare import BOOLEAN, PATH, SECTION, Declared, Parameter, section_of
from commands.context import RunContext
from commands.interrupt import run_until_stopped
from commands.networks_and_readers import build, choose_device, load, reader_for

log = logging.getLogger("cntkpy.commands")


class TrainParameters(Declared):
    """`action=train`: trains a network on data, epoch by epoch."""

    model_path = Parameter("modelPath", PATH, help="The final model; files of single epochs add `.0`, `.1`, ...")
    make_mode = Parameter("makeMode", BOOLEAN, default="true", help="Go on from the newest model of this training.")
    sgd = Parameter("SGD", section_of("trainers.parameters:SGDParameters"), help="How to train.")
    reader = Parameter("reader", SECTION, help="Training data.")
    cv_reader = Parameter("cvReader", SECTION, default=None, help="Data evaluated after every epoch.")
    simple = Parameter("SimpleNetworkBuilder", SECTION, default=None, help="Builds the network.")
    ndl = Parameter("NDLNetworkBuilder", SECTION, default=None, help="Builds the network.")


def train(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = TrainParameters(section)
    sgd = p.sgd
    from trainers.checkpoint import find_start, model_name
    from trainers.checks import check_parameters

    check_parameters(sgd, context.precision)
    if context.trace_level > 0:
        for name, reason in sgd.ignored():
            log.info("SGD: %s has no effect. %s", name, reason)
    path = str(sgd.model_path)
    start = find_start(path, sgd.max_epochs) if p.make_mode else None
    if start == sgd.max_epochs:
        log.info("Final model exists: %s", path)
        log.info("No further training is necessary.")
        return
    device = choose_device(context)
    if start is None:
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
    else:
        model = model_name(path, start, sgd.max_epochs)
        log.info("Starting from checkpoint. Loading network from '%s'.", model)
        network = load(model, context)

    from trainers.sgd import Training

    reader = _reader(section, "reader", context)
    validation = _reader(section, "cvReader", context) if p.cv_reader is not None else None
    training = Training(
        sgd,
        network,
        reader,
        validation,
        start or 0,
        loaded=start is not None,
        progress=context.progress,
        tracing=context.progress_tracing,
        device=device,
    )
    run_until_stopped(training)


def _reader(section: ConfigParameters, name: str, context: RunContext):
    """A reader whose section gets the command's traceLevel, unless it has its own."""
    own = section.section(name).exists_current("traceLevel")
    return reader_for(section, name, context, **({} if own else {"traceLevel": str(context.trace_level)}))

"""`action = adapt`: train on from an existing model, near to which it may be kept."""

import logging
from typing import TYPE_CHECKING

from cntk_config import ConfigParameters
from cntk_config.declare import BOOLEAN, PATH, SECTION, TEXT, Declared, Parameter, section_of
from cntk_config.diagnostics import UserError
from commands.context import RunContext
from commands.interrupt import run_until_stopped
from commands.networks_and_readers import choose_device, load, reader_for

if TYPE_CHECKING:
    from networks.network import Network
    from trainers.adaptation import MixedTargets

log = logging.getLogger("cntkpy.commands")


class AdaptParameters(Declared):
    """`action=adapt`: trains on from an existing model, near to which it may be kept (`adaptationRegType=KL`)."""

    original = Parameter(
        "origModelFileName", PATH, default="", aliases=("originalModelFileName",), help="The model to start from."
    )
    reference_node = Parameter(
        "refNodeName", TEXT, default="", help="With KL: the node of the original model that is mixed into the labels."
    )
    make_mode = Parameter("makeMode", BOOLEAN, default="true", help="Go on from the newest model of this adaptation.")
    sgd = Parameter("SGD", section_of("trainers.parameters:SGDParameters"), help="How to train.")
    reader = Parameter("reader", SECTION, help="Training data.")
    cv_reader = Parameter("cvReader", SECTION, default=None, help="Data evaluated after every epoch.")


def adapt(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = AdaptParameters(section)
    sgd = p.sgd
    from trainers.checkpoint import find_start, model_name
    from trainers.checks import check_parameters

    check_parameters(sgd, context.precision)
    path = str(sgd.model_path)
    start = find_start(path, sgd.max_epochs) if p.make_mode else None
    if start == sgd.max_epochs:
        log.info("Final model exists: %s", path)
        log.info("No further training is necessary.")
        return
    uses_reference = sgd.adaptation_type != "none" and sgd.adaptation_weight > 0
    if not p.original and (start is None or uses_reference):
        hint = 'add origModelFileName = "FILE"'
        raise p.error("origModelFileName", "adapt needs the model to start from", hint, kind="MissingParameter")
    choose_device(context)
    if start is None:
        network = load(str(p.original), context)
    else:
        model = model_name(path, start, sgd.max_epochs)
        log.info("Starting from checkpoint. Loading network from '%s'.", model)
        network = load(model, context)
    targets = _targets(p, network, context) if uses_reference else None

    from trainers.sgd import Training

    level = {"traceLevel": str(context.trace_level)}
    training = Training(
        sgd,
        network,
        reader_for(section, "reader", context, **level),
        reader_for(section, "cvReader", context, **level) if p.cv_reader is not None else None,
        start or 0,
        loaded=start is not None,
        progress=context.progress,
        tracing=context.progress_tracing,
        device=None,
        targets=targets,
    )
    run_until_stopped(training)


def _targets(p: AdaptParameters, network: "Network", context: RunContext) -> "MixedTargets":
    """The labels mixed with the reference node of a second copy of the original model."""
    if not p.reference_node:
        hint = "name the softmax of the original model, for instance refNodeName = PosteriorProb"
        raise p.error("refNodeName", "adaptationRegType=KL needs refNodeName", hint, kind="MissingParameter")
    from trainers.adaptation import mixed_targets

    reference = load(str(p.original), context)
    try:
        return mixed_targets(network, reference, str(p.reference_node), p.sgd.adaptation_weight)
    except UserError as error:
        raise p.error("refNodeName", str(error), error.diagnostic.hint) from None

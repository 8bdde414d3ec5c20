"""`action = adapt`: train on from an existing model, near to which it may be kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.declare import PATH, TEXT, Parameter
from cntkpy.cntk_config.entry import Entry
from cntkpy.commands.actions.networks_and_readers import choose_device, load
from cntkpy.commands.actions.training import TrainingParameters, finished_epochs, load_finished, only_run, run_training

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext
    from cntkpy.networks.graph.network import ValidatedNetwork
    from cntkpy.trainers.fronts.config.adaptation import MixedTargets


ENTRY = Entry(
    "action",
    ("adapt",),
    parameters="cntkpy.commands.actions.adapt:AdaptParameters",
    factory="cntkpy.commands.actions.adapt:adapt",
    example="adapt = [ action = adapt ; origModelFileName = m ; modelPath = new ; SGD = [...] ; reader = [...] ]",
)


class AdaptParameters(TrainingParameters):
    """`action=adapt`: trains on from an existing model, near to which it may be kept (`adaptationRegType=KL`)."""

    original = Parameter(
        "origModelFileName", PATH, default="", aliases=("originalModelFileName",), help="The model to start from."
    )
    reference_node = Parameter(
        "refNodeName", TEXT, default="", help="With KL: the node of the original model that is mixed into the labels."
    )

    @property
    def uses_reference(self) -> bool:
        """True if the original model is mixed into the labels."""
        return self.sgd.adaptation_type != "none" and self.sgd.adaptation_weight > 0

    def idle(self) -> Iterator[tuple[str, str, str]]:
        """Yield a reference that is not used."""
        if self.reference_node and not self.uses_reference:
            missing = "adaptationRegType is none" if self.sgd.adaptation_type == "none" else "adaptationRegWeight is 0"
            hint = "write SGD=[adaptationRegType=KL;adaptationRegWeight=0.5], or leave refNodeName out"
            yield "refNodeName", f"has no effect: {missing}, so the training is not kept near to the model", hint


def adapt(section: ConfigParameters, context: RunContext) -> None:
    """Run the action on its section."""
    p = AdaptParameters(section)
    with only_run(p, context):
        _adapt(p, context)


def _adapt(p: AdaptParameters, context: RunContext) -> None:
    start = finished_epochs(p, context)
    if start == p.sgd.max_epochs:
        return
    uses_reference = p.uses_reference
    if not p.original and (start is None or uses_reference):
        hint = 'add origModelFileName = "FILE"'
        raise p.error("origModelFileName", "adapt needs the model to start from", hint, kind="MissingParameter")
    choose_device(context, training=True)
    network = load(str(p.original), context) if start is None else load_finished(p, start, context)
    targets = _targets(p, network, context) if uses_reference else None
    run_training(p, network, start, context, device=None, own_trace_level=False, targets=targets)


def _targets(p: AdaptParameters, network: ValidatedNetwork, context: RunContext) -> MixedTargets:
    """Return the labels mixed with the reference node of a second copy of the original model."""
    if not p.reference_node:
        hint = "name the softmax of the original model, for instance refNodeName = PosteriorProb"
        raise p.error("refNodeName", "adaptationRegType=KL needs refNodeName", hint, kind="MissingParameter")
    from cntkpy.trainers.fronts.config.adaptation import mixed_targets

    reference = load(str(p.original), context)
    try:
        return mixed_targets(network, reference, str(p.reference_node), p.sgd.adaptation_weight)
    except UserError as error:
        raise p.error("refNodeName", str(error), error.diagnostic.hint) from None

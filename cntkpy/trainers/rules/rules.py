"""From the `SGD` section to an update rule, its regularisation, and what an epoch sets in the network."""

import logging

from cntkpy.networks.compile.evaluate import Settings
from cntkpy.networks.graph.network import Network
from cntkpy.trainers.parameters.sgd import SGDParameters
from cntkpy.trainers.rules import updates
from cntkpy.trainers.rules.idle import idle_settings
from cntkpy.trainers.rules.update_step import Regularisation

log = logging.getLogger("cntkpy.trainers")


def rule_name(p: SGDParameters) -> str:
    """Return the rule that `gradUpdateType` and `useAdagrad` choose."""
    name = "adagrad" if p.use_adagrad else p.update_type.lower()
    return "none" if name in ("normal", "simple") else name


def update_rule(p: SGDParameters) -> updates.Rule:
    """Return the rule that `gradUpdateType`, `useAdagrad` and `useNAG` choose."""
    kind = rule_name(p)
    if kind == "adagrad":
        return updates.adagrad(p.normalise)
    if kind == "rmsprop":
        return updates.rmsprop(p.normalise, p.rms_gamma, p.rms_inc, p.rms_dec, p.rms_max, p.rms_min)
    if kind == "fsadagrad":
        return updates.fsadagrad(float(p.variance_time_constant), p.target_denominator, p.normalise)
    return updates.nesterov() if p.nesterov else updates.momentum()


def regularisation(p: SGDParameters, network: Network) -> Regularisation:
    """Clipping, L1, L2 and noise of the section; parameters of batch normalisation may be excluded."""
    excluded: set[str] = set()
    for node in network.nodes.values():
        if node.operation == "BatchNormalization" and (
            p.no_bn_regularisation or node.options.get("disableRegularization")
        ):
            excluded |= {source.name for source in node.connected if source.is_parameter}
    l2, l1, noise = (max(0.0, weight) for weight in (p.l2, p.l1, p.noise))  # as in CNTK
    return Regularisation(p.clipping, p.clip_elements, l2, l1, noise, frozenset(excluded))


def network_settings(p: SGDParameters, epoch: int) -> Settings:
    """Dropout and batch-normalisation constants; the latter stay the nodes' own until the schedule changes them."""
    constants: list[float | None] = []
    for schedule in (p.bn_time_constant, p.bn_blend_time_constant):
        pushed = any(schedule[earlier] for earlier in range(epoch + 1))
        constants.append(schedule[epoch] if pushed else None)
    return Settings(p.dropout_rate[epoch] or None, *constants)


def warn_of_idle_settings(p: SGDParameters, network: Network) -> None:
    """Warn of rates and constants for nodes that the network does not have."""
    for setting in idle_settings(p, network):
        where = f"{setting.value.span}: " if setting.value.span is not None else ""
        log.warning("WARNING: %s%s has no effect: the network has no %s node.", where, setting.name, setting.operation)


def log_changes(p: SGDParameters, epoch: int, previous: int | None) -> None:
    """Log schedules whose value changes with this epoch; all are 0 before the first epoch of a run."""
    for schedule, title in (
        (p.dropout_rate, "dropout rate"),
        (p.bn_time_constant, "batch normalization time constant"),
        (p.bn_blend_time_constant, "batch normalization blend time constant"),
    ):
        if schedule[epoch] != (0.0 if previous is None else schedule[previous]):
            log.info("Setting %s to %.8g.", title, schedule[epoch])

"""The update rule of a training as the optimiser of a program of PyTorch: `cntkpy export --training`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cntkpy.commands.tools.export_epochs import momenta
from cntkpy.networks.source.training import optimiser
from cntkpy.networks.source.training.program import Group

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node, ValidatedNetwork
    from cntkpy.networks.nodes.source_support.layers import Tensor
    from cntkpy.networks.source.export import Source
    from cntkpy.trainers.parameters.sgd import SGDParameters


@dataclass
class RuleWriter:
    """Writes the rule, and the options of each tensor that differ from it.

    Args:
        parameters: the SGD section.
        network: the network, before training.
        criterion: what the training minimises.
        source: the network as source.
        reasons: gets what cannot be written, and why.
    """

    parameters: SGDParameters
    network: ValidatedNetwork
    criterion: Node
    source: Source
    reasons: list[str]

    def written(self) -> tuple[optimiser.Rule, list[Group], list[str]]:
        """Return the update rule, the parameters with options of their own, and those that are not trained."""
        from cntkpy.networks.compile.differentiable import row_parameters
        from cntkpy.networks.compile.plan import Plan
        from cntkpy.trainers.fronts.config.criteria import gradient_nodes
        from cntkpy.trainers.rules import rules

        p = self.parameters
        moving = any(momenta(p))
        kind = rules.rule_name(p)
        kind = (optimiser.NESTEROV if p.nesterov else optimiser.MOMENTUM) if kind == "none" else kind
        regular = rules.regularisation(p, self.network)
        rule = optimiser.Rule(
            kind,
            moving=moving,
            normalise=p.normalise,
            rms=(p.rms_gamma, p.rms_inc, p.rms_dec, p.rms_max, p.rms_min),
            memory=float(p.variance_time_constant),
            target=p.target_denominator,
            clipping=regular.clipping,
            by_element=regular.clip_elements,
            l2=regular.l2,
            l1=regular.l1,
        )
        by_row = row_parameters(Plan(self.network, [self.criterion.name], training=True))
        if not rule.moving and rule.kind in (optimiser.MOMENTUM, optimiser.NESTEROV) and not rule.l2:
            by_row = {}
        trained = {node.name for node in gradient_nodes(self.network, self.criterion) if node.trainable}
        frozen: list[str] = []
        options: dict[str, dict[str, str]] = {}
        for name, tensor in self.source.tensors.items():
            if tensor.buffer:
                continue
            made = self._made_of(tensor)
            if made is None:
                self.reasons.append(f"{name}: it is a sum of parameters, each of which is trained")
            elif not any(node.name in trained for node in made):
                frozen.append(name)
            elif not all(node.name in trained for node in made):
                self.reasons.append(f"{name}: some of its parameters are trained, others are not")
            else:
                options[name] = self._options(name, tensor, made, rule, by_row, regular.unregularised)
        values = {key for changed in options.values() for key in changed}
        rule = replace(
            rule,
            scaled="factor" in values,
            unregularised="regularised" in values,
            by_row="by_row" in values,
            by_column="by_column" in values,
        )
        groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for name, changed in options.items():
            if changed:
                groups.setdefault(tuple(changed.items()), []).append(name)
        return rule, [Group(dict(key), names) for key, names in groups.items()], frozen

    def _made_of(self, tensor: Tensor) -> tuple[Node, ...] | None:
        """Return the parameters that a tensor is made of; None if they are not known."""
        if tensor.joined is not None:
            return tensor.joined.sources
        if tensor.source is not None:
            return (tensor.source,)
        return None

    def _options(
        self,
        name: str,
        tensor: Tensor,
        made: Sequence[Node],
        rule: optimiser.Rule,
        by_row: dict[str, str],
        unregularised: frozenset[str],
    ) -> dict[str, str]:
        """Return the options of the optimiser for a tensor."""
        pieces = len(made) > 1 or sum(
            made[0] in (self._made_of(tensor) or ()) for tensor in self.source.tensors.values()
        )
        if pieces > 1 and not rule.elementwise:
            way = "clipping by the norm" if not math.isinf(rule.clipping) else "normWithAveMultiplier"
            self.reasons.append(f"{name}: {way} is for each parameter of CNTK, and here they are joined or divided")
        result: dict[str, str] = {}
        factors = {float(node.learning_rate_multiplier) for node in made}
        if len(factors) > 1:
            self.reasons.append(f"{name}: its parameters have several learning rate multipliers")
        elif factors != {1.0}:
            result["factor"] = repr(factors.pop())
        left_out = {node.name in unregularised for node in made}
        if len(left_out) > 1:
            self.reasons.append(f"{name}: some of its parameters are regularised, others are not")
        elif left_out == {True} and (rule.l1 or rule.l2):
            result["regularised"] = "False"
        if any(node.name in by_row for node in made):
            axis = _row_axis(tensor, made[0]) if len(made) == 1 else None
            if axis is None:
                self.reasons.append(
                    f"{name}: rows that a sparse input touches are updated alone, and here it is joined"
                )
            else:
                result["by_column" if axis else "by_row"] = "True"
        return result


def _row_axis(tensor: Tensor, node: Node) -> int | None:
    """Return the axis of a tensor along which the rows lie that inputs touch; None if there is none."""
    rows, size = (node.shape or (0, 0))[1], (node.shape or (0, 0))[0]
    numbers = np.repeat(np.arange(rows), size)
    arranged = tensor.arrange(numbers) if tensor.arrange is not None else None
    if arranged is None or arranged.ndim != 2:
        return None
    if (arranged == np.arange(rows)[:, None]).all() if arranged.shape[0] == rows else False:
        return 0
    return 1 if arranged.shape[1] == rows and (arranged == np.arange(rows)).all() else None

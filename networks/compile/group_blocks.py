"""The values of a group of nodes that need only what is at their own step, in blocks of steps where they are large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from networks.arrays.lazy import jax, jnp
from networks.arrays.step_blocks import in_blocks, steps_of_block
from networks.compile.group_steps import GroupSteps
from networks.compile.loop_products import dense
from networks.compile.plan import Plan
from networks.compile.recurrence import CARRIED
from networks.compile.step_groups import StepGroup
from networks.graph import shapes
from networks.graph.axes import ONE
from networks.graph.node import Node
from networks.nodes.call import Context, masked

Array = Any


def run_group(plan: Plan, group: StepGroup, values: dict[Node, Array], context: Context) -> None:
    """Add the values of the nodes of a group that others use.

    Args:
        plan: the evaluation that it is part of.
        group: the group.
        values: of all nodes before it.
        context: of the minibatch.
    """
    on = context.on(group.axis)
    # then the first piece of a sequence is repeated, or a slot has several sequences
    in_pieces = any(name.endswith(CARRIED) for name in context.state) or on.packed is not None
    repeated = {} if in_pieces else group.repeated
    steps = {node: masked(values[first], context.grid(ONE).mask) for node, first in repeated.items()}
    largest = max((shapes.size(node.shape or ()) for node in group.long), default=0)
    size = on.T if in_pieces else steps_of_block(on.T, on.S * largest)
    members = set(group.nodes)
    wanted = [node for node in group.nodes if node in plan.outputs or not members.issuperset(plan.users[node])]
    if size == on.T:
        found = GroupSteps(plan, group.nodes, values, steps, on)
        values.update({node: found.value(node) for node in wanted})
        return
    values.update(_in_blocks(plan, group.nodes, wanted, size, values, steps, on))


def _in_blocks(
    plan: Plan,
    nodes: Sequence[Node],
    wanted: Sequence[Node],
    size: int,
    values: Mapping[Node, Array],
    steps: Mapping[Node, Array],
    context: Context,
) -> dict[Node, Array]:
    """Values of some nodes.

    Args:
        plan: the evaluation.
        nodes: of the group, in order of evaluation.
        wanted: the ones among them that others use.
        size: steps of a block.
        values: of all nodes before them.
        steps: by node that is the same at every step, the value (1, slots, ...).
        context: of the axis.
    """
    outside = [i for i in dict.fromkeys(i for node in nodes for i in node.connected) if i not in {*nodes, *steps}]
    by_step = {i: dense(values[i], i, context) for i in outside if i.has_layout}
    fixed = {i: values[i] for i in outside if not i.has_layout}
    grid = (context.mask, context.to_start, context.to_end)
    # joined axes, because blocks add up gradients in this form
    joined = {node: one.reshape(-1, one.shape[-1]) for node, one in steps.items()}

    def block(given: Any, number: Array) -> list[Array]:
        sequences, (mask, to_start, to_end) = given
        key = None if context.key is None else jax.random.fold_in(context.key, number)
        inner = context.step(mask, to_start, to_end, key, {}, size)
        now = {**fixed, **dict(zip(by_step, sequences, strict=True))}
        same = {node: one.reshape(steps[node].shape) for node, one in joined.items()}
        now.update({node: jnp.broadcast_to(one, (size, *one.shape[1:])) for node, one in same.items()})
        found = GroupSteps(plan, nodes, now, same, inner)
        return [found.value(node) for node in wanted]

    found = in_blocks(block, (list(by_step.values()), grid), size)
    return dict(zip(wanted, found, strict=True))


__all__ = ["run_group"]

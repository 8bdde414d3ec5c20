"""The values of a group of nodes that need only what is at their own step, in blocks of steps where they are large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cntkpy.networks.arrays.lazy import Array, jax, jnp
from cntkpy.networks.arrays.products import by_slot
from cntkpy.networks.arrays.step_blocks import in_blocks, steps_of_block
from cntkpy.networks.compile.group_steps import GroupSteps
from cntkpy.networks.compile.loop_products import dense
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.compile.recurrence import CARRIED
from cntkpy.networks.compile.step_groups import StepGroup
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.call import Context, masked


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
    members = set(group.nodes)
    wanted = [node for node in group.nodes if node in plan.outputs or not members.issuperset(plan.users[node])]
    if in_pieces or steps_of_block(on.T, on.S * largest) == on.T:
        group_steps = GroupSteps(plan, group.nodes, values, steps, on)
        values.update({node: group_steps.value(node) for node in wanted})
        return
    values.update(_in_blocks(plan, group.nodes, wanted, largest, values, steps, on))


def _in_blocks(
    plan: Plan,
    nodes: Sequence[Node],
    wanted: Sequence[Node],
    elements: int,
    values: Mapping[Node, Array],
    steps: Mapping[Node, Array],
    context: Context,
) -> dict[Node, Array]:
    """Evaluate nodes one slot at a time: products of several slots would transpose every block result.

    Args:
        plan: the evaluation.
        nodes: of the group, in order of evaluation.
        wanted: the ones among them that others use.
        elements: of the largest value that a step of a slot makes.
        values: of all nodes before them.
        steps: by node that is the same at every step, the value (1, slots, ...).
        context: of the axis.
    """
    outside = [i for i in dict.fromkeys(i for node in nodes for i in node.connected) if i not in {*nodes, *steps}]
    by_step = {i: dense(values[i], i) for i in outside if i.has_layout}
    fixed = {i: values[i] for i in outside if not i.has_layout}
    grid = context.grid(None)
    size = steps_of_block(context.T, elements, one_slot=True)

    def block(
        same: Mapping[Node, Array], number: Array, value: tuple[Sequence[Array], Sequence[Array | None]], place: Array
    ) -> list[Array]:
        sequences, grid = value
        key = None if context.key is None else jax.random.fold_in(context.key, number * context.T + place)
        mask, to_start, to_end = (None if array is None else array[:, None] for array in grid)
        inner = context.step(mask, to_start, to_end, key, {}, size)
        now = {**fixed, **{i: sequence[:, None] for i, sequence in zip(by_step, sequences, strict=True)}}
        whole = {node: array.reshape(1, 1, *steps[node].shape[2:]) for node, array in same.items()}
        now.update({node: jnp.broadcast_to(value, (size, *value.shape[1:])) for node, value in whole.items()})
        group_steps = GroupSteps(plan, nodes, now, whole, inner)
        return [group_steps.value(node)[:, 0] for node in wanted]

    def slot(value: tuple[object, tuple[Array, ...]]) -> list[Array]:
        sequences, (number, *same) = value
        same = dict(zip(steps, same, strict=True))
        return in_blocks(lambda arrays, place: block(same, number, arrays, place), sequences, size)

    # matrices, because blocks add up gradients in this form
    same = [step.reshape(*step.shape[1:2], -1, step.shape[-1]) for step in steps.values()]
    sequences = jax.tree.map(by_slot, (list(by_step.values()), tuple(grid)))
    result = jax.lax.map(slot, (sequences, (jnp.arange(context.S), *same)))
    return dict(zip(wanted, map(by_slot, result), strict=True))

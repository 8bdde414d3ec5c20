"""The networks of criteria for each combination of sizes that data have."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cntkpy.networks.builders.brainscript.node_values import NodeValue, Shape
from cntkpy.networks.builders.python.functions.free import Sizes, free_nodes, probe_sizes
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.fronts.cntk2.data import Arguments
from cntkpy.trainers.fronts.cntk2.free import FreeSizes
from cntkpy.trainers.fronts.cntk2.learners import Learner
from cntkpy.trainers.fronts.cntk2.objective import Objective
from cntkpy.trainers.fronts.cntk2.values import longest_of
from cntkpy.trainers.step.memory import HostArray
from cntkpy.trainers.step.state_arrays import Arrays

MAX_SIZES = 32
"""So many combinations of sizes are kept with their networks; of others a network is made again."""


class SizedObjectives:
    """Objectives of the same criteria: one for each combination of sizes, made when data have it.

    Criteria without sizes that only data say have one objective. All of them share parameters.

    Args:
        criteria: see `Objective`.
        group: see `Objective`.
        outputs: see `Objective`.
        learners: see `Objective`.

    Attributes:
        now: the objective of the last data.
    """

    def __init__(
        self,
        criteria: Sequence[Function],
        group: str,
        outputs: Sequence[NodeValue] = (),
        learners: Sequence[Learner] = (),
    ) -> None:
        roots = [function.root for function in criteria]
        self._free = FreeSizes(roots, longest_of)
        known = set(self._free.nodes)
        outputs = [
            function for function in outputs if known.issuperset(free_nodes([function]))
        ]  # of others sizes are not known
        self._made = partial(Objective, criteria, group, outputs, learners)
        self._sizes: Sizes = probe_sizes(roots) if known else {}
        self.now = self._made(self._sizes or None)
        self._last: tuple[Minibatch, Sizes] | None = None
        """The last minibatch that was made of data, and its sizes."""
        self._known = {tuple(self._sizes.values()): self.now}

    @property
    def is_free(self) -> bool:
        """Return whether there are sizes that only data say."""
        return bool(self._free.nodes)

    @property
    def arguments(self) -> Arguments:
        """Makes minibatches of data of the sizes of now."""
        return self.now.arguments

    def minibatch(self, data: object, continued: bool = False) -> Minibatch:
        """Return the minibatch of some data, see `Arguments.minibatch`; the objective of now becomes that of its
        sizes.
        """
        if self.is_free:
            self._choose(self._free(data))
        result = self.arguments.minibatch(data, continued=continued)
        self._last = (result, self._sizes) if self.is_free else None
        return result

    def fit(self, minibatch: Minibatch) -> None:
        """Let the objective of now be that of the sizes of a minibatch whose streams are called like the input nodes.

        Raises:
            ArgumentError: it does not say them, and was not made by `minibatch` just before.
        """
        if not self.is_free:
            return
        if self._last is not None and self._last[0] is minibatch:
            self._choose(self._last[1])
            return
        names = {argument.function.root: argument.node.name for argument in self.arguments.inputs}
        self._choose(self._free.of_minibatch(minibatch, names, self._sizes))

    def restore(self, sizes: Sequence[Sequence[int]]) -> None:
        """Let the objective be that of the sizes that a checkpoint has.

        Raises:
            ArgumentError: they are sizes of something else.
        """
        if not self.is_free:
            return
        if len(sizes) != len(self._free.nodes):
            raise ArgumentError("the checkpoint has sizes of another network", "restore that of this one")
        pairs = zip(self._free.nodes, sizes, strict=True)
        self._choose({node: tuple(int(axis) for axis in size) for node, size in pairs})

    def _choose(self, sizes: Mapping[NodeValue, Shape]) -> None:
        key = tuple(sizes.values())
        if key == tuple(self._sizes.values()):
            return
        objective = self._known.pop(key, None) or self._made(sizes)
        self._known[key] = objective  # the last one of them
        if len(self._known) > MAX_SIZES:
            self._known.pop(next(iter(self._known)))
        self._sizes, self.now = sizes, objective
        self.now.arguments.pieces.forget()  # no sequence continues in a network of another size


def renamed(
    arrays: Mapping[str, HostArray], names: Mapping[NodeValue, str], targets: Mapping[NodeValue, str]
) -> Arrays:
    """Return a snapshot of a compiled step, with the names that another network has for the same nodes.

    Args:
        arrays: see `CompiledStep.snapshot`.
        names: how the network of the step calls nodes.
        targets: how the other network calls them.
    """
    new = {name: targets[value] for value, name in names.items() if value in targets}
    result: dict[str, Any] = {}
    for path, array in arrays.items():
        part, line, key = path.partition("\n")
        name, *suffixes = key.split("\n")
        node, slash, suffix = name.partition("/")
        if part != "kept":
            name = new.get(name) or new.get(node, node) + slash + suffix
        result[part + line + "\n".join([name, *suffixes])] = array
    return result

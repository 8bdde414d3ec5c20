"""The objective of a trainer: the network of a loss and a metric, the parameters of its learners, its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import graph
from cntkpy.networks.builders.python.functions.calls import as_list
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.free import Known, Sizes, sized_model
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.per_sample import with_samples
from cntkpy.networks.builders.python.operations.reductions import reduce_sum
from cntkpy.networks.compile.evaluate import Settings
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.host.kinds import HOST
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.fronts.cntk2.data import Arguments, counted, has_one_element, inputs_of, needs_whole
from cntkpy.trainers.fronts.cntk2.learners import DistributedLearner, Learner
from cntkpy.trainers.fronts.cntk2.user.learners import PythonLearner, UserLearner
from cntkpy.trainers.rules.update_step import Group
from cntkpy.trainers.step.buckets import Buckets
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep
from cntkpy.trainers.step.strategy import Strategy


class Objective:
    """The network of some criteria.

    Args:
        criteria: The loss, and perhaps a metric; or the metric alone.
        group: The group of nodes that the first of them belongs to: "criterion" or "evaluation".
        outputs: What else the network computes.
        learners: They train the parameters; none: nothing is trained.
        sizes: Of the free nodes below; see `cntkpy.trainers.fronts.cntk2.sized`.

    Attributes:
        roots: The nodes of the criteria, as programs have made them.
        sizes: Of the free nodes.
        model: The network, and the values that it is made of.
        nodes: The nodes of the criteria; each has one element.
        arguments: Makes minibatches of what programs give.
        cells: The values that training may change.
        assigned: By the names of their nodes, the parameters that `assign` gives values.

    Raises:
        ArgumentError: The criteria depend on no input, or on no parameter of the learners.
    """

    def __init__(
        self,
        criteria: Sequence[Function],
        group: str,
        outputs: Sequence[NodeValue] = (),
        learners: Sequence[Learner] = (),
        sizes: Sizes | None = None,
    ) -> None:
        roots = [with_samples(criterion) for criterion in criteria]
        outputs = [with_samples(Function(root)).root for root in outputs]  # a criterion may be the model, too
        self.model, self.nodes, self._sized = _network_of(roots, group, outputs, sizes)
        if not all(map(has_one_element, self.nodes)):
            pairs = zip(roots, self.nodes, strict=True)
            roots = [criterion if has_one_element(node) else reduce_sum(criterion) for criterion, node in pairs]
            self.model, self.nodes, self._sized = _network_of(roots, group, outputs, sizes)
        self.roots, self.sizes = [criterion.root for criterion in roots], sizes or {}
        self._learners = learners
        self.learner_of = self._choose_parameters() if learners else {}
        self.assigned = self._assigned()
        whole = bool(learners) and needs_whole(self.model.nodes.values())
        self.arguments = Arguments(inputs_of(self.model, self.nodes), self.model.network.dtype, whole)
        if learners and not self.arguments.inputs:
            hint = "compute it from an input_variable; a minibatch has a value of the loss for each of its samples"
            raise ArgumentError("the criterion depends on no input, so there are no samples to train on", hint)
        self._counted = counted(self.nodes[0], self.arguments.inputs, self.model.nodes.values())
        self.cells = [cell_of(value) for value, node in self.model.nodes.items() if _changes(node)]

    def samples_of(self, minibatch: Minibatch) -> int:
        """Return the samples of a minibatch that the first criterion counts."""
        return self._counted(minibatch)

    @property
    def runs_python(self) -> bool:
        """Return whether the network contains Python code of the program, whose calls may print, count or stop."""
        return any(HOST in node.options for node in self.model.nodes.values())

    def _assigned(self) -> dict[str, NodeValue]:
        """Return the parameters of `assign`, which no gradient changes."""
        nodes = [node.input(0) for node in self.model.nodes.values() if node.kind.name == "Assign"]
        assigned = {node.name: value for value, node in self.model.nodes.items() if node in nodes}
        for node in nodes:
            node.learning_rate_multiplier = 0.0
        return assigned

    def names(self) -> dict[NodeValue, str]:
        """Return the names in the network of the nodes of the program."""
        copies = self._sized.copies.items()
        sized = {value: self.model.nodes[copy].name for value, copy in copies if copy in self.model.nodes}
        return {value: node.name for value, node in self.model.nodes.items()} | sized

    def compiled_step(self, strategy: Strategy, buckets: Buckets) -> CompiledStep:
        """Return the step that trains the parameters of the learners, with the padded shapes of minibatches."""
        first, *further = self._learners
        places = {id(learner): index for index, learner in enumerate(further)}
        groups = {
            name: Group(learner.rule, learner.regularisation, places[id(learner)])
            for name, learner in self.learner_of.items()
            if id(learner) in places
        }
        update = first.rule, first.regularisation
        return CompiledStep(self.model.network, self.nodes, *update, strategy=strategy, groups=groups, buckets=buckets)

    def user_learners(self) -> dict[str, tuple[Function, PythonLearner]]:
        """By the name of its node, each parameter that Python code changes, and its learner."""
        by_name = {name: entry for name, entry in self.learner_of.items() if isinstance(entry, PythonLearner)}
        names = {entry: node.name for entry, node in self.model.nodes.items()}
        return {
            names[entry.root]: (entry, learner)
            for learner in dict.fromkeys(by_name.values())
            for entry in learner.parameters
            if names.get(entry.root) in by_name
        }

    def _choose_parameters(self) -> dict[str, Learner]:
        """Only parameters of the learners are trained; by name, the learner of each."""
        wanted: dict[Node, Learner] = {}
        for learner in self._learners:
            for parameter in learner.parameters:
                node = self.model.nodes.get(parameter.root)
                if node is None:
                    continue
                if node in wanted:
                    raise ArgumentError(
                        f"two learners have the parameter '{node.name}'", "give each its own parameters"
                    )
                wanted[node] = learner
        if not wanted:
            raise ArgumentError("the criterion depends on no parameter of the learners", "give z.parameters")
        for node in self.model.nodes.values():
            if node.trainable and node not in wanted:
                node.learning_rate_multiplier = 0.0
        for node in self.model.nodes.values():
            if node.kind.name == "Assign" and node.input(0) in wanted:
                message = f"a learner has the parameter '{node.input(0).name}', which assign gives values"
                raise ArgumentError(message, "give the learner the others only")
        return {node.name: learner for node, learner in wanted.items()}


class CurrentSettings:
    """Rate, momentum and the like for the next minibatch, which is the same object while nothing changes.

    Args:
        learners: They decide them.
    """

    def __init__(self, learners: Sequence[Learner]) -> None:
        self._learners = learners
        self._settings: EpochSettings | None = None
        self._constants: list[Any] = []
        """Schedules that do not change, and the seed, which the settings are from; [] where some schedule changes."""

    def get(self, seed: int) -> EpochSettings:
        """Return the settings with a seed of random masks."""
        now: list[Any] = [seed]
        for learner in self._learners:
            now += learner.rate, learner.momentum
        if self._settings is not None and now == self._constants:
            return self._settings
        self._constants = now if all(learner.constant for learner in now[1:]) else []
        (value, kept, rate_for, per_sample), *groups = (learner.scalars() for learner in self._learners)
        self._settings = EpochSettings(
            value,
            kept,
            Settings(),
            seed,
            per_step=not per_sample,
            rate_for=int(rate_for),
            group_scalars=tuple(groups),
            counted=True,
        )
        return self._settings


def _changes(node: Node) -> bool:
    """Return whether training may change a node."""
    return node.is_parameter or bool(node.kind.running)


def _network_of(
    criteria: Sequence[Function], group: str, outputs: Sequence[NodeValue], sizes: Sizes | None
) -> tuple[graph.Model, list[Node], Known]:
    """Return the network of criteria and of what else a model gives; the nodes of the criteria; what is in whose
    place.
    """
    roots = [function.root for function in criteria]
    groups = {group: roots[:1], "evaluation": roots if group == "evaluation" else roots[1:], "output": outputs}
    made, known = sized_model([*roots, *(function for function in outputs if function not in roots)], groups, sizes)
    return made, [made.nodes[known.of(root)] for root in roots], known


def loss_and_metric(model: Function | None, criteria: object) -> tuple[Function, Function | None]:
    """Return the loss and the metric of what a program gives: functions, names of nodes, or None for those of the
    network.
    """
    if isinstance(criteria, Function):
        several: list[Any] = list(criteria.outputs)
    elif criteria is None and model is not None:
        network = model.model.network
        nodes = {node: value for value, node in model.model.nodes.items()}
        groups = network.groups["criterion"][:1] + network.groups["evaluation"][:1]
        several = [Function(nodes[node]) for node in groups]
    else:
        several = as_list(criteria)
    functions = [_criterion(model, criterion) for criterion in several if criterion is not None]
    if not functions or len(functions) > 2:
        raise ArgumentError(
            f"a trainer has a loss and perhaps a metric, not {len(functions)} criteria", "(loss, metric)"
        )
    return functions[0], functions[1] if len(functions) == 2 else None


def _criterion(model: Function | None, criterion: object) -> Function:
    if isinstance(criterion, Function):
        if criterion.is_leaf:
            hint = "cross_entropy_with_softmax(z, y)"
            raise ArgumentError(f"a criterion is computed from others, {criterion!r} is not", hint)
        return criterion
    if isinstance(criterion, str) and model is not None:
        function = model.find_by_name(criterion)
        if function is not None:
            return function
        raise ArgumentError(f"the network has no node '{criterion}'")
    if isinstance(criterion, Node) and model is not None:
        return _criterion(model, criterion.name)
    raise ArgumentError(f"a criterion is a function, not {type(criterion).__name__}")


def learners_of(learners: object) -> list[Learner]:
    """Return the learners of what a program gives, checked."""
    several: list[Any] = [
        learner.as_learner() if isinstance(learner, UserLearner) else learner for learner in as_list(learners)
    ]
    for learner in several:
        if isinstance(learner, Function):
            raise ArgumentError("a function is not a learner", "Trainer(model, (loss, metric), learner)")
        if not isinstance(learner, Learner):
            raise ArgumentError(f"{type(learner).__name__} is not a learner", "make one: sgd(z.parameters, lr=0.1)")
    if not several:
        raise ArgumentError("a trainer needs a learner", "sgd(z.parameters, lr=0.1)")
    shared = [learner for learner in several if isinstance(learner, DistributedLearner)]
    if shared and len(shared) < len(several):
        raise ArgumentError("some learners are for several workers, others are not", "data_parallel(learner) for each")
    if len(several) > 1 and any(learner.block is not None for learner in shared):
        raise ArgumentError("block momentum takes one learner", "data_parallel(learner) for each of several learners")
    if len({learner.after for learner in shared}) > 1:
        raise ArgumentError("the learners are distributed after different numbers of samples", "give all the same")
    return several

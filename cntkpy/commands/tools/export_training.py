"""`cntkpy export CONFIG OUT --to pytorch --training`: the training of a configuration as a program of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.actions.training import TrainingParameters
from cntkpy.commands.tools import export_data
from cntkpy.networks.graph.axes import ONE, is_kept
from cntkpy.networks.source.training import data, optimiser, program
from cntkpy.networks.source.training.data import Loading
from cntkpy.networks.source.training.program import Epochs, Group, Training

if TYPE_CHECKING:
    from cntkpy.cntk_config import ConfigParameters
    from cntkpy.networks.graph.network import Node, ValidatedNetwork
    from cntkpy.networks.nodes.source_support.layers import Tensor
    from cntkpy.networks.source.export import Settings, Source
    from cntkpy.networks.source.function import Function
    from cntkpy.readers.contracts import MinibatchReader
    from cntkpy.trainers.parameters.sgd import SGDParameters


@dataclass(frozen=True)
class Asked:
    """The training of a configuration.

    Args:
        config: the file of the configuration.
        command: the command that trains.
        section: its section.
        network: its network, before training.
        own_data: whether files are read by the program itself; else by `cntkpy.readers`.
    """

    config: str
    command: str
    section: ConfigParameters
    network: ValidatedNetwork
    own_data: bool = True

    @property
    def parameters(self) -> SGDParameters:
        """Return the SGD section."""
        return TrainingParameters(self.section).sgd

    @property
    def reader_section(self) -> ConfigParameters:
        """The section of the data."""
        return TrainingParameters(self.section).reader


@dataclass(frozen=True)
class Written:
    """A network and its training.

    Attributes:
        source: the network.
        text: of `train.py`.
        notes: lines for the README.
    """

    source: Source
    text: str
    notes: list[str]


def write_training(asked: Asked, settings: Settings) -> Written:
    """Write a network and its training as programs of PyTorch.

    Args:
        asked: the training.
        settings: of the network; its outputs are chosen here.

    Raises:
        UserError: the training has something that is not written; all of it is listed.
    """
    from cntkpy.networks.onnx import ours
    from cntkpy.networks.source.export import export
    from cntkpy.networks.source.function import criteria_function
    from cntkpy.networks.source.graph import prediction_nodes
    from cntkpy.trainers.fronts.config.criteria import choose_criteria

    criteria, evaluations = choose_criteria(asked.network, asked.parameters)
    roots = [criteria[0], *evaluations]
    names = [node.name for node in roots]
    cut = [node.name for node in prediction_nodes(asked.network, roots)]
    _compute_statistics(asked, cut or names)
    function = criteria_function(asked.network, names, cut, ours.constants)
    if function.parameters or not cut:  # then the network gives the criteria themselves
        source = export(asked.network, ours.constants, replace(settings, outputs=tuple(names)))
        function = None
    else:
        source = export(asked.network, ours.constants, replace(settings, outputs=tuple(cut)))
    return _Writer(asked, roots, source, function).written()


def _compute_statistics(asked: Asked, names: Sequence[str]) -> None:
    """Compute means and deviations of the data that nodes depend on, as a training does before its first epoch."""
    from cntkpy.trainers.evaluation.precompute import precompute

    network, p = asked.network, asked.parameters
    below = set(network.below([network.find(name) for name in names]))
    if not below.intersection(network.precompute_nodes()):
        return
    samples = None if p.precompute_on_all_data else p.epoch_size or None
    reader = export_data.open_reader(asked.reader_section, network.precision)
    precompute(network, _minibatches(reader, p.minibatch_size[0], samples), p.minibatch_size[0])


def _minibatches(reader: MinibatchReader, size: int, samples: int | None) -> Iterator[Any]:
    reader.start_minibatch_loop(size, 0, samples)
    while (minibatch := reader.get_minibatch()) is not None:
        yield minibatch


class _Writer:
    """Collects what a program needs, and what it cannot have.

    Attributes:
        reasons: what cannot be written, and why.
    """

    def __init__(self, asked: Asked, roots: list[Node], source: Source, function: Function | None) -> None:
        self.asked, self.roots, self.source, self.function = asked, roots, source, function
        self.network, self.p = asked.network, asked.parameters
        self.reasons: list[str] = []
        self.nodes = list(source.graph.users)
        self.norms = [node for node in self.nodes if node.operation == "BatchNormalization"]

    def written(self) -> Written:
        """Return the programs.

        Raises:
            UserError: some of the training is not written.
        """
        self._check_parameters()
        rule, groups, frozen = self._rule()
        epochs = self._epochs()
        outputs, results = self._names()
        loading, inputs, arguments = self._data(rule, outputs)
        if self.reasons or loading is None:
            raise self._refusal()
        training = Training(
            model=self.source.name,
            origin=self.asked.config.rpartition("/")[2],
            loading=loading,
            rule=rule,
            epochs=epochs,
            inputs=inputs,
            outputs=list(outputs.values()),
            criteria="" if self.function is None else self.function.text,
            arguments=arguments,
            results=results,
            frozen=frozen,
            groups=groups,
            seen=self.norms[0].samples if self.norms else 0,
            notes=self._notes(loading),
        )
        return Written(self.source, program.program(training), self._ignored())

    def _refusal(self) -> UserError:
        listed = "\n".join(f"  {reason}" for reason in self.reasons)
        message = f"the training cannot be written as PyTorch source, because of:\n{listed}"
        return UserError("NotSupported", message, hint="without --training the network alone is written")

    # ---- parameters

    def _check_parameters(self) -> None:
        """Note parameters that have no code."""
        p: Any = self.p
        adapts = p.auto_adjust.adjust_minibatch
        unwritten = {
            "AutoAdjust: it finds the rates while it trains": not (p.rates_per_mb or p.rates_per_sample),
            "autoAdjustMinibatch: it finds the minibatch size while it trains": adapts,
            "truncated: the states of a recurrence would go from one minibatch to the next": p.truncated,
            "gaussianNoiseInjectStd: PyTorch draws other numbers than JAX": p.noise > 0,
        }
        self.reasons += [reason for reason, applies in unwritten.items() if applies]
        if p.auto_adjust.auto_adjust_lr.lower() not in ("none", "false") and (p.rates_per_mb or p.rates_per_sample):
            self.reasons.append("autoAdjustLR: it changes the rates while it trains")

    def _rule(self) -> tuple[optimiser.Rule, list[Group], list[str]]:
        """The update rule, the parameters with options of their own, and those that are not trained."""
        from cntkpy.networks.compile.differentiable import row_parameters
        from cntkpy.networks.compile.plan import Plan
        from cntkpy.trainers.fronts.config.criteria import gradient_nodes
        from cntkpy.trainers.rules import rules

        p = self.p
        moving = any(momentum for momentum in self._momenta())
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
        by_row = row_parameters(Plan(self.network, [self.roots[0].name], training=True))
        if not rule.moving and rule.kind in (optimiser.MOMENTUM, optimiser.NESTEROV) and not rule.l2:
            by_row = {}
        trained = {node.name for node in gradient_nodes(self.network, self.roots[0]) if node.trainable}
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
        """The parameters that a tensor is made of; None: nobody knows."""
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
        """The options of the optimiser for a tensor."""
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

    def _momenta(self) -> list[float]:
        from cntkpy.trainers.schedules.schedules import Schedules

        schedules = Schedules(self.p)
        return [schedules.momentum_per_sample(epoch) for epoch in range(self.p.max_epochs)]

    def _epochs(self) -> Epochs:
        """Return the values of each epoch."""
        from cntkpy.trainers.rules.rules import network_settings
        from cntkpy.trainers.schedules.schedules import Schedules

        p = self.p
        schedules, epochs = Schedules(p), range(p.max_epochs)
        dropouts = [node for node in self.nodes if node.operation == "Dropout"]
        rates = [float(p.dropout_rate[epoch]) for epoch in epochs]
        if len(set(rates)) < 2 or not dropouts:
            rates = []
        elif any(node.options.get("rate") is not None for node in dropouts):
            self.reasons.append(
                "dropoutRate changes from epoch to epoch, and some Dropout nodes have a rate of their own"
            )
        constants: list[float] = []
        if self.norms:
            constants = self._time_constants([network_settings(p, epoch) for epoch in epochs])
        known = bool(p.rates_per_mb or p.rates_per_sample)
        return Epochs(
            [int(p.minibatch_size[epoch]) for epoch in epochs],
            [schedules.rate_per_sample(epoch) for epoch in epochs] if known else [],
            self._momenta(),
            rates,
            constants,
        )

    def _time_constants(self, settings: Sequence[Any]) -> list[float]:
        """The time constants of batch normalisation of each epoch."""
        result: list[float] = []
        for of_epoch in settings:
            every = {_chosen(of_epoch.bn_time_constant, node, "normalizationTimeConstant") for node in self.norms}
            blends = {_chosen(of_epoch.bn_blend_time_constant, node, "blendTimeConstant") for node in self.norms}
            if blends != {0.0}:
                self.reasons.append("batchNormalizationBlendTimeConstant: PyTorch normalises by the minibatch alone")
                return []
            if len(every) > 1:
                self.reasons.append("BatchNormalization nodes have several time constants")
                return []
            result.append(every.pop())
        if len({node.samples for node in self.norms}) > 1:
            self.reasons.append("BatchNormalization nodes have statistics of several numbers of samples")
        if self.source.graph.along_time:
            self.reasons.append("BatchNormalization of sequences: PyTorch's layer counts the padding, too")
        if not any(tensor.buffer and name.endswith("running_var") for name, tensor in self.source.tensors.items()):
            self.reasons.append("BatchNormalization whose parameters other nodes have, too")
        return result

    # ---- data

    def _names(self) -> tuple[dict[Node, str], list[str]]:
        """Names of what the network gives, and of the criteria."""
        from cntkpy.networks.nodes.source_support.names import Names, given_name

        taken = {"model", "data", "batch", "optimiser", "epoch", "size", "rate", "momentum", "totals", "count", "total"}
        names = Names(taken | {"samples", "seen", "group", "module", "sequences", "minibatch", "name", "F"})
        outputs = {node: names.take(given_name(node) or "output") for node in self.source.outputs}
        results = [names.take("loss"), *(names.take(given_name(node) or "metric") for node in self.roots[1:])]
        return outputs, results

    def _data(self, rule: optimiser.Rule, outputs: dict[Node, str]) -> tuple[Loading | None, list[str], list[str]]:
        """The data, and the expressions of the arguments of the network and of the criteria."""
        source, function = self.source, self.function
        along_time = source.graph.along_time
        of_model = {node.name: node for node in source.arguments.values()}
        outer = {node.name for node in source.outputs}
        of_criteria = {node.name: node for node in (function.arguments if function else ()) if node.name not in outer}
        inputs = {**of_criteria, **of_model}
        indices = {node.name for node in source.indices}
        described = export_data.describe(self.asked.reader_section, list(inputs.values()), self._source_of_data())
        self.reasons += described.reasons
        streams: list[data.Stream] = []
        for name, node in inputs.items():
            stream = described.streams.get(name)
            if stream is None:
                continue
            if name in of_model or (function is not None and function.along_time):
                form = data.STEPS if along_time else data.FRAMES
            else:
                form = data.TOGETHER if along_time else data.FRAMES
            form = data.ONE_EACH if along_time and node.axis == ONE else form
            streams.append(replace(stream, index=name in indices, form=form))
        masks, counted = self._masks(inputs, function)
        if self.reasons or described.origin is None:
            return None, [], []
        loading = Loading(
            described.origin,
            streams,
            dict(masks.values()),
            counted,
            described.shuffled and self.asked.own_data,
            self.p.epoch_size,
            described.cut,
            along_time or described.sequences,
            self._counting(inputs) if rule.reads_samples else (),
            described.length,
        )
        forms = {stream.name: stream.form for stream in streams}
        expressions = [f'batch["{node.name}"]' for node in source.arguments.values()]
        expressions += [f'batch["{masks[axis][0]}"]' for axis in source.masks.values()]
        arguments: list[str] = []
        named = {node.name: name for node, name in outputs.items()}
        for node in function.arguments if function else ():
            text = named.get(node.name) or f'batch["{node.name}"]'
            padded = node.name in named or forms[node.name] == data.STEPS
            if along_time and function is not None and not function.along_time and padded and node.axis != ONE:
                text += f'[batch["{masks[str(node.axis)][0]}"]]'
            arguments.append(text)
        arguments += [f'batch["{masks[axis][0]}"]' for axis in (function.masks if function else ())]
        return loading, expressions, arguments

    def _source_of_data(self) -> data.Reader | None:
        if self.asked.own_data:
            return None
        return data.Reader(self.asked.config, self.asked.command)

    def _masks(self, inputs: dict[str, Node], function: Function | None) -> tuple[dict[str, tuple[str, str]], str]:
        """By time axis, the name of its mask and a stream on it; and the mask whose steps the criterion sums up."""
        from cntkpy.trainers.step.axes import network_axes

        if not self.source.graph.along_time:
            return {}, ""
        axes = network_axes(self.network, self.roots)
        counted = {str(axis) for axis in axes.counted} if axes is not None else {str(self._only_axis(inputs))}
        if len(counted) > 1:
            self.reasons.append("the criterion and the evaluation nodes are sums over several time axes")
        wanted = [*self.source.masks.values(), *(function.masks if function else ()), *counted]
        if function is not None and not function.along_time:
            wanted += [str(node.axis) for node in (*self.source.outputs, *inputs.values()) if node.axis]
        result: dict[str, tuple[str, str]] = {}
        several = len({*wanted} - {ONE}) > 1
        for axis in wanted:
            if axis in result or axis == ONE:
                continue
            stream = next((name for name, node in inputs.items() if str(node.axis) == axis), None)
            if stream is None or is_kept(axis):
                self.reasons.append(f"the steps of '{axis}' are known only when the network is computed")
                continue
            result[axis] = (f"{stream}_mask" if several else "mask", stream)
        only = counted.pop() if len(counted) == 1 else ""
        return result, result[only][0] if only in result else ""

    def _only_axis(self, inputs: dict[str, Node]) -> str | None:
        return next((node.axis for node in inputs.values() if node.axis != ONE), ONE)

    def _counting(self, inputs: dict[str, Node]) -> list[str]:
        """The names of the streams whose cells count in momentum and regularisation."""
        from cntkpy.trainers.step.axes import network_axes

        axes = network_axes(self.network, self.roots)
        by_axis: dict[str, str] = {}
        for name, node in inputs.items():
            if axes is None or name in axes.features:
                by_axis.setdefault(str(node.axis) if axes is not None else "", name)
        return list(by_axis.values())

    # ---- words

    def _notes(self, loading: Loading) -> list[str]:
        """Lines for the head of the program."""
        notes: list[str] = []
        if loading.shuffled:
            notes.append(
                "The configuration shuffles the data; here they come in another order, so that criteria differ."
            )
        if any(node.operation == "Dropout" for node in self.nodes):
            notes.append("Dropout draws other numbers than CNTK, so that criteria differ.")
        elif any(node.kind.random for node in self.nodes):
            notes.append("The network draws random numbers, others than CNTK, so that criteria differ.")
        if isinstance(loading.origin, data.Reader):
            notes.append("The data are read by cntkpy, in the order of the configuration.")
        return notes

    def _ignored(self) -> list[str]:
        """Lines for the README: what of the configuration has no code here."""
        p, lines = TrainingParameters(self.asked.section), list[str]()
        if p.cv_reader is not None:
            lines.append("`cvReader` is not written: `train.py` validates nothing.")
        if self.p.parallel_train is not None:
            lines.append("`ParallelTrain` is not written: `train.py` is one process.")
        lines.append(
            "Checkpoints and logs (`keepCheckPointFiles`, `numMBsToShowResult`, ...) are not written; "
            "`trained.safetensors` has the weights after the last epoch."
        )
        if self.network.precision == "double":
            lines.append("The configuration is of double precision; `train.py` computes in single precision.")
        return lines


def _chosen(of_epoch: float | None, node: Node, option: str) -> float:
    return float(node.options[option]) if of_epoch is None else float(of_epoch)


def _row_axis(tensor: Tensor, node: Node) -> int | None:
    """The axis of a tensor along which the rows lie that inputs touch; None: there is none."""
    rows, size = (node.shape or (0, 0))[1], (node.shape or (0, 0))[0]
    numbers = np.repeat(np.arange(rows), size)
    arranged = tensor.arrange(numbers) if tensor.arrange is not None else None
    if arranged is None or arranged.ndim != 2:
        return None
    if (arranged == np.arange(rows)[:, None]).all() if arranged.shape[0] == rows else False:
        return 0
    return 1 if arranged.shape[1] == rows and (arranged == np.arange(rows)).all() else None

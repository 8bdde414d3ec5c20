"""The minibatches of a training, as a program of PyTorch reads and passes them on: `cntkpy export --training`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cntkpy.commands.actions.training import TrainingParameters
from cntkpy.commands.tools import export_data
from cntkpy.networks.graph.axes import ONE, is_kept
from cntkpy.networks.source.training import data, optimiser
from cntkpy.networks.source.training.data import Loading

if TYPE_CHECKING:
    from cntkpy.cntk_config import ConfigParameters
    from cntkpy.networks.graph.network import Node, ValidatedNetwork
    from cntkpy.networks.source.export import Source
    from cntkpy.networks.source.function import Function
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


@dataclass
class BatchesWriter:
    """Writes how data become arguments of the network and of the criteria.

    Args:
        asked: the training.
        roots: the criterion and the evaluation nodes.
        source: the network as source.
        function: the criteria as a function, None if the network gives them.
        reasons: gets what cannot be written, and why.
    """

    asked: Asked
    roots: list[Node]
    source: Source
    function: Function | None
    reasons: list[str]

    def names(self) -> tuple[dict[Node, str], list[str]]:
        """Return names of what the network gives, and of the criteria."""
        from cntkpy.networks.nodes.source_support.names import Names, given_name

        taken = {"model", "data", "batch", "optimiser", "epoch", "size", "rate", "momentum", "totals", "count", "total"}
        names = Names(taken | {"samples", "seen", "group", "module", "sequences", "minibatch", "name", "F"})
        outputs = {node: names.take(given_name(node) or "output") for node in self.source.outputs}
        results = [names.take("loss"), *(names.take(given_name(node) or "metric") for node in self.roots[1:])]
        return outputs, results

    def written(self, rule: optimiser.Rule, outputs: dict[Node, str]) -> tuple[Loading | None, list[str], list[str]]:
        """Return the data, and the expressions of the arguments of the network and of the criteria."""
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
        masks, counted = self._masks(inputs)
        if self.reasons or described.origin is None:
            return None, [], []
        loading = Loading(
            described.origin,
            streams,
            dict(masks.values()),
            counted,
            described.shuffled and self.asked.own_data,
            self.asked.parameters.epoch_size,
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

    def _masks(self, inputs: dict[str, Node]) -> tuple[dict[str, tuple[str, str]], str]:
        """Return masks by time axis, each with a stream on the axis, and the mask whose steps the criterion sums up."""
        from cntkpy.trainers.step.axes import network_axes

        function = self.function
        if not self.source.graph.along_time:
            return {}, ""
        axes = network_axes(self.asked.network, self.roots)
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
        """Return the names of the streams whose cells count in momentum and regularisation."""
        from cntkpy.trainers.step.axes import network_axes

        axes = network_axes(self.asked.network, self.roots)
        by_axis: dict[str, str] = {}
        for name, node in inputs.items():
            if axes is None or name in axes.features:
                by_axis.setdefault(str(node.axis) if axes is not None else "", name)
        return list(by_axis.values())

"""Everything that has a name: sections with their parameters, functions of networks, commands of MEL, findings.

`cntkpy help`, `cntkpy list` and the reference pages are made from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points

from cntk_config.base.objects import load_object
from cntk_config.declare import Declared, Parameter
from cntk_config.entry import find_entry
from commands.catalogue.dispatch import ACTIONS, action_names
from readers.entries import DESERIALIZER, READER, TRANSFORM, WRITER, Kind, entries, sections_of

EXAMPLES = {
    "SGD": "SGD = [ maxEpochs = 10 ; minibatchSize = 64:256 ; learningRatesPerMB = 0.1*5:0.01 ; momentumPerMB = 0.9 ]",
    "AutoAdjust": "AutoAdjust = [ autoAdjustLR = adjustAfterEpoch ; learnRateDecreaseFactor = 0.5 ]",
    "ParallelTrain": "ParallelTrain = [ parallelizationMethod = DataParallelSGD ]",
    "DataParallelSGD": "DataParallelSGD = [ gradientBits = 32 ]",
    "ModelAveragingSGD": "ModelAveragingSGD = [ blockSizePerWorker = 40000 ]",
    "BlockMomentumSGD": "BlockMomentumSGD = [ blockSizePerWorker = 120000 ; blockMomentumPerSync = 0.75 ]",
    "SimpleNetworkBuilder": "SimpleNetworkBuilder = [ layerSizes = 784:200:10 ; "
    "trainingCriterion = CrossEntropyWithSoftmax ; evalCriterion = ErrorPrediction ]",
    "NDLNetworkBuilder": "NDLNetworkBuilder = [ run = net ]",
    "format": "format = [ type = category ; labelMappingFile = labels.txt ]",
    "top level": "command = train:test\ndeviceId = cpu\nstderr = log/run",
}


@dataclass(frozen=True)
class Topic:
    """A section that is declared: what it is called, of what kind it is, where its declaration is."""

    name: str
    kind: str
    path: str
    given: str = ""
    """A piece of configuration, if it is not one of `EXAMPLES`."""

    @property
    def declared(self) -> type[Declared]:
        """The declaration."""
        return load_object(self.path)

    @property
    def meaning(self) -> str:
        """What it is, in one line."""
        return " ".join((self.declared.__doc__ or "").split())

    @property
    def example(self) -> str | None:
        """A piece of configuration."""
        return self.given or EXAMPLES.get(self.name)


def topics() -> list[Topic]:
    """All declared sections, in the order of the reference."""
    return [
        Topic("top level", "top level", "commands.context.root:RootParameters"),
        Topic("command", "every command", "commands.context.root:CommandParameters"),
        *(Topic(one.name, "action", one.parameters, one.example) for one in ACTIONS if one.parameters),
        Topic("SGD", "training", "trainers.parameters.sgd:SGDParameters"),
        Topic("AutoAdjust", "training", "trainers.parameters.sgd:AutoAdjustParameters"),
        Topic("ParallelTrain", "training", "trainers.parameters.parallel:ParallelParameters"),
        Topic("DataParallelSGD", "training", "trainers.parameters.parallel:DataParallelParameters"),
        Topic("ModelAveragingSGD", "training", "trainers.parameters.parallel:ModelAveragingParameters"),
        Topic("BlockMomentumSGD", "training", "trainers.parameters.parallel:BlockMomentumParameters"),
        Topic("format", "output", "trainers.parameters.sgd:FormatParameters"),
        Topic("SimpleNetworkBuilder", "builder", "networks.builders.simple.parameters:SimpleNetworkBuilder"),
        Topic("NDLNetworkBuilder", "builder", "networks.builders.ndl.source:NDLBuilderParameters"),
        Topic("reader", "every reader", "readers.parameters:ReaderParameters"),
        *_found(READER),
        Topic("deserializer", "every deserializer", "readers.parameters:DeserializerParameters"),
        *_found(DESERIALIZER),
        *_inside(READER, DESERIALIZER),
        *(Topic(one.name, "section of transforms", one.parameters) for one in entries(TRANSFORM)),
        *_inside(WRITER),
        Topic("writer", "every writer", "readers.parameters:WriterParameters"),
        *_found(WRITER),
    ]


def _found(kind: Kind) -> Iterator[Topic]:
    """Things of a kind with a declaration; other names of the same declaration are not repeated."""
    seen: set[str] = set()
    for one in entries(kind):
        if one.parameters and one.parameters not in seen:
            seen.add(one.parameters)
            yield Topic(one.name, kind.name, one.parameters, one.example)


def _inside(*kinds: Kind) -> Iterator[Topic]:
    """Sections with names of the user's choice inside the sections of these kinds."""
    for kind in kinds:
        for one in entries(kind):
            for section in sections_of(one):
                yield Topic(section.name, f"section of {one.name}", section.parameters, section.example)


def find_topics(name: str) -> list[Topic]:
    """Sections of that name, letter case aside. Other names of an action count."""
    action = find_entry(name, ACTIONS)
    path = action.parameters if action else None
    return [one for one in topics() if one.name.lower() == name.lower() or (path and one.path == path)]


def find_parameters(name: str) -> list[tuple[Topic, Parameter]]:
    """Where a parameter of that name is declared; what a section has from a more general one is not repeated."""
    found: list[tuple[Topic, Parameter]] = []
    for topic in topics():
        parameter = topic.declared.parameter(name)
        if parameter is not None and all(parameter is not known for _, known in found):
            found.append((topic, parameter))
    return found


def default_text(parameter: Parameter) -> str:
    """The default for a reader: `required`, `-` for none, else the text of it."""
    if parameter.required:
        return "required"
    if parameter.default is None:
        return "-"
    return parameter.default if parameter.default != "" else '""'


def installed(group: str) -> list[tuple[str, str]]:
    """Names that installed packages offer in a group, each with the package and its version."""
    return [
        (point.name, f"{point.dist.name} {point.dist.version}" if point.dist else point.value)
        for point in sorted(entry_points(group=group))
    ]


def all_names() -> list[str]:
    """Every name that `cntkpy help` knows."""
    from cntk_config.base.kinds import RULES
    from networks import nodes
    from networks.mel.commands import COMMANDS

    names = [one.name for one in topics()] + action_names()
    names += [p.name for topic in topics() for p in topic.declared.parameters()]
    names += [name for kind in nodes.kinds() for name in kind.names]
    names += [name for kind in COMMANDS for name in kind.names]
    return list(dict.fromkeys([*names, *(rule.code for rule in RULES)]))

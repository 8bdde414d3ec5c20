"""Run context that an action receives with its section."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.commands.context.device import Device
from cntkpy.commands.context.interrupt import StopRequest
from cntkpy.commands.context.progress import NoProgress, Progress, ProgressTracing

if TYPE_CHECKING:
    from cntkpy.networks.graph.initialize import SeedCounter
    from cntkpy.trainers.parallel.communicator import Communicator

Precision = Literal["float", "double", "bfloat16"]


def data_precision(precision: str) -> Literal["float", "double"]:
    """Return the element type of readers and writers in a run of that precision."""
    return "double" if precision == "double" else "float"


class Seeds:
    """The counter of random parameter initialisations: one per process, made when a network is first built."""

    def __init__(self, constant: bool = False):
        self.constant = constant
        self._counter: SeedCounter | None = None

    def counter(self) -> "SeedCounter":
        """Return the counter."""
        if self._counter is None:
            from cntkpy.networks.graph.initialize import SeedCounter

            self._counter = SeedCounter(constant=self.constant)
        return self._counter


class Change(NamedTuple):
    """A setting that is not as it was kept with a model."""

    path: str
    before: str
    now: str
    span: Span | None
    """The place of the value now."""
    in_word: bool
    """True if a word of the command line has set it, or a variable in it, and the same data have not only moved."""


class TrainingSettings(Protocol):
    """Settings of a training in the configuration."""

    def texts(self) -> dict[str, str]:
        """Return the values that are given, by path; they are kept with the model."""
        ...

    def changed(self, kept: dict[str, str]) -> Iterable[Change]:
        """Everything that is not as it was kept."""
        ...


@dataclass
class RunContext:
    """Given to every action besides its section."""

    command: str
    """The name of the section being run."""
    action: str
    """The name of the action, as written."""
    precision: Precision = "float"
    """Data type of network computations."""
    trace_level: int = 0
    """The section's `traceLevel`."""
    make_mode: bool = True
    """True if work that is done already is left alone: `makeMode`."""
    deterministic: bool = False
    """`forceDeterministicAlgorithms`."""
    device: Device = field(default_factory=Device)
    progress: Progress = field(default_factory=NoProgress)
    """The progress bar: start, update, finish."""
    stop: StopRequest | None = None
    """True if a signal has asked the run to stop; None where signals are not its own."""
    progress_tracing: ProgressTracing = field(default_factory=ProgressTracing)
    """The `PROGRESS:` lines: point, keep_alive."""
    seed_source: Seeds = field(default_factory=Seeds)
    trained: str | None = None
    """The model that an earlier action of the same command has trained."""
    strict: bool = False
    """True if what a command only warns about, ends the run: `strict`."""
    settings: Callable[[], TrainingSettings] | None = None
    """Settings of this command's training in the configuration."""
    link: "Communicator | None" = None
    """The other processes of the run, if it has any."""

    @property
    def data_precision(self) -> Literal["float", "double"]:
        """The element type of readers and writers."""
        return data_precision(self.precision)

    @property
    def seeds(self) -> "SeedCounter":
        """The counter of random initialisations; it resumes from command to command."""
        return self.seed_source.counter()

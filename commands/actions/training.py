"""What `train` and `adapt` have in common: where a training begins, its readers, and how it runs."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cntk_config.base.files import why_not_written
from cntk_config.declare import BOOLEAN, SECTION, Declared, Parameter, section_of
from commands.actions.networks_and_readers import load, log_ignored, process_group_of, reader_for
from commands.context.interrupt import AskingProgress, run_until_stopped
from commands.context.root import CommandParameters
from commands.context.run_context import RunContext
from readers.parameters import ReaderParameters
from readers.registry import varying_slots

if TYPE_CHECKING:
    from networks.graph.network import ValidatedNetwork
    from readers.contracts import MinibatchReader
    from trainers.loop.adaptation import MixedTargets

log = logging.getLogger("cntkpy.commands")


class TrainingParameters(Declared):
    """A section that trains a network."""

    make_mode = Parameter("makeMode", BOOLEAN, default="true", help="Go on from the newest model of this training.")
    sgd = Parameter("SGD", section_of("trainers.parameters.sgd:SGDParameters"), help="How to train.")
    reader = Parameter("reader", SECTION, help="Training data.")
    cv_reader = Parameter("cvReader", SECTION, default=None, help="Data evaluated after every epoch.")


@contextmanager
def only_run(p: TrainingParameters, context: RunContext) -> Generator[None]:
    """See that the files of the model can be written, and that no other run writes them.

    Raises:
        ConfigError: where the name is that of something else.
        UserError: if the model is in use.
    """
    from trainers.checkpoints.lock import only_run_of

    path = str(p.sgd.model_path)
    wrong = why_not_written(path)
    if wrong:
        raise p.sgd.error("modelPath", f"'{path}' cannot be a model file: {wrong}", "give the name of a file")
    if context.link is not None and context.link.rank:
        yield  # the main process holds the lock
        return
    with only_run_of(path):
        yield


def finished_epochs(p: TrainingParameters, context: RunContext) -> int | None:
    """How many epochs of the training are done, once its parameters are checked; `None` if it begins afresh.

    That nothing is left to do is logged.
    """
    from trainers.checkpoints.checkpoint import find_start, remove_stale_partials
    from trainers.parameters.checks import check_parameters

    sgd = p.sgd
    check_parameters(sgd, context.precision)
    log_ignored(sgd, "SGD", context)
    start = find_start(str(sgd.model_path), sgd.max_epochs) if p.make_mode else None
    if context.link is not None:  # the main process may write the first file while others still look for it
        start = context.link.from_main(start)
    if context.link is None or not context.link.rank:
        remove_stale_partials(str(sgd.model_path), start)
    if start == sgd.max_epochs:
        log.info("Final model exists: %s", sgd.model_path)
        log.info("No further training is necessary.")
    return start


def load_finished(p: TrainingParameters, start: int, context: RunContext) -> "ValidatedNetwork":
    """The network after so many epochs of the training."""
    from trainers.checkpoints.checkpoint import model_name

    model = model_name(str(p.sgd.model_path), start, p.sgd.max_epochs)
    log.info("Starting from checkpoint. Loading network from '%s'.", model)
    return load(model, context)


def run_training(
    p: TrainingParameters,
    network: "ValidatedNetwork",
    start: int | None,
    context: RunContext,
    *,
    device: str | None,
    own_trace_level: bool,
    targets: "MixedTargets | None" = None,
) -> None:
    """Train the network until its last epoch, or until a signal stops the run.

    Args:
        start: see `finished_epochs`.
        device: see `trainers.loop.sgd.Training`.
        own_trace_level: whether readers may have a `traceLevel` of their own; the command's is theirs otherwise.
        targets: see `trainers.loop.sgd.Training`.
    """
    from trainers.loop.sgd import Training
    from trainers.parallel.plan import parallel_plan
    from trainers.parallel.training import ParallelTraining

    parallel = ParallelTraining(process_group_of(context), parallel_plan(p.sgd, context.precision), context.precision)

    def stops_while_reading() -> bool:
        return context.stop is not None and context.stop() and parallel.stops_while_reading

    def make(name: str, stop: Callable[[], bool] | None = None) -> "MinibatchReader":
        given = own_trace_level and CommandParameters.trace_level.stands_in(p.config.section(name))
        return reader_for(p.config, name, context, stop, **({} if given else {"traceLevel": str(context.trace_level)}))

    training = Training(
        p.sgd,
        network,
        make("reader", context.stop and stops_while_reading),
        make("cvReader") if p.cv_reader is not None else None,
        start or 0,
        loaded=start is not None,
        progress=context.progress.inner if isinstance(context.progress, AskingProgress) else context.progress,
        tracing=context.progress_tracing,
        device=device,
        targets=targets,
        parallel_sequences=ReaderParameters(p.reader).slots,
        varying_sequences=varying_slots(p.reader),
        parallel=parallel,
    )
    run_until_stopped(training, context.stop)

"""Shared code of `train` and `adapt`: where a training begins, its readers, and how it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import ConfigError, Diagnostic, Span
from cntkpy.cntk_config.base.files import exists, is_file
from cntkpy.cntk_config.base.names import is_url
from cntkpy.cntk_config.base.writing import shown, why_no_folder, why_not_written
from cntkpy.cntk_config.declare import BOOLEAN, SECTION, Declared, Parameter, section_of
from cntkpy.commands.actions.networks_and_readers import load, log_ignored, process_group_of, reader_for
from cntkpy.commands.context.interrupt import AskingProgress, run_until_stopped
from cntkpy.commands.context.root import CommandParameters
from cntkpy.networks.builders.parameters import BUILDERS
from cntkpy.readers.parameters import ReaderParameters
from cntkpy.readers.registry import varying_slots

if TYPE_CHECKING:
    from cntkpy.commands.context.run_context import RunContext, TrainingSettings
    from cntkpy.networks.graph.network import ValidatedNetwork
    from cntkpy.readers.contracts import MinibatchReader
    from cntkpy.trainers.fronts.config.adaptation import MixedTargets

log = logging.getLogger("cntkpy.commands")


class TrainingParameters(Declared):
    """A section that trains a network."""

    make_mode = Parameter("makeMode", BOOLEAN, default="true", help="Continue from the newest model of this training.")
    sgd = Parameter("SGD", section_of("cntkpy.trainers.parameters.sgd:SGDParameters"), help="How to train.")
    reader = Parameter("reader", SECTION, help="Training data.")
    cv_reader = Parameter("cvReader", SECTION, default=None, help="Data evaluated after every epoch.")


def is_finished(p: TrainingParameters) -> bool:
    """Return whether the final model is there, so that nothing is trained or written."""
    from cntkpy.trainers.checkpoints.checkpoint import is_final

    path = str(p.sgd.model_path)
    return bool(p.make_mode) and is_file(path) and is_final(path, p.sgd.max_epochs)


@contextmanager
def only_run(p: TrainingParameters, context: RunContext) -> Generator[None]:
    """See that the files of the model can be written, and that no other run writes them.

    Raises:
        ConfigError: where the name is that of something else.
        UserError: if the model is in use.
    """
    from cntkpy.trainers.checkpoints.lock import only_run_of

    path = str(p.sgd.model_path)
    if is_url(path):
        message = "is a URL, and a training keeps files of its epochs next to the model"
        raise p.sgd.error("modelPath", message, "write the name of a file here, and copy the model at the end")
    wrong = why_not_written(path) or why_no_folder(path)
    if wrong and not is_finished(p):
        raise p.sgd.error("modelPath", f"'{shown(path)}' cannot be a model file: {wrong}", "give the name of a file")
    if context.link is not None and context.link.rank:
        yield  # the main process holds the lock
        return
    with only_run_of(path):
        yield


def finished_epochs(p: TrainingParameters, context: RunContext) -> int | None:
    """Return the number of epochs of the training are done, once its parameters are checked; `None` if it begins
    afresh.

    That nothing is left to do is logged.
    """
    from cntkpy.trainers.checkpoints.checkpoint import continue_final, find_start, remove_stale_partials
    from cntkpy.trainers.fronts.config.tidy import remove_left
    from cntkpy.trainers.schedules.checks import check_parameters

    sgd = p.sgd
    check_parameters(sgd, context.precision)
    if sgd.parallel_train is not None and context.link is not None:
        sgd.parallel_train.check_workers(context.link.size)
    log_ignored(sgd, "SGD", context)
    main = context.link is None or not context.link.rank
    path = str(sgd.model_path)
    if p.make_mode and main:
        continue_final(path, sgd.max_epochs)
    start = find_start(path, sgd.max_epochs) if p.make_mode else None
    if context.link is not None:  # the main process may write the first file while others still look for it
        start = context.link.from_main(start)
    if main:
        remove_stale_partials(path, start)
        if start is not None:
            _say_what_is_continued(p, start, context)
        if start:
            remove_left(sgd, start)
    if start == sgd.max_epochs:
        log.info("Final model exists: %s", sgd.model_path)
        log.info("No further training is necessary.")
    return start


def other_settings(p: TrainingParameters, settings: TrainingSettings) -> list[Diagnostic]:
    """Return the settings that differ from those of the newest model of the training, before the training
    begins."""
    from cntkpy.trainers.checkpoints.checkpoint import TrainingRecord, find_start, model_name

    if not p.make_mode:
        return []
    path, epochs = str(p.sgd.model_path), p.sgd.max_epochs
    start = find_start(path, epochs)
    final = TrainingRecord.of(path) if exists(Path(path)) else None
    if final is not None and not final.ended and (start or 0) <= final.epochs < epochs:
        return _other_settings(p, settings, path, final.epochs)
    return [] if start is None else _other_settings(p, settings, model_name(path, start, epochs), start)


def _say_what_is_continued(p: TrainingParameters, start: int, context: RunContext) -> None:
    """Compare the settings that the newest model was trained with to those of the configuration.

    Raises:
        ConfigError: with `strict=true` the first one that is another.
    """
    from cntkpy.trainers.checkpoints.checkpoint import model_name

    path, epochs = str(p.sgd.model_path), p.sgd.max_epochs
    if start < epochs and _is_continued(path, start):
        log.info("%s was trained for %d epochs; maxEpochs is %d now: training resumes.", path, start, epochs)
    if context.settings is None:
        return
    warnings = _other_settings(p, context.settings(), model_name(path, start, epochs), start)
    for warning in warnings:
        if context.strict or warning.kind == "OtherRecipe":
            raise other_recipe(warning)
    for warning in warnings:
        log.warning("WARNING: %s [%s]", warning.one_line(), warning.rule.code, extra={"plain": True})
    if any(not warning.message.startswith("maxEpochs ") for warning in warnings):
        log.warning("WARNING: %s.", _ANEW, extra={"plain": True})


_ANEW = "makeMode=false trains again from the first epoch with what the configuration says now"
_ANEW_OR_BOTH = "`cntkpy run --again`, or makeMode=false, trains again; another modelPath keeps this model, too"


def other_recipe(diagnostic: Diagnostic) -> ConfigError:
    """Return a changed setting as an error."""
    return ConfigError(diagnostic.kind, diagnostic.message, diagnostic.span, diagnostic.hint or _ANEW)


def _other_settings(p: TrainingParameters, settings: TrainingSettings, model: str, done: int) -> list[Diagnostic]:
    """Return a warning for each setting that is another one than when the model was trained; it says what that means.

    Where nothing is left to train, what a word of the command line asks for is not done: that is an error.

    Args:
        p: the parameters now.
        settings: those of the configuration.
        model: the file.
        done: number of finished epochs.
    """
    from cntkpy.trainers.checkpoints.checkpoint import TrainingRecord

    record = TrainingRecord.of(model)
    if record is None:
        return []
    epochs, findings = p.sgd.max_epochs, list[Diagnostic]()

    def note(message: str, span: Span | None, in_word: bool) -> None:
        if done == epochs and in_word:
            findings.append(Diagnostic("OtherRecipe", message, span, _ANEW_OR_BOTH))
        else:
            findings.append(Diagnostic("OtherSettings", message, span, severity="warning"))

    if done == epochs and record.epochs > epochs:
        value = p.sgd.given("maxEpochs")
        message = f"maxEpochs is {epochs} now, but {model} was trained for {record.epochs} epochs; it is left as it is"
        note(message, value.span if value else None, value is not None and value.in_word)
    reported: set[tuple[str, str, str, str]] = set()
    for path, previous, now, span, in_word in settings.changed(record.settings):
        key = path.rpartition("/")[2].lower(), previous, now, str(span)
        if span is not None and key in reported:
            continue  # a value of a section that those inside of it take, too
        reported.add(key)
        if done == epochs:
            effect = "training is finished, so the change has no effect"
        elif path.partition("/")[0] in BUILDERS:
            effect = "the network of the model is used"
        else:
            effect = f"it applies from epoch {done + 1} on"
        if path in BUILDERS:
            message = f"{model} was trained with another network: {path} has changed since; {effect}"
        else:
            message = f"{path} is {now}, but {model} was trained with {previous}; {effect}"
        note(message, span, in_word)
    return findings


def _is_continued(path: str, start: int) -> bool:
    """Return whether the final model of a shorter training is there, from which this one continues."""
    from cntkpy.trainers.checkpoints.checkpoint import TrainingRecord

    final = TrainingRecord.of(path) if exists(Path(path)) else None
    return final is not None and final.epochs == start


def load_finished(p: TrainingParameters, start: int, context: RunContext) -> ValidatedNetwork:
    """Return the network after this many epochs of the training."""
    from cntkpy.trainers.checkpoints.checkpoint import model_name

    model = model_name(str(p.sgd.model_path), start, p.sgd.max_epochs)
    log.info("Starting from checkpoint. Loading network from '%s'.", model)
    return load(model, context)


def run_training(
    p: TrainingParameters,
    network: ValidatedNetwork,
    start: int | None,
    context: RunContext,
    *,
    device: str | None,
    own_trace_level: bool,
    targets: MixedTargets | None = None,
) -> None:
    """Train the network until its last epoch, or until a signal stops the run.

    Args:
        start: see `finished_epochs`.
        device: see `cntkpy.trainers.log.reporting.Reporting`.
        own_trace_level: whether readers may have a `traceLevel` of their own; the command's is theirs otherwise.
        targets: see `cntkpy.trainers.fronts.config.training.TrainingLoop`.
    """
    from cntkpy.trainers.fronts.config.rates import ParallelSequences
    from cntkpy.trainers.fronts.config.training import TrainingLoop
    from cntkpy.trainers.log.reporting import Reporting
    from cntkpy.trainers.parallel.plan import parallel_plan
    from cntkpy.trainers.parallel.training import ParallelTraining

    parallel = ParallelTraining(process_group_of(context), parallel_plan(p.sgd, context.precision), context.precision)

    def stops_while_reading() -> bool:
        return context.stop is not None and context.stop() and parallel.stops_while_reading

    def make(name: str, stop: Callable[[], bool] | None = None) -> MinibatchReader:
        trace_level = own_trace_level and CommandParameters.trace_level.stands_in(p.config.section(name))
        return reader_for(
            p.config, name, context, stop, **({} if trace_level else {"traceLevel": str(context.trace_level)})
        )

    training = TrainingLoop(
        p.sgd,
        network,
        make("reader", context.stop and stops_while_reading),
        make("cvReader") if p.cv_reader is not None else None,
        start or 0,
        loaded=start is not None,
        reporting=Reporting(
            context.progress.inner if isinstance(context.progress, AskingProgress) else context.progress,
            context.progress_tracing,
            device,
        ),
        targets=targets,
        sequences=ParallelSequences(ReaderParameters(p.reader).slots, varying_slots(p.reader)),
        parallel=parallel,
        settings=context.settings().texts() if context.settings is not None else {},
    )
    _say_network(network, device)
    run_until_stopped(training, context.stop)


def _say_network(network: ValidatedNetwork, device: str | None) -> None:
    """Log the event of the network that is trained, where somebody listens to events."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    from cntkpy.networks.graph.outline import outline
    from cntkpy.trainers.log.events import event

    log.debug("", extra=event("network", device=device or "", **outline(network)))

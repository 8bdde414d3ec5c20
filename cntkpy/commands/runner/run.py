"""Running a configuration: from the words of the command line to the exit status."""

import logging
import os
import platform
import sys
import time
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

from cntkpy.cntk_config import ConfigError, ConfigParameters, UserError, load
from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span
from cntkpy.cntk_config.base.extras import extra_of, how_to_install
from cntkpy.cntk_config.base.names import masked
from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.cntk_config.base.writing import empty, open_text_in_place, shown
from cntkpy.cntk_config.export import nodes
from cntkpy.commands.catalogue.dispatch import find_action, run_action
from cntkpy.commands.catalogue.section_map import TopLevel, section_map
from cntkpy.commands.catalogue.settings import Settings
from cntkpy.commands.checks.findings import SEVERITIES, Finding
from cntkpy.commands.checks.look import is_wrong, look_before_run
from cntkpy.commands.checks.overwritten import overwritten_logs
from cntkpy.commands.checks.scan import Command, model_path, scan_commands, total_epochs, trained_model
from cntkpy.commands.checks.values import value_problems
from cntkpy.commands.console import say_on_console
from cntkpy.commands.context.device import Device
from cntkpy.commands.context.interrupt import AskingProgress, StopRequest, leave
from cntkpy.commands.context.progress import NoProgress, Progress, ProgressTracing, make_progress
from cntkpy.commands.context.root import CommandParameters, RootParameters, check_deprecated, check_precision
from cntkpy.commands.context.run_context import Precision, RunContext, Seeds
from cntkpy.commands.needs import need_for_action
from cntkpy.commands.runner import cores
from cntkpy.commands.runner import log as run_log
from cntkpy.commands.runner.blame import REPORT, changed_file, out_of_memory, placed, user_frames
from cntkpy.commands.runner.last_result import LastResult
from cntkpy.commands.runner.run_record import RunRecord, place_of_record
from cntkpy.commands.runner.started import say_finished, say_started
from cntkpy.commands.runner.workers import Workers
from cntkpy.commands.tracking.trackers import trackers
from cntkpy.commands.words import AGAIN, RECORD, TRACK

log = logging.getLogger("cntkpy.commands")

EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143

MAX_WARNINGS_SHOWN = 10
"""So many warnings are shown at the start; the others are counted."""
SAID_BY_ACTIONS = ("InheritedBuilder", "UntrainedNetwork")
"""Kinds of warnings that the action gives when its time comes; not twice."""


def run(words: list[str], process: bool = False) -> int:
    """Run the configuration that the classic command line `words` names; return the exit status.

    Args:
        words: `configFile=...`, `name=value`, ...
        process: this is the whole process: signals and the error file descriptor may be taken over.
    """
    if not process:
        return _guarded(words, None)
    with StopRequest(process=True) as stop:
        status = _guarded(words, stop)
        if stop():
            leave(status)
        return status


def _guarded(words: list[str], stop: StopRequest | None) -> int:
    """Run with a log, and with the other workers if there are any; return the exit status."""
    with run_log.Log() as opened:
        workers = Workers()
        result = LastResult()
        if sys.stderr.isatty():
            opened.add(result)
        status = _attempt(words, opened, stop, workers)
        last_word, log_file = opened.handler.last_error, opened.path
        with suppress(UserError):  # the last event cannot be written: that is said below
            say_finished(status, last_word)
        workers.part(status, last_word)
    failure = opened.handler.failure
    if status and log_file and last_word and failure is None:  # the console has not seen it
        print(f"{last_word}\nThe log is in {log_file}", file=sys.stderr)
    if not status and log_file and failure is None and sys.stderr.isatty() and not workers.rank:
        print(result.line(log_file), file=sys.stderr)
    if failure is None:
        return status
    say_on_console(f"\nEXCEPTION occurred: {failure}")
    return status if status in (EXIT_INTERRUPTED, EXIT_TERMINATED) else failure.exit_code


def _attempt(words: list[str], opened: run_log.Log, stop: StopRequest | None, workers: Workers) -> int:
    """Run; turn what goes wrong into a message and an exit status."""
    try:
        _run(words, opened, stop, workers)
        return 0
    except UserError as error:
        _report(error.diagnostic.render().removeprefix("error: "))
        return error.exit_code
    except KeyboardInterrupt as error:
        _report(f"interrupted: {error}" if str(error) else "interrupted")
        return EXIT_INTERRUPTED
    except Stopped as error:
        status = stop.status if stop is not None else EXIT_TERMINATED
        ending = "interrupted" if status == EXIT_INTERRUPTED else "terminated by signal SIGTERM"
        _report(ending + (f": {error}" if str(error) else ""))
        return status
    except ModuleNotFoundError as error:
        extra = extra_of(error.name)
        if extra is None:
            return _internal_error(error)
        needed = f"this needs {error.name}, which is not installed"
        _report(f"{needed}\n  help: {how_to_install(extra)}")
        return EXIT_FAILURE
    except Exception as error:
        if (failure := out_of_memory(error)) is None:
            return _internal_error(error)
        _report(failure.diagnostic.render().removeprefix("error: "))
        return failure.exit_code


def _internal_error(error: Exception) -> int:
    """Show the traceback, which nothing else does, and ask for a report; of the user's code only its own lines."""
    frames = user_frames(error)
    if frames:
        last = frames[-1]
        log.info("%s", "".join(traceback.format_list(frames)), extra={"plain": True})
        where = f"{last.filename}:{last.lineno}, in {last.name}"
        _report(f"{type(error).__name__}: {error}\n  --> {where}\n  help: this is code of a plug-in or of your own")
        return EXIT_FAILURE
    log.info("%s", "".join(traceback.format_exception(error)), extra={"plain": True})
    _report(f"internal error: {type(error).__name__}: {error}\n{REPORT}")
    return EXIT_FAILURE


def _report(text: str) -> None:
    run_log.blank_line()
    log.error("EXCEPTION occurred: %s", text)


def _run(words: list[str], opened: run_log.Log, stop: StopRequest | None, workers: Workers) -> None:
    """Read the configuration, open the log, look at all commands, and run them one after the other.

    Raises:
        UserError: The configuration is wrong, or a command fails.
    """
    said = [word for word in words if word.partition("=")[0] != RECORD]
    banner = run_log.program_banner(said)
    print_banner(banner)
    root = load([word for word in said if word != AGAIN and not word.startswith(f"{TRACK}=")])
    for word in words:
        name, _, folder = word.partition("=")
        if name.strip().lower() == "currentdirectory":
            log.info("Changed current directory to %s", folder, extra={"plain": True})
    _begin_anew(root, words)
    top = section_map(root)
    parameters = top.values
    trace_level, deterministic = int(parameters.trace_level), bool(parameters.deterministic)
    device = parameters.device
    workers.find(parameters.parallel)
    context = _Contexts(deterministic, Seeds(bool(parameters.constant_seed)), workers, stop)
    done_file, names = str(parameters.done_file), [str(name) for name in top.command_names()]

    opened.handler.timestamping = timestamping = bool(parameters.timestamping)
    for problem in overwritten_logs(top):
        raise ConfigError(problem.kind, problem.message, problem.span, problem.hint)
    events = _open_log(opened, parameters, names, workers.rank, stop is not None)
    if opened.redirected and trace_level <= 0 and str(parameters.stderr) != "-":
        print_banner(banner)
    record = place_of_record(words, top) if not workers.rank else None
    if record is not None:
        opened.add_record(RunRecord(root, banner))
    _listen(said, top, opened, events, workers.rank)
    for warning in root.warnings[:MAX_WARNINGS_SHOWN]:
        log.warning("WARNING: %s", Finding.of(warning).one_line("warning"), extra={"plain": True})
    if trace_level > 0:
        _print_configuration(root, names)
    context.precision = check_precision(parameters)
    if trace_level > 0:
        log.info('precision = "%s"', context.precision)
    check_deprecated(parameters)

    _set_threads(int(parameters.threads), deterministic)
    problems: list[ConfigError] = []
    commands = scan_commands(top, problems)
    sound = [] if problems else commands
    _need_extras(sound)
    context.tracing = _start_tracing(bool(parameters.progress_tracing) and not workers.rank, sound)
    context.strict = bool(parameters.strict)
    _look(top, context.strict, sound, opened.path)
    if record is not None and opened.record is not None:
        opened.record.begin(*record)
    context.progress = make_progress(opened.redirected or workers.rank > 0)
    _check_devices(commands, device, workers)
    workers.join(device)
    for command in commands:
        _run_command(command, context)
    if done_file and not workers.rank:
        _write_done_file(done_file, parameters)
    log.info("__COMPLETED__" if timestamping else "COMPLETED.", extra={"plain": not timestamping})


def _open_log(opened: run_log.Log, parameters: RootParameters, names: list[str], rank: int, process: bool) -> str:
    """Redirect the log to the file that `stderr` names; return the file for the events.

    Args:
        opened: The log.
        parameters: The top level.
        names: The commands that run.
        rank: The number of this process.
        process: This is the whole process.
    """
    stderr, place = str(parameters.stderr), parameters.given("stderr")
    if rank and not stderr:
        opened.handler.setLevel(logging.WARNING)  # one worker on the console is enough
    log_file = run_log.log_file_name(stderr, names, bool(parameters.timestamping), rank)
    if stderr:
        opened.redirect(log_file, process, place.span if place is not None else None)
    events = log_file if stderr and stderr != "-" else run_log.log_file_name("cntkpy", names, False, rank)
    return f"{events}.jsonl"


def _check_devices(commands: list[Command], common: Device, workers: Workers) -> None:
    """See that the devices of all commands are there, and leave GPUs alone if none of them needs one.

    Args:
        commands: Those that run; each may have a device of its own.
        common: `deviceId` of the top level, with which several processes meet.
        workers: The processes of the run.

    Raises:
        UserError: A device is not there, or processes that work together would change it.
    """
    devices = {device.key: device for device in (CommandParameters(command.section).device for command in commands)}
    if devices and all(device.is_cpu for device in devices.values()):
        Device("cpu").prepare()
        return
    if len(devices) < 2 or find_spec("jax") is None:
        return  # the first action that computes finds it, and none computes without JAX
    if workers.meeting is not None:
        second = next(device for device in devices.values() if device.key != common.key)
        span = second.value.span if second.value is not None else None
        message = f"deviceId={second.request}: processes that train together keep the device that they meet with, "
        hint = "use one deviceId for all commands, or run the commands one by one"
        raise ConfigError("DeviceChanged", message + f"deviceId={common.request}", span=span, hint=hint)
    for device in devices.values():
        device.here()


def _need_extras(commands: list[Command]) -> None:
    for command in commands:
        for action in command.actions:
            need_for_action(action)


def _listen(words: list[str], top: TopLevel, opened: run_log.Log, events: str, rank: int) -> None:
    """Add the receivers of the run's events, and log the first event.

    Args:
        words: of the command line.
        top: the top level of the configuration.
        opened: the log.
        events: the file that `logFormat=json` writes.
        rank: the number of this process; one of them is enough for trackers.
    """
    parameters, written = top.values, [opened.path]
    if parameters.log_format == "json":
        stderr = parameters.given("stderr")
        opened.add_events(events, stderr.span if stderr is not None else None)
        written.append(events)
    for tracker in trackers(top, words, written) if not rank else ():
        opened.add(tracker)
    say_started(words, top.section)


def _begin_anew(root: ConfigParameters, words: list[str]) -> None:
    """With `--again` among the words, give every command `makeMode=false`, those too that say otherwise."""
    if AGAIN not in words:
        return
    make_mode = CommandParameters.make_mode
    root.insert(make_mode.name, "false")
    for name, section in list(root.inner()):
        if make_mode.stands_in(section):
            root.insert(f"{name}=[{make_mode.name}=false]")


def _look(top: TopLevel, strict: bool, commands: list[Command], log_file: str) -> None:
    """Look at every command before the first one runs; with `strict`, what is only a warning ends the run too.

    An error of the first command stands under its title, where CNTK would have logged it; of `commands`, where they are
    all there. The console has only the first error if the log is a file, `log_file`.

    Raises:
        ConfigError: the first error; the log has the others before it.
    """
    findings = look_before_run(top)
    errors = [finding for finding in findings if strict or finding.severity == "error"]
    warnings = [
        finding for finding in findings if finding not in errors and finding.diagnostic.kind not in SAID_BY_ACTIONS
    ]
    different = list(_other_settings(commands))
    errors += [Finding.of(problem) for problem in different if strict or problem.kind == "OtherRecipe"]
    if strict:
        errors += map(Finding.of, top.section.warnings)
    _warn(warnings, len(top.section.warnings))
    if errors and commands and commands[0].actions and is_wrong(top, commands[0].name):
        _print_title(commands[0].name, str(commands[0].actions[0]))
    for finding in errors[1:]:
        run_log.blank_line()
        log.error("%s", replace(finding.diagnostic, severity="error").render())
    if len(errors) > 1:
        place = f"in the log {log_file}" if log_file else "above"
        raise errors[0].error().with_note(f"{len(errors)} errors in all, the others are {place}; nothing was run")
    if errors:
        raise errors[0].error()


def _warn(warnings: list[Finding], earlier: int) -> None:
    """Log warnings, the gravest first, and the number of those that are too many; `earlier` ones came before."""
    warnings = sorted(warnings, key=lambda finding: SEVERITIES.index(finding.severity))
    shown = max(0, MAX_WARNINGS_SHOWN - earlier)
    for finding in warnings[:shown]:
        log.warning("WARNING: %s", finding.one_line("warning"), extra={"plain": True})
    left = len(warnings[shown:]) + max(0, earlier - MAX_WARNINGS_SHOWN)
    if left:
        log.warning("WARNING: %d more of this kind; `cntkpy check` lists all.", left, extra={"plain": True})


def _other_settings(commands: list[Command]) -> Iterator[Diagnostic]:
    """Report settings that have changed since a training that continues began."""
    from cntkpy.commands.actions.training import TrainingParameters, other_recipe, other_settings

    for command in commands:
        if command.trains:
            with suppress(ConfigError):  # found already
                p = TrainingParameters(command.section)
                for setting in other_settings(p, Settings(command.section, command.name)):
                    yield other_recipe(setting).diagnostic


def print_banner(banner: str) -> None:
    """Log the program's banner, which carries no time stamp."""
    run_log.print_lines(banner.split("\n"), plain=True)


def _print_configuration(root: ConfigParameters, names: list[str]) -> None:
    for problem in value_problems(root):
        raise problem
    run_log.print_lines(run_log.build_information())
    log.info("Configuration After Processing and Variable Resolution:", extra={"plain": True})
    run_log.blank_line()
    for node in nodes(root):
        text = masked(node.text, is_value=True).rstrip("\n")
        log.info("configparameters: %s:%s=%s", root.path, node.name, text, extra={"plain": True})
    log.info("Commands: %s", " ".join(names))


def _set_threads(threads: int, deterministic: bool) -> None:
    """Limit the CPU threads of the libraries, which read these variables when they are first imported."""
    if deterministic:
        log.warning("WARNING: forceDeterministicAlgorithms flag is specified. Using 1 CPU thread for processing.")
        threads = 1
    if threads <= 0:
        return
    cores.use_for(threads)
    useful = str(min(threads, os.cpu_count() or 1))  # XLA would start as many as it is allowed, and each takes memory
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = useful
    if threads == 1:
        flags = os.environ.get("XLA_FLAGS", "")
        if "xla_cpu_multi_thread_eigen" not in flags:
            os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    log.info("Using %d CPU threads.", threads)


def _start_tracing(enabled: bool, commands: list[Command]) -> ProgressTracing:
    epochs = total_epochs(commands)
    total = sum(count for _, count in epochs)
    if enabled:
        for command, count in epochs:
            log.info("CNTKModelPath: %s", model_path(command.section))
            log.info("CNTKCommandTrainInfo: %s : %d", command.name, count)
        log.info("CNTKCommandTrainInfo: CNTKNoMoreCommands_Total : %d", total)
    return ProgressTracing(enabled, total)


@dataclass
class _Contexts:
    """State that stays the same from command to command."""

    deterministic: bool
    seeds: Seeds
    workers: Workers
    stop: StopRequest | None
    precision: Precision = "float"
    progress: Progress = field(default_factory=NoProgress)
    tracing: ProgressTracing = field(default_factory=ProgressTracing)
    strict: bool = False

    def make(self, command: Command, action: str, trained: str | None) -> RunContext:
        """Return the context of one action; `trained`: the model that an earlier action of the command has made."""
        section = command.section
        p = CommandParameters(section)
        return RunContext(
            command=command.name,
            action=action,
            precision=self.precision,
            trace_level=p.trace_level,
            make_mode=p.make_mode,
            deterministic=self.deterministic,
            device=p.device,
            progress=self.progress if self.stop is None else AskingProgress(self.progress, self.stop),
            stop=self.stop,
            progress_tracing=self.tracing,
            seed_source=self.seeds,
            trained=trained,
            strict=self.strict,
            settings=lambda: Settings(section, command.name),
            link=self.workers.link,
        )


def _run_command(command: Command, contexts: _Contexts) -> None:
    trained: str | None = None
    for name in command.actions:
        if contexts.stop is not None:
            contexts.stop.check()
        context = contexts.make(command, str(name), trained)
        _print_title(command.name, context.action)
        log.debug("", extra={"event": {"event": "action", "command": command.name, "action": context.action}})
        action = find_action(context.action, command.name, name.span)
        tracing = contexts.tracing
        training = context.action in ("train", "trainRNN")
        if tracing.enabled and training:
            log.info("CNTKCommandTrainBegin: %s", command.name)
        workers = contexts.workers
        try:
            if workers.runs(context.action):
                with workers.explained(), _placed(command, name.span):
                    run_action(action, command.section, context)
            workers.wait()
        finally:
            context.progress.finish()
        if training:
            trained = trained_model(command.section)
            tracing.finished_epochs += sum(epochs for _, epochs in total_epochs([command]))
            if tracing.enabled:
                log.info("CNTKCommandTrainEnd: %s", command.name)
        run_log.blank_line()
        if context.trace_level > 0:
            log.info('Action "%s" complete.', context.action)
            run_log.blank_line()


@contextmanager
def _placed(command: Command, span: Span | None) -> Generator[None]:
    """Give a place to every error of a command."""
    begin = time.time_ns()
    try:
        yield
    except UserError as error:
        located = placed(error, command.section, command.name, span)
        if (note := changed_file(error, begin)) is not None:
            located = located.with_note(note)
        if located is error:
            raise
        raise located.with_traceback(error.__traceback__) from error.__cause__
    except Exception as error:
        if (failure := out_of_memory(error)) is None:
            raise
        raise placed(failure, command.section, command.name, span) from error


def _print_title(command: str, action: str) -> None:
    run_log.blank_line()
    run_log.print_lines(run_log.action_banner(command, action))
    run_log.blank_line()


def _write_done_file(path: str, parameters: RootParameters) -> None:
    now = time.strftime("%Y/%m/%d %H:%M:%S")
    try:
        with open_text_in_place(path) as file:
            empty(file)
            file.write(f"Successfully finished at {now} on {platform.node()}\n")
    except OSError as error:
        value = parameters.given("doneFile")
        message = f"cannot write the done file {shown(path)}: {error.strerror or error}"
        span = value.span if value is not None else None
        raise UserError("CannotWrite", message, span=span) from None


def main(words: list[str]) -> int:
    """Run as the whole process."""
    status = run(words, process=True)
    sys.stdout.flush()
    return status

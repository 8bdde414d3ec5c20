"""The command line: the classic form (`configFile=...`) and the subcommands next to it. Thin over the other modules."""

import errno
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import click

from cntkpy.commands import help_texts
from cntkpy.commands.needs import declare_needs
from cntkpy.commands.new.command import new_command
from cntkpy.commands.report.commands import report_command
from cntkpy.commands.report.runs_command import runs_command
from cntkpy.commands.sweeps.command import sweep_command
from cntkpy.commands.tools.data_commands import FORM, convert_command, preview_command
from cntkpy.commands.words import AGAIN, ALLOW_REMOTE, RECORD, TRACK, as_classic, is_config_word, name_of_run

EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_PIPE = 1, 2, 130, 141
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why standard output, which may be a file, cannot be written."""

CONTEXT = {"help_option_names": ["-h", "--help"]}
CLASSIC = {"ignore_unknown_options": True}


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version and end, if `--version` is given; `--verbose` is read before it."""
    if asked and not context.resilient_parsing:
        from cntkpy.commands.tools.version import describe

        click.echo(describe(bool(context.params.get("verbose"))), nl=False)
        context.exit()


@click.group(help=help_texts.OVERVIEW, context_settings=CONTEXT, no_args_is_help=True)
@click.option("-V", "--version", is_flag=True, help="Show the version and exit.", expose_value=False, callback=_version)
@click.option("--verbose", is_flag=True, is_eager=True, help="With --version: what a bug report needs.")
def cntkpy(verbose: bool) -> None:
    """The group of subcommands."""
    if verbose:
        raise click.UsageError("--verbose goes with --version only.")


@cntkpy.command("run", help=help_texts.RUN, context_settings=CLASSIC, short_help="Run a configuration.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--workers", type=int, default=1, help="Number of local worker processes; needs no MPI.")
@click.option("--strict", is_flag=True, help="Treat start-up warnings as errors, like strict=true.")
@click.option(
    AGAIN, "again", is_flag=True, help="Restart trainings, finished ones too, like makeMode=false in every command."
)
@click.option(TRACK, "track", multiple=True, metavar="TYPE:TARGET", help="Track the run: tensorboard:DIR, mlflow:URI.")
def run_command(words: tuple[str, ...], workers: int, strict: bool, again: bool, track: tuple[str, ...]) -> int:
    """Run a configuration, or a program in Python."""
    if words[0].endswith(".py"):
        from cntkpy.commands.runner.launch import launch

        return launch(list(words), workers)
    for word in words:
        if word.startswith("--"):
            from cntkpy.cntk_config.base.diagnostics import nearest

            meant = nearest(word, ["--workers", "--strict", AGAIN, TRACK])
            raise click.NoSuchOption(word, possibilities=[meant] if meant else None)
    classic = as_classic(list(words))
    name = name_of_run(words, classic)
    words = (
        (*classic, f"{RECORD}={name}" if name else RECORD)
        + ("strict=true",) * strict
        + (AGAIN,) * again
        + tuple(f"{TRACK}={name}" for name in track)
    )
    if workers == 1 or not any(map(is_config_word, words)):
        return run_classic(list(words))
    from cntkpy.commands.runner.launch import launch

    return launch(list(words), workers)


@cntkpy.command("show", help=help_texts.SHOW, short_help="Print the resolved configuration.")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["flat", "json", "yaml", "cntk"]),
    default="flat",
    show_default=True,
    help="Output format.",
)
@click.option("--origins", is_flag=True, help="Print where each value comes from, and what it overrides.")
@click.option("--unresolved", is_flag=True, help="Leave $variables$ unexpanded.")
@click.option("--changed", is_flag=True, help="Omit values that equal their defaults.")
@click.option("--defaults", is_flag=True, help="Add the defaults of all sections that commands use.")
@click.option("--open", "open_", is_flag=True, help="Mark values with undefined variables instead of failing.")
@click.option("--network", is_flag=True, help="Print the network of a command: nodes, shapes, parameters, origins.")
def show_command(
    words: tuple[str, ...],
    form: str,
    origins: bool,
    unresolved: bool,
    changed: bool,
    defaults: bool,
    open_: bool,
    network: bool,
) -> int:
    """Print the resolved configuration."""
    if network:
        from cntkpy.commands.tools.show_network import show_network

        if origins or unresolved or changed or defaults or open_:
            raise click.UsageError("--network goes with --format only.")
        return show_network(list(words), form)
    from cntkpy.commands.tools.show import show

    return show(
        list(words), form, origins=origins, unresolved=unresolved, changed=changed, defaults=defaults, open_=open_
    )


@cntkpy.command("check", help=help_texts.CHECK, short_help="Check configurations without running them.")
@click.argument("words", nargs=-1)
@click.option("-q", "--quiet", is_flag=True, help="Omit the summary line.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif", "gitlab", "junit"]),
    default="text",
    show_default=True,
    help="Output format of the findings.",
)
@click.option(
    "--select", default="", metavar="CODES", help="Report only these findings: CK012,CK02 (a prefix of codes)."
)
@click.option("--ignore", default="", metavar="CODES", help="Leave these findings out.")
@click.option("--strict", is_flag=True, help="Treat warnings and hints as errors.")
@click.option("--data", is_flag=True, help="Read the first records of the data, too, as a run does.")
@click.option(
    "--records", type=click.IntRange(min=1), default=100, show_default=True, help="Records that --data reads."
)
@click.option("--import-modules", "modules", is_flag=True, help="Import the modules that readers name.")
@click.option("--open", "open_", is_flag=True, help="Accept undefined variables.")
@click.option("--statistics", is_flag=True, help="Print the number of findings of each code instead of the findings.")
@click.option("--fix", is_flag=True, help="Correct what is certain: misspelled names, quotation marks, backslashes.")
@click.option("--diff", "show_diff", is_flag=True, help="With --fix: write nothing, print the changes.")
@click.option(
    "--watch", is_flag=True, help="Check again whenever a file below this folder or that of the project changes."
)
def check_command(words: tuple[str, ...], quiet: bool, form: str, watch: bool, **options: Any) -> int:
    """Check configurations."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy starts a quarter faster when it needs no threads
    from cntkpy.commands.checks.check import CheckOptions, check

    if watch:
        from cntkpy.commands.checks.check import folders_of
        from cntkpy.commands.checks.watch import watch as check_on_change

        check_on_change(lambda: check(list(words), quiet, form, CheckOptions(**options)), folders_of())
    return check(list(words), quiet, form, CheckOptions(**options))


@cntkpy.command("explain", help=help_texts.EXPLAIN, short_help="Explain one value of a configuration.")
@click.argument("words", nargs=-1, required=True)
@FORM
def explain_command(words: tuple[str, ...], form: str) -> int:
    """Explain one value."""
    from cntkpy.commands.tools.explain import explain

    return explain(list(words), form)


@cntkpy.command("diff", help=help_texts.DIFF, short_help="Compare two configurations by meaning, or two runs.")
@click.argument("words", nargs=-1, required=True)
@click.option("--origins", is_flag=True, help="Print the location of every value.")
@click.option("--open", "open_", is_flag=True, help="Accept undefined variables.")
@FORM
def diff_command(words: tuple[str, ...], origins: bool, open_: bool, form: str) -> int:
    """Compare two configurations, or two runs."""
    from cntkpy.commands.runs.find import is_run

    if len(words) == 2 and all(map(is_run, words)):
        from cntkpy.commands.runs.compare import compare

        return compare(words, origins, form)
    from cntkpy.commands.tools.diff import diff

    return diff(list(words), origins, open_, form)


@cntkpy.command("format", help=help_texts.FORMAT, short_help="Format configuration files.")
@click.argument("files", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if a file would change.")
@click.option("--diff", "show_diff", is_flag=True, help="Write nothing; print the changes.")
def format_command(files: tuple[str, ...], check: bool, show_diff: bool) -> int:
    """Format configuration files."""
    from cntkpy.commands.tools.format import format_files

    return format_files(list(files), check, show_diff)


@cntkpy.command("help", help=help_texts.HELP, short_help="Explain an action, section, parameter, function or code.")
@click.argument("name", required=False)
def help_command(name: str | None) -> int:
    """Explain a name."""
    from cntkpy.commands.tools.help import help_on

    return help_on(name)


@cntkpy.command("list", short_help="List actions, readers, functions, ..., and where they come from.")
@click.argument("group", required=False, type=click.Choice(list(help_texts.GROUPS)))
@FORM
def list_command(group: str | None, form: str) -> int:
    """List the names that configurations may use, of all groups or of one GROUP, and their origin."""
    from cntkpy.commands.tools.list_names import list_names

    return list_names(group, form)


@cntkpy.command("completion", context_settings=CLASSIC, short_help="Print the script that completes words in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "words"]))
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def completion_command(shell: str, words: tuple[str, ...]) -> int:
    """Print the script for a SHELL: `eval "$(cntkpy completion bash)"`."""
    from cntkpy.commands.editor.completion import completion

    groups: dict[str, click.Command] = {"": cntkpy, **cntkpy.commands}
    return completion(shell, list(words), {name: _options(command) for name, command in groups.items()})


def _options(command: click.Command) -> dict[str, list[str]]:
    """Return the long options of a subcommand, each with the words that it takes."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    return {
        name: list(option.type.choices) if isinstance(option.type, click.Choice) else []
        for option in options
        for name in option.opts
        if name.startswith("--")
    }


@cntkpy.command("lsp", short_help="Serve an editor: the language server, over standard input and output.")
def lsp_command() -> int:
    """Serve an editor: findings, hover, definitions and completion. Needs the extra `lsp`."""
    from cntkpy.commands.editor.lsp import serve

    return serve()


@cntkpy.command("plot", help=help_texts.PLOT, short_help="Draw the curves of training logs.")
@click.argument("logs", nargs=-1, required=True)
@click.option("-o", "--out", metavar="FILE", help="Output file: .png, .svg or .pdf.  [default: LOG.png]")
@click.option("-n", "--node", metavar="NAME", help="Node to draw.  [default: the training criterion]")
@click.option("--network", is_flag=True, help="Draw the network of a configuration: .svg, .png, .pdf or .dot.")
def plot_command(logs: tuple[str, ...], out: str | None, node: str | None, network: bool) -> int:
    """Draw the curves of training logs."""
    if network:
        from cntkpy.commands.tools.show_network import plot_network

        return plot_network(list(logs), out)
    from cntkpy.commands.tools.plot_log import plot

    return plot(list(logs), out, node)


@cntkpy.command("export", help=help_texts.EXPORT, short_help="Write a model as ONNX, source, or arrays.")
@click.argument("model")
@click.argument("out")
@click.option("-o", "--output", "outputs", multiple=True, metavar="NODE", help="Node to export; may be repeated.")
@click.option("--softmax", multiple=True, metavar="NODE", help="Node whose softmax is exported, too.")
@click.option("--opset", type=int, default=17, show_default=True, help="Version of the ONNX operators.")
@click.option("--double", is_flag=True, help="Write numbers of 8 bytes.")
@click.option("--indices", multiple=True, metavar="NODE", help="Input that is given as integers, not one-hot vectors.")
@click.option("--lengths", is_flag=True, help="Add inputs with the numbers of steps of sequences.")
@click.option("--batch-first", is_flag=True, help="Put the batch before time in inputs and outputs.")
@click.option("--mean", multiple=True, metavar="INPUT=FILE", help="Mean picture that the model subtracts.")
@click.option("--to", metavar="FORMAT", help="Write the folder OUT with source: pytorch or jax.")
@click.option("--command", default="", metavar="NAME", help="Command of a configuration whose network is written.")
@click.option("--training", is_flag=True, help="Write train.py, too: the training of a configuration, for PyTorch.")
@click.option(
    "--data",
    "own_data",
    type=click.Choice(["own", "cntkpy"]),
    default="own",
    help="What reads the data of train.py: its own code, or the readers of cntkpy, in their order.",
)
@click.option(
    "--check/--no-check",
    default=None,
    help="Compare with onnxruntime, PyTorch or JAX.  [default: where it is installed]",
)
def export_command(
    model: str,
    out: str,
    mean: tuple[str, ...],
    to: str | None,
    command: str,
    training: bool,
    own_data: str,
    check: bool | None,
    **settings: Any,
) -> int:
    """Write a model for other programs."""
    if to is not None:
        from cntkpy.commands.tools.export_source import AskedSource, export_source

        if training and to.lower() == "jax":
            raise click.UsageError(
                "--training writes a program of PyTorch. Use --to pytorch, or leave out --training: --to jax writes the"
                " model, whose apply is differentiable."
            )
        options = command, check, training, own_data
        return export_source(AskedSource(model, out, to.lower(), settings["outputs"], *options))
    from cntkpy.commands.tools.export import Asked, export_file
    from cntkpy.networks.onnx.export import Settings

    return export_file(Asked(model, out, Settings(**settings), mean, check))


cntkpy.add_command(preview_command)
cntkpy.add_command(convert_command)
cntkpy.add_command(sweep_command)
cntkpy.add_command(runs_command)
cntkpy.add_command(report_command)
cntkpy.add_command(new_command)
declare_needs(cntkpy)


def run_classic(words: list[str]) -> int:
    """Run the classic command line; without a configFile= word say what is wrong with it."""
    if not any(map(is_config_word, words)):
        return refuse(words)
    from cntkpy.commands.runner.run import main as run_main

    return run_main(words)


def refuse(words: list[str]) -> int:
    """Explain a command line that names no configuration; return the exit status."""
    if not words:
        message, hint = "No command-line argument given.", None
    else:
        message, hint = _explain(words)
    print(f"error: {message}" if words else message, file=sys.stderr)
    if hint:
        print(f"  help: {hint}", file=sys.stderr)
    print(file=sys.stderr)
    print(help_texts.USAGE, end="", file=sys.stderr)
    return EXIT_USAGE


def _explain(words: list[str]) -> tuple[str, str | None]:
    from cntkpy.cntk_config.base.diagnostics import nearest, suggestion
    from cntkpy.cntk_config.base.files import is_file

    word = words[0]
    name, equals, tail = word.partition("=")
    if word.lower() == "configfile" and words[1:] and words[1].startswith("="):
        return f"unknown word {word!r}", "write configFile=FILE without blanks"
    if word.lower().split("=")[0] in ("-f", "--file", "-i", "-d", "--cd"):
        return f"unknown option {word!r}: BrainScript mode is not supported", "use configFile=FILE"
    if equals:
        if nearest(name, ["configFile"]):
            return f"unknown word {word!r}, and no configFile= is given", f"did you mean 'configFile={tail}'?"
        return f"{word!r} sets a parameter, but no configFile= is given", "add configFile=FILE"
    if word.endswith(".py"):
        return f"{word!r} is a program in Python", f"run it: cntkpy run {word}"
    if word.endswith((".cntk", ".cfg", ".config")) or is_file(word.split("+")[0]):
        return f"unknown word {word!r}", f"did you mean 'configFile={word}'?"
    return f"unknown command or option {word!r}", suggestion(word, [*cntkpy.commands, "--help", "--version"])


def execute(words: list[str]) -> int:
    """Run the command that the words name; return the exit status."""
    words = ["allowRemote=true" if word == ALLOW_REMOTE else word for word in words]
    if not words:
        return refuse(words)
    first = words[0]
    if first not in cntkpy.commands:
        if any(map(is_config_word, words)):
            return run_classic(words)
        if first not in ("-h", "--help", "-V", "--version", "--verbose"):
            return refuse(words)
    return _guarded_usage(lambda: cntkpy.main(words, prog_name="cntkpy", standalone_mode=False) or 0)


def _guarded_usage(command: Callable[[], int]) -> int:
    """Return the status of a command; a wrong command line is printed."""
    try:
        return command()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.ClickException as error:
        error.message += _nearest_choice(error.message)  # pyright: ignore[reportAttributeAccessIssue]
        error.show()
        return error.exit_code
    except click.Abort:  # what click makes of Ctrl-C
        raise KeyboardInterrupt from None


def _nearest_choice(message: str) -> str:
    """Return advice for a word that is none of the choices which click lists; empty if none is near."""
    match = re.search(r"'([^']*)' is not one of (.*)\.", message)
    if match is None:
        return ""
    from cntkpy.cntk_config.base.spelling import nearest

    meant = nearest(match[1], re.findall("'([^']*)'", match[2]))
    return f" Did you mean '{meant}'?" if meant is not None else ""


def _failure(error: Exception) -> int:
    """Print an error. Only a defect shows its traceback and asks for a report."""
    import traceback

    from cntkpy.cntk_config.base.diagnostics import UserError
    from cntkpy.cntk_config.base.extras import extra_of, how_to_install
    from cntkpy.commands.console import print_error, say_on_console
    from cntkpy.commands.runner.blame import REPORT

    if isinstance(error, UserError):
        print_error(error)
        return error.exit_code
    if isinstance(error, ModuleNotFoundError) and (extra := extra_of(error.name)) is not None:
        say_on_console(f"error: this needs {error.name}, which is not installed\n  help: {how_to_install(extra)}")
        return EXIT_FAILURE
    said = "".join(traceback.format_exception(error))
    say_on_console(f"{said}internal error: {type(error).__name__}: {error}\n{REPORT}")
    return EXIT_FAILURE


def main(words: list[str] | None = None) -> int:
    """Entry point of the console command: `sys.exit(main())`."""
    return _ended_by_signals(sys.argv[1:]) if words is None else _status(words)


def _ended_by_signals(words: list[str]) -> int:
    """`_status` in a process that is ours: a signal ends it within a second. `run` has handlers of its own."""
    from cntkpy.cntk_config.base.systems.console import show_everything
    from cntkpy.commands.context.interrupt import leave, until_signal

    show_everything()
    if words[:1] == ["run"]:
        return _status(words)
    with until_signal() as stop:
        try:
            status = _status(words, stop)
        except SystemExit:  # what SIGTERM raises
            if not stop():
                raise
            status = stop.status
        if not stop():
            return status
        print(stop.message, file=sys.stderr)
        leave(stop.status)


def _status(words: list[str], stop: Callable[[], bool] = lambda: False) -> int:
    """Return the exit status of a command line; whatever goes wrong is said, except what a signal has caused.

    That an import was interrupted may end it with any exception: Python makes a RuntimeError of one in `__set_name__`.
    """
    try:
        status = execute(words)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        if not stop():
            print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            return _failure(error)
        from cntkpy.commands.console import say_on_console

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        say_on_console(f"error: the output cannot be written: {error.strerror}")
        return EXIT_FAILURE
    except Exception as error:  # runs say it in their logs
        return EXIT_FAILURE if stop() else _failure(error)

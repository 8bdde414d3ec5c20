"""The subcommand `sweep`, declared; what it does is in `cntkpy.commands.sweeps.sweep`."""

from typing import Any

import click

from cntkpy.commands.sweeps.names import PRUNERS, SAMPLERS
from cntkpy.commands.words import TRACK

SWEEP = """\
Run a configuration with several values, one trial for each combination.

\b
WORDS are the configuration (a file, files joined by +, or configFile=...)
and NAME=VALUE. A value is a choice in these forms, every other is one value:
  0.01, 0.03, 0.1                     commas outside of brackets and quotes
  choice(0.9:0.5*3, 0.9)              the same
  range(0.001, 0.1, log)              any number between the two
  range(0.001, 0.1, log, count=5)     five numbers
  range(16, 64, step=16)              16, 32, 48, 64
  zip(16, 32)                         all words with zip change together

\b
Every trial has a folder FOLDER/NUMBER with its resolved configuration, log,
events and models; FOLDER/trials.jsonl says what became of each. The same
command goes on with a sweep that was interrupted: trials that have ended are
not repeated, the others resume from their checkpoints.

\b
Examples:
  cntkpy sweep digits.cntk train/SGD/learningRatesPerMB=0.05,0.1,0.2
  cntkpy sweep --jobs 2 digits.cntk 'train/SGD/momentumPerMB=choice(0.5:0.9, 0.9)'
  cntkpy sweep --sampler tpe --pruner median --trials 20 digits.cntk \\
      'train/SGD/learningRatesPerMB=range(0.01, 1, log)'
  cntkpy sweep --join sqlite:///study.db
  cntkpy sweep --slurm --jobs 8 digits.cntk train/SGD/minibatchSize=16,32

\b
Samplers other than grid and random, pruners and storages need the extra
`sweep`, which is Optuna.

\b
Exit status: 0 done; 1 no trial has finished; 2 wrong command line or
configuration; 130 interrupted by Ctrl-C; 143 ended by SIGTERM.
"""


@click.command("sweep", help=SWEEP, short_help="Run a configuration with several values.")
@click.argument("words", nargs=-1)
@click.option("-o", "--out", metavar="FOLDER", help="Folder of the sweep.  [default: sweeps/NAME]")
@click.option(
    "--sampler", type=click.Choice(SAMPLERS), default="grid", show_default=True, help="Method that chooses the values."
)
@click.option(
    "--pruner",
    type=click.Choice(PRUNERS),
    default="none",
    show_default=True,
    help="Rule that ends a trial early, when others were better after as many epochs.",
)
@click.option("--trials", type=click.IntRange(1), metavar="N", help="Number of trials; a grid has all.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sampler.")
@click.option(
    "--criterion",
    default="",
    metavar="[COMMAND:]NODE",
    help="Criterion to minimize (--maximize: to maximize): a node of a training after its last epoch, or of a test.  "
    "[default: the criterion of the last training, on the data of its cvReader]",
)
@click.option(
    "--storage",
    default="",
    metavar="URL",
    help="Where Optuna keeps the study: a database, such as sqlite:///study.db, or the file of a journal.  "
    "[default: study.journal in FOLDER]",
)
@click.option("--maximize", is_flag=True, help="The greatest value of the criterion is the best.")
@click.option(
    TRACK, "track", multiple=True, metavar="TYPE:TARGET", help="Track the trials: tensorboard:DIR, mlflow:URI."
)
@click.option("--join", default="", metavar="URL", help="Help with a sweep: its storage, or its folder.")
@click.option(
    "-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Trials at a time; they share the cores."
)
@click.option(
    "--slurm", is_flag=True, help="Run nothing; write FOLDER/sweep.slurm, an array of as many tasks as --jobs."
)
def sweep_command(words: tuple[str, ...], join: str, **options: Any) -> int:
    """Run a configuration with several values."""
    from cntkpy.commands.sweeps.sweep import Options, sweep

    if join and words:
        raise click.UsageError("--join has no words: the sweep has its own.")
    if not join and not words:
        raise click.UsageError("No configuration is given. Name a file, or use configFile=FILE.")
    return sweep(list(words), Options(join=join, **options))

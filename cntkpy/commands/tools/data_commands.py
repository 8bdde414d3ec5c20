"""The subcommands about data: `preview` and `convert`. Declared here, done in the modules of their names."""

from typing import Any

import click

from cntkpy.readers.convert.formats import FORMATS

MODULES = click.option(
    "--import-modules", is_flag=True, help="Import the modules that the reader section names, which runs them."
)

FORM = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)

WRITTEN = [name for name, file_format in FORMATS.items() if file_format.target]

PREVIEW = """\
Show what a reader section reads, before anything is trained on it.

\b
Streams, shapes, lengths of sequences, how sparse, ranges of values, counts
of classes, the first samples, and how fast reading is.

\b
WORDS are the configuration (a file, files joined by +, or configFile=...),
overrides NAME=VALUE, and at most one PATH such as train/reader or train;
without one, the reader of the first command is shown. A FILE of data in place
of them, also compressed or a URL, is shown with a reader section for it:
tables, arrays, CNTK's text and binary formats, columns of numbers, HTK, MLF,
Kaldi, pictures and lists of them, tar, models. Other formats are named.

\b
Examples:
  cntkpy preview digits.cntk
  cntkpy preview train.parquet
  cntkpy preview configFile=digits.cntk test
  cntkpy preview digits.cntk train/cvReader --format json | jq .streams
  cntkpy preview speech.cntk train --size 500 --picture frames.png
  cntkpy preview images.cntk train --size 64 --picture sheet.png
"""

CONVERT = """\
Convert data from one format to another.

INPUT is the data, or configFile=... with overrides and the path of a reader
section: whatever that reader reads. OUTPUT appears only when it is complete.
Data of any size are converted in pieces.

\b
FORMAT  FILES                       INPUT
ctf     .ctf .txt                   text format
uci     .uci .data                  text of columns
cbf     .cbf                        CNTK binary format (CBF)
parquet .parquet .pq                Parquet file; every column a stream
arrow   .arrow .feather             file in Arrow's file format; likewise
npz     .npz                        a numpy archive
binary  .bin                        CNTK's binary files, one or several
htk     .scp .mfc .fea .plp ...     a script or feature file; with a script,
                                    label files (.mlf) and a list of states
kaldi   .ark scp:FILE ark:FILE      features, and a table of alignments
csv     .csv .tsv                   a table, and perhaps the names of its classes
lm      --from lm                   sentences, and a list of words
lu      --from lu                   columns, and the lists of words and tags

--stream NAME:DIM[:FORM] says what is converted, and which columns of text
are what; FORM is dense, sparse, or class: a number in columns and archives,
a one-hot vector in text format, category labels in binary files, an MLF
beside HTK features. HTK features are written as NAME.scp with one archive
NAME.ark, Kaldi's as NAME.ark with NAME.labels.ark and NAME.counts.

Of a table, --labels COLUMN has the classes (by default the only column that
holds no numbers), or --target COLUMN values: the stream "labels". All other
columns are "features" but those of --drop. The names of the classes are kept
next to OUTPUT, as NAME.labels.txt.

\b
Examples:
  cntkpy convert wine.csv wine.ctf --labels cultivar
  cntkpy convert houses.csv houses.ctf --target price --drop city --missing 0
  cntkpy convert train.ctf train.npz
  cntkpy convert iris.data iris.ctf --stream x:4 --stream label:3:class
  cntkpy convert train.ctf train.bin --stream labels:10:class --stream features:784
  cntkpy convert train.scp train.mlf states.txt train.ctf
  cntkpy convert train.scp train.mlf states.txt kaldi.ark
  cntkpy convert scp:feats.scp ark:ali.ark train.ctf
  cntkpy convert corpus.txt words.txt corpus.ctf --from lm
  cntkpy convert configFile=digits.cntk train/reader digits.npz
  cntkpy convert --mean configFile=images.cntk train/reader mean.xml
"""


@click.command("preview", help=PREVIEW, short_help="Show what a file of data or a reader section holds.")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--minibatches", type=click.IntRange(1), default=4, show_default=True, help="Number of minibatches to read."
)
@click.option("--size", type=click.IntRange(1), default=256, show_default=True, help="Samples of a minibatch.")
@click.option("--samples", type=click.IntRange(0), default=3, show_default=True, help="Number of sequences to print.")
@click.option(
    "--picture",
    metavar="FILE",
    help="Draw the first samples: .png, .svg or .pdf; needs the extra plot. Of images: a contact sheet, .png.",
)
@FORM
@MODULES
def preview_command(
    words: tuple[str, ...],
    minibatches: int,
    size: int,
    samples: int,
    picture: str | None,
    form: str,
    import_modules: bool,
) -> int:
    """Show the first minibatches of a reader section."""
    from cntkpy.commands.tools.preview import preview

    return preview(
        list(words),
        minibatches=minibatches,
        size=size,
        samples=samples,
        as_json=form == "json",
        picture=picture,
        modules=import_modules,
    )


@click.command("convert", help=CONVERT, short_help="Convert data to another format.")
@click.argument("words", nargs=-1, required=True, metavar="INPUT...")
@click.argument("output")
@click.option(
    "--stream", "streams", multiple=True, metavar="NAME:DIM[:FORM]", help="Stream to convert; may be repeated."
)
@click.option("--labels", metavar="COLUMN", help="Column of a table with the classes: its name or number.")
@click.option("--target", metavar="COLUMN", help="Column of a table with values to predict, in place of --labels.")
@click.option("--drop", "dropped", multiple=True, metavar="COLUMN", help="Column of a table to leave out.")
@click.option("--missing", type=float, metavar="NUMBER", help="Number in place of missing numbers of a table.")
@click.option("--from", "source_format", type=click.Choice(list(FORMATS)), help="Format of the input.")
@click.option("--to", "target_format", type=click.Choice(WRITTEN), help="Format of the output.")
@click.option(
    "--precision",
    type=click.Choice(["float", "double"]),
    default="float",
    show_default=True,
    help="Precision of the values.",
)
@click.option("--mean", is_flag=True, help="Write the mean of the images of a reader, for the transform Mean.")
@click.option("-q", "--quiet", is_flag=True, help="Print neither progress nor a summary.")
@MODULES
def convert_command(
    words: tuple[str, ...],
    output: str,
    mean: bool,
    quiet: bool,
    import_modules: bool,
    labels: str | None,
    target: str | None,
    dropped: tuple[str, ...],
    missing: float | None,
    **options: Any,
) -> int:
    """Convert data to another format."""
    from cntkpy.commands.tools.convert import convert, convert_to_mean

    if mean:
        return convert_to_mean(list(words), output, quiet=quiet, modules=import_modules)
    from cntkpy.readers.convert.named_columns import NamedColumns
    from cntkpy.readers.registry import refusing_modules

    columns = NamedColumns(labels, target, dropped, missing)
    with refusing_modules(not import_modules):
        return convert(list(words), output, quiet=quiet, columns=columns, **options)

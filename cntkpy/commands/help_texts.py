"""Texts of `--help` and the usage message."""

USAGE = """\
Usage: cntkpy configFile=FILE[+FILE...] [NAME=VALUE...] [configFile=FILE...]
       cntkpy run FILE [NAME=VALUE...]
       cntkpy check|completion|convert|diff|explain|export|format|help|list|lsp|new ...
       cntkpy plot|preview|report|runs|show|sweep ...
       cntkpy --help | --version [--verbose]
"""

OVERVIEW = """\
Run CNTK configuration files: train, test and write networks.

\b
The classic form runs a configuration; words are read from left to right,
later ones override earlier ones:
  cntkpy configFile=digits.cntk
  cntkpy configFile=globals.cntk+digits.cntk deviceId=cpu
  cntkpy configFile=digits.cntk 'train=[SGD=[maxEpochs=3]]' stderr=log/run
  cntkpy currentDirectory=experiments configFile=digits.cntk command=test

\b
The commands below are tools around it:
  cntkpy check digits.cntk
  cntkpy show --origins digits.cntk train/SGD
  cntkpy explain digits.cntk train/SGD/maxEpochs
  cntkpy help minibatchSize
  cntkpy runs log
  cntkpy report log/a.jsonl log/b.jsonl

\b
Exit status: 0 done; 1 failed while running; 2 wrong command line or
configuration; 130 interrupted by Ctrl-C; 143 ended by SIGTERM.
"""

PLOT = """\
Draw how a criterion falls over the epochs, from the logs of trainings.

\b
LOGS are log files of runs (stderr=FILE), or the .jsonl files of
logFormat=json. Several are drawn over one another: training in full lines,
validation dashed, progress inside epochs thin. Needs the extra `plot`.

\b
Examples:
  cntkpy plot log/run
  cntkpy plot log/small log/large --node err --out errors.svg

\b
With --network, a picture of the network that a configuration describes; needs
Graphviz, or the ending .dot for its text.
  cntkpy plot --network digits.cntk train --out digits.svg
"""

RUN = """\
Run a configuration: a FILE with overrides, or the words of the classic form.
A FILE that ends with .py is a Python program; other words are its arguments.

\b
WORDS of the classic form are read from left to right:
  configFile=A+B        read the files A and B
  NAME=VALUE            set a parameter; a later one wins
  SECTION=[NAME=VALUE]  set a parameter of a section; the rest of it stays
  currentDirectory=DIR  change directory, for the words that follow
  --allow-remote        let A, B and their includes be URLs

\b
Examples:
  cntkpy run digits.cntk
  cntkpy run globals.cntk+digits.cntk command=train:test traceLevel=1
  cntkpy run configFile=digits.cntk 'train=[SGD=[maxEpochs=3]]'
  cntkpy run --again digits.cntk train/SGD/learningRatesPerMB=0.1
  cntkpy run program.py --epochs 3
  cntkpy run --workers 2 program.py
  cntkpy run digits.cntk --track tensorboard:log/tensorboard
"""

SHOW = """\
Print a configuration as it is after includes, overrides and $variables$.

\b
WORDS are the configuration (a file, files joined by +, or configFile=...),
overrides NAME=VALUE, and at most one PATH such as train/SGD, which selects
a section or a single value.

\b
Examples:
  cntkpy show digits.cntk
  cntkpy show digits.cntk train/SGD
  cntkpy show --origins globals.cntk+digits.cntk deviceId=cpu
  cntkpy show --format json digits.cntk | jq .train.SGD

\b
A single model file instead of a configuration: its nodes, shapes, numbers of
parameters and groups, as a table or with --format json.
  cntkpy show models/digits.dnn

\b
With --network, the network that a command describes (the first one, or the one
named): nodes, shapes, parameters, and where each was made, with the calls.
  cntkpy show --network digits.cntk train
"""

CHECK = """\
Check configurations without running them.

\b
Looks for syntax errors, undefined variables, misspelled and unused names,
unknown actions, readers and builders, missing and wrong values, conflicts,
networks whose shapes do not fit, and missing files. Prints one line per
finding, `file:line:column: severity: text - what to do [CODE]`. The codes are
described by `cntkpy help CODE`.

\b
WORDS are configurations - each file on its own, files joined by + as one,
all configurations of a folder - or a classic command line; NAME=VALUE
overrides apply to all of them.

\b
With a project file, cntkpy.toml, no words are all runs of the project; a file
or a folder stands for the runs that have a layer there; the name of a run for
itself. See docs/projects.md.

Nothing of a configuration is run. Parameters of readers from a module that it
names are known only with --import-modules, which runs that module.

\b
Exit status: 0 nothing worse than a hint, 1 warnings, 2 errors.
A comment `# cntkpy: ignore=CK011` switches a finding off in its line,
`# cntkpy: ignore-file=CK011` at the top of a file in the whole file.

\b
Examples:
  cntkpy check digits.cntk speech.cntk
  cntkpy check --strict --format github configs/ RunDir=run
  cntkpy check globals.cntk+digits.cntk 'train=[SGD=[maxEpochs=3]]'
  cntkpy check
  cntkpy check models/small.cntk prod-large
"""

GROUPS = ("actions", "readers", "deserializers", "writers", "trackers", "functions", "findings")
"""Groups that `cntkpy list` can list."""

EXPLAIN = """\
Explain one value: its type and meaning, who reads it, where it comes
from, what it overrode on the way, and what $variables$ stood for.

\b
WORDS are the configuration (a file, files joined by +, or configFile=...),
overrides NAME=VALUE, and the PATH of the value.

\b
Examples:
  cntkpy explain digits.cntk train/SGD/minibatchSize
  cntkpy explain configFile=globals.cntk+digits.cntk train.reader.file
"""

DIFF = """\
Compare two configurations after includes, overrides and $variables$, or two
runs: their configurations, versions, warnings and results.

Values are compared by meaning: 0.10 is 1e-1, T is true, 0.1:0.1 per epoch is
0.1. Overrides apply to both. Exit status: 0 no difference, 1 differences,
2 a configuration cannot be read.

\b
Examples:
  cntkpy diff old.cntk new.cntk
  cntkpy diff globals.cntk+a.cntk globals.cntk+b.cntk RunDir=run --origins
  cntkpy diff sweep/3 sweep/7
"""

FORMAT = """\
Format configuration files in place: indentation, blanks around `=`, blank
lines. Comments stay, and no value ever changes: the result is read again and
compared. Networks and quoted texts are left as they are.

\b
FILES are files or folders. Exit status: 0 done; 1 something would change
(--check, --diff); 2 a file cannot be read.

\b
Examples:
  cntkpy format digits.cntk
  cntkpy format --check configs/
"""

EXPORT = """\
Write a model for other programs: OUT.onnx is an ONNX model, OUT.npz and
OUT.safetensors are its parameters. With --to pytorch or --to jax, OUT is a
folder with the network as source: model.py, weights.safetensors and README.md.

\b
MODEL is a model file of cntkpy or of CNTK. An ONNX model has the nodes of the
group `output`, or those that --output names; --softmax adds posteriors of a
node that feeds CrossEntropyWithSoftmax. It needs the package onnx; onnxruntime
computes it on random data, and values that differ are an error. Both are in the
extra `onnx`.

\b
Source is a module of PyTorch, or functions of JAX: layers where it has them,
formulas elsewhere. MODEL may be a configuration, too: the model that its
command trained is written, or its network before training. Where the framework
is installed, values and gradients are compared with those of the network first,
on random data and on the first data of the configuration's reader.

\b
Examples:
  cntkpy export models/digits.dnn digits --to pytorch
  cntkpy export digits.cntk digits --to pytorch --training
  cntkpy export speech.cntk speech --to pytorch --training --data cntkpy
  cntkpy export models/digits.dnn digits --to jax
  cntkpy export models/digits.dnn digits.onnx
  cntkpy export models/digits.dnn digits.onnx --output h1 --softmax z
  cntkpy export models/digits.dnn digits.npz
"""

HELP = """\
Explain a name: an action, a section, a parameter, a function of networks, a
command of the model editing language, or the code of a finding.

\b
Examples:
  cntkpy help
  cntkpy help train
  cntkpy help minibatchSize
  cntkpy help Times
  cntkpy help CK010
"""

"""`check` and the run agree about an example of every construct of docs/specification/config-language.md.

What runs has no error, no name that nothing reads, and no warning but those that the example names. What cannot run is
refused by both with the same message at the same place. Examples have the number of the section that describes the
construct; a section without one fails a test.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from small_training import TRAIN

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/specification/config-language.md").read_text(encoding="utf-8")

WORDS = """\
action = writeWordAndClass
inputFile = text.txt
vocabSize = 9
beginSequence = <s>
endSequence = </s>
outputVocabFile = v.txt
"""
BODY = WORDS.replace("\n", "\n    ").rstrip()
BASE = f"""\
command = words
words = [
    {BODY}
]
"""
BUILDER = "SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]"
FILES = {"text.txt": "a b\nb a b\n", "train.ctf": "|features 1 2 |labels 1 0\n|features 2 1 |labels 0 1\n"}


def change(old: str, new: str, text: str = BASE) -> str:
    assert old in text, old
    return text.replace(old, new)


def line(new: str) -> str:
    """The base with one more line in the section of the command."""
    return change("    action", f"    {new}\n    action")


@dataclass(frozen=True)
class Example:
    """A configuration and what becomes of it: an error, or a file with a text in it."""

    text: str
    error: str = ""
    makes: str = "v.txt"
    has: str = "\ta\t"
    args: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    warning: str = ""


def good(text: str, *args: str, makes: str = "v.txt", has: str = "\ta\t", warning: str = "", **files: str) -> Example:
    named = {name.replace("_", "."): value for name, value in files.items()}
    return Example(text, "", makes, has, args, named, warning)


def bad(text: str, error: str, *args: str, **files: str) -> Example:
    return Example(text, error, "", "", args, {name.replace("_", "."): value for name, value in files.items()})


def sgd(new: str) -> str:
    return change("maxEpochs = 1 ;", f"maxEpochs = 1 ; {new} ;", TRAIN)


EXAMPLES = {
    "1.1 carriage returns": good(BASE.replace("\n", "\r\n")),
    "1.1 a byte order mark": good("\ufeff" + BASE),
    "1.1 no newline at the end": good(BASE.rstrip()),
    "1.1 a lone carriage return": bad(BASE + "a=1\rb=2\n", "carriage return"),
    "1.2 comments": good("# one\n" + line("# two\n    cutoff = 0 # three").replace("= [", "= [ # four")),
    "1.2 a quote in a comment": good(line('cutoff = 0 # "one [')),
    "1.2 a number sign that is data": good(change("v.txt", "v#1.txt"), makes="v#1.txt"),
    "1.2 a comment in quotes": bad(change("v.txt", '"v # 1.txt"'), "quote is never closed"),
    "1.3 lines in brackets": good(change("command = words", "command = (\nwords\n)")),
    "1.3 a bracket on the next line": bad(change("words = [", "words =\n["), "value of 'words' is missing"),
    "1.4 quotes": good(change("v.txt", '"v;1,2.txt"'), makes="v;1,2.txt"),
    "1.4 a quote that is not closed": bad(change("v.txt", '"v.txt'), "quote is never closed"),
    "1.5 blanks": good(change("v.txt", '  "  v.txt  "  ')),
    "1.6 case of names": good(change("vocabSize", "VOCABsize").replace("command", "COMMAND")),
    "1.6 case of values": bad(change("writeWordAndClass", "writewordandclass"), "unknown action"),
    "2.1 separators": good(f"command=words;words=[{WORDS.replace(chr(10), ';')}]\n"),
    "2.1 commas": good(f"command=words,words=[{WORDS.strip().replace(chr(10), ',,')}]"),
    "2.2 nothing between groups": good(change("v.txt", '"v.txt" unk="q"')),
    "2.2 a list of groups": good(change("command = words", 'command = "words":"words"')),
    "2.3 no equals sign": good(change("words = [", "words [")),
    "2.3 a name without value is true": good(line("makeMode")),
    "2.3 a quoted name": good(change("vocabSize", '"vocabSize"')),
    "2.3 a number without value": bad(change("vocabSize = 9", "vocabSize"), "'true' is not an integer"),
    "2.4 a missing value": bad(change("v.txt", ""), "value of 'outputVocabFile' is missing"),
    "2.4 an empty text": bad(change("v.txt", '""'), "outputVocabFile is empty"),
    "2.5 another bracket": bad(BASE + "a = (1:2]\n", "']' cannot close the '('"),
    "2.5 a bracket that is not closed": bad(BASE + "a = [ b = 1\n", "'[' is never closed"),
    "2.6 sections in braces": good(change("words = [", "words = {").replace("]", "}")),
    "2.6 sections in parentheses": good(change("words = [", "words = (").replace("]", ")")),
    "2.6 sections in quotes": good(f'command = words\nwords = "{WORDS.strip().replace(chr(10), ";")}"\n'),
    "2.7 a bracket around all": good(f"[\n{BASE}]\n"),
    "2.8 another separator": good(f"command = words\nwords = [|{WORDS.strip().replace(chr(10), '|')}]\n"),
    "2.8 with data that have the usual one": good(
        f"command = words\nwords = [|{WORDS.strip().replace(chr(10), '|').replace('v.txt', 'v;1.txt')}]\n",
        makes="v;1.txt",
    ),
    "3 a name given again": good(
        change("v.txt", "w.txt\n    outputVocabFile = v.txt"), warning="'outputVocabFile' has been set before"
    ),
    "3 sections that merge": good(change("    vocabSize = 9\n", "") + "words = [ vocabSize = 9 ]\n"),
    "3 braces replace": bad(BASE + "words = { vocabSize = 9 }\n", "words:action is missing"),
    "3 a value becomes a section": good("words = 1\n" + BASE, warning="'words' has been set before"),
    "3 a section becomes a value": bad(BASE + "words = 1\n", "words:action is missing"),
    "4.1 arrays": good(change("command = words", "command = (words:words)")),
    "4.1 arrays with another separator": good(change("command = words", "command = (|words|words)")),
    "4.1 arrays by lines": good(change("command = words", "command = {\n  words\n  words\n}")),
    "4.2 nothing between separators": good(change("command = words", "command = words::words:")),
    "4.3 repeated": good(change("command = words", "command = words*2")),
    "4.3 repeated by a text": bad(change("command = words", "command = words*x"), "'x'"),
    "4.4 quoted elements": good(change("command = words", 'command = ("words":"words")')),
    "4.5 sets in an array": good(
        change("reader = [ readerType = CNTKTextFormatReader ; file = train.ctf\n",
               "reader = [ deserializers = ([ type = "
               "CNTKTextFormatDeserializer ; file = train.ctf\n", TRAIN).replace("] ] ]\n]", "] ] ]) ]\n]"),
        makes="m", has="",
    ),
    "4.6 colons in a list": bad(change("command = words", "command = C:words"), "C is missing"),
    "4.7 vectors": good(sgd("momentumPerMB = 0.5*2:0.9"), makes="m", has=""),
    "4.7 a vector without elements": bad(change("= 0.1", "= ()", TRAIN), "no learning rate is given"),
    "4.7 a vector without elements that has a default": bad(sgd("dropoutRate = ()"), "the list is empty"),
    "4.7 a vector with a text": bad(change("= 0.1", "= 0.1:much", TRAIN), "'much' is not a number"),
    "4.8 calls": good(
        change(BUILDER,
               "NDLNetworkBuilder = [ run = net ]", TRAIN)
        + "net = [\n features = Input(2, tag = feature) ; labels = Input(2, tag=label)\n"
          " W = Parameter(2, 2) ; z = Times(W, features)\n ce = SquareError(labels, z, tag = criterion)\n]\n",
        makes="m", has="",
    ),
    "5.1 integers": good(change("vocabSize = 9", "vocabSize = +09")),
    "5.1 a fraction": bad(change("vocabSize = 9", "vocabSize = 9.0"), "'9.0' is not an integer"),
    "5.1 less than none": bad(line("nbrClass = -2"), "nbrClass"),
    "5.1 too large": bad(line("nbrClass = 99999999999999999999"), "nbrClass"),
    "5.2 numbers": good(change("= 0.1", "= 0x1p-3:1e-3:.5", TRAIN), makes="m", has=""),
    "5.2 no number": bad(change("= 0.1", "= 0,1", TRAIN).replace("0,1", "0.1.2"), "'0.1.2' is not a number"),
    "5.3 texts": good(line("unk = <ünk>")),
    "5.4 booleans": good(line("makeMode = T") + "timestamping = F\n"),
    "5.4 no boolean": bad(line("makeMode = yes"), "'yes' is not a boolean"),
    "5.5 the word default": good(line("cutoff = default")),
    "5.5 default of what is required": bad(
        change("vocabSize = 9", "vocabSize = default"), "vocabSize has no value of its own"
    ),
    "5.6 names further out": good(change("    vocabSize = 9\n", "") + "vocabSize = 9\n"),
    "5.6 a section further out": good(
        change("    reader = [", "    file = train.ctf\n]\nreader = [", TRAIN).replace(" ; file = train.ctf\n", "\n")
        .replace("] ] ]\n]", "] ] ]"),
        makes="m", has="",
    ),
    "5.8 sections that are found by what is in them": good(
        "command = map\nmap = [ action = createLabelMap ; section = data ]\n"
        "data = [ reader = [ readerType = UCIFastReader ; file = rows.txt ; x = [ dim = 1 ; start = 0 ]\n"
        " y = [ dim = 1 ; start = 1 ; labelDim = 2 ; labelMappingFile = map.txt ] ] ]\n",
        makes="map.txt", has="cat", rows_txt="1 cat\n2 dog\n",
    ),
    "6.1 variables in sections": good(change("v.txt", "$name$.txt") + "name = v\n"),
    "6.1 a variable with a list": good(change("command = words", "command = ($list$:words)") + "list = words:words\n"),
    "6.1 from the command line": good(change("v.txt", "$name$.txt"), "name=v"),
    "6.2 variables in quotes": good(change("v.txt", '"$name$.txt"') + "name = v\n"),
    "6.3 what is no variable": good(change("v.txt", "v$5$$.txt"), makes="v$5$$.txt"),
    "6.3 side by side": good(change("v.txt", "$a$$b$") + "a = v\nb = .txt\n"),
    "6.4 a variable in a variable": good(change("v.txt", "$a$") + "a = $b$\nb = v.txt\n"),
    "6.4 default is not a value": bad(change("v.txt", "$a$") + "a = default\n", "$a$ is not defined"),
    "6.4 several lines": bad(change("v.txt", "$a$") + "a = [\n x = 1\n]\n", "$a$"),
    "6.5 the outermost counts": good(
        "name = v\n" + line("name = w").replace("v.txt", "$name$.txt"),
        warning="$name$ is 'v' of main.cntk:1:8, not 'w' of this section",
    ),
    "6.5 a variable of the section": good(line("name = v").replace("v.txt", "$name$.txt")),
    "6.6 not defined": bad(change("v.txt", "$name$.txt"), "the variable $name$ is not defined"),
    "6.7 variables that need each other": bad(change("v.txt", "$a$") + "a = $b$\nb = $a$\n", "need each other"),
    "7 includes": good(BASE.replace("command = words\n", "include=top.cntk\n"), top_cntk="command = words\n"),
    "7 an include in a section": good(change("    vocabSize = 9\n", "include=in.cntk\n"), in_cntk="vocabSize = 9\n"),
    "7 an include of the command line": good(change("    vocabSize = 9\n", ""), "include=more.cntk",
                                             more_cntk="words = [ vocabSize = 9 ]\n"),
    "7 an included file that is missing": bad("include=none.cntk\n" + BASE, "cannot read 'none.cntk'"),
    "7 a variable in an include": bad("a=b\ninclude=$a$.cntk\n" + BASE, "variable"),
    "8.2 several files": good(BASE, "configFile=more.cntk", more_cntk="traceLevel = 0\n"),
    "8.2 a file twice": bad(BASE, "main.cntk", "configFile=main.cntk"),
    "8.2 overrides": good(change("vocabSize = 9", "vocabSize = x"), "words=[vocabSize=9]"),
    "8.2 overrides by path": good(change("vocabSize = 9", "vocabSize = x"), "words/vocabSize=9"),
    "8.2 an override of nothing": good(BASE, "currentDirectory=."),
    "8.3 words that the shell has split": good(change("    vocabSize = 9\n", ""), "words=[vocabSize=9", "cutoff=0]"),
    "8.4 deviceId": bad("deviceId = gpu0\n" + BASE, "deviceId is auto"),
    "8.5 a log file": good("stderr = logs/run\n" + BASE),
    "8.6 no commands": good("command = ()\n", makes="main.cntk", has="command"),
    "8.6 a section that is missing": bad("command = wrods\n" + BASE.partition("\n")[2], "wrods is missing"),
    "8.6 no action": bad(change("    action = writeWordAndClass\n", ""), "action is missing"),
    "8.6 an action further out": good(change("    action = writeWordAndClass\n", "") + "action = writeWordAndClass\n"),
    "8.6 training without SGD": bad(re.sub(r"    SGD = .*\n", "", TRAIN), "SGD is missing"),
    "8.7 several actions": good(change("= writeWordAndClass", "= writeWordAndClass:writeWordAndClass")),
    "8.7 an unknown action": bad(change("writeWordAndClass", "writeWords"), "unknown action"),
    "8.8 defaults of a command": good(line("traceLevel = 0") + "makeMode = false\nnumCPUThreads = 1\n"),
    "8.9 a file when all is done": good("doneFile = done\n" + BASE, makes="done", has=""),
    "8.9 precision": bad("precision = half\n" + BASE, 'precision is "float", "double" or "bfloat16"'),
    "8.10 NDL in a file": good(
        change(BUILDER,
               "NDLNetworkBuilder = [ networkDescription = net.ndl ; run = net ; Dim = 2 ]", TRAIN),
        makes="m", has="",
        net_ndl="net = [\n features = Input($Dim$, tag = feature) # in\n labels = Input($Dim$, tag=label)\n"
        " W = Parameter($Dim$, $Dim$) ; z = Times(W, features)\n ce = SquareError(labels, z, tag = criterion)\n]\n",
    ),
    "8.11 BrainScript": good(
        change(BUILDER,
               "BrainScriptNetworkBuilder = {\n        features = Input{$dim$} ; labels = Input{$dim$}  // in\n"
               "        z = LinearLayer{2}(features)\n        ce = SquareError(labels, z)\n"
               "        featureNodes = (features)"
               " ; labelNodes = (labels) ; criterionNodes = (ce)\n    }", TRAIN) + "dim = 2\n",
        makes="m", has="",
    ),
}  # fmt: skip
NO_EXAMPLE = {"5.7": "says when values are computed", "8.1": "a line of words without a configuration"}
"""Sections that say nothing about what a configuration may have in it."""

FOUND = re.compile(r"(?P<place>.+?): (?P<severity>error|warning|hint): (?P<text>.*) \[(?P<code>CK\d+)\]")


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.sampled
def test_check_agrees_with_the_run(cntkpy, tmp_path: Path, name: str) -> None:
    one = EXAMPLES[name]
    words = ("configFile=main.cntk", *one.args)
    checked = cntkpy("check", *words, files={**FILES, "main.cntk": one.text, **one.files})
    ran = cntkpy(*words)
    found = [match for match in map(FOUND.fullmatch, checked.out.splitlines()) if match]
    if not one.error:
        assert ran.code == 0, ran.err
        told = [m[0] for m in found if m["severity"] != "hint" or "nothing reads" in m["text"]]
        assert (checked.code, len(told)) == ((1, 1) if one.warning else (0, 0)), checked.out
        assert one.warning in "".join(told) and one.warning in ran.err
        made = (tmp_path / one.makes).read_bytes()
        assert one.has.encode() in made
        return
    assert (checked.code, ran.code) == (2, 2), checked.out + ran.err
    errors = [match for match in found if match["severity"] == "error"]
    places = re.findall(r"^ *--> (.+)$", ran.err, re.MULTILINE)
    assert errors[0]["text"].startswith(ran.message), checked.out + ran.err
    assert one.error in ran.message
    assert errors[0]["place"] == places[0]


def test_every_section_has_an_example() -> None:
    numbers = re.findall(r"^\*\*(\d\.\d+) ", PAGE, re.MULTILINE)
    assert len(numbers) > 35
    there = {name.partition(" ")[0] for name in EXAMPLES}
    assert [one for one in numbers if one not in there and one not in NO_EXAMPLE] == []
    assert not NO_EXAMPLE.keys() & there
    assert {"3", "7"} <= there, "sections that are not divided"

"""No text makes a command take more than linear time: each is repeated, and four times as much of it takes four times
as long.

Times are processor time of this thread, the smallest of several, and only a growth beyond `GROWTH` counts that is seen
three times; short times count for nothing. What would grow exponentially is refused, see the tests of limits.
"""

from __future__ import annotations

import contextlib
import gc
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cntkpy.cntk_config.base.spelling import MAX_NAME_LENGTH, nearest
from cntkpy.commands.checks.names import Spellings
from tools.fuzz.console import run_words
from tools.fuzz.targets import BRAINSCRIPT, EVENTS, LOG, MEAN, NDL, NETWORK, find

GROWTH = 8.0
"""Four times the text takes no longer than so many times as long; linear is 4, quadratic 16."""
SHORT = 0.3
"""Seconds of processor time that are too short to be judged."""


class Repeated(NamedTuple):
    """A file with something repeated.

    Attributes:
        target: the target of `tools.fuzz` that reads it.
        head: what is before.
        piece: what is repeated; `%d` is the number of the repetition.
        tail: what follows.
        times: how many pieces are in the smaller text.
    """

    target: str
    head: str
    piece: str
    tail: str = "x\n"
    times: int = 20_000

    def text(self, count: int) -> bytes:
        """The file with so many pieces."""
        numbered = "%d" in self.piece
        middle = "".join(self.piece % i for i in range(count)) if numbered else self.piece * count
        return (self.head + middle + self.tail).encode()

    def __str__(self) -> str:
        return f"{self.target}, {self.head[-12:]!r} and {self.piece!r}"


TOP = "x = a\ncommand = a\na = [ action = train ; "
SGD = NETWORK.format(action="train", builder="").partition("0.1 ]")[0]
READER = "0 |x 1 2 "
NUMBERS = ("0", "1", "00.", "1e", "-")
QUICK = [
    Repeated("config", SGD, "0", "x ] ]\n"),
    Repeated("config", TOP, "["),
    Repeated("config", TOP + "reader = [ readerType = CNTKTextFormatReader ; file = f", "/f", " ] ]\n", 3_000),
    Repeated("config", "", "modelPath", "\n", 3_000),
    Repeated("ndl", "x = ", "0", "x\n"),
    Repeated("brainscript", BRAINSCRIPT + "q = ", "0", "x\n"),
    Repeated("ctf", READER, "0", "x\n"),
    Repeated("log", LOG.partition("0.69")[0], "0", "x * 20\n"),
]


def each(target: str, head: str, pieces: tuple[str, ...], tail: str = "x\n", times: int = 20_000) -> list[Repeated]:
    """The same file with each of several pieces."""
    return [Repeated(target, head, piece, tail, times) for piece in pieces]


LINES = LOG.splitlines(True)
ROWS = EVENTS.splitlines(True)
PIXELS = MEAN.partition("1. 2.5")
IN_NDL = NDL.rstrip()[:-1]
THOROUGH = [
    Repeated("config", SGD, "0", "#in ] ]\n"),
    Repeated("config", SGD + "0.1 ; momentumPerMB = 0.9", ":0.8:0.9", "] ]\n", 100),
    Repeated("config", TOP, "[]", "[\n"),
    *each("config", TOP, ('"', "$")),
    Repeated("ndl", "x = Input(", "0", "x)\n"),
    Repeated("uci", "1 ", "0", "x 3\n"),
    Repeated("kaldi-text", "a [ 1 ", "0", "x ]\n"),
    Repeated("scp", "u0=a.mfc[", "0", "x]\n"),
    Repeated("mlf", '#!MLF!#\n"*/u0.lab"\n', "0", "x s1\n.\n"),
    *each("config", TOP + "y = ", ("$x ", "$x$", "(", "{", "a:", "a*2:", "# ", "\\", " ", "=", ";"), "x\n", 8_000),
    *each("config", TOP, ("k%d;", "k%d:z;", "k%d=1\n", "k=1\n", "s=[x=1]\n"), "]\n", 2_000),
    *each("config", TOP, ("y%d=$z$\n", "y%d=$x$\n", "$x$=1\n"), "]\n", 1_000),
    *each("config", "include=", ("f+", "+"), "\n", 2_000),
    *each("config", "", ("# x\n", "s%d=[x=1]\n", "include=f\n"), "\n", 2_000),
    *each("config", "a = [ action = edit ; editPath = m.mel ]\ncommand = a", (":a", ":b"), "\n", 300),
    *each("config", SGD + "0.1", (":0.1", ":0.1*3"), "] ]\n", 1_000),
    *each("format", TOP, ("k%d=1\n", "s=[\nx=1\n]\n", "# x\n", "k=1;", "\n", " "), "]\n", 2_000),
    *each("ndl", IN_NDL + "q = ", ("(", ")", ":", '"', " ", "#", "$", "/"), "x ]\n"),
    *each("ndl", IN_NDL, ("c%d = 1\n", "c = 1\n", "n%d = Tanh(x)\n", "n%d = Tanhh(x)\n", "Nodes = (z)\n"), "]\n", 500),
    *each("ndl", IN_NDL + "q = RowStack(x", (", x", ", taag=1"), ")\n]\n", 500),
    *each("ndl", IN_NDL + "q = ", ("Tanh(",), "x\n]\n", 500),
    *each("brainscript", BRAINSCRIPT + "q = ", ("(", ")", "'", "/*", "//\n", "..", ".", " ")),
    *each("brainscript", BRAINSCRIPT + "q = x", (" + x", ".x", "[0]", " (1)", " : 1", " ; q = 1"), "\n", 1_000),
    *each("brainscript", BRAINSCRIPT + "q = x", ("\nn%d = 1", "\nn%d = Tanh (x)", "\nn%d = xx"), "\n", 500),
    *each(
        "brainscript",
        BRAINSCRIPT + "q = ",
        ("if 1 == 2 then 1 else ", "-", "!", "(1 + ", "x => ", "{ a = "),
        "1\n",
        800,
    ),
    *each("mel", "m = LoadModel(a)\nCopyNode(a", ("(", ".", "*", '"', " ", ","), ", c)\n"),
    *each("mel", "m = LoadModel(a)\n", ("CopyNode(m.h, m.g)\n", "Copynode%d(a)\n"), "\n", 500),
    *each("mel", "m = CreateModel()\n", ("RemoveNode(m.n%d)\n",), "\n", 500),
    *each("uci", "1 2 3 ", (*NUMBERS, " ", "\n")),
    *each("ctf", READER, (*NUMBERS, "|", "|x ", "|# ", "0:1 ", " ", "\n", "|x 1 2 3\n")),
    *each("ctf-lenient", READER, (*NUMBERS, "|", "|x ", "|# ", "0:1 ", " ", "\n", "|x a\n")),
    *each("initial-values", "1 2 ", (*NUMBERS, "1 ", "\n")),
    *each("kaldi-text", "a [ 1 2 ", (*NUMBERS, "1 ", "\n", "[", "]"), "]\n"),
    *each("kaldi-script", "a f.txt:2", ("[", "0", ":", " ", "|", "\na f.txt:2"), "\n", 5_000),
    *each("scp", "u0=a.mfc", ("=", "[", ",", " ", "/", "\nu%d=a.mfc[0,1]"), "\n", 5_000),
    *each("mlf", '#!MLF!#\n"*/u0.lab"\n', ("0 ", " ", '"', "*/", "0 9 s1\n", '.\n"*/u%d.lab"\n'), "\n", 5_000),
    *each("label-map", "", ("a%d\n", "a\n", "a", " ", "#"), "\n", 5_000),
    *each("mean-file", PIXELS[0], ("1 ", "0", "<", "<a>", " "), PIXELS[2]),
    *each("map-file", "p.png\t1\n", ("a", "...", "/", "@", '"', "\t", "p%d.png\t1\n"), "\t1\n", 5_000),
    *each("log", LOG, (LINES[3], LINES[2], " ", "[", "0", "e = 1 * 2; "), "\n", 1_000),
    *each("log-events", EVENTS, (ROWS[1], "[", "{", '"', "0", '{"a":'), "\n", 1_000),
    *each("corpus", "the ", ("cat ", "a", "\n", "x%d "), "\n", 5_000),
    *each("words", "the\n", ("w%d\n", "w\n", "a", " "), "\n", 5_000),
    *each("kaldi-transform", "<Nnet> <Splice> 6 2 [ ", ("1 ", "0", "[", "<"), "] </Nnet>\n", 5_000),
]


def reading(case: Repeated) -> Callable[[int], None]:
    """What reads the file with so many pieces."""
    target = find(case.target)
    for name, content in target.files.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def read(count: int) -> None:
        Path(target.file).write_bytes(case.text(count))
        if target.call is not None:
            with contextlib.suppress(Exception):
                target.call(target.file)
        for words in target.words:
            with contextlib.redirect_stdout(io.StringIO()):
                run_words(words)

    return read


def seconds(read: Callable[[int], None], count: int) -> float:
    """Processor time of this thread for so many pieces."""
    gc.collect()
    begun = time.thread_time()
    read(count)
    return time.thread_time() - begun


def growth(read: Callable[[int], None], count: int) -> float:
    """How many times as long four times the text takes, the smallest of three looks; 0 if that is short."""
    read(1)  # what is compiled and loaded once
    gc.freeze()  # what other tests have left is not looked through before each measurement
    try:
        found = []
        for _ in range(3):
            long = seconds(read, 4 * count)
            if long < SHORT:
                return 0.0
            found.append(long / min(seconds(read, count) for _ in range(2)))
            if found[-1] < GROWTH:
                break
        return min(found)
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(
    "case", [*QUICK, *(pytest.param(one, marks=pytest.mark.thorough) for one in THOROUGH)], ids=str
)
def test_four_times_the_text_takes_four_times_as_long(
    case: Repeated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert growth(reading(case), case.times) < GROWTH


def test_long_names_are_compared_with_none() -> None:
    """That takes time in proportion to the product of their lengths: hours for these two."""
    long, other = "ab" * 100_000, "ba" * 100_000
    assert nearest(long, [other]) is None
    assert Spellings([other], 0.7).closest(long) is None
    assert Spellings([other], 0.7).closest(long[:MAX_NAME_LENGTH]) is None


@pytest.mark.parametrize("power, found", [(1, False), (2, True)])
def test_what_takes_quadratic_time_is_found(power: int, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that goes on by a power of the count."""
    now = 0.0

    def read(count: int) -> None:
        nonlocal now
        now += (count / 1_000) ** power

    monkeypatch.setattr(time, "thread_time", lambda: now)
    assert (growth(read, 1_000) > GROWTH) == found

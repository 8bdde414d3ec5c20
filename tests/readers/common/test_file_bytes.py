"""Files on a disk, or in a folder of the network, that fails now and then."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config.base import retry
from cntkpy.readers.common.file_bytes import FileBytes
from cntkpy.readers.errors import DataError

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* As many reads of the file that FILE names as FAILURES says fail with EIO; AT_PLACES: those at a place of the file,
   which are kernels' and FileBytes', else those of what comes next. */
static int fails(int file, int at_place) {
    char link[64], path[4096], text[32], *name = getenv("FILE");
    int left = atoi(getenv("FAILURES"));
    size_t length = strlen(name);
    if (!left || (getenv("AT_PLACES") != NULL) != at_place) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path);
    if (n < (ssize_t) length || memcmp(path + n - length, name, length)) return 0;
    snprintf(text, sizeof text, "%d", left - 1);
    setenv("FAILURES", text, 1);
    errno = EIO;
    return 1;
}
ssize_t read(int file, void *to, size_t count) {
    return fails(file, 0) ? -1 : ((ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read"))(file, to, count);
}
ssize_t pread(int file, void *to, size_t count, off_t at) {
    typedef ssize_t (*Real)(int, void *, size_t, off_t);
    return fails(file, 1) ? -1 : ((Real)dlsym(RTLD_NEXT, "pread"))(file, to, count, at);
}
ssize_t preadv2(int file, const struct iovec *to, int count, off_t at, int flags) {
    typedef ssize_t (*Real)(int, const struct iovec *, int, off_t, int);
    return fails(file, 1) ? -1 : ((Real)dlsym(RTLD_NEXT, "preadv2"))(file, to, count, at, flags);
}
ssize_t preadv64v2(int file, const struct iovec *to, int count, off_t at, int flags) {
    return preadv2(file, to, count, at, flags);
}
ssize_t preadv(int file, const struct iovec *to, int count, off_t at) { return preadv2(file, to, count, at, 0); }
ssize_t preadv64(int file, const struct iovec *to, int count, off_t at) { return preadv2(file, to, count, at, 0); }
ssize_t pread64(int file, void *to, size_t count, off_t at) { return pread(file, to, count, at); }
"""
READ = """
from cntkpy.cntk_config.base import retry
from cntkpy.readers import create_reader

retry.RETRY_SECONDS = (0.01,) * 4
reader = create_reader("file=data.ctf;randomize=true;chunkSizeInBytes=1000;input=[x=[dim=2;format=dense]]")
reader.start_minibatch_loop(64, 0)
seen = []
while (m := reader.get_minibatch()) is not None:
    seen += m.streams["x"].ravel().tolist()
print(len(seen), sum(seen))
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes reading fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler on Linux")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "shim.so", "shim.c", "-ldl"], cwd=folder, check=True)
    return folder / "shim.so"


def read(folder: Path, shim: Path, failures: int) -> subprocess.CompletedProcess[str]:
    """Read a file in another process."""
    (folder / "data.ctf").write_text("".join(f"|x {k} {k + 1}\n" for k in range(1000)))
    environment = {
        **os.environ,
        "LD_PRELOAD": str(shim),
        "FILE": "data.ctf",
        "FAILURES": str(failures),
        "AT_PLACES": "1",
    }
    return subprocess.run([sys.executable, "-c", READ], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.thorough
def test_a_read_that_fails_is_tried_again_and_nothing_is_lost(shim: Path, tmp_path: Path) -> None:
    done = read(tmp_path, shim, 3)
    assert done.stdout == "2000 1000000.0\n", done.stderr
    assert "The data file data.ctf cannot be read at byte" in done.stderr
    assert "Input/output error; trying again in 0.01 s" in done.stderr


def test_a_kernel_less_read_that_goes_on_failing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(retry, "RETRY_SECONDS", (0.001,) * 4)
    (tmp_path / "data").write_bytes(b"abc")
    file = FileBytes(str(tmp_path / "data"))
    monkeypatch.setattr(os, "preadv", fail, raising=False)
    with pytest.raises(DataError, match="cannot be read at byte 0: Input/output error, 5 times") as caught:
        file.bytes(0, 3)
    assert "check the disk or the network mount" in caught.value.diagnostic.render()


@pytest.mark.thorough
def test_a_read_that_goes_on_failing_is_an_error(shim: Path, tmp_path: Path) -> None:
    done = read(tmp_path, shim, 1000)
    assert done.returncode
    assert "Input/output error, 5 times" in done.stderr
    assert "check the disk or the network mount" in done.stderr


WHOLE = """
import os
import sys
from pathlib import Path

import numpy as np
from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base import retry
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.files.tensor_file import TensorFile, write_tensors
from cntkpy.readers import create_reader
from cntkpy.readers.formats.htk.archive import write_archive
from cntkpy.readers.formats.kaldi.features import Counts
from cntkpy.readers.formats.kaldi.parameters import specifier_of
from cntkpy.readers.utterances.labels import read_states

retry.RETRY_SECONDS = (0.01,) * 4
write_archive("f.ark", [(f"u{u}.mfc", np.ones((2, 3), np.float32)) for u in range(2)], "f.scp")
Path("l.mlf").write_text("#!MLF!#\\n" + "".join(f'"*/u{u}.lab"\\n0 200000 b\\n.\\n' for u in range(2)))
Path("states").write_text("a\\nb\\n")
Path("f.counts").write_text("u0 2\\nu1 2\\n")
Path("rx").write_text("ark:f.ktxt")
Path("digits.txt").write_text("1 0 2\\n1 1 4\\n")
Path("map").write_text("0\\n1\\n")
Path("base.cfg").write_text("epochs=7\\n")
Path("all.cfg").write_text("include=base.cfg\\nrate=0.5\\n")
write_tensors(Path("m"), {"W": np.arange(6.0)}, {})


def minibatch(section):
    reader = create_reader(section)
    reader.start_minibatch_loop(4, 0)
    streams = reader.get_minibatch().streams
    return [np.asarray(streams[name].toarray() if hasattr(streams[name], "toarray") else streams[name]).tolist()
            for name in sorted(streams)]


def configuration():
    found = ConfigParameters()
    found.load_config_file("all.cfg")
    return str(found("epochs"))


def tensors():
    with TensorFile("m") as file:
        return file.read("W").tolist()


HTK = "readerType=HTKMLFReader;x=[dim=3;scpFile=f.scp];y=[mlfFile=l.mlf;labelMappingFile=states;labelDim=2]"
UCI = "readerType=UCIFastReader;file=digits.txt;x=[start=1;dim=2];y=[start=0;dim=1;labelDim=2;labelMappingFile=map]"
CASES = {case!r}
for name, made in CASES.items():
    work = eval(made)
    os.environ["FILE"], os.environ["FAILURES"] = "/" + name, "0"
    wanted = work()
    os.environ["FAILURES"] = "3"
    assert work() == wanted, name
    os.environ["FAILURES"] = "1000"
    try:
        work()
        raise SystemExit(f"{name} was read")
    except UserError as error:
        print(name, str(error))
    except OSError as error:
        print(name, error.strerror)
"""
LITTLE = {
    "states": "lambda: read_states('states').ids",
    "rx": "lambda: specifier_of('rx')",
    "f.counts": "lambda: Counts('f.counts').keys",
    "base.cfg": "configuration",
    "m": "tensors",
}
READERS = {"f.scp": "lambda: minibatch(HTK)", "l.mlf": "lambda: minibatch(HTK)", "map": "lambda: minibatch(UCI)"}


@pytest.mark.parametrize(
    "cases", [LITTLE, pytest.param(READERS, marks=pytest.mark.thorough)], ids=["little", "readers"]
)
def test_files_that_are_read_whole_are_read_again(shim: Path, tmp_path: Path, cases: dict[str, str]) -> None:
    """Lists, labels, specifiers, names of classes, included configurations, models."""
    environment = {**os.environ, "LD_PRELOAD": str(shim), "FILE": "", "FAILURES": "0"}
    done = subprocess.run(
        [sys.executable, "-c", WHOLE.replace("{case!r}", repr(cases))],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(cases)
    for name, line in zip(cases, lines, strict=True):
        assert line.startswith(f"{name} ") and "Input/output error, 5 times" in line, lines
        again = f"The file {name} cannot be read: Input/output error; trying again in 0.01 s"
        assert done.stderr.count(again) == 3 + 4, (name, done.stderr)


def test_pieces_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8)
    content.tofile(tmp_path / "f")
    file, out = FileBytes(str(tmp_path / "f")), np.zeros(30, np.uint8)
    at, sizes, places = np.array([990, 0, 500]), np.array([10, 5, 0]), np.array([20, 0, 30])
    for quick in (True, False):
        out[:] = 0
        if not quick:
            for name in ("pread", "preadv"):  # as on Windows
                monkeypatch.delattr(os, name, raising=False)
        file.pieces(out, at, sizes, places)
        assert out.tolist() == [*content[:5], *[0] * 15, *content[990:]]
        with pytest.raises(DataError, match="was cut short"):
            file.pieces(out, at + 1, sizes, places)
        with pytest.raises(ValueError, match="does not fit"):
            file.pieces(out, at, sizes, places + 1)


FRAMES = """
import numpy as np
from cntkpy.cntk_config.base import retry
from cntkpy.readers import create_reader

retry.RETRY_SECONDS = (0.01,) * 4
reader = create_reader({section!r})
reader.start_minibatch_loop(64, 0)
seen = []
while (m := reader.get_minibatch()) is not None:
    seen.append(m.streams["x"].ravel())
print(len(np.concatenate(seen)), np.concatenate(seen).sum())
"""


def _speech(folder: Path, kind: str) -> None:
    from cntkpy.readers.formats.htk.archive import write_archive
    from cntkpy.readers.formats.kaldi.specifier import parse_write_specifier
    from cntkpy.readers.formats.kaldi.write import open_writer

    rows = {f"u{u}": np.full((50, 4), u, np.float32) for u in range(20)}
    if kind == "htk":
        write_archive(str(folder / "data"), ((f"{key}.fea", one) for key, one in rows.items()), str(folder / "s.scp"))
        return
    with open_writer(parse_write_specifier(f"ark,scp:{folder}/data,{folder}/s.scp")) as file:
        for key, one in rows.items():
            file.write_matrix(key, one)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["htk", "kaldi"])
@pytest.mark.parametrize("held", [True, False], ids=["held", "read"])
def test_frames_survive_a_disk_that_fails(shim: Path, tmp_path: Path, kind: str, held: bool) -> None:
    """Kernels read these files, and FileBytes what they could not."""
    _speech(tmp_path, kind)
    where = "scpFile=s.scp" if kind == "htk" else 'rx="scp:s.scp"'
    reader = {"htk": "HTKFeatureDeserializer", "kaldi": "KaldiFeatureDeserializer"}[kind]
    section = f"frameMode=true;randomize=true;deserializers=([type={reader};input=[x=[dim=4;{where}]]])"
    module = {"htk": "cntkpy.readers.formats.htk.features", "kaldi": "cntkpy.readers.formats.kaldi.matrices"}[kind]
    program = (
        FRAMES.format(section=section)
        if held
        else f"import {module} as m\nm.HELD = 0\n{FRAMES.format(section=section)}"
    )
    for failures, wanted in ((0, "4000 38000.0\n"), (3, "4000 38000.0\n"), (100_000, "")):
        environment = {
            **os.environ,
            "LD_PRELOAD": str(shim),
            "FILE": "/data",
            "FAILURES": str(failures),
            "AT_PLACES": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.stdout == wanted, done.stderr
        assert bool(failures) == ("Input/output error; trying again in 0.01 s" in done.stderr)
    assert done.returncode > 0  # no signal
    assert "Input/output error, 5 times" in done.stderr

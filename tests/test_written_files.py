"""Files are opened for writing in one module (A1): calls elsewhere that could overwrite one are found."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from syntax import nodes_of

ROOT = Path(__file__).resolve().parent.parent
ONE = "cntkpy/cntk_config/base/writing.py"
READS = "cntkpy/cntk_config/base/files.py"
ELSEWHERE = {
    "cntkpy/cntk_config/base/systems/files.py": "opens a folder for reading, to sync it",
    "cntkpy/grammar/__init__.py": "the sum of parsing tables, in a private folder; grammar imports no other package",
    "cntkpy/commands/cli.py": "os.devnull",
    "cntkpy/commands/console.py": "os.devnull",
}
"""What writes all the same, and why it may."""

METHODS = {"write_text", "write_bytes", "touch", "tofile", "symlink_to", "hardlink_to", "link_to"}
"""Methods that write under a name."""
FUNCTIONS = {
    "os": {"open", "replace", "rename", "link", "symlink", "truncate", "mkfifo"},
    "shutil": {"copy", "copy2", "copyfile", "move"},
    "tempfile": {"NamedTemporaryFile", "mkstemp", "mktemp"},
    "logging": {"FileHandler"},
}
NUMPY = {"save", "savez", "savez_compressed", "savetxt"}
"""Functions that open, write or replace under a name."""
TO_OPEN_FILES = {"savefig", "ZipFile", "TarFile"}
"""Functions that take a name or an open file, as those of `NUMPY` do; only a variable can be an open file."""


def writes(call: ast.Call) -> bool:
    """Whether a call opens, writes or replaces a file under a name."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open" and _mode(call, 1) and not _is_descriptor(call)
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    name = function.attr
    if name in FUNCTIONS.get(owner, ()) or name in METHODS:
        return True
    if name == "open":  # of a path; a member of an archive has more arguments
        inside = any(one.arg == "force_zip64" for one in call.keywords)
        return _mode(call, 1 if owner in ("io", "gzip", "bz2", "lzma") else 0) and not inside
    if name in ("replace", "rename"):  # of a path, not of a text, which takes two
        return len(call.args) == 1 and not call.keywords
    if name in TO_OPEN_FILES or (owner in ("np", "numpy") and name in NUMPY):
        return bool(call.args) and not isinstance(call.args[0], ast.Name | ast.Attribute)
    return False


def _mode(call: ast.Call, place: int) -> bool:
    """Whether the mode of a call of `open` is one of writing, or a variable called `mode`."""
    given = [one.value for one in call.keywords if one.arg == "mode"] + call.args[place : place + 1]
    return any(
        bool(set(str(one.value)) & set("wax+"))
        if isinstance(one, ast.Constant)
        else isinstance(one, ast.Name) and one.id == "mode"
        for one in given
    )


def _is_descriptor(call: ast.Call) -> bool:
    """Whether what is opened comes from `open_in_place`."""
    first = call.args[0]
    return isinstance(first, ast.Call) and isinstance(first.func, ast.Name) and first.func.id == "open_in_place"


def found_in(text: str) -> Iterator[int]:
    """The lines in which a file is written."""
    return (node.lineno for node in nodes_of(text) if isinstance(node, ast.Call) and writes(node))


@pytest.mark.parametrize(
    "text",
    [
        "open(x, 'w')", "open(x, mode='ab')", "open(x, mode)", "io.open(x, 'r+')", "Path(x).open('w')", "p.open('a')",
        "p.open(mode)", "os.open(x, os.O_RDWR)", "p.write_text('')", "p.write_bytes(b'')", "p.touch()", "a.tofile(x)",
        "np.save('x', a)", "np.savez(str(p), a=a)", "figure.savefig(f'{x}.png')", "shutil.copy(a, b)", "p.replace(q)",
        "os.replace(a, b)", "tempfile.NamedTemporaryFile(delete=False)", "gzip.open(x, 'wb')", "p.symlink_to(q)",
        "zipfile.ZipFile(str(x), 'w')", "logging.FileHandler(x)",
    ],
)  # fmt: skip
def test_what_writes_is_found(text: str) -> None:
    assert list(found_in(text)) == [1]


@pytest.mark.parametrize(
    "text",
    [
        "open(x)",
        "open(x, 'rb')",
        "p.open()",
        "p.open('rb')",
        "text.replace('a', 'b')",
        "np.savez(file, a=a)",
        "open(open_in_place(x), 'r+b')",
        "archive.open(name, 'w', force_zip64=True)",
        "archive.open(f'{x}.npy')",
        "writer.save({})",
        "zipfile.ZipFile(file, 'w')",
    ],
)
def test_what_reads_is_not(text: str) -> None:
    assert list(found_in(text)) == []


def test_one_module_writes() -> None:
    lines = {
        name: list(found_in(path.read_text(encoding="utf-8")))
        for path in sorted((ROOT / "cntkpy").rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()) not in (ONE, READS)
    }
    found = {name for name, at in lines.items() if at}
    wrong = [f"{name}: {lines[name]}" for name in sorted(found - set(ELSEWHERE))]
    assert not wrong, f"write through {ONE}:\n" + "\n".join(wrong)
    assert found == set(ELSEWHERE), "what does not write any more needs no reason"

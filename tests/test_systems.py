"""What only some systems have is named in one package, and the tool runs where that is missing."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

import pytest
import small_classification as small
from syntax import nodes_of

from cntkpy.cntk_config import load
from cntkpy.cntk_config.base.files import is_url
from cntkpy.cntk_config.includes import Loader
from cntkpy.readers.formats.htk.script import UNKNOWN, read_script
from cntkpy.readers.formats.kaldi.specifier import parse_place, parse_read_specifier

ROOT = Path(__file__).resolve().parent.parent
ONE = ROOT / "cntkpy/cntk_config/base/systems"
LIKE_WINDOWS = ROOT / "tests/tools/like_windows"


def names(text: str) -> frozenset[str]:
    """Words of a text."""
    return frozenset(text.split())


MODULES = names("""
    crypt curses fcntl grp msvcrt nt posix pty pwd readline resource spwd syslog termios tty winreg winsound _winapi
""")
"""Modules that one of Linux, macOS and Windows lacks."""
NAMES = {
    "os": names("""
        chown chroot fchdir fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpgrp
        getsid getuid killpg lchown major makedev memfd_create minor mkfifo mknod name nice openpty posix_fadvise
        posix_fallocate posix_spawn pread preadv pwrite pwritev register_at_fork sched_getaffinity sched_setaffinity
        sched_yield sendfile setpgid setsid setuid startfile statvfs sync sysconf tcgetpgrp uname wait wait3 wait4
        O_BINARY O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC O_TMPFILE
    """),
    "select": {"epoll", "kqueue", "poll"},
    "signal": names("""
        CTRL_BREAK_EVENT CTRL_C_EVENT SIGALRM SIGBREAK SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP
        SIGTSTP SIGUSR1 SIGUSR2 Signals alarm pause pthread_kill pthread_sigmask setitimer siginterrupt sigwait
    """),
    "socket": {"AF_UNIX", "MSG_CMSG_CLOEXEC", "SO_PEERCRED", "SO_REUSEPORT", "recv_fds", "send_fds"},
    "subprocess": {"CREATE_NEW_PROCESS_GROUP", "STARTUPINFO"},
    "sys": {"getwindowsversion", "platform"},
    "time": {"tzset"},
}
"""Names of modules that all systems have, which one of them lacks, or which ask for the system."""
FOLDERS = ("/dev/", "/etc/", "/proc/", "/sys/", "/tmp", "/usr/", "/var/")


def of_some_systems(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a program that name what only some systems have, and what it is."""
    nodes = nodes_of(text)
    documented = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    called = {id(word) for node in nodes if isinstance(node, ast.Call) for word in ast.iter_child_nodes(node)}
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names if one.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module in MODULES:
                yield node.lineno, str(node.module)
            yield from ((node.lineno, one.name) for one in node.names if one.name in NAMES.get(node.module or "", ()))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in NAMES.get(node.value.id, ()):
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            owner, name = node.args[:2]
            if isinstance(owner, ast.Name) and isinstance(name, ast.Constant) and name.value in NAMES.get(owner.id, ()):
                yield node.lineno, f"{owner.id}.{name.value}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            names_module = id(node) in called and node.value in MODULES  # for importlib
            if names_module or node.value.startswith(FOLDERS):
                yield node.lineno, node.value


def test_what_only_some_systems_have_is_named_in_one_package() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}; cntkpy/cntk_config/base/systems is where it belongs"
        for path in sorted((ROOT / "cntkpy").rglob("*.py"))
        if ONE not in path.parents
        for line, name in of_some_systems(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "import fcntl",
        "from os import fork",
        "def f():\n    import resource",
        "os.sched_getaffinity(0)",
        "hasattr(os, 'pread')",
        "x = getattr(os, 'O_BINARY', 0)",
        "if sys.platform == 'linux': pass",
        "signal.SIGHUP",
        "Path('/proc/self/statm')",
        "importlib.import_module('fcntl')",
        "os.name",
        "socket.AF_UNIX",
        "select.poll()",
        "Path('/tmp')",
    ],
)
def test_names_of_some_systems_are_found(text: str) -> None:
    assert len(list(of_some_systems(text))) == 1


@pytest.mark.parametrize(
    "text", ['"""/proc is read."""', "os.replace(a, b)", "signal.SIGTERM", "a.name", "x = 'platform'"]
)
def test_names_of_all_systems_are_not(text: str) -> None:
    assert not list(of_some_systems(text))


# ---- the tool where what Windows lacks is missing, and the console has a code page


def like_windows(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (LIKE_WINDOWS, ROOT))),
        "PYTHONIOENCODING": "cp1252",
        "PYTHONUTF8": "0",
    }
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, check=False)


def tool(folder: Path, *words: str) -> str:
    """What a command prints that has to succeed."""
    done = like_windows(folder, "-m", "cntkpy", *words)
    assert done.returncode == 0, done.stderr.decode("cp1252")
    return done.stdout.decode("cp1252")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in small.files("test = [ action = test ; minibatchSize = 7 ]\n").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems lack it by themselves")

MISSING = """
import os, select, signal, socket, sys
for module in ("fcntl", "resource", "pwd", "termios", "pty"):
    try:
        __import__(module)
    except ImportError:
        continue
    sys.exit(f"{module} is there")
for owner, name in ((os, "fork"), (os, "pread"), (os, "geteuid"), (os, "sched_getaffinity"), (signal, "SIGHUP"),
                    (socket, "AF_UNIX"), (select, "poll")):
    if hasattr(owner, name):
        sys.exit(f"{name} is there")
from cntkpy.cntk_config.base.systems import cores, files, locks, memory, sockets, users
held = os.open("held", os.O_RDWR | os.O_CREAT)
other = os.open("held", os.O_RDWR)
assert locks.lock(held) is True and locks.lock(other) is False and not locks.CAN_BE_PASSED_ON
os.write(other, b"is written to all the same")
try:
    os.replace("held", "elsewhere")
except PermissionError:
    pass
else:
    sys.exit("a file that is open was replaced")
os.close(other)
from pathlib import Path
locks.remove_locked(held, Path("held"))
assert not Path("held").exists()
assert files.HAS_DRIVES and not files.can_read_at() and users.own_number() is None and not sockets.have_paths()
assert sockets.machine() is None and memory.of_process() is None and memory.peak_of_process() is None
assert cores.count() == os.cpu_count()
"""


def test_what_windows_lacks_is_missing(tmp_path: Path) -> None:
    """The other tests can fail."""
    done = like_windows(tmp_path, "-c", MISSING)
    assert done.returncode == 0, done.stderr.decode()


def test_check_and_show(folder: Path) -> None:
    (folder / "日本.cntk").write_text("command = a\na = [ action = edit ; editPath = 日本.mel ]\n", encoding="utf-8")
    assert tool(folder, "check", "m.cntk").strip()
    assert r"editPath=\u65e5\u672c.mel" in tool(folder, "show", "日本.cntk")
    done = like_windows(folder, "-m", "cntkpy", "check", "日本.cntk")
    assert done.returncode == 2 and rb"cannot read '\u65e5\u672c.mel'" in done.stdout


@pytest.mark.thorough
def test_every_module_is_imported(tmp_path: Path) -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((ROOT / "cntkpy").rglob("*.py"))
        if path.name != "__main__.py" and "compat/cntk" not in path.as_posix()
    ]
    program = (
        f"import importlib\nfor name in {names!r}: importlib.import_module(name)\nimport cntkpy.compat\nprint('all')"
    )
    done = like_windows(tmp_path, "-W", "ignore", "-c", program)
    assert done.stdout.strip() == b"all", done.stderr.decode()


@pytest.mark.thorough
def test_a_training_is_resumed_and_its_model_is_tested_and_edited(folder: Path) -> None:
    """Its log, events, lock, models and checkpoints are replaced while nobody has them open."""
    words = ("configFile=m.cntk", "command=train:test", "stderr=out/log", "logFormat=json", "modelPath=out/m")
    tool(folder, *words, "train=[SGD=[maxEpochs=1]]")
    tool(folder, *words, "train=[SGD=[maxEpochs=3]]")
    assert "COMPLETED" in (folder / "out/log").read_text(encoding="utf-8")
    names = {path.name for path in (folder / "out").iterdir()}
    assert {"m", "m.ckp", "log", "log.jsonl"} <= names and not any(name.endswith((".tmp", ".lock")) for name in names)
    epochs = [json.loads(line) for line in (folder / "out/log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {one["epoch"] for one in epochs if one["event"] == "epoch finished"} == {1, 2, 3}
    assert "completed" in tool(folder, "runs", "out")
    tool(folder, "report", "out", "-o", "report.html")
    assert (folder / "report.html").stat().st_size > 1000
    assert "x: dense, 2, float64" in tool(folder, "preview", "m.cntk")


@pytest.mark.thorough
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_sweep(jobs: str, folder: Path) -> None:
    printed = tool(folder, "sweep", "--jobs", jobs, "m.cntk", "train/SGD/learningRatesPerSample=0.01,0.05")
    assert "2 trials" in printed and "best: trial" in printed


@pytest.mark.thorough
def test_workers(folder: Path) -> None:
    tool(
        folder, "run", "--workers", "2", "configFile=m.cntk", "parallelTrain=true", "stderr=out/log", "modelPath=out/m"
    )
    assert "COMPLETED" in (folder / "out/log").read_text(encoding="utf-8")
    assert (folder / "out/m").is_file()


# ---- paths with drives and backslashes, where the program splits texts

WINDOWS_PATHS = (r"C:\data\train.x", r"\\server\share\train.x", "D:/data/train.x")


@pytest.mark.parametrize("path", WINDOWS_PATHS)
def test_windows_paths_in_configurations(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PureWindowsPath(path).is_absolute() and not is_url(path)
    assert str(load([f'file="{path}"'])("file")) == path
    read: list[str] = []
    monkeypatch.setattr(Loader, "file", lambda self, name, span: read.append(name) or [])
    load([f"configFile={path}+{path}2"])
    assert read == [path, f"{path}2"]


@pytest.mark.parametrize("path", WINDOWS_PATHS)
def test_windows_paths_of_tables_of_kaldi(path: str) -> None:
    found = parse_read_specifier(f"ark:{path}", "x")
    assert (found.place.path, found.place.offset) == (path, 0)
    assert parse_read_specifier(f"scp,p:{path}", "x").place.path == path
    place = parse_place(f"{path}:1234[0:9]", "x", ranges=True)
    assert (place.path, place.offset, place.rows) == (path, 1234, (0, 9))


@pytest.mark.parametrize("path", WINDOWS_PATHS)
def test_windows_paths_in_scripts_of_htk(path: str, tmp_path: Path) -> None:
    script = tmp_path / "a.scp"
    script.write_text(f"{path}\nname.lab={path}[3,7]\n", encoding="utf-8")
    found = read_script([str(script)])
    assert found.keys == [path.removesuffix(".x"), "name"] and found.files == [path]
    assert (found.first.tolist(), found.last.tolist()) == ([0, 3], [UNKNOWN, 7])

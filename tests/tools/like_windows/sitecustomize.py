"""Takes away what Windows lacks, in every Python that has this folder in PYTHONPATH: the tool and what it starts.

What cannot be taken away without breaking Python's own library on Linux stays: paths are those of Linux, and
`sys.platform` is "win32" for `cntkpy.cntk_config.base.systems` only, the one package that asks. `msvcrt` is imitated
with the locks of ranges that Linux has. Files that a process has open can be neither replaced nor removed by it.
"""

# Python's own modules, and those of others, which look at the system while they are imported
import asyncio  # noqa: F401
import errno
import fcntl
import importlib.abc
import importlib.machinery
import multiprocessing
import multiprocessing.pool
import os
import pathlib  # noqa: F401
import select
import signal
import socket
import struct
import sys
import types


def names(text: str) -> list[str]:
    """Words of a text."""
    return text.split()


PRETENDED = "win32"
MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
MISSING = {
    os: names("""
        fork forkpty geteuid getuid getegid getgid getgroups getloadavg getpgid getsid killpg memfd_create mkfifo
        mknod nice openpty posix_fadvise posix_fallocate pread preadv preadv2 pwrite pwritev sched_getaffinity
        sched_setaffinity setsid statvfs sysconf O_NONBLOCK O_CLOEXEC O_NOFOLLOW O_DIRECTORY O_SYNC
    """),
    select: ("poll", "epoll"),
    signal: names("""
        SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 alarm pause
        pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigwait
    """),
    socket: ("AF_UNIX", "MSG_CMSG_CLOEXEC", "SO_PEERCRED", "recv_fds", "send_fds"),
}
ILLEGAL = frozenset('<>:"|?*')
LOCK_NB = 2


def _locking(descriptor: int, mode: int, count: int) -> None:
    """`msvcrt.locking`: others that lock the range from the position on get an error; a read-only file shares it."""
    assert mode == LOCK_NB
    reads = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    kind = fcntl.F_RDLCK if reads else fcntl.F_WRLCK
    at = os.lseek(descriptor, 0, os.SEEK_CUR)
    wanted = struct.pack("hhqqi4x", kind, os.SEEK_SET, at, count, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


def _socketpair(
    family: int = -1, kind: int = socket.SOCK_STREAM, proto: int = 0
) -> tuple[socket.socket, socket.socket]:
    """That of Windows is made of sockets of the network; nobody can tell."""
    import _socket

    ends = _socket.socketpair(1, kind, proto)
    return tuple(socket.socket(fileno=end.detach()) for end in ends)  # type: ignore[return-value]


def _is_open(path: object) -> bool:
    """Whether this process has a file open or mapped."""
    real = os.path.realpath(os.fspath(path))  # type: ignore[call-overload]
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}") == real:
                return True
        except OSError:
            pass
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        return any(line.rstrip("\n").endswith(real) for line in file)


def _refusing(function, places: int):
    """A function that removes or replaces files, of which Windows refuses those that are open."""

    def refuse(*paths, **more):
        ours = sys._getframe(1).f_globals.get("__name__", "") not in ("tempfile",)
        if ours and not more.get("dir_fd"):
            for path in paths[:places]:
                if not isinstance(path, int) and _is_open(path):
                    raise PermissionError(errno.EACCES, "The process cannot access the file", os.fspath(path))
        return function(*paths, **more)

    return refuse


def _opening(function):
    """`os.open` of Windows: no folders, and no names with characters that paths have no place for."""

    def open_(path, flags, *rest, **more):
        if isinstance(path, (str, os.PathLike)):
            if flags & os.O_CREAT and set(os.path.basename(os.fspath(path))) & ILLEGAL:
                raise OSError(errno.EINVAL, "Invalid argument", os.fspath(path))
            if flags & os.O_EXCL and os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "File exists", os.fspath(path))
            if (
                os.path.isdir(path)
                and not more.get("dir_fd")
                and sys._getframe(1).f_globals.get("__name__") != "shutil"
            ):
                raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return function(path, flags, *rest, **more)

    return open_


def _mkdir(function):
    def mkdir(path, *rest, **more):
        if set(os.path.basename(os.fspath(path))) & ILLEGAL:
            raise OSError(errno.EINVAL, "The filename, directory name, or volume label syntax is incorrect")
        return function(path, *rest, **more)

    return mkdir


class _System(types.ModuleType):
    """`sys` with another platform."""

    platform = PRETENDED

    def __getattr__(self, name):
        return getattr(sys, name)


class _Pretending(importlib.abc.Loader):
    """Runs a module of `cntkpy.cntk_config.base.systems`, for which the system has another name."""

    def __init__(self, inner: importlib.machinery.SourceFileLoader) -> None:
        self._inner = inner

    def create_module(self, spec):
        return self._inner.create_module(spec)

    def exec_module(self, module):
        before, sys.platform = sys.platform, PRETENDED
        try:
            self._inner.exec_module(module)
        finally:
            sys.platform = before
        if "sys" in vars(module):
            module.sys = _System("sys")

    def __getattr__(self, name):
        return getattr(self._inner, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if not name.startswith("cntkpy.cntk_config.base.systems."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Pretending(spec.loader)
        return spec


multiprocessing.set_start_method("spawn")
multiprocessing.util.abstract_sockets_supported = False
for name in MODULES:
    sys.modules[name] = None
for module, missing in MISSING.items():
    for name in missing:
        if hasattr(module, name):
            delattr(module, name)
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK, msvcrt.locking = LOCK_NB, _locking
sys.modules["msvcrt"] = msvcrt
socket.socketpair = _socketpair
os.replace, os.rename = _refusing(os.replace, 2), _refusing(os.rename, 2)
os.unlink = os.remove = _refusing(os.unlink, 1)
os.open, os.mkdir = _opening(os.open), _mkdir(os.mkdir)
sys.meta_path.insert(0, _Finder())

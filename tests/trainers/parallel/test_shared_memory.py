"""Sums through memory that the processes of a machine share, and the calls of compiled programs that make them."""

import contextlib
import gc
import os
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meeting import Store, of_each

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.systems import sockets
from cntkpy.trainers.parallel import host_call, shared_memory
from cntkpy.trainers.parallel.communicator import Communicator, WorkerLost
from cntkpy.trainers.parallel.launchers import COORDINATOR, RANK, SIZE
from cntkpy.trainers.parallel.shared_memory import SharedSums, connect
from cntkpy.trainers.parallel.shared_messages import MAX_MESSAGE_BYTES
from cntkpy.trainers.parallel.signals import Gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is shared on Linux only")


def arrays(rank: int) -> list[np.ndarray]:
    """What a worker gives: sizes around that of a block, two types, nothing."""
    numbers = np.random.default_rng(rank)
    sizes = [0, 1, 255, 256, 257, 1000, 3]
    return [numbers.normal(size=n).astype(np.float32) for n in sizes] + [numbers.integers(99, size=n) for n in sizes]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_sums(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same everywhere, added in order of ranks, block after block."""
    monkeypatch.setattr(shared_memory, "BLOCK_BYTES", 1024)

    def work(connection: Any) -> list[np.ndarray]:
        sums = connect(connection)
        assert sums is not None
        sums.sum(arrays(connection.rank))
        given = arrays(connection.rank)  # the memory is used again
        sums.sum(given)
        return given

    found = of_each(size, work)
    expected = arrays(0)
    for rank in range(1, size):
        for total, more in zip(expected, arrays(rank), strict=True):
            total += more
    for of_one in found:
        for array, total in zip(of_one, expected, strict=True):
            np.testing.assert_array_equal(array, total)


def test_sums_of_arrays_that_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """How they are summed is remembered, of few lists; other arrays in the same memory are other arrays."""
    monkeypatch.setattr(shared_memory, "BLOCK_BYTES", 1024)
    monkeypatch.setattr(shared_memory, "ELEMENTS_PER_ADDITION", 50)
    monkeypatch.setattr(shared_memory, "MAX_PLANS", 2)

    def work(connection: Any) -> list[list[float]]:
        sums = connect(connection)
        assert sums is not None
        found: list[list[float]] = []
        memory = np.zeros(700)
        lists = [[memory], [memory[:300], memory[300:]], [memory[:0], memory.view(np.int64)]]
        for number in [0, 0, 1, 0, 2, 1, 2, 2, 1, 0]:
            memory.view(lists[number][-1].dtype)[:] = np.arange(700) * (connection.rank + 1)
            sums.sum(lists[number])
            assert len(sums._known) <= 2
            found.append(memory.view(lists[number][-1].dtype).tolist())
        return found

    for found in of_each(3, work):
        assert all(one == (np.arange(700) * 6).tolist() for one in found)


def test_sums_of_real_numbers() -> None:
    """What a worker without samples has computed is left out, be it no number."""

    def work(connection: Any) -> list[np.ndarray]:
        sums = connect(connection)
        assert sums is not None
        real = connection.rank != 1
        given = [np.array([real], np.int32), np.full(3, 1.5 if real else np.nan), np.array([real], np.int64)]
        sums.sum_of_real(given)
        return given[1:]

    for found in of_each(3, work):
        assert [one.tolist() for one in found] == [[3.0, 3.0, 3.0], [2]]


def waits(rank: int) -> None:
    """Nothing ends the waiting."""


def test_messages() -> None:
    """They come whole beside sums, each is read before the one after the next is written; long ones do not fit."""

    def work(connection: Any) -> list[bytes]:
        sums = connect(connection)
        assert sums is not None
        long = bytes(MAX_MESSAGE_BYTES + (connection.rank == 1))
        assert sums.messages.exchange(long, waits) is None
        found: list[bytes] = []
        for number in range(5):
            letter = bytes([connection.rank, number]) * (MAX_MESSAGE_BYTES // 2 if number == 3 else number)
            found += sums.messages.exchange(letter, waits) or []
            sums.sum(arrays(connection.rank))
        return found

    one, *others = of_each(3, work)
    sizes = [MAX_MESSAGE_BYTES // 2 if number == 3 else number for number in range(5)]
    assert one == [bytes([rank, number]) * size for number, size in enumerate(sizes) for rank in range(3)]
    assert others == [one, one]


def test_who_waits_for_a_letter_looks_up() -> None:
    """Time and again it is asked whether there is sense in waiting on, and it is told that the other has ended."""
    ends = threading.Event()

    def work(connection: Any) -> Any:
        sums = connect(connection)
        assert sums is not None
        if connection.rank == 1:
            assert ends.wait(60)
            return None
        asked: list[int] = []

        def still(rank: int) -> None:
            asked.append(rank)
            if len(asked) == 3:
                ends.set()
            if len(asked) > 60:
                raise TimeoutError

        sums.messages._signals.exchange = partial(sums.messages._signals.exchange, every=0.01)
        try:
            return sums.messages.exchange(b"", still)
        except Gone:
            return asked[:3]

    assert of_each(2, work) == [[1, 1, 1], None]


def test_messages_of_a_communicator() -> None:
    """Values go through memory where they fit, else as before; a worker that is lost is named."""
    store = Store()

    def work(connection: Any) -> Any:
        sums = connect(connection)
        assert sums is not None
        own = Communicator(connection.rank, 2)
        own._client = own.watch._client = store
        own.use(sums.messages)
        found = [own.exchange({"rank": own.rank}), own.send(bytes([own.rank]))]
        assert not store.values
        long = own.exchange("x" * (MAX_MESSAGE_BYTES + own.rank))
        own.watch.lost = "worker 1 is gone"
        try:
            if own.rank == 0:
                own.barrier()
        except WorkerLost as error:
            found.append(str(error))
        return [*found, [len(one) - MAX_MESSAGE_BYTES for one in long]]

    one, other = of_each(2, work)
    told = [[{"rank": 0}, {"rank": 1}], [b"\0", b"\1"]]
    assert one == [*told, "worker 1 is gone", [0, 1]]
    assert other == [*told, [0, 1]]


@pytest.mark.parametrize("waits", [False, True])
def test_a_worker_that_ends(waits: bool) -> None:
    """The others do not wait for it, nor for each other: worker 2 may wait for worker 0 when that finds out."""
    ended = threading.Event()

    def work(connection: Any) -> None:
        sums = connect(connection)
        assert sums is not None
        signals = sums._signals._peers
        for one in signals.values():
            one.settimeout(60)
        if connection.rank == 1:
            if waits:
                signals[2].recv(1)
            for one in signals.values():
                one.shutdown(socket.SHUT_RDWR)
            ended.set()
            return
        if waits and connection.rank == 0:
            ended.wait(60)
        sums.sum([np.zeros(4)])

    found = of_each(3, work)
    assert found[1] is None
    for one in (found[0], found[2]):
        assert isinstance(one, Gone)
        assert "timed out" not in str(one)


@pytest.mark.thorough
@pytest.mark.parametrize("why", ["machine", "memory", "folder"])
def test_where_memory_cannot_be_shared(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the workers has it then, and nothing is left open."""
    if why == "machine":
        number = iter(range(9))
        monkeypatch.setattr(sockets, "machine", lambda: ["boot", next(number)])
    elif why == "memory":
        monkeypatch.setattr(os, "posix_fallocate", fails)
    else:
        monkeypatch.setattr(shared_memory, "socket_folder", lambda: None)
    before, start = descriptors(), time.perf_counter()
    assert of_each(2, connect) == [None, None]
    assert time.perf_counter() - start < 10  # nobody waits for what is not handed out
    assert descriptors() == before


@pytest.mark.thorough
@pytest.mark.parametrize("why", ["user", "secret", "queue"])
def test_what_goes_wrong_while_it_is_handed_out_ends_the_run(
    why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing that strangers do leads to another way to sum, at which all of the machine can connect."""
    monkeypatch.setattr(shared_memory, "CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(shared_memory, "socket_folder", lambda: tmp_path)
    if why == "user":
        monkeypatch.setattr(sockets, "check_user", fails)
    elif why == "secret":
        monkeypatch.setattr(shared_memory, "_answer", lambda secret, nonce, rank: bytes(36))
    else:
        monkeypatch.setattr(sockets, "connect", fails)
    before = descriptors()
    found = of_each(2, connect)
    assert [type(one) for one in found] == [UserError, UserError]
    assert str(found[0]) == str(found[1]) and found[0].kind == "NoCoordinator"
    assert "the workers cannot share memory (worker " in str(found[0])
    del found
    assert descriptors() == before and list(tmp_path.iterdir()) == []


def test_the_socket_lies_where_only_the_user_can_open_it() -> None:
    """No name that others can connect to; its folder is closed to them, and it is gone afterwards."""
    seen: list[tuple[str, int]] = []
    listen = sockets.listen

    def listens(name: bytes, count: int) -> socket.socket:
        found = listen(name, count)
        seen.append((os.fsdecode(name), Path(os.fsdecode(name)).parent.stat().st_mode & 0o777))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sockets, "listen", listens)
        assert all(isinstance(one, SharedSums) for one in of_each(2, connect))
    ((name, mode),) = seen
    assert name.startswith("/") and mode == 0o700 and not Path(name).exists()


def meet(strangers: list[Any], size: int = 2) -> list[SharedSums]:
    """Worker 0 hands out memory; strangers, which get its name, come before worker 1 does."""
    secret, came = b"secret", list[SharedSums]()
    offer = shared_memory._Offer.make(size)
    assert offer is not None
    name = str(offer.path)
    with contextlib.closing(offer):
        main = threading.Thread(target=lambda: came.append(shared_memory._hand_out(offer, secret, size)))
        main.start()
        for stranger in strangers:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as at:
                at.settimeout(60)
                at.connect(name)
                with contextlib.suppress(ConnectionError):  # refused while it still speaks
                    stranger(at, secret)
                    assert not at.recv(99), "it was given something"
        came.append(shared_memory._take(name, secret, 1, size))
        main.join()
    return came


def says_nothing(at: socket.socket, secret: bytes) -> None:
    at.recv(shared_memory.NONCE_BYTES)
    at.shutdown(socket.SHUT_WR)


def sends_garbage(at: socket.socket, secret: bytes) -> None:
    at.recv(shared_memory.NONCE_BYTES)
    at.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n")


def knows_no_secret(at: socket.socket, secret: bytes) -> None:
    at.sendall(shared_memory._answer(b"guess", at.recv(shared_memory.NONCE_BYTES), 1))


def replays(at: socket.socket, secret: bytes) -> None:
    """What a worker has answered to another question."""
    at.recv(shared_memory.NONCE_BYTES)
    at.sendall(shared_memory._answer(secret, bytes(shared_memory.NONCE_BYTES), 1))


def is_no_worker(at: socket.socket, secret: bytes) -> None:
    at.sendall(shared_memory._answer(secret, at.recv(shared_memory.NONCE_BYTES), 0))


def waits_long(at: socket.socket, secret: bytes) -> None:
    at.recv(shared_memory.NONCE_BYTES)


@pytest.mark.parametrize(
    "stranger, why",
    [
        (waits_long, "it does not answer"),
        (says_nothing, "it has sent too few bytes"),
        (sends_garbage, "it does not know the secret of the run"),
        (knows_no_secret, "it does not know the secret of the run"),
        (replays, "it does not know the secret of the run"),
        (is_no_worker, "it says that it is worker 0, which is here already"),
    ],
)
def test_a_stranger_is_refused(
    stranger: Any, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The workers meet all the same, and the log has a warning."""
    if stranger is waits_long:
        monkeypatch.setattr(shared_memory, "HANDSHAKE_SECONDS", 0.1)
    with caplog.at_level("WARNING", "cntkpy.trainers"):
        sums = meet([stranger, stranger])
    told = [record.getMessage() for record in caplog.records]
    assert (
        told
        == [
            "WARNING: a process that is not a worker of this run has connected to it and was refused: "
            f"{why}. The run continues."
        ]
        * 2
    )
    check_sums(sums)


def test_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is even sent to it."""
    own, check, first = os.getuid(), sockets.check_user, [True]

    def checks(other: socket.socket) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if first and first.pop():
                patch.setattr(os, "getuid", lambda: own + 1)
            check(other)

    monkeypatch.setattr(sockets, "check_user", checks)

    def knows_all(at: socket.socket, secret: bytes) -> None:
        assert not at.recv(shared_memory.NONCE_BYTES)

    with caplog.at_level("WARNING", "cntkpy.trainers"):
        sums = meet([knows_all])
    assert f"refused: it is a process of the user with the number {own}. The run continues" in caplog.text
    check_sums(sums)


def check_sums(sums: list[SharedSums]) -> None:
    """Workers in two threads have the sum of what both give."""
    found = [np.arange(3.0) for _ in sums]
    threads = [threading.Thread(target=one.sum, args=([array],)) for one, array in zip(sums, found, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [array.tolist() for array in found] == [[0.0, 2.0, 4.0]] * 2


def descriptors() -> int:
    """How many this process has."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def fails(*given: Any) -> None:
    raise OSError("no memory")


@pytest.mark.thorough
def test_nothing_is_left_open() -> None:
    """With the last user, descriptors are closed; there never was a file."""
    before = descriptors()

    def work(connection: Any) -> None:
        sums = connect(connection)
        assert isinstance(sums, SharedSums)

    assert of_each(2, work) == [None, None]
    assert descriptors() == before


def test_calls_of_a_program() -> None:
    """A registered function changes arrays in place, in a loop too; what it raises is the error of the program."""
    import jax

    seen: list[list[np.dtype]] = []

    def doubles(views: list[np.ndarray]) -> None:
        seen.append([view.dtype for view in views])
        for view in views:
            view *= 2
        if len(seen) > 3:
            raise ValueError("that was enough")

    host_call.register("cntkpy_test_doubles", doubles)
    given = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.int32(7), "empty": np.zeros((0, 2), np.float32)}

    @jax.jit
    def program(tree: Any) -> Any:
        leaves, structure = jax.tree.flatten(tree)
        leaves = jax.lax.fori_loop(0, 3, lambda k, leaves: host_call.call("cntkpy_test_doubles", leaves), leaves)
        return jax.tree.unflatten(structure, leaves)

    found = program(given)
    np.testing.assert_array_equal(found["a"], 8 * given["a"])
    assert found["n"] == 56
    assert seen == [[np.float32, np.float32, np.int32]] * 3
    with pytest.raises(Exception, match="ValueError: that was enough"):
        jax.block_until_ready(program(given))


def test_a_program_with_a_call_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one of the same process takes it, and calls the same function."""
    import jax

    from cntkpy.networks.compile import executables

    monkeypatch.setattr(executables, "cache_folder", lambda: tmp_path)
    traces: list[int] = []
    factors = [2]

    def scale(views: list[np.ndarray]) -> None:
        views[0] *= factors[-1]

    def function(x: Any) -> Any:
        traces.append(1)
        return host_call.call("cntkpy_test_scale", [x])

    host_call.register("cntkpy_test_scale", scale)
    for factor in (2, 3):
        factors.append(factor)
        program = executables.Program(function, "scale", devices=jax.local_devices()[:1])
        np.testing.assert_array_equal(program(np.arange(4.0))[0], factor * np.arange(4.0))
    assert len(traces) == len(list((tmp_path / executables.FOLDER).iterdir())) == 1


UNKNOWN = """
import sys, pathlib
import numpy as np
from cntkpy.networks.compile import executables
from cntkpy.trainers.parallel import host_call
executables.cache_folder = lambda: pathlib.Path(sys.argv[1])
factor = float(sys.argv[2])

def scale(views):
    views[0] *= factor

def function(x):
    print("traced")
    return host_call.call("cntkpy_test_scale", [x])

if factor:
    host_call.register("cntkpy_test_scale", scale)
try:
    print(executables.Program(function, "scale")(np.arange(3.0))[0].tolist())
except Exception as error:
    print("refused:", str(error)[:200])
"""


@pytest.mark.thorough
def test_a_kept_program_in_other_processes(tmp_path: Path) -> None:
    """It calls the function of that process; where there is none of this name, none is called."""
    told: list[str] = []
    for factor in ("2", "3", "0"):
        words = [sys.executable, "-c", UNKNOWN, str(tmp_path), factor]
        told.append(subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout)
    assert told[0].split("\n")[:2] == ["traced", "[0.0, 2.0, 4.0]"]
    assert told[1].split("\n")[:1] == ["[0.0, 3.0, 6.0]"]
    assert "refused: " in told[2]
    assert "cntkpy_test_scale" in told[2]


GROUP = """
import os, sys
import jax, numpy as np
from cntkpy.trainers.parallel.reduction import sums_of
from cntkpy.trainers.parallel.launchers import find_meeting
from cntkpy.trainers.parallel.process_group import process_group_of
from cntkpy.trainers.parallel.rendezvous import join, leave

link = join(find_meeting(os.environ), print)
group = process_group_of(link, jax.local_devices())
sums = sums_of(group)
print("shares", group.sums)
own = np.full(3, [1.5, 2.25][link.rank], np.float32)
print("sum", jax.jit(sums.summed)(own).tolist())
rows = np.array([[7, 2], [2, 9]], np.int32)[link.rank]
print("gathered", [part.tolist() for part in jax.jit(sums.gathered)((rows, own.reshape(1, 3)))])
for shape, axis in (((2, 1, 3), 1), ((1, 2), 0), ((2, 0), 1), ((1, 700_000), 0)):
    part = np.full(shape, link.rank - 0.0)
    whole = group.gather(group.on_all(part, axis), axis)
    assert (whole == np.concatenate([np.zeros(shape), np.ones(shape)], axis)).all() and whole.dtype == part.dtype
    assert (group.part(whole, axis) == part).all()
print("whole", group.mesh.size, group.first, jax.process_count())
leave(link)
"""


@pytest.mark.thorough
def test_two_processes(tmp_path: Path) -> None:
    """Processes of a run find the memory that they share."""
    from cntkpy.commands.runner.launch import _free_port

    at = {COORDINATOR: f"127.0.0.1:{_free_port()}", SIZE: "2"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", GROUP], env=os.environ | at | {RANK: str(rank)}, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    try:
        told = [process.communicate(timeout=120)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    for rank, text in enumerate(told):
        assert "shares cntkpy_sums_0" in text
        assert f"whole 1 {rank} 2" in text
        assert "sum [3.75, 3.75, 3.75]" in text
        assert "gathered [[7, 2, 2, 9], [[1.5, 1.5, 1.5], [2.25, 2.25, 2.25]]]" in text

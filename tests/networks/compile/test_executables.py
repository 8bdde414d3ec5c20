"""Programs that are kept: what they are found by, and that nothing goes wrong where they are damaged or missing."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.compile import executables
from cntkpy.networks.compile.executables import FOLDER, Program, Unknown, digest
from cntkpy.networks.graph.network import Network
from cntkpy.networks.nodes import operation
from cntkpy.trainers.rules import updates


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of caches."""
    monkeypatch.setattr(executables, "cache_folder", lambda: tmp_path)
    return tmp_path / FOLDER


class Traced:
    """A function with its number of traces."""

    def __init__(self) -> None:
        self.traces = 0

    def step(self, state: Any, given: Any, power: int) -> Any:
        self.traces += 1
        return (
            {"w": jnp.tanh(state["w"] @ given["x"]) * 0.5, "n": state["n"] + 1},
            [jnp.sum(state["w"]) ** power, None],
        )

    def program(self, identity: Any = "this") -> Program:
        """As a new process would make it."""
        return Program(self.step, identity, donate=1, static=1)


def state() -> dict[str, Any]:
    """What is donated."""
    return {"w": jax.device_put(np.ones((8, 8), np.float32), may_alias=False), "n": jax.device_put(np.int64(0))}


GIVEN = {"x": np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32)}


def values(results: Any) -> list[bytes]:
    """All arrays bit for bit."""
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(results)]


@pytest.mark.optimised
def test_a_kept_program_is_not_traced_again_and_gives_the_same_bits(folder: Path) -> None:
    first, second = Traced(), Traced()
    expected = first.program()(state(), GIVEN, 2)
    assert len(list(folder.iterdir())) == first.traces == 1
    program, before = second.program(), state()
    found = program(before, GIVEN, 2)
    assert second.traces == 0
    assert values(found) == values(expected)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    assert before["w"].is_deleted()  # donated
    again = program(found[0], GIVEN, 2)
    assert int(again[0]["n"]) == 2
    assert program.shapes == 1


def test_a_program_can_be_found_from_shapes_before_its_arguments_take_memory(folder: Path) -> None:
    made = Traced()
    for traces in (1, 1):  # compiled, then read back
        program = made.program()
        shapes = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in state().items()}
        program.find(shapes, GIVEN, 2)
        assert made.traces == traces and program.shapes == 1
        found = values(program(state(), GIVEN, 2))
        assert made.traces == traces and program.shapes == 1
        assert found == values(made.program()(state(), GIVEN, 2))


@pytest.mark.optimised
def test_the_results_are_those_of_jit(folder: Path) -> None:
    traced = Traced()
    expected = jax.jit(traced.step, static_argnums=2)(state(), GIVEN, 3)
    for _ in range(2):
        assert values(traced.program()(state(), GIVEN, 3)) == values(expected)


def test_freed_memory_is_given_back_before_and_after_compiling_and_after_reading(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most memory is in use while a program is compiled."""
    order: list[str] = []
    compiled = executables.compile_lowered

    def compile_it(*arguments: Any) -> Any:
        order.append("compile")
        return compiled(*arguments)

    monkeypatch.setattr(executables, "compile_lowered", compile_it)
    monkeypatch.setattr(executables.memory, "release_freed", lambda: order.append("release"))
    traced = Traced()
    program = traced.program()
    for _ in range(2):
        program(state(), GIVEN, 2)
    assert order == ["release", "compile", "release"]
    traced.program()(state(), GIVEN, 2)
    assert order == ["release", "compile", "release", "release"]


def test_the_log_tells_of_compiling_that_takes_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.3)  # while it is traced
        return {"y": x + 1}

    program = Program(slow, "slow", describe=lambda x: f"training, {len(x)} samples")
    with caplog.at_level("INFO"):
        program(np.zeros(2))
        assert not caplog.messages
        monkeypatch.setattr(executables, "SLOW_COMPILE_SECONDS", 0.02)
        program(np.zeros(3))
    assert caplog.messages == [
        "INFO: Compiling the network for a new shape of minibatches (2 so far): training, 3 samples."
    ]


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"", lambda data: data[:-1] + b"\0"])
def test_a_damaged_program_is_compiled_again(folder: Path, damage: Any, caplog: pytest.LogCaptureFixture) -> None:
    expected = values(Traced().program()(state(), GIVEN, 2))
    (file,) = folder.iterdir()
    good = file.read_bytes()
    file.write_bytes(damage(good[:-1] + b"\1"))
    traced = Traced()
    assert values(traced.program()(state(), GIVEN, 2)) == expected
    assert traced.traces == 1
    traced = Traced()
    traced.program()(state(), GIVEN, 2)
    assert traced.traces == 0
    assert caplog.messages == [f"WARNING: The program kept in {file} is damaged; it is compiled again."]


def test_a_program_for_other_devices_is_not_kept(folder: Path) -> None:
    """What lies elsewhere than the program says is computed as always."""
    (device,) = jax.local_devices()[:1]
    elsewhere = Program(lambda x: {"y": x + 1}, "one", devices=[device, "another one"])
    assert elsewhere(jax.device_put(np.zeros(2), device))["y"].tolist() == [1, 1]
    assert not folder.exists()
    Program(lambda x: {"y": x + 1}, "one", devices=[device])(jax.device_put(np.zeros(2), device))
    assert len(list(folder.iterdir())) == 1


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")  # results of another type cannot lie there
def test_other_shapes_types_settings_and_identities_are_other_programs(folder: Path) -> None:
    traced = Traced()
    program = traced.program()
    program(state(), GIVEN, 2)
    program(state(), GIVEN, 3)
    program(state() | {"n": np.float32(0)}, GIVEN, 2)
    program(state(), {"x": np.ones((8, 3), np.float32)}, 2)
    assert traced.traces == program.shapes == 4
    traced.program("that")(state(), GIVEN, 2)
    assert traced.traces == len(list(folder.iterdir())) == 5


def test_nothing_is_kept_where_others_may_write_or_something_is_unknown(folder: Path) -> None:
    folder.mkdir()
    Traced().program(object())(state(), GIVEN, 2)
    folder.chmod(0o777)
    Traced().program()(state(), GIVEN, 2)
    assert list(folder.iterdir()) == []


def test_nothing_is_read_where_others_may_write(folder: Path) -> None:
    Traced().program()(state(), GIVEN, 2)
    folder.chmod(0o777)
    traced = Traced()
    traced.program()(state(), GIVEN, 2)
    assert traced.traces == 1


def test_the_oldest_programs_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(3):
        Traced().program(index)(state(), GIVEN, 2)
        for file in folder.iterdir():
            os.utime(file, (1000 if index else 500, 1000) if file.stat().st_mtime > 2000 else None)
    newest = max(folder.iterdir(), key=lambda file: file.stat().st_size)
    monkeypatch.setattr(executables, "CACHE_BYTES", newest.stat().st_size + 100)
    Traced().program("last")(state(), GIVEN, 2)
    assert len(list(folder.iterdir())) == 1
    traced = Traced()
    traced.program("last")(state(), GIVEN, 2)
    assert traced.traces == 0


def network(**changes: Any) -> Network:
    """A small network."""
    net = Network("float")
    x = net.add("x", operation("InputValue"), shape=(3,))
    w = net.add("w", operation("LearnableParameter"), shape=(3,), value=np.zeros(3, np.float32))
    w.learning_rate_multiplier = changes.get("multiplier", 1.0)
    c = net.add(
        "c", operation("LearnableParameter"), shape=(1,), value=np.full(1, changes.get("constant", 2), np.float32)
    )
    p = net.add(changes.get("name", "p"), operation(changes.get("kind", "Plus")), [x, w])
    net.add("q", operation("ElementTimes"), [p, c])
    w.value = np.full(3, changes.get("weight", 0), np.float32)
    return net


def test_a_network_counts_with_its_structure_and_constants_but_not_with_its_weights() -> None:
    assert digest(network()) == digest(network(weight=7))
    others = [{"constant": 3}, {"multiplier": 0.5}, {"name": "r"}, {"kind": "Minus"}]
    assert len({digest(network()), *(digest(network(**other)) for other in others)}) == 5


def test_update_rules_count_with_what_they_close_over() -> None:
    rules = [updates.momentum(), updates.nesterov()]
    assert len({digest(rule) for rule in rules}) == 2
    assert digest(updates.momentum()) == digest(updates.momentum())


def test_what_cannot_be_described_has_no_digest() -> None:
    with pytest.raises(Unknown, match=r"builtins\.object cannot be described"):
        digest([object()])

"""Devices are chosen late, and from what is there."""

from types import SimpleNamespace

import pytest

from cntk_config import parse
from cntk_config.diagnostics import ConfigError, UserError
from commands.context import Device, RunContext, Seeds, read_device

CPU = SimpleNamespace(platform="cpu", id=0, device_kind="cpu")
GPUS = [SimpleNamespace(platform="gpu", id=number, device_kind="H200") for number in (0, 1)]


def device(text: str) -> Device:
    return read_device(parse(f"deviceId = {text}\n").find("deviceId"))


def test_choices() -> None:
    assert device("auto").choose([CPU]) == [CPU]
    assert device("AUTO").choose([*GPUS, CPU]) == [GPUS[0]]
    assert device("1").choose([*GPUS, CPU]) == [GPUS[1]]
    assert device("-1").choose([*GPUS, CPU]) == [CPU]
    assert device("CPU").choose([CPU]) == [CPU]
    assert device("all").choose([*GPUS, CPU]) == GPUS
    assert device("all").choose([CPU, CPU]) == [CPU, CPU]
    assert device("*1").choose([*GPUS, CPU]) == [GPUS[0]]
    assert device("*2").choose([*GPUS, CPU]) == GPUS
    assert read_device(None).request == "auto"


def test_a_missing_gpu_lists_what_is_there() -> None:
    with pytest.raises(UserError, match=r"no GPU 3 .* GPU 0 \(H200\), GPU 1") as caught:
        device("3").choose([*GPUS, CPU])
    assert caught.value.exit_code == 1
    assert caught.value.span is not None
    with pytest.raises(UserError, match="only the CPU"):
        device("0").choose([CPU])
    with pytest.raises(UserError, match=r"fewer than 3 devices .* GPU 0 \(H200\), GPU 1"):
        device("*3").choose([*GPUS, CPU])
    with pytest.raises(UserError, match=r"only the CPU \(2 devices\)"):
        device("*3").choose([CPU, CPU])


def test_processes_of_one_machine_see_one_gpu_each() -> None:
    assert device("auto").visible(2) == [2]
    assert device("1").visible(2) == [1]
    assert device("all").visible(2) is None


@pytest.mark.parametrize("text", ["*0", "*", "gpu", "1.5"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="deviceId"):
        device(f'"{text}"')


def test_the_cpu_is_asked_for_before_jax_looks_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    import os

    device("auto").prepare()
    assert "JAX_PLATFORMS" not in os.environ
    device("-1").prepare()
    assert os.environ["JAX_PLATFORMS"] == "cpu"


def test_names() -> None:
    assert [Device.name(d) for d in (None, CPU, GPUS[1])] == ["CPU", "CPU", "GPU 1"]
    assert device("-1").key == device("cpu").key != device("0").key


def test_seeds_go_on_from_command_to_command() -> None:
    source = Seeds()
    first, second = RunContext("a", "train", seed_source=source), RunContext("b", "train", seed_source=source)
    assert [first.seeds.next(), second.seeds.next()] == [1, 2]
    assert [RunContext("a", "train", seed_source=Seeds(constant=True)).seeds.next() for _ in range(2)] == [1, 1]

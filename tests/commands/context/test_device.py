"""Devices are chosen late, from what is there, whatever JAX calls their platform."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.commands.context.device import Device, name_of, names_of
from cntkpy.commands.context.root import RootParameters
from cntkpy.trainers.parallel.process_group import process_group_of

CPU = SimpleNamespace(platform="cpu", id=0, device_kind="cpu", local_hardware_id=None)


def gpu(number: int, platform: str = "gpu", **more: Any) -> SimpleNamespace:
    return SimpleNamespace(
        **{"platform": platform, "id": number, "device_kind": "H200", "local_hardware_id": None, **more}
    )


GPUS = [gpu(0), gpu(1)]


def device(text: str) -> Device:
    return RootParameters(parse(f"deviceId = {text}\n")).device


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
    assert RootParameters(parse("")).device == Device("auto")


@pytest.mark.parametrize("platform", ["gpu", "cuda", "rocm", "tpu", "METAL"])
def test_platforms(platform: str) -> None:
    """A number is the one on this machine: in a run of several processes `id` counts over all of them."""
    own = [gpu(8, platform, local_hardware_id=0), gpu(9, platform, local_hardware_id=1)]
    assert device("1").choose([*own, CPU]) == [own[1]]
    assert device("auto").choose([CPU, *own]) == [own[0]]
    assert device("all").choose(own) == own
    assert names_of(own).endswith(" 0, " + name_of(own[1]))
    assert name_of(own[1]) == {"tpu": "TPU 1", "METAL": "METAL 1"}.get(platform, "GPU 1")


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


def test_what_jax_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """For instance a GPU without a driver, or one that a worker was given and that does not exist."""
    from cntkpy.networks.arrays.lazy import jax

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("Unable to initialize backend 'cuda': no supported devices\nmore")

    monkeypatch.setattr(jax, "local_devices", fails)
    with pytest.raises(UserError, match=r"cannot use its devices: Unable .* no supported devices\n") as caught:
        device("auto").here()
    assert caught.value.span is not None


def test_processes_of_one_machine_see_one_gpu_each() -> None:
    assert device("auto").visible(2) == [2]
    assert device("1").visible(2) == [1]
    assert device("all").visible(2) is None


@pytest.mark.parametrize("text", ["*0", "*", "gpu", "1.5"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="deviceId"):
        _ = device(f'"{text}"').request


def test_the_cpu_is_asked_for_before_jax_looks_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    device("auto").prepare()
    assert "JAX_PLATFORMS" not in os.environ
    device("-1").prepare()
    assert os.environ["JAX_PLATFORMS"] == "cpu"


def test_names() -> None:
    assert [names_of(d) for d in ([CPU], [CPU, CPU], GPUS)] == ["CPU", "2 CPU devices", "GPU 0, GPU 1"]
    assert device("-1").key == device("cpu").key != device("0").key


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([["gpu", 1, "a", 1], ["gpu", 2, "a", 2]], "different numbers of devices: 1, 2"),
        ([["cpu", 1, "a", 0]], "different kinds of devices: gpu, cpu"),
        ([["gpu", 1, "here", 0]], "workers 0 and 1 both compute on GPU 0 of here"),
    ],
)
def test_workers_that_cannot_train_together(monkeypatch: pytest.MonkeyPatch, others: list, message: str) -> None:
    monkeypatch.setattr("platform.node", lambda: "here")
    link: Any = SimpleNamespace(size=2, exchange=lambda value: [value, others])
    with pytest.raises(UserError, match=message):
        process_group_of(link, [gpu(0)])

"""Steps of a block: as many as the memory of the device has room for."""

from types import SimpleNamespace

import pytest

from cntkpy.networks.arrays import step_blocks
from cntkpy.networks.arrays.step_blocks import BLOCK, MEMORY_OF_ELEMENT, steps_of_block


@pytest.mark.parametrize(
    ("platform", "memory", "steps"),
    [
        ("cpu", None, 1000),
        ("gpu", {"bytes_limit": 4 * BLOCK * MEMORY_OF_ELEMENT}, 4000),
        ("gpu", {"bytes_limit": 1}, 1000),
        ("gpu", {}, 1000),
        ("gpu", None, 1000),
    ],
)
def test_large_devices_have_large_blocks(
    platform: str, memory: dict[str, int] | None, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = SimpleNamespace(platform=platform, memory_stats=lambda: memory)
    monkeypatch.setattr(step_blocks, "default_device", lambda: device)
    assert steps_of_block(8000, BLOCK // 1000) == steps

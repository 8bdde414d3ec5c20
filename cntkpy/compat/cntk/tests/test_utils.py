"""cntk.tests.test_utils."""

from __future__ import annotations

import os

from .. import device


def set_device_from_pytest_env() -> None:
    """Compute on the device that the variable TEST_DEVICE names: cpu, gpu, or the number of a GPU; else on any."""
    wanted = os.environ.get("TEST_DEVICE", "")
    if wanted in ("cpu", "-1"):
        device.try_set_default_device(device.cpu())
    elif wanted:
        device.try_set_default_device(device.gpu(0 if wanted == "gpu" else int(wanted)))

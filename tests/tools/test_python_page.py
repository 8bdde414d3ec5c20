"""The reference page of the Python interfaces has every public name, with what it does."""

import importlib
import inspect

import pytest

from tools.docs import python
from tools.public_api import MODULES


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name(module: str) -> None:
    text = python.page()
    section = text[text.index(f"\n## {module}\n") :].split("\n## ")[1]
    found = importlib.import_module(module)
    for name in found.__all__:
        value = getattr(found, name)
        if inspect.ismodule(value):
            assert f"\n### {module}.{name}\n" in section
        elif inspect.isclass(value):
            assert f"\n### {name}\n" in section
        else:
            assert f"| `{name}" in section, name


def test_rows() -> None:
    text = python.page()
    assert "| `parse(text, name='<text>')` | Return the configuration in a text." in text
    assert "| `adam(parameters, lr, momentum=0.9, variance_momentum=0.999, " in text
    assert "object at" not in text and "<object" not in text

"""Small functions that written source has where the framework has no function of that meaning."""

from __future__ import annotations

import re
from collections.abc import Mapping


def with_needs(helpers: Mapping[str, str], names: set[str]) -> list[str]:
    """Return names of helpers in their order, with those that they call."""
    result, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in result:
            result.add(name)
            code = re.sub(r'""".*?"""', "", helpers[name], flags=re.DOTALL)
            waiting += helpers.keys() & set(re.findall(r"(?<![\w.])(\w+)\(", code))
    return [name for name in helpers if name in result]

"""The grammars of the folder `grammar`, with their parsing tables kept in the user's cache folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import grammar
from cntk_config.base.cache_folders import private_folder

if TYPE_CHECKING:
    from lark import Lark


def load(name: str, **options: Any) -> Lark:
    """See `grammar.load`."""
    return grammar.load(name, private_folder(), **options)


def terminal(name: str, term: str) -> re.Pattern[str]:
    """See `grammar.terminal`."""
    return grammar.terminal(name, term, private_folder())

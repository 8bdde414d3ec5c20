"""All operators, under one name."""

from networks.builders.python.composed import *  # noqa: F403
from networks.builders.python.elements import *  # noqa: F403
from networks.builders.python.operators import *  # noqa: F403
from networks.builders.python.reductions import *  # noqa: F403
from networks.builders.python.reshaping import *  # noqa: F403

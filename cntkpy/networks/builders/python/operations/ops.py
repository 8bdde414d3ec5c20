"""All operators, under one name."""

from cntkpy.networks.builders.python.operations.alignments import *  # noqa: F403
from cntkpy.networks.builders.python.operations.composed import *  # noqa: F403
from cntkpy.networks.builders.python.operations.convolutions import *  # noqa: F403
from cntkpy.networks.builders.python.operations.dynamic import *  # noqa: F403
from cntkpy.networks.builders.python.operations.elements import *  # noqa: F403
from cntkpy.networks.builders.python.operations.losses import *  # noqa: F403
from cntkpy.networks.builders.python.operations.operators import *  # noqa: F403
from cntkpy.networks.builders.python.operations.reductions import *  # noqa: F403
from cntkpy.networks.builders.python.operations.reshaping import *  # noqa: F403

"""The strategy of a training: placement of arrays, reduction of gradients, averaging of models.

`cntkpy.trainers.parallel.strategies` has the combinations for several devices.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cntkpy.trainers.step.averaging import Averaging
from cntkpy.trainers.step.placement import OneDevice, Placement
from cntkpy.trainers.step.reduction import Reduction


@dataclass(frozen=True, eq=False)
class Strategy:
    """The joint training of the devices of a run; by default there is one.

    Attributes:
        placement: Lays arrays on devices.
        reduction: Joins gradients and sums of one minibatch.
        averaging: Joins models now and then.
    """

    placement: Placement = field(default_factory=OneDevice)
    reduction: Reduction = field(default_factory=Reduction)
    averaging: Averaging = field(default_factory=Averaging)

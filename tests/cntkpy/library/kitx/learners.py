"""Learners that compute by themselves."""

import cntk as C
import numpy as np
from cntk.learners import UserLearner


class CyclicalLearningRate:
    def __init__(self, trainer, base, top, ramp):
        self.base, self.top, self.ramp, self.count, self.trainer = base, top, ramp, 0, trainer

    def batch_step(self):
        self.count += 1
        phase = abs((self.count / self.ramp) % 2 - 1)
        rate = self.base + (self.top - self.base) * (1 - phase)
        for learner in self.trainer.parameter_learners:
            learner.reset_learning_rate(C.learning_parameter_schedule(rate))
        return rate


class SignSGD(UserLearner):
    def __init__(self, parameters, lr):
        super().__init__(parameters, lr)

    def update(self, gradients, sample_count, sweep_end):
        rate = self.learning_rate()
        for parameter, gradient in gradients.items():
            parameter.value = parameter.value - rate * np.sign(gradient)
        return True


class Momentum(UserLearner):
    """As CNTK's manual has it: a function that assigns."""

    def __init__(self, parameters, lr, momentum=0.5):
        super().__init__(parameters, C.learning_parameter_schedule(lr), as_numpy=False)
        self.state = {p: C.constant(np.zeros(p.shape, np.float32)) for p in parameters}
        self.gradient = {p: C.constant(0, shape=p.shape, name="g") for p in parameters}
        self.step = {p: self._step(p, self.gradient[p], self.state[p], lr, momentum) for p in parameters}

    @staticmethod
    def _step(p, g, v, lr, momentum):
        update = C.assign(v, momentum * v + g)
        return C.assign(p, p - lr * update)

    def update(self, gradients, sample_count, sweep_end):
        for p, g in gradients.items():
            self.gradient[p].value = g
            self.step[p].eval()
        return True


def adam_like(parameters, lr):
    def update(parameters, gradients):
        updates = []
        for p, g in zip(parameters, gradients):
            m = C.constant(value=0, shape=p.shape, dtype=p.dtype, name="m")
            updates.append(C.assign(p, p - lr * C.assign(m, 0.9 * m + 0.1 * g)))
        return C.combine(updates)

    return C.universal(update, parameters)

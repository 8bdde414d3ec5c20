"""A training whose parameters lie in a vector has and saves what one has whose parameters are arrays of their own."""

from typing import Any

import numpy as np
import pytest
from batching_cases import case

from cntkpy.cntk_config import parse
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.compile import flat
from cntkpy.networks.compile.evaluate import Settings
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.trainers.rules.standard import adam
from cntkpy.trainers.rules.update_step import Regularisation
from cntkpy.trainers.rules.updates import adagrad, fsadagrad, momentum, rmsprop
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

NDL = """NDLNetworkBuilder=[run=n
n=[
x=Input(3)
y=Input(1)
past=PastValue(3, h, timeStep=1)
i=Sigmoid(Plus(Plus(Times(Parameter(3, 3), x), Times(Parameter(3, 3), past)), Parameter(3, 1)))
a=Tanh(Plus(Plus(Times(Parameter(3, 3), x), Times(Parameter(3, 3), past)), Parameter(3, 1)))
h=ElementTimes(i, a)
cost=SquareError(y, Times(Parameter(1, 3), h))
FeatureNodes=(x)
LabelNodes=(y)
CriterionNodes=(cost)
]]"""


class Training:
    """A training of a small recurrent network."""

    def __init__(self, **more: Any) -> None:
        network = build_network(parse(NDL), "double", SeedCounter())
        self.step = CompiledStep(network, [network["cost"]], more.pop("rule", momentum()), **more)

    def go_on(self, count: int = 2) -> None:
        minibatch = case([3, 2]).minibatch
        x = minibatch.streams["x"]
        minibatch.streams["y"], minibatch.layouts["y"] = np.ones((*x.shape[:2], 1)), minibatch.layouts["x"]
        for _ in range(count):
            stacks = self.step.batcher(8).stacks(iter([minibatch]), lambda number: False)
            for stack in stacks:
                self.step.run(stack, EpochSettings(0.1, 0.9, Settings(), 1), 0)

    def vectors(self) -> list[str]:
        """The names of the arrays of the compiled step that are vectors."""
        return [name for name in self.step._state.weights if "\n" in name]  # pyright: ignore[reportPrivateUsage]

    def shown(self) -> dict[str, Any]:
        """What a model and a checkpoint would have."""
        updates = {f"{name} {key}": a for name, u in self.step.updates().items() for key, a in u.items()}
        weights = {node.name: node.value for node in self.step.trained_network().parameters()}
        return {name: np.array(value) for name, value in (updates | weights).items()}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert list(one) == list(other)
    for name, value in one.items():
        np.testing.assert_allclose(other[name], value, rtol=1e-12, atol=1e-15, err_msg=name)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"rule": adagrad(False), "regularisation": Regularisation(clipping=0.01, l2=0.1, l1=0.01)},
    {"regularisation": Regularisation(l2=0.1, unregularised=frozenset(["a.b"]))},
    {"rule": fsadagrad(100.0, 1.0)},
    {"rule": adam(0.9, 1e-8)},
    {"rule": rmsprop(False, 0.9, 1.2, 0.75, 10.0, 0.1)},
]


@pytest.mark.thorough
@pytest.mark.parametrize("options", OPTIONS)
def test_training_changes_and_saves_the_same(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    together = Training(**options)
    (vector,) = together.step._arrays.vectors  # pyright: ignore[reportPrivateUsage]
    assert together.vectors() == [vector.key]
    assert sorted(len(matrix.names) for matrix in vector.matrices) == [1, 2, 2, 2], "two gates have W, R and b each"
    monkeypatch.setattr(flat, "MOST_ELEMENTS", 0)
    alone = Training(**options)
    assert not alone.vectors()
    for _ in range(2):
        together.go_on()
        alone.go_on()
        same(alone.step.snapshot(), together.step.snapshot())
        same(alone.shown(), together.shown())


def test_a_snapshot_is_restored() -> None:
    training = Training()
    training.go_on()
    kept = {name: np.array(value) for name, value in training.step.snapshot().items()}
    training.go_on()
    after = training.shown()
    training.step.restore(dict(kept))
    same(kept, training.step.snapshot())
    training.go_on()
    same(after, training.shown())


def test_the_state_of_an_update_rule_is_taken_over_by_name() -> None:
    training, other = Training(), Training()
    training.go_on()
    updates = {name: {"v": np.array(u["v"]), "more": np.ones(1)} for name, u in training.step.updates().items()}
    expected = training.shown()
    del updates[sorted(updates)[0]]
    fresh = next(name for name in training.step.updates() if name not in updates)
    assert other.step.begin(training.step.trained_values(), updates) == [] and not updates
    found = other.step.updates()
    assert not found[fresh]["v"].any() and all("more" in u for name, u in found.items() if name != fresh)
    for name, u in found.items():
        if name != fresh:
            np.testing.assert_array_equal(u["v"], expected[name + " v"])


def test_values_set_while_training_are_taken() -> None:
    training = Training()
    training.go_on()
    node = training.step.network.parameters()[0]
    before, values = training.shown(), training.step.trained_values()
    values[node.name] = np.full(values[node.name].shape, 0.5)
    training.step.reload(values)
    assert not values
    after = training.shown()
    assert (after[node.name] == 0.5).all()
    same({k: v for k, v in before.items() if k != node.name}, {k: v for k, v in after.items() if k != node.name})


def test_parameters_whose_elements_depend_on_each_other_stay_alone() -> None:
    assert not Training(rule=rmsprop(True, 0.9, 1.2, 0.75, 10.0, 0.1)).vectors()
    assert not Training(regularisation=Regularisation(noise=0.1)).vectors()
    assert not Training(regularisation=Regularisation(clipping=1.0, clip_elements=False)).vectors()


def test_parameters_with_numbers_of_their_own_stay_alone() -> None:
    """A checkpoint has nothing of one parameter: the sum of samples that the rule keeps of it begins at 0.

    Of t minibatches of n samples it is n (1 - exp(-t n / N)): here n = 6, two sequences on three time steps.
    """
    training, resumed = Training(rule=fsadagrad(100.0, 1.0)), Training(rule=fsadagrad(100.0, 1.0))
    training.go_on()
    updates = {name: {key: np.array(a) for key, a in u.items()} for name, u in training.step.updates().items()}
    fresh = sorted(updates)[0]
    del updates[fresh]
    values = {name: np.array(value) for name, value in training.step.trained_values().items()}
    assert training.vectors() and resumed.step.begin(values, updates) == [] and not resumed.vectors()
    resumed.go_on()
    sums = {name: float(u["c"]) for name, u in resumed.step.updates().items()}
    np.testing.assert_allclose(sums.pop(fresh), 6 * (1 - np.exp(-0.12)), rtol=1e-12)
    np.testing.assert_allclose(list(sums.values()), 6 * (1 - np.exp(-0.24)), rtol=1e-12)

"""Memory of training a very wide sparse input: parameters and momentum once each, saving and loading included."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CODE = """
import numpy as np, sys
from scipy.sparse import csr_matrix
from cntkpy.cntk_config import parse
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.compile.evaluate import Settings, start_values
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.files.model_file import load_model, save_model
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.checkpoints.checkpoint import EPOCH, Checkpoint
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep
from cntkpy.trainers.rules.updates import momentum

folder, width = sys.argv[1], 400_000
VALUES = {"samples_seen": 1, "rate": None, "reference": 1.0, "minibatch_size": 1, "reader": {}, "schedule": {}}

def megabytes(key):
    return next(int(l.split()[1]) / 1024 for l in open("/proc/self/status") if l.startswith(key))

def network(width):
    text = f'''run=n
    n=[
    x=SparseInput({width})
    y=Input(10)
    A=Parameter(32,{width})
    B=Parameter(32,{width})
    C=Parameter(32,{width})
    D=Parameter(32,{width})
    h=RowStack(Times(A,x),Times(B,x),Times(C,x),Times(D,x))
    z=Times(Parameter(10,128),Sigmoid(h))
    ce=CrossEntropyWithSoftmax(y,z)
    FeatureNodes=(x)
    LabelNodes=(y)
    CriterionNodes=(ce)
    ]'''
    open(folder + "/n.ndl", "w").write(text)
    config = parse(f'NDLNetworkBuilder=[networkDescription="{folder}/n.ndl"]')
    return build_network(config, "float", SeedCounter())

def step(net):
    values = start_values(net)
    for node in net.parameters():
        node.value = None
    return CompiledStep(net, [net["ce"]], momentum(), values=values)

def train(width, folder):
    net = network(width)
    trainer = step(net)
    layout = Layout(1, 64, np.array([[i, i, 0, 1] for i in range(64)]))
    random = np.random.default_rng(0)
    x = csr_matrix((np.ones(320, np.float32), random.integers(0, width, 320), np.arange(65) * 5), (64, width))
    minibatch = Minibatch({"x": x, "y": np.eye(10, dtype=np.float32)[random.integers(0, 10, 64)][None]},
                          {"x": layout, "y": layout})
    (group,) = trainer.batcher(64).stacks(iter([minibatch]), lambda number: False)
    for _ in range(2):
        np.asarray(trainer.run(group, EpochSettings(0.01, 0.9, Settings(), 1), 0))
        Checkpoint(EPOCH, VALUES, Checkpoint.update_paths(trainer.updates())).save(folder + "/m.ckp")
        save_model(folder + "/m", trainer.trained_network())

train(100, folder)  # everything is imported
before = megabytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
train(width, folder)
print((megabytes("VmHWM") - before) / (width * 128 * 4 / 2**20))
open("/proc/self/clear_refs", "w").write("5")
before = megabytes("VmRSS")
net = load_model(folder + "/m")
print((megabytes("VmHWM") - before) / (width * 128 * 4 / 2**20))
trainer = step(net)  # a resumed run
trainer.drop_updates()
trainer.reload_updates(Checkpoint.load(folder + "/m.ckp").updates)
print((megabytes("VmHWM") - before) / (width * 128 * 4 / 2**20))
"""


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads /proc")
def test_peak_is_below_two_and_a_half_times_the_parameters(tmp_path):
    done = subprocess.run([sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True, check=True)
    training, loading, resuming = map(float, done.stdout.split())
    assert training < 2.5
    assert loading < 1.5
    assert resuming < 2.4, done.stdout


@pytest.mark.optimised
def test_values_of_nodes_are_start_values():
    """Training changes neither the values of nodes nor what was fetched before."""
    import numpy as np

    from cntkpy.networks import nodes
    from cntkpy.networks.compile.evaluate import Settings
    from cntkpy.networks.graph.initialize import SeedCounter
    from cntkpy.networks.graph.network import Network
    from cntkpy.readers.minibatch import Layout, Minibatch
    from cntkpy.trainers.rules.updates import momentum
    from cntkpy.trainers.step.state import EpochSettings
    from cntkpy.trainers.step.step import CompiledStep

    network = Network("float")
    x = nodes.create(network, "InputValue", "x", (), {"dims": (2,)})
    w = nodes.create(network, "LearnableParameter", "w", (), {"dims": (1, 2), "init": "uniform"})
    network.initialize(w, SeedCounter())
    se = nodes.create(network, "SquareError", "se", (x, nodes.create(network, "Times", "z", (w, x))))
    se.inputs = [nodes.create(network, "InputValue", "y", (), {"dims": (1,)}), network["z"]]
    trainer = CompiledStep(network.validate(), [se], momentum())
    assert w.value is not None
    start = np.array(w.value)
    layout = Layout(1, 4, np.array([[i, i, 0, 1] for i in range(4)]))
    one = np.ones((1, 4, 1), np.float32)
    minibatch = Minibatch({"x": np.concatenate([one, -one], 2), "y": one}, {"x": layout, "y": layout})
    (group,) = trainer.batcher(4).stacks(iter([minibatch]), lambda number: False)
    settings = EpochSettings(0.1, 0.0, Settings(), 1)
    np.asarray(trainer.run(group, settings, 0))
    assert (w.value == start).all()
    second = trainer.trained_values()["w"]
    kept = np.array(second)
    assert np.isfinite(second).all() and (second != start).all()
    np.asarray(trainer.run(group, settings, 0))
    assert (second == kept).all() and (w.value == start).all()
    trained = trainer.trained_network()
    assert trained["w"].value is not None and (trained["w"].value != second).all()
    assert trained["z"].inputs[0] is trained["w"] is not w


def test_parameters_are_not_copied_with_the_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run has the parameters of its model when it reads the arrays of the update rule."""
    import numpy as np

    from cntkpy.networks import nodes
    from cntkpy.networks.graph.initialize import SeedCounter
    from cntkpy.networks.graph.network import Network
    from cntkpy.trainers.rules.updates import momentum
    from cntkpy.trainers.step.placement import OneDevice
    from cntkpy.trainers.step.step import CompiledStep

    network = Network("float")
    x = nodes.create(network, "InputValue", "x", (), {"dims": (2,)})
    w, v = (nodes.create(network, "LearnableParameter", name, (), {"dims": (1, 2), "init": "uniform"}) for name in "wv")
    for one in (w, v):
        network.initialize(one, SeedCounter())
    both = [nodes.create(network, "Times", name, (one, x)) for name, one in (("z", w), ("y", v))]
    se = nodes.create(network, "SquareError", "se", both)
    trainer = CompiledStep(network.validate(), [se], momentum())
    placed: list[Any] = []
    place = OneDevice.place

    def noted(self: OneDevice, array: Any, slots: bool = False) -> Any:
        if np.ndim(array):
            placed.append(array)
        return place(self, array, slots)

    monkeypatch.setattr(OneDevice, "place", noted)
    trainer.reload_updates()
    assert placed == []
    momenta = {"v": {"v": np.array([[1], [2]], np.float32)}}
    assert trainer.reload_updates(momenta) == [] and not momenta
    assert [one.tolist() for one in placed] == [[[1], [2]]]
    assert trainer.updates(["v"])["v"]["v"].tolist() == [[1], [2]]

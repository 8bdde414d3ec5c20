"""`cntkpy export CONFIG OUT --to pytorch --training`: the training of a configuration as a program of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.diagnostics import UserError

if TYPE_CHECKING:
    from cntkpy.cntk_config import ConfigParameters
    from cntkpy.networks.graph.network import ValidatedNetwork
    from cntkpy.networks.source.export import Source
    from cntkpy.trainers.parameters.sgd import SGDParameters

PROGRAM = '''\
"""Repeats the training of {origin}: python train.py

Run it where the paths of the configuration lead; weights.safetensors has the start values.
{order}
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from model import {name}
from safetensors.torch import load_file, save_file
from torch import Tensor

HERE = Path(__file__).parent
DATA = {data!r}
STREAMS = {streams!r}
RATES = {rates}  # per sample, of each epoch
MOMENTA = {momenta}  # per sample
SIZES = {sizes}  # samples of a minibatch


class Sgd(torch.optim.Optimizer):
    """SGD whose velocity has the rate inside, with a momentum per sample, as CNTK has it."""

    def __init__(self, parameters) -> None:
        super().__init__(parameters, {{"rate": 0.0, "momentum": 0.0}})

    @torch.no_grad()
    def step(self, samples: int) -> None:
        """Take one step; gradients are sums over the samples."""
        for group in self.param_groups:
            kept = group["momentum"] ** samples
            for weight in group["params"]:
                state = self.state[weight]
                velocity = state.setdefault("velocity", torch.zeros_like(weight))
                velocity.mul_(kept).add_(weight.grad, alpha=(1 - kept) * group["rate"])
                weight.sub_(velocity)


def read_ctf(path: str) -> dict[str, Tensor]:
    """Return the dense streams of a CNTK text file, a row for each line."""
    rows = {{name: [] for name in STREAMS}}
    for line in Path(path).read_text().splitlines():
        for stream in line.split("|")[1:]:
            name, *values = stream.split()
            if name in rows:
                rows[name].append([float(value) for value in values])
    return {{name: torch.tensor(values) for name, values in rows.items()}}


{criteria}


def main() -> None:
    """Train, and write the weights."""
    data = read_ctf(DATA)
    model = {name}()
    model.load_state_dict(load_file(HERE / "weights.safetensors"))
    model.train()
    optimiser = Sgd(model.parameters())
    count = len(next(iter(data.values())))
    for epoch, (rate, momentum, size) in enumerate(zip(RATES, MOMENTA, SIZES, strict=True)):
        for group in optimiser.param_groups:
            group["rate"], group["momentum"] = rate, momentum
        totals = torch.zeros({results})
        for begin in range(0, count, size):
            batch = {{name: values[begin : begin + size] for name, values in data.items()}}
            outputs = model({inputs})
            values = criteria({arguments})
            optimiser.zero_grad()
            values[0].backward()
            optimiser.step(min(size, count - begin))
            totals += torch.stack([value.detach() for value in values])
        print(f"epoch {{epoch + 1}}:", *(f"{{value:.8f}}" for value in totals / count))
    save_file(model.state_dict(), HERE / "trained.safetensors")


if __name__ == "__main__":
    main()
'''


PLAIN_UPDATES = ("none", "", "normal", "simple")


def training(section: ConfigParameters, network: ValidatedNetwork, source: Source, origin: str) -> str:
    """Return the text of `train.py`.

    Args:
        section: the command that trains.
        network: its network.
        source: the module, whose outputs are what the criteria look at.
        origin: the configuration.

    Raises:
        UserError: the training has something that is not written; all of it is listed.
    """
    from cntkpy.networks.onnx import ours
    from cntkpy.networks.source import layout
    from cntkpy.networks.source.function import criteria_function
    from cntkpy.trainers.parameters.sgd import SGDParameters
    from cntkpy.trainers.schedules.schedules import Schedules

    parameters = SGDParameters(section.section("SGD"))
    reader = section.section("reader")
    refuse(reasons(parameters, reader, source))
    names = [node.name for node in (*network.groups["criterion"][:1], *network.groups["evaluation"])]
    cut = [node.name for node in source.outputs]
    function = criteria_function(network, names, cut, ours.constants)
    schedules, epochs = Schedules(parameters), range(parameters.max_epochs)
    streams = {stream: stream_alias(reader, stream) for stream in streams_of(reader)}
    known = {name: f'batch["{streams[name]}"]' for name in streams}
    if len(cut) == 1:
        known[cut[0]] = "outputs"
    else:
        known.update({name: f"outputs[{place}]" for place, name in enumerate(cut)})
    randomised = str(reader("randomize", "auto")).lower() not in ("none", "false")
    order = "The configuration shuffles the samples; here they come in the order of the file." if randomised else ""
    return layout.laid_out(
        PROGRAM.format(
            origin=origin.replace('"', "?").replace("\\", "?"),
            order=order,
            name=source.name,
            data=str(reader("file")),
            streams=sorted(set(streams.values())),
            rates=[schedules.rate_per_sample(epoch) for epoch in epochs],
            momenta=[schedules.momentum_per_sample(epoch) for epoch in epochs],
            sizes=[parameters.minibatch_size[epoch] for epoch in epochs],
            criteria=function.text,
            inputs=", ".join(known[node.name] for node in source.arguments.values()),
            arguments=", ".join(known[name] for name in function.arguments),
            results=len(names),
        )
    )


def streams_of(reader: ConfigParameters) -> list[str]:
    """Return the names of the streams of a text reader."""
    return list(reader.section("input").names()) if reader.exists_current("input") else []


def stream_alias(reader: ConfigParameters, name: str) -> str:
    """Return the name that a stream has in the file."""
    return str(reader.section("input").section(name)("alias", name))


def reasons(parameters: SGDParameters, reader: ConfigParameters, source: Source) -> list[str]:
    """Return what of a training is not written."""
    p: Any = parameters
    kinds = {node.operation for node in source.graph.users}
    sparse = [
        name for name in streams_of(reader) if str(reader.section("input").section(name)("format", "")) == "sparse"
    ]
    scaled = any(
        tensor.source is not None and tensor.source.learning_rate_multiplier != 1
        for name, tensor in source.tensors.items()
        if "." in name
    )
    unwritten = {
        "a reader other than CNTKTextFormatReader": str(reader("readerType", "")).lower() != "cntktextformatreader",
        f"sparse streams: {', '.join(sparse)}": bool(sparse),
        "networks that look along time": source.graph.along_time,
        "running statistics of batch normalisation": "BatchNormalization" in kinds,
        "the numbers that dropout draws": "Dropout" in kinds,
        "statistics that are computed before training": bool(source.graph.pending),
        "other update rules than SGD with momentum": p.use_adagrad
        or str(p.update_type) not in ("none", "", "normal", "simple"),
        "learning rate multipliers other than 1": scaled,
        "useNAG": bool(p.nesterov),
        "L1RegWeight and L2RegWeight": bool(p.l1 or p.l2),
        "clippingThresholdPerSample": p.clipping != float("inf"),
        "epochSize": p.epoch_size > 0,
        "truncated": bool(p.truncated),
        "rates that are found in the training (AutoAdjust)": not (p.rates_per_mb or p.rates_per_sample),
    }
    return [reason for reason, applies in unwritten.items() if applies]


def refuse(listed: list[str]) -> None:
    """Raise an error that says what is not written, if there is something."""
    if listed:
        lines = "\n".join(f"  {reason}" for reason in listed)
        message = f"the training cannot be written as PyTorch source, because of:\n{lines}"
        raise UserError("NotSupported", message, hint="without --training the network alone is written")
